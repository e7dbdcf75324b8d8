package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"deskhand/backend/files"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestWriteReplacesContent(t *testing.T) {
	w := diskWorld(t)
	w.link(t, "dir/z", "link")
	w.link(t, filepath.Join(w.root, "made", "by", "link"), "dangling")
	w.must(t, os.Chmod(filepath.Join(w.root, "dir", "z"), 0o751))
	for _, c := range []struct{ path, at string }{
		{"new", "new"},
		{"file", "file"},
		{"far/away/new", "far/away/new"},
		{"dir/z", "dir/z"},
		{"link", "dir/z"},
		{"dangling", "made/by/link"},
		{filepath.Join(w.root, "absolute"), "absolute"},
		{"\xff\xfe", "\xff\xfe"},
	} {
		t.Run(fmt.Sprintf("%q", c.path), func(t *testing.T) {
			content := "content of " + c.path
			e, n, err := w.Write(c.path, iotest.OneByteReader(strings.NewReader(content)))
			if err != nil {
				t.Fatal(err)
			}
			path := c.path
			if !filepath.IsAbs(path) {
				path = filepath.Join(w.root, path)
			}
			if n != int64(len(content)) || e.Size != n || e.Path != path || e.Name != filepath.Base(path) || e.Kind != files.File {
				t.Errorf("Write(%s): got %d bytes, %+v, want %d bytes at %s", c.path, n, e, len(content), path)
			}
			if got := w.read(t, "root/"+c.at); got != content {
				t.Errorf("%s after Write: got %q, want %q", c.at, got, content)
			}
			info, err := os.Lstat(filepath.Join(w.root, c.at))
			if err != nil || !info.Mode().IsRegular() || !info.ModTime().Equal(e.Modified) {
				t.Errorf("%s after Write: got %v, error %v, want a regular file of the time %v", c.at, info, err, e.Modified)
			}
		})
	}
	if got := mode(t, filepath.Join(w.root, "dir", "z")); got != 0o751 {
		t.Errorf("mode of a replaced file: got %v, want 0751", got)
	}
	if got := mode(t, filepath.Join(w.root, "new")); got != 0o644 {
		t.Errorf("mode of a new file: got %v, want 0644", got)
	}
	if got, _ := os.Readlink(filepath.Join(w.root, "link")); got != "dir/z" {
		t.Error("the link was replaced")
	}
	noRemains(t, w.root)
}

