package backend_test

import (
	"log/slog"
	"os"
	"path/filepath"
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
