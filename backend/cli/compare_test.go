package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// comparisonRepository is a repository whose tests fail where a file is bad.
func comparisonRepository(t *testing.T, env ...string) *repository {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the command of the tests is one of a shell")
	}
	r := inRepository(t, env...)
	testWrite(t, filepath.Join(r.work, ".deskhand/project.json"), `{"test": "echo tested; test ! -e bad"}`)
	testWrite(t, filepath.Join(r.work, "code.go"), "package main\n")
	r.must("git", "init", "--quiet", "--initial-branch=main")
	r.must("git", "add", "--all")
	r.must("git", "commit", "--quiet", "-m", "first")
	return r
}

// TestCompareFromTerminal: two agents get one prompt, their work is shown, tested, exchanged, and one of them is taken and landed.
func TestCompareFromTerminal(t *testing.T) {
	r := comparisonRepository(t)
	deskhand := func(code int, args ...string) (string, string) {
		t.Helper()
		out, errs, got := r.run(args...)
		if got != code {
			t.Fatalf("deskhand %s: got exit code %d, stdout %s, stderr %s, want %d", strings.Join(args, " "), got, out, errs, code)
		}
		return out, errs
	}
	for _, args := range [][]string{
		{"prompt", "--agents", "mock", "go"},
		{"prompt", "--agents", "mock,mock,mock,mock,mock", "go"},
		{"prompt", "--agents", "mock,mock", "--agent", "mock", "go"},
		{"prompt", "--compare", "go"},
		{"prompt", "--agents", "mock,nobody", "go"},
		{"compare", "show", "last"},
	} {
		if _, errs, code := r.run(args...); code != 2 || errs == "" {
			t.Errorf("deskhand %s: got exit code %d, stderr %q, want 2 with a reason", strings.Join(args, " "), code, errs)
		}
	}
	if _, errs := deskhand(2, "prompt", "--agents", "mock,mock", "--base", "nowhere", "go"); !strings.Contains(errs, "there is no branch or commit called nowhere") {
		t.Errorf("prompt --base nowhere: got stderr %s, want that there is no such branch", errs)
	}
	out, errs := deskhand(0, "prompt", "--worktree", "--base", "main", "--agents", "mock,mock", "--compare", "--approve", "once", "--json", "Write it down, with your permission")
	var c struct {
		ID      string
		Base    string
		Members []struct{ Session, Name string }
		Results []struct {
			Session struct{ Cwd string }
			Answer  string
			Files   []struct{ Path string }
		}
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil || len(c.Results) != 2 || c.Base != "main" {
		t.Fatalf("prompt --agents --json: got %s, %v, want a comparison from main with two results", out, err)
	}
	for i, m := range c.Results {
		if m.Answer == "" || len(m.Files) != 1 || m.Files[0].Path != "deskhand-demo.md" {
			t.Errorf("result %d: got %+v, want an answer and deskhand-demo.md", i+1, m)
		}
	}
	if want := c.Members[1].Name + " asks:"; !strings.Contains(errs, want) || strings.Count(errs, "· allowed once:") != 2 {
		t.Errorf("what prompt --agents tells: got %s, want %q and two approvals", errs, want)
	}
	first, second := c.Results[0].Session.Cwd, c.Results[1].Session.Cwd
	testWrite(t, filepath.Join(second, "bad"), "")
	testWrite(t, filepath.Join(second, "code.go"), "package better\n")
	if out, _ := deskhand(0, "compare"); !strings.Contains(out, c.ID) || !strings.Contains(out, c.Members[1].Name) {
		t.Errorf("deskhand compare: got %s, want the comparison with its agents", out)
	}
	if out, _ := deskhand(0, "compare", "show", "last"); !strings.Contains(out, "code.go") || !strings.Contains(out, "2: modified +1 -1") {
		t.Errorf("deskhand compare show: got %s, want code.go as the second agent's", out)
	}
	if _, errs := deskhand(2, "compare", "test", c.ID); !strings.Contains(errs, "--approve") {
		t.Errorf("compare test without an approval: got stderr %s, want how it is approved", errs)
	}
	if out, _ := deskhand(1, "compare", "test", c.ID, "--approve"); !strings.Contains(out, "passed") || !strings.Contains(out, "failed") {
		t.Errorf("compare test: got %s, want one passed and one failed", out)
	}
	if out, _ := deskhand(0, "compare", "files", c.ID, "--from", "2", "--into", c.Members[0].Name, "code.go"); !strings.Contains(out, "restored") {
		t.Errorf("compare files: got %s, want code.go restored", out)
	}
	if got, err := os.ReadFile(filepath.Join(first, "code.go")); string(got) != "package better\n" {
		t.Errorf("code.go of the first agent: got %q, %v, want the second one's", got, err)
	}
	if _, errs := deskhand(2, "compare", "take", c.ID, "3"); !strings.Contains(errs, "1 (") {
		t.Errorf("compare take of no agent: got stderr %s, want the names", errs)
	}
	deskhand(0, "compare", "take", c.ID, "1")
	if _, err := os.Stat(second); !os.IsNotExist(err) {
		t.Errorf("the worktree of the second agent: got error %v, want it removed", err)
	}
	deskhand(0, "sessions", "land", c.Members[0].Session, "--commit", "--merge")
	if got, err := os.ReadFile(filepath.Join(r.work, "code.go")); string(got) != "package better\n" {
		t.Errorf("code.go of main: got %q, %v, want the taken one", got, err)
	}
	deskhand(0, "sessions", "worktree", c.Members[1].Session, "--restore")
	if _, err := os.Stat(filepath.Join(second, "bad")); err != nil {
		t.Errorf("the uncommitted file of the second agent: got error %v, want it back", err)
	}
	deskhand(0, "compare", "ungroup", c.ID)
	if out, _ := deskhand(0, "compare", "--json"); strings.Contains(out, c.ID) {
		t.Errorf("deskhand compare after ungroup: got %s, want nothing", out)
	}
}

// TestComparisonSurvivesAKill kills Deskhand while a comparison is made, and while one of its agents is taken, after more and more time: every
// byte is there afterwards, and the next command finishes what was begun.
func TestComparisonSurvivesAKill(t *testing.T) {
	r := comparisonRepository(t)
	type comparison struct {
		ID      string
		Taken   string
		Members []struct {
			Session string
			Begun   bool
		}
	}
	list := func() (all struct{ Items []comparison }) {
		t.Helper()
		if err := json.Unmarshal([]byte(r.must(r.self, "compare", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	// killed runs deskhand and kills it after a while; done reports that it ended before.
	killed := func(after time.Duration, args ...string) (done bool) {
		t.Helper()
		cmd := r.command(r.self, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
			return true
		case <-time.After(after): // the moment of the kill, not a wait for anything
			_ = cmd.Process.Kill()
			<-ended
			return false
		}
	}
	const first = 100 * time.Millisecond
	longer := func(after time.Duration) time.Duration { return after + after/4 } // so that a slow machine is not killed more often
	for after := first; !killed(after, "prompt", "--agents", "mock,mock", "--approve", "once", "markdown"); after = longer(after) {
		for _, c := range list().Items {
			if out, errs, code := r.run("compare", "begin", c.ID); code != 0 || strings.Contains(out, "has not begun") {
				t.Errorf("compare begin after a kill at %v: got exit code %d, stdout %s, stderr %s, want all agents begun", after, code, out, errs)
			}
			if len(c.Members) == 0 {
				t.Errorf("a comparison after a kill at %v: got no member, want those that were named", after)
			}
		}
	}
	// Each worktree belongs to a session: one that was half made is removed by the next start, which a command that is quickly done may leave to
	// the one after it.
	orphans := func() (list []string) {
		t.Helper()
		trees := r.must("git", "worktree", "list", "--porcelain")
		sessions := r.must(r.self, "sessions", "--json", "--limit", "1000")
		for line := range strings.Lines(trees) {
			if path, is := strings.CutPrefix(strings.TrimSpace(line), "worktree "); is && path != r.work && !strings.Contains(sessions, path) {
				list = append(list, path)
			}
		}
		return list
	}
	end := time.Now().Add(testkit.Limit)
	for left := orphans(); len(left) > 0; left = orphans() {
		if time.Now().After(end) {
			t.Fatalf("after the kills: got the worktrees %q without a session, want none", left)
		}
	}

	// The last comparison is whole. Its second agent has work that nobody has committed.
	c := list().Items[0]
	var s struct{ Items []struct{ ID, Cwd string } }
	if err := json.Unmarshal([]byte(r.must(r.self, "sessions", "--json", "--limit", "1000")), &s); err != nil {
		t.Fatal(err)
	}
	at := ""
	for _, one := range s.Items {
		if one.ID == c.Members[1].Session {
			at = one.Cwd
		}
	}
	text := strings.Repeat("nobody has committed this\n", 1000)
	testWrite(t, filepath.Join(at, "work.txt"), text)
	for after := first; !killed(after, "compare", "take", c.ID, "1"); after = longer(after) {
		if taken := list().Items[0].Taken; taken != "" && taken != c.Members[0].Session {
			t.Errorf("who was taken after a kill at %v: got %s, want the first agent or none", after, taken)
		}
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("the worktree of the second agent: got error %v, want it removed", err)
	}
	r.must(r.self, "sessions", "worktree", c.Members[1].Session, "--restore")
	if got, err := os.ReadFile(filepath.Join(at, "work.txt")); string(got) != text {
		t.Errorf("the uncommitted file after the kills: got %d bytes, %v, want %d", len(got), err, len(text))
	}
}
