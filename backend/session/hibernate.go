package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// A session that has been idle for a while can do without its agent: what it takes of the machine's memory is of more use to others,
// and the agent takes the conversation up again when it is spoken to. Package processes says when; here is what the conversation
// does about it.

// rest is what others may know of an idle conversation without asking its goroutine.
type rest struct {
	serverID string    // of the agent
	since    time.Time // when something last happened in it
}

// noteRest tells others how long the conversation has been idle. It is called when a step is written.
func (v *conversation) noteRest(happened bool) {
	if happened {
		v.active = time.Now()
	}
	switch {
	case v.state.Decide(lifecycle.Hibernate{ComesBack: v.comesBack()})[0] != lifecycle.Event(lifecycle.FellAsleep{}):
		v.rest.Store(nil)
	case happened || v.rest.Load() == nil:
		v.rest.Store(&rest{serverIDOf(v.row.Session), v.active})
	}
}

// serverIDOf is the identity of a session's newest agent process.
func serverIDOf(s Session) string { return fmt.Sprintf("%s.%d", s.ID, s.Generation) }

// comesBack tells whether nothing of the conversation is lost with the agent: it can take it up again, as far as it says itself, or there is
// nothing to take up. What it was never told it may not have written down: a session is kept from the end of a first turn on. One that has
// programs running would lose them.
func (v *conversation) comesBack() bool {
	a := v.agent
	if a == nil || len(v.forking.waiting) > 0 || v.fold.Facts.Terminals > 0 || len(v.fold.Running()) > 0 {
		return false
	}
	return v.unspoken() || a.kept && (a.can.Resume || a.can.LoadSession) && v.row.ACPSessionID != ""
}

// unspoken tells that nobody has said anything since the agent made the session, which was no other one before: the next agent makes another,
// and that is the same. What a person chose it is told again (rechoose).
func (v *conversation) unspoken() bool {
	return v.agent != nil && v.restored == "new" && !v.agent.spoken
}

// noteSaid notes that the agent was spoken to, or has said something itself.
func (v *conversation) noteSaid(entries []transcript.Change) {
	if v.agent != nil && slices.ContainsFunc(entries, func(c transcript.Change) bool { return c.Entry.Kind != "divider" && c.Entry.Kind != "notice" }) {
		v.agent.spoken = true
	}
}

// putAway ends the agent of a conversation that was archived, if nothing is lost by that: budget or not, it may be the last that is heard of it.
func (v *conversation) putAway() {
	switch {
	case v.agent == nil:
	case v.state.Base == lifecycle.Starting && v.state.Turn == "" && v.row.ACPSessionID == "" && !v.importing():
		v.do(lifecycle.Cancel{Unstarted: true}) // it was to begin, and nobody has said anything
	case v.agent.can.Close || v.unspoken():
		v.do(lifecycle.Hibernate{ComesBack: v.comesBack()}) // refused while something goes on
	}
}

// keeps notes that the agent holds something of the conversation: it has given it back to us, or has ended a turn of it.
func (v *conversation) keeps(it bool) {
	if v.agent != nil {
		v.agent.kept = v.agent.kept || it
	}
}

// sleep ends the agent of a conversation that is as it was when r was noted; else it does nothing.
func (v *conversation) sleep(ctx context.Context, r *rest) bool {
	err := v.call(ctx, func() error {
		if v.rest.Load() != r {
			return &RefusedError{Code: lifecycle.RefusedUntimely}
		}
		return v.wish(lifecycle.Hibernate{ComesBack: v.comesBack()})
	})
	return err == nil
}

// fallAsleep ends the agent, quietly but for a line in the transcript. Nothing has happened in the session, so its place in the list
// stays. The next start waits until the process is gone, see begin.
func (v *conversation) fallAsleep() {
	v.stage("")
	v.lastExit, v.row.Exit = nil, nil
	unspoken := v.unspoken()
	v.detach(true, false)
	if unspoken {
		v.row.ACPSessionID = "" // an empty session need not be taken up again, and not every agent could
	}
	v.note(transcript.Note{Note: transcript.NoteClosed, Reason: transcript.ReasonHibernated})
}

// stage tells how far a start has come; "" when it is over.
func (v *conversation) stage(step string) {
	v.row.Step, v.row.StepSince = step, nil
	if step != "" {
		v.row.StepSince = &Time{Time: time.Now()}
	}
	v.saveRow()
}
