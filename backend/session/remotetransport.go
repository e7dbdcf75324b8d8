package session

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/redact"
	"deskhand/backend/remote"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
	"deskhand/backend/transport"
)

// A remote agent differs from an agent on this machine in three ways. The connection may break, which is shown and does not end the agent.
// The agent may outlive this program, and the next start goes on in the middle of the turn (takeUpAgain). The agent gets nothing that
// belongs to this machine: MCP servers and skills of the directory, files, terminals, the memory budget.

// remoteStartLimit is how long a remote agent may take to be installed and started.
const remoteStartLimit = 15 * time.Minute

// host returns what the session's host offers. Any goroutine may call host.
func (v *conversation) host() host.Capabilities { return v.c.hosts.At(v.look().Place) }

// noteLogin records whether an agent of this machine needs a login. The catalogue has no logins of remote agents.
func (v *conversation) noteLogin(refused *acp.Error) {
	if v.host().Agents != nil {
		v.c.cfg.Roster.NoteLogin(v.row.Agent, refused)
	}
}

// startLimit returns how long the agent may take to answer initialize.
func (a *agentProcess) startLimit() time.Duration {
	if a.v.host().Agents == nil {
		return remoteStartLimit
	}
	return initializeLimit
}

// remoteTransport is the transport to an agent on another machine.
type remoteTransport struct {
	a       *agentProcess
	place   *remotes.Remote
	server  string
	inst    *remote.Instance
	leaving atomic.Bool  // this program ends, and the agent runs on
	gone    atomic.Bool  // the runtime no longer has the agent
	left    atomic.Bool  // the runtime has not confirmed the agent's end
	again   atomic.Int64 // how many of the next messages may have been sent before
	before  int          // messages to the agent with numbers up to this may have been sent by the run of the program before
}

// reach connects to a remote agent.
func (a *agentProcess) reach(p *remotes.Remote, start remote.Start) *remoteTransport {
	t := &remoteTransport{a: a, place: p, server: start.ServerID}
	start.Line = t.heard
	t.inst = p.Connect(start)
	return t
}

// runThere is run for a remote agent.
func (a *agentProcess) runThere(agent, cwd, serverID string) {
	v, c := a.v, a.v.c
	p, err := c.remotes.Get(v.look().Place)
	if err != nil {
		a.post(func() { a.fail(remotes.UnknownPlace, "agent", agent) })
		return
	}
	a.post(func() { v.stage("spawn") })
	info, err := p.Runtime().Check(a.ctx)
	if a.ctx.Err() != nil {
		return
	}
	p.Saw(info, err)
	if err != nil {
		why := p.Refusal(err)
		a.post(func() { a.fail(why.Code, "name", why.Params["name"], "detail", why.Params["detail"]) })
		return
	}
	c.endPredecessor(a.ctx, p, v.id, serverID)
	t := a.reach(p, remote.Start{ServerID: serverID, Agent: agent, Cwd: cwd})
	defer a.end(t)
	defer a.closeSession(t)
	v.links.Go(func() { a.write(t) })
	begun := a.post(func() {
		a.inst = t
		v.remote.progress(progress{Server: serverID})
		a.initialize()
	})
	if begun {
		a.read(t)
		a.post(v.exited)
	}
}

// Send waits until the runtime has the message, and records that. An empty message stands for one that must not be sent again, see unsent.
func (t *remoteTransport) Send(ctx context.Context, msg []byte) (err error) {
	send := t.inst.Send
	if t.again.Add(-1) >= 0 {
		send = t.inst.SendAgain
	}
	if len(msg) > 0 {
		err = send(ctx, msg)
	}
	if errors.Is(err, remote.ErrInput) {
		err = fmt.Errorf("%w: %w", proxy.ErrInput, err) // write ends the agent over this error, as on this machine
	}
	for _, never := range []error{remote.ErrGone, remote.ErrClosed, remote.ErrInput} {
		if errors.Is(err, never) {
			return err // the agent did not get the message
		}
	}
	if ctx.Err() == nil { // other refusals of the runtime count as sent: a repetition would be refused again
		t.a.post(func() {
			t.a.reached.Sent++
			t.a.v.remote.progress(t.a.reached)
		})
	}
	return err
}

