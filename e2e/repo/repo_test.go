// Package repo tests the rules of this repository that no linter knows: every package says what it hides, and is named with the
// words of docs/glossary.md.
package repo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// goPackage is a folder with Go files: its name, and the package comment if it has one.
type goPackage struct{ folder, name, doc string }

func packages(t *testing.T) []goPackage {
	t.Helper()
	found := map[string]*goPackage{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "node_modules" || name == "testdata" || name[0] == '.') {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		p := found[folder]
		if p == nil {
			p = &goPackage{folder: folder, name: strings.TrimSuffix(file.Name.Name, "_test")}
			found[folder] = p
		}
		p.doc += file.Doc.Text()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for _, p := range found {
		all = append(all, *p)
	}
	if len(all) < 3 {
		t.Fatalf("only %d packages were found below %s", len(all), root)
	}
	return all
}

func TestEveryPackageSaysWhatItHides(t *testing.T) {
	for _, p := range packages(t) {
		switch {
		case p.doc == "":
			t.Errorf("%s: package %s has no package comment; begin it with what the package hides", p.folder, p.name)
		case p.name != "main" && !strings.HasPrefix(p.doc, "Package "+p.name+" "):
			t.Errorf("%s: the package comment must begin with %q", p.folder, "Package "+p.name+" ")
		}
	}
}

func TestNoPackageHasAWordToAvoid(t *testing.T) {
	avoid := wordsToAvoid(t)
	for _, p := range packages(t) {
		folder := filepath.Base(p.folder)
		for _, name := range []string{p.name, folder} {
			if slices.Contains(avoid, name) {
				t.Errorf("%s: docs/glossary.md says what to say instead of %q", p.folder, name)
			}
		}
	}
}

// wordsToAvoid reads the first column of the last table of the glossary.
func wordsToAvoid(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Words to avoid\n")
	if !ok {
		t.Fatal("docs/glossary.md has no section \"Words to avoid\"")
	}
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z, ]+) \|`).FindAllStringSubmatch(section, -1) {
		words = append(words, strings.Split(row[1], ", ")...)
	}
	if !slices.Contains(words, "manager") || !slices.Contains(words, "helper") {
		t.Fatalf("the words to avoid were not read: %q", words)
	}
	return words
}
