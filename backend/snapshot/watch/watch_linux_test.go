package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"deskhand/backend/snapshot/watch"
)

func TestTouchedNamesWhatWasDone(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	write := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	if err := errors.Join(os.Mkdir(sub, 0o700), write("a", "1"), write("b", "1"), write("sub/c", "1"), write("sub/d", "1")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
		want []string
		lost bool
	}{
		{"nothing", func() error { return nil }, nil, false},
		{"reading", func() error { _, err := os.ReadFile(filepath.Join(dir, "a")); return err }, nil, false},
		{"writing", func() error { return write("a", "2") }, []string{"a"}, false},
		{"twice", func() error { return errors.Join(write("sub/c", "2"), write("sub/c", "3")) }, []string{"sub/c"}, false},
		{"permissions", func() error { return os.Chmod(filepath.Join(dir, "b"), 0o640) }, []string{"b"}, false},
		{"replacing", func() error { return os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")) }, []string{"a", "b"}, false},
		{"removing", func() error { return os.Remove(filepath.Join(sub, "d")) }, []string{"sub/d"}, false},
		{"a new folder", func() error { return os.Mkdir(filepath.Join(dir, "new"), 0o700) }, nil, true},
		{"a folder that moves", func() error { return os.Rename(sub, filepath.Join(dir, "moved")) }, nil, true},
		{"the directory moves", func() error { return os.Rename(dir, dir+"-moved") }, nil, true},
	} {
		w, err := watch.New()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Add(dir, "")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(sub); err == nil {
			if err := w.Add(sub, "sub"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		got, err := w.Touched()
		slices.Sort(got.Paths)
		if err != nil || got.Lost != c.lost || !c.lost && !slices.Equal(got.Paths, c.want) {
			t.Errorf("%s: got %+v, %v; want %q, lost %v", c.name, got, err, c.want, c.lost)
		}
		if again, err := w.Touched(); err != nil || again.Paths != nil || again.Lost {
			t.Errorf("%s: got %+v, %v a second time; want nothing", c.name, again, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := w.Touched(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got %v of a closed watch; want %v", c.name, err, os.ErrClosed)
		}
	}
}

// TestTouchedTellsOfAQueueThatRanOver: Touched does not take a queue that ran over for a short queue.
func TestTouchedTellsOfAQueueThatRanOver(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	most, err := strconv.Atoi(string(text[:len(text)-1]))
	if err != nil || most > 20_000 {
		t.Skip("the queue is too long to be filled in a test")
	}
	dir := t.TempDir()
	w, err := watch.New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(dir, ""); err != nil {
		t.Fatal(err)
	}
	for i := range most/2 + 1 { // every file is created and then gets permissions
		name := filepath.Join(dir, strconv.Itoa(i%50))
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.Touched(); err != nil || !got.Lost {
		t.Errorf("got %d names, lost %v, %v; want lost", len(got.Paths), got.Lost, err)
	}
}