// After goes on where the connection is; the number was fixed when the connection was made.
func (t *remoteTransport) After(uint64) transport.Reader { return remoteReader{t} }

// Status returns how the agent's process ended, as far as the runtime has told.
func (t *remoteTransport) Status() proxy.Status {
	exit := t.inst.Exit()
	s := proxy.Status{Phase: proxy.Running, ExitCode: exit.Code, Signal: exit.Signal, StderrTail: exit.StderrTail}
	if exit.Ended {
		s.Phase = proxy.Exited
	}
	return s
}

// Problem returns why the agent is gone when its process has not reported an end.
func (t *remoteTransport) Problem() (string, map[string]string) {
	switch {
	case t.inst.Exit().Ended:
		return "", nil
	case t.gone.Load():
		return remotes.Gone, map[string]string{"name": t.place.Place().Name}
	case t.left.Load():
		return remotes.Unended, map[string]string{"name": t.place.Place().Name}
	}
	return "", nil
}

// Interrupt always fails: the runtime's API has no signals.
func (*remoteTransport) Interrupt() error { return proxy.ErrNoSignal }

// Close ends the agent, unless the agent is to outlive this program.
func (t *remoteTransport) Close() error {
	t.place.Disconnected(t.inst)
	if t.leaving.Load() {
		t.inst.Leave()
		return nil
	}
	if err := t.inst.Close(); err != nil {
		return err
	}
	return t.a.v.c.forgetProgress(t.a.v.id, t.server)
}

// heard records a change of the connection, and shows it. The goroutine of the connection calls heard.
func (t *remoteTransport) heard(l remote.Line) {
	c, v := t.a.v.c, t.a.v
	switch l.State {
	case remote.LineUp:
		t.place.Saw(remote.Info{}, nil)
	case remote.LineRefused:
		t.place.Saw(remote.Info{}, errors.Join(remote.ErrRefused, errors.New(l.Detail)))
	default:
		t.place.Saw(remote.Info{}, errors.Join(remote.ErrUnreachable, errors.New(l.Detail)))
	}
	t.a.post(func() {
		v.row.Line = nil
		if l.State != remote.LineUp {
			v.row.Line = &Line{State: l.State, Detail: c.secret.Text(l.Detail), Since: Time{Time: time.Now()}}
		}
		v.saveRow()
	})
}

// remoteReader reads the messages of a remote agent.
type remoteReader struct{ t *remoteTransport }

// Next returns the agent's next messages. A message to the agent that may not have arrived, since the connection broke, is told in a
// notice.
func (r remoteReader) Next(ctx context.Context) ([]proxy.Message, error) {
	for {
		batch, err := r.t.inst.Next(ctx)
		var gap *remote.GapError
		var doubt *remote.DoubtError
		switch {
		case errors.As(err, &gap):
			return nil, &transport.GapError{GapError: *gap}
		case errors.As(err, &doubt):
			r.t.a.post(func() {
				r.t.a.tell([]transcript.Notice{{
					Severity: "warning", Title: "The line broke while the agent was being told something",
					Description: "It is not known whether it got " + doubt.Method + ". If nothing comes, stop the turn and send it again.",
				}})
			})
			continue
		case errors.Is(err, remote.ErrGone):
			r.t.gone.Store(true)
		case errors.Is(err, remote.ErrNotEnded):
			r.t.left.Store(true)
		}
		list := make([]proxy.Message, len(batch))
		for n, m := range batch {
			list[n] = proxy.Message(m)
		}
		return list, err
	}
}

func (remoteReader) Working() {} // messages that are not read wait in the connection
func (remoteReader) Close()   {}

// progress stores the progress of the remote agent with the step.
func (rt *remoteTurn) progress(p progress) {
	if rt.v.agent != nil {
		rt.v.agent.reached = p
	}
	text := string(mustJSON(p))
	rt.v.step.line = &text
}

// prompted tells how the prompt of the turn was sent to the agent.
type prompted struct {
	at    int     // number of the prompt among the messages to the agent, from 1; 0 = not sent
	key   acp.Key // id of the prompt
	heard bool    // the agent has sent output or a request since
}

