//go:build linux

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deskhand/backend/files"
)

// children are what the tests do in a process of its own: with other limits, rights, masks and mounts than theirs.
func children(what string, args []string) error {
	f, ok := map[string]func(dir string) error{
		"no space": noSpace, "no rights": noRights, "mask": mask, "mounts": mounts, "full disk": fullDisk, "hidden mount": hiddenMount,
		"few descriptors": fewDescriptors, "groups": groups,
	}[what]
	if !ok {
		return fmt.Errorf("child process %s: %w", what, errors.ErrUnsupported)
	}
	return f(args[0])
}

func tree(dir string, more ...string) (*files.Tree, error) {
	return files.Open(files.Config{Roots: append([]string{filepath.Join(dir, "root")}, more...), Private: []string{filepath.Join(dir, "root", "home", "deskhand")}})
}

// expect collects what is not as it should be.
type expect struct{ found []error }

func (e *expect) kind(what string, err, kind error) {
	if !errors.Is(err, kind) {
		e.found = append(e.found, fmt.Errorf("%s: got error %v, want %v", what, err, kind)) //nolint:errorlint // only text
	}
}

func (e *expect) content(path, want string) {
	data, err := os.ReadFile(path)
	if err == nil && string(data) != want {
		err = errors.New("it is another")
	}
	if err != nil {
		e.found = append(e.found, fmt.Errorf("%s holds %.20q (%d bytes), not %.20q: %w", path, data, len(data), want, err))
	}
}

func (e *expect) names(dir string, want []string) {
	if got := below(dir); !slices.Equal(got, want) {
		e.found = append(e.found, fmt.Errorf("%s holds %q, not %q", dir, got, want))
	}
}

func (e *expect) err() error { return errors.Join(e.found...) }

// fails runs the calls that need space, and wants none of them to leave anything.
func fails(e *expect, t *files.Tree, root string, size int64) {
	before := below(root)
	large := func() io.Reader { return io.LimitReader(strings.NewReader(strings.Repeat("x", int(size))), size) }
	_, _, err := t.Write("file", large())
	e.kind("write", err, files.ErrFull)
	_, _, err = t.Write("a/b/new", large())
	e.kind("write with parents", err, files.ErrFull)
	_, _, err = t.Unpack(context.Background(), "a/b", archive(file("small", "x"), file("dir/z", "x"), file("large", strings.Repeat("x", int(size)))), false)
	e.kind("unpack", err, files.ErrFull)
	dir, err := t.Root("dir")
	e.kind("root", err, nil)
	e.kind("replace", files.Replace(dir, "z", []byte(strings.Repeat("x", int(size))), 0o600), files.ErrFull)
	dir.Close()
	e.content(filepath.Join(root, "file"), "old")
	e.content(filepath.Join(root, "dir", "z"), "z")
	e.names(root, before)
}

// noSpace: no file may be larger than 64 KiB, which is a full disk in the middle of a file.
func noSpace(dir string) error {
	second, err := os.MkdirTemp("/dev/shm", "deskhand-test-")
	if err == nil {
		defer os.RemoveAll(second)
	} else {
		second = filepath.Join(dir, "outside")
	}
	if err := os.WriteFile(filepath.Join(dir, "root", "large"), make([]byte, 200_000), 0o644); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	t, err := tree(dir, second)
	if err != nil {
		return err
	}
	var e expect
	fails(&e, t, filepath.Join(dir, "root"), 200_000)
	if filepath.Dir(second) == "/dev/shm" {
		before := below(second)
		_, _, err = t.Move(context.Background(), "large", filepath.Join(second, "a", "b"), false)
		e.kind("move", err, files.ErrFull)
		e.names(second, before)
	}
	_, _, err = t.Write("file", strings.NewReader("it goes on"))
	e.kind("write what fits", err, nil)
	e.content(filepath.Join(dir, "root", "file"), "it goes on")
	return e.err()
}

func TestCallsLeaveNothingWhenFileHitsLimit(t *testing.T) {
	w := diskWorld(t) // there is a second file system in memory
	child(t, "no space", nil, w.dir)
}

