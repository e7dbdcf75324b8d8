package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestUsageSumsUpTurns(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "thought"); code != 0 {
		t.Fatalf("deskhand prompt: got exit %d, stderr %q, want 0", code, stderr)
	}
	out, stderr, code := run(t, dir, "usage", "--json", "--by", "agent", "--zone", "UTC")
	var r struct {
		Rows []struct {
			Key string
			Sum struct{ Turns int }
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Rows) != 1 || r.Rows[0].Key != "mock" || r.Rows[0].Sum.Turns != 1 {
		t.Errorf("deskhand usage --json: got exit %d, %v, stderr %q: %s; want one turn of mock", code, err, stderr, out)
	}
	if out, _, code := run(t, dir, "usage", "--by", "agent"); code != 0 || !strings.HasPrefix(out, "AGENT ") || !strings.Contains(out, "\nall ") {
		t.Errorf("deskhand usage: got exit %d and %q, want 0 and a table with the sum", code, out)
	}
	if out, _, code := run(t, dir, "usage", "--by", "session", "--csv"); code != 0 || !strings.HasPrefix(out, "session,name,turns,") || strings.Count(out, "\r\n") != 2 {
		t.Errorf("deskhand usage --csv: got exit %d and %q, want 0 and two lines", code, out)
	}
	for _, wrong := range [][]string{{"--from", "yesterday"}, {"--from", "2026-02-02", "--to", "2026-02-01"}, {"--zone", "Mars/Olympus"}} {
		if out, stderr, code := run(t, dir, append([]string{"usage"}, wrong...)...); code != 2 || out != "" || stderr == "" {
			t.Errorf("deskhand usage %v: got exit %d, %q, stderr %q, want 2 and the reason", wrong, code, out, stderr)
		}
	}
}
