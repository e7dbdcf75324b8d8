package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/mcp"
)

// json takes a file of settings apart: each hook is an entry of its own, and the rest is another, without harmless members. The
// formatting of the file does not count.
func (f looked) json() []part {
	value, err := readLenient(f.data)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		if len(bytes.TrimSpace(f.data)) == 0 {
			return nil
		}
		// the agent may be able to read the file
		p := f.whole(Config, f.text())
		p.names = words(string(f.data), false)
		return []part{p}
	}
	for _, name := range f.harmless {
		without(object, strings.Split(name, "."))
	}
	for name, rules := range f.rules {
		lessRules(object, strings.Split(name, "."), rules)
	}
	list := f.hooks(object)
	if !empty(object) && (len(list) == 0 || !onlyLabels(object)) {
		p := f.part(Config, f.name, written(masked(object, "")), compact(object))
		p.names = named(object, "")
		list = append(list, p)
	}
	return list
}

// oddEnd matches characters that end a line, and so a comment, for some parsers only.
var oddEnd = regexp.MustCompile(`\r(?:[^\n]|$)|\x{2028}|\x{2029}`)

// readLenient reads JSON as agents do: with comments, and commas at the ends of lists. Text that two agents would read differently is an
// error.
func readLenient(data []byte) (any, error) {
	if oddEnd.Match(data) {
		return nil, errors.New("where a comment ends is not the same for all")
	}
	data = strict(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err := unambiguous(json.NewDecoder(bytes.NewReader(data))); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more behind the value: %w", err)
	}
	return value, nil
}

// unambiguous refuses an object with a repeated name: some parsers take the last member, some the first, and some merge both.
func unambiguous(d *json.Decoder) error {
	var open []map[string]bool // the names so far; nil for a list
	name := false              // the next token is a name
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		text, _ := token.(string)
		switch {
		case token == json.Delim('{'):
			open = append(open, map[string]bool{})
		case token == json.Delim('['):
			open = append(open, nil)
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:len(open)-1]
		case name && open[len(open)-1][text]:
			return fmt.Errorf("%q stands there twice", text)
		case name:
			open[len(open)-1][text], name = true, false
			continue
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// strict replaces comments, and commas before the end of a list, by blanks.
func strict(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // the last comma with only blanks behind
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '"':
			i, comma = stringEnd(out, i), -1
			continue
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := commentEnd(out, i)
			for ; i < end; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			continue
		case c == ',':
			comma = i
		case (c == ']' || c == '}') && comma >= 0:
			out[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		i++
	}
	return out
}

func stringEnd(data []byte, at int) int {
	for i := at + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"', '\n':
			return i + 1
		}
	}
	return len(data)
}

func commentEnd(data []byte, at int) int {
	end, skip := []byte("\n"), 0
	if data[at+1] == '*' {
		end, skip = []byte("*/"), 2
	}
	if i := bytes.Index(data[at+2:], end); i >= 0 {
		return at + 2 + i + skip
	}
	return len(data)
}

// without removes a member, and every object that is empty then.
func without(object map[string]any, name []string) {
	if len(name) == 1 {
		delete(object, name[0])
		return
	}
	below, ok := object[name[0]].(map[string]any)
	if !ok {
		return
	}
	without(below, name[1:])
	if len(below) == 0 {
		delete(object, name[0])
	}
}

// lessRules removes the rules of a list that can start no program: Read, or Read(…). The order of the others does not count.
func lessRules(object map[string]any, name []string, harmless []string) {
	for ; len(name) > 1; name = name[1:] {
		below, ok := object[name[0]].(map[string]any)
		if !ok {
			return
		}
		object = below
	}
	list, ok := object[name[0]].([]any)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(item any) bool {
		rule, _ := item.(string)
		tool, _, _ := strings.Cut(rule, "(")
		return slices.Contains(harmless, tool)
	})
	slices.SortFunc(list, func(a, b any) int { return bytes.Compare(compact(a), compact(b)) })
	object[name[0]] = list
}

// onlyLabels reports whether the members beside the hooks are only labels.
func onlyLabels(object map[string]any) bool {
	for name := range object {
		if !slices.Contains([]string{"version", "$schema", "description", "name"}, name) {
			return false
		}
	}
	return true
}

func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v {
			if !empty(below) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// mostHooks limits how many hooks are taken apart; a file with more is shown as a whole.
const mostHooks = 100

// hooks takes the hooks out of the settings, event by event and matcher by matcher. Hooks of another shape stay in the settings.
func (f looked) hooks(settings map[string]any) (list []part) {
	events, ok := settings["hooks"].(map[string]any)
	if !ok {
		return nil
	}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		groups, ok := events[event].([]any)
		if !ok || len(list) > mostHooks {
			continue
		}
		var left []any
		for _, g := range groups {
			group, ok := g.(map[string]any)
			if !ok || len(list) > mostHooks {
				left = append(left, g)
				continue
			}
			list = append(list, f.group(event, group)...)
		}
		if events[event] = left; left == nil {
			delete(events, event)
		}
	}
	if len(events) == 0 {
		delete(settings, "hooks")
	}
	return list
}

