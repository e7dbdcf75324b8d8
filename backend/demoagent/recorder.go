package demoagent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// recorder collects the updates of a turn for session/load: the joined chunks of each text, and every tool call with an end. Notices, usage
// and settings are no history and not recorded. The zero value is ready to use once turn is set.
type recorder struct {
	turn    int
	records []record
	open    []string // unfinished tool calls
	kind    string   // kind of the text that is being joined; message is its id
	message string
	text    strings.Builder
}

// chunk records a part of a message.
func (r *recorder) chunk(kind, message string, block any) {
	part, isText := block.(textBlock)
	if !isText {
		r.other(chunk{SessionUpdate: kind, MessageID: message, Content: block})
		return
	}
	if kind != r.kind || message != r.message {
		r.endText()
		r.kind, r.message = kind, message
	}
	r.text.WriteString(part.Text)
}

func (r *recorder) tool(call ToolCall) {
	r.other(call)
	switch {
	case call.Status == "completed" || call.Status == "failed":
		for i, id := range r.open {
			if id == call.ToolCallID {
				r.open = append(r.open[:i], r.open[i+1:]...)
				break
			}
		}
	case call.SessionUpdate == "tool_call":
		r.open = append(r.open, call.ToolCallID)
	}
}

func (r *recorder) other(update any) {
	r.endText()
	r.records = append(r.records, record{Turn: r.turn, Update: encodeUpdate(update)})
}

func (r *recorder) endText() {
	if r.kind == "" {
		return
	}
	kept := chunk{SessionUpdate: r.kind, MessageID: r.message, Content: text(cut(r.text.String()))}
	r.records = append(r.records, record{Turn: r.turn, Update: encodeUpdate(kept)})
	r.kind, r.message = "", ""
	r.text.Reset()
}

// take returns the recorded updates and starts anew. A tool call without an end was cancelled, which ACP calls failed.
func (r *recorder) take() []record {
	r.endText()
	for _, id := range r.open {
		r.other(ToolCall{SessionUpdate: "tool_call_update", ToolCallID: id, Status: "failed"})
	}
	records := r.records
	r.records, r.open = nil, nil
	return records
}

func encodeUpdate(update any) json.RawMessage {
	data, err := json.Marshal(update)
	if err != nil {
		panic(fmt.Sprintf("demo agent: an update that cannot be encoded: %v", err))
	}
	return data
}

// cut shortens a text that is too long for a history, and marks the cut.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + fmt.Sprintf("\n\n[%d more bytes are not kept in the history]", len(s)-end)
}

// keptBlock is a prompt's block as the history stores the block: unchanged, unless the block is too big or of unknown kind.
func keptBlock(raw json.RawMessage) any {
	b := readBlock(raw)
	switch b.Type {
	case "text":
		return text(cut(b.Text))
	case "image", "audio", "resource_link", "resource":
		if len(raw) <= maxText {
			return raw
		}
	}
	return text(fmt.Sprintf("[%s, not kept in the history]", b.describe()))
}
