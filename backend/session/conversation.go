package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/feed"
	"deskhand/backend/inspect"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/startmode"
	"deskhand/backend/subagents"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
	"deskhand/backend/usage"
)

// conversation owns one session. The goroutine of live runs the functions that other goroutines hand over through work, one after the
// other; only that goroutine reads and writes the fields below published. Unless a comment says otherwise, the methods of conversation and
// of its parts are called in that goroutine alone.
type conversation struct {
	c  *core
	id string

	loop
	published
	agentSide
	deferral

	row       row
	state     lifecycle.State
	fold      *transcript.Fold
	turn      *Turn             // the running turn; nil while no turn runs
	frames    int64             // number of the last frame
	inbox     inbox             // requests that wait for an answer
	idleness  idleness          // how long the session has been idle
	step      step              // changes of the function that runs now
	prompts   waitingPrompts    // prompts in the queue
	composer  composer          // makes the prompts from texts and files
	snapshots *undo.Snapshotter // makes the snapshots before and after each turn
	answering answering         // turns what a step stored into events of the bus
	stopping  cancellation      // cancels the running turn
	forking   forkRequests      // forks that callers wait for
	remote    remoteTurn        // the turn of an agent on another machine
	deletion  deletion          // state of the session's deletion
}

// loop is the goroutine of a conversation, and the channel that hands work to the goroutine.
type loop struct {
	work    chan func()
	ended   chan struct{} // closed when the goroutine has ended
	stalled atomic.Bool   // the last attempt to store a step has failed
	broken  bool          // the program ended before a step was stored: later changes build on that step, so that none of them may be stored
	onStall func()        // called when the current step cannot be stored at once; nil when no caller is to be told
}

// published is the conversation as of the last stored step. Any goroutine may read it.
type published struct {
	view    atomic.Pointer[Session]
	rest    atomic.Pointer[rest] // since when the session is idle; nil while the session needs its agent
	wire    inspect.Growth       // announces new frames of the journal
	deleted atomic.Bool
	late    atomic.Pointer[late]
}

// agentSide is the state of a conversation's agent, through all processes of the agent.
type agentSide struct {
	agent     *agentProcess         // the running process; nil while there is none
	gone      <-chan struct{}       // closed when the newest process has ended; nil before the first process
	refusal   *loginRefusal         // the agent's last refusal for a missing login
	lastExit  *transcript.Exit      // how the agent ended, for the events of its end
	restored  string                // how the newest process got its session: new, resume, load, fresh
	failure   *transcript.TurnError // the error that ended the prompt, for the turn
	agentName string                // the agent's display name
	modes     startmode.Modes       // the agent's modes, by whether the agent asks in them
	within    *subagents.Member     // the place in the process of another session's agent; nil where the session is no subagent's, or has not been heard of
	kept      *gracefulClose        // the graceful close of an agent that is kept while the deletion of the session can be undone
	links     sync.WaitGroup        // goroutines of all agent processes of this session
	lastWrite <-chan struct{}       // closed when the newest file write of an agent has ended, successful or not; nil before the first write
	filing    atomic.Int32          // number of file requests of agents whose work has not ended
}

// deferral delays the storing of entries whose text only grows, see [lateness].
type deferral struct {
	lateTimer *time.Timer // fires when the deferred entries must be stored; nil while none is deferred
	overdue   bool        // the deferred entries must be stored with the next step
}

// newConversation returns the conversation of a stored session, which live must run. lastFrame is the number of the last frame in its
// journal.
func newConversation(c *core, r row, lastFrame int64) *conversation {
	c.alike.share(&r.facts)
	r.showFacts()
	v := &conversation{
		c: c, id: r.ID, loop: loop{work: make(chan func()), ended: make(chan struct{})},
		row: r, state: lifecycle.State{Base: lifecycle.Closed}, fold: transcript.New(r.ID, r.facts), inbox: inbox{open: map[string]*requests.Pending{}}, frames: lastFrame,
		agentSide: agentSide{agentName: c.cfg.Agents.Name(r.Agent), modes: startmode.Of(c.cfg.Agents.Modes(r.Agent))}, answering: newAnswering(lastFrame),
	}
	v.forking.v, v.prompts.v, v.composer.v, v.stopping.v, v.remote.v, v.deletion.v, v.inbox.v, v.idleness.v = v, v, v, v, v, v, v, v
	v.snapshots = c.undo.Snapshotter(v.links.Go)
	v.prompts.load(r.queue)
	v.deletion.at, v.state.Deleted = r.deletedAt, !r.deletedAt.IsZero()
	v.deleted.Store(v.state.Deleted)
	v.late.Store(&late{})
	v.publishView()
	return v
}

