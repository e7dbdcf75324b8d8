package session

import (
	"cmp"
	"encoding/json"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/redact"
	"deskhand/backend/transcript"
)

// A fork is a second session that begins with the conversation of the first. The agent makes the fork (session/fork) in the process of the
// first session, while no turn runs. Deskhand copies the journal as far as it went then, and folds the copy anew, since the ids of entries
// depend on the session (copyJournal). So the transcript of a fork is what its journal gives, as for every session. Then the agent opens
// the fork like any other session, in a process of its own.

const (
	refusedFork    = "fork.unsupported"
	refusedDamaged = "fork.damaged"
	refusedNotMade = "fork.failed"
	refusedTooSlow = "fork.slow"

	refusedUnknownTurn = "branch.unknown_turn"
)

// fork is the result of a requested fork.
type fork struct {
	peer   string // the ACP session id of the fork
	until  int64  // the last frame of the parent's journal that belongs to the fork
	parent row
	before *branchPoint // of a branch, which no agent has made
	err    error
}

// branchPoint is the message before which a branch leaves its parent.
type branchPoint struct {
	turn    string // of the parent, which the message began
	again   bool   // the parent is a branch, and the message its first
	message string
	files   []transcript.Attachment
	agent   string // the agent's name
	secret  redact.Redactor
}

// take takes the message over from the note of the parent's turn.
func (p *branchPoint) take(n transcript.Note, again bool) {
	p.again, p.message = again, cmp.Or(p.message, transcript.PromptText(n.Prompt))
	for _, a := range n.Attachments {
		if !again || a.Filename != talkName {
			p.files = append(p.files, a.Plain())
		}
	}
}

// talkName is the name of the file with what was said before a branch.
const talkName = "what-was-said.md"

// ask requests a fork from the agent, which is started if it does not run. made receives the result.
func (w *forkRequests) ask(made chan<- fork) error {
	if err := w.v.row.Subagent.refuses(nil); err != nil {
		return err
	}
	switch {
	case w.v.state.Turn != "":
		return &RefusedError{Code: lifecycle.RefusedRunning}
	case w.v.row.facts.Offers != nil && !slices.Contains(w.v.row.facts.Offers, transcript.OfferFork):
		return w.unsupported()
	case w.v.state.Base == lifecycle.Closed:
		if err := w.v.wish(lifecycle.Start{}); err != nil {
			return err
		}
	}
	w.waiting = append(w.waiting, made)
	if w.v.state.Base == lifecycle.Ready {
		w.makeAll()
	}
	return nil
}

func (w *forkRequests) unsupported() error {
	return &RefusedError{Code: refusedFork, Params: map[string]string{"agent": w.v.agentName}}
}

// makeAll requests the waiting forks from an agent that is ready.
func (w *forkRequests) makeAll() {
	for _, made := range slices.Clone(w.waiting[w.asked:]) {
		switch {
		case w.v.state.Turn != "":
			w.end(made, fork{err: &RefusedError{Code: lifecycle.RefusedRunning}})
		case !w.v.agent.can.Fork:
			w.end(made, fork{err: w.unsupported()})
		default:
			w.asked++
			w.request(made)
		}
	}
}

// request asks the agent for a fork; made receives the result.
func (w *forkRequests) request(made chan<- fork) {
	a, until := w.v.agent, w.v.frames
	w.v.note(transcript.Note{Note: transcript.NoteForking})
	params := a.workplace() // the parent keeps Deskhand's own tools; the fork gets its own when it is opened
	params["sessionId"] = w.v.row.ACPSessionID
	w.v.request("session/fork", params, func(result json.RawMessage, failure *acp.Error) {
		peer, err := w.result(result, failure)
		w.v.note(transcript.Note{Note: transcript.NoteFork, Session: peer})
		f := fork{peer: peer, until: until, parent: w.v.row, err: err}
		f.parent.facts = w.v.fold.Facts
		if err != nil || !a.can.Close {
			w.end(made, f)
			return
		}
		// The fork is open in this process as well, and two processes must not have one ACP session.
		w.v.request("session/close", map[string]any{"sessionId": peer}, func(json.RawMessage, *acp.Error) { w.end(made, f) })
	})
}