// fullDisk: the root is a file system with little space, and then without any names to give.
func fullDisk(dir string) error {
	root := filepath.Join(dir, "root")
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=256k,nr_inodes=40"); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "dir"), 0o755), os.WriteFile(filepath.Join(root, "file"), []byte("old"), 0o644),
		os.WriteFile(filepath.Join(root, "dir", "z"), []byte("z"), 0o644)); err != nil {
		return err
	}
	t, err := tree(dir, filepath.Join(dir, "outside"))
	if err != nil {
		return err
	}
	var e expect
	fails(&e, t, root, 300_000)
	before := below(root)
	var many []entry
	for i := range 60 {
		many = append(many, file(fmt.Sprint("n", i), ""))
	}
	_, _, err = t.Unpack(context.Background(), "a/b", archive(many...), false)
	e.kind("unpack many", err, files.ErrFull)
	for i := range 100 {
		if err = os.WriteFile(filepath.Join(dir, "outside", fmt.Sprint("n", i)), make([]byte, 4096), 0o644); err != nil {
			return err
		}
	}
	outside := below(filepath.Join(dir, "outside"))
	_, _, err = t.Move(context.Background(), filepath.Join(dir, "outside", "sub"), "moved", false)
	e.kind("move what fits", err, nil)
	_, _, err = t.Move(context.Background(), "moved", filepath.Join(dir, "outside", "sub"), false)
	e.kind("and back", err, nil)
	e.names(filepath.Join(dir, "outside"), outside)
	e.names(root, before)
	return e.err()
}

// alone gives a child mounts that nobody else sees.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
}

func mayMount(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts")
	}
	cmd := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", t.TempDir())
	alone(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("mounting is not permitted here: %v, %s", err, out)
	}
}

func TestCallsLeaveNothingOnFullDisk(t *testing.T) {
	mayMount(t)
	w := newWorld(t)
	child(t, "full disk", alone, w.dir)
}

// mounts: another file system lies in the directory that an archive is unpacked to.
func mounts(dir string) error {
	vol := filepath.Join(dir, "root", "dir", "vol")
	if err := os.Mkdir(vol, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", vol, "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(vol, "x"), []byte("old x"), 0o644), os.WriteFile(filepath.Join(vol, "stays"), nil, 0o644)); err != nil {
		return err
	}
	t, err := tree(dir)
	if err != nil {
		return err
	}
	var e expect
	closed := directory("vol/new")
	closed.Mode = 0o711
	_, _, err = t.Unpack(context.Background(), "dir", archive(file("vol/x", "new x"), closed, file("vol/new/in/y", "y"), file("z", "new z")), false)
	e.kind("unpack", err, nil)
	e.content(filepath.Join(vol, "x"), "new x")
	e.content(filepath.Join(vol, "new", "in", "y"), "y")
	e.content(filepath.Join(dir, "root", "dir", "z"), "new z")
	e.names(vol, []string{"", "/new", "/new/in", "/new/in/y", "/stays", "/x"})
	if info, err := os.Stat(filepath.Join(vol, "new")); err != nil || info.Mode().Perm() != 0o711 {
		e.kind("mode", fmt.Errorf("got %v and error %w, want mode 0711", info, err), nil)
	}

	// One that does not fit there is found out after others have been put in their place.
	before := below(filepath.Join(dir, "root"))
	_, _, err = t.Unpack(context.Background(), "dir", archive(file("a", "a"), file("vol/more", "m"), file("vol/w", strings.Repeat("w", 2<<20)), file("vol/x", "newer"), file("z", "newer")), false)
	e.kind("unpack too much", err, files.ErrFull)
	_, _, err = t.Unpack(context.Background(), "dir", archive(file("a", "a"), file("vol/x", "newer"), file("vol/y", strings.Repeat("w", 2<<20)), file("z", "newer")), false)
	e.kind("unpack too much", err, files.ErrFull)
	e.content(filepath.Join(vol, "x"), "new x")
	e.content(filepath.Join(dir, "root", "dir", "z"), "new z")
	e.names(filepath.Join(dir, "root"), before)

	// The mount is another file system, and yet lies within what would be copied there.
	_, _, err = t.Move(context.Background(), "dir", "dir/vol/dir", false)
	e.kind("move into itself", err, files.ErrInvalid)
	e.names(filepath.Join(dir, "root"), before)

	// A mount is not removed, and what is not in it is.
	_, err = t.Remove("dir", true)
	e.kind("remove", err, files.ErrPermission)
	return e.err()
}

