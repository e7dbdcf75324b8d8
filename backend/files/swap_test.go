package files_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deskhand/backend/files"
)

// swapping gives the name x in turn to each of the others, again and again until the test ends. count is how often.
func swapping(t *testing.T, dir, x string, others ...string) (count *atomic.Int64, stop func()) {
	t.Helper()
	count = &atomic.Int64{}
	end := make(chan struct{})
	trash, err := os.MkdirTemp(filepath.Dir(dir), "trash-") //nolint:usetesting // beside it, to be renamed to
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer os.RemoveAll(trash)
		at := filepath.Join(dir, x)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			other := filepath.Join(dir, others[i%len(others)])
			if os.Rename(other, at) == nil {
				count.Add(1)
				_ = os.Rename(at, other)
			} else { // a call has made one in between
				gone := filepath.Join(trash, fmt.Sprint(i))
				_ = os.Rename(at, gone)
				_ = os.RemoveAll(gone)
			}
			if i%16 == 0 {
				runtime.Gosched()
			}
		}
	})
	return count, sync.OnceFunc(func() { close(end); all.Wait() })
}

// hammer runs f as often as it should, and then until there have been enough swaps.
func hammer(t *testing.T, swaps *atomic.Int64, f func(i int)) {
	t.Helper()
	rounds, enough := 400, int64(5000)
	if testing.Short() {
		rounds, enough = 100, 500
	}
	i := 0
	for ; i < rounds || swaps.Load() < enough; i++ {
		if f(i); i > 20*rounds {
			t.Fatalf("hammer: got %d swaps in %d rounds, want %d", swaps.Load(), i, enough)
		}
	}
	t.Logf("%d rounds during %d swaps", i, swaps.Load())
}

// allowed is what a call may say of a name that changes all the time.
func allowed(t *testing.T, call string, err error) {
	t.Helper()
	if errors.Is(err, files.ErrFailed) {
		t.Errorf("%s: got error %v, caused by %v, want no ErrFailed", call, err, errors.Unwrap(err))
	}
}

// A directory on the way is swapped for a link to another place.
func TestSwappedDirectoryLeadsNowhere(t *testing.T) {
	for name, target := range map[string]string{"outside": "../outside", "absolute": "/etc", "private": "home/deskhand"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, "root/real/canary", "inside")
			w.put(t, "root/real/token", "inside")
			w.put(t, "root/real/sub/canary", "inside")
			w.put(t, "root/real/hostname", "inside")
			w.link(t, target, "link")
			outside, private := snapshot(t, w.outside), snapshot(t, w.private)
			swaps, stop := swapping(t, w.root, "x", "real", "link")
			defer stop()
			hammer(t, swaps, func(i int) {
				for _, name := range []string{"x/canary", "x/token", "x/sub/canary", "x/hostname", "x"} {
					f, _, err := w.Open(name)
					if err == nil {
						data, _ := io.ReadAll(f)
						f.Close()
						if string(data) != "inside" {
							t.Errorf("%s: got %q read, want inside", name, data)
						}
					}
					allowed(t, "open", err)
				}
				entries, err := w.List("x")
				allowed(t, "list", err)
				for _, e := range entries {
					if e.Name == "passwd" || e.Size == int64(len(secret)) && e.Kind == files.File {
						t.Errorf("List(x): got %s, want no entry from outside", e.Name)
					}
				}
				_, err = w.Stat("x/canary")
				allowed(t, "stat", err)
				for _, name := range []string{"x/canary", "x/new", "x/sub/new", "x/made/new"} {
					_, _, err = w.Write(name, strings.NewReader("inside"))
					allowed(t, "write", err)
				}
				_, err = w.MakeDir(fmt.Sprintf("x/dirs/%d", i%7))
				allowed(t, "mkdir", err)
				_, err = w.Remove("x/new", true)
				allowed(t, "remove", err)
				_, err = w.Remove("x/dirs", true)
				allowed(t, "remove all", err)
				_, _, err = w.Move(t.Context(), "x/sub/new", "x/made/moved", true)
				allowed(t, "move", err)
				_, _, err = w.Move(t.Context(), "x/canary", "out", true)
				if err == nil {
					if got := w.read(t, "root/out"); got != "inside" {
						t.Errorf("file moved out of x: got %q, want inside", got)
					}
					_, _, err = w.Move(t.Context(), "out", "x/canary", true)
				}
				allowed(t, "move", err)
				if i%4 == 0 {
					_, _, err = w.Unpack(t.Context(), "x", archive(file("canary", "inside"), file("sub/unpacked", "inside"), file("token", "inside")), false)
					allowed(t, "unpack", err)
					_, _, err = w.Unpack(t.Context(), "", archive(file("x/canary", "inside"), file("x/sub/canary", "inside"), file("x/token", "inside")), false)
					allowed(t, "unpack", err)
				}
				if root, err := w.Root("x"); err == nil {
					if _, err := root.Lstat("passwd"); err == nil {
						t.Error("a root leads outside")
					}
					root.Close()
				}
			})
			stop()
			unchanged(t, w.outside, outside)
			unchanged(t, w.private, private)
		})
	}
}

