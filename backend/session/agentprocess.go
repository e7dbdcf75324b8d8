package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/journal"
	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/startmode"
	"deskhand/backend/subagents"
	"deskhand/backend/transcript"
	"deskhand/backend/transport"
	"deskhand/backend/vault"
)

// Limits on how long an agent may say nothing while it starts. The end of the process is noticed at once. Slow agents have longer limits
// for opening a session, see agents.Quirks. A prompt has no limit.
const (
	initializeLimit = 2 * time.Minute
	usualOpenLimit  = time.Minute
	equippedLimit   = 5 * time.Minute      // with MCP servers, which npx may have to download first
	pace            = 8 * time.Millisecond // between two batches of an agent's messages
)

// agentProcess is one process of the conversation's agent: a generation of the session. Goroutines of its own read from and write to the
// process, so that an agent that does not read its input delays nobody: one goroutine calls run, which calls prepare, spawn, read and
// closeSession, and another one calls write. The other methods are called in the conversation's goroutine, unless their comments say
// otherwise. The maps belong to the conversation's goroutine.
type agentProcess struct {
	v    *conversation
	ctx  context.Context //nolint:containedctx // ends when the conversation is detached from this process
	stop context.CancelFunc
	inst transport.Transport // nil until the process is spawned
	gone chan struct{}       // closed when the process and every process that the agent started have ended

	launching
	handshake
	exchange
	services

	family  *subagents.Family // the child sessions in the process; nil before the first message
	replay  *replay           // the history that the agent replays; nil while there is no replay
	closing *gracefulClose    // the last messages; set before ctx ends
}

// launching is what an agent process is started with.
type launching struct {
	further      []string          // directories beside the session's own that were checked and may be given to the agent
	approval     *approval         // the approval that the start waits for
	plan         *launch.Plan      // the executables that start with the agent; belongs to the goroutine of run until the process is spawned
	environ      []string          // environment of the started process
	servers      []any             // the MCP servers of plan, in the form of ACP
	systemPrompt *acp.SystemPrompt // the instructions of plan; nil = none
	secrets      []string          // secrets of Deskhand's own tools for this agent
	toolless     bool              // the agent takes no MCP server of Deskhand's own tools
	listed       <-chan struct{}   // closed once the agent has fetched the list of Deskhand's tools; nil when no tools were given, or the notice about unlisted tools is written
}

// handshake is the progress of the agent's start, and the capabilities that the agent has declared.
type handshake struct {
	can       acp.Initialized
	refusals  []string                  // why the agent has not opened its stored session, a line for each method
	kept      bool                      // the agent holds a part of the conversation and can replay that part
	spoken    bool                      // a message was exchanged since the start, in either direction
	limit     *time.Timer               // the last messages to the agent; set before ctx ends
	again     func()                    // restarts the limit
	beginning beginning                 // mode and model that the conversation begins with
	chosen    []transcript.ConfigOption // options of the process before that the agent has not been told of yet
	setting   *transcript.ConfigOption  // the option whose request is not answered
}

// exchange is the messages between a conversation and its agent process.
type exchange struct {
	nextID    int64
	pending   map[acp.Key]reply  // our requests that the agent has not answered
	methods   map[acp.Key]string // methods of the requests in pending
	withdrawn map[acp.Key]bool   // requests of pending that a person has cancelled
	cancelled bool               // the answer that is handled belongs to a cancelled request
	outbox    chan [][]byte
	deaf      atomic.Bool // the agent has closed its input
	from      uint64      // number of the agent's last message that is in the journal already
	taken     uint64      // number of the last message that the conversation has taken
	given     int         // messages ever queued to the agent
	reached   progress    // how far a remote agent is
	prompted  prompted    // how the prompt of the turn was sent
}

// services is the work of Deskhand for an agent process: files, programs, and commands that outlived their turn.
type services struct {
	serving      map[acp.Key]context.CancelFunc // requests of the agent that are being served
	programs     map[string]*agentProgram       // programs that run for the agent or are not released, by terminal id
	stragglers   map[string]*leftRunning        // stragglers of stopped turns, by id
	lastTerminal int
	lastFile     <-chan struct{} // closed when the newest file request has ended; nil before the first
	work         sync.WaitGroup  // goroutines of served requests and programs
}

const (
	methodPrompt = "session/prompt" // the request of a turn; its answer ends the turn
	methodResume = "session/resume"
	methodLoad   = "session/load"
)

// reply handles the agent's answer to a request, in the conversation's goroutine.
type reply func(result json.RawMessage, failure *acp.Error)