func TestMoveAndUnpackCrossMounts(t *testing.T) {
	mayMount(t)
	w := newWorld(t)
	child(t, "mounts", alone, w.dir)
}

// hiddenMount: a private directory has a second place, which has nothing to do with its name.
func hiddenMount(dir string) error {
	place := filepath.Join(dir, "root", "dir", "innocent")
	if err := os.Mkdir(place, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(filepath.Join(dir, "root", "home", "deskhand"), place, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	t, err := tree(dir)
	if err != nil {
		return err
	}
	var e expect
	for _, path := range []string{"dir/innocent", "dir/innocent/token"} {
		for call, err := range everyCall(world{Tree: t}, path) {
			e.kind(call+" "+path, err, files.ErrOutside)
		}
	}
	_, err = t.Remove("dir", true)
	e.kind("removal of a directory that holds it", err, files.ErrOutside)
	_, _, err = t.Unpack(context.Background(), "", archive(file("dir/innocent/token", "mine")), false)
	e.kind("unpack", err, files.ErrOutside)
	e.content(filepath.Join(place, "token"), secret)
	return e.err()
}

func TestPrivateDirectoryIsRefusedThroughOtherMount(t *testing.T) {
	mayMount(t)
	w := newWorld(t)
	child(t, "hidden mount", alone, w.dir)
}

const nobody = 65534

// noRights is somebody for whom the permissions count.
func noRights(dir string) error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	t, err := tree(dir)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root", "rights")
	mk := func(name string, mode fs.FileMode) error {
		path := filepath.Join(root, name)
		return errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "in"), []byte("in"), 0o644), os.Chmod(path, mode))
	}
	if err := errors.Join(mk("closed", 0), mk("fixed", 0o555), mk("open", 0o755), mk("tree/a", 0o755), mk("tree/fixed", 0o555),
		os.WriteFile(filepath.Join(root, "secret"), []byte("s"), 0), os.WriteFile(filepath.Join(root, "readonly"), []byte("old"), 0o444)); err != nil {
		return err
	}
	var e expect
	ctx := context.Background()
	errs := map[string]error{}
	note := func(what string, err error) { errs[what] = err }
	_, err = t.List("rights/closed")
	note("list", err)
	_, _, err = t.Open("rights/secret")
	note("open", err)
	_, _, err = t.Open("rights/closed/in")
	note("open below", err)
	_, err = t.Stat("rights/closed/in")
	note("stat below", err)
	_, _, err = t.Write("rights/readonly", strings.NewReader("new"))
	note("write to a protected file", err)
	_, _, err = t.Write("rights/fixed/new", strings.NewReader("new"))
	note("write", err)
	_, _, err = t.Write("rights/fixed/in", strings.NewReader("new"))
	note("replace", err)
	_, _, err = t.Write("rights/fixed/a/b/new", strings.NewReader("new"))
	note("write with parents", err)
	opened, err := t.Root("rights")
	if err != nil {
		return err
	}
	note("replace in an open directory", files.Replace(opened, "fixed/in", []byte("new"), 0o600))
	opened.Close()
	_, err = t.MakeDir("rights/fixed/new")
	note("mkdir", err)
	_, err = t.Remove("rights/fixed/in", false)
	note("remove", err)
	_, err = t.Remove("rights/fixed", true)
	note("remove all", err)
	_, _, err = t.Move(ctx, "rights/fixed/in", "rights/open/moved", false)
	note("move from", err)
	_, _, err = t.Move(ctx, "rights/open/in", "rights/fixed/moved", false)
	note("move to", err)
	_, _, err = t.Unpack(ctx, "rights/fixed", archive(file("new", "n")), false)
	note("unpack", err)
	_, _, err = t.Unpack(ctx, "rights", archive(file("open/in", "n"), file("fixed/in", "n")), false)
	note("unpack below", err)
	_, _, err = t.Unpack(ctx, "rights", archive(file("open/in", "n"), file("closed/in", "n")), false)
	note("unpack below", err)
	if second, err := os.MkdirTemp("/dev/shm", "deskhand-test-"); err == nil {
		defer os.RemoveAll(second)
		across, err := tree(dir, second)
		if err != nil {
			return err
		}
		_, _, err = across.Move(ctx, "rights/tree", filepath.Join(second, "tree"), false)
		note("move of what cannot be removed", err)
		_, _, err = across.Move(ctx, "rights/fixed/in", filepath.Join(second, "in"), false)
		note("move out of what cannot be changed", err)
		e.names(second, []string{""})
	}
	for _, what := range slices.Sorted(maps.Keys(errs)) {
		e.kind(what, errs[what], files.ErrPermission)
	}
	e.content(filepath.Join(root, "readonly"), "old")
	for _, name := range []string{"fixed/in", "open/in", "tree/a/in", "tree/fixed/in"} {
		e.content(filepath.Join(root, name), "in")
	}
	for _, name := range below(root) {
		if strings.Contains(name, ".deskhand-") {
			e.kind(name, errors.New("it is left"), nil)
		}
	}
	// All of it goes, but for what its owner has protected.
	_, err = t.Remove("rights/tree", true)
	e.kind("remove what is partly protected", err, files.ErrPermission)
	e.names(filepath.Join(root, "tree"), []string{"", "/fixed", "/fixed/in"})
	return e.err()
}