// What is to be used itself is swapped for a link, or for a pipe.
func TestSwappedFileLeadsNowhere(t *testing.T) {
	w := newWorld(t)
	w.put(t, "root/real", "inside")
	w.put(t, "root/realdir/x", "inside")
	w.link(t, "../outside/canary", "link")
	w.link(t, "home/deskhand/token", "link2")
	w.link(t, "../outside", "link3")
	outside, private := snapshot(t, w.outside), snapshot(t, w.private)
	swaps, stop := swapping(t, w.root, "x", append(specialFiles(t, w.root), "real", "link", "link2", "realdir", "link3")...)
	defer stop()
	within(t, func() {
		hammer(t, swaps, func(i int) {
			f, _, err := w.Open("x")
			if err == nil {
				data, _ := io.ReadAll(f)
				f.Close()
				if string(data) != "inside" && string(data) != "written" {
					t.Errorf("file that is swapped: got %q read, want inside or written", data)
				}
			}
			allowed(t, "open", err)
			_, err = w.List("x")
			allowed(t, "list", err)
			_, err = w.List("x/y")
			allowed(t, "list below", err)
			_, _, err = w.Write("x", strings.NewReader("written"))
			allowed(t, "write", err)
			_, _, err = w.Write("x/canary", strings.NewReader("written"))
			allowed(t, "write below", err)
			_, _, err = w.Unpack(t.Context(), "x", archive(file("canary", "written")), false)
			allowed(t, "unpack", err)
			_, err = w.MakeDir("x/made")
			allowed(t, "mkdir", err)
		})
	})
	stop()
	unchanged(t, w.outside, outside)
	unchanged(t, w.private, private)
}

// The root itself is swapped, which only somebody can do who may change what it lies in.
func TestSwappedRootLeadsNowhere(t *testing.T) {
	w := newWorld(t)
	outside := snapshot(t, w.outside)
	w.put(t, "root/canary", "inside")
	w.must(t, os.Symlink("outside", filepath.Join(w.dir, "link")))
	w.must(t, os.Rename(w.root, filepath.Join(w.dir, "real")))
	swaps, stop := swapping(t, w.dir, "root", "real", "link")
	defer stop()
	hammer(t, swaps, func(int) {
		for range 10 {
			f, _, err := w.Open("canary")
			if err == nil {
				data, _ := io.ReadAll(f)
				f.Close()
				if string(data) == secret {
					t.Error("the secret was read")
				}
			}
			allowed(t, "open", err)
		}
		_, _, err := w.Write("new", strings.NewReader("inside"))
		allowed(t, "write", err)
	})
	stop()
	unchanged(t, w.outside, outside)
}

// A directory that is removed or copied with all that is in it is swapped, inside, for a link to outside.
func TestRemoveNoticesSwappedDirectory(t *testing.T) {
	w := newWorld(t)
	outside := snapshot(t, w.outside)
	w.put(t, "root/keep/canary", "inside")
	var swaps atomic.Int64
	hammer(t, &swaps, func(i int) {
		w.put(t, "root/tree/x/canary", "inside")
		w.put(t, "root/tree/x/sub/canary", "inside")
		w.must(t, os.Symlink("../../outside", filepath.Join(w.root, "tree", "link")))
		count, stop := swapping(t, filepath.Join(w.root, "tree"), "y", "x", "link")
		_, err := w.Remove("tree", true)
		allowed(t, "remove", err)
		stop()
		swaps.Add(count.Load() + 1)
		_ = os.RemoveAll(filepath.Join(w.root, "tree"))
	})
	unchanged(t, w.outside, outside)
}

// The way to a private directory changes its names while calls look for it.
func TestSwappedParentKeepsPrivateDirectoryClosed(t *testing.T) {
	w := newWorld(t)
	private := snapshot(t, w.private)
	w.put(t, "root/decoy/deskhand/token", "inside")
	w.must(t, os.Rename(filepath.Join(w.root, "home"), filepath.Join(w.root, "house")))
	swaps, stop := swapping(t, w.root, "home", "house", "decoy")
	defer stop()
	hammer(t, swaps, func(int) {
		f, _, err := w.Open("home/deskhand/token")
		if err == nil {
			data, _ := io.ReadAll(f)
			f.Close()
			if string(data) == secret {
				t.Error("the secret was read")
			}
		}
		allowed(t, "open", err)
		_, _, err = w.Write("home/deskhand/token", strings.NewReader("inside"))
		allowed(t, "write", err)
		_, _, err = w.Unpack(t.Context(), "home", archive(file("deskhand/token", "inside")), false)
		allowed(t, "unpack", err)
	})
	stop()
	w.must(t, os.RemoveAll(filepath.Join(w.root, "home")))
	found := ""
	for _, name := range []string{"house", "home", "decoy"} {
		if data, err := os.ReadFile(filepath.Join(w.root, name, "deskhand", "token")); err == nil && string(data) == secret {
			found = filepath.Join(w.root, name, "deskhand")
		}
	}
	if found == "" {
		t.Fatal("the private directory has lost its token")
	}
	unchanged(t, found, private)
}
