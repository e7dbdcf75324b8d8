package tools

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDownloadDirRefusesPrivateDirectory: our own directories stay closed by whatever name the home is reached.
func TestDownloadDirRefusesPrivateDirectory(t *testing.T) {
	real := filepath.Join(t.TempDir(), "real")
	private := filepath.Join(real, ".local", "share", "deskhand")
	if err := os.MkdirAll(private, 0o700); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(real, home); err != nil { // as on systems where homes are mounted elsewhere
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	c := &caller{Server: Open(Config{Private: []string{filepath.Join(home, ".local", "share", "deskhand")}})}
	dir, err := c.downloadDir("~/.local/share/deskhand/new", home)
	if err == nil {
		t.Errorf("downloadDir among Deskhand's own: got %s, want an error", dir.Name())
		_ = dir.Close()
	}
}
