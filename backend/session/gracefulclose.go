package session

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
	"deskhand/backend/transport"
	"deskhand/backend/worktrees"
)

// A graceful close ends an agent on our side: an agent that offers session/close gets that request, and a moment to answer before the
// agent's process ends. The agent of a deleted session that offers session/delete is kept until the deletion can no longer be undone. Only
// then is the agent asked to forget the session; no process is ever started for session/delete.

const (
	closeWait    = time.Second            // for an answer; the stop of a prompt may take Config.Patience
	quittingTime = 200 * time.Millisecond // when a person waits for the program to end
)

// gracefulClose holds the last messages for an agent whose conversation is detached from the agent's process.
type gracefulClose struct {
	lines   [][]byte      // in the form of the wire
	closing acp.Key       // the request whose answer shows that the agent is idle: session/close, or the prompt
	busy    bool          // the agent works on a prompt
	heard   uint64        // number of the last message that the conversation took; a later message may be the answer
	written chan struct{} // closed when lines are in the journal
	forget  chan bool     // whether the agent is to forget the session; nil = nobody decides
	session string        // the ACP session id
	nextID  int64
}

// detach separates the conversation from the agent's process, which then ends. An orderly end tells the agent first. A kept agent waits for
// release.
func (v *conversation) detach(orderly, kept bool) {
	a := v.agent
	if a == nil {
		return
	}
	kept = kept && a.can.Delete
	if orderly && v.restored != "" && (a.can.Close || kept) {
		a.closing = v.prepareClose(a, kept)
	}
	a.close()
	v.agent = nil
	if tools := v.host().Tools; tools != nil {
		tools.End(v.id)
		a.forgetSecrets()
	}
}

// prepareClose moves the lines of the step into the graceful close of the agent.
func (v *conversation) prepareClose(a *agentProcess, kept bool) *gracefulClose {
	p := &gracefulClose{written: make(chan struct{}), session: v.row.ACPSessionID, heard: a.taken}
	if _, waits := a.pending[a.prompted.key]; waits {
		p.busy, p.closing = true, a.prompted.key
	}
	params := map[string]any{"sessionId": p.session}
	switch {
	case a.can.Close: // session/close ends the prompt as well
		v.request("session/close", params, nil)
		p.closing = acp.Key(strconv.FormatInt(a.nextID, 10))
	case len(a.pending) > 0:
		v.notify("session/cancel", params)
	}
	if kept {
		p.forget = make(chan bool, 1)
		v.kept = p
	}
	p.lines, p.nextID, v.step.send = v.step.send, a.nextID+1, nil
	v.step.closing = p
	return p
}

// release decides whether a kept agent forgets the session.
func (v *conversation) release(forget bool) {
	if v.kept != nil {
		v.kept.forget <- forget // never blocks: the channel has room for one, and only this line sends
		v.kept = nil
	}
}

// closeSession sends the last messages once the conversation is detached from the agent. The agent's process ends next in any case: at once
// where the agent does not answer that the prompt has stopped, since the agent would work on for as long as the deletion can be undone.
func (a *agentProcess) closeSession(inst transport.Transport) {
	if a.ctx.Err() == nil || a.closing == nil {
		return // the process has ended by itself, or there is no message to send
	}
	p := a.closing
	answer := closeWait
	if p.busy && p.forget != nil { // the stop of a prompt takes longer, and an agent that works is never asked to forget
		answer = a.v.c.cfg.Patience
	}
	ctx, cancel := a.moment(answer)
	idle := !p.busy
	select {
	case <-p.written:
		idle = a.lastWords(ctx, inst, p) || idle
	case <-ctx.Done(): // a message that is not in the journal is not sent
	}
	cancel()
	if !idle || p.forget == nil || !<-p.forget {
		return
	}
	ctx, cancel = a.moment(closeWait)
	defer cancel()
	id := strconv.FormatInt(p.nextID, 10)
	line, err := acp.NewRequest(json.RawMessage(id), "session/delete", map[string]any{"sessionId": p.session})
	if err == nil && inst.Send(ctx, line) == nil {
		p.awaitAnswer(ctx, inst, acp.Key(id))
	}
}

// moment limits the wait for an answer, and shortens the wait when the program ends.
func (a *agentProcess) moment(answer time.Duration) (context.Context, context.CancelFunc) {
	quitting := quittingTime
	if own := a.v.c.cfg.CloseWait; own > 0 {
		answer, quitting = own, own
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), answer)
	stop := context.AfterFunc(a.v.c.ctx, func() { time.AfterFunc(quitting, cancel) })
	return ctx, func() { stop(); cancel() }
}

// lastWords sends the last messages, and returns whether the agent has answered.
func (a *agentProcess) lastWords(ctx context.Context, inst transport.Transport, p *gracefulClose) bool {
	lines := p.lines
	select {
	case before := <-a.outbox:
		lines = append(before, lines...)
	default:
	}
	for _, line := range lines {
		if inst.Send(ctx, line) != nil {
			return false // the agent has ended
		}
	}
	return p.closing != "" && p.awaitAnswer(ctx, inst, p.closing)
}

// awaitAnswer reads until the agent's answer comes or ctx ends. Other messages of the agent are dropped.
func (p *gracefulClose) awaitAnswer(ctx context.Context, inst transport.Transport, key acp.Key) bool {
	r := inst.After(p.heard)
	defer r.Close()
	for {
		batch, err := r.Next(ctx)
		if _, missing := errors.AsType[*transport.GapError](err); err != nil && !missing {
			return false
		}
		for _, m := range batch {
			if env, err := acp.Peek(m.Data); err == nil && env.Kind == acp.Response && env.Key() == key {
				return true
			}
		}
	}
}

// vacate ends the agent. The channel is closed when the agent's process has ended, with everything that the process had started; the channel is
// nil when there was no agent.
func (v *conversation) vacate() (end <-chan struct{}, err error) {
	if v.state.Turn != "" || v.agent != nil && v.agent.family.AtWork() {
		return nil, &RefusedError{Code: worktrees.Busy, Params: map[string]string{"title": v.row.Title}}
	}
	if at := v.row.UpdatedAt; v.state.Base != lifecycle.Closed {
		v.do(lifecycle.Exited{Code: transcript.ProblemQuit})
		v.row.UpdatedAt = at // the session keeps its place in the list
		v.saveRow()
	}
	return v.gone, nil
}
