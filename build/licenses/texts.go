package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Which files are texts of licences, and which only go with them and name none.
var (
	isText     = regexp.MustCompile(`(?i)^(.*-)?(licen[cs]e|copying|copyright|unlicense|notice|patents)([-._].*)?$`)
	isNoText   = regexp.MustCompile(`(?i)\.(go|js|ts|json|sh|py|png|svg)$|-logo$`)
	goesWithIt = regexp.MustCompile(`(?i)^(notice|patents|authors)|3rd-party|third-party`)
	spaces     = regexp.MustCompile(`\s+`)
)

// read finds a component's texts and says which licences they are.
func (l *list) read(c *component) error {
	var names []string
	for _, dir := range c.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !isText.MatchString(e.Name()) || isNoText.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			text := clean(string(data))
			c.Texts = append(c.Texts, l.text(text))
			if !goesWithIt.MatchString(e.Name()) {
				names = append(names, licencesOf(text)...)
			}
		}
	}
	return c.settle(names)
}

// settle completes a component after its texts were read: it sorts the texts, and fails when they are not enough.
func (c *component) settle(names []string) error {
	slices.Sort(c.Texts)
	c.Texts = slices.Compact(c.Texts)
	if len(c.Texts) == 0 {
		return fmt.Errorf("%s %s has no text of its licence; it cannot be shipped like that", c.Name, c.Version)
	}
	slices.Sort(names)
	if c.License = c.declared; c.License == "" {
		c.License = strings.Join(slices.Compact(names), " AND ")
	}
	if c.License == "" {
		return fmt.Errorf("%s %s: which licence is this? Teach licencesOf to know it", c.Name, c.Version)
	}
	return nil
}

// text gives the number of a text.
func (l *list) text(text string) int {
	if i := slices.Index(l.Texts, text); i >= 0 {
		return i
	}
	l.Texts = append(l.Texts, text)
	return len(l.Texts) - 1
}

// clean returns a text without the differences that editors and systems make.
func clean(text string) string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// licencesOf names the licences that a text has, by SPDX's names and by words that no other licence has.
func licencesOf(text string) []string {
	text = strings.ToLower(spaces.ReplaceAllString(text, " "))
	has := func(words string) bool { return strings.Contains(text, words) }
	var all []string
	for _, one := range []struct {
		name string
		is   bool
	}{
		{"MIT", has("permission is hereby granted, free of charge, to any person obtaining a copy")},
		{"Apache-2.0", has("apache license") && has("version 2.0") || has("apache.org/licenses/license-2.0")},
		{"BSD-3-Clause", has("redistribution and use in source and binary forms") && has("endorse or promote")},
		{"BSD-2-Clause", has("redistribution and use in source and binary forms") && !has("endorse or promote")},
		{"ISC", has("permission to use, copy, modify, and/or distribute this software for any purpose") || has("permission to use, copy, modify, and distribute this software for any purpose")},
		{"MPL-2.0", has("mozilla public license") && has("2.0")},
		{"blessing", has("in place of a legal notice, here is a blessing") || has("the author disclaims copyright") || has("dedicated to the public domain")},
		{"GPL", has("gnu general public license") || has("gnu lesser general public license") || has("gnu affero")},
	} {
		if one.is {
			all = append(all, one.name)
		}
	}
	return all
}
