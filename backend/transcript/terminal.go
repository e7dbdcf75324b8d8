package transcript

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// Only the newest part of a program's output is shown. At the limit half of the output is dropped, so that a program with endless output
// costs a rewrite of the entry now and then, and appends otherwise.
const (
	shownOutput = 256 << 10
	keptOutput  = shownOutput / 2
)

// running are the entries that run beside the messages, until their end or the end of their turn or agent.
type running struct {
	terminals   map[string]*Entry // the programs that run for the agent, by terminal id
	displays    map[string]*Entry // the agent's own programs, by terminal id
	compactions map[string]*Entry // of this turn
	stragglers  map[string]*Entry // commands that run on after their turn was stopped, by the straggler's id
}

// served folds a note of our work for the agent.
func (t *Fold) served(f journal.Frame, n Note) {
	switch {
	case n.File != nil:
		t.add(f, "file").File = n.File
	case n.Terminal != nil:
		t.terminal(f, *n.Terminal, n.Text)
	}
}

// terminal folds a note of a program: the program's new state, and its output since the previous note.
func (t *Fold) terminal(f journal.Frame, now Terminal, text string) {
	e := t.running.terminals[now.TerminalID]
	if e == nil {
		e = t.add(f, "terminal")
		now.StartedAt = record.Time{Time: f.At}
		e.Terminal = &Terminal{TerminalID: now.TerminalID, Command: now.Command, Args: now.Args, Cwd: now.Cwd, Running: true, StartedAt: record.Time{Time: f.At}}
		t.running.terminals[now.TerminalID] = e
		t.countTerminals()
	}
	t.output(e, text, now.Skipped)
	if !now.Running {
		t.endTerminal(f, e, now.ExitCode, now.Signal)
		delete(t.running.terminals, now.TerminalID)
		t.countTerminals()
	}
}

// display folds an update of an agent's own program, which some agents send in an extension. Updates about our own programs are ignored.
func (t *Fold) display(f journal.Frame, d acp.TerminalDisplay) {
	if t.running.terminals[d.ID] != nil {
		return
	}
	e := t.running.displays[d.ID]
	if e == nil {
		e = t.add(f, "terminal")
		e.Terminal = &Terminal{TerminalID: d.ID, Cwd: d.Cwd, Running: true, StartedAt: record.Time{Time: f.At}}
		t.running.displays[d.ID] = e
	}
	t.output(e, t.texts.joined(e, d.Data), 0)
	if d.Exited && !e.hasExited() {
		t.endTerminal(f, e, d.ExitCode, d.Signal)
	}
}

func (t *Fold) endTerminal(f journal.Frame, e *Entry, code *int, signal string) {
	if t.texts.begun[e] != "" {
		delete(t.texts.begun, e)
		t.output(e, string(utf8.RuneError), 0)
	}
	now := *e.Terminal
	now.Running, now.ExitCode, now.Signal, now.EndedAt = false, code, signal, &record.Time{Time: f.At}
	e.Terminal = &now
	delete(t.texts.growing, e)
	t.Touch(e)
}

// endTerminals is the end of all programs with the agent that had them run.
func (t *Fold) endTerminals(f journal.Frame) {
	for _, e := range t.running.terminals {
		t.endTerminal(f, e, nil, "")
	}
	clear(t.running.terminals)
	t.countTerminals()
	t.endDisplays(f)
}

func (t *Fold) endDisplays(f journal.Frame) {
	for _, e := range inOrder(t.running.displays) {
		t.endDisplay(f, e)
	}
	clear(t.running.displays)
}

// endDisplay ends an agent's own program with its turn, or with the agent. The agent may report the exit later.
func (t *Fold) endDisplay(f journal.Frame, e *Entry) {
	if e.Terminal.Running {
		t.endTerminal(f, e, nil, "")
	}
}

// countTerminals remembers, in the session's record, that there is something to be ended should we die before.
func (t *Fold) countTerminals() {
	if n := len(t.running.terminals); n != t.Facts.Terminals {
		t.Facts.Terminals, t.FactsChanged = n, true
	}
}

// output appends to a program's output. skipped bytes before text are missing; then the shown output does not directly precede text.
func (t *Fold) output(e *Entry, text string, skipped int64) {
	if t.Said != nil {
		t.Said(e, text)
	}
	if skipped > 0 {
		t.forgetOutput(e, len(e.Text), skipped)
	}
	if text == "" {
		return
	}
	t.grow(e, text)
	if len(e.Text) <= shownOutput {
		return
	}
	t.forgetOutput(e, tailStart(e.Text, keptOutput), 0)
}

// tailStart returns the start of the last bytes of an output, at most most of them: at a line's start when a line starts soon, else at a
// character.
func tailStart(text string, most int) int {
	cut := len(text) - most
	if line := strings.IndexByte(text[cut:], '\n'); line >= 0 && line < most/2 {
		cut += line + 1
	}
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return cut
}

// forgetOutput drops the first bytes of the text and counts them, together with bytes that never were in the text.
func (t *Fold) forgetOutput(e *Entry, cut int, others int64) {
	now := *e.Terminal
	now.Skipped += int64(cut) + others
	e.Terminal = &now
	e.Text = strings.Clone(e.Text[cut:])
	delete(t.texts.growing, e)
	t.Touch(e)
}

// compaction folds both updates of a compaction: the first update may be a chunk of the summary.
func (t *Fold) compaction(f journal.Frame, p acp.CompactionPatch) {
	e := t.running.compactions[p.ID]
	if e == nil {
		e = t.add(f, "compaction")
		e.Compaction = &Compaction{CompactionID: p.ID, Status: "in_progress", StartedAt: record.Time{Time: f.At}}
		t.running.compactions[p.ID] = e
	}
	if p.Replaces {
		e.Text, e.Blocks, e.Clipped = "", nil, 0
		delete(t.texts.growing, e)
		delete(t.texts.begun, e)
		t.Touch(e)
	}
	for _, c := range p.Content {
		switch block := ClipRaw(c.Block); {
		case c.Block == nil:
			t.extend(e, t.texts.joined(e, c.Cut))
		case e.hasRoom(block):
			e.Blocks = append(e.Blocks, block)
			t.Touch(e)
		default:
			t.extend(e, fmt.Sprintf("\n… %d"+ClippedMark+"\n", len(block)))
		}
	}
	if p.Status == "" {
		return
	}
	now := *e.Compaction
	now.Status = p.Status
	if p.Error != nil {
		now.Error = *p.Error
	}
	if now.EndedAt = nil; p.Status != "in_progress" {
		now.EndedAt = &record.Time{Time: f.At}
	}
	e.Compaction = &now
	t.Touch(e)
}

// endCompactions cancels compactions that were cut off with their turn, whatever state the agent last sent.
func (t *Fold) endCompactions(f journal.Frame) {
	for _, e := range t.running.compactions {
		if e.Compaction.Status == "in_progress" {
			now := *e.Compaction
			now.Status, now.EndedAt = "cancelled", &record.Time{Time: f.At}
			e.Compaction = &now
			t.Touch(e)
		}
	}
	clear(t.running.compactions)
}
