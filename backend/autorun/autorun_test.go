package autorun

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func lines(t *testing.T, name string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

func TestStartsKnowsFilesThatStartPrograms(t *testing.T) {
	t.Parallel()
	list := lines(t, "testdata/starts.txt")
	if len(list) < 113 {
		t.Errorf("got %d paths in testdata/starts.txt, want 113 or more", len(list))
	}
	for _, name := range list {
		if !Starts(name) {
			t.Errorf("Starts(%q): got false, want true", name)
		}
		if below := path.Join("some/folder", strings.TrimPrefix(name, "/")); !Starts(below) {
			t.Errorf("Starts(%q): got false, want true: the same file in a folder", below)
		}
	}
	for _, name := range lines(t, "testdata/quiet.txt") {
		if Starts(name) {
			t.Errorf("Starts(%q): got true, want false", name)
		}
	}
}

// Each file that an agent reads by itself is one whose edit is asked about: the table has no place that only one of the two knows.
func TestStartsCoversThePlacesOfAgents(t *testing.T) {
	t.Parallel()
	for _, p := range Places(nil) {
		name := strings.ReplaceAll(p.Path, "*", "x")
		if p.Folder() {
			name += "x"
		}
		if !Starts(name) {
			t.Errorf("Starts(%q): got false, want true: agents read %s", name, p.Path)
		}
	}
}

func TestTableIsWellFormed(t *testing.T) {
	t.Parallel()
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	sourced := func(what string, list []string) {
		if len(list) == 0 {
			t.Errorf("%s has no source", what)
		}
		for _, s := range list {
			if !strings.HasPrefix(s, "https://") {
				t.Errorf("%s: got source %q, want an address with https", what, s)
			}
		}
	}
	for name, set := range all.Sets {
		sourced(name, set.Source)
		for _, p := range set.Places {
			if _, err := path.Match(p.Path, "x"); err != nil || p.Path == "" || path.IsAbs(p.Path) || strings.Contains(p.Path, "..") || !slices.Contains([]string{"", UpRepository, UpAll}, p.Up) {
				t.Errorf("%s: place %+v is malformed: %v", name, p, err)
			}
			covered := slices.ContainsFunc(set.Places, func(o Place) bool { return o.Folder() && strings.HasPrefix(p.Path, o.Path) && o.Path != p.Path })
			if strings.ContainsAny(p.Path, "*?[") && !covered {
				t.Errorf("%s: no folder of the set holds the pattern %s", name, p.Path)
			}
			if len(p.Nested) > 0 && !p.Folder() {
				t.Errorf("%s: %s is nested and no folder", name, p.Path)
			}
		}
	}
	for name, set := range all.Edits {
		sourced(name, set.Source)
		for _, p := range set.Paths {
			if _, err := path.Match(p, "x"); err != nil || p == "" || p != strings.ToLower(p) || path.IsAbs(p) {
				t.Errorf("%s: path %q is malformed: %v", name, p, err)
			}
		}
	}
}
