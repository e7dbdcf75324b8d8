package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	out, _, code := run(t, t.TempDir(), "version", "--json")
	var built map[string]any
	if err := json.Unmarshal([]byte(out), &built); err != nil || code != 0 {
		t.Fatalf("Unmarshal: got exit code %d, error %v, stdout %s, want no error and exit code 0", code, err, out)
	}
	if built["version"] != "test" || built["window"] != false || !strings.HasPrefix(built["go"].(string), "go") || built["os"] == "" || built["arch"] == "" {
		t.Errorf(`got built %v, want built["version"] "test", built["window"] false, built["go"].(string) beginning with "go", built["os"] other than "" and built["arch"] other than ""`, built)
	}
}
