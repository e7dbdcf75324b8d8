package exclude

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// Lines that somebody has put between ours stay, and so does what follows an end that is missing.
func TestLinesOfOthersInOurPart(t *testing.T) {
	t.Parallel()
	begin, ours := begin("x"), map[string]bool{"/a": true}
	for _, c := range [][2]string{
		{"x\n" + begin + "\n/a\n" + end + "\ny\n", "x\ny\n"},
		{"x\n" + begin + "\n/a\n/theirs\n" + end + "\ny\n", "x\n/theirs\ny\n"},
		{"x\n" + begin + "\n/a\ny\n", "x\ny\n"},
		{"x\r\n" + begin + "\r\n/a\r\n" + end + "\r\ny\r\n", "x\r\ny\r\n"},
		{"/a\n", "/a\n"},
	} {
		if got := withLines(c[0], begin, ours, nil); got != c[1] {
			t.Errorf("withLines(%q): got %q, want %q", c[0], got, c[1])
		}
	}
}

// Two parts of ours stand beside each other, whoever writes at once, and a line that is there already changes nothing.
func TestAddKeepsTheOtherParts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "info", "exclude") // the directory is made
	var all sync.WaitGroup
	for _, line := range []string{"/b", "/a", "/b", "/c"} {
		all.Go(func() {
			if err := Add(file, "copies", line); err != nil {
				t.Errorf("Add(%q): %v", line, err)
			}
		})
		all.Go(func() {
			if err := Rewrite(file, "links", map[string]bool{"/l": true}, []string{"/l"}); err != nil {
				t.Errorf("Rewrite: %v", err)
			}
		})
	}
	all.Wait()
	if err := Rewrite(file, "links", map[string]bool{"/l": true}, nil); err != nil {
		t.Fatal(err)
	}
	want := "# Deskhand: copies\n/a\n/b\n/c\n" + end + "\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the file: got %q, %v; want %q", got, err, want)
	}
	before, _ := os.Stat(file)
	if err := Add(file, "copies", "/b"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("a line that was there: the file was replaced, %v", err)
	}
}

// Git is asked where a directory is, and takes the pattern for what it is.
func TestFindInRepositoriesAndWorktrees(t *testing.T) {
	if err := git.Installed(os.Environ()); err != nil {
		t.Skip(err)
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = processes.Close() })
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@localhost"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	repo, tree := filepath.Join(root, "repo"), filepath.Join(root, "tree")
	run(root, "init", "--quiet", repo)
	run(repo, "commit", "--quiet", "--allow-empty", "-m", "x")
	run(repo, "worktree", "add", "--quiet", tree)
	shared := filepath.Join(repo, ".git", "info", "exclude")
	for dir, file := range map[string]string{repo: shared, filepath.Join(repo, "sub [x]*"): shared, tree: shared, root: "", filepath.Join(root, "none"): ""} {
		if dir != filepath.Join(root, "none") {
			if err := os.MkdirAll(filepath.Join(dir, "copies"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Find(t.Context(), processes, os.Environ(), dir)
		if err != nil || p.File != file {
			t.Errorf("Find(%s): got %q, %v; want %q", dir, p.File, err, file)
		}
		if file == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "copies", "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Add(p.File, "copies", p.Pattern("copies/")); err != nil {
			t.Fatal(err)
		}
		if got := run(dir, "status", "--porcelain", "--untracked-files=all"); got != "" {
			t.Errorf("git status in %s: got %q, want nothing", dir, got)
		}
	}
}
