package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/testkit"
)

// TestChangesAndUndo: a turn's changes are listed, and undone after a person has confirmed.
func TestChangesAndUndo(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	t.Chdir(work)
	file := filepath.Join(work, "deskhand-demo.md")
	self := testkit.Deskhand(t)
	run := func(t *testing.T, dir string, args ...string) (string, string, int) { // with a PATH, for git
		t.Helper()
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir, "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo"), "DISPLAY=", "WAYLAND_DISPLAY=")
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	for range 3 { // on a busy machine a snapshot may time out after five seconds, and the turn's changes stay unknown
		_ = os.Remove(file)
		if _, errs, code := run(t, dir, "prompt", "--agent", "mock", "--approve", "once", "write it down"); code != 0 {
			t.Fatal(code, errs)
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		if out, _, _ := run(t, dir, "sessions", "changes", "last"); !strings.Contains(out, "took too long") {
			break
		}
	}
	if out, errs, code := run(t, dir, "sessions", "changes", "last"); code != 0 || !strings.HasPrefix(out, "added  +") || !strings.Contains(out, "deskhand-demo.md") {
		t.Fatalf(`deskhand sessions changes last: got exit code %d, stdout %q, stderr %s, want exit code 0, stdout beginning with "added  +" and stdout with "deskhand-demo.md"`, code, out, errs)
	}
	if out, _, code := run(t, dir, "sessions", "changes", "--all", "last"); code != 0 || !strings.Contains(out, "deskhand-demo.md") {
		t.Errorf(`deskhand sessions changes --all last: got exit code %d, stdout %q, want exit code 0 and stdout with "deskhand-demo.md"`, code, out)
	}
	if _, errs, code := run(t, dir, "sessions", "undo", "last"); code == 0 || !strings.Contains(errs, "--yes") {
		t.Fatalf(`deskhand sessions undo last: got exit code %d, stderr %s, want exit code other than 0 and stderr with "--yes"`, code, errs)
	}
	if out, errs, code := run(t, dir, "sessions", "undo", "--yes", "last"); code != 0 || out != "removed  deskhand-demo.md\n" {
		t.Fatalf("deskhand sessions undo --yes last: got exit code %d, stdout %q, stderr %s, want exit code 0 and stdout \"removed  deskhand-demo.md\\n\"", code, out, errs)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it is still there")
	}
	if out, _, code := run(t, dir, "sessions", "changes", "--all", "last"); code != 0 || out != "nothing was changed\n" { // undone changes do not count
		t.Errorf("deskhand sessions changes --all last: got exit code %d, stdout %q, want exit code 0 and stdout \"nothing was changed\\n\"", code, out)
	}
}