// look returns the session as of the last stored step. Any goroutine may call look.
func (v *conversation) look() Session { return *v.view.Load() }

// live runs the conversation's goroutine, and returns when the goroutines of the conversation's agents have ended too.
func (v *conversation) live() {
	v.run()
	v.links.Wait() // not deferred: after a panic in run the wait would never end, since nobody reads the agents' messages any more
}

// run handles work until the session is erased or the client closes.
func (v *conversation) run() {
	defer close(v.ended)
	for {
		select {
		case f := <-v.work:
			f()
			if v.row.ArchivedAt != nil && v.state.Base == lifecycle.Ready { // a request or a program that kept the agent of an archived session running may have ended
				v.idleness.putAway()
			}
			v.commit()
			if v.deletion.over {
				return
			}
		case <-v.c.ctx.Done():
			v.quit()
			return
		}
	}
}

// call runs f in the conversation's goroutine, and returns when the step of f is stored. For a deleted session call returns ErrNotFound.
// Any other goroutine may call it.
func (v *conversation) call(ctx context.Context, f func() error) error {
	return v.reach(ctx, func() error {
		if v.state.Deleted {
			return notFound(v.id)
		}
		return f()
	})
}

// reach is call for functions that apply to deleted sessions as well.
func (v *conversation) reach(ctx context.Context, f func() error) error {
	if err := v.c.ReadOnly(); err != nil {
		return err
	}
	if v.stalled.Load() {
		return ErrStorage
	}
	result := make(chan error, 2)
	work := v.working(ctx.Value(patientKey{}) != nil, f, result) //nolint:contextcheck // a step is finished even when its caller has gone
	for {
		select {
		case v.work <- work:
			return <-result // f blocks on nothing, and commit reports when the disk delays the step
		case <-v.ended:
			if v.deleted.Load() {
				return notFound(v.id)
			}
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second): // contexts from the window are never cancelled, so a stalled conversation is looked for here
			if v.stalled.Load() {
				return ErrStorage
			}
		}
	}
}

// post runs f in the conversation's goroutine, and does not wait for its end. Events from outside (timers, agents) use post; any goroutine
// except the conversation's own may call it.
func (v *conversation) post(f func()) {
	select {
	case v.work <- f:
	case <-v.ended:
	}
}

// do applies a command: for each event of the command do changes the state first, then runs the effects of the event.
func (v *conversation) do(c lifecycle.Command) []lifecycle.Event {
	switch c.(type) {
	case lifecycle.Exited, lifecycle.Delete:
		v.remote.recallPrompt()
		v.stopping.restoreDraft() // also a message that waits for a login, since the login may never come (see retry)
	}
	events := v.state.Decide(c)
	for _, e := range events {
		v.state = v.state.Evolve(e)
		v.effect(e)
	}
	return events
}

// wish is do for a command of a person: a refused command becomes an error.
func (v *conversation) wish(c lifecycle.Command) error {
	if err := v.row.Subagent.refuses(c); err != nil {
		return err
	}
	for _, e := range v.do(c) {
		if r, ok := e.(lifecycle.CommandRefused); ok {
			return &RefusedError{Code: r.Code}
		}
	}
	return nil
}

