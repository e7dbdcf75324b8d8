// Package variables hides in which ways configuration files name environment variables: ${NAME} and ${NAME:-default} as Claude Code, Cursor and
// Kiro write them, ${env:NAME} as VS Code, Cursor and Windsurf do, and {env:NAME} as opencode does.
//
// A default stands in for a variable that is not set or empty, as in a shell, and may hold placeholders of its own. $${NAME} gives the
// letters ${NAME}. $NAME without braces stays as it is, and so does whatever else a shell would make something of, such as ${NAME%.*}: it
// may be meant for a shell. Placeholders that only an editor can fill in, ${input:token} and {file:path} for two, are told beside the
// variables, since the letters would go out as the value.
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
	Text    string   // where a variable is missing, its placeholder is still there
	Names   []string // the variables that the text names, each once
	Missing []string // those of them that are not set and have no default
	Foreign []string // the placeholders that only another program can fill in
}

// OK tells whether everything was filled in.
func (r Result) OK() bool { return len(r.Missing) == 0 && len(r.Foreign) == 0 }

// Any tells whether the text had any placeholder.
func (r Result) Any() bool { return len(r.Names) > 0 || len(r.Foreign) > 0 }

var (
	named    = regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(\}|:-)`)
	opencode = regexp.MustCompile(`^\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	foreign  = regexp.MustCompile(`^(?:\$\{(?:input|file|config|command|secret|secrets|op|vault|env):[^}]*\}|\{file:[^}]*\})`)
)

// How many defaults may stand within each other, and how long one may be; what is beyond that stays as it is.
const (
	deepest = 16
	longest = 4 << 10
)

// Fill fills in the variables of a text. A value is taken as it is: a placeholder in it stays.
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

// value is what stands in the place of a placeholder.
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
	case len(m) > 2 && m[2] == ":-" && value == "":
		return r.fill(placeholder[len(m[0]):len(placeholder)-1], lookup, depth+1)
	case !ok:
		r.Missing = once(r.Missing, name)
		return placeholder
	}
	return value
}

// length is that of the placeholder that a text begins with; 0 where it begins with none.
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
