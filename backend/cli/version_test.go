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
		t.Fatalf("%d %v %s", code, err, out)
	}
	if built["version"] != "test" || built["window"] != false || !strings.HasPrefix(built["go"].(string), "go") || built["os"] == "" || built["arch"] == "" {
		t.Errorf("%v", built)
	}
}
