package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/variables"
)

// check returns a value in its canonical form, or an error that says which value is wanted.
type check func(value []byte) ([]byte, error)

// fault says where an entry is wrong.
type fault struct {
	path string
	want string
}

func (f *fault) Error() string {
	if f.path == "" {
		return f.want
	}
	return f.path + ": " + f.want
}

func want(format string, args ...any) error { return &fault{want: fmt.Sprintf(format, args...)} }

// within puts a step before the path of a fault: a field's name, or an index.
func within(step string, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	if f.path != "" && f.path[0] != '[' {
		step += "."
	}
	return &fault{step + f.path, f.want}
}

// option is a field that an entry may have.
type option struct {
	name    string
	aliases []string
	negated []string // names that other programs use for the opposite of a boolean
	check   check
	missing string // the error when a required option is missing
	preset  string // the value when the option is missing
}

// Canonical returns the canonical form of an entry, which List and Get return, or an error of the kind ErrInvalid or ErrTooLarge.
func Canonical(kind Kind, entry []byte) (json.RawMessage, error) {
	if len(entry) > MaxEntry {
		return nil, fail(ErrTooLarge, "an entry may have %d bytes", MaxEntry)
	}
	form, err := canonical(kind, entry)
	if err != nil {
		return nil, fail(ErrInvalid, "%s", err)
	}
	return form, nil
}

// canonical returns the canonical form of an entry on a single line.
func canonical(kind Kind, data []byte) (json.RawMessage, error) {
	if err := syntax(data); err != nil {
		return nil, want("an entry %s", err)
	}
	value := bytes.TrimSpace(data)
	if value[0] != '{' {
		return nil, want("an entry is one JSON object")
	}
	if err := bounded(value, 0); err != nil {
		return nil, want("an entry %s", err)
	}
	form := server
	if kind == Skills {
		form = record(option{name: "sources", check: list(source), missing: "an array of sources is wanted"})
	}
	return form(value)
}

// server checks an MCP server by its type.
func server(value []byte) ([]byte, error) {
	fields := members(value)
	at := slices.IndexFunc(fields, func(m member) bool { return m.name == "type" })
	if at < 0 {
		return nil, within("type", want(`"local" or "remote" is wanted`))
	}
	switch kind := fields[at].value; string(kind) {
	case `"local"`, `"stdio"`:
		fields[at].value = []byte(`"local"`)
		return fold(fields, local())
	case `"http"`, `"sse"`:
		// This type implies a transport; an explicit transport is no fault as long as both agree.
		fields = append(fields, member{name: "transport", key: []byte(`"transport"`), value: kind})
		fallthrough
	case `"remote"`:
		fields[at].value = []byte(`"remote"`)
		return fold(fields, remote())
	default:
		return nil, within("type", want(`"local" or "remote" is wanted ("stdio", "http" and "sse" are understood)`))
	}
}

func local() []option {
	return []option{
		{name: "type", check: word("local")},
		{name: "command", check: command, missing: "a string or an array of strings is wanted"},
		{name: "args", check: list(words), preset: "[]"},
		{name: "env", aliases: []string{"environment"}, check: table(variable, words)},
		{name: "cwd", check: text},
		enabled(),
		{name: "timeoutMs", aliases: []string{"timeout"}, check: milliseconds},
	}
}

// enabled returns the switch of an entry. Cline, Cursor, Windsurf, Kiro and Roo write "disabled", Cherry Studio writes "isActive".
func enabled() option {
	return option{name: "enabled", aliases: []string{"isActive"}, negated: []string{"disabled"}, check: boolean}
}

func remote() []option {
	return []option{
		{name: "type", check: word("remote")},
		{name: "url", check: address, missing: "an http or https URL is wanted"},
		{name: "headers", check: table(headerName, headerValue)},
		{name: "bearerTokenEnvVar", check: variable},
		{name: "envHeaders", aliases: []string{"envHttpHeaders"}, check: table(headerName, variable)},
		{name: "oauth", check: oauth},
		enabled(),
		{name: "timeoutMs", aliases: []string{"timeout"}, check: milliseconds},
		{name: "transport", check: word("http", "sse")},
	}
}