// effect runs the effects of one event of the state machine.
func (v *conversation) effect(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.StartBegun:
		v.step.send = nil // the unsent messages were for the process before this one
		v.begin()
	case lifecycle.ReplayBegun:
		v.note(transcript.Note{Note: v.replay()})
	case lifecycle.BecameReady:
		v.readied()
	case lifecycle.TurnBegun, lifecycle.PromptSent, lifecycle.TurnEnded:
		v.turnEffect(e)
	case lifecycle.RequestOpened:
		v.note(transcript.Note{Note: transcript.NoteRequest, Request: e.Request})
		v.row.Unread = true
		v.requestsChanged()
	case lifecycle.RequestEnded:
		if v.inbox.open[e.Request] == nil {
			break // the request has ended with a turn that the agent never got, see [lifecycle.CancelSent]
		}
		v.inbox.end(e.Request, e.Status)
		v.requestsChanged()
	case lifecycle.CancelSent, lifecycle.InterruptSent, lifecycle.Killed:
		v.stopping.effect(e)
	case lifecycle.SessionClosed:
		v.closed(e.Code)
	case lifecycle.FellAsleep:
		v.idleness.fallAsleep()
	case lifecycle.QueueEvent:
		v.prompts.effect(e)
	case lifecycle.DeletionEvent:
		v.deletion.effect(e)
	case lifecycle.CommandRefused:
	}
}

// readied records that the agent has opened its session.
func (v *conversation) readied() {
	v.stage("")
	v.row.Exit = nil
	v.idleness.keeps(slices.Contains([]string{"resume", "load", transcript.RestoredImport, transcript.RestoredUnseen}, v.restored))
	v.step.imported = v.restored == transcript.RestoredImport
	v.note(transcript.Note{Note: transcript.NoteReady, Reason: v.restored, Session: v.row.ACPSessionID})
	v.tellRefusals()
	v.saveRow()
	v.forking.makeAll()
	if v.within == nil {
		v.agent.family.Replayed()
	}
}

// turnEffect runs the effects of an event of the running turn.
func (v *conversation) turnEffect(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.TurnBegun:
		v.refusal = nil
		if v.saveTurn(); v.row.Subagent != nil { // its parent's turns have what it changes
			v.note(transcript.Note{Note: transcript.NoteTurnBegan, Turn: e.Turn, Reason: transcript.ReasonSubagent})
			v.touched()
			break
		}
		v.note(transcript.Note{Note: transcript.NoteTurnBegan, Turn: e.Turn, Prompt: v.turn.prompt, Attachments: v.turn.attachments})
		v.touched()
		v.snapshots.TurnBegins(v.c.ctx, undoSession(&v.row.Session), e.Turn, v.turn.StartedAt.Time)
	case lifecycle.PromptSent:
		if v.row.Subagent == nil {
			v.composer.letGo(e.Turn)
		}
	case lifecycle.TurnEnded:
		v.stopping.disarm()
		v.composer.stop()
		now := Time{Time: time.Now()}
		v.turn.State, v.turn.StopReason, v.turn.EndedAt, v.turn.Error = "done", e.Reason, &now, v.failure
		v.idleness.keeps(e.Reason != lifecycle.StopError)
		if n := transcript.StopNotice(e.Reason, v.agentName, v.fold.Answered, len(v.turn.attachments) > 0); n != nil {
			v.note(transcript.Note{Note: transcript.NoteNotice, Notice: n})
		}
		v.note(transcript.Note{Note: transcript.NoteTurnEnded, Turn: e.Turn, Reason: e.Reason, Error: v.failure})
		v.saveTurn()
		v.step.writes = append(v.step.writes, usage.TurnEnded(v.id, e.Turn))
		if v.row.Subagent == nil {
			v.step.after = append(v.step.after, v.snapshots.TurnEnds(v.c.ctx, undoSession(&v.row.Session), e.Turn))
			v.lookForStragglers(v.turn, e.Reason)
			v.row.Unread = true
		}
		v.turn, v.failure = nil, nil
		v.step.sync = true
		v.touched()
	}
}

// requestsChanged marks the session and its running turn as changed, after a request was opened or has ended.
func (v *conversation) requestsChanged() {
	if v.turn != nil {
		v.saveTurn()
	}
	v.touched()
}

// stopLimit is how long a cancel takes at most until its turn has ended, whatever the agent does. lastGrace is how long a killed agent gets
// at least from the kill on, also when a slow machine or disk has used up stopLimit before: the process is dead within a second
// (proxy.Instance.Hasten), then the agent's last messages are read.
const stopLimit, lastGrace = 9800 * time.Millisecond, 1700 * time.Millisecond

