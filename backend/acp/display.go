package acp

import (
	"encoding/json"
	"fmt"
)

// TerminalDisplay is the information about a program of the agent's own in the _meta of a tool call: an extension of Claude, Codex and
// Zed, requested by clientCapabilities._meta.terminal_output.
type TerminalDisplay struct {
	ID       string
	Cwd      string
	Data     Cut // further output of the program
	Exited   bool
	ExitCode *int
	Signal   string
}

// meta is the part of a tool call's _meta that this package decodes.
type meta struct {
	Claude struct {
		Parent Text `json:"parentToolUseId"`
	} `json:"claudeCode"`
	Codex struct {
		Parent Text `json:"parentToolCallId"`
	} `json:"codex"`
	Info optional[struct {
		ID  Text   `json:"terminal_id"`
		Cwd string `json:"cwd"`
	}] `json:"terminal_info"`
	Output optional[terminalData] `json:"terminal_output"`
	Delta  optional[terminalData] `json:"terminal_output_delta"`
	Exit   optional[struct {
		ID     Text    `json:"terminal_id"`
		Code   Integer `json:"exit_code"`
		Signal string  `json:"signal"`
	}] `json:"terminal_exit"`
}

type terminalData struct {
	ID   Text    `json:"terminal_id"`
	Data cutText `json:"data"`
}

// parent returns the id of the tool call to which this call belongs.
func (m meta) parent() string {
	if m.Claude.Parent != "" {
		return string(m.Claude.Parent)
	}
	return string(m.Codex.Parent)
}

// display returns nil for a tool call without a program. A missing terminal id is the id of the tool call.
func (m meta) display(toolCall string) *TerminalDisplay {
	if !m.Info.given && !m.Output.given && !m.Delta.given && !m.Exit.given {
		return nil
	}
	d := TerminalDisplay{ID: toolCall}
	take := func(id Text) {
		if id != "" {
			d.ID = string(id)
		}
	}
	take(m.Info.value.ID)
	d.Cwd = m.Info.value.Cwd
	for _, data := range []terminalData{m.Output.value, m.Delta.value} {
		take(data.ID)
		if data.Data.given && data.Data.Text != "" {
			d.Data = data.Data.Cut // of the two, agents send one
		}
	}
	if exit := m.Exit.value; m.Exit.given {
		take(exit.ID)
		d.Exited, d.ExitCode, d.Signal = true, exit.Code.Int(), exit.Signal
	}
	return &d
}

// CompactionPatch is a compaction_update or a compaction_summary_chunk. Replaces says that Content replaces the summary rather than
// extending the summary. An empty Status keeps the old status, and a nil Error keeps the old error.
type CompactionPatch struct {
	ID       string
	Status   string
	Error    *string
	Content  []Chunk
	Replaces bool
}

// ParseCompaction decodes a compaction_update. Missing fields keep the old value, null clears.
func ParseCompaction(body json.RawMessage) (CompactionPatch, error) {
	var c struct {
		ID      Text            `json:"compactionId"`
		Status  string          `json:"status"`
		Summary json.RawMessage `json:"summary"`
		Error   json.RawMessage `json:"error"`
	}
	if err := lenient(body, &c); err != nil {
		return CompactionPatch{}, err
	}
	if c.ID == "" {
		return CompactionPatch{}, fmt.Errorf("%w: a compaction without compactionId", ErrShape)
	}
	p := CompactionPatch{ID: string(c.ID), Status: c.Status}
	if c.Error != nil {
		p.Error = new(string)
		_ = json.Unmarshal(c.Error, p.Error) // a value that is no text clears the error, as the schema says
	}
	if c.Summary == nil {
		return p, nil
	}
	p.Replaces = true
	var blocks []json.RawMessage
	_ = json.Unmarshal(c.Summary, &blocks) // null, and a value that is no list, clear the summary
	for _, raw := range blocks {
		if chunk, err := ParseBlock(raw); err == nil {
			p.Content = append(p.Content, chunk)
		}
	}
	return p, nil
}

// ParseCompactionChunk decodes a compaction_summary_chunk.
func ParseCompactionChunk(body json.RawMessage) (CompactionPatch, error) {
	var c struct {
		ID      Text            `json:"compactionId"`
		Content json.RawMessage `json:"content"`
	}
	if err := lenient(body, &c); err != nil {
		return CompactionPatch{}, err
	}
	if c.ID == "" {
		return CompactionPatch{}, fmt.Errorf("%w: a compaction without compactionId", ErrShape)
	}
	chunk, err := ParseBlock(c.Content)
	return CompactionPatch{ID: string(c.ID), Content: []Chunk{chunk}}, err
}
