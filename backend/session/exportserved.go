package session

import (
	"encoding/json"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/prose"
	"deskhand/backend/transcript"
)

// served writes what we did for the agent, and what it tells of itself.
func (m *markdown) served(e transcript.Entry) {
	switch {
	case e.Terminal != nil:
		how := "running"
		switch t := e.Terminal; {
		case t.Running:
		case t.Signal != "":
			how = "ended by " + t.Signal
		case t.ExitCode != nil && *t.ExitCode == 0:
			how = "completed"
		default:
			how = "failed"
		}
		m.print("\n**terminal** %s (%s)\n", m.code(strings.Join(append([]string{e.Terminal.Command}, e.Terminal.Args...), " ")), how)
		if e.Text != "" {
			m.print("\n%s\n", acp.Fenced("", e.Text))
		}
	case e.File != nil:
		m.print("\n**file** %s\n", m.code(e.File.Path))
		var d struct{ OldText, NewText string }
		if json.Unmarshal(e.File.Diff, &d) == nil {
			m.print("\n%s\n", acp.Fenced("diff", difference(d.OldText, d.NewText)))
		}
	case e.Compaction != nil:
		m.print("\n**compaction** (%s)\n", flat(e.Compaction.Status))
		if e.Text != "" {
			m.print("\n%s\n", prose.Closed(e.Text))
		}
	}
}