// hear checks a message of the agent. Facts about the session come at any time; output, tool calls and requests come for a prompt.
func (p *prompted) hear(env acp.Envelope) {
	switch {
	case p.heard || p.at == 0:
	case env.Kind == acp.Request:
		p.heard = true
	case env.Kind == acp.Notification && env.Method() == "session/update":
		var m struct {
			Params struct {
				Update struct {
					Kind string `json:"sessionUpdate"`
				} `json:"update"`
			} `json:"params"`
		}
		p.heard = json.Unmarshal(env.Raw, &m) == nil && slices.Contains([]string{
			"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
		}, m.Params.Update.Kind)
	}
}

// recallPrompt marks the prompt of the turn as not sent when it has not arrived at a remote agent, so that the message becomes the draft
// again. When the prompt may have arrived and only the confirmation was lost with the connection, the message is taken back too, with a
// notice; but not when the agent has sent output since, or has ended by itself, since both may be due to the prompt.
func (rt *remoteTurn) recallPrompt() {
	a := rt.v.agent
	if a == nil || rt.v.turn == nil || !rt.v.state.Sent || a.reached.Sent >= a.prompted.at {
		return
	}
	t, far := a.inst.(*remoteTransport)
	if !far {
		return
	}
	doubt := a.prompted.at <= t.before || t.inst.MayHave(a.prompted.key)
	if doubt && (a.prompted.heard || t.inst.Exit().Ended) {
		return
	}
	rt.v.state.Sent = false
	select {
	case <-a.outbox: // otherwise the prompt would be sent with the last messages
	default:
	}
	if doubt {
		a.tell([]transcript.Notice{{
			Severity: "warning", Title: "The line broke while the agent was being told something",
			Description: "It is not known whether " + rt.v.agentName + " got your message, which is taken back. Look at what it did before you send it again.",
		}})
	}
}

// reached stores with the step that a message of the remote agent is in the journal.
func (rt *remoteTurn) reached(a *agentProcess, seq uint64) {
	if rt.v.agent == a && a.reached.Server != "" {
		a.reached.Seq = max(a.reached.Seq, seq)
		rt.progress(a.reached)
	}
}

// missing records in the transcript that messages of the agent are lost.
func (rt *remoteTurn) missing(gap *transport.GapError) {
	rt.v.note(transcript.Note{Note: transcript.NoteMissing})
	if a := rt.v.agent; a.reached.Server != "" && gap.Next > 0 {
		a.reached.Seq = gap.Next - 1 // the number may be lower than before, since the runtime counts anew
		rt.progress(a.reached)
	}
}

