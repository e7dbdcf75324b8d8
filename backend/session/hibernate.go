package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// A session that has been idle for a while is hibernated: its agent ends, which frees memory, and the agent opens the session again at the
// next prompt. Package processes decides when; this file ends the agent of a conversation.

// rest is the idle state of a conversation. Any goroutine may read it without asking the conversation's goroutine.
type rest struct {
	serverID string    // of the agent process
	since    time.Time // when something last happened in the conversation
}

// noteRest updates v.rest at the end of each step, so that other goroutines can see how long the conversation has been idle. happened tells
// whether the step changed anything.
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

// serverIDOf returns the server_id of a session's newest agent process.
func serverIDOf(s Session) string { return fmt.Sprintf("%s.%d", s.ID, s.Generation) }

// comesBack reports whether the agent can end without a loss: the agent can resume or load the session, by its own declaration and because
// it has stored it, or there is nothing to restore. An agent may not have stored a session before the end of the first turn. An agent with
// running programs would lose them.
func (q *idleness) comesBack() bool {
	a := q.v.agent
	if a == nil || len(q.v.forking.waiting) > 0 || q.v.fold.Facts.Terminals > 0 || len(q.v.fold.Running()) > 0 || a.family.AtWork() {
		return false
	}
	return q.unspoken() || a.kept && (a.can.Resume || a.can.LoadSession) && q.v.row.ACPSessionID != ""
}

// unspoken reports whether no message was exchanged since the agent made a new session: then the next process makes another session, which
// is the same. Options that a person chose are set again (rechoose).
func (q *idleness) unspoken() bool {
	return q.v.agent != nil && q.v.restored == "new" && !q.v.agent.spoken
}

// noteSaid records that a message was exchanged with the agent.
func (q *idleness) noteSaid(entries []transcript.Change) {
	if q.v.agent != nil && slices.ContainsFunc(entries, func(c transcript.Change) bool { return c.Entry.Kind != "divider" && c.Entry.Kind != "notice" }) {
		q.v.agent.spoken = true
	}
}

// putAway ends the agent of an archived conversation, if that loses nothing: regardless of the memory budget, since the conversation may
// never be used again.
func (q *idleness) putAway() {
	switch {
	case q.v.agent == nil:
	case q.v.state.Base == lifecycle.Starting && q.v.state.Turn == "" && q.v.row.ACPSessionID == "" && !q.v.importing():
		q.v.do(lifecycle.Cancel{Unstarted: true}) // the agent was still starting, and no message was exchanged
	case q.v.agent.can.Close || q.unspoken():
		q.v.do(lifecycle.Hibernate{ComesBack: q.comesBack()}) // refused while a turn or a request is open
	}
}

// keeps records that the agent holds a part of the conversation: it has opened the stored session, or has ended a turn of it.
func (q *idleness) keeps(it bool) {
	if q.v.agent != nil {
		q.v.agent.kept = q.v.agent.kept || it
	}
}

// sleep hibernates the conversation if it has not changed since r was stored, and reports whether it did. Any goroutine except the
// conversation's own may call sleep.
func (q *idleness) sleep(ctx context.Context, r *rest) bool {
	err := q.v.call(ctx, func() error {
		if q.v.rest.Load() != r {
			return &RefusedError{Code: lifecycle.RefusedUntimely}
		}
		return q.v.wish(lifecycle.Hibernate{ComesBack: q.comesBack()})
	})
	return err == nil
}

// fallAsleep ends the agent, with no more than a line in the transcript. Nothing has happened in the session, so the session keeps its
// place in the list. The next start waits until the process has ended, see begin.
func (q *idleness) fallAsleep() {
	q.v.stage("")
	q.v.lastExit, q.v.row.Exit = nil, nil
	unspoken := q.unspoken()
	q.v.detach(true, false)
	if unspoken {
		q.v.row.ACPSessionID = "" // an empty session need not be opened again, and not every agent could open it
	}
	q.v.note(transcript.Note{Note: transcript.NoteClosed, Reason: transcript.ReasonHibernated})
}

// stage records which step a start has reached; "" when the start is over.
func (v *conversation) stage(step string) {
	v.row.Step, v.row.StepSince = step, nil
	if step != "" {
		v.row.StepSince = &Time{Time: time.Now()}
	}
	v.saveRow()
}

// idleness records how long a conversation has been idle, and ends the agent of an idle one.
type idleness struct {
	v      *conversation
	active time.Time // when something last happened
}
