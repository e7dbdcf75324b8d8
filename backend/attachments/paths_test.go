package attachments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func look(root, q string, limit int) FoundPaths {
	f := &finder{root: root, want: []rune(strings.ToLower(q)), limit: limit}
	f.walk(context.Background())
	return f.found()
}

func namesIn(found FoundPaths) string {
	var names []string
	for _, p := range found.Items {
		names = append(names, p.Relative)
	}
	return strings.Join(names, " ")
}

func TestPathsAreFoundByTheirLetters(t *testing.T) {
	t.Parallel()
	root := lay(t, map[string]string{
		"main.go": "", "README.md": "", "src/composer.ts": "", "src/composer/Composer.svelte": "", "docs/main.md": "", "a b/ö.txt": "",
		".gitignore": "*.log\n/build/\n!keep.log\n# no\nnode_modules/\ndeep/**/out\n", "x.log": "", "keep.log": "", "build/main.go": "", "src/build/main.go": "",
		"node_modules/main/main.go": "", "src/node_modules/main.go": "", "deep/a/b/out": "", "deep/out": "", ".git/main": "",
		"src/.gitignore": "gen*.ts\n", "src/generated.ts": "", "generated.ts": "",
	})
	for _, tc := range []struct{ q, want string }{
		{"main.go", "main.go src/build/main.go"},
		{"composer", "src/composer src/composer.ts src/composer/Composer.svelte"},
		{"cmpsr", "src/composer src/composer.ts src/composer/Composer.svelte"},
		{"src/comp", "src/composer src/composer.ts src/composer/Composer.svelte"},
		{"Ö", "a b/ö.txt"},
		{"log", "keep.log"},
		{"generated", "generated.ts"},
		{"out", ""},
		{"nothing here", ""},
	} {
		if got := namesIn(look(root, tc.q, 10)); got != tc.want {
			t.Errorf("paths of %q: got %s, want %s", tc.q, got, tc.want)
		}
	}
	top := look(root, "", 4)
	if !top.More || slices.ContainsFunc(top.Items, func(p FoundPath) bool { return strings.Contains(p.Relative, "/") }) {
		t.Errorf("paths without letters, at most 4: got %+v, want only the top of the directory, and more told", top)
	}
	if p := look(root, "src", 1).Items[0]; !p.Directory || p.Path != filepath.Join(root, "src") {
		t.Errorf("first path of src: got %+v, want the directory %s", p, filepath.Join(root, "src"))
	}
}

// A directory that is larger than there is time for is looked at from its top, and that it was not all is said.
func TestALargeDirectoryIsLookedAtInPart(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/e/f.txt", i)] = ""
	}
	root := lay(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &finder{root: root, want: []rune("f"), limit: 5}
	f.walk(ctx)
	if found := f.found(); !found.More || len(found.Items) != 0 {
		t.Errorf("paths found without time: got %+v, want none, and more told", found)
	}
	if found := look(root, "f.txt", 5); !found.More || len(found.Items) != 5 {
		t.Errorf("paths of f.txt, at most 5: got %+v, want 5, and more told", found)
	}
}
