// Package autorun is the table of the files by which a directory starts programs: settings, hooks and skills that agents read by
// themselves, and files that make git, shells, editors, package managers and continuous integration run programs. The approvals of a
// directory's executables (package trust) and the rule that asks about edits (package rules) use this table. The table is data with its
// sources, in autorun.json.
package autorun

import (
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed autorun.json
var bundled []byte

// Place is a file or folder that an agent reads by itself in the directory of its start, and from which the agent starts programs, or takes
// settings that change how programs run.
type Place struct {
	// Path is the path of a file, whose last part may be a pattern; or, with a slash at its end, of a folder with its whole content.
	Path string `json:"path"`
	// Up tells that the agent looks for the place in the parents too: those up to the repository's ("repository"), or all ("all").
	Up string `json:"up"`
	// Nested are folders below the place that the agent also finds in every directory below its own; "" = the place itself.
	Nested []string `json:"nested"`
	// Further tells that the agent looks for the place in the further directories of a session too.
	Further bool `json:"further"`
	// Except are folders and files below the place that the agent starts nothing from.
	Except []string `json:"except"`
	// Harmless are members of a JSON file, by their names with dots between, that can start nothing.
	Harmless []string `json:"harmless"`
	// HarmlessRules are, by the name of a list, how rules in that list begin that can start nothing.
	HarmlessRules map[string][]string `json:"harmlessRules"`
}

// The values of Place.Up.
const (
	UpRepository = "repository"
	UpAll        = "all"
)

// Folder tells of a place that is a folder.
func (p Place) Folder() bool { return strings.HasSuffix(p.Path, "/") }

// Names tells whether a path, slashed and below the directory, is that of the file.
func (p Place) Names(name string) bool {
	ok, _ := path.Match(p.Path, name) // a test sees that no pattern of the table is malformed
	return ok
}

// table is the content of autorun.json.
type table struct {
	// Sets are the places of agents. The catalogue of agents names the sets that each agent reads.
	Sets map[string]struct {
		Source []string `json:"source"`
		Places []Place  `json:"places"`
	} `json:"sets"`
	// Edits are paths, in small letters, by which other programs than agents are started.
	Edits map[string]struct {
		Source []string `json:"source"`
		Paths  []string `json:"paths"`
	} `json:"edits"`
}

func read() (t table, err error) {
	err = json.Unmarshal(bundled, &t)
	return t, err
}

// sets gives the places by the names of their sets. The caller gets a copy of the table.
func sets() map[string][]Place {
	t, err := read()
	if err != nil {
		panic(fmt.Sprintf("autorun.json cannot be read: %v", err)) // a test reads the table, too
	}
	places := make(map[string][]Place, len(t.Sets))
	for name, set := range t.Sets {
		places[name] = set.Places
	}
	return places
}

// Known tells whether there is a set of this name.
func Known(set string) bool { return len(sets()[set]) > 0 }

// Places returns the places of the named sets, each place once; for nil, the places of all sets, which an unknown agent may read.
func Places(names []string) (list []Place) {
	all := sets()
	if names == nil {
		names = slices.Sorted(maps.Keys(all))
	}
	for _, name := range names {
		for _, p := range all[name] {
			if !slices.ContainsFunc(list, func(o Place) bool { return o.Path == p.Path && o.Up == p.Up && o.Further == p.Further }) {
				list = append(list, p)
			}
		}
	}
	return list
}

// starting is the table in the form that Starts needs: folders by their last name, files by their base, and patterns.
type starting struct {
	folders  map[string][]string
	files    map[string][]string
	patterns []string
}

//nolint:gochecknoglobals // the table never changes, and parsing it for every path of every judgement is slow
var paths = sync.OnceValue(func() starting {
	t, err := read()
	if err != nil {
		panic(fmt.Sprintf("autorun.json cannot be read: %v", err))
	}
	s := starting{folders: map[string][]string{}, files: map[string][]string{}}
	for _, set := range t.Sets {
		for _, p := range set.Places {
			s.add(strings.ToLower(p.Path))
		}
	}
	for _, set := range t.Edits {
		for _, p := range set.Paths {
			s.add(p)
		}
	}
	return s
})

func (s *starting) add(p string) {
	folder, is := strings.CutSuffix(p, "/")
	switch {
	case is:
		s.folders[path.Base(folder)] = append(s.folders[path.Base(folder)], folder)
	case strings.ContainsAny(p, "*?["):
		s.patterns = append(s.patterns, p)
	default:
		s.files[path.Base(p)] = append(s.files[path.Base(p)], p)
	}
}

// Starts reports whether a file at this slashed, clean path starts programs in every directory: whoever may write the file may run any
// program. Case does not count, as on some file systems.
func Starts(name string) bool {
	name = strings.ToLower(strings.Trim(name, "/"))
	s := paths()
	ends := func(at string, list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return at == p || strings.HasSuffix(at, "/"+p) })
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if list := s.folders[part]; list != nil && ends(strings.Join(parts[:i+1], "/"), list) {
			return true
		}
	}
	if ends(name, s.files[parts[len(parts)-1]]) {
		return true
	}
	return slices.ContainsFunc(s.patterns, func(pattern string) bool {
		from := max(0, len(parts)-1-strings.Count(pattern, "/"))
		hit, _ := path.Match(pattern, strings.Join(parts[from:], "/"))
		return hit
	})
}
