package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/files"
)

// childEnv names what a child process of the tests does: what cannot be done to the process that runs them.
const childEnv = "DESKHAND_FILES_TEST"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := children(what, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs one of the children; what it says is in the failure.
func child(t *testing.T, what string, prepare func(*exec.Cmd), args ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	if prepare != nil {
		prepare(cmd)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("child %s: got error %v, want none; its output:\n%s", what, err, out)
	}
}

// world is a root, with what must not be reached beside it and in it.
type world struct {
	*files.Tree
	dir, root, outside, private string
}

const secret = "the secret"

// newWorld lies in memory where there is such a place, for much is synced here; diskWorld does not.
func newWorld(t testing.TB) world {
	t.Helper()
	if dir := inMemory(t); dir != "" {
		t.Setenv("TMPDIR", dir)
	}
	return diskWorld(t)
}

func diskWorld(t testing.TB) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{dir: dir, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	w.private = filepath.Join(w.root, "home", "deskhand")
	w.put(t, "outside/canary", secret)
	w.put(t, "outside/sub/canary", secret)
	w.put(t, "root/home/deskhand/token", secret)
	w.put(t, "root/home/other", "other")
	w.put(t, "root/file", "old")
	w.put(t, "root/dir/in/deep", "deep")
	w.put(t, "root/dir/z", "z")
	w.Tree = open(t, files.Config{Roots: []string{w.root}, Private: []string{w.private}})
	return w
}

// inMemory is a directory on a file system that keeps nothing, so that syncing takes no time; "" where there is none.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "deskhand-test-") //nolint:usetesting // that would be on the disk
	if err != nil {
		return ""
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func open(t testing.TB, cfg files.Config) *files.Tree {
	t.Helper()
	tree, err := files.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// put makes a file, or with no content and a slash at the end a directory.
func (w world) put(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	dir := filepath.Dir(path)
	if strings.HasSuffix(name, "/") {
		dir = path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir == path {
		return
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w world) link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(w.root, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}

func (w world) read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// snapshot is everything below a directory: kinds, modes, times of change and contents.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), " ", info.ModTime().UnixNano())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + target
		}
		rel, err := filepath.Rel(dir, path)
		seen[rel] = what
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// unchanged fails when a directory is not as it was.
func unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := snapshot(t, dir)
	if maps.Equal(before, after) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			t.Errorf("%s: got %q, want %q", name, after[name], before[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			t.Errorf("%s: got a new entry %q, want none", name, after[name])
		}
	}
}

// names is what a tree holds, relative to dir, directories with a slash.
func names(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if rel = filepath.ToSlash(rel); d.IsDir() {
			rel += "/"
		}
		all = append(all, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// below is the same where there is no test to fail, with the slash in front and what stands for dir itself.
func below(dir string) (all []string) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		all = append(all, strings.TrimPrefix(path, dir))
		return nil
	})
	return all
}

func noRemains(t testing.TB, dir string) {
	t.Helper()
	for _, name := range names(t, dir) {
		if strings.Contains(name, ".deskhand-") {
			t.Errorf("got %s left behind, want no unfinished entry", name)
		}
	}
}

// wants checks an error: its kind, and that it says no more than it should.
func wants(t testing.TB, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want %v", what, err, kind)
		return
	}
	if err == nil {
		return
	}
	for _, inner := range []string{"openat", "statat", "renameat", "unlinkat", "mkdirat", ".deskhand-", "no such file", "errno"} {
		if strings.Contains(err.Error(), inner) {
			t.Errorf("%s: got error %v, want no %q in the text", what, err, inner)
		}
	}
}

// must is for what a test needs to go on.
func (w world) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