// begin starts a new agent process: the next generation of the session.
func (v *conversation) begin() {
	v.row.Generation++
	v.stage("resolve")
	v.row.Exit, v.restored, v.refusal = nil, "", nil
	a := newAgentProcess(v)
	if f := &v.fold.Facts; len(f.Chosen) == 0 && len(f.Options) > 0 { // otherwise an earlier start failed before the agent was told of all options
		f.Chosen, v.fold.FactsChanged = f.Options, true
	}
	v.modes = startmode.Of(v.c.cfg.Agents.Modes(v.row.Agent))
	a.beginning = a.toBegin()
	a.chosen, v.fold.Told = modesLast(v.fold.Facts.Chosen), false
	before := v.gone
	v.agent, v.gone = a, a.gone
	v.note(transcript.Note{Note: transcript.NoteStarting})
	v.touched()
	agent, cwd, serverID := v.row.Agent, v.row.Cwd, v.id+"."+strconv.FormatInt(v.row.Generation, 10)
	v.links.Go(func() {
		defer close(a.gone)
		if before != nil {
			<-before // two processes must not have one ACP session: the earlier process may still be writing the session to disk
		}
		a.run(agent, cwd, serverID)
		a.stop()
		a.work.Wait()
	})
}

// run spawns the process, reads the agent's messages until the process ends or the conversation is detached, and ends the process.
func (a *agentProcess) run(agent, cwd, serverID string) {
	if m := a.v.within; m != nil {
		runWithin(a, m)
		return
	}
	at := a.v.host()
	if at.Agents == nil {
		a.runThere(agent, cwd, serverID)
		return
	}
	if at.Directories.Answers(a.ctx, cwd) != nil { // no directory is read before it is known that its disk answers, since Close waits for this goroutine
		return
	}
	if !a.setUp(cwd) || !a.prepare(agent, cwd, serverID) {
		return
	}
	defer a.plan.Close(a.ctx)
	inst, code, err := a.spawn(agent, cwd, serverID)
	if err != nil {
		a.post(func() { a.fail(code, "detail", err.Error(), "agent", agent, "path", cwd) })
		if a.ctx.Err() != nil { // only the wait has ended: the start may still be under way
			a.ended(a.v.c.cfg.Proxy.Remove(serverID))
		}
		return
	}
	defer a.end(inst)
	defer a.closeSession(inst)
	a.v.links.Go(func() { a.write(inst) })
	if a.post(func() { a.inst = inst; a.initialize() }) {
		a.read(inst)
		a.post(a.v.exited) // for an end that no message of the agent told, such as a kill
	}
}

// spawn starts the agent's process on this machine. An error comes with the code of the problem. The goroutine of run calls spawn.
func (a *agentProcess) spawn(agent, cwd, serverID string) (transport.Transport, string, error) {
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() || a.v.c.worktrees.Closed(cwd) {
		return nil, transcript.ProblemNoDirectory, fmt.Errorf("%s is not there", cwd)
	}
	a.v.c.cfg.Roster.Secrets().Remember(agent)
	cmd, err := a.v.c.cfg.Agents.Command(a.ctx, agent, cwd)
	switch {
	case errors.Is(err, agents.ErrUnknown):
		return nil, transcript.ProblemUnknown, err
	case errors.Is(err, agents.ErrNotInstalled):
		return nil, transcript.ProblemMissing, err
	case err != nil:
		return nil, transcript.ProblemFile, err
	}
	if a.v.c.cfg.Agents.Vault().UsesKeyring(agent) { // the start may have unlocked the keyring; a failure was logged before
		a.v.c.background.Start(func() { _ = a.v.c.cfg.Roster.Secrets().Load(a.v.c.ctx, vault.IfUnlocked) })
	}
	cmd.Env = append(cmd.Env, a.v.c.cfg.Setups.Environ(cwd)...)
	a.environ = cmd.Env
	a.v.c.keepChats(a.v.id, agent, cmd.Env, a.v.c.chatsOf(agent))
	a.post(func() { a.v.stage("spawn") })
	inst, err := a.v.c.cfg.Proxy.Start(a.ctx, serverID, agent, cmd)
	return transport.Local{Instance: inst}, transcript.ProblemSpawn, err
}

// post runs f in the conversation's goroutine if a is still the conversation's agent by then. post returns false when a has been stopped.
// Any goroutine except the conversation's own may call post.
func (a *agentProcess) post(f func()) bool {
	select {
	case a.v.work <- a.own(f):
		return true
	case <-a.ctx.Done():
		return false
	}
}

