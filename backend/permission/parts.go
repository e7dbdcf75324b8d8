package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Call is the tool call that a permission is asked for.
type Call struct {
	Title    string
	Kind     string
	RawInput json.RawMessage
	Content  []json.RawMessage
	Places   []string // the paths that it names
}

// Part is one thing that a person decides about: all of it, as one text.
type Part struct {
	Kind    string // CommandPart and so on
	Path    string // of a diff, below the directory where it is there
	Created bool   // of a diff: the file is new
	Added   int    // lines of a diff
	Removed int
	Text    string // never shortened; unseen characters stand in it as they are
}

// The kinds of parts.
const (
	TitlePart   = "title"   // the agent's own words, where nothing else is told
	CommandPart = "command" // a command line
	DiffPart    = "diff"    // a change, as a unified diff without its header
	TextPart    = "text"    // a text beside the call, such as a plan
	PlacesPart  = "places"  // the paths that the call names, a line each
	InputPart   = "input"   // the input of the call, as indented JSON
)

// Parts are the parts of a call in the order in which they are shown; cwd is the directory of its conversation.
func (c Call) Parts(cwd string) []Part {
	command := Command(c.RawInput)
	list := []Part{{Kind: CommandPart, Text: command}}
	diffs := false
	for _, raw := range c.Content {
		p := ContentPart(raw, cwd)
		list = append(list, p)
		diffs = diffs || p.Kind == DiffPart
	}
	if !diffs {
		list = append(list, Part{Kind: PlacesPart, Text: c.placesBelow(cwd)})
	}
	input := Indented(c.RawInput)
	if command != "" && CommandAlone(c.RawInput, cwd) || command == "" && diffs || input == "{}" || input == "null" {
		input = "" // the other parts say it
	}
	list = append(list, Part{Kind: InputPart, Text: input})
	list = slices.DeleteFunc(list, func(p Part) bool { return p.Text == "" && p.Kind != DiffPart })
	if command == "" && !diffs {
		list = slices.Insert(list, 0, Part{Kind: TitlePart, Text: c.Title})
	}
	return list
}

// placesBelow are the places that a call names, a line each, without the directory itself: some agents name that for every command.
func (c Call) placesBelow(cwd string) string {
	var list []string
	for _, place := range c.Places {
		if below := Below(place, cwd); below != "." {
			list = append(list, below)
		}
	}
	return strings.Join(list, "\n")
}

// Hides tells whether a part holds characters that are not seen. Lines that end as on Windows hide nothing.
func (p Part) Hides() bool {
	if p.Kind == DiffPart {
		return Hides(strings.ReplaceAll(p.Text, "\r\n", "\n"))
	}
	return Hides(p.Text)
}

// Command is the whole command line of a call that runs a program, "" where the call runs none.
func Command(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // an input of another shape has no command
	for _, name := range []string{"command", "cmd", "script"} {
		var line string
		if json.Unmarshal(fields[name], &line) == nil && line != "" {
			return line
		}
		var args []string
		if json.Unmarshal(fields[name], &args) == nil && len(args) > 0 {
			for i, arg := range args {
				args[i] = argument(arg)
			}
			return strings.Join(args, " ")
		}
	}
	return ""
}

// CommandAlone tells that nothing stands beside a command that may change what the command does.
func CommandAlone(input json.RawMessage, cwd string) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // it has a command
	commands := 0
	for name, value := range fields {
		var text string
		switch {
		case name == "description", name == "timeout", slices.Contains([]string{"null", "false", `""`, "[]", "{}"}, string(value)):
		case name == "cwd" || name == "workdir":
			if json.Unmarshal(value, &text) != nil || text != cwd {
				return false
			}
		case name == "command", name == "cmd", name == "script":
			commands++
		default:
			return false
		}
	}
	return commands == 1
}

// argument is an argument as a shell would need it, so that its end can be seen.
func argument(arg string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_@%+=:,./-", r)
	}
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool { return !plain(r) }) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// Below is a path as seen from a directory that it is in; another path is whole.
func Below(path, directory string) string {
	root := strings.TrimRight(directory, `/\`)
	rest, inside := strings.CutPrefix(path, root)
	switch {
	case root == "" || !inside:
		return path
	case rest == "":
		return "."
	case rest[0] == '/' || rest[0] == '\\':
		return rest[1:]
	}
	return path
}

// ContentPart reads an element of a call's content. A terminal is no part: its program has not run yet.
func ContentPart(raw json.RawMessage, cwd string) Part {
	var c struct {
		Type    string
		Content struct{ Type, Text string }
		Path    string
		OldText *string
		NewText *string
		Patch   struct{ Text string }
	}
	if json.Unmarshal(raw, &c) != nil {
		return Part{Kind: InputPart, Text: Indented(raw)}
	}
	switch {
	case c.Type == "terminal":
		return Part{}
	case c.Type == "content" && c.Content.Type == "text":
		return Part{Kind: TextPart, Text: c.Content.Text}
	case c.Type == "diff" && c.Patch.Text != "":
		return counted(Part{Kind: DiffPart, Path: Below(c.Path, cwd), Text: c.Patch.Text}, true)
	case c.Type == "diff" && c.NewText != nil:
		p := Part{Kind: DiffPart, Path: Below(c.Path, cwd), Created: c.OldText == nil}
		old := ""
		if c.OldText != nil {
			old = *c.OldText
		}
		p.Text = changes(old, *c.NewText)
		return counted(p, false)
	}
	return Part{Kind: InputPart, Text: Indented(raw)}
}

// changes is a unified diff without its header; "" where the texts are the same.
func changes(old, after string) string {
	const around, header = 3, 2
	text, err := udiff.ToUnified("a", "b", old, udiff.Lines(old, after), around)
	if err != nil {
		return after
	}
	for range header {
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.TrimSuffix(text, "\n")
}

// counted counts the lines that a diff adds and removes. Only a diff of the agent's own has headers of files.
func counted(p Part, headers bool) Part {
	for line := range strings.Lines(p.Text) {
		switch {
		case headers && (strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- ")):
		case line[0] == '+':
			p.Added++
		case line[0] == '-':
			p.Removed++
		}
	}
	return p
}

// Indented is JSON for people, and as it came where it cannot be read.
func Indented(raw json.RawMessage) string {
	if !json.Valid(raw) {
		return string(raw)
	}
	text, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(text)
}
