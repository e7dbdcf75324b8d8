package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLandFromTerminal: what a conversation has done in its worktree is compared, committed, merged into the base and pushed.
func TestLandFromTerminal(t *testing.T) {
	r := inRepository(t)
	origin := filepath.Join(filepath.Dir(r.work), "origin.git")
	land := func(code int, args ...string) (string, string) {
		t.Helper()
		out, errs, got := r.run(append([]string{"sessions", "land", "last"}, args...)...)
		if got != code {
			t.Fatalf("deskhand sessions land last %s: got exit code %d, stdout %s, stderr %s, want %d", strings.Join(args, " "), got, out, errs, code)
		}
		return out, errs
	}
	r.must("git", "init", "--quiet", "--bare", origin)
	r.must("git", "init", "--quiet", "--initial-branch=main")
	r.must("git", "commit", "--quiet", "--allow-empty", "-m", "first")
	r.must("git", "remote", "add", "origin", origin)
	if _, errs, code := r.run("prompt", "--agent", "mock", "--approve", "once", "--worktree", "Write it down"); code != 0 {
		t.Fatalf("deskhand prompt --worktree: got exit code %d, stderr %s, want 0", code, errs)
	}
	if out, _ := land(0); !strings.Contains(out, "base       main\nahead      0 commits") || !strings.Contains(out, "added      deskhand-demo.md  +6 -0  (not committed)") {
		t.Errorf("deskhand sessions land last: got %s, want main, nothing ahead and the file that is not committed", out)
	}
	if _, errs := land(1, "--merge"); !strings.Contains(errs, "main has every commit of the branch already") {
		t.Errorf("--merge without a commit: got stderr %s, want that main has every commit", errs)
	}
	if _, errs := land(1, "--merge", "--base", "nowhere"); !strings.Contains(errs, "there is no branch nowhere") {
		t.Errorf("--base nowhere: got stderr %s, want that there is no such branch", errs)
	}
	out, _ := land(0, "--commit", "--message", "Write down what was said", "--merge", "--how", "forward", "--push", "--json")
	var done struct{ Commit, Merged, Pushed string }
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.Commit == "" || done.Merged != done.Commit || !strings.HasPrefix(done.Pushed, "origin/deskhand/write-it-down-") {
		t.Fatalf("--commit --merge --push --json: got %s, %v, want one commit, merged and pushed", out, err)
	}
	if got := r.must("git", "log", "-1", "--format=%H %s by %an", "main"); got != done.Commit+" Write down what was said by Ada" {
		t.Errorf("main: got %s, want the commit %s", got, done.Commit)
	}
	if _, err := os.Stat(filepath.Join(r.work, "deskhand-demo.md")); err != nil {
		t.Errorf("the merged file in main's worktree: got error %v, want it there", err)
	}
	if out, _ := land(0, "--commit", "--push"); !strings.Contains(out, "pushed to origin/deskhand/write-it-down-") || strings.Contains(out, "committed") {
		t.Errorf("--commit --push with nothing to commit: got %s, want the push alone", out)
	}
}
