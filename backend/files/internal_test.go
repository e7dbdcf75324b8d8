package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tarOf is an archive of files, each holding its own name.
func tarOf(t *testing.T, names ...string) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func tree(t *testing.T, held map[string]string) (*Tree, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range held {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := Open(Config{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return tr, dir
}

func held(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// begun is an archive that is read and checked, and about to be put in its place.
func begun(t *testing.T, tr *Tree, names ...string) (u *unpacker, m *merge, from spot) {
	t.Helper()
	c, err := tr.call("")
	if err != nil {
		t.Fatal(err)
	}
	u = &unpacker{call: c, ctx: t.Context(), names: &node{dir: true}}
	m, from, done, err := u.begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if err = u.read(tarOf(t, names...), false); err != nil {
		t.Fatal(err)
	}
	if err = m.check(m.to.dir, m.to.info, u.names); err != nil {
		t.Fatal(err)
	}
	return u, m, from
}

// What comes in the way after the check fails in the middle of the renames, and those before are undone.
func TestMergeIsUndone(t *testing.T) {
	before := map[string]string{"a": "old", "d/old": "old", "d/b": "old b"}
	tr, dir := tree(t, before)
	u, m, from := begun(t, tr, "a", "c/new", "d/b", "d/new", "z")
	if err := os.Mkdir(filepath.Join(dir, "z"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := m.put(from, m.to, u.names)
	if !errors.Is(err, ErrExists) {
		t.Errorf("put: got error %v, want ErrExists", err)
	}
	for name, want := range map[string]string{"a": "a", "c/new": "c/new", "d/b": "d/b", "d/new": "d/new"} {
		if got := held(t, dir)[name]; got != want {
			t.Errorf("%s before undo: got %q, want %q", name, got, want)
		}
	}
	m.undo()
	after := held(t, dir)
	for name, want := range before {
		if after[name] != want {
			t.Errorf("%s after undo: got %q, want %q", name, after[name], want)
		}
	}
	for _, name := range []string{"c", "d/new"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s after undo: got error %v, want it gone", name, err)
		}
	}
}

// What somebody else has put in the place of what was unpacked is newer than both, and is not undone.
func TestUndoKeepsWhatIsNewer(t *testing.T) {
	tr, dir := tree(t, map[string]string{"a": "old", "b": "old"})
	u, m, from := begun(t, tr, "a", "b", "new")
	if err := m.put(from, m.to, u.names); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "new"} {
		if _, _, err := tr.Write(name, strings.NewReader("newer")); err != nil {
			t.Fatal(err)
		}
	}
	if !m.undo() {
		t.Error("something could not be undone")
	}
	after := held(t, dir)
	for name, want := range map[string]string{"a": "newer", "b": "old", "new": "newer"} {
		if after[name] != want {
			t.Errorf("%s after undo: got %q, want %q", name, after[name], want)
		}
	}
}

// What was replaced and cannot be put back, because its directory has another name by now, is not removed with the rest.
func TestFailedUndoKeepsReplacedFiles(t *testing.T) {
	tr, dir := tree(t, map[string]string{"d/a": "old"})
	c, err := tr.call("")
	if err != nil {
		t.Fatal(err)
	}
	u := &unpacker{call: c, ctx: t.Context(), names: &node{dir: true}}
	m, from, done, err := u.begin()
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(u.read(tarOf(t, "d/a"), false), m.put(from, m.to, u.names)); err != nil {
		t.Fatal(err)
	}
	if err = os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")); err != nil {
		t.Fatal(err)
	}
	err = m.fail(from, errSwapped)
	done()
	if !errors.Is(err, errSwapped) || !strings.Contains(err.Error(), from.way[0]) {
		t.Errorf("fail: got error %v, want errSwapped with the name %s", err, from.way[0])
	}
	kept := held(t, dir)
	if kept[from.way[0]+"/d/a"] != "old" || kept["e/a"] != "d/a" {
		t.Errorf("after fail: got %q, want the replaced file kept", kept)
	}
}

// A directory that comes where a file is to be replaced is not taken away, not even for an instant too long.
func TestMergeReplacesNoDirectory(t *testing.T) {
	tr, dir := tree(t, map[string]string{"a": "old", "precious/x": "x"})
	_, m, from := begun(t, tr, "a")
	src, dst := from.inside(from.dir, "a"), m.to.inside(m.to.dir, "a")
	var err error
	if dst.info, err = m.to.dir.Lstat("a"); err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(os.Remove(filepath.Join(dir, "a")), os.Rename(filepath.Join(dir, "precious"), filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	if err = m.land(src, dst); !errors.Is(err, errSwapped) && !errors.Is(err, fs.ErrExist) {
		t.Errorf("land over a new directory: got error %v, want errSwapped or fs.ErrExist", err)
	}
	m.undo()
	if got := held(t, dir)["a/x"]; got != "x" {
		t.Errorf("a/x after undo: got %q in %q, want x", got, held(t, dir))
	}
}

// Where the system cannot exchange two files, the old one goes aside.
func TestStepReplacesWithoutExchange(t *testing.T) {
	tr, dir := tree(t, map[string]string{"a": "old"})
	_, m, from := begun(t, tr, "a")
	l := landing{from: from.inside(from.dir, "a"), at: m.to.inside(m.to.dir, "a"), aside: hidden()}
	var err error
	if l.from.info, err = from.dir.Lstat("a"); err != nil {
		t.Fatal(err)
	}
	if err := step(l.from, l.at, l.aside); err != nil {
		t.Fatal(err)
	}
	if err := m.confirm(l.from, l); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "a")); string(data) != "a" {
		t.Errorf("a after step: got %q, want a", data)
	}
	m.done = append(m.done, l)
	m.undo()
	if data, _ := os.ReadFile(filepath.Join(dir, "a")); string(data) != "old" {
		t.Errorf("a after undo: got %q, want old", data)
	}
}

// What is new in an archive and yet there is another name that the file system takes for the same. This one tells them
// apart, so the other is put there by hand.
func TestUnpackRefusesClashingNames(t *testing.T) {
	tr, _ := tree(t, nil)
	u, _, _ := begun(t, tr)
	if err := errors.Join(u.temp.WriteFile("README", nil, 0o644), u.temp.Mkdir("DIR", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README", "DIR/x"} {
		if err := u.read(tarOf(t, name), false); !errors.Is(err, ErrInvalid) {
			t.Errorf("read of a second %s: got error %v, want ErrInvalid", name, err)
		}
	}
}

type unreadable struct{ fs.DirEntry }

func (unreadable) Name() string      { return string(make([]byte, 300)) }
func (unreadable) Type() fs.FileMode { return fs.ModeDir }

// An entry that the system says nothing about is in the list; one that has gone since is not.
func TestListKeepsUnreadableEntries(t *testing.T) {
	tr, dir := tree(t, map[string]string{"a": "a", "gone": ""})
	c, err := tr.call("")
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.directory()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found, err := readDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	entries := c.entries(root, append(found, unreadable{}))
	if len(entries) != 2 || entries[0].Kind != Directory || len(entries[0].Name) != 300 || !entries[0].Modified.IsZero() || entries[1].Name != "a" {
		t.Errorf("entries with an unreadable entry: got %+v, want that directory by name alone, then a", entries)
	}
}

// What a Move has moved by mistake, because it was swapped in, goes back.
func TestMoveNoticesSwappedSource(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "moved", "private")
	if err := errors.Join(os.MkdirAll(private, 0o755), os.Mkdir(filepath.Join(dir, "harmless"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "parent")); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(Config{Roots: []string{dir}, Private: []string{filepath.Join(dir, "moved", "private")}})
	if err != nil {
		t.Fatal(err)
	}
	src, _ := tr.call("harmless")
	dst, _ := tr.call("moved")
	m := &move{ctx: t.Context(), src: src, dst: dst}
	from, err := src.walk(0)
	if err != nil {
		t.Fatal(err)
	}
	defer from.dir.Close()
	to, err := dst.walk(0)
	if err != nil {
		t.Fatal(err)
	}
	defer to.dir.Close()
	// Between the look and the rename, the parent of the private directory takes the place of what was looked at.
	if err = errors.Join(os.Remove(filepath.Join(dir, "harmless")), os.Rename(filepath.Join(dir, "parent"), filepath.Join(dir, "harmless"))); err != nil {
		t.Fatal(err)
	}
	if err = m.rename(from, to); !errors.Is(err, errSwapped) {
		t.Errorf("rename of a swapped entry: got error %v, want errSwapped", err)
	}
	if _, err = os.Stat(filepath.Join(dir, "harmless", "private")); err != nil {
		t.Error(err)
	}
}

func TestUnpackKeepsPlausibleTimes(t *testing.T) {
	_, dir := tree(t, map[string]string{"f": ""})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []struct {
		at   time.Time
		kept bool
	}{
		{time.Unix(1, 0), true},
		{time.Unix(4e9, 5), true},
		{time.Unix(0, 0), false},
		{time.Unix(-5, 0), false},
		{time.Unix(1<<60, 0), false},
		{time.Unix(-1<<60, 0), false},
		{time.Time{}, false},
	} {
		if err := setTime(root, "f", c.at); err != nil {
			t.Error(err)
		}
		info, err := root.Lstat("f")
		if err != nil || info.ModTime().Equal(c.at) != c.kept {
			t.Errorf("time of a file with %v: got %v, error %v, want kept %v", c.at, info.ModTime(), err, c.kept)
		}
	}
}

// meanwhile is a context that does something each time it is asked whether it has ended, which copying does all the time.
type meanwhile struct {
	context.Context
	f func()
}

func (m meanwhile) Err() error {
	m.f()
	return m.Context.Err()
}

// What is saved at the old place while a tree is copied to another file system is in no copy, and is not removed with the rest.
func TestCopyingMoveLeavesWhatIsNewer(t *testing.T) {
	tr, dir := tree(t, map[string]string{"d/a": "old", "d/b": "b", "d/sub/c": "c"})
	src, _ := tr.call("d")
	dst, _ := tr.call("moved")
	from, err := src.walk(0)
	if err != nil {
		t.Fatal(err)
	}
	defer from.dir.Close()
	to, err := dst.walk(0)
	if err != nil {
		t.Fatal(err)
	}
	defer to.dir.Close()
	saved := false
	save := func() {
		copied, _ := filepath.Glob(filepath.Join(dir, ".deskhand-*", "a"))
		if saved || len(copied) == 0 {
			return
		}
		if data, _ := os.ReadFile(copied[0]); string(data) != "old" {
			return
		}
		saved = true
		err = errors.Join(os.WriteFile(filepath.Join(dir, "d", "a"), []byte("newer"), 0o644),
			os.WriteFile(filepath.Join(dir, "d", "new"), []byte("new"), 0o644))
		if err != nil {
			t.Error(err)
		}
	}
	m := &move{ctx: meanwhile{t.Context(), save}, src: src, dst: dst}
	if err := m.copy(from, to); !errors.Is(err, ErrChanged) {
		t.Errorf("copy with writes meanwhile: got error %v, want ErrChanged", err)
	}
	want := map[string]string{"d/a": "newer", "d/new": "new", "moved/b": "b", "moved/sub/c": "c"}
	got := held(t, dir)
	delete(got, "moved/a") // of some time
	if !saved || !maps.Equal(got, want) {
		t.Errorf("entries after copy: got %q, saved %v, want %q, saved true", got, saved, want)
	}
}

// A disk that takes several spellings for one name finds the same file by both. The disk of the test does not: what it would find is given.
func TestOtherSpellingIsNoSecondName(t *testing.T) {
	top := t.TempDir()
	dir, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, name := range []string{"stra\u00dfe", "linked"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(top, "linked"), filepath.Join(top, "linked too")); err != nil {
		t.Fatal(err)
	}
	self, err := dir.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		stands, from, to string
		want             bool
	}{
		{"stra\u00dfe", "stra\u00dfe", "STRASSE", true},
		{"stra\u00dfe", "STRASSE", "stra\u00dfe", true},
		{"stra\u00dfe", "Strasse", "STRASSE", true},
		{"stra\u00dfe", "stra\u00dfe", "stra\u00dfe", false},
		{"linked", "linked", "linked too", false},
		{"linked", "linked", "LINKED", true},
		{"linked", "LINKED", "linked too", true}, // nothing is removed where that is not sure
	} {
		info, err := dir.Lstat(tc.stands)
		if err != nil {
			t.Fatal(err)
		}
		at := spot{dir: dir, self: self, info: info}
		from, to := at, at
		from.name, to.name = tc.from, tc.to
		if got, err := respelled(from, to); got != tc.want || err != nil {
			t.Errorf("respelled(%s, %s): got %v, error %v, want %v", tc.from, tc.to, got, err, tc.want)
		}
	}
}