// source checks a source of a skill.
func source(value []byte) ([]byte, error) {
	if value[0] != '{' {
		return nil, want("an object is wanted")
	}
	place := text
	for m := range each(value) {
		if m.name == "type" && string(m.value) != `"local"` {
			place = notAnOption // git gets the place as an argument
		}
	}
	return record(
		option{name: "type", check: word("github", "git", "local"), missing: `"github", "git" or "local" is wanted`},
		option{name: "source", check: place, missing: "a string is wanted"},
		option{name: "skills", check: list(text)},
		option{name: "ref", check: notAnOption},
		option{name: "subpath", check: inside},
	)(value)
}

func oauth(value []byte) ([]byte, error) {
	if value[0] != '{' {
		if _, err := boolean(value); err != nil {
			return nil, want("an object, true or false is wanted")
		}
		return value, nil
	}
	return record(option{name: "clientId", check: text}, option{name: "clientSecret", check: text}, option{name: "scope", check: text})(value)
}

// record returns a check for an object with the given fields and any others.
func record(options ...option) check {
	return func(value []byte) ([]byte, error) {
		if value[0] != '{' {
			return nil, want("an object is wanted")
		}
		return fold(members(value), options)
	}
}

// fold writes the known fields in the order of options, and then the others.
func fold(fields []member, options []option) ([]byte, error) {
	out := []byte("{")
	add := func(key, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	for _, o := range options {
		value, err := o.value(fields)
		if err != nil {
			return nil, err
		}
		if value != nil {
			add(quote(o.name), value)
		}
	}
	for _, m := range fields {
		if !slices.ContainsFunc(options, func(o option) bool { return o.named(m.name) }) {
			add(m.key, compact(m.value))
		}
	}
	return append(out, '}'), nil
}

func (o option) named(name string) bool {
	return name == o.name || slices.Contains(o.aliases, name) || slices.Contains(o.negated, name)
}

// value returns the value of an option, under whichever name fields give the option. null counts as missing.
func (o option) value(fields []member) ([]byte, error) {
	var found []byte
	from := ""
	for _, m := range fields {
		if !o.named(m.name) || string(m.value) == "null" {
			continue
		}
		value, err := o.check(m.value)
		if err != nil {
			return nil, within(m.name, err)
		}
		if slices.Contains(o.negated, m.name) {
			value = strconv.AppendBool(nil, string(value) != "true")
		}
		if found != nil && !bytes.Equal(found, value) {
			if from == m.name {
				return nil, within(m.name, want("contradicts type"))
			}
			return nil, within(m.name, want("given as %s too, and differently", from))
		}
		found, from = value, m.name
	}
	switch {
	case found != nil:
		return found, nil
	case o.missing != "":
		return nil, within(o.name, want("%s", o.missing))
	case o.preset != "":
		return []byte(o.preset), nil
	}
	return nil, nil
}

func list(of check) check {
	return func(value []byte) ([]byte, error) {
		if value[0] != '[' {
			return nil, want("an array is wanted")
		}
		out := []byte("[")
		n := 0
		for m := range each(value) {
			item, err := of(m.value)
			if err != nil {
				return nil, within("["+strconv.Itoa(n)+"]", err)
			}
			if n > 0 {
				out = append(out, ',')
			}
			out = append(out, item...)
			n++
		}
		return append(out, ']'), nil
	}
}

// table returns a check for an object of strings. The members are sorted, so that equal tables have equal bytes.
func table(key, of check) check {
	return func(value []byte) ([]byte, error) {
		if value[0] != '{' {
			return nil, want("an object of strings is wanted")
		}
		rows := members(value)
		slices.SortFunc(rows, func(a, b member) int { return strings.Compare(a.name, b.name) })
		out := []byte("{")
		for n, m := range rows {
			name, err := key(m.key)
			if err != nil {
				return nil, within(strconv.Quote(m.name), err)
			}
			item, err := of(m.value)
			if err != nil {
				return nil, within(strconv.Quote(m.name), err)
			}
			if n > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, name...), ':'), item...)
		}
		return append(out, '}'), nil
	}
}