// group returns the entries of the hooks of a matcher; some agents write a single hook in place of a matcher.
func (f looked) group(event string, group map[string]any) (list []part) {
	inner, ok := group["hooks"].([]any)
	if !ok || len(inner) == 0 { // other members beside an empty list count
		return []part{f.hook(event, nil, group)}
	}
	rest := maps.Clone(group)
	delete(rest, "hooks")
	for _, h := range inner {
		list = append(list, f.hook(event, rest, h))
	}
	return list
}

func (f looked) hook(event string, group map[string]any, hook any) part {
	name := f.name + " " + event
	matcher, _ := group["matcher"].(string)
	if own, ok := hook.(map[string]any); ok && matcher == "" {
		matcher, _ = own["matcher"].(string)
	}
	if matcher != "" && matcher != "*" {
		name += " " + matcher
	}
	covered := map[string]any{"event": event, "hook": hook}
	if len(group) > 0 {
		covered["for"] = group
	}
	p := f.part(Hook, shortened(visible(name)), shownHook(event, group, masked(hook, "")), compact(covered))
	p.names = append(named(hook, "command"), named(group, "")...)
	return p
}

// shortened returns a short form of a name that is a whole text.
func shortened(name string) string {
	if len(name) <= 200 {
		return name
	}
	return strings.ToValidUTF8(name[:200], "") + "…"
}

// shownHook returns a hook line by line, with the command unescaped.
func shownHook(event string, group map[string]any, hook any) string {
	lines := []string{"event: " + visible(event)}
	lines = append(lines, membersOf(group)...)
	if object, ok := hook.(map[string]any); ok {
		lines = append(lines, membersOf(object)...)
	} else {
		lines = append(lines, written(hook))
	}
	return strings.Join(lines, "\n")
}

func membersOf(object map[string]any) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if text, ok := object[name].(string); ok {
			lines = append(lines, visible(name)+": "+visible(text))
		} else {
			lines = append(lines, visible(name)+": "+written(object[name]))
		}
	}
	return lines
}

// masked returns a value with its secrets hidden.
func masked(value any, name string) any {
	switch v := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, below := range v {
			shown[key] = masked(below, key)
		}
		return shown
	case []any:
		shown := make([]any, len(v))
		for i, below := range v {
			shown[i] = masked(below, "")
		}
		return shown
	case string:
		if mcp.Hides(name, v) {
			return mcp.Hidden
		}
		if strings.Contains(v, "://") && !strings.ContainsAny(v, " \t\n") {
			return mcp.CoverURL(v)
		}
	}
	return value
}

func written(value any) string { return visible(string(encoded(value, "  "))) }

func compact(value any) []byte { return encoded(value, "") }

func encoded(value any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		return fmt.Appendf(nil, "%v", value) // a value read from JSON can be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

// The names of members that hold a command line, and of members that may name a folder whose programs are loaded.
var (
	commandNames = regexp.MustCompile(`(?i)command|cmd|bash|powershell|helper|script|run|exec|refresh|export|program`)
	folderNames  = regexp.MustCompile(`(?i)plugin|extension|source|skill|hook|package|marketplace|^path$`)
)

// lineOf returns the words of a command with its arguments: an interpreter runs a file in its arguments, whatever the file is called.
func lineOf(object map[string]any) []word {
	program, _ := object["command"].(string)
	args, _ := object["args"].([]any)
	if program == "" || len(args) == 0 {
		return nil
	}
	return words(joined(append([]any{program}, args...)), true)
}

// joined returns a command line for a shell: an argument with a blank stays a single word.
func joined(list []any) string {
	var line []string
	for _, item := range list {
		text, ok := item.(string)
		if ok && strings.ContainsAny(text, " \t\n;&|<>()*?[]{}~\"'") {
			text = "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		}
		if ok {
			line = append(line, text)
		}
	}
	return strings.Join(line, " ")
}

// named returns the words of a value that may name files.
func named(value any, name string) (list []word) {
	switch v := value.(type) {
	case map[string]any:
		list = append(list, lineOf(v)...)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := key
			if _, text := v[key].(string); !text && folderNames.MatchString(name) {
				below = name
			}
			list = append(list, named(v[key], below)...)
		}
	case []any:
		list = namedIn(v, name)
	case string:
		if folderNames.MatchString(name) {
			list = append(list, word{text: strings.TrimPrefix(projectVariable.ReplaceAllString(v, "."), "file://"), loads: true})
		}
		list = append(list, words(v, commandNames.MatchString(name))...)
	}
	return list
}

// namedIn returns the words of a list, which may be a command with its arguments.
func namedIn(items []any, name string) (list []word) {
	const most = 500
	if commandNames.MatchString(name) {
		list = words(joined(items), true)
	}
	for _, item := range items[:min(most, len(items))] {
		list = append(list, named(item, name)...)
	}
	return list
}