// frame adds a frame to the step and folds the frame into the transcript, after the secrets in it were replaced.
func (v *conversation) frame(dir journal.Direction, data []byte) {
	v.frames++
	f := journal.Frame{N: v.frames, Generation: v.row.Generation, At: time.UnixMilli(time.Now().UnixMilli()), Dir: dir, Data: v.c.secret.Message(data)}
	v.step.frames = append(v.step.frames, f)
	v.fold.Apply(f)
}

func (v *conversation) note(n transcript.Note) {
	if len(n.Attachments) > 0 {
		v.step.writes = append(v.step.writes, func(ctx context.Context, tx *sql.Tx) error { return attachments.Use(ctx, tx, v.id, n.Attachments) })
	}
	v.frame(journal.Note, mustJSON(n))
}

func (v *conversation) saveRow() { v.step.row = &v.row }
func (v *conversation) saveTurn() {
	t := *v.turn
	if t.State != "done" {
		t.State = v.state.TurnState()
	}
	if v.step.turns == nil {
		v.step.turns = map[string]*Turn{}
	}
	v.step.turns[t.ID] = &t
}

func (v *conversation) saveRequest(r *requests.Request) {
	if v.step.requests == nil {
		v.step.requests = map[string]*requests.Request{}
	}
	copied := *r
	v.step.requests[r.ID] = &copied
}

// touched records a change that moves the session to the top of the list.
func (v *conversation) touched() {
	v.row.UpdatedAt = Time{Time: time.Now()}
	v.saveRow()
}

// working wraps a function of a caller: the wrapped function also commits the step, and sends result exactly one answer that the caller
// reads. An impatient caller is told ErrStorage at once when the step cannot be stored.
func (v *conversation) working(patient bool, f func() error, result chan<- error) func() {
	return func() {
		err := f()
		if !patient {
			v.onStall = func() { result <- ErrStorage }
		}
		if !v.commit() && err == nil {
			err = ErrStorage
		}
		v.onStall = nil
		result <- err
	}
}

type patientKey struct{}

// Patiently returns a context for callers that wait until a step is stored, however long the disk refuses. Other callers get [ErrStorage]
// at once, although the step is kept and stored later: a caller that repeats its call then has the effect twice.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}

// commit stores the step, publishes its events, and sends its messages to the agent, in this order. commit returns false when the program
// ends before the step is stored.
func (v *conversation) commit() (written bool) {
	if v.broken {
		v.step = step{}
		return false
	}
	entries, factsChanged := v.fold.Take()
	v.idleness.noteSaid(entries)
	if factsChanged {
		v.takeFacts()
	}
	v.prompts.addTo()
	stored, late := v.spare(entries)
	happened := !v.step.empty() || len(entries) > 0
	if happened || len(stored) > 0 {
		if !v.write(stored) {
			v.step, v.broken = step{}, true
			return false
		}
		v.spared(late)
		v.publish(entries)
		if len(stored) > 0 {
			v.c.cfg.Search.Wake()
		}
		for _, f := range v.step.after {
			f()
		}
		v.letGo()
	}
	v.idleness.noteRest(happened)
	if v.agent != nil {
		v.agent.send(v.step.send)
	}
	if v.step.closing != nil {
		close(v.step.closing.written)
	}
	v.step = step{}
	return true
}

// takeFacts takes what the agent told of itself into the row.
func (v *conversation) takeFacts() {
	was := v.row.facts
	v.row.facts = v.fold.Facts
	v.row.showFacts()
	v.nameAfterAgent(was.Title)
	v.saveRow()
	if v.turn == nil && v.row.facts.Usage.Spent() != was.Usage.Spent() {
		v.step.writes = append(v.step.writes, usage.CostTold(v.id))
	}
	if a := v.row.facts.Account; a != nil && v.host().Agents != nil {
		v.c.cfg.Roster.NoteAccount(v.row.Agent, *a)
	}
}

// letGo drops state that only a running agent could still change, once the agent has ended. A conversation stays loaded after use, and a
// day of work leaves hundreds of them loaded: without letGo each would keep the whole fold of its last turn in memory. The next process
// needs none of that ([transcript.NoteStarting]), as after a start of Deskhand.
func (v *conversation) letGo() {
	if v.state.Base == lifecycle.Closed && v.agent == nil && v.turn == nil && len(v.inbox.open) == 0 {
		v.c.alike.share(&v.row.facts)
		v.row.showFacts()
		v.publishView()
		v.fold = transcript.New(v.id, v.row.facts)
	}
}

