package demoagent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// input is a parsed prompt.
type input struct {
	blocks []json.RawMessage
	meta   json.RawMessage // the request's _meta, or nil
	text   string          // the first text block
	args   string          // the text after a slash command's name, or after "call" or "attach"
	slash  string          // the slash command's name; empty without a slash command
	steps  []word          // the requested steps; empty for a plain prompt
}

// block is a content block with the fields of every kind.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI      string `json:"uri"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// readBlock decodes a block. An invalid block has no type.
func readBlock(raw json.RawMessage) block {
	var b block
	if json.Unmarshal(raw, &b) != nil {
		return block{}
	}
	return b
}

// describe describes a block on a single line.
func (b block) describe() string {
	switch b.Type {
	case "image", "audio":
		return fmt.Sprintf("%s %s, %d bytes", b.Type, b.MimeType, decodedSize(b.Data))
	case "resource_link":
		return fmt.Sprintf("link %s, %s", b.Name, b.URI)
	case "resource":
		size := len(b.Resource.Text)
		if b.Resource.Blob != "" {
			size = decodedSize(b.Resource.Blob)
		}
		return fmt.Sprintf("file %s, %d bytes", b.Resource.URI, size)
	case "text":
		return fmt.Sprintf("text, %d bytes", len(b.Text))
	default:
		return fmt.Sprintf("a block of the unknown type %q", b.Type)
	}
}

func decodedSize(base64Text string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(base64Text, "=")))
}

// readInput parses a prompt to an agent that has these words.
func readInput(request promptRequest, words []word) input {
	in := input{blocks: request.Prompt}
	if given(request.Meta) {
		in.meta = request.Meta
	}
	for _, raw := range in.blocks {
		if b := readBlock(raw); b.Type == "text" {
			in.text = strings.TrimSpace(b.Text)
			break
		}
	}
	in.readWords(words)
	return in
}

// readWords finds the steps of a prompt: the step of a slash command, else every word of the first line, in the table's order. A word that
// misbehaves counts only in a line that begins with a word of the table, so that a question about a crash causes no crash.
func (in *input) readWords(words []word) {
	if in.readCommand(words) {
		return
	}
	line, _, _ := strings.Cut(in.text, "\n")
	if at := regexp.MustCompile(`(?i)\b(` + wordCall + `|` + wordAttach + `)\s`).FindStringIndex(line + "\n"); at != nil && at[1] <= len(in.text) {
		line, in.args = line[:at[1]-1], strings.TrimSpace(in.text[at[1]:]) // the rest is an argument, whatever words the rest contains
	}
	spoken := " " + strings.Join(strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " ") + " "
	ordered := slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(spoken, " "+w.name+" ") })
	for _, w := range words {
		if strings.Contains(spoken, " "+w.name+" ") && (ordered || !w.fault) {
			in.steps = append(in.steps, w)
		}
	}
}

// readCommand finds the step of a slash command. readCommand returns false for a prompt without a command, such as a path.
func (in *input) readCommand(words []word) bool {
	name, isCommand := strings.CutPrefix(in.text, "/")
	args := ""
	if end := strings.IndexFunc(name, unicode.IsSpace); end >= 0 {
		name, args = name[:end], strings.TrimSpace(name[end:])
	}
	if !isCommand || name == "" || strings.Contains(name, "/") {
		return false
	}
	in.slash, in.args = name, args
	in.steps = []word{{run: unknownCommand}}
	for _, w := range words {
		if w.command() == strings.ToLower(name) {
			in.steps = []word{w}
		}
	}
	return true
}
