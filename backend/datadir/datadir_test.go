package datadir_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend/datadir"
)

// TestLogIsPutAsideWhenLarge: a log of more than 8 MiB is renamed, and keeps growing when the rename fails, as on Windows while the holder of
// the data has the log open.
func TestLogIsPutAsideWhenLarge(t *testing.T) {
	places, err := datadir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(places.State, "deskhand.log")
	writeAll := func(word string) {
		t.Helper()
		logger, log, err := places.OpenLog(slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("said", "word", word)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	size := func(name string) int64 {
		t.Helper()
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	writeAll("first")
	if err := os.Truncate(name, 9<<20); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(name+".1", "file")
	if err := os.MkdirAll(filepath.Dir(inTheWay), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writeAll("second")
	if size(name) <= 9<<20 {
		t.Errorf("what was written is not in the log that stayed: %d bytes", size(name))
	}
	if err := os.RemoveAll(name + ".1"); err != nil {
		t.Fatal(err)
	}
	writeAll("third")
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), "third") || strings.Contains(string(text), "second") || size(name+".1") <= 9<<20 {
		t.Errorf("it was not put aside once it could be: %q, %v", text, err)
	}
}

// TestLockHoldsWithoutItsFile: removing the lock file of a running program admits no second program.
func TestLockHoldsWithoutItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := datadir.Acquire(dir)
	if err != nil {
		t.Fatalf("Acquire: got %v, want the lock", err)
	}
	defer func() {
		if err := first.Release(); err != nil {
			t.Errorf("Release: got %v, want no error", err)
		}
	}()
	err = os.Remove(filepath.Join(dir, "lock"))
	if runtime.GOOS == "windows" {
		if err == nil {
			t.Error("removing the lock file of a running program: got no error, want one")
		}
		return
	}
	if err != nil {
		t.Fatalf("removing the lock file: got %v, want no error", err)
	}
	for _, state := range []string{"removed", "made anew by the second program"} {
		if _, err := datadir.Acquire(dir); !isHeld(err) {
			t.Errorf("Acquire with a lock file that was %s: got %v, want a HeldError", state, err)
		}
	}
}

// TestPathsAcquireHoldsTheDirectoryOnce: a second Acquire names the holder, and the record of the holder goes with its lock.
func TestPathsAcquireHoldsTheDirectoryOnce(t *testing.T) {
	t.Parallel()
	paths, err := datadir.Find(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatalf("Find: got %v, want no error", err)
	}
	lock, err := paths.Acquire(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Acquire: got error %v, want the lock", err)
	}
	if err := lock.Describe(datadir.Owner{PID: 4711, Kind: "window", URL: "http://127.0.0.1:1"}); err != nil {
		t.Fatalf("Describe: got %v, want no error", err)
	}
	again := paths
	_, err = again.Acquire(slog.New(slog.DiscardHandler))
	if held, is := errors.AsType[*datadir.HeldError](err); !is || held.PID != 4711 || held.Kind != "window" {
		t.Errorf("a second Acquire: got %v, want a HeldError of the window with process id 4711", err)
	}
	if o, err := paths.Owner(); err != nil || o.PID != 4711 {
		t.Errorf("Owner: got %+v, %v, want process id 4711", o, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatalf("Release: got %v, want no error", err)
	}
	if o, err := paths.Owner(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Owner after Release: got %+v, %v, want fs.ErrNotExist", o, err)
	}
}

func isHeld(err error) bool {
	_, is := errors.AsType[*datadir.HeldError](err)
	return is
}
