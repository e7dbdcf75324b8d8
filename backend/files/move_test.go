package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskhand/backend/files"
)

func TestMoveRenamesAndRefuses(t *testing.T) {
	for _, c := range []struct {
		from, to  string
		overwrite bool
		want      error
		at        string // where the content is then
		content   string
	}{
		{"file", "new", false, nil, "new", "old"},
		{"file", "far/away/new", false, nil, "far/away/new", "old"},
		{"dir", "moved", false, nil, "moved/in/deep", "deep"},
		{"dir/in", "in", false, nil, "in/deep", "deep"},
		{"file", "dir/z", false, files.ErrExists, "dir/z", "z"},
		{"file", "dir/z", true, nil, "dir/z", "old"},
		{"file", "link", true, nil, "link", "old"}, // the link itself is replaced
		{"link", "dir/link", false, nil, "dir/z", "z"},
		{"file", "file", false, files.ErrExists, "file", "old"},
		{"file", "file", true, nil, "file", "old"},
		{"dir", "dir", true, nil, "dir/z", "z"},
		{"file", "hard", true, nil, "hard", "old"},
		{"file", "hard", false, files.ErrExists, "file", "old"},
		{"file", "dir", true, files.ErrExists, "file", "old"},
		{"dir", "file", true, files.ErrExists, "file", "old"},
		{"dir", "empty", true, nil, "empty/z", "z"},
		{"dir", "empty", false, files.ErrExists, "dir/z", "z"},
		{"empty", "dir", true, files.ErrNotEmpty, "dir/z", "z"},
		{"dir", "dir/in/x", false, files.ErrInvalid, "dir/z", "z"},
		{"dir", "dir/new", false, files.ErrInvalid, "dir/z", "z"},
		{"dir", "dir/new/made/x", false, files.ErrInvalid, "dir/z", "z"},
		{"dir", "dirlink/x", false, files.ErrInvalid, "dir/z", "z"},
		{"dir/in", "dir/new", false, nil, "dir/new/deep", "deep"},
		{"none", "made/x", false, files.ErrNotFound, "file", "old"},
		{"none/x", "made/x", false, files.ErrNotFound, "file", "old"},
		{"file", "file/x", false, files.ErrInvalid, "file", "old"},
		{"file", "", true, files.ErrOutside, "file", "old"},
		{"file", "home", true, files.ErrOutside, "file", "old"},
		{"dir", "home", true, files.ErrOutside, "dir/z", "z"},
		{"home", "x", false, files.ErrOutside, "home/other", "other"},
		{"", "x", false, files.ErrOutside, "file", "old"},
		{"home/other", "x", false, nil, "x", "other"},
		{"file", "home/deskhand/x", false, files.ErrOutside, "file", "old"},
		{"home/deskhand/token", "x", false, files.ErrOutside, "file", "old"},
		{"file", "made/" + strings.Repeat("x", 256), false, files.ErrInvalid, "file", "old"},
	} {
		t.Run(fmt.Sprintf("%.20s to %.20s, %v", c.from, c.to, c.overwrite), func(t *testing.T) {
			w := diskWorld(t)
			w.link(t, "dir/z", "link")
			w.link(t, "dir", "dirlink")
			w.put(t, "root/empty/", "")
			w.must(t, os.Link(filepath.Join(w.root, "file"), filepath.Join(w.root, "hard")))
			before := names(t, w.root)
			from, to, err := w.Move(t.Context(), c.from, c.to, c.overwrite)
			wants(t, "", err, c.want)
			if err == nil && (from != filepath.Join(w.root, c.from) || to != filepath.Join(w.root, c.to)) {
				t.Errorf("Move(%s, %s): got the paths %q and %q, want both below %s", c.from, c.to, from, to, w.root)
			}
			if got := w.read(t, "root/"+c.at); got != c.content {
				t.Errorf("%s after Move(%s, %s): got %q, want %q", c.at, c.from, c.to, got, c.content)
			}
			after := names(t, w.root)
			if err != nil && !slices.Equal(before, after) {
				t.Errorf("entries after a failed Move(%s, %s): got %q, want %q", c.from, c.to, after, before)
			}
			if err == nil && c.from != c.to && slices.Contains(after, c.from) {
				t.Errorf("Move(%s, %s): got the source still there, want it gone", c.from, c.to)
			}
		})
	}
}

// Of many that move to one name, one gets it, and what the others wanted to move stays.
func TestMoveIsFirstComeFirstServed(t *testing.T) {
	t.Run("on one file system", func(t *testing.T) {
		w := newWorld(t)
		firstCome(t, w, w.root, 300)
	})
	t.Run("across two", func(t *testing.T) {
		w, second := far(t)
		firstCome(t, w, second, 100)
	})
}

func firstCome(t *testing.T, w world, to string, rounds int) {
	t.Helper()
	for round := range rounds {
		var won atomic.Int32
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range 8 {
			from := fmt.Sprintf("mover%d-%d", round, i)
			w.put(t, "root/"+from, from)
			all.Go(func() {
				<-start
				if _, _, err := w.Move(t.Context(), from, filepath.Join(to, fmt.Sprintf("goal%d", round)), false); err == nil {
					won.Add(1)
				} else {
					wants(t, from, err, files.ErrExists)
				}
			})
		}
		close(start)
		all.Wait()
		left, _ := filepath.Glob(filepath.Join(w.root, fmt.Sprintf("mover%d-*", round)))
		if won.Load() != 1 || len(left) != 7 {
			t.Fatalf("round %d of moves at once: got %d winners and %d files left, want 1 and 7", round, won.Load(), len(left))
		}
	}
	noRemains(t, to)
}

