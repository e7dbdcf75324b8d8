package config

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// The patterns that judge the texts of a directory or a skill for agents, wherever the text lies.

var (
	front = regexp.MustCompile(`(?s)\A\x{feff}?\s*---[ \t]*[\r\n](.*?)[\r\n]---`)
	// The fields of a front matter that start a program, or allow the agent to.
	starting = regexp.MustCompile(`(?mi)^\s*["']?(hooks?|mcp[-_]?servers?|mcp|allowed[-_]?tools|permissions?|permission[-_]?mode|approval[-_]?mode|commands?|shell|env|plugins?)["']?\s*:`)
	// Spellings of such fields that only a YAML parser understands.
	obscure = regexp.MustCompile(`(?mi)^\s*[{?&!*]|\r[^\n]|[{,]\s*["']?(hooks?|mcp[-_]?servers?|mcp|allowed[-_]?tools|permissions?)["']?\s*:|"[^"\n]*\\[^"\n]*"\s*:`)
	inline  = regexp.MustCompile("!`[^`\n]|```!|!\\{")
	// The names of files that agents read from a skill or plugin beside its text.
	manifest = regexp.MustCompile(`(?i)^\.|mcp|hook|plugin|extension|settings|config|agent|openai|package|server|marketplace`)
)

// IsProse reports by its name whether a file is a text written for agents.
func IsProse(name string) bool {
	return slices.Contains([]string{".md", ".mdc", ".mdx", ".markdown"}, strings.ToLower(path.Ext(name)))
}

// IsJSON reports by its name whether a file is JSON, with or without comments.
func IsJSON(name string) bool {
	return slices.Contains([]string{".json", ".jsonc", ".json5"}, strings.ToLower(path.Ext(name)))
}

// IsSettings reports by its name whether a file has settings in another form than JSON.
func IsSettings(name string) bool {
	return slices.Contains([]string{".toml", ".yaml", ".yml", ".env", ".ini", ".cfg", ".conf", ".rules", ".properties", ".xml", ".plist", ".kdl"}, strings.ToLower(path.Ext(name)))
}

// IsManifest reports by its name whether a file is JSON or settings that agents read from a skill or plugin beside its text.
func IsManifest(name string) bool {
	return (IsJSON(name) || IsSettings(name)) && manifest.MatchString(path.Base(name))
}

// Commands reports whether a text has commands that the agent runs, or allows the agent to run some.
func Commands(prose []byte) bool {
	head := front.FindSubmatch(prose)
	return Inlines(prose) || head != nil && (starting.Match(head[1]) || obscure.Match(head[1]))
}

// Inlines reports whether a text has a command that the agent replaces by the command's output.
func Inlines(text []byte) bool { return inline.Match(text) }