// write stores the step, and tries again every second while that fails, since nothing may be shown that is not stored. write returns false
// when the program ends first.
func (v *conversation) write(entries []transcript.Change) bool {
	ctx := v.c.lasting()
	err := v.step.save(ctx, v.c.cfg.Store, v.id, entries)
	for ; err != nil; err = v.step.save(ctx, v.c.cfg.Store, v.id, entries) {
		v.c.cfg.Logger.Error("a step cannot be written", "session", v.id, "error", err)
		if !v.stalled.Swap(true) && v.onStall != nil {
			v.onStall()
		}
		// At each attempt: clients that connect meanwhile learn of the failure from this event alone, since no snapshot has it.
		v.c.feed.Publish(feed.Event{Session: v.id, Type: eventNotice, Data: mustJSON(map[string]string{"code": "storage.failed", "detail": err.Error()})})
		select {
		case <-time.After(time.Second):
		case <-v.c.ctx.Done():
			return false // a step that could not be stored is lost, and is not shown either
		}
	}
	if v.stalled.Swap(false) {
		v.c.feed.Publish(feed.Event{Session: v.id, Type: eventNotice, Data: mustJSON(map[string]string{"code": "storage.works"})})
	}
	if len(v.step.frames) > 0 {
		v.wire.Grew()
	}
	return true
}

// publish sends the events of the stored step. The session comes first, so that a reader knows the session before its entries; the turn
// comes last, so that a reader who waits for the turn's end has seen all entries.
func (v *conversation) publish(entries []transcript.Change) {
	var events []feed.Event
	add := func(kind string, data any) {
		events = append(events, feed.Event{Session: v.id, Type: kind, Data: mustJSON(data)})
	}
	was := v.row.Doing
	if len(v.step.turns) > 0 || slices.ContainsFunc(entries, func(c transcript.Change) bool { return !c.Grew() && c.Entry.Kind == "tool" }) {
		v.row.Doing = transcript.Doing(v.fold)
	}
	if v.step.row != nil || len(v.step.turns) > 0 || len(v.step.requests) > 0 || v.row.Doing != was {
		v.publishView()
		add(eventSession, v.c.show(v.look()))
	}
	for _, id := range slices.Sorted(maps.Keys(v.step.requests)) {
		add(eventRequest, v.step.requests[id])
	}
	events = append(events, v.step.questions...)
	for _, q := range v.step.queue {
		add(eventQueue, q)
	}
	for _, id := range v.step.unqueued {
		add(eventUnqueued, QueueRemoved{id})
	}
	for _, c := range entries {
		if c.Grew() {
			add(feed.Append, c.Append)
			continue
		}
		add(eventEntry, c.Entry)
	}
	for _, id := range slices.Sorted(maps.Keys(v.step.turns)) {
		add(eventTurn, v.step.turns[id])
	}
	events = append(events, v.answering.events(v.id, v.step.turns, entries, v.step.imported)...)
	v.c.feed.Publish(v.deletion.events(events)...)
}

// publishView updates the session that look returns.
func (v *conversation) publishView() {
	s := v.row.Session
	s.Phase = v.state.Phase()
	s.Waiting = len(v.state.Open)
	s.Hibernated = v.state.Asleep
	s.AgentName = v.agentName
	s.Modes = judged(v.modes, s.ConfigOptions)
	s.Attachments = v.composer.chips()
	if v.turn != nil {
		t := *v.turn
		t.State = v.state.TurnState()
		s.Turn = &t
	}
	v.view.Store(&s)
}

// prompt begins a turn with a person's message. prompt is refused while a turn runs.
func (v *conversation) prompt(m said) (Turn, error) {
	if v.state.Turn != "" {
		return Turn{}, &RefusedError{Code: lifecycle.RefusedRunning}
	}
	v.prepare(uuid.Must(uuid.NewV7()).String(), m)
	turn := *v.turn
	v.composer.spoken(m)
	if err := v.wish(lifecycle.Prompt{Turn: turn.ID}); err != nil {
		v.turn = nil
		return Turn{}, err
	}
	return turn, nil
}

