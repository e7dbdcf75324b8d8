package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deskhand/backend/files"
	"deskhand/backend/snapshot"
)

const odd = "new\nline \x80\xff.txt"

// TestWhatIsDifferent: a directory outside a repository, with every kind of change and with names that are no text.
func TestWhatIsDifferent(t *testing.T) {
	d := open(t)
	long := strings.Repeat("a line that stays\n", 40)
	d.write("same.txt", "same\n", "change.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", "gone.txt", "gone\n", "old/name.txt", long, odd, "odd\n",
		".gitignore", "*.log\nbuild/\n", "noise.log", "1", "build/out", "1", "binary", "\x00\x01\x02", "retyped", "text\n", "swap", "file\n", "dir/a/b.txt", "deep\n")
	d.file("program", "#!/bin/sh\n", 0o755)
	d.link("link", "same.txt")
	was := d.take()
	d.write("change.txt", "one\n2\nthree\nfour\nfive\nsix\nseven\neight\n9", "new.txt", "new\n", "new/name.txt", long+"more\n", odd, "odder\n",
		"noise.log", "2", "build/out", "2", "binary", "\x00\x02\x02")
	d.remove("gone.txt", "old", "link", "retyped", "swap", "dir/a")
	d.link("link", "new.txt")
	d.link("retyped", "nowhere")
	d.write("swap/file", "now below\n", "dir/a", "now a file\n")
	if err := os.Chmod(filepath.Join(d.dir, "program"), 0o644); err != nil {
		t.Fatal(err)
	}
	became := d.take()
	list := d.compare(was, became)
	want(t, "kinds", kinds(list), strings.Join([]string{
		"modified binary", "modified change.txt", "added dir/a", "deleted dir/a/b.txt", "deleted gone.txt", "modified link", "modified " + odd, "added new.txt",
		"renamed new/name.txt was old/name.txt", "modified program", "type retyped", "deleted swap", "added swap/file",
	}, "\n"))
	byPath := map[string]snapshot.Change{}
	for _, c := range list {
		byPath[c.Path] = c
	}
	c := byPath["change.txt"]
	want(t, "the hunks", fmt.Sprintf("%+v", c.Hunks), fmt.Sprintf("%+v", []snapshot.Hunk{{
		OldStart: 1, OldLines: 9, NewStart: 1, NewLines: 9, Lines: []snapshot.Line{
			{' ', "one", false},
			{'-', "two", false},
			{'+', "2", false},
			{' ', "three", false},
			{' ', "four", false},
			{' ', "five", false},
			{' ', "six", false},
			{' ', "seven", false},
			{' ', "eight", false},
			{'-', "nine", false},
			{'+', "9", true},
		},
	}}))
	if c.Added != 2 || c.Removed != 2 || c.Before.Size != 45 || c.Binary || c.Large {
		t.Errorf("got c %+v, want Added 2, Removed 2, c.Before.Size 45, not Binary and not Large", c)
	}
	if b := byPath["binary"]; !b.Binary || len(b.Hunks) != 0 || b.After.Size != 3 {
		t.Errorf("got b %+v, want Binary, no Hunks and b.After.Size 3", b)
	}
	if o := byPath[odd]; len(o.Hunks) != 1 || o.Hunks[0].Lines[1].Text != "odder" {
		t.Errorf(`got o %+v, want 1 in Hunks and o.Hunks[0].Lines[1].Text "odder"`, o)
	}
	if r := byPath["new/name.txt"]; r.Added != 1 || len(r.Hunks) != 1 {
		t.Errorf("got r %+v, want Added 1 and 1 in Hunks", r)
	}
	if again := d.take(); again.ID != became.ID {
		t.Error("nothing was changed, and it is another tree")
	}
	for path, n := range look(t, d, list) {
		if !n.Same {
			t.Errorf("%q is not as it was left: %+v", path, n)
		}
	}
	d.write("change.txt", "by hand\n")
	d.remove("new.txt")
	now := look(t, d, list)
	if n := now["change.txt"]; n.Same || n.Gone {
		t.Errorf("got n %+v, want not Same and not Gone", n)
	}
	if n := now["new.txt"]; n.Same || !n.Gone {
		t.Errorf("got n %+v, want not Same and Gone", n)
	}
}

