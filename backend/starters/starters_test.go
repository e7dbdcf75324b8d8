package starters

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStartersOfDirectory(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  Starters
	}{
		{"nothing", nil, Starters{}},
		{"a repository with nothing in it", map[string]string{".git/HEAD": "ref: refs/heads/main\n"}, Starters{Repository: true}},
		{"a Makefile goes before what it calls", map[string]string{"Makefile": "all:\n\tgo build\ntest: all\n\tgo test ./...\n", "go.mod": "module x\n"}, Starters{Files: true, Tests: "make test"}},
		{"a Makefile without tests", map[string]string{"Makefile": "all:\n\ttest: no target\n", "Cargo.toml": "[package]\n"}, Starters{Files: true, Tests: "cargo test"}},
		{"what npm writes is no test", map[string]string{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, Starters{Files: true}},
		{"a script", map[string]string{"package.json": `{"scripts":{"test":"vitest run"}}`, ".git/HEAD": "x"}, Starters{Files: true, Repository: true, Tests: "npm test"}},
		{"a broken package.json", map[string]string{"package.json": `{"scripts":`}, Starters{Files: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if got := startersIn(root); got != test.want {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// A project file that is a link out of the directory, or a directory, gives no hint.
func TestStartersLookNowhereElse(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "Makefile")
	if err := os.WriteFile(outside, []byte("test:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "Makefile")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "go.mod"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if got := startersIn(root); got != (Starters{Files: true}) {
		t.Fatalf("got %+v", got)
	}
}
