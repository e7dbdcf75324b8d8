package session

import (
	"encoding/json"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// A fork is a second session that begins with all that was said in the first. The agent makes it (session/fork), in the process of the
// first and while no turn runs; we copy the journal as far as it went then, in one transaction, and fold it anew, since ids of entries
// come from the session. So the transcript of a fork is what its journal gives, as that of every session is. Then the agent takes the
// fork up like any other session, in a process of its own.

const (
	refusedFork    = "fork.unsupported"
	refusedDamaged = "fork.damaged"
	refusedNotMade = "fork.failed"
	refusedTooSlow = "fork.slow"
)

// fork is what has become of one that was asked for.
type fork struct {
	peer   string // the agent's id of it
	until  int64  // the last frame of the journal that it knows
	parent row
	err    error
}

// fork asks the agent for one, when it is ready.
func (v *conversation) fork(made chan<- fork) error {
	switch {
	case v.state.Turn != "":
		return &RefusedError{Code: lifecycle.RefusedRunning}
	case v.row.facts.Offers != nil && !slices.Contains(v.row.facts.Offers, transcript.OfferFork):
		return v.noFork()
	case v.state.Base == lifecycle.Closed:
		if err := v.wish(lifecycle.Start{}); err != nil {
			return err
		}
	}
	v.forks = append(v.forks, made)
	if v.state.Base == lifecycle.Ready {
		v.makeForks()
	}
	return nil
}

func (v *conversation) noFork() error {
	return &RefusedError{Code: refusedFork, Params: map[string]string{"agent": v.agentName}}
}

// makeForks has the agent make what waits for it to be ready.
func (v *conversation) makeForks() {
	for _, made := range slices.Clone(v.forks[v.branching:]) {
		switch {
		case v.state.Turn != "":
			v.endFork(made, fork{err: &RefusedError{Code: lifecycle.RefusedRunning}})
		case !v.agent.can.Fork:
			v.endFork(made, fork{err: v.noFork()})
		default:
			v.branching++
			v.askForFork(made)
		}
	}
}

func (v *conversation) askForFork(made chan<- fork) {
	a, until := v.agent, v.frames
	v.note(transcript.Note{Note: transcript.NoteForking})
	params := a.workplace() // our tools go on with this session; the fork gets its own when it is opened
	params["sessionId"] = v.row.ACPSessionID
	v.request("session/fork", params, func(result json.RawMessage, failure *acp.Error) {
		peer, err := v.madeFork(result, failure)
		v.note(transcript.Note{Note: transcript.NoteFork, Session: peer})
		f := fork{peer: peer, until: until, parent: v.row, err: err}
		f.parent.facts = v.fold.Facts
		if err != nil || !a.can.Close {
			v.endFork(made, f)
			return
		}
		// It is open in this process as well, and two processes must not have one session.
		v.request("session/close", map[string]any{"sessionId": peer}, func(json.RawMessage, *acp.Error) { v.endFork(made, f) })
	})
}

func (v *conversation) madeFork(result json.RawMessage, failure *acp.Error) (peer string, err error) {
	if failure != nil && failure.Code == acp.CodeAuthRequired {
		v.noteLogin(failure)
		return "", &RefusedError{Code: transcript.ProblemAuth, Params: map[string]string{"agent": v.agentName}}
	}
	if failure != nil {
		return "", v.notMade(failure)
	}
	if peer, err = acp.ParseNewSession(result); err != nil {
		return "", v.notMade(err)
	}
	return peer, nil
}

func (v *conversation) notMade(why error) error {
	return &RefusedError{Code: refusedNotMade, Params: map[string]string{"agent": v.agentName, "detail": v.c.secret.Text(why.Error())}}
}

// endFork tells who waits.
func (v *conversation) endFork(made chan<- fork, f fork) {
	i := slices.Index(v.forks, made)
	if i < 0 {
		return
	}
	v.forks = slices.Delete(v.forks, i, i+1)
	if i < v.branching {
		v.branching--
	}
	made <- f // has room: it is told once
}

// endForks tells all who wait that the agent is gone.
func (v *conversation) endForks(code string) {
	r := &RefusedError{Code: refusedNotMade, Params: map[string]string{"agent": v.agentName, "detail": code}}
	if e := v.row.Exit; e != nil && e.Problem != "" {
		r = &RefusedError{Code: e.Problem, Params: e.Params}
	}
	for len(v.forks) > 0 {
		v.endFork(v.forks[0], fork{err: r})
	}
}

// afresh begins a new session where the one that was cannot be had back. Of a fork in which nothing was said yet some agents keep nothing
// once it is closed (Codex): as long as its parent is what it was then, another fork is the same.
func (a *agentProcess) afresh() {
	parent := a.v.unspokenFork()
	if parent == "" || !a.can.Fork {
		a.create("fresh")
		return
	}
	params := a.setup()
	params["sessionId"] = parent
	a.v.request("session/fork", params, func(result json.RawMessage, failure *acp.Error) {
		peer, err := acp.ParseNewSession(result)
		if failure != nil || err != nil {
			a.create("fresh")
			return
		}
		a.v.row.ACPSessionID = peer
		a.ready(transcript.RestoredFork)
	})
}

// unspokenFork gives the agent's id of the parent of a fork, while no turn has ended in either since; else "". The parent may have gone on
// before the fork was stored: what counts of it is the last turn that the fork has of it.
func (v *conversation) unspokenFork() (parent string) {
	if v.row.Origin == nil || v.row.Origin.Kind != originFork {
		return ""
	}
	err := v.c.cfg.Store.Read().QueryRowContext(v.c.ctx, `SELECT acp_session_id FROM session s WHERE id = ?1 AND deleted_at = 0 AND NOT EXISTS
		(SELECT 1 FROM turn WHERE session = ?2 AND started_at >= ?3 AND state = 'done' OR session = s.id
			AND started_at > (SELECT coalesce(max(started_at), 0) FROM turn WHERE session = ?2 AND started_at < ?3))`,
		v.row.Origin.Session, v.id, millis(v.row.CreatedAt.Time)).Scan(&parent)
	if err != nil {
		return "" // it is gone, or has gone on
	}
	return parent
}