// own returns a function that calls f only while a is the conversation's agent.
func (a *agentProcess) own(f func()) func() {
	return func() {
		if a.v.agent == a {
			f()
		}
	}
}

// working is how often a reader that waits for the conversation to take its batch reports that it is alive. The log then holds up the
// agent, instead of dropping the reader together with the agent's messages: a disk that is full for an hour loses nothing.
const working = 10 * time.Second

// hand hands a batch that r has read to the conversation. hand returns false when the conversation is detached.
func (a *agentProcess) hand(r transport.Reader, batch []proxy.Message) bool {
	work := a.own(func() { a.v.received(a, batch) })
	for {
		select {
		case a.v.work <- work:
			return true
		case <-a.ctx.Done():
			return false
		case <-time.After(working):
			r.Working()
		}
	}
}

// read hands the agent's messages to the conversation, in batches, until the process has ended or the conversation is detached.
func (a *agentProcess) read(inst transport.Transport) {
	r := inst.After(a.from)
	defer r.Close()
	for {
		batch, err := r.Next(a.ctx)
		if gap, missing := errors.AsType[*transport.GapError](err); missing {
			a.post(func() { a.v.remote.missing(gap) })
			continue
		}
		if err != nil {
			return
		}
		if !a.hand(r, batch) {
			return
		}
		// Without this pause an agent that streams makes a transaction of every chunk.
		select {
		case <-time.After(pace):
		case <-a.ctx.Done():
			return
		}
	}
}

// write sends the messages of the outbox to the agent. A failure because the process has ended is ignored here, since read reports the end.
// A process that runs on and has closed its input is ended, since it could not be told anything more.
func (a *agentProcess) write(inst transport.Transport) {
	for {
		select {
		case lines := <-a.outbox:
			if !a.writeAll(inst, lines) {
				return
			}
		case <-a.ctx.Done():
			return
		}
	}
}

// writeAll sends messages to the agent. writeAll returns false when no further message can be sent.
func (a *agentProcess) writeAll(inst transport.Transport, lines [][]byte) bool {
	for _, line := range lines {
		err := inst.Send(a.ctx, line)
		if err == nil {
			continue
		}
		a.v.c.cfg.Logger.Debug("the agent takes no message", "session", a.v.id, "error", err)
		if errors.Is(err, proxy.ErrInput) {
			a.deaf.Store(true)
			a.end(inst)
			return false
		}
		if a.ctx.Err() != nil { // closeSession sends the last messages now
			return false
		}
	}
	return true
}

// send puts messages into the outbox, behind the messages that are there.
func (a *agentProcess) send(lines [][]byte) {
	if len(lines) == 0 {
		return
	}
	a.given += len(lines)
	select {
	case waiting := <-a.outbox:
		lines = append(waiting, lines...)
	default:
	}
	a.outbox <- lines // never blocks: no other goroutine puts messages in
}

// interrupt sends SIGINT, the second step of a cancel. interrupt returns [transcript.ReasonNoSignal] when the transport cannot signal.
func (a *agentProcess) interrupt() (reason string) {
	if a.inst == nil {
		return ""
	}
	err := a.inst.Interrupt()
	if errors.Is(err, proxy.ErrNoSignal) {
		return transcript.ReasonNoSignal
	}
	if err != nil {
		a.v.c.cfg.Logger.Warn("SIGINT failed", "session", a.v.id, "error", err)
	}
	return ""
}

// kill ends the process tree. The conversation records the end when all messages of the agent are read, or after a limit (armLast).
func (a *agentProcess) kill() {
	inst := a.inst
	if h, is := inst.(transport.Local); is {
		h.Hasten()
	}
	a.v.links.Go(func() { a.end(inst) })
}

// unread reports whether the log holds messages that the conversation has not taken. For a remote agent unread returns false.
func (a *agentProcess) unread() bool {
	h, is := a.inst.(transport.Local)
	return is && h.Last() > a.taken
}

// close has run end the process tree in the background. The conversation takes no further message of this process.
func (a *agentProcess) close() {
	if a.limit != nil {
		a.limit.Stop()
	}
	a.v.row.Line = nil // a connection to a remote agent is no longer shown
	a.stop()
}

// end ends the process tree of inst, and logs a failure.
func (a *agentProcess) end(inst transport.Transport) { a.ended(inst.Close()) }

func (a *agentProcess) ended(err error) {
	if err != nil {
		a.v.c.cfg.Logger.Error("an agent could not be ended", "session", a.v.id, "error", err)
	}
}

