package cli_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
)

// atTerminal runs a command at a terminal, and types the answer when the command asks.
func atTerminal(t *testing.T, dir, asks, answer string, args ...string) (screen string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), args...)
	cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir, "PATH=/none")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	buf, typed := make([]byte, 4096), false
	for {
		n, err := tty.Read(buf)
		screen += string(buf[:n])
		if err != nil {
			break
		}
		if !typed && strings.Contains(screen, asks) {
			typed = true
			_, _ = io.WriteString(tty, answer+"\n")
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return screen, cmd.ProcessState.ExitCode()
}

// begun lists the ids of all conversations, the newest first.
func begun(t *testing.T, dir string) []string {
	t.Helper()
	raw, stderr, code := run(t, dir, "sessions", "--json")
	var page session.Page[session.Session]
	if err := json.Unmarshal([]byte(raw), &page); err != nil || code != 0 {
		t.Fatalf("Unmarshal: want no error and exit code 0, got exit code %d\nerror %v\nraw %s\nstderr %s", code, err, raw, stderr)
	}
	var ids []string
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestSessionsAreDeletedOnceAPersonSaysSo(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	for _, text := range []string{"echo one", "echo two", "echo three"} {
		if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, text); code != 0 {
			t.Fatal(code, stderr)
		}
	}
	ids := begun(t, dir)
	if out, stderr, code := run(t, dir, "sessions", "delete", "last"); code != 2 || out != "" || !strings.Contains(stderr, "--yes") {
		t.Errorf("deskhand sessions delete without a terminal: got exit %d, %s%s; want 2 and --yes named", code, out, stderr)
	}
	const asks = "Type yes to do it: "
	if screen, code := atTerminal(t, dir, asks, "y", "sessions", "delete", ids[0]); code != 4 || !strings.Contains(screen, "echo three") || !strings.Contains(screen, "nothing was deleted") {
		t.Errorf(`atTerminal("y", "sessions", "delete"): got exit code %d, screen %s, want exit code 4, screen with "echo three" and screen with "nothing was deleted"`, code, screen)
	}
	if n := len(begun(t, dir)); n != 3 {
		t.Fatalf("sessions left: got %d, want 3", n)
	}
	if out, stderr, code := run(t, dir, "sessions", "delete", "--yes", ids[0], "ffff"); code != 2 || out != "" || !strings.Contains(stderr, `no conversation "ffff"`) {
		t.Errorf("deskhand sessions delete of one that is not there: got exit %d, %s%s; want 2 and ffff named", code, out, stderr)
	}
	if screen, code := atTerminal(t, dir, asks, "yes", "sessions", "delete", "last", ids[0]); code != 0 || strings.Count(screen, "deleted "+ids[0]) != 1 {
		t.Errorf(`atTerminal("yes", "sessions", "delete", "last"): got exit code %d, screen %s, want exit code 0 and 1 time "deleted "+ids[0] in screen`, code, screen)
	}
	if left := begun(t, dir); len(left) != 2 || left[0] != ids[1] {
		t.Errorf("begun: got left %v, want 2 in left and left[0] %v", left, ids[1])
	}
	if out, stderr, code := run(t, dir, "sessions", "delete", "--yes", ids[1]); code != 0 || strings.Count(out, "deleted ") != 1 {
		t.Errorf(`deskhand sessions delete --yes IDS[1]: got exit code %d, stdout %s, stderr %s, want exit code 0 and 1 time "deleted " in stdout`, code, out, stderr)
	}
	if out, stderr, code := run(t, dir, "sessions", "delete", "--yes", ""); code != 2 || out != "" || !strings.Contains(stderr, `no conversation ""`) {
		t.Errorf("deskhand sessions delete without a name: got exit %d, %s%s; want 2", code, out, stderr)
	}
	if out, stderr, code := run(t, dir, "sessions", "delete", "--yes", ids[2][:20]); code != 0 || strings.Count(out, "deleted ") != 1 {
		t.Errorf(`deskhand sessions delete --yes: got exit code %d, stdout %s, stderr %s, want exit code 0 and 1 time "deleted " in stdout`, code, out, stderr)
	}
	for name, code := range map[string]int{"show": 2, "delete": 2} {
		if _, stderr, got := run(t, dir, "sessions", name, ids[1]); got != code {
			t.Errorf("%s: deskhand sessions NAME IDS[1]: got %d, stderr %s, want %v", name, got, stderr, code)
		}
	}
	// The command erased the entries itself: no process was left to erase them later.
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"session", "frame", "entry", "turn"} {
		var n sql.NullInt64
		if err := db.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil || n.Int64 != 0 {
			t.Errorf("rows of %s: got %d, %v; want 0", table, n.Int64, err)
		}
	}
}

// TestSessionsDeletesInTheRunningProgram: the deletion goes through the running Deskhand, whose surfaces see the conversation disappear.
func TestSessionsDeletesInTheRunningProgram(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "please write a note")
	c.watch("request", func(e feed.Event) bool {
		return e.Type == "request.upsert" && decode[requests.Request](e).Status == "requested"
	})
	if out, stderr, code := run(t, dir, "sessions", "delete", "--yes", "last"); code != 0 || !strings.HasPrefix(out, "deleted "+s.ID) {
		t.Fatalf(`deskhand sessions delete --yes last: got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout beginning with "deleted "+s.ID`, code, out, stderr)
	}
	c.watch("removal", func(e feed.Event) bool { return e.Type == "session.removed" && e.Session == s.ID })
	if ids := begun(t, dir); len(ids) > 0 {
		t.Errorf("begun: got ids %v, want no ids", ids)
	}
}

func TestSessionsRelink(t *testing.T) {
	t.Parallel()
	dir, above := t.TempDir(), t.TempDir()
	from, to := filepath.Join(above, "from"), filepath.Join(above, "to")
	if err := os.Mkdir(from, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", from, "echo one"); code != 0 {
		t.Fatal(code, stderr)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no conversation there": {to, to},
		"no such directory":     {from, filepath.Join(above, "none")},
		"one argument":          {from},
	} {
		if out, stderr, code := run(t, dir, append([]string{"sessions", "relink"}, args...)...); code != 2 || out != "" {
			t.Errorf(`%s: got exit code %d, stdout %s, stderr %s, want exit code 2 and stdout ""`, name, code, out, stderr)
		}
	}
	if out, stderr, code := run(t, dir, "sessions", "relink", from, to); code != 0 || out != to+" is the directory of 1 conversation now.\n" {
		t.Errorf("deskhand sessions relink FROM TO: got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout to+\" is the directory of 1 conversation now.\\n\"", code, out, stderr)
	}
	if out, _, _ := run(t, dir, "sessions"); !strings.Contains(out, to) || strings.Contains(out, from) {
		t.Error(out)
	}
}
