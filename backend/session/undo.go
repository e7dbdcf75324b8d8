package session

import (
	"context"

	"deskhand/backend/undo"
)

// undoSession returns the part of a session that its changes depend on.
func undoSession(s *Session) undo.Session {
	u := undo.Session{ID: s.ID, Place: s.Place, Workspace: s.Workspace.ID, Cwd: s.Cwd, Directories: s.Directories}
	if s.Turn != nil {
		u.Turn = s.Turn.ID
	}
	return u
}

// letPromptGo sends the prompt of a turn, as soon as the snapshot before the turn allows.
func (v *conversation) letPromptGo(turn string) {
	if h := v.snapshots.Hold(undoSession(&v.row.Session)); h != nil {
		v.holdPrompt(turn, h)
		return
	}
	v.sendPrompt(turn)
}

// holdPrompt sends the prompt of a turn when h allows. The prompt counts as being composed until then: a cancel is not told to the agent.
func (v *conversation) holdPrompt(turn string, h *undo.Hold) {
	a := v.agent
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		if !h.Wait(ctx) {
			return
		}
		a.post(func() {
			if v.composing != now {
				return // the turn was stopped meanwhile
			}
			v.composing = nil
			if !h.Released() {
				v.holdPrompt(turn, h)
				return
			}
			v.sendPrompt(turn)
		})
	})
}
