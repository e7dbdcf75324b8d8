package rulebook

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/attachment"
	"deskhand/backend/permission"
	"deskhand/backend/rules"
)

// Asked is the tool call that a permission is asked for, as the agent told of the call.
type Asked struct {
	permission.Call

	Name    string // of the tool
	Told    bool   // false when the agent told of no call
	Choice  bool   // only a person answers
	Clipped bool   // a part of the call was cut off
}

// read returns the meaning of a tool call for the judgement. Only the fields that agents write for programs count: titles and texts are for
// people, and a title that says something else than the fields is a doubt. A value that was hidden or shortened is a doubt as well, because a
// person would see something else than the agent would do.
func (b *Book) read(a Asked) rules.Call {
	if !a.Told {
		return rules.Call{Kind: rules.Other, Doubt: "nothing_told"}
	}
	c := &callReader{asked: a, cut: b.cfg.Cut, call: rules.Call{Kind: kindOf(a.Kind), Tool: a.Name}}
	if a.Choice {
		c.call.Choice = true
		return c.call
	}
	if a.Clipped {
		c.doubt("too_long") // the part that was cut off may be anything
	}
	input := map[string]json.RawMessage{}
	if json.Unmarshal(a.RawInput, &input) != nil && len(a.RawInput) > 0 {
		c.readBare()
	}
	for _, raw := range slices.Concat([]json.RawMessage{a.RawInput}, a.Content) {
		if bytes.Contains(raw, []byte(b.cfg.Hidden)) {
			c.doubt("redacted")
		}
	}
	c.readInput(input)
	c.readFiles()
	c.finish(input)
	return c.call
}

func kindOf(kind string) rules.Kind {
	for _, k := range rules.Kinds() {
		if string(k) == kind && k != rules.Any {
			return k
		}
	}
	return rules.Other
}

type callReader struct {
	asked Asked
	cut   string // ends a text that was shortened
	call  rules.Call
	paths []string
	dirs  []string

	beside bool // a field beside the command changes how the command runs
}

func (c *callReader) doubt(code string) {
	if c.call.Doubt == "" {
		c.call.Doubt = code
	}
}

// readBare takes an input that is a bare text for a command. People are not shown such a command, but a rule may deny the command.
func (c *callReader) readBare() {
	var text string
	if json.Unmarshal(c.asked.RawInput, &text) == nil && c.call.Kind == rules.Execute {
		c.call.Commands = append(c.call.Commands, rules.Command{Line: text})
	}
	c.doubt("not_shown")
}

func (c *callReader) readInput(input map[string]json.RawMessage) {
	keys := make([]string, 0, len(input))
	for key := range input {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := input[key]
		switch lower := strings.ToLower(key); lower {
		case "command", "cmd", "script":
			c.readCommand(value, lower == key)
		case "cwd", "workdir", "working_directory", "workingdirectory":
			c.dirs = append(c.dirs, c.whole(value)...)
		case "args", "arguments", "argv", "env", "environment", "stdin", "shell", "user", "sandbox_permissions", "additional_permissions",
			"with_escalated_permissions", "dangerouslydisablesandbox", "elevated", "privileged":
			if !slices.Contains([]string{"null", "false", "{}", "[]", `""`}, string(value)) {
				c.beside = true
			}
		case "url", "uri", "urls":
			c.readHosts(value)
		case "patch", "input":
			c.readPatch(value)
		default:
			c.readPath(lower, value)
		}
	}
}

// readPath takes the paths of a field whose name says that the field has paths.
func (c *callReader) readPath(key string, value json.RawMessage) {
	switch key {
	case "directory", "dir":
		c.paths = append(c.paths, c.whole(value)...)
		c.dirs = append(c.dirs, texts(value)...)
	case "path", "file_path", "filepath", "filename", "file", "abs_path", "absolute_path", "notebook_path", "target_file", "target", "source", "destination",
		"old_path", "new_path", "oldpath", "newpath", "from", "to", "paths", "files", "file_paths":
		c.paths = append(c.paths, c.whole(value)...)
	case "changes":
		var byPath map[string]json.RawMessage
		if json.Unmarshal(value, &byPath) == nil {
			c.paths = slices.AppendSeq(c.paths, maps.Keys(byPath))
		}
	}
}

// whole returns the texts of a value. A shortened text is a doubt: the rest may change the meaning of the text.
func (c *callReader) whole(raw json.RawMessage) []string {
	list := texts(raw)
	if slices.ContainsFunc(list, func(text string) bool { return strings.HasSuffix(text, c.cut) }) {
		c.doubt("too_long")
	}
	return list
}

// texts returns the texts of a value that is a single text or a list of texts.
func texts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil
		}
		return []string{one}
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	return nil
}

