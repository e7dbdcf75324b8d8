package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/history"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// An agent that has answered session/load may not be through with the history: Gemini CLI sends most of it after the answer. The conversation is
// ready when the history ends as the stored one does, or when no more of it comes. Until then nothing is sent to the agent, so that no answer to a
// prompt is taken for history.
const (
	replayQuiet   = time.Second            // without an update, where the history that came ends otherwise than the stored one
	replayNone    = 300 * time.Millisecond // the same, where nothing came yet: most of such agents give nothing back
	replayLongest = time.Minute            // from the answer on, for an agent that never stops
)

// replay is the history that is given back, and what waits for its end.
type replay struct {
	*history.Replay

	then  func()      // nil until the agent has answered
	by    time.Time   // when it is over at the latest
	quiet *time.Timer // since the last update
}

// expectReplay begins to compare what the agent gives back with what is stored.
func (a *agentProcess) expectReplay() { a.replay = &replay{Replay: history.Expect(a.v.storedEnd())} }

// storedEnd is the end of what was said in the agent's session, as far as it is stored.
func (v *conversation) storedEnd() []history.Said {
	const newest = 200
	list, err := query(v.c.lasting(), v.c.cfg.Store.Read(), scanJSON[transcript.Entry],
		`SELECT data FROM entry WHERE session = ? ORDER BY seq DESC LIMIT ?`, v.id, newest)
	if err != nil {
		v.c.cfg.Logger.Warn("the end of a conversation cannot be read", "session", v.id, "error", err) // then the agent's silence tells the end
		return nil
	}
	var said []history.Said
	for _, e := range list {
		if e.Divider != nil && e.Divider.Code == "session.fresh" {
			break // what is above is of another session of the agent
		}
		switch {
		case e.Kind == history.Tool && e.Tool != nil:
			said = append(said, history.Said{Kind: e.Kind, ID: e.Tool.ToolCallID})
		case e.Kind == history.User || e.Kind == history.Agent:
			said = append(said, history.Said{Kind: e.Kind, Text: e.Text})
		}
	}
	slices.Reverse(said)
	return said
}

// afterReplay calls then when the agent has given back all of its history, at once where it gives none back. It is called with the agent's answer.
func (a *agentProcess) afterReplay(then func()) {
	if a.replay == nil {
		then()
		return
	}
	a.replay.then, a.replay.by = then, time.Now().Add(replayLongest)
	a.awaitReplay()
}

// awaitReplay ends the wait, or begins to wait anew.
func (a *agentProcess) awaitReplay() {
	r := a.replay
	if r.quiet != nil {
		r.quiet.Stop()
	}
	if r.Whole() || time.Now().After(r.by) {
		a.endReplay()
		return
	}
	wait := replayNone
	if r.Began() {
		wait = replayQuiet
	}
	r.quiet = time.AfterFunc(wait, func() {
		a.post(func() {
			if a.replay == r {
				a.endReplay()
			}
		})
	})
}

func (a *agentProcess) endReplay() {
	then := a.replay.then
	if a.replay.quiet != nil {
		a.replay.quiet.Stop()
	}
	a.replay = nil
	then()
}

// beforeReplayed takes a message of the agent that may be history, before it is folded. An agent of which nothing came back may begin to speak by
// itself after its answer, and that is no history; a person's message is, since nobody has said one.
func (a *agentProcess) beforeReplayed(env acp.Envelope, data []byte) (later bool) {
	if a.replay == nil || env.Kind != acp.Notification || env.Method() != "session/update" {
		return false
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // it is an envelope
	u, err := acp.ParseUpdate(m.Params)
	if err != nil || u.SessionID != "" && u.SessionID != a.v.row.ACPSessionID {
		return false
	}
	answered := a.replay.then != nil
	if answered && !a.replay.Began() && !transcript.IsFact(u.Kind) && u.Kind != "user_message_chunk" {
		a.endReplay()
		return false
	}
	return a.replay.Take(u) && answered
}

// importing tells whether the history of an imported session is still to be taken in.
func (v *conversation) importing() bool {
	return v.row.Origin != nil && v.row.Origin.Kind == originImport && !v.fold.Facts.Imported
}

// replay is how what follows in the journal is told of.
func (v *conversation) replay() string {
	if v.importing() {
		return transcript.NoteImporting
	}
	return transcript.NoteReplaying
}

// takeOver opens a session that the agent had before us.
func (a *agentProcess) takeOver() {
	v := a.v
	switch {
	case a.can.LoadSession:
		v.do(lifecycle.Replay{})
		a.replay = &replay{Replay: &history.Replay{}} // there is nothing stored to compare with
		a.restoreImported("session/load", transcript.RestoredImport)
	case a.can.Resume:
		a.restoreImported("session/resume", transcript.RestoredUnseen)
	default:
		a.fail(problemNoImport, "agent", v.agentName)
	}
}

func (a *agentProcess) restoreImported(method, how string) {
	params := a.setup()
	params["sessionId"] = a.v.row.ACPSessionID
	a.v.request(method, params, func(_ json.RawMessage, failure *acp.Error) {
		switch {
		case failure == nil:
			a.afterReplay(func() { a.ready(how) })
		case a.stopped(failure):
		case failure.Code == acp.CodeAuthRequired:
			a.failed(failure)
		default:
			a.fail(problemImport, "agent", a.v.agentName, "detail", a.v.c.cfg.Roster.Secrets().Sentence(failure))
		}
	})
}

const (
	problemImport   = "session.import_failed"      // the agent does not give its history
	problemNoImport = "session.import_unsupported" // it can take up no session at all
	refusedSessions = "agent.sessions_failed"

	maxImportedCursor = 8 << 10
)

const (
	originFork     = "fork"
	originContinue = "continue"
	originImport   = "import"
)

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
