package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/testkit"
)

// everyCall runs each call on a path, and gives each error by the call's name.
func everyCall(w world, path string) map[string]error {
	errs := map[string]error{}
	_, errs["list"] = w.List(path)
	_, errs["stat"] = w.Stat(path)
	f, _, err := w.Open(path)
	if errs["open"] = err; err == nil {
		data, _ := io.ReadAll(f)
		f.Close()
		if string(data) == secret {
			errs["open"] = errors.New("the secret was read")
		}
	}
	_, errs["directory"] = w.Directory(path)
	dir, err := w.Root(path)
	if errs["root"] = err; err == nil {
		dir.Close()
	}
	_, _, errs["write"] = w.Write(path, strings.NewReader("new"))
	_, errs["mkdir"] = w.MakeDir(path)
	_, _, errs["move from"] = w.Move(context.Background(), path, "moved", true)
	_, _, errs["move to"] = w.Move(context.Background(), "file", path, true)
	_, _, errs["unpack"] = w.Unpack(context.Background(), path, archive(file("x", "x")), false)
	_, errs["remove"] = w.Remove(path, true)
	return errs
}

func TestEveryCallRefuses(t *testing.T) {
	w := newWorld(t)
	w.link(t, w.outside, "out")
	w.link(t, "../outside", "dots")
	w.link(t, "dir/../../outside", "round")
	w.link(t, "/", "slash")
	w.link(t, "../outside/../root", "detour") // it comes back, by a place where nobody may look
	w.link(t, "loop", "loop")
	w.link(t, w.private, "priv")
	w.link(t, "home/deskhand", "priv2")
	w.link(t, "home", "house")
	w.link(t, "../root/home/deskhand/token", "token")
	for _, c := range []struct {
		path string
		want error
	}{
		{"..", files.ErrInvalid},
		{"../outside", files.ErrInvalid},
		{"dir/../file", files.ErrInvalid},
		{"dir/../../outside/canary", files.ErrInvalid},
		{w.root + "/../outside", files.ErrInvalid},
		{"a\x00b", files.ErrInvalid},
		{"file\x00", files.ErrInvalid},
		{strings.Repeat("a/", 3000), files.ErrInvalid},
		{"/", files.ErrOutside},
		{"/etc", files.ErrOutside},
		{"//etc", files.ErrOutside},
		{"/etc/passwd", files.ErrOutside},
		{w.dir, files.ErrOutside},
		{w.outside, files.ErrOutside},
		{w.outside + "/canary", files.ErrOutside},
		{w.root + "x", files.ErrOutside},
		{w.root + "/home/deskhand/token", files.ErrOutside},
		{"out/canary", files.ErrOutside},
		{"out/sub/canary", files.ErrOutside},
		{"out/new", files.ErrOutside},
		{"dots/canary", files.ErrOutside},
		{"round/canary", files.ErrOutside},
		{"slash/etc/passwd", files.ErrOutside},
		{"detour/file", files.ErrOutside},
		{"loop/x", files.ErrInvalid},
		{"home/deskhand", files.ErrOutside},
		{"home//./deskhand/token", files.ErrOutside},
		{"home/deskhand/new/dir", files.ErrOutside},
		{"priv/token", files.ErrOutside},
		{"priv2/token", files.ErrOutside},
		{"house/deskhand", files.ErrOutside},
		{"house/deskhand/token", files.ErrOutside},
		{"file/x", files.ErrInvalid},
		{"dir/z/x/y", files.ErrInvalid},
		{strings.Repeat("n", 300), files.ErrInvalid},
	} {
		t.Run(fmt.Sprintf("%.60q", c.path), func(t *testing.T) {
			before := snapshot(t, w.dir)
			for call, err := range everyCall(w, c.path) {
				wants(t, call, err, c.want)
			}
			unchanged(t, w.dir, before)
		})
	}
}

