package session

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"deskhand/backend/acp"
)

// How an agent is taken leave of when it is we who end it: one that offers session/close is told so, and has a moment to answer before
// its process ends. The agent of a deleted session that offers session/delete is kept until the deletion can no longer be undone: only
// then is it asked to forget the session, and no process is ever started for that.

const (
	partingTime  = time.Second            // for an answer; to stop a prompt it has Patience
	quittingTime = 200 * time.Millisecond // when a person waits for the program to end
)

// parting is what is still said to an agent whose conversation has let go of it.
type parting struct {
	lines   [][]byte      // as they go on the wire
	closing acp.Key       // what tells that it is at nothing more: the answer to a session/close among them, or to the prompt
	busy    bool          // it is at a prompt
	heard   uint64        // the last of its messages that the conversation took: one that was read since may be the answer
	written chan struct{} // closed when they are in the journal
	forget  chan bool     // whether it is to forget the session; nil = nobody will say
	session string        // the agent's id of it
	nextID  int64
}

// dismiss lets the agent's process be ended: in good order it is told before. A kept one waits for release.
func (v *conversation) dismiss(orderly, kept bool) {
	a := v.agent
	if a == nil {
		return
	}
	kept = kept && a.can.Delete
	if orderly && v.restored != "" && (a.can.Close || kept) {
		a.parting = v.part(a, kept)
	}
	a.close()
	v.agent = nil
	if v.c.cfg.ToolsEnded != nil && !v.there() {
		v.c.cfg.ToolsEnded(v.id)
		a.forgetSecrets()
	}
}

func (v *conversation) part(a *link, kept bool) *parting {
	p := &parting{written: make(chan struct{}), session: v.row.ACPSessionID, heard: a.taken}
	if _, waits := a.pending[a.prompted.key]; waits {
		p.busy, p.closing = true, a.prompted.key
	}
	params := map[string]any{"sessionId": p.session}
	switch {
	case a.can.Close: // which ends what runs as well
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
	v.step.parting = p
	return p
}

// release says what becomes of an agent that was kept.
func (v *conversation) release(forget bool) {
	if v.kept != nil {
		v.kept.forget <- forget // of one, and this is the only one that ever says so
		v.kept = nil
	}
}

// takeLeave says what is left to be said, once the conversation has let go of the agent. Whatever becomes of that, its process ends next: at once
// where it does not say that it has stopped what it was at, or it would work on for as long as a deletion can be undone.
func (a *link) takeLeave(inst transport) {
	if a.ctx.Err() == nil || a.parting == nil {
		return // it has ended by itself, or there is nothing to say
	}
	p := a.parting
	answer := partingTime
	if p.busy && p.forget != nil { // to stop takes longer, and one that has not is never asked to forget
		answer = a.v.c.cfg.Patience
	}
	ctx, cancel := a.moment(answer)
	idle := !p.busy
	select {
	case <-p.written:
		idle = a.lastWords(ctx, inst, p) || idle
	case <-ctx.Done(): // what cannot be written is not sent either
	}
	cancel()
	if !idle || p.forget == nil || !<-p.forget {
		return
	}
	ctx, cancel = a.moment(partingTime)
	defer cancel()
	id := strconv.FormatInt(p.nextID, 10)
	line, err := acp.NewRequest(json.RawMessage(id), "session/delete", map[string]any{"sessionId": p.session})
	if err == nil && inst.Send(ctx, line) == nil {
		p.awaitAnswer(ctx, inst, acp.Key(id))
	}
}

// moment is as long as an answer is waited for, and less when the program ends.
func (a *link) moment(answer time.Duration) (context.Context, context.CancelFunc) {
	quitting := quittingTime
	if own := a.v.c.cfg.Parting; own > 0 {
		answer, quitting = own, own
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), answer)
	stop := context.AfterFunc(a.v.c.ctx, func() { time.AfterFunc(quitting, cancel) })
	return ctx, func() { stop(); cancel() }
}

// lastWords is true where the agent has answered to them.
func (a *link) lastWords(ctx context.Context, inst transport, p *parting) bool {
	lines := p.lines
	select {
	case before := <-a.outbox:
		lines = append(before, lines...)
	default:
	}
	for _, line := range lines {
		if inst.Send(ctx, line) != nil {
			return false // it is gone
		}
	}
	return p.closing != "" && p.awaitAnswer(ctx, inst, p.closing)
}

// awaitAnswer reads on until the agent has answered, or there is no more time. What it says meanwhile nobody hears.
func (p *parting) awaitAnswer(ctx context.Context, inst transport, key acp.Key) bool {
	r := inst.After(p.heard)
	defer r.Close()
	for {
		batch, err := r.Next(ctx)
		if _, missing := errors.AsType[*gapError](err); err != nil && !missing {
			return false
		}
		for _, m := range batch {
			if env, err := acp.Peek(m.Data); err == nil && env.Kind == acp.Response && env.Key() == key {
				return true
			}
		}
	}
}
