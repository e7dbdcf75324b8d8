package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPrivateDirectories: files in a directory that everybody may change are ours alone, and a used directory keeps its rights. The test was
// never run on Windows.
func TestPrivateDirectories(t *testing.T) {
	open := filepath.Join(os.Getenv("SystemDrive")+`\`, "deskhand-test")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	others := func(dir string) []string {
		t.Helper()
		list, me, err := grants(dir)
		if err != nil {
			t.Fatal(err)
		}
		return strangers(list, me)
	}
	if others(open) == nil {
		t.Skip("nobody else may change what is below the drive")
	}
	made, empty, used := filepath.Join(open, "above", "made"), filepath.Join(open, "empty"), filepath.Join(open, "used")
	for _, dir := range []string{empty, filepath.Join(used, "in")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for dir, alone := range map[string]bool{made: true, empty: true, used: false} {
		if err := MakePrivate(dir); err != nil {
			t.Fatal(err)
		}
		if got := others(dir); (got == nil) != alone {
			t.Errorf("%s may be used by %v", dir, got)
		}
	}
	within := filepath.Join(made, "token")
	if err := os.WriteFile(within, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := others(within); got != nil {
		t.Errorf("what is made in it may be used by %v", got)
	}
}