// A link at the end of the path is followed, unless the call is about the link itself.
func TestLinkAtEndOfPath(t *testing.T) {
	for _, target := range []string{"../outside/canary", "/etc/passwd", "home/deskhand/token", "home/deskhand", "../outside", "loop"} {
		t.Run(target, func(t *testing.T) {
			w := newWorld(t)
			w.link(t, target, "loop")
			want := files.ErrOutside
			if target == "loop" {
				want = files.ErrInvalid
			}
			outside, private := snapshot(t, w.outside), snapshot(t, w.private)
			_, err := w.List("loop")
			wants(t, "", err, want)
			_, _, err = w.Open("loop")
			wants(t, "", err, want)
			_, _, err = w.Write("loop", strings.NewReader("new"))
			wants(t, "", err, want)
			_, err = w.MakeDir("loop")
			wants(t, "", err, want)
			_, _, err = w.Unpack(t.Context(), "loop", archive(file("x", "x")), false)
			wants(t, "", err, want)
			_, err = w.Directory("loop")
			wants(t, "", err, want)
			_, err = w.Root("loop")
			wants(t, "", err, want)
			e, err := w.Stat("loop")
			if err != nil || e.Kind != files.Symlink || e.Size != int64(len(target)) {
				t.Errorf("Stat of a link to %s: got %+v, error %v, want the link itself", target, e, err)
			}
			if _, _, err = w.Move(t.Context(), "loop", "moved", false); err != nil {
				t.Error(err)
			}
			if got, _ := os.Readlink(filepath.Join(w.root, "moved")); got != target {
				t.Errorf("target of the moved link: got %q, want %q", got, target)
			}
			if _, err = w.Remove("moved", true); err != nil {
				t.Error(err)
			}
			if _, err = os.Lstat(filepath.Join(w.root, "moved")); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the link is still there")
			}
			unchanged(t, w.outside, outside)
			unchanged(t, w.private, private)
		})
	}
}

func TestLinksInsideRootsAreFollowed(t *testing.T) {
	w := newWorld(t)
	second := filepath.Join(w.dir, "second")
	w.put(t, "second/here", "here")
	alias := filepath.Join(w.dir, "alias")
	if err := os.Symlink(w.root, alias); err != nil {
		t.Fatal(err)
	}
	w.Tree = open(t, files.Config{Roots: []string{alias, second}, Private: []string{w.private}})
	w.link(t, "dir", "relative")
	w.link(t, filepath.Join(w.root, "dir"), "real")
	w.link(t, filepath.Join(alias, "dir"), "named")
	w.link(t, "real", "twice")
	w.link(t, "../second", "second")
	w.link(t, second, "second2")
	w.link(t, "dir/in/../in", "inner")
	w.link(t, "twice/in/../in", "after") // what ".." leaves is what the link led to
	w.link(t, "../root/dir/./in", "again")
	for path, want := range map[string]string{
		"relative/in/deep":                       "deep",
		"real/in/deep":                           "deep",
		"named/in/deep":                          "deep",
		"twice/in/deep":                          "deep",
		"inner/deep":                             "deep",
		"after/deep":                             "deep",
		"again/deep":                             "deep",
		"second/here":                            "here",
		"second2/here":                           "here",
		filepath.Join(alias, "file"):             "old",
		filepath.Join(w.root, "file"):            "old",
		filepath.Join(second, "here"):            "here",
		filepath.Join(alias, "relative/in/deep"): "deep",
	} {
		f, info, err := w.Open(path)
		if err != nil {
			t.Errorf("Open(%s): got error %v, want none", path, err)
			continue
		}
		data, _ := io.ReadAll(f)
		f.Close()
		if string(data) != want || info.Size() != int64(len(want)) {
			t.Errorf("Open(%s): got %q, %d bytes, want %q", path, data, info.Size(), want)
		}
	}
	// The name is the caller's, whatever it leads through.
	if got, err := w.Directory("named/in"); err != nil || got != filepath.Join(alias, "named", "in") {
		t.Errorf("Directory(named/in): got %q, error %v, want the caller's name", got, err)
	}
	entries, err := w.List("second")
	if err != nil || len(entries) != 1 || entries[0].Path != filepath.Join(alias, "second", "here") {
		t.Errorf("List(second): got %+v, error %v, want one entry under the caller's name", entries, err)
	}
	for path, want := range map[string]error{"second/../second": files.ErrInvalid, alias + "/home/deskhand": files.ErrOutside} {
		_, err := w.Stat(path)
		wants(t, "", err, want)
	}
}

func TestTooManyLinksAreRefused(t *testing.T) {
	w := newWorld(t)
	w.link(t, "dir", "l0")
	for i := range 45 {
		w.link(t, fmt.Sprintf("l%d", i), fmt.Sprintf("l%d", i+1))
	}
	if _, err := w.List("l39"); err != nil {
		t.Error(err)
	}
	_, err := w.List("l40")
	wants(t, "", err, files.ErrInvalid)
}

// Links may also ask for so many steps that no call ends in time.
func TestTooManyStepsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.put(t, "root/"+strings.Repeat("d/", 150), "")
	w.link(t, strings.Repeat("d/", 150)+strings.Repeat("../d/", 700), "long")
	within(t, func() {
		_, err := w.List("long")
		wants(t, "long", err, files.ErrInvalid)
	})
}