func TestFailedWriteKeepsOldFile(t *testing.T) {
	lost := errors.New("the caller has gone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cut := readerFunc(func([]byte) (int, error) { return 0, ctx.Err() })
	long := strings.Repeat("n", 255) // a name that a file can have, but none beside it
	for _, c := range []struct {
		path string
		r    io.Reader
		want error
	}{
		{"file", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(lost)), lost},
		{"file", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(lost)), files.ErrBroken},
		{"file", io.MultiReader(strings.NewReader("half"), cut), context.Canceled},
		{"new", iotest.ErrReader(lost), lost},
		{"a/b/c/new", iotest.ErrReader(lost), lost},
		{"a/b/c/new", iotest.ErrReader(io.ErrUnexpectedEOF), files.ErrBroken},
		{"home/x/y", iotest.ErrReader(lost), lost},
		{"dir", strings.NewReader("x"), files.ErrInvalid},
		{"", strings.NewReader("x"), files.ErrInvalid},
		{"a/new/", strings.NewReader("x"), files.ErrInvalid},
		{"a/new/.", strings.NewReader("x"), files.ErrInvalid},
		{"a/b/" + long + "n", strings.NewReader("x"), files.ErrInvalid},
		{"file/x/y", strings.NewReader("x"), files.ErrInvalid},
	} {
		w := newWorld(t)
		before := names(t, w.root)
		_, _, err := w.Write(c.path, c.r)
		wants(t, c.path, err, c.want)
		if after := names(t, w.root); !slices.Equal(before, after) {
			t.Errorf("entries after Write(%s): got %q, want %q", c.path, after, before)
		}
		if got := w.read(t, "root/file"); got != "old" {
			t.Errorf("file after Write(%s): got %q, want old", c.path, got)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Parents that were made for a file stay when somebody else uses them by the time it fails.
func TestParentsInUseStay(t *testing.T) {
	w := newWorld(t)
	r := readerFunc(func([]byte) (int, error) {
		w.put(t, "root/a/b/other", "x")
		return 0, io.ErrUnexpectedEOF
	})
	_, _, err := w.Write("a/b/c/new", r)
	wants(t, "", err, files.ErrBroken)
	if got := names(t, filepath.Join(w.root, "a")); !slices.Equal(got, []string{"b/", "b/other"}) {
		t.Errorf("entries of a: got %q, want b and b/other", got)
	}
}

// The directory of a file may be gone while it is uploaded: then it fails, and nothing is made anywhere else.
func TestWriteSurvivesMovedDirectory(t *testing.T) {
	w := newWorld(t)
	before := snapshot(t, w.outside)
	first := true
	_, _, err := w.Write("dir/in/new", readerFunc(func(p []byte) (int, error) {
		if !first {
			return 0, io.EOF
		}
		first = false
		w.must(t, os.Rename(filepath.Join(w.root, "dir"), filepath.Join(w.dir, "gone")))
		w.must(t, os.Symlink(w.outside, filepath.Join(w.root, "dir")))
		w.must(t, os.MkdirAll(filepath.Join(w.outside, "in"), 0o755))
		before = snapshot(t, w.outside)
		return copy(p, "new"), nil
	}))
	if err != nil {
		t.Error(err) // the directory that it was opened in still exists
	}
	unchanged(t, w.outside, before)
	if got := w.read(t, "gone/in/new"); got != "new" {
		t.Errorf("file in the moved directory: got %q, want new", got)
	}
}

// Whoever reads while many write sees one whole file.
func TestReadersSeeWholeFilesDuringWrite(t *testing.T) {
	w := newWorld(t)
	const size = 1 << 16
	fill := func(b byte) []byte { return bytes.Repeat([]byte{b}, size) }
	if _, _, err := w.Write("shared", bytes.NewReader(fill('0'))); err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				f, _, err := w.Open("shared")
				if err != nil {
					t.Errorf("Open of a file that is being replaced: got error %v, want none", err)
					return
				}
				data, err := io.ReadAll(f)
				f.Close()
				if err != nil || len(data) != size || !bytes.Equal(data, fill(data[0])) {
					t.Errorf("file that is being replaced: got %d bytes, error %v, want %d bytes of a single writer", len(data), err, size)
					return
				}
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			for range 20 {
				if _, _, err := w.Write("shared", bytes.NewReader(fill(byte('1'+i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	noRemains(t, w.root)
}

// Failing writes that make the same parents do not get in the way of one that does not fail.
func TestWriteCopesWithVanishingParents(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 2000 {
				if i < 3 {
					_, _, err := w.Write("p/q/r/fails", iotest.ErrReader(io.ErrUnexpectedEOF))
					wants(t, "failing", err, files.ErrBroken)
					continue
				}
				if _, _, err := w.Write("p/q/r/good", strings.NewReader("x")); err != nil {
					t.Error(err)
				}
				if _, err := w.Remove("p/q/r/good", false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	noRemains(t, w.root)
}

func TestReplaceWritesWholeFile(t *testing.T) {
	w := newWorld(t)
	root, err := w.Root("dir")
	w.must(t, err)
	defer root.Close()
	for _, name := range []string{"new", "z", "in/deep"} {
		if err := files.Replace(root, name, []byte("replaced"), 0o600); err != nil {
			t.Error(err)
		}
		if got := w.read(t, "root/dir/"+name); got != "replaced" {
			t.Errorf("%s after Replace: got %q, want replaced", name, got)
		}
		if got := mode(t, filepath.Join(w.root, "dir", name)); got != 0o600 {
			t.Errorf("mode of %s after Replace: got %v, want 0600", name, got)
		}
	}
	w.must(t, os.Symlink(filepath.Join(w.outside, "canary"), filepath.Join(w.root, "dir", "out")))
	before := snapshot(t, w.outside)
	w.must(t, files.Replace(root, "out", []byte("replaced"), 0o600))
	unchanged(t, w.outside, before)
	for _, name := range []string{"none/x", "in", "../file", "/etc/x"} {
		if err := files.Replace(root, name, []byte("replaced"), 0o600); err == nil {
			t.Errorf("Replace(%s): got no error, want one", name)
		}
	}
	noRemains(t, w.root)
}

// TestReplaceIfAsksBeforeRename: it is asked when all is written, and with an error of it nothing is.
func TestReplaceIfAsksBeforeRename(t *testing.T) {
	w := newWorld(t)
	root, err := w.Root("dir")
	w.must(t, err)
	defer root.Close()
	changed := errors.New("it was changed")
	before := w.read(t, "root/dir/z")
	for _, refused := range []error{changed, nil} {
		err := files.ReplaceIf(root, "z", []byte("replaced"), 0o600, func() error {
			if got := w.read(t, "root/dir/z"); got != before {
				t.Errorf("file during the check: got %q, want %q", got, before)
			}
			return refused
		})
		if err != refused { //nolint:errorlint // as it is
			t.Errorf("ReplaceIf: got error %v, want %v", err, refused)
		}
		if refused != nil && w.read(t, "root/dir/z") != before {
			t.Error("it was written all the same")
		}
	}
	if got := w.read(t, "root/dir/z"); got != "replaced" {
		t.Errorf("file after ReplaceIf: got %q, want replaced", got)
	}
	noRemains(t, w.root)
}

func TestMakeDirMakesParents(t *testing.T) {
	w := newWorld(t)
	w.link(t, "dir", "link")
	w.link(t, "dir/made", "dangling")
	for _, path := range []string{"a/b/c", "a/b/c", "a/b", "dir", "link", "link/x", "dangling", "", "home/x", filepath.Join(w.root, "y")} {
		got, err := w.MakeDir(path)
		want := path
		if !filepath.IsAbs(path) {
			want = filepath.Join(w.root, path)
		}
		if err != nil || got != want {
			t.Errorf("MakeDir(%s): got %q, error %v, want %q", path, got, err, want)
		}
		if !mode(t, want).IsDir() {
			t.Errorf("MakeDir(%s): got mode %v, want a directory", path, mode(t, want))
		}
	}
	for path, want := range map[string]error{
		"file": files.ErrExists, "file/x": files.ErrInvalid, "home/deskhand": files.ErrOutside,
		"n/m/" + strings.Repeat("x", 256): files.ErrInvalid,
	} {
		_, err := w.MakeDir(path)
		wants(t, path, err, want)
	}
	if _, err := os.Stat(filepath.Join(w.root, "n")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("parents are left")
	}
}

func TestRemoveDeletesEntries(t *testing.T) {
	w := newWorld(t)
	w.link(t, w.outside, "out")
	w.link(t, "dir", "link")
	before := snapshot(t, w.outside)
	for _, c := range []struct {
		path      string
		recursive bool
		want      error
	}{
		{"none", false, files.ErrNotFound},
		{"none", true, files.ErrNotFound},
		{"none/none", true, files.ErrNotFound},
		{"dir", false, files.ErrNotEmpty},
		{"link", true, nil}, // the link alone
		{"out/", true, nil},
		{"", true, files.ErrOutside},
		{w.root, true, files.ErrOutside},
		{"home", true, files.ErrOutside}, // holds a private directory
		{"home", false, files.ErrOutside},
		{"home/deskhand", true, files.ErrOutside},
		{"home/deskhand/token", false, files.ErrOutside},
		{"home/other", false, nil},
		{"dir/z", true, nil},
		{"dir/in/deep", false, nil},
		{"dir/in", false, nil},
		{"dir", true, nil},
	} {
		got, err := w.Remove(c.path, c.recursive)
		wants(t, c.path, err, c.want)
		if err == nil && got != filepath.Join(w.root, c.path) {
			t.Errorf("Remove(%s): got the path %q, want it below %s", c.path, got, w.root)
		}
	}
	unchanged(t, w.outside, before)
	if got := names(t, w.root); !slices.Equal(got, []string{"file", "home/", "home/deskhand/", "home/deskhand/token"}) {
		t.Errorf("entries after Remove: got %q, want file and the private directory", got)
	}
}

// A private directory need not exist: then it cannot be made, and what is on the way to it can.
func TestMissingPrivateDirectoryCannotBeMade(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(w.root, ".config", "deskhand")
	w.Tree = open(t, files.Config{Roots: []string{w.root}, Private: []string{missing, w.private}})
	before := names(t, w.root)
	for call, err := range everyCall(w, ".config/deskhand") {
		if call == "list" || call == "open" || call == "stat" || call == "directory" || call == "root" || call == "remove" || call == "move from" {
			wants(t, call, err, files.ErrNotFound) // .config is missing already
			continue
		}
		wants(t, call, err, files.ErrOutside)
	}
	if after := names(t, w.root); !slices.Equal(before, after) {
		t.Errorf("entries after calls on a missing private directory: got %q, want %q", after, before)
	}
	_, _, err := w.Unpack(t.Context(), "", archive(file(".config/a", "a"), file(".config/deskhand/agents.json", "{}")), false)
	wants(t, "archive", err, files.ErrOutside)
	_, _, err = w.Unpack(t.Context(), "", archive(file(".config", "a")), false)
	wants(t, "a file in the way", err, files.ErrOutside)
	_, _, err = w.Write(".config", strings.NewReader("x"))
	wants(t, "a file in the way", err, files.ErrOutside)
	w.put(t, "root/prepared/deskhand/agents.json", "{}")
	_, _, err = w.Move(t.Context(), "prepared", ".config", false)
	wants(t, "a directory that holds it", err, files.ErrOutside)
	if _, _, err = w.Unpack(t.Context(), "", archive(file(".config/git/config", "a")), false); err != nil {
		t.Error(err)
	}
	if _, _, err = w.Write(".config/other/settings", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
	for call, err := range everyCall(w, ".config/deskhand") {
		wants(t, call, err, files.ErrOutside)
	}
	// It is made while the tree is open.
	w.put(t, "root/.config/deskhand/token", secret)
	existing := snapshot(t, w.root)
	for call, err := range everyCall(w, ".config/deskhand/token") {
		wants(t, call, err, files.ErrOutside)
	}
	_, err = w.Remove(".config", true)
	wants(t, "its parent", err, files.ErrOutside)
	unchanged(t, w.root, existing)
}

// versionOf is the version of a file as a reader is told it.
func versionOf(t *testing.T, tree *files.Tree, path string) string {
	t.Helper()
	f, info, err := tree.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return files.Version(info)
}

func TestWriteSeenRefusesChangedFile(t *testing.T) {
	w := diskWorld(t)
	w.link(t, "file", "link")
	seen := versionOf(t, w.Tree, "link")
	e, now, err := w.WriteSeen("link", seen, strings.NewReader("mine"))
	if err != nil || e.Size != 4 || now == seen || now != versionOf(t, w.Tree, "file") || w.read(t, "root/file") != "mine" {
		t.Fatalf("WriteSeen(link): got %+v, version %q, error %v, want mine written and a new version", e, now, err)
	}
	// What the answer tells is good for the next one, and what was told before it is not.
	if _, _, err := w.WriteSeen("file", seen, strings.NewReader("late")); !errors.Is(err, files.ErrChanged) {
		t.Error(err)
	}
	if _, now, err = w.WriteSeen("file", now, strings.NewReader("mine again")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, version string
		want          error
	}{
		{"file", "", files.ErrExists},
		{"dir", "", files.ErrExists},
		{"none", now, files.ErrChanged},
		{"far/away/none", now, files.ErrChanged},
		{"dir", now, files.ErrChanged},
	} {
		if _, _, err := w.WriteSeen(c.path, c.version, strings.NewReader("x")); !errors.Is(err, c.want) {
			t.Errorf("WriteSeen(%s, %q): got error %v, want %v", c.path, c.version, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.root, "far")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a way was left: ", err)
	}
	if _, _, err := w.WriteSeen("quite/new", "", strings.NewReader("new")); err != nil || w.read(t, "root/quite/new") != "new" {
		t.Error(err)
	}
	if got := w.read(t, "root/file"); got != "mine again" {
		t.Errorf("file after WriteSeen: got %q, want mine again", got)
	}
}

// Somebody writes while the new content comes in, as an agent would: it is theirs that stays.
func TestWriteSeenKeepsFileWrittenMeanwhile(t *testing.T) {
	w := diskWorld(t)
	for _, c := range []struct {
		path   string
		meddle func() error
		want   error
		left   string
	}{
		{"file", func() error { return os.WriteFile(filepath.Join(w.root, "file"), []byte("theirs"), 0o600) }, files.ErrChanged, "theirs"},
		{"new", func() error { return os.WriteFile(filepath.Join(w.root, "new"), []byte("theirs"), 0o600) }, files.ErrExists, "theirs"},
		{"dir/z", func() error { return os.Remove(filepath.Join(w.root, "dir", "z")) }, files.ErrChanged, ""},
	} {
		version := ""
		if errors.Is(c.want, files.ErrChanged) {
			version = versionOf(t, w.Tree, c.path)
		}
		body := readerFunc(func([]byte) (int, error) {
			if err := c.meddle(); err != nil {
				t.Error(err)
			}
			return 0, io.EOF
		})
		_, _, err := w.WriteSeen(c.path, version, io.MultiReader(strings.NewReader("mi"), body))
		if !errors.Is(err, c.want) {
			t.Errorf("WriteSeen(%s) with a write meanwhile: got error %v, want %v", c.path, err, c.want)
		}
		data, _ := os.ReadFile(filepath.Join(w.root, c.path))
		if string(data) != c.left {
			t.Errorf("%s after WriteSeen: got %q, want %q", c.path, data, c.left)
		}
		if left, _ := filepath.Glob(filepath.Join(w.root, filepath.Dir(c.path), ".deskhand-*")); len(left) > 0 {
			t.Errorf("beside %s: got %v left behind, want no unfinished entry", c.path, left)
		}
	}
}
