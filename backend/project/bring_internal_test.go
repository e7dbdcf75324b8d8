package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAFileThatCameMeanwhileStays: an agent may be at work beside a set-up, and write a file after the set-up has seen that there is none.
func TestAFileThatCameMeanwhileStays(t *testing.T) {
	repository, worktree := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(repository, ".env"), filepath.Join(worktree, ".env")} {
		if err := os.WriteFile(file, []byte(filepath.Dir(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := bringing{}
	for dir, root := range map[string]**os.Root{repository: &b.from, worktree: &b.to} {
		var err error
		if *root, err = os.OpenRoot(dir); err != nil {
			t.Fatal(err)
		}
	}
	defer b.close()
	done, err := b.file(".env")
	if got, _ := os.ReadFile(filepath.Join(worktree, ".env")); err != nil || done || string(got) != worktree {
		t.Errorf("file(.env) where there is one by then: got %v, %v, and %q in it; want it as it was", done, err, got)
	}
	if err := tidy(b.to); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(worktree); len(list) != 1 {
		t.Errorf("the worktree after that: got %v, want .env alone", list)
	}
}

// TestTidyDeletesNothingOfOthers.
func TestTidyDeletesNothingOfOthers(t *testing.T) {
	for _, name := range []string{".gitignore", "mine"} {
		dir := t.TempDir()
		file := filepath.Join(dir, partly, name)
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("/mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Tidy(dir)
		if _, gone := os.Stat(file); err == nil || gone != nil {
			t.Errorf("Tidy where somebody has %s: got %v, and the file %v; want an error, and the file", filepath.Join(partly, name), err, gone)
		}
	}
}