// fail ends the generation for a reason other than the exit of the process.
func (a *agentProcess) fail(code string, params ...string) {
	exit := &transcript.Exit{Problem: code, Params: bad(code, params...).Params, At: Time{Time: time.Now()}}
	for name, text := range exit.Params {
		exit.Params[name] = a.v.c.secret.Text(text)
	}
	if a.inst != nil {
		exit.StderrTail = a.stderr()
	}
	a.v.lastExit = exit
	a.v.do(lifecycle.Exited{Code: code})
}

func (a *agentProcess) stderr() string {
	return a.v.c.secret.Text(a.inst.Status().StderrTail)
}

// within fails the generation when the current step of the start takes longer than d.
func (a *agentProcess) within(d time.Duration, step string) {
	if a.limit != nil {
		a.limit.Stop()
	}
	var limit *time.Timer
	limit = time.AfterFunc(d, func() {
		a.post(func() {
			switch {
			case a.limit != limit: // the answer came while the timer fired
			case len(a.v.state.Open) > 0 || len(a.v.inbox.opened) > 0: // the agent may wait for a person who reads a question, or is at an address that the person agreed to open
				a.again()
			case a.failsOver():
				a.fail(transcript.ProblemMode, a.setting.Lost()...)
			default:
				if a.v.row.Line == nil { // with a broken connection, the agent may have answered long ago
					a.unopened()
				}
				a.fail(transcript.ProblemSlow, "step", step, "seconds", strconv.Itoa(int(d/time.Second)))
			}
		})
	})
	a.limit, a.again = limit, func() { a.within(d, step) }
}

// openLimit returns how long an agent may say nothing while it opens a session.
func openLimit(q agents.Quirks, equipped bool) time.Duration {
	limit := cmp.Or(time.Duration(q.SessionSeconds)*time.Second, usualOpenLimit)
	if equipped {
		limit = max(limit, equippedLimit)
	}
	return limit
}

// received handles a batch of the agent's messages.
func (v *conversation) received(a *agentProcess, batch []proxy.Message) {
	if a.limit != nil {
		a.again() // the agent is alive, for example sends a long history
	}
	for _, m := range batch {
		if v.agent != a {
			return // one of the messages ended this generation
		}
		v.take(m)
		a.taken = m.Seq
		v.remote.reached(a, m.Seq)
	}
}

// take journals one message of the agent, and dispatches it by its kind.
func (v *conversation) take(m proxy.Message) {
	data := m.Data
	env, err := acp.Peek(data)
	if err != nil {
		v.frame(journal.In, data)
		return // the transcript shows the unreadable line
	}
	a := v.agent
	if v.diverts(env, m) {
		return
	}
	replays := a.beforeReplayed(env, data)
	v.frame(journal.In, data)
	if replays {
		a.awaitReplay()
	}
	v.agent.prompted.hear(env)
	switch env.Kind {
	case acp.Response:
		v.answered(env.Key(), data)
	case acp.Request:
		v.inbox.asked(env, data)
	case acp.Notification:
		switch env.Method() {
		case "_adapter/agent_exited":
			v.exited()
		case "$/cancel_request":
			v.inbox.withdrawn(data)
		case "elicitation/complete":
			v.inbox.completed(data)
		}
	case acp.Other:
		if env.Raw[0] == '[' { // a JSON-RPC batch, which ACP does not have
			v.out(acp.NewErrorResponse(json.RawMessage("null"), &acp.Error{Code: acp.CodeInvalidRequest, Message: "JSON-RPC batches are not supported"}))
		}
	}
}

// exited records the end of the agent's process, whether the process ended by itself or was ended.
func (v *conversation) exited() {
	if v.agent == nil || v.agent.inst == nil {
		return
	}
	status := v.agent.inst.Status()
	exit := &transcript.Exit{Problem: transcript.ProblemExited, Code: status.ExitCode, Signal: status.Signal, StderrTail: v.agent.stderr(), At: Time{Time: time.Now()}}
	code, params := v.agent.inst.Problem()
	if code == "" {
		v.agent.unopened()
	}
	switch {
	case code != "":
		exit.Problem, exit.Params = code, params
	case v.agent.failsOver():
		exit.Problem, exit.Params = transcript.ProblemMode, bad("", v.agent.setting.Lost()...).Params
	case v.state.Base == lifecycle.Starting || v.state.Base == lifecycle.Replaying:
		exit.Problem = transcript.ProblemHandshake
	}
	if exit.Params == nil {
		exit.Params = v.agent.closedPipe(status)
	}
	v.lastExit = exit
	v.do(lifecycle.Exited{Code: exit.Problem})
}

