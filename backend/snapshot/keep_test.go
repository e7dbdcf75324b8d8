package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/snapshot"
	"deskhand/backend/testkit"
)

// TestWhatARepositoryHasAllTheSame: trees keep an ignored file that a repository tracks, after the file was missing for a while, in a
// worktree, in a repository below, and with a later rule.
func TestWhatARepositoryHasAllTheSame(t *testing.T) {
	for _, where := range []string{"repository", "worktree", "below"} {
		t.Run(where, func(t *testing.T) {
			d := open(t)
			top := d.dir
			repo := top
			switch where {
			case "worktree":
				repo = filepath.Join(t.TempDir(), "main")
			case "below":
				repo = filepath.Join(top, "below")
			}
			if err := os.MkdirAll(repo, 0o755); err != nil {
				t.Fatal(err)
			}
			d.git(repo, "init", "--quiet")
			d.dir = repo
			d.write(".gitignore", "*.log\n", "forced.log", "1\n", "late.txt", "1\n", "a", "1\n")
			d.git(repo, "add", "-f", ".")
			d.git(repo, "commit", "--quiet", "-m", "first")
			d.dir = top
			work := repo
			if where == "worktree" {
				work = filepath.Join(top, "tree")
				d.git(repo, "worktree", "add", "--quiet", work)
				d.Store = d.Library.Store("tree", work)
			}
			d.dir = work
			was := d.take()
			d.remove("forced.log")
			d.take()
			d.write("forced.log", "1\n")
			if now := d.take(); now.ID != was.ID {
				t.Error("a file that came back is not in the tree:", kinds(d.compare(was, now)))
			}
			d.write(".gitignore", "*.log\n*.txt\n")
			d.remove("late.txt")
			d.take()
			d.write("late.txt", "2\n", "forced.log", "2\n")
			got := kinds(d.compare(was, d.take()))
			if !strings.Contains(got, "late.txt") || !strings.Contains(got, "forced.log") || strings.Contains(got, "deleted") {
				t.Error("a rule that came later:", got)
			}
		})
	}
}

func (d *fixture) mode(name string) os.FileMode {
	d.tb.Helper()
	info, err := os.Lstat(filepath.Join(d.dir, name))
	if err != nil {
		d.tb.Fatal(err)
	}
	return info.Mode().Perm()
}