func TestCallsRespectPermissions(t *testing.T) {
	w := diskWorld(t) // there is a second file system in memory
	w.put(t, "root/rights/", "")
	if os.Getuid() == 0 {
		w.must(t, os.Chown(filepath.Join(w.root, "rights"), nobody, nobody))
		for dir := w.dir; mode(t, dir)&fs.ModeSticky == 0 && dir != "/"; dir = filepath.Dir(dir) {
			w.must(t, os.Chmod(dir, 0o755))
		}
	}
	defer exec.CommandContext(context.Background(), "chmod", "-R", "u+rwx", w.root).Run()
	child(t, "no rights", nil, w.dir)
}

// mask: what the umask takes is taken.
func mask(dir string) error {
	syscall.Umask(0o027)
	t, err := tree(dir)
	if err != nil {
		return err
	}
	wide, wideDir := file("u/wide", "x"), directory("u/widedir")
	wide.Mode, wideDir.Mode = 0o777, 0o777
	_, _, err = t.Write("a/new", strings.NewReader("x"))
	_, err2 := t.MakeDir("b")
	_, _, err3 := t.Unpack(context.Background(), "", archive(wide, wideDir), false)
	_, _, err4 := t.Write("file", strings.NewReader("x"))
	if err = errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	var e expect
	for name, want := range map[string]fs.FileMode{"a": 0o750, "a/new": 0o640, "b": 0o750, "u": 0o750, "u/wide": 0o750, "u/widedir": 0o750, "file": 0o644} {
		info, err := os.Stat(filepath.Join(dir, "root", name))
		if err != nil {
			return err
		}
		if info.Mode().Perm() != want {
			e.kind(name, fmt.Errorf("it has the mode %v", info.Mode()), nil)
		}
	}
	return e.err()
}

func TestNewEntriesFollowUmask(t *testing.T) {
	w := newWorld(t)
	child(t, "mask", nil, w.dir)
}

// fewDescriptors: a tree is deeper than there are descriptors, and than a path may be long.
func fewDescriptors(dir string) error {
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		return err
	}
	for i := range 3000 {
		err = root.Mkdir("d", 0o755)
		if i%100 == 0 {
			err = errors.Join(err, root.WriteFile("f", nil, 0o644))
		}
		next, err2 := root.OpenRoot("d")
		if err = errors.Join(err, err2, root.Close()); err != nil {
			return err
		}
		root = next
	}
	root.Close()
	limit := syscall.Rlimit{Cur: 200, Max: 200}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	t, err := tree(dir)
	if err != nil {
		return err
	}
	if _, err = t.Remove("d", true); err != nil {
		return err
	}
	var e expect
	e.names(filepath.Join(dir, "root"), []string{"", "/dir", "/dir/in", "/dir/in/deep", "/dir/z", "/f", "/file", "/home", "/home/deskhand", "/home/deskhand/token", "/home/other"})
	return e.err()
}

func TestRemoveTakesDeepDirectories(t *testing.T) {
	w := newWorld(t)
	child(t, "few descriptors", nil, w.dir)
}

// Root gives a file that it replaces to whom it belonged.
func TestWriteKeepsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	w := newWorld(t)
	path := filepath.Join(w.root, "file")
	w.must(t, os.Chown(path, nobody, nobody))
	if _, _, err := w.Write("file", strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	w.must(t, err)
	if s := info.Sys().(*syscall.Stat_t); s.Uid != nobody || s.Gid != nobody {
		t.Errorf("owner of the replaced file: got %d:%d, want %d:%d", s.Uid, s.Gid, nobody, nobody)
	}
}