// closedPipe returns a detail for an agent that was ended because it had closed its output or its input while it still ran.
func (a *agentProcess) closedPipe(status proxy.Status) map[string]string {
	switch {
	case status.Mute:
		return map[string]string{"detail": "It had closed its output while it still ran, so that nothing more could come of it."}
	case a.deaf.Load():
		return map[string]string{"detail": "It had closed its input while it still ran, so that it could be told nothing more."}
	}
	return nil
}

// request sends a request to the agent. then is called with the answer, or never when the agent ends first.
func (v *conversation) request(method string, params any, then reply) {
	v.agent.nextID++
	id := json.RawMessage(strconv.FormatInt(v.agent.nextID, 10))
	v.agent.pending[acp.Key(id)], v.agent.methods[acp.Key(id)] = then, method
	v.out(acp.NewRequest(id, method, params))
	if method == methodPrompt {
		v.agent.prompted = prompted{at: v.agent.given + len(v.step.send), key: acp.Key(id)}
	}
}

func (v *conversation) notify(method string, params any) { v.out(acp.NewNotification(method, params)) }

// out journals a message and queues the message for the agent.
func (v *conversation) out(msg []byte, err error) {
	if err != nil {
		v.c.cfg.Logger.Error("a message cannot be written", "session", v.id, "error", err)
		return
	}
	v.frame(journal.Out, msg)
	v.step.send = append(v.step.send, msg)
}

// answered calls the reply of the request that the agent has answered.
func (v *conversation) answered(key acp.Key, data []byte) {
	then, ok := v.agent.pending[key]
	if !ok {
		key = key.Twin() // our ids are numbers, and some agents return them as strings
		then, ok = v.agent.pending[key]
	}
	if !ok {
		return // an answer without a request, or a second answer
	}
	delete(v.agent.pending, key)
	delete(v.agent.methods, key)
	v.agent.cancelled = v.agent.withdrawn[key]
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *acp.Error      `json:"error"`
	}
	if err := json.Unmarshal(data, &m); err != nil && m.Error == nil && m.Result == nil {
		m.Error = &acp.Error{Code: acp.CodeInternalError, Message: err.Error()}
	}
	then(m.Result, m.Error)
}

// initialize sends the first request to a new process, and has the session opened after the answer.
func (a *agentProcess) initialize() {
	v := a.v
	v.stage("initialize")
	a.within(a.startLimit(), "initialize")
	offers := acp.ClientOffers{Version: v.c.cfg.Version, Files: v.inbox.serves("fs/read_text_file") && !v.c.cfg.Agents.Quirks(v.row.Agent).NoFS, Terminals: v.inbox.serves("terminal/create")}
	v.request("initialize", offers.Initialize(), func(result json.RawMessage, failure *acp.Error) {
		if failure != nil {
			a.failed(failure)
			return
		}
		can, err := acp.ParseInitialized(result)
		if err != nil || can.ProtocolVersion != 1 {
			a.fail(transcript.ProblemProtocol, "version", strconv.Itoa(can.ProtocolVersion))
			return
		}
		a.can = can
		v.row.ProtocolVersion = can.ProtocolVersion
		v.stage("session")
		a.within(openLimit(v.c.cfg.Agents.Quirks(v.row.Agent), a.plan.BringsAny()), "session")
		a.give()
	})
}

// failed ends the generation with an error that the agent has returned.
func (a *agentProcess) failed(failure *acp.Error) {
	if a.stopped(failure) {
		return
	}
	code := transcript.ProblemHandshake
	if a.v.turn != nil { // the turn that waits for this start ends with it
		a.v.failure = a.v.c.turnError(failure)
	}
	if failure.Code == acp.CodeAuthRequired {
		code = transcript.ProblemAuth
		a.v.barred()
		a.v.noteLogin(failure)
	}
	detail := a.v.c.cfg.Roster.Secrets().Sentence(failure)
	if code == transcript.ProblemAuth && strings.EqualFold(strings.TrimRight(detail, "."), standardAuth) {
		detail = "" // the standard message adds nothing to the problem
	}
	a.fail(code, "detail", detail)
}

// standardAuth is the message of the protocol's libraries for an error with acp.CodeAuthRequired.
const standardAuth = "Authentication required"