// TestPermissions: a restored file gets its former permissions, also when only the permissions changed. An existing file keeps excluding
// everybody whom it excludes, and without a record the folder's permission decides.
func TestPermissions(t *testing.T) {
	d := open(t)
	before := map[string]os.FileMode{
		"a": 0o644, "b": 0o644, "c": 0o644, "program": 0o755, "secret": 0o644, "key": 0o600, "dir/key": 0o400, "group": 0o660, "tool": 0o700, "open": 0o600, "shut": 0o644,
		"odd \xff\n": 0o640, "private/x": 0o644, "private/z": 0o644,
	}
	for name, mode := range before {
		d.file(name, name, mode)
	}
	chmod := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(d.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod("private", 0o700)
	d.take()
	chmod("secret", 0o600) // no content changes
	before["secret"] = 0o600
	was := d.take()
	for name := range before {
		switch name {
		case "open", "shut":
		default:
			d.remove(name)
		}
	}
	d.remove("private", "dir")
	d.file("open", "2", 0o644)
	d.file("shut", "2", 0o600)
	became := d.take()
	if got := outcomes(d.wayBack(was, became)); strings.Contains(got, "conflict") {
		t.Fatal(got)
	}
	before["shut"] = 0o600
	for name, mode := range before {
		if got := d.mode(name); got != mode {
			t.Errorf("%q is %v, was %v", name, got, mode)
		}
	}
	if got := d.mode("private"); got != 0o700 {
		t.Errorf("the private folder is %v", got)
	}

	// A tree of an earlier version has no modes.
	if err := os.RemoveAll(filepath.Join(d.data, "w", "modes")); err != nil {
		t.Fatal(err)
	}
	chmod("private", 0o750)
	d.remove("private/x", "key")
	d.Store = d.Library.Store("w", d.dir)
	gone := d.take()
	if err := os.RemoveAll(filepath.Join(d.data, "w", "modes")); err != nil {
		t.Fatal(err)
	}
	chmod(".", 0o700)
	d.wayBack(was, gone)
	if got, other := d.mode("private/x"), d.mode("key"); got != 0o640 || other != 0o600 {
		t.Errorf(`mode("private/x"): got %v, other %v, want 0o640 and other 0o600`, got, other)
	}
}

// wayBack is back with the permissions of the first tree.
func (d *fixture) wayBack(a, b snapshot.Tree) snapshot.Way {
	d.tb.Helper()
	list := puts(d.compare(a, b))
	for i := range list {
		list[i].From = a.ID
	}
	w, err := d.Restore(d.tb.Context(), false, func(snapshot.Tree) ([]snapshot.Put, error) { return list, nil })
	if err != nil {
		d.tb.Fatal(err)
	}
	return w
}

// age makes everything in the stores old enough for Prune.
func age(tb testing.TB, data string) {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(data, "*", "refs", "trees", "*"))
	if err != nil || len(names) == 0 {
		tb.Fatal(names, err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range names {
		if err := os.Chtimes(name, old, old); err != nil {
			tb.Fatal(err)
		}
	}
}

// slowGC is a git whose gc waits for the file gate, after creating the file begun.
func slowGC(t *testing.T) (path, begun, gate string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	begun, gate = filepath.Join(dir, "begun"), filepath.Join(dir, "gate")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" gc \"*) : > '%s'; while [ ! -e '%s' ]; do sleep 0.02; done;; esac\nexec '%s' \"$@\"\n", begun, gate, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir + ":/bin:/usr/bin", begun, gate
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// TestALookDoesNotWaitForAPrune: a snapshot interrupts a prune, and the next prune frees all the space.
func TestALookDoesNotWaitForAPrune(t *testing.T) {
	d := open(t)
	d.write("a", "1\n", "noise", strings.Repeat("noise", 1000))
	old := d.take()
	d.write("a", "2\n")
	d.remove("noise")
	now := d.take()
	path, begun, gate := slowGC(t)
	t.Setenv("PATH", path)
	age(t, d.data)
	keep := map[string]bool{now.ID: true}
	pruned := make(chan error, 1)
	go func() { pruned <- d.Prune(context.WithoutCancel(t.Context()), keep) }()
	limit := time.After(testkit.Limit)
	for !exists(begun) {
		select {
		case err := <-pruned:
			t.Fatal("it did nothing:", err)
		case <-limit:
			t.Fatal("it does not begin")
		case <-time.After(5 * time.Millisecond):
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	if _, err := d.Take(ctx); err != nil {
		t.Errorf("a look waits for a prune: %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-pruned; err != nil {
		t.Fatal(err)
	}
	if err := d.Prune(t.Context(), keep); err != nil { // this prune drops no tree, but frees space
		t.Fatal(err)
	}
	if _, err := d.Compare(t.Context(), old.ID, now.ID); !errors.Is(err, snapshot.ErrGit) {
		t.Errorf("the old one is still there: %v", err)
	}
}

// TestWhatWasJustTakenStays: Prune keeps a fresh tree, whose name its taker may not have stored yet.
func TestWhatWasJustTakenStays(t *testing.T) {
	d := open(t)
	d.write("a", "1\n")
	was := d.take()
	age(t, d.data)
	d.take() // the same tree again
	d.write("a", "2\n")
	now := d.take()
	if err := d.Prune(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want(t, "kinds", kinds(d.compare(was, now)), "modified a")
	age(t, d.data)
	if err := d.Prune(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if ids, err := d.IDs(); err != nil || len(ids) != 0 {
		t.Error("a store of which nothing is kept is still there:", ids, err)
	}
	if again := d.take(); again.ID != now.ID {
		t.Error("it is another tree after that")
	}
}

// TestAFullDiskEndsALook: when git cannot write, the snapshot fails without asking git for each file.
func TestAFullDiskEndsALook(t *testing.T) {
	d := open(t)
	for i := range 100 {
		d.write(fmt.Sprintf("f%d", i), "x")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" update-index \"*) echo x >>'%s'; echo 'fatal: No space left on device' >&2; exit 128;; esac\nexec '%s' \"$@\"\n", runs, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	if _, err := d.Take(t.Context()); !errors.Is(err, snapshot.ErrGit) {
		t.Errorf("Take: got %v, want snapshot.ErrGit", err)
	}
	if said, err := os.ReadFile(runs); err != nil || len(said) == 0 || len(said) > 2*30 {
		t.Errorf("%d runs, %v", len(said)/2, err)
	}
}
