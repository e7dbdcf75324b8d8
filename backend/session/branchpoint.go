package session

import (
	"context"
	"encoding/json"

	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// Branch makes a session that goes on from before the message that began a turn, so that a person can say the message differently. The
// protocol has no fork at a message, so the agent of the branch begins anew: the draft of the branch is the message, or instead in its place,
// with the message's files, and one file more with what was said before. No agent starts until the draft is sent.
func (c *Client) Branch(ctx context.Context, id, turn, instead string) (Session, error) {
	if err := c.ReadOnly(); err != nil {
		return Session{}, err
	}
	v, err := c.conversation(ctx, id)
	if err == nil {
		err = v.look().Subagent.refuses(nil)
	}
	if err != nil {
		return Session{}, err
	}
	f := fork{before: &branchPoint{turn: turn, message: instead, agent: v.agentName}}
	err = v.call(ctx, func() error {
		if v.state.Turn != "" {
			return &RefusedError{Code: lifecycle.RefusedRunning}
		}
		f.parent = v.row
		f.parent.facts = v.fold.Facts
		return nil
	})
	if err != nil {
		return Session{}, err
	}
	if err := c.findMessage(ctx, &f); err != nil {
		return Session{}, err
	}
	if f.before.secret, err = c.Redactor(ctx, f.parent.Session); err != nil {
		c.cfg.Logger.Warn("what a branch is given may hold secrets that cannot be read", "session", id, "error", err)
	}
	b, err := c.copySession(ctx, f)
	if err != nil {
		return Session{}, err
	}
	return c.show(b.look()), nil
}

// findMessage finds the message of a branch in the parent's journal. A branch of the first message of a branch is one more branch of the
// message that both say differently.
func (c *core) findMessage(ctx context.Context, f *fork) error {
	var found, first bool
	err := c.readWhole(ctx, f.parent.ID, func(fr journal.Frame) {
		var n transcript.Note
		if found || fr.Dir != journal.Note || json.Unmarshal(fr.Data, &n) != nil {
			return
		}
		switch n.Note {
		case transcript.NoteForked:
			first = n.Reason == transcript.ReasonBranch
		case transcript.NoteTurnBegan:
			if found = n.Turn == f.before.turn; found {
				f.until = fr.N - 1
				f.before.take(n, first && f.parent.Origin != nil)
			}
			first = false
		}
	})
	if err == nil && !found {
		return bad(refusedUnknownTurn, "turn", f.before.turn)
	}
	return err
}
