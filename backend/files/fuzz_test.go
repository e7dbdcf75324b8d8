package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/files"
)

// fuzzWorld is a world that is quick to make again.
func fuzzWorld(f *testing.F) world {
	f.Helper()
	w := newWorld(f)
	w.Tree = open(f, files.Config{Roots: []string{w.root}, Private: []string{w.private}, MaxUnpacked: 1 << 20, MaxEntries: 50})
	return w
}

// kept is all that no call may touch.
func (w world) kept(t testing.TB) map[string]string {
	t.Helper()
	seen := snapshot(t, w.outside)
	for name, what := range snapshot(t, w.private) {
		seen["private/"+name] = what
	}
	found, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		seen["beside/"+e.Name()] = ""
	}
	return seen
}

func (w world) again(t testing.TB, what string) {
	t.Helper()
	for _, name := range below(filepath.Join(w.dir, "root")) {
		if strings.Contains(name, ".deskhand-") && !strings.Contains(what, ".deskhand-") {
			t.Errorf("%s: got %s left behind, want no unfinished entry", what, name)
		}
	}
	found, err := os.ReadDir(w.root)
	w.must(t, err)
	for _, e := range found {
		if e.Name() != "home" {
			w.must(t, os.RemoveAll(filepath.Join(w.root, e.Name())))
		}
	}
	found, err = os.ReadDir(filepath.Join(w.root, "home"))
	w.must(t, err)
	for _, e := range found {
		if e.Name() != "deskhand" {
			w.must(t, os.RemoveAll(filepath.Join(w.root, "home", e.Name())))
		}
	}
	w.put(t, "root/file", "old")
	w.put(t, "root/dir/in/deep", "deep")
}

// FuzzPath: no string, as a path or as what a link holds, leads any call out of the root or to what is private.
func FuzzPath(f *testing.F) {
	w := fuzzWorld(f)
	for _, path := range []string{
		"", ".", "..", "/", "file", "dir/in/deep", "dir/../../outside/canary", "/etc/passwd", "home/deskhand/token", "a\x00b", "//x", "\\..\\x", "a/b/c/",
		"%2e%2e/", "..%c0%af", "\xc0\xae\xc0\xae/", "C:\\x", "file:stream", "~/x", w.outside, w.private, w.root + "/../outside/canary", "../root/home/deskhand/token",
	} {
		f.Add(path)
	}
	kept := w.kept(f)
	f.Fuzz(func(t *testing.T, path string) {
		path = strings.ReplaceAll(path, "TMP", w.dir) // seeds that are kept on disk name the world like this
		w.again(t, "before")
		paths := []string{path, filepath.Join(w.root, "dir") + "/" + path}
		if os.Symlink(path, filepath.Join(w.root, "link")) == nil {
			paths = append(paths, "link/canary", "link", "link/new/x", "link/token")
		}
		for _, path := range paths {
			for call, err := range everyCall(w, path) {
				if err != nil && (errors.Is(err, files.ErrFailed) || err.Error() == "the secret was read") {
					t.Errorf("%s(%q): got error %v, want another or none", call, path, err)
				}
			}
		}
		if now := w.kept(t); !maps.Equal(now, kept) {
			t.Errorf("outside of the roots after calls on %q: got %q, want %q", path, now, kept)
		}
		w.again(t, path)
	})
}

// FuzzUnpack: no bytes, as an archive, make anything outside of the target, nor anything but files and directories there; and
// nothing is left of what is refused.
func FuzzUnpack(f *testing.F) {
	w := fuzzWorld(f)
	for _, seed := range [][]byte{
		nil, archiveBytes(true), archiveBytes(true, file("a/b", "content"), directory("c")), archiveBytes(false, file("a", "a")),
		archiveBytes(true, file("../x", "x")), archiveBytes(true, file("home/deskhand/token", "x")),
	} {
		f.Add(seed, false)
		f.Add(gzipped(seed), true)
	}
	kept := w.kept(f)
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		w.again(t, "before")
		before := below(w.root)
		for _, to := range []string{"made/for/it", "dir", ""} {
			_, _, err := w.Unpack(t.Context(), to, bytes.NewReader(data), compressed)
			after := below(w.root)
			if err != nil && !slices.Equal(before, after) {
				t.Errorf("entries after Unpack failed with %v: got %q, want %q", err, after, before)
			}
			if errors.Is(err, files.ErrFailed) {
				t.Errorf("Unpack: got error %v, want no ErrFailed", err)
			}
			checkKinds(t, filepath.Join(w.root, to), err == nil)
			w.again(t, to)
		}
		if now := w.kept(t); !maps.Equal(now, kept) {
			t.Errorf("outside of the roots after Unpack: got %q, want %q", now, kept)
		}
	})
}

func checkKinds(t *testing.T, dir string, unpacked bool) {
	t.Helper()
	if !unpacked {
		return
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && (info.Mode()&^fs.ModePerm)&^fs.ModeDir != 0 {
			t.Errorf("mode of %s: got %v, want a plain file or directory", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