// open gets the agent a session: the stored one by resume, or else by load; or else a new session, which the transcript then tells.
func (a *agentProcess) open() {
	failed := unopenedLately(a.v.fold.Facts.Unopened, time.Now())
	switch {
	case a.v.importing():
		a.takeOver()
	case a.v.row.ACPSessionID == "":
		a.create("new")
	case len(failed) > 1:
		a.afresh()
	case a.can.Resume && (!a.can.LoadSession || !slices.ContainsFunc(failed, func(u transcript.FailedStart) bool { return u.Method == methodResume })):
		a.restore(methodResume, "resume", func() {
			if a.can.LoadSession {
				a.load()
				return
			}
			a.afresh()
		})
	case a.can.LoadSession:
		a.load()
	default:
		a.afresh()
	}
}

func (a *agentProcess) load() {
	if a.waitToLoad() {
		return
	}
	a.v.do(lifecycle.Replay{})
	a.expectReplay()
	a.restore(methodLoad, "load", a.afresh)
}

// unopened records that the start has failed while the agent resumed or loaded its session. An agent that fails over its stored state of
// the session would fail at every start, so the next start tries another method. Without another method the same method is tried once more,
// since the new session that remains knows nothing of the conversation.
func (a *agentProcess) unopened() {
	if a.v.importing() {
		return
	}
	note := func(method string) {
		now, f := time.Now(), a.v.fold
		f.Facts.Unopened, f.FactsChanged = append(unopenedLately(f.Facts.Unopened, now), transcript.FailedStart{Method: method, At: Time{Time: now}}), true
	}
	for key, method := range a.methods {
		if (method == methodResume || method == methodLoad) && !a.withdrawn[key] {
			note(method)
		}
	}
	if a.replay != nil && a.replay.then != nil { // the agent has answered and is still sending its history
		note(methodLoad)
	}
}

// unopenedFor is how long a failed start counts: a failure of hours ago may have had another cause, such as a machine without memory.
const unopenedFor = time.Hour

func unopenedLately(list []transcript.FailedStart, now time.Time) []transcript.FailedStart {
	return slices.DeleteFunc(slices.Clone(list), func(u transcript.FailedStart) bool { return now.Sub(u.At.Time) > unopenedFor })
}

// setup returns the parameters that open a session. Deskhand's own tools are made anew for each session.
func (a *agentProcess) setup() map[string]any {
	params := a.workplace()
	params["mcpServers"] = a.withTools()
	return params
}

func (a *agentProcess) workplace() map[string]any {
	params := map[string]any{"cwd": a.v.row.Cwd, "mcpServers": a.servers}
	if a.can.Directories && len(a.further) > 0 {
		params["additionalDirectories"] = a.further // the whole list every time, since the agent closes directories that are not listed
	}
	if a.systemPrompt != nil {
		params["systemPrompt"] = a.systemPrompt
	}
	return params
}

// restore opens the stored session by method. how is the value of v.restored for that method; orElse is called when the agent refuses the
// method, unless the refusal is a cancel or asks for a login.
func (a *agentProcess) restore(method, how string, orElse func()) {
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
			a.replay = nil
			a.v.refused(method, failure)
			orElse()
		}
	})
}

// refused keeps the agent's reason for opening no stored session by method.
func (v *conversation) refused(method string, failure *acp.Error) {
	v.agent.refusals = append(v.agent.refusals, method+": "+v.c.cfg.Roster.Secrets().Sentence(failure))
}

// tellRefusals adds a notice of why the agent has forgotten the conversation, if it gave a reason.
func (v *conversation) tellRefusals() {
	if v.restored == transcript.RestoredFresh && len(v.agent.refusals) > 0 {
		v.agent.tell([]transcript.Notice{{Severity: "warning", Title: v.agentName + " did not open the earlier conversation", Description: strings.Join(v.agent.refusals, "\n")}})
	}
}

// create makes a new ACP session. how is the value of v.restored: new or fresh.
func (a *agentProcess) create(how string) {
	a.v.request("session/new", a.setup(), func(result json.RawMessage, failure *acp.Error) {
		if failure != nil {
			a.failed(failure)
			return
		}
		id, err := acp.ParseNewSession(result)
		if err != nil {
			a.fail(transcript.ProblemProtocol, "detail", "session/new without sessionId")
			return
		}
		a.v.row.ACPSessionID = id
		a.ready(how)
	})
}