// readCommand takes a command; shown says that people see the command.
func (c *callReader) readCommand(raw json.RawMessage, shown bool) {
	if !shown {
		c.doubt("not_shown")
	}
	c.whole(raw)
	var line string
	var argv []string
	switch {
	case json.Unmarshal(raw, &line) == nil:
		if line == "" {
			return
		}
		c.call.Commands = append(c.call.Commands, rules.Command{Line: line})
	case json.Unmarshal(raw, &argv) == nil && len(argv) > 0:
		c.call.Commands = append(c.call.Commands, rules.Command{Argv: argv})
	default:
		c.doubt("not_shown")
	}
}

// readPatch takes the paths out of a patch in the form that models write patches.
func (c *callReader) readPatch(raw json.RawMessage) {
	for _, text := range c.whole(raw) {
		for line := range strings.Lines(text) {
			for _, begins := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
				if path, found := strings.CutPrefix(strings.TrimSpace(line), begins); found { // programs that apply a patch may ignore blanks
					c.paths = append(c.paths, strings.TrimSpace(path))
				}
			}
		}
	}
}

// readSearch doubts a pattern that may find files outside of the directory, whatever the directory is. Braces hold several patterns.
func (c *callReader) readSearch(raw json.RawMessage) {
	for _, text := range c.whole(raw) {
		for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '{' || r == ',' }) {
			one = filepath.ToSlash(one)
			if strings.HasPrefix(one, "/") || strings.HasPrefix(one, "~") || filepath.IsAbs(one) || slices.Contains(strings.Split(one, "/"), "..") {
				c.doubt("outside_root")
			}
		}
	}
}

func (c *callReader) readHosts(raw json.RawMessage) {
	if c.call.Kind != rules.Fetch {
		return
	}
	for _, text := range c.whole(raw) {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
			c.doubt("address")
			continue
		}
		c.call.Hosts = append(c.call.Hosts, u.Hostname())
	}
}

// readFiles takes the paths that stand beside the input: the places of the call, and the files that the call would change.
func (c *callReader) readFiles() {
	c.paths = append(c.paths, c.asked.Places...)
	for _, raw := range c.asked.Content {
		var d struct {
			Type    string `json:"type"`
			Path    string `json:"path"`
			Changes []struct {
				Path    string `json:"path"`
				NewPath string `json:"newPath"`
				OldPath string `json:"oldPath"`
			} `json:"changes"`
		}
		if json.Unmarshal(raw, &d) != nil {
			c.doubt("not_shown") // the content may be a change of a file
			continue
		}
		if d.Type != "diff" {
			continue
		}
		if k := c.call.Kind; k != rules.Delete && k != rules.Move {
			c.call.Kind = rules.Edit // whatever kind the agent named
		}
		c.paths = append(c.paths, d.Path)
		for _, ch := range d.Changes {
			c.paths = append(c.paths, ch.Path, ch.NewPath, ch.OldPath)
		}
	}
}

func (c *callReader) finish(input map[string]json.RawMessage) {
	slices.Sort(c.paths)
	c.paths = slices.DeleteFunc(slices.Compact(c.paths), func(p string) bool { return p == "" })
	for i, p := range c.paths {
		if path, ok := attachment.FromURI(p); ok {
			c.paths[i] = filepath.ToSlash(path)
		} else if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
			c.paths[i] = filepath.ToSlash(attachment.PathIn(u.Path))
		}
	}
	switch c.call.Kind {
	case rules.Read, rules.Edit, rules.Delete, rules.Move, rules.Search:
		c.call.Paths = c.paths
		pattern, looks := input["pattern"]
		if c.call.Kind == rules.Search && looks {
			c.readSearch(pattern)
			if len(c.paths) == 0 {
				c.call.Paths = []string{"."}
			}
		}
	default:
	}
	if len(c.call.Commands) > 0 {
		c.finishCommand()
	} else if c.call.Kind == rules.Execute {
		c.doubt("nothing_told")
	}
}

func (c *callReader) finishCommand() {
	if c.beside || slices.ContainsFunc(c.dirs, func(dir string) bool { return !sameDirectory(dir, c.dirs[0]) }) {
		c.doubt("more_told")
	}
	if len(c.dirs) > 0 {
		c.call.Dir = c.dirs[0]
	}
	c.title()
}

// title compares the command that the title quotes with the command that would run.
func (c *callReader) title() {
	title := strings.TrimSpace(c.asked.Title)
	if len(title) < 2 || title[0] != '`' || title[len(title)-1] != '`' {
		return
	}
	said := strings.Join(strings.Fields(strings.ReplaceAll(title[1:len(title)-1], "\\`", "`")), " ")
	for _, cmd := range c.call.Commands {
		line := cmd.Line
		if cmd.Argv != nil {
			line = strings.Join(cmd.Argv, " ")
			if n := len(cmd.Argv); n == 3 && strings.HasSuffix(cmd.Argv[0], "sh") && strings.Join(strings.Fields(cmd.Argv[2]), " ") == said {
				continue // the title quotes the command without the shell that runs the command
			}
		}
		if strings.Join(strings.Fields(line), " ") != said {
			c.doubt("title")
		}
	}
}

// sameDirectory reports whether two paths, as agents write them beside a command, name the same directory.
func sameDirectory(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
