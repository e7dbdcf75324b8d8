//go:build unix

package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO in the place of the file must not hold anybody, and a link is followed.
func TestSettingsInStrangePlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSettings(filepath.Join(dir, "settings.json"))
	if err := syscall.Mkfifo(s.file, 0o600); err != nil {
		t.Skip(err)
	}
	if now, _ := s.look(); !strings.Contains(now.Problem, "not a regular file") {
		t.Errorf("%+v", now)
	}
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); err == nil {
		t.Error("a FIFO was replaced")
	}
	kept := filepath.Join(dir, "dotfiles", "deskhand.json")
	if err := errors.Join(os.Remove(s.file), os.Mkdir(filepath.Dir(kept), 0o700), os.WriteFile(kept, []byte(`{"a":1}`), 0o600), os.Symlink(kept, s.file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(s.file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if text := content(t, s); !strings.Contains(text, `"a": 1`) || !strings.Contains(text, `"memoryBudgetMiB": 1`) {
		t.Error(text)
	}
	if err := errors.Join(os.Remove(s.file), os.Mkdir(s.file, 0o700)); err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); !errors.As(err, &refused) || refused.Code != refusedBroken {
		t.Errorf("a directory: %v", err)
	}
}
