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
	Places   []string // the paths that the call names
}

// Part is a single text that a person decides about.
type Part struct {
	Kind    string // one of the kinds below
	Path    string // of a diff, relative to the conversation's directory when below that directory
	Created bool   // of a diff: the file is new
	Added   int    // lines that a diff adds
	Removed int
	Text    string // never shortened; unseen characters stay as they are
}

// The kinds of parts.
const (
	TitlePart   = "title"   // the agent's own title, when the call tells nothing else
	CommandPart = "command" // a command line
	DiffPart    = "diff"    // a change, as a unified diff without its header
	TextPart    = "text"    // a text beside the call, such as a plan
	PlacesPart  = "places"  // the paths that the call names, a line each
	InputPart   = "input"   // the input of the call, as indented JSON
)

// Parts returns the parts of a call in the order in which they are shown. cwd is the directory of the call's conversation.
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
		input = "" // the other parts show the same
	}
	list = append(list, Part{Kind: InputPart, Text: input})
	list = slices.DeleteFunc(list, func(p Part) bool { return p.Text == "" && p.Kind != DiffPart })
	if command == "" && !diffs {
		list = slices.Insert(list, 0, Part{Kind: TitlePart, Text: c.Title})
	}
	return list
}

// placesBelow returns the paths that a call names, a line each, without the directory itself, which some agents name for every command.
func (c Call) placesBelow(cwd string) string {
	var list []string
	for _, place := range c.Places {
		if below := Below(place, cwd); below != "." {
			list = append(list, below)
		}
	}
	return strings.Join(list, "\n")
}

// Hides reports whether a part holds characters that are not seen. Line ends of Windows hide nothing.
func (p Part) Hides() bool {
	if p.Kind == DiffPart {
		return Hides(strings.ReplaceAll(p.Text, "\r\n", "\n"))
	}
	return Hides(p.Text)
}

// Command returns the whole command line of a call that runs a program, or "" when the call runs none.
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

// CommandAlone reports whether nothing beside the command may change the effect of the command.
func CommandAlone(input json.RawMessage, cwd string) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // the input has a command, so it is an object
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

// argument returns an argument quoted for a shell, so that its end can be seen.
func argument(arg string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_@%+=:,./-", r)
	}
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool { return !plain(r) }) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// Below returns path relative to directory when path is in directory, and path itself otherwise.
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

// ContentPart returns the part for an element of a call's content. A terminal is no part, because its program has not run yet.
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

// changes returns a unified diff without its header, or "" when the texts are equal.
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

// counted counts the lines that a diff adds and removes. headers says that the diff comes from the agent and may have headers of files.
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

// Indented returns JSON indented for people. Text that is no JSON is returned unchanged.
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
