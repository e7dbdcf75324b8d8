package demoagent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// recorder collects what a turn tells, as session/load replays it: the chunks of one text joined, and every tool call with an
// end. What is not history (notices, usage, settings) is not given to it. Its zero value is ready but for the turn.
type recorder struct {
	turn    int
	records []record
	open    []string // tool calls without an end
	kind    string   // of the text that is being joined, with its message
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

func (r *recorder) tool(call toolCall) {
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

// take gives what was recorded and starts anew. A tool call that has no end was cancelled: ACP's word for that is failed.
func (r *recorder) take() []record {
	r.endText()
	for _, id := range r.open {
		r.other(toolCall{SessionUpdate: "tool_call_update", ToolCallID: id, Status: "failed"})
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

// cut keeps the beginning of a text that is too long for a history, and says so.
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

// keptBlock is a block of a prompt as the history keeps it: as it came, unless it is too big or of no known kind.
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
