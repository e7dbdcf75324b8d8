package project_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestCopyingSurvivesAKill kills a program in the middle of its copying, again and again in one worktree: what has a final name is whole, git
// offers nothing half copied for a commit, what somebody has put there since stays, and the last run brings the rest.
func TestCopyingSurvivesAKill(t *testing.T) {
	t.Parallel()
	b := set(t, "node_modules/x/index.js", "x")
	const files, rounds = 150, 8
	name := func(i int) string { return fmt.Sprintf("config/%d/file%d.local", i%7, i) }
	want := map[string][]byte{}
	for i := range files {
		data := bytes.Repeat([]byte{byte(i)}, 1+rand.IntN(64<<10))
		if i%50 == 0 {
			data = bytes.Repeat(data, 40)
		}
		want[name(i)] = data
		write(t, b.repo, name(i), string(data))
	}
	changed := func(i int) {
		want[name(i)] = []byte("somebody's\n")
		write(t, b.worktree, name(i), "somebody's\n")
	}
	begin := func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Dir, cmd.Env = b.worktree, append(b.git.Environ, bringing+"="+b.repo)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	there := 0
	check := func(when string) {
		t.Helper()
		there = 0
		for i := range files {
			got, err := os.ReadFile(filepath.Join(b.worktree, name(i)))
			if err == nil {
				there++
			}
			if err == nil && !bytes.Equal(got, want[name(i)]) {
				t.Errorf("%s %s: got %d bytes that begin with %.12q, want the %d bytes of the file that begin with %.12q", name(i), when, len(got), got, len(want[name(i)]), want[name(i)])
			}
		}
		if said := b.do(b.worktree, "status", "--porcelain", "--untracked-files=all"); said != "" {
			t.Errorf("git status %s: got %q, want nothing to commit", when, said)
		}
	}
	broken := 0
	for round := range rounds {
		before := there
		cmd := begin()
		// The kill is to hit the copying: at the first file that is new, or a little later.
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if n := count(t, filepath.Join(b.worktree, "config")); n > before {
				break
			}
		}
		<-time.After(rand.N(15 * time.Millisecond))
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			broken++
		}
		check(fmt.Sprintf("after kill %d", round))
		changed(round)                 // most likely copied before
		changed(files - 1 - round%100) // not copied yet
	}
	t.Logf("%d of %d kills hit the copying", broken, rounds)
	if broken == 0 {
		t.Error("no kill hit the copying: there are too few files")
	}
	if err := begin().Wait(); err != nil {
		t.Fatalf("the last run: got %v, want no error", err)
	}
	check("after the last run")
	if there != files {
		t.Errorf("files after the last run: got %d, want %d", there, files)
	}
	if info, err := os.Lstat(filepath.Join(b.worktree, "node_modules")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("node_modules after the last run: got %v, %v; want a link", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.worktree, "*partly*")); len(left) != 0 {
		t.Errorf("remains after the last run: got %q, want none", left)
	}
}

// count counts the files below a directory.
func count(t *testing.T, dir string) (n int) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}