// saveLine stores the progress of a remote agent.
func saveLine(ctx context.Context, tx *sql.Tx, session string, line *string) error {
	if line == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE session SET line = ? WHERE id = ?`, *line, session)
	return err
}

// armAgain starts the timer for the next means after an interrupt; a shorter one when no signal could be sent.
func (rt *remoteTurn) armAgain(reason string) {
	if reason == transcript.ReasonNoSignal {
		rt.v.stopping.armFor(rt.v.c.cfg.Patience/4, rt.v.stopping.escalate)
		return
	}
	rt.v.stopping.arm()
}

// goOn leaves a remote agent at work when this program ends; the next start takes the agent up again. goOn returns false when there is no
// remote turn to leave running.
func (rt *remoteTurn) goOn() bool {
	if rt.v.agent == nil || rt.v.turn == nil || rt.v.state.Base != lifecycle.Working || !rt.v.state.Sent || rt.v.composer.now != nil {
		return false
	}
	t, far := rt.v.agent.inst.(*remoteTransport)
	if !far {
		return false
	}
	t.leaving.Store(true)
	rt.v.agent.close()
	return true
}

// takeUpAgain goes on with a remote agent that has outlived the last run of the program, in the middle of its turn. takeUpAgain returns
// false when there is no such agent, and the turn has ended. The state of the generation is read from the journal.
func (rt *remoteTurn) takeUpAgain(ctx context.Context) bool {
	if rt.v.turn == nil {
		return false
	}
	p, err := rt.v.c.remotes.Get(rt.v.row.Place)
	if err != nil {
		return false
	}
	at, err := rt.v.c.lastProgress(ctx, rt.v.id)
	if err != nil || at.Server != serverIDOf(rt.v.row.Session) {
		return false
	}
	past := pastGeneration{generation: rt.v.row.Generation, turn: rt.v.turn.ID, requests: map[string]json.RawMessage{}, asks: map[acp.Key]string{}, answered: map[acp.Key]bool{}}
	if err := rt.v.c.journal.Each(ctx, rt.v.id, past.take); err != nil || past.prompted.key == "" {
		return false
	}
	unsent, again := rt.unsent(ctx, &past, at.Sent)
	if !again {
		return false
	}
	a := newAgentProcess(rt.v)
	a.can, a.nextID, a.kept, a.servers = past.can, past.lastID, true, []any{}
	a.from, a.reached, a.given, a.prompted = at.Seq, at, at.Sent, past.prompted
	a.pending[past.prompted.key] = rt.v.promptReply(rt.v.turn.ID)
	rt.v.agent, rt.v.gone, rt.v.restored = a, a.gone, "resume"
	rt.v.row.Exit = nil
	for id, r := range rt.v.inbox.open {
		raw, known := past.requests[id]
		if !known || !r.Resume(raw, rt.v.c.secret.Text) {
			rt.v.do(lifecycle.Resolve{Request: id, Status: lifecycle.StatusExpired})
		}
	}
	rt.v.note(transcript.Note{Note: transcript.NoteTakenUp})
	rt.v.saveTurn()
	rt.v.touched()
	t := a.reach(p, remote.Start{ServerID: at.Server, Agent: rt.v.row.Agent, Cwd: rt.v.row.Cwd, Running: true, After: at.Seq})
	a.inst, t.before = t, at.Sent+len(unsent)
	t.again.Store(int64(len(unsent)))
	a.send(unsent)
	rt.v.links.Go(func() {
		defer close(a.gone)
		defer a.stop()
		defer a.end(t)
		defer a.closeSession(t)
		rt.v.links.Go(func() { a.write(t) })
		a.read(t)
		a.post(rt.v.exited)
	})
	return true
}

// unsent returns the messages that had not arrived at the agent when the program ended, to be sent again. The journal holds messages with
// their secrets replaced; such a message cannot be sent, so an empty message takes its place, since messages are counted. A request whose
// answer held a secret waits for an answer again. A prompt that held a secret becomes the draft again (restoreDraft) and its turn ends:
// unsent then returns false.
func (rt *remoteTurn) unsent(ctx context.Context, past *pastGeneration, sent int) (lines [][]byte, again bool) {
	lines = slices.Clone(past.sent[min(sent, len(past.sent)):])
	lost, unanswered := false, map[string]bool{}
	rt.v.turn.prompt, rt.v.turn.attachments = past.said.Prompt, past.said.Attachments // for the draft
	for i, line := range lines {
		env, _ := acp.Peek(line) // Deskhand wrote the line itself
		answered := ""
		if env.Kind == acp.Response {
			answered = past.asks[env.Key()]
		}
		whole := !bytes.Contains(line, []byte(redact.Mark))
		if answered != "" {
			unanswered[answered] = !whole
		}
		switch {
		case env.Kind == acp.Request && past.answered[env.Key()]:
			lines[i] = nil // the message has arrived, and its answer does not come again
		case whole:
		case env.Kind == acp.Request && env.Key() == past.prompted.key:
			rt.v.state.Sent = false
			rt.tellLost("Your message was not sent", putSecretIn)
			return nil, false
		default:
			lines[i], lost = nil, lost || answered == ""
		}
	}
	for id, is := range unanswered {
		if is && rt.v.inbox.open[id] == nil && rt.askAgain(ctx, id) {
			rt.tellLost("Your answer was not sent", "The question waits for an answer again.")
		}
	}
	if lost {
		rt.tellLost("A message was not sent", "It is not sent again.")
	}
	return lines, true
}

const putSecretIn = "Where one stood it now says " + redact.Mark + ": put it in, and send the message again."

// tellLost adds a notice about a message that has not reached the agent because it held a secret; then says what follows.
func (rt *remoteTurn) tellLost(title, then string) {
	rt.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{
		Severity: "warning", Title: title,
		Description: "Deskhand ended before it had reached " + rt.v.agentName + ". It held a secret, and secrets are not stored. " + then,
	}})
}

// askAgain reopens a request that is stored as answered.
func (rt *remoteTurn) askAgain(ctx context.Context, id string) bool {
	found, err := rt.v.c.requests.Get(ctx, id)
	if err != nil {
		return false
	}
	r := &requests.Pending{Request: found}
	r.Status, r.Answer, r.AnsweredBy, r.ResolvedAt = lifecycle.StatusRequested, nil, "", nil
	rt.v.inbox.open[id] = r
	rt.v.state.Open = append(rt.v.state.Open, id)
	rt.v.saveRequest(&r.Request)
	rt.v.inbox.tell(&r.Request)
	rt.v.row.Unread = true
	return true
}

// pastGeneration is the state of a generation whose agent has outlived the program, read from the journal.
type pastGeneration struct {
	generation int64
	turn       string

	can      acp.Initialized
	lastID   int64
	prompted prompted        // the prompt of the turn, while it is not answered
	said     transcript.Note // how the turn began
	sent     [][]byte        // all messages to the agent
	// our ids of the agent's requests, to their messages
	requests map[string]json.RawMessage
	asks     map[acp.Key]string // the newest request by the agent's id
	answered map[acp.Key]bool   // our requests that the agent has answered

	initialize acp.Key
	inTurn     bool
	asked      json.RawMessage // the last request of the agent
}

// take takes in the next frame of the journal.
func (g *pastGeneration) take(f journal.Frame) {
	ours := f.Generation == g.generation
	switch {
	case f.Dir == journal.Note && (ours || bytes.Contains(f.Data, []byte(transcript.NoteTurnBegan))):
		g.takeNote(f, ours)
	case f.Dir == journal.Out && ours:
		g.takeOut(f)
	case f.Dir == journal.In && ours:
		g.takeIn(f)
	}
}

// takeNote handles a note of the journal; ours reports whether the note is of this generation. The turn may have begun in the generation
// before, when its prompt started the agent.
func (g *pastGeneration) takeNote(f journal.Frame, ours bool) {
	var n transcript.Note
	if json.Unmarshal(f.Data, &n) != nil {
		return
	}
	switch {
	case n.Note == transcript.NoteTurnBegan:
		g.inTurn, g.prompted, g.said = n.Turn == g.turn, prompted{}, n
	case n.Note == transcript.NoteRequest && ours:
		g.requests[n.Request] = g.asked
		if env, err := acp.Peek(g.asked); err == nil {
			g.asks[env.Key()] = n.Request
		}
	}
}

// takeOut takes in a message to the agent.
func (g *pastGeneration) takeOut(f journal.Frame) {
	g.sent = append(g.sent, f.Data)
	env, err := acp.Peek(f.Data)
	if err != nil || env.Kind != acp.Request {
		return
	}
	if id, err := strconv.ParseInt(string(env.ID), 10, 64); err == nil {
		g.lastID = max(g.lastID, id)
	}
	switch env.Method() {
	case "initialize":
		g.initialize = env.Key()
	case methodPrompt:
		if g.inTurn {
			g.prompted = prompted{at: len(g.sent), key: env.Key()}
		}
	}
}

// takeIn takes in a message of the agent.
func (g *pastGeneration) takeIn(f journal.Frame) {
	env, err := acp.Peek(f.Data)
	if err != nil {
		return
	}
	g.prompted.hear(env)
	switch env.Kind {
	case acp.Request:
		g.asked = f.Data
	case acp.Response:
		g.answered[env.Key()] = true
		if env.Key() == g.prompted.key {
			g.prompted = prompted{}
		}
		if env.Key() == g.initialize {
			var m struct {
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(f.Data, &m) == nil {
				g.can, _ = acp.ParseInitialized(m.Result)
			}
		}
	case acp.Notification, acp.Other:
	}
}

// remoteTurn is a turn whose agent runs on another machine: the connection to the agent may break while the turn runs.
type remoteTurn struct{ v *conversation }