// prepare makes a message the turn that is about to begin.
func (v *conversation) prepare(id string, m said) {
	v.turn = v.newTurn(id, mustJSON(map[string]string{"type": "text", "text": m.text}))
	v.turn.attachments = v.composer.planned(m.files)
	if v.row.Title == "" {
		v.row.Title, v.row.titleBy = titleOf(v.c.secret.Text(m.title())), titleByPrompt
	}
	v.row.Exit = nil
	v.row.ArchivedAt = nil // a message takes the session out of the archive
}

func (v *conversation) newTurn(id string, prompt ...json.RawMessage) *Turn {
	return &Turn{Turn: entries.Turn{ID: id, Session: v.id, State: entries.TurnRunning, StartedAt: Time{Time: time.Now()}}, prompt: prompt}
}

const titleLength = 80

// titleOf returns the first line of a message, cut at a word if the line is long.
func titleOf(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if utf8.RuneCountInString(line) <= titleLength {
		return line
	}
	cut := string([]rune(line)[:titleLength])
	if i := strings.LastIndexByte(cut, ' '); i > titleLength/2 {
		cut = cut[:i]
	}
	return cut + "…"
}

// nameAfterAgent gives the session the agent's title, unless a person has named the session. When the agent withdraws its title, the
// session is named after its first prompt again. was is the agent's title before this step.
func (v *conversation) nameAfterAgent(was string) {
	title := strings.TrimSpace(v.fold.Facts.Title)
	switch {
	case v.row.titleBy == titleByPerson:
	case title != "":
		v.row.Title, v.row.titleBy = titleOf(title), titleByAgent
	case was != "" && v.row.titleBy == titleByAgent:
		first, err := v.c.entries.FirstPrompt(v.c.lasting(), v.id)
		if err != nil {
			v.c.cfg.Logger.Error("the first prompt cannot be read", "session", v.id, "error", err)
			return
		}
		v.row.Title, v.row.titleBy = "", "" // without a stored prompt, the next prompt names the session
		if first != nil {
			v.row.Title, v.row.titleBy = titleOf(said{text: first.Text, files: first.Attachments}.title()), titleByPrompt
		}
	}
}

// tellTitle has the agent keep the title that a person has given the session, so that the agent's own program shows that title, too. An agent
// that is not ready yet is told once it is. The agent's answer changes nothing here.
func (v *conversation) tellTitle() {
	title, phase := v.row.Title, v.state.Base
	if phase != lifecycle.Ready && phase != lifecycle.Working || v.row.Subagent != nil || !v.agent.can.Title || v.row.titleBy != titleByPerson || title == "" || title == v.fold.Facts.Title {
		return
	}
	v.request("session/set_title", map[string]any{"sessionId": v.row.ACPSessionID, "title": title}, func(json.RawMessage, *acp.Error) {})
}

// patch applies a person's changes to the session; chips are the records of p.Attachments.
func (v *conversation) patch(p Patch, chips []transcript.Attachment) {
	if p.Title != nil {
		v.row.Title, v.row.titleBy = strings.TrimSpace(v.c.secret.Text(*p.Title)), titleByPerson
		v.tellTitle()
	}
	if p.Labels != nil {
		v.row.Labels = *p.Labels
	}
	if p.Pinned != nil {
		v.row.Pinned = *p.Pinned
	}
	if p.Unread != nil {
		v.row.Unread = *p.Unread
	}
	if p.Draft != nil {
		v.row.Draft = *p.Draft
	}
	if p.Attachments != nil {
		v.composer.setChips(chips)
	}
	if p.Directories != nil {
		v.row.Directories = *p.Directories
	}
	if p.Archived != nil {
		v.row.ArchivedAt = nil
		if *p.Archived {
			v.row.ArchivedAt = &Time{Time: time.Now()}
			v.do(lifecycle.HoldAll{Why: lifecycle.HeldArchived}) // an archived session sends nothing by itself
			v.idleness.putAway()
		}
	}
	v.row.showFacts()
	v.saveRow()
}

