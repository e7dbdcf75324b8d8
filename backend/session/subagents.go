package session

import (
	"cmp"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/subagents"
	"deskhand/backend/transcript"
)

// A child session that an agent has begun (ACP, Subagents) is a session of Deskhand with a journal, a transcript, requests and turns of its own:
// its agent is a part of the process of its parent's agent, see [subagents.Member]. Nobody but the agent prompts a child; a person reads the
// child, answers its requests, and stops its work where the agent allows that.

const (
	refusedDelegated = "subagent.delegated" // only the agent of its parent begins something in the session of a subagent
	refusedUnstopped = "subagent.unstopped" // the agent stops the subagent only together with its parent
)

// diverts takes in what a message says of child sessions, and reports whether the message is a child's alone.
func (v *conversation) diverts(env acp.Envelope, m proxy.Message) bool {
	own, a := v.row.ACPSessionID, v.agent
	if a.inst == nil || own == "" {
		return false
	}
	theirs := false
	if v.within == nil {
		if a.family == nil {
			a.family = subagents.NewFamily(a.inst, a.ctx.Done(), func(id, teller string) (*subagents.Child, error) { return v.c.child(v.id, id, teller) })
		}
		var err error
		if theirs, err = a.family.Divert(env, m, own, v.id, v.state.Base == lifecycle.Replaying); err != nil {
			v.c.cfg.Logger.Error("a subagent cannot be stored", "session", v.id, "error", err)
		}
	}
	if theirs || env.Kind != acp.Notification {
		return theirs
	}
	u, announces := acp.SubagentUpdateOf(m.Data)
	if !announces {
		return false
	}
	if u.SessionID == own {
		v.hearsOfItself(u)
	} else if to := a.family.Show(u.SessionID); to != "" {
		v.note(transcript.Note{Note: transcript.NoteSubagent, Session: u.SessionID, To: to})
		v.row.Subagents++
		v.saveRow()
	}
	return false
}

// join begins the life of a child session in a process. Any goroutine but the conversation's own may call join.
func (v *conversation) join(m *subagents.Member) {
	v.post(func() {
		if v.state.Base != lifecycle.Closed {
			v.do(lifecycle.Exited{Code: transcript.ProblemQuit})
		}
		v.within = m
		v.do(lifecycle.Start{})
	})
}

// runWithin is agentProcess.run for a child session, whose process runs already.
func runWithin(a *agentProcess, m *subagents.Member) {
	v := a.v
	v.links.Go(func() { a.write(m) })
	a.post(func() {
		a.inst, a.family = m, m.Family()
		v.restored = transcript.RestoredSubagent
		v.do(lifecycle.AgentReady{})
	})
	a.read(m)
	a.post(func() { v.do(lifecycle.Exited{Code: transcript.ProblemQuit}) })
}

// hearsOfItself takes in what the agent says of the child session: its names, and whether it works.
func (v *conversation) hearsOfItself(u acp.SubagentUpdate) {
	s := *v.row.Subagent
	if u.Description.Given {
		s.Description = transcript.ClipText(v.c.secret.Text(u.Description.Value))
	}
	if u.Cwd.Given {
		s.Cwd = transcript.ClipText(v.c.secret.Text(u.Cwd.Value))
	}
	if u.Cancel.Given {
		s.Stoppable = u.Cancel.Value
	}
	v.row.Subagent = &s
	if u.Title.Given && v.row.titleBy != titleByPerson {
		v.row.Title, v.row.titleBy = titleOf(v.c.secret.Text(u.Title.Value)), titleByAgent
	}
	v.saveRow()
	switch state := u.State.Value; {
	case v.turn == nil && (state.State == acp.SubagentRunning || state.State == acp.SubagentBlocked):
		v.turn = v.newTurn(uuid.Must(uuid.NewV7()).String())
		v.do(lifecycle.Prompt{Turn: v.turn.ID})
	case v.turn != nil && state.State == acp.SubagentIdle:
		reason := cmp.Or(state.StopReason, lifecycle.StopEnd)
		if v.turn.Usage = state.Usage; reason == lifecycle.StopError {
			v.failure = v.c.turnError(state.Failure())
		}
		v.do(lifecycle.Stopped{Turn: v.turn.ID, Reason: reason})
	}
}

// refuses returns why a person cannot give a command to the session of a subagent; nil = the person can, or the session is no subagent's. A nil
// command stands for what only the session's parent decides.
func (s *Subagent) refuses(c lifecycle.Command) error {
	_, resolves := c.(lifecycle.Resolve)
	_, cancels := c.(lifecycle.Cancel)
	switch {
	case s == nil, resolves, cancels && s.Stoppable:
		return nil
	case cancels:
		return &RefusedError{Code: refusedUnstopped}
	}
	return &RefusedError{Code: refusedDelegated}
}
