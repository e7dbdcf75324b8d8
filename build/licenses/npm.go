package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// compiledIn returns the packages that Vite and Svelte add to the page without a dependency. Svelte's other dependencies belong to the
// compiler.
func compiledIn() []string {
	return []string{"svelte", "clsx", "esm-env", "vite", "rolldown"}
}

type locked struct {
	Version      string            `json:"version"`
	License      string            `json:"license"`
	Dependencies map[string]string `json:"dependencies"`
}

// npmPackages returns the packages of the page, by package.json and its lock file: the dependencies with all of their own dependencies, and
// the packages that the compilers add.
func npmPackages(root string) ([]component, error) {
	var asked struct{ Dependencies map[string]string }
	if err := readJSON(filepath.Join(root, "frontend", "package.json"), &asked); err != nil {
		return nil, err
	}
	var lock struct{ Packages map[string]locked }
	if err := readJSON(filepath.Join(root, "frontend", "package-lock.json"), &lock); err != nil {
		return nil, err
	}
	p := packages{root: root, all: lock.Packages, found: map[string]*component{}}
	for _, name := range slices.Sorted(maps.Keys(asked.Dependencies)) {
		if err := p.add("", name, true); err != nil {
			return nil, err
		}
	}
	for _, name := range compiledIn() {
		if err := p.add("", name, false); err != nil {
			return nil, err
		}
	}
	return sorted(p.found), nil
}

type packages struct {
	root  string
	all   map[string]locked // by their paths
	found map[string]*component
}

// add adds a package, and with further the package's own dependencies.
func (p *packages) add(from, name string, further bool) error {
	at, one, ok := resolved(p.all, from, name)
	if !ok {
		return fmt.Errorf("package-lock.json has no %s for %q", name, from)
	}
	if p.found[at] != nil || strings.HasPrefix(name, "@types/") { // those are of no use at run time, and are not there
		return nil
	}
	p.found[at] = &component{
		Name: name, Version: one.Version, declared: one.License, dirs: []string{filepath.Join(p.root, "frontend", filepath.FromSlash(at))},
	}
	for _, next := range slices.Sorted(maps.Keys(one.Dependencies)) {
		if !further {
			break
		}
		if err := p.add(at, next, true); err != nil {
			return err
		}
	}
	return nil
}

// resolved finds a package as Node does: beside who asks, then further up.
func resolved(all map[string]locked, from, name string) (at string, one locked, ok bool) {
	for {
		at = path.Join(from, "node_modules", name)
		if one, ok = all[at]; ok || from == "" {
			return at, one, ok
		}
		up := strings.LastIndex(from, "node_modules/")
		from = strings.TrimSuffix(from[:max(up, 0)], "/")
	}
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