// far is a world with a second root on another file system.
func far(t *testing.T) (w world, second string) {
	t.Helper()
	w = diskWorld(t)
	second = inMemory(t)
	if second == "" {
		t.Skip("there is no /dev/shm, and so no second file system")
	}
	if sameDevice(t, second, w.root) {
		t.Skip("the temporary directory and /dev/shm are one file system")
	}
	w.Tree = open(t, files.Config{Roots: []string{w.root, second}, Private: []string{w.private}})
	return w, second
}

func TestMoveAcrossDevices(t *testing.T) {
	w, second := far(t)
	old := time.Date(2020, 2, 3, 4, 5, 6, 700, time.UTC)
	w.put(t, "root/dir/in/exe", "run")
	w.link(t, "in/deep", "dir/link")
	w.must(t, os.Chmod(filepath.Join(w.root, "dir/in/exe"), 0o751))
	for _, name := range []string{"dir/z", "dir/in"} {
		w.must(t, os.Chtimes(filepath.Join(w.root, name), old, old))
	}
	w.must(t, os.Chmod(filepath.Join(w.root, "dir/in"), 0o755))
	want := snapshot(t, filepath.Join(w.root, "dir"))
	delete(want, ".")

	to := filepath.Join(second, "made", "dir")
	if _, _, err := w.Move(t.Context(), "dir", to, false); err != nil {
		t.Fatal(err)
	}
	got := snapshot(t, to)
	delete(got, ".")
	for name := range want {
		if fields := strings.Fields(want[name]); strings.HasPrefix(fields[0], "L") { // a link's own time is not kept
			want[name], got[name] = fields[2], strings.Fields(got[name])[2]
		}
		if got[name] != want[name] {
			t.Errorf("%s after Move across devices: got %q, want %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("entries after Move across devices: got %d, want %d", len(got), len(want))
	}
	if _, err := os.Stat(filepath.Join(w.root, "dir")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the source is still there")
	}

	for _, c := range []struct {
		from, to  string
		overwrite bool
		want      error
	}{
		{"file", filepath.Join(to, "z"), false, files.ErrExists},
		{"file", to, true, files.ErrExists},
		{filepath.Join(to, "in"), "file", true, files.ErrExists},
		{filepath.Join(to, "in"), "home", true, files.ErrOutside},
		{"home", filepath.Join(second, "home"), false, files.ErrOutside},
		{filepath.Join(to, "z"), "home/deskhand/z", false, files.ErrOutside},
		{"file", filepath.Join(to, "z"), true, nil},
	} {
		_, _, err := w.Move(t.Context(), c.from, c.to, c.overwrite)
		wants(t, c.from+" to "+c.to, err, c.want)
	}
	w.put(t, "root/full/x", "x")
	_, _, err := w.Move(t.Context(), "full", to, true)
	wants(t, "on a full directory", err, files.ErrNotEmpty)
	if data, _ := os.ReadFile(filepath.Join(to, "z")); string(data) != "old" {
		t.Errorf("file in the full target: got %q, want old", data)
	}
	noRemains(t, w.root)
	noRemains(t, second)
}

func TestMoveAcrossDevicesLeavesNothingOnFailure(t *testing.T) {
	w, second := far(t)
	specialFiles(t, filepath.Join(w.root, "dir"))
	before := snapshot(t, w.root)
	_, _, err := w.Move(t.Context(), "dir", filepath.Join(second, "a", "b"), false)
	wants(t, "a pipe", err, files.ErrInvalid)
	_, _, err = w.Move(t.Context(), "dir/pipe", filepath.Join(second, "a", "b"), false)
	wants(t, "a pipe", err, files.ErrInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = w.Move(ctx, "file", filepath.Join(second, "a", "b"), false)
	wants(t, "cut", err, context.Canceled)
	if got := names(t, second); len(got) != 0 {
		t.Errorf("entries after a cut Move: got %q, want none", got)
	}
	unchanged(t, w.root, before)
}

// cutAfter is cancelled once it was asked so often.
type cutAfter struct {
	context.Context

	left atomic.Int32
}

func (c *cutAfter) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// A copy of many entries is cut in the middle.
func TestMoveAcrossDevicesEndsWithContext(t *testing.T) {
	w, second := far(t)
	for i := range 500 {
		w.put(t, fmt.Sprintf("root/many/%d/f", i), strings.Repeat("x", 1000))
	}
	before := snapshot(t, w.root)
	ctx := &cutAfter{Context: t.Context()}
	ctx.left.Store(300)
	_, _, err := w.Move(ctx, "many", filepath.Join(second, "many"), false)
	wants(t, "cut", err, context.Canceled)
	if got := names(t, second); len(got) != 0 {
		t.Errorf("entries after a cut Move: got %d, want none", len(got))
	}
	unchanged(t, w.root, before)
}
