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
	other := t.TempDir() // another data directory with the same agent
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
		t.Fatalf("deskhand sessions import mock --list: want exit code 0, 3 times \"\\n\" in list, list with \"echo two\" and list without \"yes\", got exit code %d\nstderr %s\nlist %s", code, stderr, list)
	}
	raw, _, _ := run(t, dir, "sessions", "import", "mock", "--list", "--json")
	var items []session.AgentSession
	if err := json.Unmarshal([]byte(raw), &items); err != nil || len(items) != 2 {
		t.Fatalf("Unmarshal: want no error and 2 in items, got error %v\nraw %s", err, raw)
	}
	one, stderr, code := run(t, dir, "sessions", "import", "mock", items[1].ACPSessionID)
	if code != 0 || !strings.Contains(one, "echo one") {
		t.Fatalf("deskhand sessions import mock ITEMS[1].ACPSESSIONID: want exit code 0 and one with \"echo one\", got exit code %d\nstderr %s\none %s", code, stderr, one)
	}
	rest, stderr, code := run(t, dir, "sessions", "import", "mock", "--dir", work)
	if code != 0 || strings.Count(rest, "\n") != 1 || !strings.Contains(rest, "echo two") {
		t.Fatalf("deskhand sessions import mock --dir WORK: want exit code 0, 1 time \"\\n\" in rest and rest with \"echo two\", got exit code %d\nstderr %s\nrest %s", code, stderr, rest)
	}
	if _, stderr, code := run(t, dir, "sessions", "import", "mock", "--dir", work); code != 0 || !strings.Contains(stderr, "nothing that is not here") {
		t.Errorf(`deskhand sessions import mock --dir WORK: got exit code %d, stderr %s, want exit code 0 and stderr with "nothing that is not here"`, code, stderr)
	}
	if text, _, code := run(t, dir, "sessions", "show", one[:36]); code != 0 || strings.Count(text, "echo one") < 2 {
		t.Errorf("deskhand sessions show: want exit code 0 and at least 2 times \"echo one\" in text, got exit code %d\ntext %s", code, text)
	}
	fork, stderr, code := run(t, dir, "sessions", "fork", one[:36])
	if code != 0 || len(strings.TrimSpace(fork)) != 36 {
		t.Fatalf("deskhand sessions fork: want exit code 0 and 36 in strings.TrimSpace(fork), got exit code %d\nstderr %s\nfork %s", code, stderr, fork)
	}
	if text, _, code := run(t, dir, "sessions", "show", strings.TrimSpace(fork)); code != 0 || strings.Count(text, "echo one") < 2 {
		t.Errorf("deskhand sessions show: want exit code 0 and at least 2 times \"echo one\" in text, got exit code %d\ntext %s", code, text)
	}
	for name, args := range map[string][]string{
		"neither":                 {"sessions", "import", "mock"},
		"an id that it has not":   {"sessions", "import", "mock", "nothing"},
		"a fork of nothing":       {"sessions", "fork", "ffff"},
		"an agent of no such id":  {"sessions", "import", "nobody", "--list"},
		"steering with no server": {"sessions", "steer", "last", "go on"},
	} {
		if text, stderr, code := run(t, dir, args...); code == 0 || text != "" {
			t.Errorf("%s: want exit code other than 0 and text \"\", got exit code %d\ntext %s\nstderr %s", name, code, text, stderr)
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
