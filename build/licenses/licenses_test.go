package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// allowed returns the licences that the programs' parts may have: licences that ask no more of redistributors than passing on the texts.
func allowed() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "blessing", "ISC", "MIT", "MPL-2.0", "OFL-1.1", "Unlicense"}
}

// The committed list must name every current dependency of the programs, in its version and with a licence text.
func TestEveryDependencyHasItsLicence(t *testing.T) {
	wanted, err := components(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var have list
	if err := readJSON(root+"/frontend/public/licenses.json", &have); err != nil {
		t.Fatal(err)
	}
	const few = 80 // fewer than there were when this was written means that they were not found
	if len(wanted) < few {
		t.Fatalf("only %d components were found", len(wanted))
	}
	const advice = "run `make generate` and commit frontend/public/licenses.json"
	for _, w := range wanted {
		if !slices.ContainsFunc(have.Components, func(h component) bool { return h.Name == w.Name && h.Version == w.Version }) {
			t.Errorf("%s %s is not in the list: %s", w.Name, w.Version, advice)
		}
	}
	if len(have.Components) > len(wanted) {
		t.Errorf("the list has %d components and the programs are built of %d: %s", len(have.Components), len(wanted), advice)
	}
	for _, h := range have.Components {
		sound(t, have, h)
	}
}

// sound reports the errors of an entry of the list.
func sound(t *testing.T, l list, c component) {
	t.Helper()
	if len(c.Texts) == 0 {
		t.Errorf("%s %s has no text", c.Name, c.Version)
	}
	for _, n := range c.Texts {
		if n < 0 || n >= len(l.Texts) || len(strings.Fields(l.Texts[n])) < 20 {
			t.Errorf("%s %s: its text %d is none", c.Name, c.Version, n)
		}
	}
	names := regexp.MustCompile(`[\w.-]+`).FindAllString(c.License, -1)
	for _, name := range names {
		if name != "AND" && name != "OR" && !slices.Contains(allowed(), name) {
			t.Errorf("%s %s is under %q: may we ship that? Then it belongs to the allowed ones", c.Name, c.Version, c.License)
		}
	}
	if len(names) == 0 {
		t.Errorf("%s %s is under no licence that is known", c.Name, c.Version)
	}
}

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	for text, want := range map[string][]string{
		"Permission is hereby granted, free of\n charge, to any person obtaining a copy":                                        {"MIT"},
		"Apache License\nVersion 2.0, January 2004":                                                                             {"Apache-2.0"},
		"Redistribution and use in source and binary forms … to endorse or promote":                                             {"BSD-3-Clause"},
		"Redistribution and use in source and binary forms":                                                                     {"BSD-2-Clause"},
		"Permission is hereby granted, free of charge, to any person obtaining a copy. See www.apache.org/licenses/LICENSE-2.0": {"MIT", "Apache-2.0"},
		"GNU General Public License":                                                                                            {"GPL"},
		"All rights reserved.":                                                                                                  nil,
	} {
		if got := licencesOf(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAComponentWithoutATextIsRefused(t *testing.T) {
	var l list
	if err := l.read(&component{Name: "nothing", dirs: []string{t.TempDir()}}); err == nil {
		t.Error("it was taken")
	}
}

func TestPackagesAreFoundAsNodeDoes(t *testing.T) {
	all := map[string]locked{"node_modules/a": {}, "node_modules/a/node_modules/b": {Version: "2"}, "node_modules/b": {Version: "1"}, "node_modules/@x/c": {}}
	for _, w := range []struct{ from, name, at string }{
		{"", "b", "node_modules/b"},
		{"node_modules/a", "b", "node_modules/a/node_modules/b"},
		{"node_modules/a/node_modules/b", "@x/c", "node_modules/@x/c"},
		{"node_modules/@x/c", "b", "node_modules/b"},
	} {
		if at, _, ok := resolved(all, w.from, w.name); !ok || at != w.at {
			t.Errorf("%s for %q: %s", w.name, w.from, at)
		}
	}
	if _, _, ok := resolved(all, "node_modules/a", "d"); ok {
		t.Error("what is not there was found")
	}
}