// result returns the ACP session id of a fork from the agent's answer.
func (w *forkRequests) result(result json.RawMessage, failure *acp.Error) (peer string, err error) {
	if failure != nil && failure.Code == acp.CodeAuthRequired {
		w.v.noteLogin(failure)
		return "", &RefusedError{Code: transcript.ProblemAuth, Params: map[string]string{"agent": w.v.agentName}}
	}
	if failure != nil {
		return "", w.failed(failure)
	}
	if peer, err = acp.ParseNewSession(result); err != nil {
		return "", w.failed(err)
	}
	return peer, nil
}

func (w *forkRequests) failed(why error) error {
	return &RefusedError{Code: refusedNotMade, Params: map[string]string{"agent": w.v.agentName, "detail": w.v.c.secret.Text(why.Error())}}
}

// end sends the result of a fork to its caller.
func (w *forkRequests) end(made chan<- fork, f fork) {
	i := slices.Index(w.waiting, made)
	if i < 0 {
		return
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	if i < w.asked {
		w.asked--
	}
	made <- f // never blocks: the channel has room for one result, and gets one
}

// endAll fails all waiting forks because the agent has ended.
func (w *forkRequests) endAll(code string) {
	r := &RefusedError{Code: refusedNotMade, Params: map[string]string{"agent": w.v.agentName, "detail": code}}
	if e := w.v.row.Exit; e != nil && e.Problem != "" {
		r = &RefusedError{Code: e.Problem, Params: e.Params}
	}
	for len(w.waiting) > 0 {
		w.end(w.waiting[0], fork{err: r})
	}
}

// afresh begins a new ACP session when the stored one cannot be opened again. Some agents (Codex) keep nothing of a fork that was closed
// before its first prompt: while its parent has not changed since, a second fork of the parent is the same.
func (a *agentProcess) afresh() {
	parent := a.v.forking.unspokenParent()
	if parent == "" || !a.can.Fork {
		a.create(transcript.RestoredFresh)
		return
	}
	params := a.setup()
	params["sessionId"] = parent
	a.v.request("session/fork", params, func(result json.RawMessage, failure *acp.Error) {
		peer, err := acp.ParseNewSession(result)
		if failure != nil {
			a.v.refused("session/fork", failure)
		}
		if failure != nil || err != nil {
			a.create(transcript.RestoredFresh)
			return
		}
		a.v.row.ACPSessionID = peer
		a.ready(transcript.RestoredFork)
	})
}

// unspokenParent returns the ACP session id of a fork's parent, while no turn has ended in the fork or the parent since the fork; else "".
// The parent may have gone on before the fork was stored, so the parent's turns count from the last turn that the fork has copied.
func (w *forkRequests) unspokenParent() (parent string) {
	if w.v.row.Origin == nil || w.v.row.Origin.Kind != originFork {
		return ""
	}
	from := w.v.row.Origin.Session
	spoken, err := w.v.c.entries.HasSpoken(w.v.c.ctx, w.v.id, from, w.v.row.CreatedAt.UnixMilli())
	if err != nil || spoken {
		return ""
	}
	if w.v.c.cfg.Store.Read().QueryRowContext(w.v.c.ctx, `SELECT acp_session_id FROM session WHERE id = ? AND deleted_at = 0`, from).Scan(&parent) != nil {
		return "" // the parent is deleted
	}
	return parent
}

// forkRequests are the forks of a conversation that callers wait for.
type forkRequests struct {
	v       *conversation
	waiting []chan<- fork // the callers' channels
	asked   int           // how many of waiting the agent has been asked for
}