// groups is somebody who may write to files of others because of a group, or because everybody may.
func groups(dir string) error {
	if err := errors.Join(syscall.Setgroups([]int{ours}), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		return err
	}
	t, err := tree(dir)
	if err != nil {
		return err
	}
	var e expect
	for name, want := range map[string]struct {
		group uint32
		mode  fs.FileMode
	}{"ours": {ours, 0o664}, "theirs": {nobody, 0o622}} {
		_, _, err := t.Write("open/"+name, strings.NewReader("new"))
		e.kind(name, err, nil)
		info, err := os.Stat(filepath.Join(dir, "root", "open", name))
		if err != nil {
			return err
		}
		if s := info.Sys().(*syscall.Stat_t); s.Gid != want.group || info.Mode() != want.mode {
			e.kind(name, fmt.Errorf("it belongs to the group %d, mode %v", s.Gid, info.Mode()), nil)
		}
	}
	return e.err()
}

const ours, theirs = 60_000, 60_001 // groups

// A file that we replace stays its group's where we may give it to that; else our own group gets no rights that others have not.
func TestWriteKeepsGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	w := newWorld(t)
	w.must(t, errors.Join(os.Mkdir(filepath.Join(w.root, "open"), 0o755), os.Chmod(filepath.Join(w.root, "open"), 0o777)))
	for name, c := range map[string]struct {
		group int
		mode  fs.FileMode
	}{"ours": {ours, 0o664}, "theirs": {theirs, 0o662}} {
		w.put(t, "root/open/"+name, "old")
		path := filepath.Join(w.root, "open", name)
		w.must(t, errors.Join(os.Chown(path, 0, c.group), os.Chmod(path, c.mode)))
	}
	for dir := w.dir; mode(t, dir)&fs.ModeSticky == 0 && dir != "/"; dir = filepath.Dir(dir) {
		w.must(t, os.Chmod(dir, 0o755))
	}
	child(t, "groups", nil, w.dir)
}

// No call keeps a descriptor, however it ends.
func TestCallsCloseDescriptors(t *testing.T) {
	w := newWorld(t)
	w.link(t, "../outside", "out")
	w.link(t, "dir", "link")
	count := func() int {
		found, err := os.ReadDir("/proc/self/fd")
		w.must(t, err)
		return len(found)
	}
	first := 0
	for round := range 3 {
		for _, path := range []string{"link/in/deep", "out/x", "home/deskhand", "none/none", "file/x", "", "new/a", "dir/z", "\x00"} {
			everyCall(w, path)
		}
		for _, a := range []io.Reader{archive(file("a", "x"), file("a/b", "x")), archive(file("..", "x")), strings.NewReader("x")} {
			_, _, err := w.Unpack(t.Context(), "new", a, false)
			wants(t, "unpack", err, files.ErrInvalid)
			if err == nil {
				t.Error("no error")
			}
		}
		if round == 0 {
			first = count()
		}
	}
	if last := count(); last > first {
		t.Errorf("open descriptors after the calls: got %d, want at most %d", last, first)
	}
}

// What was a file when the call looked is something else when it opens it. Only a swap at one stroke is quick enough for that.
func TestOpenNoticesSwapBeforeOpen(t *testing.T) {
	for name, other := range map[string]func(w world) string{
		"a link to what is private": func(w world) string { w.link(t, "home/deskhand/token", "link"); return "link" },
		"a pipe":                    func(w world) string { return specialFiles(t, w.root)[0] },
		"a directory":               func(world) string { return "dir" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, "root/x", "inside")
			x, y := filepath.Join(w.root, "x"), filepath.Join(w.root, other(w))
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-stop:
						return
					default:
						_ = unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, unix.RENAME_EXCHANGE)
					}
				}
			}()
			within(t, func() {
				for range 10_000 {
					f, _, err := w.Open("x")
					if err != nil {
						allowed(t, "open", err)
						continue
					}
					data, _ := io.ReadAll(f)
					f.Close()
					if string(data) != "inside" {
						t.Errorf("content read through Open: got %q, want inside", data)
					}
				}
			})
			close(stop)
			<-ended
		})
	}
}
