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
func (q *idleness) noteRest(happened bool) {
	if happened {
		q.active = time.Now()
	}
	switch {
	case q.v.state.Decide(lifecycle.Hibernate{ComesBack: q.comesBack()})[0] != lifecycle.Event(lifecycle.FellAsleep{}):
		q.v.rest.Store(nil)
	case happened || q.v.rest.Load() == nil:
		q.v.rest.Store(&rest{serverIDOf(q.v.row.Session), q.active})
	}
}

// serverIDOf is the identity of a session's newest agent process.
func serverIDOf(s Session) string { return fmt.Sprintf("%s.%d", s.ID, s.Generation) }

// comesBack tells whether nothing of the conversation is lost with the agent: it can take it up again, as far as it says itself, or there is
// nothing to take up. What it was never told it may not have written down: a session is kept from the end of a first turn on. One that has
// programs running would lose them.
func (q *idleness) comesBack() bool {
	a := q.v.agent
	if a == nil || len(q.v.forking.waiting) > 0 || q.v.fold.Facts.Terminals > 0 || len(q.v.fold.Running()) > 0 {
		return false
	}
	return q.unspoken() || a.kept && (a.can.Resume || a.can.LoadSession) && q.v.row.ACPSessionID != ""
}

// unspoken tells that nobody has said anything since the agent made the session, which was no other one before: the next agent makes another,
// and that is the same. What a person chose it is told again (rechoose).
func (q *idleness) unspoken() bool {
	return q.v.agent != nil && q.v.restored == "new" && !q.v.agent.spoken
}

// noteSaid notes that the agent was spoken to, or has said something itself.
func (q *idleness) noteSaid(entries []transcript.Change) {
	if q.v.agent != nil && slices.ContainsFunc(entries, func(c transcript.Change) bool { return c.Entry.Kind != "divider" && c.Entry.Kind != "notice" }) {
		q.v.agent.spoken = true
	}
}

// putAway ends the agent of a conversation that was archived, if nothing is lost by that: budget or not, it may be the last that is heard of it.
func (q *idleness) putAway() {
	switch {
	case q.v.agent == nil:
	case q.v.state.Base == lifecycle.Starting && q.v.state.Turn == "" && q.v.row.ACPSessionID == "" && !q.v.importing():
		q.v.do(lifecycle.Cancel{Unstarted: true}) // it was to begin, and nobody has said anything
	case q.v.agent.can.Close || q.unspoken():
		q.v.do(lifecycle.Hibernate{ComesBack: q.comesBack()}) // refused while something goes on
	}
}

// keeps notes that the agent holds something of the conversation: it has given it back to us, or has ended a turn of it.
func (q *idleness) keeps(it bool) {
	if q.v.agent != nil {
		q.v.agent.kept = q.v.agent.kept || it
	}
}

// sleep ends the agent of a conversation that is as it was when r was noted; else it does nothing.
func (q *idleness) sleep(ctx context.Context, r *rest) bool {
	err := q.v.call(ctx, func() error {
		if q.v.rest.Load() != r {
			return &RefusedError{Code: lifecycle.RefusedUntimely}
		}
		return q.v.wish(lifecycle.Hibernate{ComesBack: q.comesBack()})
	})
	return err == nil
}

// fallAsleep ends the agent, quietly but for a line in the transcript. Nothing has happened in the session, so its place in the list
// stays. The next start waits until the process is gone, see begin.
func (q *idleness) fallAsleep() {
	q.v.stage("")
	q.v.lastExit, q.v.row.Exit = nil, nil
	unspoken := q.unspoken()
	q.v.detach(true, false)
	if unspoken {
		q.v.row.ACPSessionID = "" // an empty session need not be taken up again, and not every agent could
	}
	q.v.note(transcript.Note{Note: transcript.NoteClosed, Reason: transcript.ReasonHibernated})
}

// stage tells how far a start has come; "" when it is over.
func (v *conversation) stage(step string) {
	v.row.Step, v.row.StepSince = step, nil
	if step != "" {
		v.row.StepSince = &Time{Time: time.Now()}
	}
	v.saveRow()
}

// idleness is what a conversation knows of the time in which nothing happens.
type idleness struct {
	v      *conversation
	active time.Time // when something last happened
}
