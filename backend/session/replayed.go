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

// An agent may answer session/load before it has sent the whole history: Gemini CLI sends most of it after the answer. The conversation is
// ready when the history ends as the stored one does, or when no more of it comes. Until then nothing is sent to the agent, so that no
// answer to a prompt is taken for history.
const (
	replayQuiet   = time.Second            // without an update, when the history so far ends otherwise than the stored one
	replayNone    = 300 * time.Millisecond // without an update, when no history came yet: most agents that answer early send none
	replayLongest = time.Minute            // from the answer on, for an agent that never stops sending
)

// replay is a history that the agent replays, and the function to call at its end.
type replay struct {
	*history.Replay

	then  func()      // called at the end of the history; nil until the agent has answered
	by    time.Time   // the latest end
	quiet *time.Timer // runs since the last update
}

// expectReplay begins to compare the agent's history with the stored one.
func (a *agentProcess) expectReplay() { a.replay = &replay{Replay: history.Expect(a.v.storedEnd())} }

// storedEnd returns the last messages and tool calls of the agent's session, as stored.
func (v *conversation) storedEnd() []history.Said {
	const newest = 200
	list, err := v.c.entries.Newest(v.c.lasting(), v.id, newest)
	if err != nil {
		v.c.cfg.Logger.Warn("the end of a conversation cannot be read", "session", v.id, "error", err) // then the agent's silence marks the end
		return nil
	}
	var said []history.Said
	for _, e := range list {
		if e.Divider != nil && e.Divider.Code == "session.fresh" {
			break // the entries before belong to another ACP session
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

// afterReplay handles the agent's answer to the load: then is called when the agent has sent its whole history; at once when no history is
// expected.
func (a *agentProcess) afterReplay(then func()) {
	if a.replay == nil {
		then()
		return
	}
	a.replay.then, a.replay.by = then, time.Now().Add(replayLongest)
	a.awaitReplay()
}

// awaitReplay ends the wait for the history when it is whole or the limit has passed, or restarts the timer.
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

// beforeReplayed handles a message that may be part of the history, before the message is folded. beforeReplayed reports whether the
// message is history that came after the agent's answer. An agent that has sent no history before its answer may begin to talk by itself,
// which is not history; a person's message is, since no prompt was sent.
func (a *agentProcess) beforeReplayed(env acp.Envelope, data []byte) (later bool) {
	if a.replay == nil || env.Kind != acp.Notification || env.Method() != "session/update" {
		return false
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // Peek has checked the message
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

// importing reports whether the history of an imported session must still be taken in.
func (v *conversation) importing() bool {
	return v.row.Origin != nil && v.row.Origin.Kind == originImport && !v.fold.Facts.Imported
}

// replay returns the note that precedes the replayed history in the journal.
func (v *conversation) replay() string {
	if v.importing() {
		return transcript.NoteImporting
	}
	return transcript.NoteReplaying
}

// takeOver opens a session that the agent had before the import: by load, which replays the history, or else by resume.
func (a *agentProcess) takeOver() {
	v := a.v
	switch {
	case a.can.LoadSession:
		v.do(lifecycle.Replay{})
		a.replay = &replay{Replay: &history.Replay{}} // nothing is stored to compare the history with
		a.restoreImported("session/load", transcript.RestoredImport)
	case a.can.Resume:
		a.restoreImported("session/resume", transcript.RestoredUnseen)
	default:
		a.fail(problemNoImport, "agent", v.agentName)
	}
}

// restoreImported opens an imported session by method, and fails the start when the agent refuses.
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
	problemImport   = "session.import_failed"      // the agent does not load the session
	problemNoImport = "session.import_unsupported" // the agent can open no stored session
	refusedSessions = "agent.sessions_failed"

	maxImportedCursor = 8 << 10
)

const (
	originFork     = "fork"
	originBranch   = "branch"
	originContinue = "continue"
	originImport   = "import"
)

// waitToLoad postpones session/load for an agent that would lose the session now. waitToLoad returns true when load is called again later.
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
	time.AfterFunc(wait, func() { a.post(a.load) }) // post does nothing when this generation has ended
	return true
}

// untilNextMinute returns the time until the minute after begun; 0 when that minute has begun.
func untilNextMinute(begun, now time.Time) time.Duration {
	const slack = time.Second // the agent reads the clock before it answers
	over := begun.Truncate(time.Minute).Add(time.Minute + slack)
	if begun.IsZero() || begun.After(now) || !now.Before(over) {
		return 0
	}
	return over.Sub(now)
}

// lastReady returns when an agent last opened the session other than by load, since a load keeps the name of the session's file.
func (v *conversation) lastReady() time.Time {
	return v.c.journal.LastNote(v.c.ctx, v.id, `{"note":"`+transcript.NoteReady+`"`, `"reason":"load"`)
}