func look(t *testing.T, d *fixture, list []snapshot.Change) map[string]snapshot.Now {
	t.Helper()
	now, err := d.Look(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestTheWayThereAndBack: a turn is undone and redone; each time every byte, mode and link matches.
func TestTheWayThereAndBack(t *testing.T) {
	d := open(t)
	d.write("keep.txt", "keep\n", "edit.txt", "one\ntwo\n", "gone.txt", "gone\n", "a/b/c.txt", "deep\n", "crlf.txt", "a\r\nb\n", odd, "odd\n", "swap", "file\n", "dir/below", "below\n", "empty", "",
		".gitattributes", "* text eol=crlf ident\n*.txt filter=x working-tree-encoding=UTF-16\n", "id.txt", "$Id$\n", ".gitignore", "ignored\n", "ignored", "mine")
	d.file("program", "#!/bin/sh\n", 0o755)
	d.file("private", "p\n", 0o600)
	d.link("link", "a/b")
	first := all(t, d.dir)
	was := d.take()
	d.write("edit.txt", "one\n2\n", "added/x/y.txt", "new\n", "crlf.txt", "b\r\n", odd, "odder\n", "empty", "full", "id.txt", "$Id: 1 $\n")
	d.file("private", "q\n", 0o600)
	d.remove("gone.txt", "a", "swap", "dir", "link")
	d.write("a", "a file\n", "swap/in/it", "file\n", "dir", "a file\n")
	d.link("link", "/etc")
	d.file("program", "#!/bin/sh\n", 0o644)
	second := all(t, d.dir)
	became := d.take()

	preview := d.back(was, became, true)
	sameAll(t, "a preview", all(t, d.dir), second)
	back := d.back(was, became, false)
	if got := outcomes(back); strings.Contains(got, "conflict") {
		t.Fatal(got)
	}
	want(t, "what the preview told", outcomes(preview), outcomes(back))
	sameAll(t, "back", all(t, d.dir), first)
	if back.Became.ID != was.ID || back.Was.ID != became.ID {
		t.Errorf("got back %+v, want back.Became.ID %v and back.Was.ID %v", back, was.ID, became.ID)
	}
	if got := outcomes(d.back(back.Was, back.Became, false)); strings.Contains(got, "conflict") {
		t.Fatal(got)
	}
	sameAll(t, "there again", all(t, d.dir), second)
}

// TestConflicts: files that were edited since, stand in the way or are in no tree are left alone; the others are restored.
func TestConflicts(t *testing.T) {
	d := openWith(t, snapshot.Config{MostFile: 100})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.txt"), []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("edited.txt", "1\n", "fine.txt", "1\n", "gone.txt", "1\n", "linked/x.txt", "1\n", "way.txt", "1\n", "long.txt", "1\n", "same.txt", "1\n")
	was := d.take()
	d.write("edited.txt", "2\n", "fine.txt", "2\n", "linked/x.txt", "2\n", "way.txt", "2\n", "long.txt", "2\n", "new.txt", "2\n", "same.txt", "2\n")
	d.remove("gone.txt")
	became := d.take()
	d.write("edited.txt", "by hand\n", "gone.txt", "by hand\n", "long.txt", strings.Repeat("by hand\n", 100), "same.txt", "1\n")
	d.remove("linked", "way.txt")
	d.link("linked", outside)
	d.write("way.txt/mine", "by hand\n")
	before := all(t, d.dir)
	w := d.back(was, became, false)
	want(t, "outcomes", outcomes(w), strings.Join([]string{
		"edited.txt conflict edited", "fine.txt restored", "gone.txt conflict edited", "linked/x.txt conflict in_the_way", "long.txt conflict not_kept",
		"new.txt removed", "same.txt same", "way.txt conflict in_the_way",
	}, "\n"))
	before["fine.txt"] = strings.Replace(before["fine.txt"], "2", "1", 1)
	delete(before, "new.txt")
	sameAll(t, "the directory", all(t, d.dir), before)
	if data, err := os.ReadFile(filepath.Join(outside, "x.txt")); err != nil || string(data) != "outside\n" {
		t.Errorf("ReadFile: got data %q, error %v, want no error and data \"outside\\n\"", data, err)
	}
	if len(w.Was.Left) != 1 || w.Was.Left[0].Path != "long.txt" || w.Was.Left[0].Size != 800 || w.Was.Left[0].Unreadable {
		t.Errorf(`got w.Was.Left %+v, want 1 in w.Was.Left, w.Was.Left[0].Path "long.txt", w.Was.Left[0].Size 800 and not w.Was.Left[0].Unreadable`, w.Was.Left)
	}
}

// TestEdit: a Put with Edit changes a part of the present content.
func TestEdit(t *testing.T) {
	d := open(t)
	d.write("a.txt", "one\ntwo\n", "b.txt", "x")
	d.file("c.sh", "one", 0o755)
	d.take()
	w, err := d.Restore(t.Context(), false, func(snapshot.Tree) ([]snapshot.Put, error) {
		return []snapshot.Put{
			{Path: "a.txt", Edit: func(now []byte) ([]byte, bool) {
				return []byte(strings.Replace(string(now), "two", "2", 1)), true
			}},
			{Path: "b.txt", Edit: func([]byte) ([]byte, bool) { return nil, true }, Remove: true},
			{Path: "c.sh", Edit: func([]byte) ([]byte, bool) { return nil, false }},
			{Path: "missing", Edit: func([]byte) ([]byte, bool) { return nil, true }},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "outcomes", outcomes(w), "a.txt restored\nb.txt removed\nc.sh conflict edited\nmissing conflict edited")
	want(t, "kinds", kinds(d.compare(w.Was, w.Became)), "modified a.txt\ndeleted b.txt")
}

// TestAFileThatIsSavedBeforeItsRemoval: a file that a person saves after the check of all files, and before its own removal, stays.
func TestAFileThatIsSavedBeforeItsRemoval(t *testing.T) {
	d := open(t)
	d.write("a.txt", "one\n", "b.txt", "the agent's\n")
	d.take()
	w, err := d.Restore(t.Context(), false, func(snapshot.Tree) ([]snapshot.Put, error) {
		return []snapshot.Put{
			{Path: "a.txt", Edit: func([]byte) ([]byte, bool) {
				d.write("b.txt", "the person's\n")
				return []byte("two\n"), true
			}},
			{Path: "b.txt"},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "outcomes", outcomes(w), "a.txt restored\nb.txt conflict edited")
	if got := all(t, d.dir)["b.txt"]; !strings.Contains(got, "the person's") {
		t.Errorf("b.txt is %q", got)
	}
}

// TestAFileThatIsSavedWhileItIsPutBack: a file that a person saves after its check, and before its replacement, stays.
func TestAFileThatIsSavedWhileItIsPutBack(t *testing.T) {
	var d *fixture
	d = openWith(t, snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		d.write(name, "the person's\n")
		return files.ReplaceIf(root, name, data, mode, last)
	}})
	d.write("edit", "one\n", "gone", "one\n", "whole", "one\n")
	was := d.take()
	d.write("edit", "two\n", "whole", "two\n")
	d.remove("gone")
	list := puts(d.compare(was, d.take()))
	list[0] = snapshot.Put{Path: "edit", Edit: func([]byte) ([]byte, bool) { return []byte("one\n"), true }}
	w, err := d.Restore(t.Context(), false, func(snapshot.Tree) ([]snapshot.Put, error) { return list, nil })
	if err != nil {
		t.Fatal(err)
	}
	want(t, "outcomes", outcomes(w), "edit conflict edited\ngone conflict edited\nwhole conflict edited")
	for name, text := range all(t, d.dir) {
		if name != "." && !strings.HasSuffix(text, " the person's\n") {
			t.Errorf("%s is %q", name, text)
		}
	}
}

// TestARenamingIsUndoneAsAWhole: a file that cannot be written under its old name stays under its new name.
func TestARenamingIsUndoneAsAWhole(t *testing.T) {
	full := true
	d := openWith(t, snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		if full && name == "old" {
			return syscall.ENOSPC
		}
		return files.ReplaceIf(root, name, data, mode, last)
	}})
	text := strings.Repeat("a line that stays\n", 40)
	d.write("old", text, "deep/old", text+"deep\n", "way", text+"way\n")
	was := d.take()
	d.remove("old", "deep", "way")
	d.write("new", text, "other", text+"deep\n", "way/in", text+"way\n")
	became := d.take()
	list := d.compare(was, became)
	back := func() string {
		t.Helper()
		w, err := d.Restore(t.Context(), false, func(snapshot.Tree) ([]snapshot.Put, error) {
			all := puts(list)
			for i := range all {
				for _, c := range list {
					switch all[i].Path {
					case c.Was:
						all[i].With = c.Path
					case c.Path:
						all[i].With = c.Was
					}
				}
			}
			return all, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return outcomes(w)
	}
	want(t, "kinds", kinds(list), "renamed new was old\nrenamed other was deep/old\nrenamed way/in was way")
	want(t, "on a full disk", back(), "deep/old conflict unwritable\nnew conflict unwritable\nold conflict unwritable\nother conflict unwritable\nway restored\nway/in removed")
	full = false
	if now := all(t, d.dir); !strings.Contains(now["new"], text) || !strings.Contains(now["other"], text) || now["old"] != "" {
		t.Errorf("a file is under neither name: %v", now)
	}
	want(t, "then", back(), "deep/old restored\nnew removed\nold restored\nother removed\nway same\nway/in conflict in_the_way")
	if now := d.take(); now.ID != was.ID {
		t.Error(kinds(d.compare(was, now)))
	}
}

// TestARepositoryIsNotTouched: no byte of .git changes, and nothing that the repository's configuration asks for happens.
func TestARepositoryIsNotTouched(t *testing.T) {
	d := open(t)
	d.git(d.dir, "init", "--quiet")
	d.write("a.txt", "one\r\n", "sub/b.txt", "b\n", ".gitignore", "*.log\n", "forced.log", "kept all the same\n", "other.log", "noise\n", ".git/info/exclude", "excluded\n", "excluded", "1")
	d.git(d.dir, "add", ".")
	d.git(d.dir, "add", "-f", "forced.log")
	d.git(d.dir, "commit", "--quiet", "-m", "first")
	d.write("staged.txt", "staged\n")
	d.git(d.dir, "add", "staged.txt")
	mark := filepath.Join(d.home, "was-run")
	script := filepath.Join(d.home, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch '"+mark+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write(".gitattributes", "* text=auto eol=crlf filter=x diff=x\n")
	for _, where := range []string{"--local", "--global"} {
		for key, value := range map[string]string{
			"filter.x.clean": script, "filter.x.smudge": script, "filter.x.required": "true", "diff.x.command": script, "diff.x.textconv": script, "diff.external": script,
			"core.fsmonitor": script, "core.hooksPath": d.home, "core.autocrlf": "true", "core.safecrlf": "true",
		} {
			d.git(d.dir, "config", where, key, value)
		}
	}
	for _, hook := range []string{"post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"} {
		if err := os.WriteFile(filepath.Join(d.home, hook), []byte("#!/bin/sh\ntouch '"+mark+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := all(t, filepath.Join(d.dir, ".git"))
	was := d.take()
	d.write("a.txt", "two\r\n", "forced.log", "changed\n", "other.log", "changed\n", "excluded", "2", "new.txt", "1\n")
	became := d.take()
	want(t, "kinds", kinds(d.compare(was, became)), "modified a.txt\nmodified forced.log\nadded new.txt")
	d.back(was, became, false)
	if err := d.Prune(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameAll(t, ".git", all(t, filepath.Join(d.dir, ".git")), before)
	if _, err := os.Stat(mark); err == nil {
		t.Error("something that the configuration names was run")
	}
	if data, err := os.ReadFile(filepath.Join(d.dir, "a.txt")); err != nil || string(data) != "one\r\n" {
		t.Errorf("ReadFile: got data %q, error %v, want no error and data \"one\\r\\n\"", data, err)
	}
}

// TestBelowARepository: the rules of the folders above count, except those that ignore the whole directory.
func TestBelowARepository(t *testing.T) {
	d := open(t)
	top := d.dir
	d.git(top, "init", "--quiet")
	d.write(".gitignore", "node_modules/\n/hidden/\n", "above.txt", "1", "sub/a.txt", "1\n", "sub/node_modules/x", "1", "hidden/a.txt", "1\n", "sub/empty/x.log", "1", "sub/empty/.gitignore", "*\n")
	for _, c := range []struct{ dir, changed string }{{"sub", "modified a.txt\nadded x.log"}, {"hidden", "modified a.txt\nadded node_modules/x\nadded x.log"}, {"sub/empty", ""}} {
		d.dir = filepath.Join(top, c.dir)
		d.Store = d.Library.Store(strings.ReplaceAll(c.dir, "/", "-"), d.dir)
		was := d.take()
		d.write("a.txt", "2\n", "node_modules/x", "2", "x.log", "2")
		d.remove("a.txt.orig")
		if err := os.WriteFile(filepath.Join(top, "above.txt"), []byte(c.dir), 0o600); err != nil {
			t.Fatal(err)
		}
		got := kinds(d.compare(was, d.take()))
		want(t, c.dir, got, c.changed)
	}
}

// TestRepositoriesBelow: trees hold the files of repositories below, without their .git.
func TestRepositoriesBelow(t *testing.T) {
	d := open(t)
	d.git(d.dir, "init", "--quiet")
	for _, dir := range []string{"lib", "lib/deeper", "bare"} {
		d.write(dir+"/code.txt", "1\n", dir+"/noise.tmp", "1", dir+"/.gitignore", "*.tmp\n")
		d.git(filepath.Join(d.dir, dir), "init", "--quiet")
		if dir != "bare" { // git add rejects a repository without a commit
			d.git(filepath.Join(d.dir, dir), "add", "code.txt")
			d.git(filepath.Join(d.dir, dir), "commit", "--quiet", "-m", "x")
		}
	}
	was := d.take()
	d.write("lib/code.txt", "2\n", "lib/deeper/code.txt", "2\n", "bare/more.txt", "2\n", "lib/noise.tmp", "2", "lib/deeper/more.txt", "2\n")
	became := d.take()
	want(t, "kinds", kinds(d.compare(was, became)), "added bare/more.txt\nmodified lib/code.txt\nmodified lib/deeper/code.txt\nadded lib/deeper/more.txt")
	if got := outcomes(d.back(was, became, false)); strings.Contains(got, "conflict") {
		t.Error(got)
	}
}

// TestWhereNothingIsKept: every directory that is not kept has its error.
func TestWhereNothingIsKept(t *testing.T) {
	d := openWith(t, snapshot.Config{MostFiles: 20, MostBytes: 5000})
	t.Setenv("HOME", d.dir)
	if _, err := d.Take(t.Context()); !errors.Is(err, snapshot.ErrWide) {
		t.Errorf("the home directory: %v", err)
	}
	t.Setenv("HOME", t.TempDir())
	for _, dir := range []string{"/", filepath.Dir(d.data), filepath.Dir(os.Getenv("HOME"))} {
		if _, err := d.Library.Store("wide", dir).Take(t.Context()); !errors.Is(err, snapshot.ErrWide) {
			t.Errorf("%s: got %v, want snapshot.ErrWide", dir, err)
		}
	}
	for _, dir := range []string{filepath.Join(d.dir, "none")} {
		if _, err := d.Library.Store("none", dir).Take(t.Context()); !errors.Is(err, snapshot.ErrMissing) {
			t.Errorf("%s: got %v, want snapshot.ErrMissing", dir, err)
		}
	}
	for i := range 20 {
		d.write(fmt.Sprintf("f%d", i), "x")
	}
	d.take()
	d.write("f20", "x")
	d.take() // the limit counts the new files of a single snapshot
	d.Store = d.Library.Store("other", d.dir)
	var large *snapshot.TooLargeError
	if _, err := d.Take(t.Context()); !errors.As(err, &large) || large.Files != 20 {
		t.Errorf("Take: got error %v, want errors.As(err, &large) and large.Files 20", err)
	}
	d.remove("f20")
	d.write("f19", strings.Repeat("x", 5001))
	if _, err := d.Take(t.Context()); !errors.As(err, &large) || large.Bytes != 5000 {
		t.Errorf("Take: got error %v, want errors.As(err, &large) and large.Bytes 5000", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Take: got %v, want context.Canceled", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := d.Library.Store("another", d.dir).Take(t.Context()); !errors.Is(err, snapshot.ErrNoGit) {
		t.Errorf("Take: got %v, want snapshot.ErrNoGit", err)
	}
}

// TestFilesThatChangeMeanwhile: while files come, go and grow, the tree holds the files that do not change.
func TestFilesThatChangeMeanwhile(t *testing.T) {
	d := open(t)
	for i := range 300 {
		d.write(fmt.Sprintf("calm/%d", i), strings.Repeat("calm\n", 100))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(d.dir, fmt.Sprintf("busy-%d", i%7))
			switch i % 3 {
			case 0:
				_ = os.WriteFile(name, []byte(strings.Repeat("x", i%50_000)), 0o600)
			case 1:
				_ = os.Remove(name)
			default:
				_ = os.MkdirAll(name, 0o700)
				_ = os.WriteFile(filepath.Join(name, "in"), []byte("x"), 0o600)
				_ = os.RemoveAll(name)
			}
		}
	}()
	var last snapshot.Tree
	for range 12 {
		last = d.take()
	}
	close(stop)
	<-stopped
	for i := range 7 {
		d.remove(fmt.Sprintf("busy-%d", i))
	}
	for _, c := range d.compare(last, d.take()) {
		if !strings.HasPrefix(c.Path, "busy-") {
			t.Errorf(`got Kind %s, Path %s, want Path beginning with "busy-"`, c.Kind, c.Path)
		}
	}
}

// TestUnreadable: an unreadable file and an unreadable folder are left out and listed.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	d := open(t)
	d.write("a", "1", "secret", "1", "shut/in", "1")
	was := d.take()
	d.write("a", "2", "secret", "22")
	for name, mode := range map[string]os.FileMode{"secret": 0, "shut": 0} {
		name = filepath.Join(d.dir, name)
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(name, 0o700) })
	}
	became := d.take()
	if len(became.Left) != 2 || became.Left[0].Path != "secret" || !became.Left[0].Unreadable || became.Left[1].Path != "shut/in" {
		t.Errorf(`take: got became.Left %+v, want 2 in became.Left, became.Left[0].Path "secret", became.Left[0].Unreadable and became.Left[1].Path "shut/in"`, became.Left)
	}
	want(t, "kinds", kinds(d.compare(was, became)), "modified a\ndeleted secret\ndeleted shut/in") // as far as trees can show
}

// TestPrune: unnamed trees go with their bytes; the others stay readable.
func TestPrune(t *testing.T) {
	d := open(t)
	noise := make([]byte, 0, 1<<20)
	for i := range cap(noise) / 8 {
		noise = fmt.Appendf(noise, "%08x", i*2654435761)
	}
	d.write("a", "1\n", "noise", string(noise))
	old := d.take()
	d.write("a", "2\n")
	d.remove("noise")
	was := d.take()
	d.write("a", "3\n")
	became := d.take()
	size := func() int64 {
		n, err := d.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := size()
	age(t, d.data)
	if err := d.Prune(t.Context(), map[string]bool{was.ID: true, became.ID: true}); err != nil {
		t.Fatal(err)
	}
	if after := size(); after > before/2 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
	want(t, "kinds", kinds(d.compare(was, became)), "modified a")
	if _, err := d.Compare(t.Context(), old.ID, was.ID); !errors.Is(err, snapshot.ErrGit) {
		t.Errorf("the old one is still there: %v", err)
	}
	if now := d.take(); now.ID != became.ID {
		t.Error("it is another tree after that")
	}
	ids, err := d.IDs()
	if err != nil || len(ids) != 1 || ids[0] != "w" {
		t.Errorf(`got ids %v, error %v, want no error, 1 in ids and ids[0] "w"`, ids, err)
	}
	if err := d.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := size(); n != 0 {
		t.Errorf("%d bytes are left of one that was forgotten", n)
	}
	if now := d.take(); now.ID != became.ID {
		t.Error("it is another tree after that")
	}
}

// TestADamagedIndex: a damaged index is rebuilt.
func TestADamagedIndex(t *testing.T) {
	d := open(t)
	d.write("a", "1\n")
	was := d.take()
	names, err := filepath.Glob(filepath.Join(d.data, "w", "index-*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for _, name := range []string{names[0], names[0] + ".lock"} {
		if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.write("a", "2\n")
	want(t, "kinds", kinds(d.compare(was, d.take())), "modified a")
}