// restart ends the agent without an exit that people see, and starts the agent on the same session.
func (v *conversation) restart() error {
	if err := v.row.Subagent.refuses(nil); err != nil {
		return err
	}
	if v.state.Base != lifecycle.Closed {
		v.do(lifecycle.Exited{Code: transcript.ProblemRestart})
	}
	return v.wish(lifecycle.Start{})
}

// setConfig changes an option of the agent. A hibernated agent is started, and is told of the option before any message (rechoose), so that
// an asking mode holds for the next message. asked reports whether the running agent has been asked; then is called later with the agent's
// error, or nil.
func (v *conversation) setConfig(option string, value json.RawMessage, then func(*acp.Error)) (asked bool, err error) {
	if err := v.row.Subagent.refuses(nil); err != nil {
		return false, err
	}
	unbegun := v.state.Base == lifecycle.Closed && !v.state.Asleep && v.fold.Facts.Start != nil // the agent could not begin in the mode or with the model that was chosen
	if v.state.Base == lifecycle.Closed && !v.state.Asleep && !unbegun || v.state.Base == lifecycle.Starting || v.state.Base == lifecycle.Replaying {
		return false, &RefusedError{Code: "session.not_ready"}
	}
	i := slices.IndexFunc(v.row.ConfigOptions, func(o transcript.ConfigOption) bool { return o.ID == option })
	if i < 0 {
		return false, bad("config.unknown", "id", option)
	}
	if v.state.Base != lifecycle.Closed {
		o := v.row.ConfigOptions[i]
		return true, v.sendConfig(o, value, func(failure *acp.Error) {
			v.notTaken(o, failure)
			then(failure)
		})
	}
	o, ok := v.row.ConfigOptions[i].With(value)
	if !ok {
		return false, bad("config.value", "id", option)
	}
	if unbegun {
		return false, v.chooseStart(o)
	}
	v.fold.Facts.Options, v.fold.FactsChanged = slices.Clone(v.row.ConfigOptions), true
	v.fold.Facts.Options[i] = o
	return false, v.wish(lifecycle.Start{})
}

// recover ends what ran when the program ended without closing the session. The transcript is folded anew from the journal, since the last
// entries may not have been stored.
func (v *conversation) recover(ctx context.Context) error {
	journal := v.frames
	begun, damaged := v.refold(ctx, true)
	if damaged != nil {
		// One damaged conversation must not keep the program from starting. The entries that were shown are stored beside the journal.
		v.c.cfg.Logger.Error("a journal cannot be read whole", "session", v.id, "error", damaged)
		v.fold = transcript.New(v.id, v.row.facts)
		_, again := v.refold(ctx, false)
		damaged = errors.Join(damaged, again)
		v.fold.Facts, v.fold.FactsChanged = v.row.facts, false
	}
	v.fold.KeepOptions(v.row.facts)
	turns, err := v.c.entries.RunningTurns(ctx, v.id)
	if err != nil {
		return err
	}
	open, err := v.c.requests.WaitingIn(ctx, v.id)
	if err != nil {
		return err
	}
	v.state = lifecycle.State{Base: lifecycle.Ready, Queue: v.state.Queue}
	for _, t := range turns {
		v.turn = &Turn{Turn: t}
		v.state.Base, v.state.Turn, v.state.Sent = lifecycle.Working, v.turn.ID, true
	}
	if damaged == nil { // a damaged journal does not tell whether the prompt was sent
		v.stopping.dropUnsentPrompt(begun)
	}
	for i := range open {
		v.inbox.open[open[i].ID] = &requests.Pending{Request: open[i]}
		v.state.Open = append(v.state.Open, open[i].ID)
	}
	taken := v.remote.takeUpAgain(ctx)
	if !taken {
		v.do(lifecycle.Exited{Code: transcript.ProblemInterrupted})
	}
	if damaged != nil {
		return v.keepStored(ctx, journal, !taken)
	}
	return nil
}

// refold folds the journal into the transcript, and returns how the newest turn began. With tail, only changes of the newest turn remain
// pending: all entries before were stored, at the latest by the step that began that turn (spare). Without that limit all entries of a long
// conversation would be stored, published and indexed again before anything is shown.
func (v *conversation) refold(ctx context.Context, tail bool) (begun begunTurn, damaged error) {
	lost, err := v.c.journal.Readable(ctx, v.id, func(f journal.Frame) {
		if begun.take(f) && tail {
			_, v.fold.FactsChanged = v.fold.Take()
		}
		v.fold.Apply(f)
	})
	return begun, errors.Join(lost, err)
}

