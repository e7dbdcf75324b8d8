package transcript

import (
	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// Calls returns the tool calls of the running turn, or of the last turn, the oldest first.
func (t *Fold) Calls(turn string) (list []*ToolCall) {
	for _, e := range t.called {
		if e.Turn == turn {
			list = append(list, e.Tool)
		}
	}
	return list
}

// Running returns the entries of the stragglers that run on, the oldest first.
func (t *Fold) Running() []*Entry { return inOrder(t.running.stragglers) }

// Straggler returns the entry of a command that runs on, by the entry's id; nil when there is none.
func (t *Fold) Straggler(entry string) *Entry {
	for _, e := range t.running.stragglers {
		if e.ID == entry {
			return e
		}
	}
	return nil
}

// left folds a note of a straggler: that Deskhand found the straggler, or that the straggler has ended.
func (t *Fold) left(f journal.Frame, n Note) {
	now := n.Straggler
	if now == nil {
		return
	}
	if e := t.running.stragglers[now.ID]; e != nil && !now.Running {
		t.endStraggler(f, e, now.EndedBy)
		delete(t.running.stragglers, now.ID)
		return
	}
	if !now.Running {
		return
	}
	open, byID := t.open, t.byID // the streaming message continues behind the straggler
	t.byID = map[string]*Entry{}
	e := t.add(f, "straggler")
	t.open, t.byID = open, byID
	e.Turn, e.Straggler = n.Turn, now
	t.running.stragglers[now.ID] = e
}

func (t *Fold) endStraggler(f journal.Frame, e *Entry, by string) {
	now := *e.Straggler
	now.Running, now.EndedAt, now.EndedBy = false, &record.Time{Time: f.At}, by
	e.Straggler = &now
	t.Touch(e)
}

// endStragglers is the end of all of them with the agent.
func (t *Fold) endStragglers(f journal.Frame) {
	for _, e := range inOrder(t.running.stragglers) {
		t.endStraggler(f, e, endedByAgent)
	}
	clear(t.running.stragglers)
}
