package session

import (
	"deskhand/backend/acp"
	"deskhand/backend/history"
	"deskhand/backend/transcript"
	"encoding/json"
)

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
		v.do(doReplay{})
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
			a.fail(problemImport, "agent", a.v.agentName, "detail", a.v.c.words(failure))
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