func TestOpenChecksRoots(t *testing.T) {
	w := newWorld(t)
	for name, cfg := range map[string]files.Config{
		"missing":         {Roots: []string{filepath.Join(w.dir, "none")}},
		"a file":          {Roots: []string{filepath.Join(w.root, "file")}},
		"private":         {Roots: []string{w.private}, Private: []string{w.private}},
		"below a private": {Roots: []string{w.root}, Private: []string{w.dir}},
	} {
		if _, err := files.Open(cfg); err == nil {
			t.Errorf("Open with a %s root: got no error, want one", name)
		}
	}
	t.Setenv("HOME", w.root)
	t.Setenv("USERPROFILE", w.root)
	tree := open(t, files.Config{})
	if e, err := tree.Stat("file"); err != nil || e.Path != filepath.Join(w.root, "file") {
		t.Errorf("Stat(file) in the home directory: got %+v, error %v, want a path below %s", e, err, w.root)
	}
	for range 2 {
		if dir, err := tree.Directory(""); err != nil || dir != w.root {
			t.Errorf("Directory of no path: got %q, error %v, want %q", dir, err, w.root)
		}
		tree = open(t, files.Config{Roots: []string{w.outside}}) // home stays home, wherever the roots are
	}
	_, err := tree.Root("")
	wants(t, "", err, files.ErrOutside)
}

// A root is what stands at its path when a call comes; but a link there leads nowhere.
func TestReplacedRootIsFoundAgain(t *testing.T) {
	w := newWorld(t)
	w.must(t, os.RemoveAll(w.root))
	_, err := w.Stat("file")
	wants(t, "", err, files.ErrNotFound)
	w.put(t, "root/file", "again")
	if e, err := w.Stat("file"); err != nil || e.Size != 5 {
		t.Errorf("Stat(file) in a root made again: got %+v, error %v, want 5 bytes", e, err)
	}
	w.must(t, os.RemoveAll(w.root))
	w.must(t, os.Symlink(w.outside, w.root))
	for call, err := range everyCall(w, "canary") {
		if !errors.Is(err, files.ErrOutside) {
			t.Errorf("%s in a root that became a link: got error %v, want ErrOutside", call, err)
		}
	}
}

func TestNestedRootsAreReachedThroughOuterRoot(t *testing.T) {
	w := newWorld(t)
	inner := filepath.Join(w.root, "dir", "in")
	w.Tree = open(t, files.Config{Roots: []string{inner, w.root}, Private: []string{w.private}})
	if e, err := w.Stat("deep"); err != nil || e.Path != filepath.Join(inner, "deep") {
		t.Errorf("Stat(deep) in nested roots: got %+v, error %v, want a path below %s", e, err, inner)
	}
	for _, path := range []string{inner, filepath.Join(w.root, "dir"), w.root, ".", ""} {
		_, err := w.Remove(path, true)
		wants(t, "", err, files.ErrOutside)
		_, _, err = w.Move(t.Context(), path, filepath.Join(w.root, "moved"), true)
		wants(t, "", err, files.ErrOutside)
	}
	// An inner root that is swapped for a link is as confined as the outer one.
	w.must(t, os.Rename(inner, inner+"2"))
	w.must(t, os.Symlink(w.outside, inner))
	_, _, err := w.Open("canary")
	wants(t, "", err, files.ErrOutside)
	// And so is one whose parent is, under whatever name the root was given.
	alias := filepath.Join(w.dir, "alias")
	w.must(t, os.Remove(inner))
	w.must(t, os.Rename(inner+"2", inner))
	w.must(t, os.Symlink(inner, alias))
	tree := open(t, files.Config{Roots: []string{alias, w.root}})
	if _, err = tree.Stat("deep"); err != nil {
		t.Error(err)
	}
	w.put(t, "outside/in/canary", secret)
	w.must(t, os.Rename(filepath.Dir(inner), filepath.Join(w.root, "away")))
	w.must(t, os.Symlink(w.outside, filepath.Dir(inner)))
	for _, tree := range []*files.Tree{w.Tree, tree} {
		_, _, err = tree.Open("canary")
		wants(t, "", err, files.ErrOutside)
	}
}

