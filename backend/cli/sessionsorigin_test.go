package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/session"
)

func TestSessionsAreImportedAndForked(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	other := t.TempDir() // a desk of its own with the same agent
	for _, text := range []string{"echo one", "echo two"} {
		if _, stderr, code := run(t, other, "prompt", "--agent", "mock", "--dir", work, text); code != 0 {
			t.Fatal(code, stderr)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "demo"), os.DirFS(filepath.Join(other, "demo"))); err != nil {
		t.Fatal(err)
	}
	list, stderr, code := run(t, dir, "sessions", "import", "mock", "--list")
	if code != 0 || strings.Count(list, "\n") != 3 || !strings.Contains(list, "echo two") || strings.Contains(list, "yes") {
		t.Fatalf("%d %s\n%s", code, stderr, list)
	}
	raw, _, _ := run(t, dir, "sessions", "import", "mock", "--list", "--json")
	var items []session.AgentSession
	if err := json.Unmarshal([]byte(raw), &items); err != nil || len(items) != 2 {
		t.Fatalf("%v\n%s", err, raw)
	}
	one, stderr, code := run(t, dir, "sessions", "import", "mock", items[1].ACPSessionID)
	if code != 0 || !strings.Contains(one, "echo one") {
		t.Fatalf("%d %s\n%s", code, stderr, one)
	}
	rest, stderr, code := run(t, dir, "sessions", "import", "mock", "--dir", work)
	if code != 0 || strings.Count(rest, "\n") != 1 || !strings.Contains(rest, "echo two") {
		t.Fatalf("%d %s\n%s", code, stderr, rest)
	}
	if _, stderr, code := run(t, dir, "sessions", "import", "mock", "--dir", work); code != 0 || !strings.Contains(stderr, "nothing that is not here") {
		t.Errorf("%d %s", code, stderr)
	}
	if text, _, code := run(t, dir, "sessions", "show", one[:36]); code != 0 || strings.Count(text, "echo one") < 2 {
		t.Errorf("%d\n%s", code, text)
	}
	fork, stderr, code := run(t, dir, "sessions", "fork", one[:36])
	if code != 0 || len(strings.TrimSpace(fork)) != 36 {
		t.Fatalf("%d %s\n%s", code, stderr, fork)
	}
	if text, _, code := run(t, dir, "sessions", "show", strings.TrimSpace(fork)); code != 0 || strings.Count(text, "echo one") < 2 {
		t.Errorf("%d\n%s", code, text)
	}
	for name, args := range map[string][]string{
		"neither":                 {"sessions", "import", "mock"},
		"an id that it has not":   {"sessions", "import", "mock", "nothing"},
		"a fork of nothing":       {"sessions", "fork", "ffff"},
		"an agent of no such id":  {"sessions", "import", "nobody", "--list"},
		"steering with no server": {"sessions", "steer", "last", "go on"},
	} {
		if text, stderr, code := run(t, dir, args...); code == 0 || text != "" {
			t.Errorf("%s: %d\n%s%s", name, code, text, stderr)
		}
	}
}

func TestSessionsSummary(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the kelpfern"); code != 0 {
		t.Fatal(code, stderr)
	}
	if text, stderr, code := run(t, dir, "sessions", "summary", "last"); code != 0 || !strings.Contains(text, "echo the kelpfern") {
		t.Errorf("got %d, %q, %q, want the message in the summary", code, text, stderr)
	}
}
