// Package variables hides in which ways configuration files name environment variables: ${NAME} and ${NAME:-default} as Claude Code,
// Cursor and Kiro write them, ${env:NAME} as VS Code, Cursor and Windsurf do, and {env:NAME} as opencode does.
//
// A default replaces a variable that is not set or empty, as in a shell, and may hold placeholders of its own; ${NAME-default} replaces a
// variable that is not set. $${NAME} gives the text ${NAME}. $NAME without braces stays unchanged, and so does every other form that a shell
// would expand, such as ${NAME%.*}, because the text may be meant for a shell. Placeholders of other programs, such as ${input:token},
// {file:path}, ${ NAME } and ${{ secrets.NAME }}, are reported beside the variables, since the placeholder itself would be taken for the
// value.
package variables

import (
	"regexp"
	"slices"
	"strings"
)

// Lookup finds the value of an environment variable.
type Lookup func(name string) (value string, ok bool)

// Result is a text with its variables filled in.
type Result struct {
	Text    string   // a missing variable leaves its placeholder
	Names   []string // the variables that the text names, each once
	Missing []string // the variables that are not set and have no default
	Foreign []string // the placeholders that only another program can fill in
}

// OK reports whether everything was filled in.
func (r Result) OK() bool { return len(r.Missing) == 0 && len(r.Foreign) == 0 }

// Any reports whether the text had any placeholder.
func (r Result) Any() bool { return len(r.Names) > 0 || len(r.Foreign) > 0 }

var (
	named    = regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(\}|:-|-)`)
	opencode = regexp.MustCompile(`^\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	foreign  = regexp.MustCompile(`^(?:\$\{(?:input|file|config|command|secret|secrets|op|vault|env):[^}]*\}|\{file:[^}]*\}|` +
		`\$\{\{[^}]*\}\}|\$\{[A-Za-z]\w*:[A-Za-z_][^}]*\}|\$\{(?:env|secrets?|vars|inputs?)\.[^}]*\}|\$\{(?:[ \t]+[A-Za-z_]\w*[ \t]*|[A-Za-z_]\w*[ \t]+)\})`)
)

// The limits of defaults within defaults, and of a default's length; a longer default stays unchanged.
const (
	deepest = 16
	longest = 4 << 10
)

// Fill fills in the variables of a text. Placeholders in a value stay.
func Fill(text string, lookup Lookup) Result {
	var r Result
	r.Text = r.fill(text, lookup, 0)
	return r
}

func (r *Result) fill(text string, lookup Lookup, depth int) string {
	var out strings.Builder
	for at := strings.IndexAny(text, "${"); at >= 0; at = strings.IndexAny(text, "${") {
		out.WriteString(text[:at])
		text = text[at:]
		if text[0] == '$' {
			if escaped := length(text[1:]); escaped > 0 && text[1] == '$' {
				out.WriteString(text[1 : 1+escaped])
				text = text[1+escaped:]
				continue
			}
		}
		size := length(text)
		if size == 0 || depth == deepest {
			out.WriteByte(text[0])
			text = text[1:]
			continue
		}
		out.WriteString(r.value(text[:size], lookup, depth))
		text = text[size:]
	}
	out.WriteString(text)
	return out.String()
}

// value returns the text that replaces a placeholder.
func (r *Result) value(placeholder string, lookup Lookup, depth int) string {
	m := named.FindStringSubmatch(placeholder)
	if m == nil {
		m = opencode.FindStringSubmatch(placeholder)
	}
	if m == nil {
		r.Foreign = once(r.Foreign, placeholder)
		return placeholder
	}
	name := m[1]
	r.Names = once(r.Names, name)
	value, ok := lookup(name)
	switch {
	case len(m) > 2 && (m[2] == ":-" && value == "" || m[2] == "-" && !ok):
		return r.fill(placeholder[len(m[0]):len(placeholder)-1], lookup, depth+1)
	case !ok:
		r.Missing = once(r.Missing, name)
		return placeholder
	}
	return value
}

// length returns the length of the placeholder that a text begins with, or 0.
func length(text string) int {
	if m := opencode.FindString(text); m != "" {
		return len(m)
	}
	m := named.FindStringSubmatch(text)
	switch {
	case m == nil:
		return len(foreign.FindString(text))
	case m[2] == "}":
		return len(m[0])
	}
	open := 1
	for i := len(m[0]); i < min(len(text), longest); i++ {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			open++
		case text[i] == '}':
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func once(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