// ready completes the start of an agent that has opened its session. ready first sets the chosen options and then the model and the mode;
// ready is called again after each of these.
func (a *agentProcess) ready(how string) {
	if a.rechoose(func() { a.ready(how) }) {
		return
	}
	if !a.holdsChoice() || a.beginning.begin(func() { a.ready(how) }) {
		return
	}
	a.beginning.settle()
	if f := a.v.fold; len(f.Facts.Chosen) > 0 {
		f.Facts.Chosen, f.FactsChanged = nil, true
	}
	if f := a.v.fold; len(f.Facts.Unopened) > 0 {
		f.Facts.Unopened, f.FactsChanged = nil, true
	}
	a.limit.Stop()
	a.limit = nil
	a.v.noteLogin(nil)
	a.v.restored = how
	if agent, environ, id := a.v.row.Agent, a.environ, a.v.row.ACPSessionID; environ != nil { // the agent runs on this machine, and has just loaded the conversation
		a.work.Go(func() { a.v.c.keepChats(a.v.id, agent, environ, []string{id}) })
	}
	a.tellOfTools(how)
	a.v.do(lifecycle.AgentReady{})
	a.v.tellTitle()
}

// holdsChoice reports whether the agent has the mode and the model that were chosen; if not, the start ends.
func (a *agentProcess) holdsChoice() bool {
	was := a.lostMode()
	switch {
	case was == nil:
		was = a.beginning.lostModel()
	case a.beginning.wish == nil && a.beginning.held:
		a.drop(*was)
		a.fail(transcript.ProblemMode, was.Lost()...)
		return false
	}
	if was != nil {
		a.beginning.notChanged(*was)
	}
	return was == nil
}

// sendPrompt sends the prompt of the turn. A prompt with files is composed first.
func (v *conversation) sendPrompt(turn string) {
	if v.agent.beginning.strays(func() { v.sendPrompt(turn) }) {
		return
	}
	if len(v.turn.attachments) > 0 {
		v.composer.compose(v.agent.ctx, turn)
		return
	}
	params := map[string]any{"sessionId": v.row.ACPSessionID, "prompt": v.turn.prompt}
	v.request(methodPrompt, params, v.promptReply(turn))
}

// promptReply returns the handler of the agent's answer to the prompt of a turn.
func (v *conversation) promptReply(turn string) reply {
	return func(result json.RawMessage, failure *acp.Error) {
		if v.turn == nil || v.turn.ID != turn {
			return
		}
		var r struct {
			StopReason string          `json:"stopReason"`
			Usage      json.RawMessage `json:"usage"`
		}
		reason := lifecycle.StopError
		switch {
		case failure != nil && failure.Code == acp.CodeRequestCancelled:
			reason = lifecycle.StopCancelled
		case failure != nil:
			v.failure = v.c.turnError(failure)
			if failure.Code == acp.CodeAuthRequired {
				v.barred()
				v.noteLogin(failure)
			}
		case json.Unmarshal(result, &r) != nil || r.StopReason == "":
			v.failure = &transcript.TurnError{Code: acp.CodeInternalError, Message: "the agent ended the turn without a stop reason"}
		default:
			reason, v.turn.Usage = r.StopReason, r.Usage
			if reason != lifecycle.StopCancelled {
				v.noteLogin(nil)
			}
		}
		v.agent.tellOfUnlisted(reason)
		v.do(lifecycle.Stopped{Turn: turn, Reason: reason})
	}
}

// rechoose asks the agent for the next option whose value differs from the value before the agent was started anew: a mode in which the
// agent asks must not become one in which it does not (lostMode). rechoose returns true when the agent was asked; then is called with the
// agent's answer. rechoose returns false when no option differs, or the agent no longer offers the others.
func (a *agentProcess) rechoose(then func()) bool {
	v := a.v
	for len(a.chosen) > 0 {
		was := a.chosen[0]
		a.chosen = a.chosen[1:]
		i := slices.IndexFunc(v.fold.Facts.Options, was.Alike)
		if i < 0 || !was.IsSet() {
			continue
		}
		if v.fold.Told && v.fold.Facts.Options[i].Same(was) {
			continue // an agent that reports no options when it resumes a session may have forgotten any of them, so each is asked for
		}
		value := mustJSON(was.Value)
		if was.Type == "boolean" {
			value = mustJSON(was.Checked)
		}
		if v.sendConfig(v.fold.Facts.Options[i], value, func(failure *acp.Error) { a.set(was, failure, then) }) == nil {
			a.setting = &was
			return true
		}
		a.tell([]transcript.Notice{{Severity: "warning", Title: was.Name, Description: fmt.Sprintf("It is no longer %q: the agent does not offer that any more", was.Value)}})
	}
	return false
}

// set handles the agent's answer to the change of an option that rechoose asked for.
func (a *agentProcess) set(was transcript.ConfigOption, failure *acp.Error, then func()) {
	a.setting = nil
	if a.stopped(failure) {
		return
	}
	if failure != nil {
		a.v.notTaken(was, failure)
		a.v.fold.Unsure(was)
	}
	then()
}

