package cli_test

import (
	"encoding/json"
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

// TestDataMovesUnderARunningServer: a conversation moves with the data while the server runs, and the next prompt is answered from the new
// place at the same address.
func TestDataMovesUnderARunningServer(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new disk")
	_, link := server(t, "")
	work := t.TempDir()
	say := func(text string) {
		t.Helper()
		if out, stderr, code := run(t, "", "prompt", "--agent", "mock", "--dir", work, text); code != 0 {
			t.Fatalf("deskhand prompt --agent mock --dir WORK TEXT: got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, stderr)
		}
	}
	say("burst 20")
	c := onSocket(t, data)
	var list struct{ Items []session.Session }
	c.get("/client/sessions", &list)
	s := list.Items[0]
	var before session.Transcript
	c.get("/client/sessions/"+s.ID+"/entries", &before)

	if out, stderr, code := run(t, "", "data", "move", "--check", to); code != 0 || !strings.Contains(stderr, "free") {
		t.Fatalf(`deskhand data move --check TO: got exit code %d, stdout %s, stderr %s, want exit code 0 and stderr with "free"`, code, out, stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", to); code != 0 || !strings.Contains(stderr, to) {
		t.Fatalf("deskhand data move TO: got exit code %d, stderr %s, want exit code 0 and stderr with %v", code, stderr, to)
	}
	if out, stderr, code := run(t, "", "data"); code != 0 || strings.TrimSpace(out) != to || !strings.Contains(stderr, data) {
		t.Errorf("deskhand data: got exit code %d, stdout %s, stderr %s, want exit code 0, strings.TrimSpace(out) %v and stderr with %v", code, out, stderr, to, data)
	}
	c = onSocket(t, to)
	var after session.Transcript
	c.get("/client/sessions/"+s.ID+"/entries", &after)
	if len(before.Items) == 0 || len(after.Items) < len(before.Items) || after.Items[0].Text != before.Items[0].Text {
		t.Errorf("before %d, after %d", len(before.Items), len(after.Items))
	}
	if out, stderr, code := run(t, "", "link"); code != 0 || !strings.HasPrefix(out, strings.Split(link, "#")[0]) {
		t.Errorf("%d %q %s, was %s", code, out, stderr, link)
	}
	say("burst 30")
	if out, stderr, code := run(t, "", "verify"); code != 0 {
		t.Errorf("deskhand verify: got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, stderr)
	}
	if _, stderr, code := run(t, "", "data", "delete-old"); code != 0 {
		t.Errorf("deskhand data delete-old: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	if list, err := os.ReadDir(data); err != nil || len(list) != 1 || list[0].Name() != "moved.json" { // moved.json tells a start that finds no settings
		t.Errorf("%v of the old copy is there: %v", list, err)
	}
}

// TestTurnsAreInTheWayOfAMove: running turns block a move until the person allows to stop them.
func TestTurnsAreInTheWayOfAMove(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new")
	server(t, "")
	c := onSocket(t, data)
	s := c.begin(t.TempDir(), "stubborn")
	c.watch("text", isText)
	if _, stderr, code := run(t, "", "data", "move", to); code != 1 || !strings.Contains(stderr, "--stop-turns") {
		t.Fatalf(`deskhand data move TO: got exit code %d, stderr %s, want exit code 1 and stderr with "--stop-turns"`, code, stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", "--stop-turns", to); code != 0 {
		t.Fatalf("deskhand data move --stop-turns TO: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	var tr session.Transcript
	onSocket(t, to).get("/client/sessions/"+s.ID+"/entries", &tr)
	if len(tr.Turns) != 1 || tr.Turns[0].State != "done" {
		t.Errorf(`got Turns %+v, want 1 in Turns and tr.Turns[0].State "done"`, tr.Turns)
	}
}

// TestDataThatIsAwayIsToldByEveryCommand: without a running Deskhand the command moves the data by itself. When the new disk is away, every
// command says so and creates nothing.
func TestDataThatIsAwayIsToldByEveryCommand(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new")
	if _, stderr, code := run(t, "", "sessions", "list"); code != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", to); code != 0 {
		t.Fatalf("deskhand data move TO: got exit code %d, stderr %s, want exit code 0", code, stderr)
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

// TestDataOfAFlagIsNotMoved: the directory of --data-dir cannot move, since the next start would not find the new place.
func TestDataOfAFlagIsNotMoved(t *testing.T) {
	t.Parallel()
	if _, stderr, code := run(t, t.TempDir(), "data", "move", filepath.Join(t.TempDir(), "new")); code != 1 || !strings.Contains(stderr, "--data-dir") {
		t.Errorf(`deskhand data move: got exit code %d, stderr %s, want exit code 1 and stderr with "--data-dir"`, code, stderr)
	}
}
