package editor

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"deskhand/backend/acp"
)

// Programs run in Deskhand or in the agent, and never in the editor, so a tool call may name programs that the editor does not know. An editor
// that reads programs' output in _meta gets the output there, in the form used by such agents; other editors get text.

// shownOutput limits a program's output in a tool call to the newest bytes.
const shownOutput = 32 << 10

func (m *mirror) program(id string) *program {
	p := m.programs[id]
	if p == nil {
		p = &program{id: id}
		m.programs[id] = p
	}
	return p
}

func (p *program) write(text string) {
	p.text += text
	if over := len(p.text) - shownOutput; over > 0 {
		for over < len(p.text) && !utf8.RuneStart(p.text[over]) {
			over++
		}
		p.text, p.skipped = p.text[over:], true
	}
}

// ran applies the journal's record of a program that Deskhand runs.
func (m *mirror) ran(now terminal, text string) {
	p := m.program(now.ID)
	p.ours, p.cwd = true, now.Cwd
	p.skipped = p.skipped || now.Skipped > 0
	p.write(text)
	if !now.Running {
		p.ended, p.code, p.signal = true, now.ExitCode, now.Signal
	}
	for _, c := range m.calls {
		if !slices.Contains(c.programs, now.ID) {
			continue
		}
		if m.takes.terminals {
			m.send(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": c.id, "_meta": p.told(text)})
		} else {
			m.grown(c)
		}
	}
}

// told is the _meta of an update about a program's output.
func (p *program) told(text string) map[string]any {
	meta := map[string]any{}
	if !p.announced {
		p.announced = true
		meta["terminal_info"] = map[string]any{"terminal_id": p.id, "cwd": p.cwd}
	}
	if text != "" {
		meta["terminal_output"] = map[string]any{"terminal_id": p.id, "data": text}
	}
	if p.ended {
		end := map[string]any{"terminal_id": p.id, "exit_code": p.code, "signal": nil}
		if p.signal != "" {
			end["signal"] = p.signal
		}
		meta["terminal_exit"] = end
	}
	return meta
}

func (m *mirror) grown(c *call) {
	if !c.dirty {
		c.dirty = true
		m.dirty = append(m.dirty, c)
	}
}

// toolCall passes on a tool call or an update of a tool call.
func (m *mirror) toolCall(body json.RawMessage) {
	p, err := acp.ParseToolCall(body)
	if err != nil {
		m.out(body)
		return
	}
	c := m.calls[p.ToolCallID]
	if c == nil {
		c = &call{id: p.ToolCallID}
		m.calls[p.ToolCallID] = c
	}
	if p.Content != nil {
		c.content, c.programs = *p.Content, terminalsIn(*p.Content)
	}
	if m.takes.terminals {
		m.withMeta(body, c)
		return
	}
	if p.Display != nil {
		m.display(c, *p.Display)
	}
	if p.Content == nil || len(c.programs) == 0 {
		m.out(body)
		return
	}
	c.dirty = false // this update shows all output
	m.dirty = slices.DeleteFunc(m.dirty, func(d *call) bool { return d == c })
	m.out(with(body, "content", m.rendered(c)))
}

// display records a program's output that an agent reported in _meta, for an editor that does not read _meta.
func (m *mirror) display(c *call, d acp.TerminalDisplay) {
	p := m.program(d.ID)
	if p.ours {
		return
	}
	p.write(d.Data.Text)
	if d.Exited {
		p.ended, p.code, p.signal = true, d.ExitCode, d.Signal
	}
	if !slices.Contains(c.programs, d.ID) && len(c.content) == 0 { // the output appears nowhere else
		c.programs = append(c.programs, d.ID)
	}
	m.grown(c)
}

// withMeta adds Deskhand's programs to the update that mentions them first.
func (m *mirror) withMeta(body json.RawMessage, c *call) {
	var first []*program
	for _, id := range c.programs {
		if p := m.programs[id]; p != nil && p.ours && !p.announced {
			first = append(first, p)
		}
	}
	if len(first) == 0 {
		m.out(body)
		return
	}
	var own struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(body, &own) // ParseToolCall has parsed the body
	meta := map[string]any{}
	for k, v := range own.Meta {
		meta[k] = v
	}
	meta["terminal_info"] = map[string]any{"terminal_id": first[0].id, "cwd": first[0].cwd}
	first[0].announced = true
	m.out(with(body, "_meta", meta))
	for _, p := range first {
		if told := p.told(p.text); len(told) > 0 {
			m.out(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": c.id, "_meta": told})
		}
	}
}

// terminalsIn are the terminals in a tool call's content.
func terminalsIn(content []json.RawMessage) []string {
	var list []string
	for _, raw := range content {
		if id := terminalOf(raw); id != "" {
			list = append(list, id)
		}
	}
	return list
}

func terminalOf(item json.RawMessage) string {
	var c struct {
		Type       string `json:"type"`
		TerminalID string `json:"terminalId"`
	}
	if json.Unmarshal(item, &c) != nil || c.Type != "terminal" {
		return ""
	}
	return c.TerminalID
}

// rendered is a tool call's content with text in place of terminals.
func (m *mirror) rendered(c *call) []json.RawMessage {
	list := []json.RawMessage{}
	shown := map[string]bool{}
	for _, item := range c.content {
		id := terminalOf(item)
		if id == "" {
			list = append(list, item)
			continue
		}
		shown[id] = true
		list = append(list, m.program(id).block())
	}
	for _, id := range c.programs {
		if !shown[id] {
			list = append(list, m.program(id).block())
		}
	}
	return list
}

// block is a program's output as content of a tool call.
func (p *program) block() json.RawMessage {
	text := p.text
	if p.skipped {
		text = "…\n" + text
	}
	return encoded(map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": acp.Fenced("console", text)}})
}

// with returns a JSON object with a changed member.
func with(object json.RawMessage, key string, value any) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return object
	}
	fields[key] = encoded(value)
	return encoded(fields)
}

// encoded is a value of ours as JSON, whose encoding cannot fail.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("editor: a value that is no JSON: " + err.Error())
	}
	return data
}
