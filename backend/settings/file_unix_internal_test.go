//go:build unix

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deskhand/backend/refusal"
)

// A FIFO in place of the file does not block a reader, and a link is followed.
func TestSettingsOfSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSettingsFile(filepath.Join(dir, "settings.json"))
	if err := syscall.Mkfifo(s.file, 0o600); err != nil {
		t.Skip(err)
	}
	if now, _ := s.read(); !strings.Contains(now.Problem, "not a regular file") {
		t.Errorf("FIFO: got %+v, want the problem not a regular file", now)
	}
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); err == nil {
		t.Error("change of a FIFO: got no error, want one")
	}
	kept := filepath.Join(dir, "dotfiles", "deskhand.json")
	if err := errors.Join(os.Remove(s.file), os.Mkdir(filepath.Dir(kept), 0o700), os.WriteFile(kept, []byte(`{"a":1}`), 0o600), os.Symlink(kept, s.file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(s.file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("link after a change: got %v, %v, want a link", info, err)
	}
	if text := content(t, s); !strings.Contains(text, `"a": 1`) || !strings.Contains(text, `"memoryBudgetMiB": 1`) {
		t.Errorf("linked file: got %s, want both members", text)
	}
	if err := errors.Join(os.Remove(s.file), os.Mkdir(s.file, 0o700)); err != nil {
		t.Fatal(err)
	}
	var refused *refusal.Error
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); !errors.As(err, &refused) || refused.Code != refusedBroken {
		t.Errorf("change of a directory: got %v, want %s", err, refusedBroken)
	}
}
