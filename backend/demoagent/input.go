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

// input is a prompt as the agent understands it.
type input struct {
	blocks []json.RawMessage
	meta   json.RawMessage // the request's _meta, or nil
	text   string          // the first text block
	args   string          // what stands after a slash command's name, or after "call" or "attach"
	slash  string          // its name; empty when the prompt is none
	steps  []word          // what it asks for; none for a plain prompt
}

// block is a content block with the fields of all kinds.
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

// readBlock reads what it can; a block that is none has no type.
func readBlock(raw json.RawMessage) block {
	var b block
	if json.Unmarshal(raw, &b) != nil {
		return block{}
	}
	return b
}

// describe names a block in one line.
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

func readInput(request promptRequest) input {
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
	in.readWords()
	return in
}

// readWords finds the steps: that of a slash command, else every word that stands in the first line, in the table's order. A
// word that misbehaves needs a line that begins with one of the words: who asks why an app does crash shall not see one.
func (in *input) readWords() {
	if in.readCommand() {
		return
	}
	line, _, _ := strings.Cut(in.text, "\n")
	if at := regexp.MustCompile(`(?i)\b(` + wordCall + `|` + wordAttach + `)\s`).FindStringIndex(line + "\n"); at != nil && at[1] <= len(in.text) {
		line, in.args = line[:at[1]-1], strings.TrimSpace(in.text[at[1]:]) // the rest is its, whatever words are in it
	}
	spoken := " " + strings.Join(strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " ") + " "
	ordered := slices.ContainsFunc(words(), func(w word) bool { return strings.HasPrefix(spoken, " "+w.name+" ") })
	for _, w := range words() {
		if strings.Contains(spoken, " "+w.name+" ") && (ordered || !w.fault) {
			in.steps = append(in.steps, w)
		}
	}
}

// readCommand finds the step of a slash command; false when the prompt is none. A path is none.
func (in *input) readCommand() bool {
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
	for _, w := range words() {
		if w.command() == strings.ToLower(name) {
			in.steps = []word{w}
		}
	}
	return true
}