func command(value []byte) ([]byte, error) {
	switch value[0] {
	case '"':
		return text(value)
	case '[':
		words, err := list(words)(value)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(words, []byte(`[]`)) || bytes.HasPrefix(words, []byte(`[""`)) {
			return nil, want("the first string names a program")
		}
		return words, nil
	}
	return nil, want("a string or an array of strings is wanted")
}

// spell reads a string that is passed to a program outside of JSON: NUL and half a surrogate pair are refused.
func spell(value []byte) (string, error) {
	if value[0] != '"' {
		return "", want("a string is wanted")
	}
	s := unquote(value)
	switch {
	case !paired(value):
		return "", want("half a surrogate pair is no character")
	case strings.ContainsRune(s, 0):
		return "", want("NUL cannot be passed on")
	}
	return s, nil
}

// words accepts any string, and text any string that is not empty.
func words(value []byte) ([]byte, error) {
	return matching(func(string) bool { return true }, "")(value)
}

func text(value []byte) ([]byte, error) {
	return matching(func(s string) bool { return s != "" }, "a string that is not empty is wanted")(value)
}

func matching(fits func(string) bool, wanted string) check {
	return func(value []byte) ([]byte, error) {
		s, err := spell(value)
		switch {
		case err != nil:
			return nil, err
		case !fits(s):
			return nil, want("%s", wanted)
		}
		return quote(s), nil
	}
}

func word(of ...string) check {
	return matching(func(s string) bool { return slices.Contains(of, s) }, strconv.Quote(of[0])+orOthers(of[1:])+" is wanted")
}

func orOthers(words []string) string {
	var out strings.Builder
	for _, w := range words {
		out.WriteString(" or " + strconv.Quote(w))
	}
	return out.String()
}

func boolean(value []byte) ([]byte, error) {
	if s := string(value); s != "true" && s != "false" {
		return nil, want("true or false is wanted")
	}
	return value, nil
}

func milliseconds(value []byte) ([]byte, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 {
		return nil, want("a whole number of milliseconds is wanted")
	}
	return strconv.AppendInt(nil, n, 10), nil
}

// address accepts a URL with variables, too. The caller that fills the variables in has to check the result.
func address(value []byte) ([]byte, error) {
	return matching(func(s string) bool {
		r := variables.Fill(s, func(string) (string, bool) { return "1", true })
		u, err := url.Parse(r.Text)
		if r.Any() && strings.HasPrefix(s, "$") {
			return err == nil
		}
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	}, "an http or https URL is wanted")(value)
}

// variable accepts the name of an environment variable.
func variable(value []byte) ([]byte, error) {
	return matching(func(s string) bool { return s != "" && !strings.Contains(s, "=") }, "the name of an environment variable is wanted")(value)
}

// headerName accepts a token of RFC 9110, 5.6.2.
func headerName(value []byte) ([]byte, error) {
	return matching(func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
			return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
		})
	}, "the name of a header is wanted")(value)
}

func headerValue(value []byte) ([]byte, error) {
	return matching(func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
	}, "a header's value has no control characters")(value)
}

// notAnOption accepts an argument that git does not take for an option.
func notAnOption(value []byte) ([]byte, error) {
	return matching(func(s string) bool { return s != "" && s[0] != '-' }, "a string is wanted that is not empty and does not begin with -")(value)
}

// inside accepts a path below a directory, in the spelling of Windows or of Unix.
func inside(value []byte) ([]byte, error) {
	return matching(func(s string) bool {
		slashed := strings.ReplaceAll(s, `\`, "/")
		clean := path.Clean(slashed)
		return s != "" && !path.IsAbs(slashed) && !strings.Contains(s, ":") && clean != ".." && !strings.HasPrefix(clean, "../")
	}, "a path inside of the source is wanted")(value)
}
