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
	"deskhand/backend/transcript"
)

// An agent elsewhere, as a conversation has it. What differs from one on this machine: the line may break, which is told and ends nothing;
// the agent may outlive this program, and is then taken up again in the middle of its turn (takeUpAgain); and what belongs to this
// machine (MCP servers and skills of the directory, files, terminals, the memory budget) it gets nothing of.

// remoteStartLimit is how long an agent elsewhere may take to be installed and started.
const remoteStartLimit = 15 * time.Minute

// host returns what the session's host offers. Any goroutine may call host.
func (v *conversation) host() host.Capabilities { return v.c.hosts.At(v.look().Place) }

// noteLogin is Agents.NoteLogin for an agent of the catalogue: the catalogue has no logins of agents elsewhere.
func (v *conversation) noteLogin(refused *acp.Error) {
	if v.host().Agents != nil {
		v.c.cfg.Roster.NoteLogin(v.row.Agent, refused)
	}
}

// startLimit is how long an agent may take to answer to initialize.
func (a *agentProcess) startLimit() time.Duration {
	if a.v.host().Agents == nil {
		return remoteStartLimit
	}
	return initializeLimit
}

// remoteTransport is the agent of another machine as a transport.
type remoteTransport struct {
	a       *agentProcess
	place   *remotes.Remote
	server  string
	inst    *remote.Instance
	leaving atomic.Bool  // this program ends, and the agent goes on
	gone    atomic.Bool  // the runtime has lost it
	left    atomic.Bool  // the runtime has not said that it has ended it
	again   atomic.Int64 // so many of the next messages are of these
	before  int          // up to this one its messages may have been sent by the program before this one
}

// reach makes the transport to an agent elsewhere.
func (a *agentProcess) reach(p *remotes.Remote, start remote.Start) *remoteTransport {
	t := &remoteTransport{a: a, place: p, server: start.ServerID}
	start.Line = t.heard
	t.inst = p.Connect(start)
	return t
}

// runThere is run for an agent elsewhere.
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

// Send waits for the runtime to have the message, and notes that it has. An empty one stands for what is not sent again, see unsent.
func (t *remoteTransport) Send(ctx context.Context, msg []byte) (err error) {
	send := t.inst.Send
	if t.again.Add(-1) >= 0 {
		send = t.inst.SendAgain
	}
	if len(msg) > 0 {
		err = send(ctx, msg)
	}
	if errors.Is(err, remote.ErrInput) {
		err = fmt.Errorf("%w: %w", proxy.ErrInput, err) // which is what its end follows from, as on this machine
	}
	for _, never := range []error{remote.ErrGone, remote.ErrClosed, remote.ErrInput} {
		if errors.Is(err, never) {
			return err // nobody has it
		}
	}
	if ctx.Err() == nil { // what else is refused needs not be sent again either
		t.a.post(func() {
			t.a.reached.Sent++
			t.a.v.remote.progress(t.a.reached)
		})
	}
	return err
}

// After reads on from where the line is; its number is what the line was made with.
func (t *remoteTransport) After(uint64) reader { return remoteReader{t} }

// Status is how the agent's process ended, as far as it is known here.
func (t *remoteTransport) Status() proxy.Status {
	exit := t.inst.Exit()
	s := proxy.Status{Phase: proxy.Running, ExitCode: exit.Code, Signal: exit.Signal, StderrTail: exit.StderrTail}
	if exit.Ended {
		s.Phase = proxy.Exited
	}
	return s
}

// Problem is why it is gone, when its process has not told of its end.
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

// Interrupt cannot: the API has no signals.
func (*remoteTransport) Interrupt() error { return proxy.ErrNoSignal }

// Close ends the agent, unless it is to outlive this program.
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

// heard takes news of the line.
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

// remoteReader is the reading of an agent elsewhere.
type remoteReader struct{ t *remoteTransport }