// modesLast returns the options with the modes at the end, since the modes that an agent offers may depend on other options, such as the
// model.
func modesLast(list []transcript.ConfigOption) []transcript.ConfigOption {
	isMode := func(o transcript.ConfigOption) bool { return o.Category == transcript.ModeCategory }
	return append(slices.DeleteFunc(slices.Clone(list), isMode), slices.DeleteFunc(slices.Clone(list), func(o transcript.ConfigOption) bool { return !isMode(o) })...)
}

// lostMode returns the chosen mode if the agent is in another mode, whatever the agent has answered. No prompt may run in another mode
// without notice.
func (a *agentProcess) lostMode() *transcript.ConfigOption {
	f := a.v.fold.Facts
	for _, was := range f.Chosen {
		if was.Category == transcript.ModeCategory && was.IsSet() && !slices.ContainsFunc(f.Options, func(o transcript.ConfigOption) bool { return o.Alike(was) && o.Same(was) }) {
			return &was
		}
	}
	return nil
}

// failsOver reports whether the start fails while the agent is asked for a mode. Whatever option the agent is asked for, the next start
// does not ask for that option again, since it would fail the same way.
func (a *agentProcess) failsOver() bool {
	if a.setting == nil {
		return false
	}
	a.drop(*a.setting)
	return a.setting.Category == transcript.ModeCategory
}

// drop gives up the choice of an option: the next start keeps the agent's own value of that option, and the chosen values of the others.
// When the option is the mode, the next start chooses the mode as for a new conversation: a mode that decides by itself only if a person
// has chosen that mode.
func (a *agentProcess) drop(was transcript.ConfigOption) {
	f := a.v.fold
	if was.Category == transcript.ModeCategory && f.Facts.Start == nil {
		f.Facts.Start = &transcript.Start{}
	}
	f.Unsure(was)
	f.Facts.Chosen = slices.DeleteFunc(slices.Clone(f.Facts.Chosen), was.Alike)
	f.Facts.Options, f.Facts.Chosen, f.FactsChanged = f.Facts.Shown(), nil, true
}

// sendConfig asks the agent to change an option. then is called with the agent's error, or nil. The answer holds the whole new list of
// options, which the transcript takes up.
func (v *conversation) sendConfig(o transcript.ConfigOption, value json.RawMessage, then func(*acp.Error)) error {
	chosen, ok := o.With(value)
	if !ok {
		return bad("config.value", "id", o.ID)
	}
	params := map[string]any{"sessionId": v.row.ACPSessionID}
	method := "session/set_config_option"
	switch {
	case o.Type == "boolean":
		params["configId"], params["type"], params["value"] = o.ID, "boolean", chosen.Checked
	case v.fold.IsOlderModel(o):
		method, params["modelId"] = "session/set_model", chosen.Value
	case v.fold.Facts.Modes:
		method, params["modeId"] = "session/set_mode", chosen.Value
	default:
		params["configId"], params["value"] = o.ID, chosen.Value
	}
	v.request(method, params, func(result json.RawMessage, failure *acp.Error) {
		_, whole := acp.ParseConfigOptions(result)
		switch {
		case failure != nil:
		case method == "session/set_mode":
			v.fold.SetMode(chosen.Value)
			v.fold.FactsChanged = true
		case !whole: // the answer lacks the list, against the protocol, but reports success
			v.fold.SetOption(chosen)
		}
		then(failure)
	})
	return nil
}

// notTaken writes a notice about an option that the agent has not changed.
func (v *conversation) notTaken(o transcript.ConfigOption, failure *acp.Error) {
	if failure != nil {
		v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "error", Title: o.Name, Description: v.c.cfg.Roster.Secrets().Sentence(failure)}})
	}
}

// newAgentProcess returns an agentProcess that has not been spawned yet.
func newAgentProcess(v *conversation) *agentProcess {
	a := &agentProcess{
		v:         v,
		gone:      make(chan struct{}),
		launching: launching{further: slices.Clone(v.row.Directories), plan: &launch.Plan{}},
		exchange: exchange{
			pending:   map[acp.Key]reply{},
			methods:   map[acp.Key]string{},
			withdrawn: map[acp.Key]bool{},
			outbox:    make(chan [][]byte, 1),
		},
		services: services{
			serving:    map[acp.Key]context.CancelFunc{},
			programs:   map[string]*agentProgram{},
			stragglers: map[string]*leftRunning{},
			lastFile:   v.lastWrite,
		},
	}
	a.beginning.a = a
	a.ctx, a.stop = context.WithCancel(v.c.lasting()) // detach ends the context, also when the program ends
	return a
}