func TestListSortsDirectoriesFirst(t *testing.T) {
	w := newWorld(t)
	w.put(t, "root/list/b/", "")
	w.put(t, "root/list/A", "12345")
	w.put(t, "root/list/a\nb", "")
	w.put(t, "root/list/.hidden", "")
	w.put(t, "root/list/Z/", "")
	w.link(t, "b", "list/link")
	w.link(t, "nowhere", "list/dangling")
	entries, err := w.List("list")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Kind)+" "+e.Name)
		if e.Path != filepath.Join(w.root, "list", e.Name) {
			t.Errorf("List(list): got the path %s for %s, want %s", e.Path, e.Name, filepath.Join(w.root, "list", e.Name))
		}
		info, err := os.Lstat(e.Path)
		if err != nil || info.Size() != e.Size || !info.ModTime().Equal(e.Modified) {
			t.Errorf("List(list): got %+v, want size and time of %v (error %v)", e, info, err)
		}
	}
	want := []string{
		"directory Z", "directory b", "file .hidden", "file A", "file a\nb", "symlink dangling", "symlink link",
	}
	if !slices.Equal(got, want) {
		t.Errorf("List(list): got %q, want %q", got, want)
	}
	for path, want := range map[string]error{"file": files.ErrInvalid, "none": files.ErrNotFound, "list/dangling": files.ErrNotFound} {
		_, err := w.List(path)
		wants(t, path, err, want)
	}
	if entries, err = w.List(""); err != nil || len(entries) != 4 {
		t.Errorf("List of no path: got %+v, error %v, want the 4 entries of the first root", entries, err)
	}
	// The name of a private directory is no secret; what is in it is.
	if entries, err = w.List("home"); err != nil || len(entries) != 2 || entries[0].Name != "deskhand" {
		t.Errorf("List(home): got %+v, error %v, want 2 entries, deskhand first", entries, err)
	}
}

func TestListReturnsManyEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 files take a while")
	}
	w := newWorld(t)
	w.put(t, "root/many/0", "")
	for i := 1; i < 100_000; i++ {
		f, err := os.OpenFile(filepath.Join(w.root, "many", fmt.Sprint(i)), os.O_CREATE|os.O_WRONLY, 0o644)
		w.must(t, err)
		f.Close()
	}
	start := time.Now()
	entries, err := w.List("many")
	if err != nil || len(entries) != 100_000 || !slices.IsSortedFunc(entries, func(a, b files.Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("List(many): got %d entries, error %v, want 100000, sorted", len(entries), err)
	}
	t.Logf("100,000 entries in %v", time.Since(start))
}

func TestStatDescribesEntries(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]files.Kind{"file": files.File, "dir": files.Directory, "dir/": files.Directory, "": files.Directory, w.root: files.Directory} {
		e, err := w.Stat(path)
		if err != nil || e.Kind != want || !filepath.IsAbs(e.Path) || e.Name != filepath.Base(e.Path) || e.Modified.IsZero() {
			t.Errorf("Stat(%q): got %+v, error %v, want kind %s and an absolute path", path, e, err, want)
		}
	}
	for path, want := range map[string]error{"none": files.ErrNotFound, "none/none": files.ErrNotFound, "file/none": files.ErrInvalid} {
		_, err := w.Stat(path)
		wants(t, "", err, want)
	}
	_, err := w.Stat("none/" + strings.Repeat("x", 200) + "/" + strings.Repeat("y", 200))
	if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "none/") {
		t.Errorf("Stat of a long path: got error %v, want a short text that begins the path", err)
	}
}

// within fails when f takes long.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(testkit.Limit):
		t.Fatal("it blocks")
	}
}

func TestOpenRefusesIrregularFiles(t *testing.T) {
	w := newWorld(t)
	sock, err := net.Listen("unix", filepath.Join(w.root, "s"))
	w.must(t, err)
	defer sock.Close()
	kinds := append(specialFiles(t, w.root), "s", "dir", "")
	w.link(t, kinds[0], "link")
	for _, name := range append(kinds, "link") {
		within(t, func() {
			_, _, err := w.Open(name)
			wants(t, "", err, files.ErrInvalid)
			_, _, err = w.Write(name, strings.NewReader("x"))
			wants(t, "", err, files.ErrInvalid)
		})
	}
	if e, err := w.Stat(kinds[0]); err != nil || e.Kind != files.File {
		t.Errorf("Stat(%s): got %+v, error %v, want kind file", kinds[0], e, err)
	}
	f, info, err := w.Open("file")
	w.must(t, err)
	defer f.Close()
	if _, err = f.Seek(1, io.SeekStart); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(f)
	if string(rest) != "ld" || err != nil || info.Size() != 3 {
		t.Errorf("rest of the opened file: got %q, error %v, size %d, want ld, size 3", rest, err, info.Size())
	}
}

func TestVersionChangesWithContent(t *testing.T) {
	w := newWorld(t)
	version := func() string {
		f, info, err := w.Open("file")
		w.must(t, err)
		f.Close()
		return files.Version(info)
	}
	first := version()
	if version() != first {
		t.Error("it changes by itself")
	}
	at := time.Now().Add(-time.Hour)
	w.must(t, os.Chtimes(filepath.Join(w.root, "file"), at, at))
	first = version()
	if _, _, err := w.Write("file", strings.NewReader("OLD")); err != nil { // as long as before
		t.Fatal(err)
	}
	w.must(t, os.Chtimes(filepath.Join(w.root, "file"), at, at)) // and with the same time
	if version() == first {
		t.Error("another content has the same version")
	}
}