func (r remoteReader) Next(ctx context.Context) ([]proxy.Message, error) {
	for {
		batch, err := r.t.inst.Next(ctx)
		var gap *remote.GapError
		var doubt *remote.DoubtError
		switch {
		case errors.As(err, &gap):
			return nil, &gapError{*gap}
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

func (remoteReader) Working() {} // what is not taken waits in the line
func (remoteReader) Close()   {}

// progress notes how far the agent elsewhere is, with the step.
func (rt *remoteTurn) progress(p progress) {
	if rt.v.agent != nil {
		rt.v.agent.reached = p
	}
	text := string(mustJSON(p))
	rt.v.step.line = &text
}

// prompted is how the prompt of the turn was given to the agent.
type prompted struct {
	at    int     // it is that of the messages to it, from 1; 0 = none was
	key   acp.Key // its id
	heard bool    // the agent has said or asked something since
}

// hear takes what the agent says. Facts of its session come at any time; what it says, does or asks is for a prompt.
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

// recallPrompt has the prompt of the turn be one that the agent has not got, so that it is taken back, when it is still on its way to an agent
// elsewhere. It may have arrived, and the word of that be lost with the line: then it is taken back too, and that is told; but not where
// the agent has said something since, or has ended by itself, which may have been for it.
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
	case <-a.outbox: // or it were said with the last words
	default:
	}
	if doubt {
		a.tell([]transcript.Notice{{
			Severity: "warning", Title: "The line broke while the agent was being told something",
			Description: "It is not known whether " + rt.v.agentName + " got your message, which is taken back. Look at what it did before you send it again.",
		}})
	}
}

// reached notes that a message of an agent elsewhere is in the journal, with the step.
func (rt *remoteTurn) reached(a *agentProcess, seq uint64) {
	if rt.v.agent == a && a.reached.Server != "" {
		a.reached.Seq = max(a.reached.Seq, seq)
		rt.progress(a.reached)
	}
}

// missing tells in the transcript that something is lost.
func (rt *remoteTurn) missing(gap *gapError) {
	rt.v.note(transcript.Note{Note: transcript.NoteMissing})
	if a := rt.v.agent; a.reached.Server != "" && gap.Next > 0 {
		a.reached.Seq = gap.Next - 1 // which may be less than it was: it counts anew
		rt.progress(a.reached)
	}
}

// saveLine writes how far an agent elsewhere is.
func saveLine(ctx context.Context, tx *sql.Tx, session string, line *string) error {
	if line == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE session SET line = ? WHERE id = ?`, *line, session)
	return err
}

// armAgain waits for the cancel to be heeded after an interrupt. Where none could be sent there is less to wait for.
func (rt *remoteTurn) armAgain(reason string) {
	if reason == transcript.ReasonNoSignal {
		rt.v.stopping.armFor(rt.v.c.cfg.Patience/4, rt.v.stopping.escalate)
		return
	}
	rt.v.stopping.arm()
}

// goOn leaves an agent elsewhere at its work when this program ends; the next start takes it up again. It is false where there is
// nothing that goes on.
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

// takeUpAgain goes on with an agent elsewhere that has outlived this program, in the middle of its turn. It is false where there is none: the
// turn is over then. What it needs to know of the generation is in the journal.
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
		if !known || !r.wait(raw, rt.v.c.secret.Text) {
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

// unsent are the messages that the agent had not got when the program ended, to be sent again. The journal has them without their secrets, and
// what is not as it was said is not sent: an empty message stands in its place, since they are counted. What was answered so waits for an answer
// again. A prompt is the draft again (restoreDraft), and its turn is over: false.
func (rt *remoteTurn) unsent(ctx context.Context, past *pastGeneration, sent int) (lines [][]byte, again bool) {
	lines = slices.Clone(past.sent[min(sent, len(past.sent)):])
	lost, unanswered := false, map[string]bool{}
	rt.v.turn.prompt, rt.v.turn.attachments = past.said.Prompt, past.said.Attachments // for the draft
	for i, line := range lines {
		env, _ := acp.Peek(line) // we have written it ourselves
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
			lines[i] = nil // it has arrived, and its answer does not come once more
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

// tellLost tells that something with a secret in it has not reached the agent, and what follows from that.
func (rt *remoteTurn) tellLost(title, then string) {
	rt.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{
		Severity: "warning", Title: title,
		Description: "Deskhand ended before it had reached " + rt.v.agentName + ". It held a secret, and secrets are not stored. " + then,
	}})
}

// askAgain has a request that is stored as answered wait again.
func (rt *remoteTurn) askAgain(ctx context.Context, id string) bool {
	found, err := query(ctx, rt.v.c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return false
	}
	r := &openRequest{Request: found[0]}
	r.Status, r.Answer, r.AnsweredBy, r.ResolvedAt = lifecycle.StatusRequested, nil, "", nil
	rt.v.inbox.open[id] = r
	rt.v.state.Open = append(rt.v.state.Open, id)
	rt.v.saveRequest(&r.Request)
	rt.v.inbox.tell(&r.Request)
	rt.v.row.Unread = true
	return true
}

// wait makes a stored request one that can be answered, by the agent's message that asked it.
func (r *openRequest) wait(raw json.RawMessage, clean func(string) string) bool {
	env, err := acp.Peek(raw)
	if err != nil || env.Kind != acp.Request {
		return false
	}
	r.id, r.key, r.method = slices.Clone(env.ID), env.Key(), env.Method()
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	if p, err := acp.ParsePermission(m.Params); r.method == "session/request_permission" && r.Kind == kindQuestion && err == nil {
		for _, o := range p.Options {
			r.Options = append(r.Options, RequestOption{ID: o.ID, Name: o.Name, Kind: o.Kind})
		}
		r.readAsked(p.ToolCall, clean)
	}
	return true
}

// pastGeneration is what the journal tells of a generation whose agent has outlived the program.
type pastGeneration struct {
	generation int64
	turn       string

	can      acp.Initialized
	lastID   int64
	prompted prompted        // of the turn, while it is not answered
	said     transcript.Note // how that turn began
	sent     [][]byte        // all messages to the agent
	requests map[string]json.RawMessage
	asks     map[acp.Key]string // the same by the agent's ids, of each the newest
	answered map[acp.Key]bool   // of our requests

	initialize acp.Key
	inTurn     bool
	asked      json.RawMessage // the last request of the agent
}

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

// takeNote takes what we have noted; ours is of this generation. A turn whose message starts the agent has begun before that.
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

// remoteTurn is a turn whose agent runs on another computer: the line to the agent may break while the turn runs.
type remoteTurn struct{ v *conversation }
