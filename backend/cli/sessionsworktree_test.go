package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorktreeFromTerminal: a conversation begins in a worktree, which the command removes after a preview, and restores.
func TestWorktreeFromTerminal(t *testing.T) {
	r := inRepository(t)
	work, run := r.work, r.run
	prompt := []string{"prompt", "--agent", "mock", "--approve", "once", "--worktree", "Write it down"}
	if _, errs, code := run(prompt...); code != 2 || !strings.Contains(errs, "is in no git repository") {
		t.Fatalf(`deskhand PROMPT: got exit code %d, stderr %s, want exit code 2 and stderr with "is in no git repository"`, code, errs)
	}
	r.must("git", "init", "--quiet")
	r.must("git", "commit", "--quiet", "--allow-empty", "-m", "first")
	if _, errs, code := run(prompt...); code != 0 || !strings.Contains(errs, "on the branch deskhand/write-it-down-") {
		t.Fatalf(`deskhand PROMPT: got exit code %d, stderr %s, want exit code 0 and stderr with "on the branch deskhand/write-it-down-"`, code, errs)
	}
	made, err := filepath.Glob(filepath.Join(work+".worktrees", "write-it-down-*", "deskhand-demo.md"))
	if err != nil || len(made) != 1 {
		t.Fatal(made, err)
	}
	if out, _, _ := run("sessions"); !strings.Contains(out, " (worktree)") {
		t.Error(out)
	}
	if out, _, code := run("sessions", "worktree", "last"); code != 0 || !strings.Contains(out, "state       ready") || !strings.Contains(out, filepath.Dir(made[0])+"\n") {
		t.Errorf("deskhand sessions worktree last: got exit code %d, stdout %s, want exit code 0, stdout with \"state       ready\" and stdout with filepath.Dir(made[0])+\"\\n\"", code, out) // the path is not shortened, however long it is
	}
	if out, _, code := run("sessions", "setup", "last"); code != 0 || out != "nothing was set up\n" {
		t.Errorf("deskhand sessions setup last: got exit code %d, stdout %q, want 0 and that nothing was set up", code, out)
	}
	if _, errs, code := run("sessions", "setup", "last", "--again"); code != 2 || !strings.Contains(errs, "nothing says how") {
		t.Errorf("deskhand sessions setup last --again: got exit code %d, stderr %q, want 2 and that nothing says how", code, errs)
	}
	if _, errs, code := run("prompt", "--agent", "mock", "--worktree", "--base", "nowhere", "x"); code != 2 || !strings.Contains(errs, "no branch or commit called nowhere") {
		t.Errorf("deskhand prompt --base nowhere: got exit code %d, stderr %q, want 2 and that there is no such branch", code, errs)
	}
	if _, errs, code := run("sessions", "worktree", "last", "--remove"); code == 0 || !strings.Contains(errs, "--yes") {
		t.Errorf(`deskhand sessions worktree last --remove: got exit code %d, stderr %s, want exit code other than 0 and stderr with "--yes"`, code, errs)
	}
	if out, errs, code := run("sessions", "worktree", "last", "--json"); code != 0 || !strings.Contains(out, `"state": "ready"`) {
		t.Errorf("deskhand sessions worktree last --json: got exit code %d, stdout %s, stderr %s, want the record of a worktree that is there", code, out, errs)
	}
	if out, errs, code := run("sessions", "setup", "last", "--json"); code != 0 || !strings.Contains(out, `"worktree": true`) {
		t.Errorf("deskhand sessions setup last --json: got exit code %d, stdout %s, stderr %s, want the record", code, out, errs)
	}
	if out, errs, code := run("sessions", "worktree", "last", "--remove", "--yes"); code != 0 || !strings.Contains(out, "1 file kept in refs/deskhand/kept/") {
		t.Errorf(`deskhand sessions worktree last --remove --yes: got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout with "1 file kept in refs/deskhand/kept/"`, code, out, errs)
	}
	if out, _, _ := run("sessions"); !strings.Contains(out, "(worktree, removed)") {
		t.Error(out)
	}
	if _, err := os.Stat(made[0]); err == nil {
		t.Error("it is still there")
	}
	if out, errs, code := run("sessions", "worktree", "last", "--restore"); code != 0 || !strings.Contains(out, "is back, on deskhand/write-it-down-") {
		t.Errorf(`deskhand sessions worktree last --restore: got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout with "is back, on deskhand/write-it-down-"`, code, out, errs)
	}
	if _, err := os.Stat(made[0]); err != nil {
		t.Error(err)
	}
	if out, errs, code := run("sessions", "worktree", "last", "--remove", "--yes", "--json"); code != 0 || !strings.Contains(out, `"ref": "refs/deskhand/kept/`) {
		t.Errorf("deskhand sessions worktree last --remove --yes --json: got exit code %d, stdout %s, stderr %s, want the ref of what is kept", code, out, errs)
	}
	if out, errs, code := run("sessions", "worktree", "last", "--restore", "--json"); code != 0 || !strings.Contains(out, `"state": "ready"`) {
		t.Errorf("deskhand sessions worktree last --restore --json: got exit code %d, stdout %s, stderr %s, want the record of a worktree that is there", code, out, errs)
	}
}
