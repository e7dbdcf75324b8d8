package datadir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestAcquireInTheMomentOfUseTakesTheOtherDirectory: a start that found the old directory before a Use, and locks afterwards, uses the new
// directory.
func TestAcquireInTheMomentOfUseTakesTheOtherDirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	p := Paths{Data: filepath.Join(home, "data"), Config: filepath.Join(home, "config")}
	if err := p.follow(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(home, "new")
	if err := errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "deskhand.db"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	other, calls := p, 0
	lock, err := p.acquire(slog.New(slog.DiscardHandler), func() {
		if calls++; calls == 1 {
			if err := other.point(pointer{Directory: to}); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || p.Data != to || calls != 2 {
		t.Fatalf("acquire: got %s and %v after %d calls, want %s after 2", p.Data, err, calls, to)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}
