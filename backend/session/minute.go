package session

import (
	"fmt"
	"time"

	"deskhand/backend/transcript"
)

// An agent that names the file of a session by the minute of the clock writes over it when it loads the session in the same minute
// again: what it knew of the conversation is gone. So it is asked in the next one, and the transcript says what is waited for.

// waitToLoad puts session/load off where it would lose the session; it is true when load is called again later.
func (a *agentProcess) waitToLoad() bool {
	v := a.v
	if !v.c.cfg.Agents.Quirks(v.row.Agent).LoadNextMinute {
		return false
	}
	wait := untilNextMinute(v.lastReady(), time.Now())
	if wait <= 0 {
		return false
	}
	a.tell([]transcript.Notice{{
		Severity: "info", Title: fmt.Sprintf("Waiting for the next minute, %d s", int(wait/time.Second)+1),
		Description: v.agentName + " forgets a conversation that it takes up again in the minute in which it began with it.",
	}})
	a.within(wait+openLimit(v.c.cfg.Agents.Quirks(v.row.Agent), a.plan.BringsAny()), "session")
	time.AfterFunc(wait, func() { a.post(a.load) }) // which does nothing once this generation is over
	return true
}

// untilNextMinute is how long it is until the minute of the clock is another than that of begun; nothing when it is.
func untilNextMinute(begun, now time.Time) time.Duration {
	const slack = time.Second // the agent looks at the clock before it answers
	over := begun.Truncate(time.Minute).Add(time.Minute + slack)
	if begun.IsZero() || begun.After(now) || !now.Before(over) {
		return 0
	}
	return over.Sub(now)
}

// lastReady is when an agent last began with the session, other than by loading it: a load changes nothing of the name of its file.
func (v *conversation) lastReady() time.Time {
	return v.c.journal.LastNote(v.c.ctx, v.id, `{"note":"`+transcript.NoteReady+`"`, `"reason":"load"`)
}