// keepStored replaces entries that were folded from a damaged journal by the stored entries, wherever the folded text is shorter than the
// stored text or differs from it. With ended, running parts of the stored entries are marked as cut off. journal is the number of the last
// readable frame: entries of later frames are new.
func (v *conversation) keepStored(ctx context.Context, journal int64, ended bool) error {
	changed := v.fold.Pending()
	folded := make(map[string]*transcript.Entry, len(changed))
	for _, e := range changed {
		folded[e.ID] = e
	}
	unmade, same, err := v.madeAnew(ctx, journal, folded)
	if err != nil {
		return err
	}
	err = v.c.entries.Readable(ctx, v.id, func(stored transcript.Entry) { // the journal still has an entry that cannot be read
		f := folded[stored.ID]
		if f != nil && f.Seq > unmade[f.Kind] && transcript.IsPrefixOf(mustJSON(&stored), f) {
			return
		}
		cutOff := ended && stored.CutOff(Time{Time: time.Now()})
		switch {
		case f != nil:
			*f = stored
			same[f] = !cutOff
		case cutOff: // the frames that began the entry are lost
			v.fold.Touch(&stored)
		}
	})
	if err != nil {
		return err
	}
	v.fold.Forget(same)
	return nil
}

// madeAnew finds entries that the fold of a damaged journal made wrongly because the frame that began an entry is lost. Text that belongs
// to a lost entry either becomes an entry of its own, at a frame whose entries are all stored already: again holds these duplicates. Or the
// text is appended to the entry before: unmade holds, for each kind, the seq of the newest stored entry that was not folded; folded entries
// with a seq up to that one may hold text of other entries.
func (v *conversation) madeAnew(ctx context.Context, journal int64, folded map[string]*transcript.Entry) (unmade map[string]int64, again map[*transcript.Entry]bool, err error) {
	unmade, again = map[string]int64{}, map[*transcript.Entry]bool{}
	stored := map[string]bool{}
	err = v.c.entries.Kinds(ctx, v.id, func(id, kind string, seq int64) {
		stored[id] = true
		if folded[id] == nil {
			unmade[kind] = seq
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for id, e := range folded {
		if !stored[id] && e.Seq < (journal+1)*transcript.PerFrame {
			again[e] = true
		}
	}
	return unmade, again, nil
}

// quit ends the conversation when the program ends: a running turn ends as interrupted, and the agent ends. When the last step could not be
// stored, nothing is recorded; the next start finds the turn still running and ends it then.
func (v *conversation) quit() {
	v.stopping.disarm()
	if v.state.Base != lifecycle.Closed && !v.remote.goOn() {
		code := transcript.ProblemQuit
		if v.turn != nil {
			code = transcript.ProblemInterrupted
		}
		v.do(lifecycle.Exited{Code: code})
		v.commit()
	}
	v.release(false)
	v.links.Wait()
}

// closed records that the agent's process has ended, for whatever reason, and detaches the conversation from it.
func (v *conversation) closed(code string) {
	v.stopping.disarm()
	exit := v.lastExit
	v.stage("")
	v.lastExit, v.row.Exit, v.inbox.opened = nil, nil, nil
	switch code {
	case transcript.ProblemQuit, transcript.ProblemRestart, transcript.ProblemDeleted:
		exit = nil
	case transcript.ProblemInterrupted:
		exit = &transcript.Exit{Problem: code, At: Time{Time: time.Now()}}
	default:
		if exit == nil {
			exit = &transcript.Exit{Problem: code, At: Time{Time: time.Now()}}
		}
		v.row.Exit = exit
	}
	v.detach(code == transcript.ProblemQuit || code == transcript.ProblemRestart || code == transcript.ProblemInterrupted || code == transcript.ProblemDeleted, code == transcript.ProblemDeleted)
	v.note(transcript.Note{Note: transcript.NoteClosed, Exit: exit})
	v.forking.endAll(code)
	v.row.Unread = v.row.Unread || v.row.Exit != nil
	v.touched()
}
