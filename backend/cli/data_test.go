package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/session"
)

// atHome has a program keep its things where the system says, below a directory, and not where --data-dir does.
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

// A conversation goes with the data while the server runs, and the next prompt is answered in the new place, behind the same address.
func TestDataMovesUnderARunningServer(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new disk")
	_, link := server(t, "")
	work := t.TempDir()
	say := func(text string) {
		t.Helper()
		if out, stderr, code := run(t, "", "prompt", "--agent", "mock", "--dir", work, text); code != 0 {
			t.Fatalf("%d %s %s", code, out, stderr)
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
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", to); code != 0 || !strings.Contains(stderr, to) {
		t.Fatalf("%d %s", code, stderr)
	}
	if out, stderr, code := run(t, "", "data"); code != 0 || strings.TrimSpace(out) != to || !strings.Contains(stderr, data) {
		t.Errorf("%d %s %s", code, out, stderr)
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
		t.Errorf("%d %s %s", code, out, stderr)
	}
	if _, stderr, code := run(t, "", "data", "delete-old"); code != 0 {
		t.Errorf("%d %s", code, stderr)
	}
	if list, err := os.ReadDir(data); err != nil || len(list) != 1 || list[0].Name() != "moved.json" { // for a start that finds no settings
		t.Errorf("%v of the old copy is there: %v", list, err)
	}
}

// Turns that run are in the way until the person has said that they may end.
func TestTurnsAreInTheWayOfAMove(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new")
	server(t, "")
	c := onSocket(t, data)
	s := c.begin(t.TempDir(), "stubborn")
	c.watch("text", isText)
	if _, stderr, code := run(t, "", "data", "move", to); code != 1 || !strings.Contains(stderr, "--stop-turns") {
		t.Fatalf("%d %s", code, stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", "--stop-turns", to); code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	var tr session.Transcript
	onSocket(t, to).get("/client/sessions/"+s.ID+"/entries", &tr)
	if len(tr.Turns) != 1 || tr.Turns[0].State != "done" {
		t.Errorf("%+v", tr.Turns)
	}
}

// Without a Deskhand that runs the command moves the data by itself; a disk that is away is told by every command, and nothing is made.
func TestDataThatIsAwayIsToldByEveryCommand(t *testing.T) {
	data, to := atHome(t), filepath.Join(t.TempDir(), "new")
	if _, stderr, code := run(t, "", "sessions", "list"); code != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, code := run(t, "", "data", "move", to); code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	if err := os.Rename(to, to+"-away"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions", "list"}, {"server", "--port", "0"}, {"data"}, {"data", "wait", "--timeout", "10ms"}} {
		if _, stderr, code := run(t, "", args...); code != 1 || !strings.Contains(stderr, to) || !strings.Contains(stderr, "data use "+data) {
			t.Errorf("%v: %d %s", args, code, stderr)
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
		t.Errorf("%d %s", code, waiting.stderr)
	}
	if err := os.Rename(to, to+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "", "data", "use", data); code != 0 {
		t.Errorf("%d %s", code, stderr)
	}
	out, stderr, code := run(t, "", "data", "where", "--json")
	var w struct{ Directory string }
	if err := json.Unmarshal([]byte(out), &w); err != nil || code != 0 || w.Directory != data {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	if _, stderr, code := run(t, "", "sessions", "list"); code != 0 {
		t.Error(stderr)
	}
}

// With a directory of the person's choice there is nothing to be switched.
func TestDataOfAFlagIsNotMoved(t *testing.T) {
	t.Parallel()
	if _, stderr, code := run(t, t.TempDir(), "data", "move", filepath.Join(t.TempDir(), "new")); code != 1 || !strings.Contains(stderr, "--data-dir") {
		t.Errorf("%d %s", code, stderr)
	}
}
