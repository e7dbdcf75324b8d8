package backend_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend"
)

// TestALargeLogIsPutAsideIfItCan: one that cannot be goes on. On Windows the process that holds the data has it open.
func TestALargeLogIsPutAsideIfItCan(t *testing.T) {
	places, err := backend.FindPlaces(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(places.State, "deskhand.log")
	writeAll := func(word string) {
		t.Helper()
		logger, log, err := backend.OpenLog(places, slog.LevelInfo)
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

// A lock file that somebody removes under a running program lets no second one into its data.
func TestARemovedLockFileLetsNobodyIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	places, err := backend.FindPlaces(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := backend.Config{Places: places, Kind: "server", Self: os.Args[0], Logger: slog.New(slog.DiscardHandler)}
	first, err := backend.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	err = os.Remove(filepath.Join(dir, "lock"))
	if runtime.GOOS == "windows" {
		if err == nil {
			t.Error("removing the lock file of a running program: got no error, want one")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"the lock file", "the lock file, which a second program has made anew"} {
		second, err := backend.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if second.Alone() == nil {
			t.Errorf("without %s: got a second program that has the data, want one that is told who has it", name)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
}
