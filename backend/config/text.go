package config

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// What a directory or a skill has for agents is judged by the same rules, wherever it lies.

var (
	front = regexp.MustCompile(`(?s)\A\x{feff}?\s*---[ \t]*[\r\n](.*?)[\r\n]---`)
	// Members of such a beginning that start something, or give leave to.
	starting = regexp.MustCompile(`(?mi)^\s*["']?(hooks?|mcp[-_]?servers?|mcp|allowed[-_]?tools|permissions?|permission[-_]?mode|approval[-_]?mode|commands?|shell|env|plugins?)["']?\s*:`)
	// The same may be written in ways that only a reader of YAML understands.
	obscure = regexp.MustCompile(`(?mi)^\s*[{?&!*]|\r[^\n]|[{,]\s*["']?(hooks?|mcp[-_]?servers?|mcp|allowed[-_]?tools|permissions?)["']?\s*:|"[^"\n]*\\[^"\n]*"\s*:`)
	inline  = regexp.MustCompile("!`[^`\n]|```!|!\\{")
	// What agents read of a skill or plugin beside its text.
	manifest = regexp.MustCompile(`(?i)^\.|mcp|hook|plugin|extension|settings|config|agent|openai|package|server|marketplace`)
)

// IsProse tells by its name of a text that is written for agents.
func IsProse(name string) bool {
	return slices.Contains([]string{".md", ".mdc", ".mdx", ".markdown"}, strings.ToLower(path.Ext(name)))
}

// IsJSON tells by its name of a file of JSON, of the forms with comments too.
func IsJSON(name string) bool {
	return slices.Contains([]string{".json", ".jsonc", ".json5"}, strings.ToLower(path.Ext(name)))
}

// IsSettings tells by its name of a file of settings that is no JSON.
func IsSettings(name string) bool {
	return slices.Contains([]string{".toml", ".yaml", ".yml", ".env", ".ini", ".cfg", ".conf", ".rules", ".properties", ".xml", ".plist", ".kdl"}, strings.ToLower(path.Ext(name)))
}

// IsManifest tells by its name of JSON or settings that agents read of a skill or plugin beside its text.
func IsManifest(name string) bool {
	return (IsJSON(name) || IsSettings(name)) && manifest.MatchString(path.Base(name))
}

// Commands tells of prose that has commands in it which the agent runs, or that gives leave for some.
func Commands(prose []byte) bool {
	head := front.FindSubmatch(prose)
	return Inlines(prose) || head != nil && (starting.Match(head[1]) || obscure.Match(head[1]))
}

// Inlines tells of a text with a command whose output the agent puts in the place of it.
func Inlines(text []byte) bool { return inline.Match(text) }
