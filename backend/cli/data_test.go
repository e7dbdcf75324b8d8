package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/session"
)

// atHome makes the program use the system's directories, below a temporary directory, instead of --data-dir.
func atHome(t *testing.T) (data string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"} {
		t.Setenv(name, filepath.Join(home, at))
	}
	return filepath.Join(home, "data", "deskhand")
}

// TestDataIsMovedByACopy: after a stop, a copy and `data use`, a conversation goes on in the copy. Meanwhile the command refuses what would lose
// something.
func TestDataIsMovedByACopy(t *testing.T) {
	data, to, work := atHome(t), filepath.Join(t.TempDir(), "new disk"), t.TempDir()
	say := func(text string) {
		t.Helper()
		if out, stderr, code := run(t, "", "prompt", "--agent", "mock", "--dir", work, text); code != 0 {
			t.Fatalf("deskhand prompt --agent mock --dir WORK TEXT: got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, stderr)
		}
	}
	say("burst 20")
	refused := func(why string) {
		t.Helper()
		if _, stderr, code := run(t, "", "data", "use", to); code != 1 || !strings.Contains(stderr, why) {
			t.Errorf("deskhand data use TO: got exit code %d, stderr %s, want exit code 1 and stderr with %q", code, stderr, why)
		}
		if out, stderr, code := run(t, "", "data"); code != 0 || strings.TrimSpace(out) != data {
			t.Errorf("deskhand data: got exit code %d, stdout %s, stderr %s, want exit code 0 and %s", code, out, stderr, data)
		}
	}
	refused("holds no data")
	copyData := func() {
		t.Helper()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(data))); err != nil {
			t.Fatal(err)
		}
	}
	copyData()
	say("burst 30")
	refused("has fewer changes than")
	copyData()
	if err := os.Remove(filepath.Join(to, "token")); err != nil {
		t.Fatal(err)
	}
	refused("missing or cut there (1)")
	copyData()
	p, _ := server(t, "")
	refused("quit it first")
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 {
		t.Fatalf("deskhand server: got exit code %d, want exit code 0", code)
	}
	copyData()
	if _, stderr, code := run(t, "", "data", "use", to); code != 0 || !strings.Contains(stderr, to) || !strings.Contains(stderr, data) {
		t.Fatalf("deskhand data use TO: got exit code %d, stderr %s, want exit code 0 and stderr with %s and %s", code, stderr, to, data)
	}
	if out, stderr, code := run(t, "", "data"); code != 0 || strings.TrimSpace(out) != to || !strings.Contains(stderr, data) {
		t.Errorf("deskhand data: got exit code %d, stdout %s, stderr %s, want exit code 0, stdout %s and stderr with %s", code, out, stderr, to, data)
	}
	server(t, "")
	c := onSocket(t, to)
	var list struct{ Items []session.Session }
	c.get("/client/sessions", &list)
	if len(list.Items) != 2 {
		t.Errorf("conversations in the copy: got %d, want 2", len(list.Items))
	}
	say("burst 40")
	if out, stderr, code := run(t, "", "verify"); code != 0 {
		t.Errorf("deskhand verify: got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, stderr)
	}
}

// TestDataThatIsAwayIsToldByEveryCommand: when the disk of the data is away, every command says so and creates nothing.
func TestDataThatIsAwayIsToldByEveryCommand(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new")
	if _, stderr, code := run(t, "", "sessions", "list"); code != 0 {
		t.Fatal(stderr)
	}
	if err := os.CopyFS(to, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "", "data", "use", to); code != 0 {
		t.Fatalf("deskhand data use TO: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	if err := os.Rename(to, to+"-away"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions", "list"}, {"server", "--port", "0"}, {"data"}, {"data", "wait", "--timeout", "10ms"}} {
		if _, stderr, code := run(t, "", args...); code != 1 || !strings.Contains(stderr, to) || !strings.Contains(stderr, "data use "+data) {
			t.Errorf(`%v: got exit code %d, stderr %s, want exit code 1, stderr with %v and stderr with "data use "+data`, args, code, stderr, to)
		}
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	waiting := start(t, "", "data", "wait")
	if err := os.Rename(to+"-away", to); err != nil {
		t.Fatal(err)
	}
	if _, code := waiting.end(); code != 0 {
		t.Errorf("got exit code %d, waiting.stderr %s, want exit code 0", code, waiting.stderr)
	}
	if err := os.Rename(to, to+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "", "data", "use", data); code != 0 {
		t.Errorf("deskhand data use DATA: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	out, stderr, code := run(t, "", "data", "where", "--json")
	var w struct{ Directory string }
	if err := json.Unmarshal([]byte(out), &w); err != nil || code != 0 || w.Directory != data {
		t.Errorf("Unmarshal: got exit code %d, stdout %s, stderr %s, want no error, exit code 0 and Directory %v", code, out, stderr, data)
	}
	if _, stderr, code := run(t, "", "sessions", "list"); code != 0 {
		t.Error(stderr)
	}
}

// TestDataOfAFlagIsNotUsedElsewhere: `data use` does not change the directory of --data-dir, since the next start would not find the other one.
func TestDataOfAFlagIsNotUsedElsewhere(t *testing.T) {
	t.Parallel()
	if _, stderr, code := run(t, t.TempDir(), "data", "use", filepath.Join(t.TempDir(), "new")); code != 1 || !strings.Contains(stderr, "--data-dir") {
		t.Errorf(`deskhand data use DIR: got exit code %d, stderr %s, want exit code 1 and stderr with "--data-dir"`, code, stderr)
	}
}
