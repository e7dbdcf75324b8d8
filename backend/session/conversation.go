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
	"deskhand/backend/inspect"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
)

// conversation is the owner of one session. Its goroutine runs the pieces of work that are handed to it; the fields below view
// belong to that goroutine alone.
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
	turn      *Turn             // the running turn
	frames    int64             // the number of the last frame
	inbox     inbox             // the requests that wait
	idleness  idleness          // how long nothing has happened
	step      step              // what the current piece of work changes
	prompts   waitingPrompts    // what the items of the queue say
	composer  composer          // of the prompts
	snapshots *undo.Snapshotter // around the turns
	answering answering         // what the bus tells of the turn at its end
	stopping  cancellation      // of the turn
	forking   forkRequests      // those that wait
	remote    remoteTurn        // the turn, when the agent runs elsewhere
	deletion  deletion          // of the session
}

// loop is the goroutine of a conversation, and the work for it.
type loop struct {
	work    chan func()
	ended   chan struct{} // closed when the goroutine is gone
	stalled atomic.Bool   // the data directory cannot be written
	broken  bool          // a step was never written: the memory goes on from that step, and the journal must not
	onStall func()        // tells who waits for this step that it cannot be written yet
}

// published is a conversation as of the last step that was written. Any goroutine may read it.
type published struct {
	view    atomic.Pointer[Session]
	rest    atomic.Pointer[rest] // while the conversation could do without its agent
	wire    inspect.Growth       // of the journal
	deleted atomic.Bool
	late    atomic.Pointer[late]
}

// agentSide is what a conversation knows of its agent, and of the agent's processes one after the other.
type agentSide struct {
	agent     *agentProcess         // nil while there is no process
	gone      <-chan struct{}       // closed when the newest process has ended; nil before the first
	refusal   *loginRefusal         // what the agent refused last for want of a login
	lastExit  *transcript.Exit      // how the agent ended, for the events that tell it
	restored  string                // how the agent got its session: new, resume, load, fresh
	failure   *transcript.TurnError // the error that the prompt ended with, for the turn
	agentName string                // what people call the agent
	modes     startmode.Modes       // of the agent
	kept      *gracefulClose        // of an agent that outlives the deletion of the session for a moment
	links     sync.WaitGroup        // the goroutines of every agent process of this session
	lastWrite <-chan struct{}       // closed when the newest file that an agent had us write is written, or is not; nil before the first
	filing    atomic.Int32          // work of agents on files that has not ended
}

// deferral holds back the storing of entries that only grow, see [lateness].
type deferral struct {
	lateTimer *time.Timer // until the entries have to be stored; nil while none is held back
	overdue   bool        // they have to be stored now
}

func newConversation(c *core, r row, lastFrame int64) *conversation {
	c.alike.share(&r.facts)
	r.showFacts()
	v := &conversation{
		c: c, id: r.ID, loop: loop{work: make(chan func()), ended: make(chan struct{})},
		row: r, state: lifecycle.State{Base: lifecycle.Closed}, fold: transcript.New(r.ID, r.facts), inbox: inbox{open: map[string]*openRequest{}}, frames: lastFrame,
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

// look is the session as of the last step that was written.
func (v *conversation) look() Session { return *v.view.Load() }

// live runs the conversation, and returns when the goroutines of the conversation's agents have ended too.
func (v *conversation) live() {
	v.run()
	v.links.Wait() // not deferred, or a panic of run would wait for agents that nobody hears any more
}

// run is the goroutine.
func (v *conversation) run() {
	defer close(v.ended)
	for {
		select {
		case f := <-v.work:
			f()
			if v.row.ArchivedAt != nil && v.state.Base == lifecycle.Ready { // since it was archived, what went on then may have ended
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

// call runs f in the conversation and waits until its step is written. A deleted session is not found.
func (v *conversation) call(ctx context.Context, f func() error) error {
	return v.reach(ctx, func() error {
		if v.state.Deleted {
			return notFound(v.id)
		}
		return f()
	})
}

// reach is call for what is done to a deleted session too.
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
			return <-result // f waits for nobody, and commit tells when the disk makes it wait
		case <-v.ended:
			if v.deleted.Load() {
				return notFound(v.id)
			}
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second): // in the window nothing ends ctx
			if v.stalled.Load() {
				return ErrStorage
			}
		}
	}
}

// post runs f in the conversation, later. It is for what happens outside and has nobody who waits.
func (v *conversation) post(f func()) {
	select {
	case v.work <- f:
	case <-v.ended:
	}
}

// do applies a command: state first, then what each event brings with it.
func (v *conversation) do(c lifecycle.Command) []lifecycle.Event {
	switch c.(type) {
	case lifecycle.Exited, lifecycle.Delete:
		v.remote.recallPrompt()
		v.stopping.restoreDraft() // also what a login is wanted for: nobody knows whether it comes while we wait for it (retry)
	}
	events := v.state.Decide(c)
	for _, e := range events {
		v.state = v.state.Evolve(e)
		v.effect(e)
	}
	return events
}

// wish is do for a person, who is told of a refusal.
func (v *conversation) wish(c lifecycle.Command) error {
	for _, e := range v.do(c) {
		if r, ok := e.(lifecycle.CommandRefused); ok {
			return &RefusedError{Code: r.Code}
		}
	}
	return nil
}

func (v *conversation) effect(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.StartBegun:
		v.step.send = nil // it was for the agent before this one
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
			break // it has ended with a turn that the agent knew nothing of, see [lifecycle.CancelSent]
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

// readied is what belongs to an agent that has a session for us.
func (v *conversation) readied() {
	v.stage("")
	v.row.Exit = nil
	v.idleness.keeps(slices.Contains([]string{"resume", "load", transcript.RestoredImport, transcript.RestoredUnseen}, v.restored))
	v.step.imported = v.restored == transcript.RestoredImport
	v.note(transcript.Note{Note: transcript.NoteReady, Reason: v.restored, Session: v.row.ACPSessionID})
	v.saveRow()
	v.forking.makeAll()
}

func (v *conversation) turnEffect(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.TurnBegun:
		v.refusal = nil
		v.note(transcript.Note{Note: transcript.NoteTurnBegan, Turn: e.Turn, Prompt: v.turn.prompt, Attachments: v.turn.attachments})
		v.saveTurn()
		v.touched()
		v.snapshots.TurnBegins(v.c.ctx, undoSession(&v.row.Session), e.Turn, v.turn.StartedAt.Time)
	case lifecycle.PromptSent:
		v.composer.letGo(e.Turn)
	case lifecycle.TurnEnded:
		v.stopping.disarm()
		v.composer.stop()
		now := Time{Time: time.Now()}
		v.turn.State, v.turn.StopReason, v.turn.EndedAt, v.turn.Error = "done", e.Reason, &now, v.failure
		v.idleness.keeps(e.Reason != lifecycle.StopError)
		if n := stopNotice(e.Reason, v.agentName, v.fold.Answered, len(v.turn.attachments) > 0); n != nil {
			v.note(transcript.Note{Note: transcript.NoteNotice, Notice: n})
		}
		v.note(transcript.Note{Note: transcript.NoteTurnEnded, Turn: e.Turn, Reason: e.Reason, Error: v.failure})
		v.saveTurn()
		v.step.after = append(v.step.after, v.snapshots.TurnEnds(v.c.ctx, undoSession(&v.row.Session), e.Turn))
		v.lookForStragglers(v.turn, e.Reason)
		v.turn, v.failure = nil, nil
		v.row.Unread = true
		v.step.sync = true
		v.touched()
	}
}

// requestsChanged shows that the session, and its turn, wait for somebody or no longer do.
func (v *conversation) requestsChanged() {
	if v.turn != nil {
		v.saveTurn()
	}
	v.touched()
}

// A cancel takes stopLimit at most until its turn has ended, whatever the agent does. One that is killed has lastGrace at least from then on,
// also where the machine or the disk has held us up before: within a second it is dead (proxy.Instance.Hasten), and then what it has said is read.
const stopLimit, lastGrace = 9800 * time.Millisecond, 1700 * time.Millisecond

// frame adds a frame to the journal and folds it into the transcript, secrets taken out before either.
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

func (v *conversation) saveRequest(r *Request) {
	if v.step.requests == nil {
		v.step.requests = map[string]*Request{}
	}
	copied := *r
	v.step.requests[r.ID] = &copied
}

// touched marks that something happened in the session which brings it to the top of a list.
func (v *conversation) touched() {
	v.row.UpdatedAt = Time{Time: time.Now()}
	v.saveRow()
}

// working is what the conversation does for a caller, which hears of it once.
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

// Patiently is for callers that wait for what becomes of a step, however long the disk refuses it. Others are told [ErrStorage] at once, though
// it is held and done later: who asked for it may ask again then, and has it twice.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}

// commit writes the step, shows it, and lets the agent have what is for it, in this order. It is false when the program ends before it is written.
func (v *conversation) commit() (written bool) {
	if v.broken {
		v.step = step{}
		return false
	}
	entries, factsChanged := v.fold.Take()
	v.idleness.noteSaid(entries)
	if factsChanged {
		was := v.row.facts.Title
		v.row.facts = v.fold.Facts
		v.row.showFacts()
		v.nameAfterAgent(was)
		v.saveRow()
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

// letGo drops what only a running agent could still change. A conversation stays loaded after it was worked in, and there are
// hundreds of them in a day: each kept its last turn whole. The next process begins with nothing of it ([transcript.NoteStarting]), as after a start
// of Deskhand.
func (v *conversation) letGo() {
	if v.state.Base == lifecycle.Closed && v.agent == nil && v.turn == nil && len(v.inbox.open) == 0 {
		v.c.alike.share(&v.row.facts)
		v.row.showFacts()
		v.publishView()
		v.fold = transcript.New(v.id, v.row.facts)
	}
}

// write stores the step, and tries again every second while the disk refuses: nothing is shown that is not stored. It is false when
// the program ends first.
func (v *conversation) write(entries []transcript.Change) bool {
	ctx := v.c.lasting()
	err := v.step.save(ctx, v.c.cfg.Store, v.id, entries)
	for ; err != nil; err = v.step.save(ctx, v.c.cfg.Store, v.id, entries) {
		v.c.cfg.Logger.Error("a step cannot be written", "session", v.id, "error", err)
		if !v.stalled.Swap(true) && v.onStall != nil {
			v.onStall()
		}
		// Each time: no snapshot has it, for who comes meanwhile.
		v.c.feed.publish(Event{Session: v.id, Type: eventNotice, Data: mustJSON(map[string]string{"code": "storage.failed", "detail": err.Error()})})
		select {
		case <-time.After(time.Second):
		case <-v.c.ctx.Done():
			return false // what could not be written is lost, and is not shown either
		}
	}
	if v.stalled.Swap(false) {
		v.c.feed.publish(Event{Session: v.id, Type: eventNotice, Data: mustJSON(map[string]string{"code": "storage.works"})})
	}
	if len(v.step.frames) > 0 {
		v.wire.Grew()
	}
	return true
}

// publish shows what was written: the session first, so that a reader knows it before its entries, and the turn last, so that one
// who waits for its end has seen everything.
func (v *conversation) publish(entries []transcript.Change) {
	var events []Event
	add := func(kind string, data any) {
		events = append(events, Event{Session: v.id, Type: kind, Data: mustJSON(data)})
	}
	if v.step.row != nil || len(v.step.turns) > 0 || len(v.step.requests) > 0 {
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
			add(eventAppend, c.Append)
			continue
		}
		add(eventEntry, c.Entry)
	}
	for _, id := range slices.Sorted(maps.Keys(v.step.turns)) {
		add(eventTurn, v.step.turns[id])
	}
	events = append(events, v.answering.events(v.id, v.step.turns, entries, v.step.imported)...)
	v.c.feed.publish(v.deletion.events(events)...)
}

// publishView is what look gives from now on.
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

// prompt begins a turn with a person's message.
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
	v.row.ArchivedAt = nil // what is spoken in is not put away
}

func (v *conversation) newTurn(id string, prompt ...json.RawMessage) *Turn {
	return &Turn{ID: id, Session: v.id, State: "running", StartedAt: Time{Time: time.Now()}, prompt: prompt}
}

const titleLength = 80

// titleOf is the first line of a message, cut at a word where it is long.
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

// nameAfterAgent takes the agent's title unless a person has named the session. One that the agent takes back is no longer what it is called:
// then it is called after its first prompt again.
func (v *conversation) nameAfterAgent(was string) {
	title := strings.TrimSpace(v.fold.Facts.Title)
	switch {
	case v.row.titleBy == titleByPerson:
	case title != "":
		v.row.Title, v.row.titleBy = titleOf(title), titleByAgent
	case was != "" && v.row.titleBy == titleByAgent:
		first, err := query(v.c.lasting(), v.c.cfg.Store.Read(), scanJSON[transcript.Entry],
			`SELECT data FROM entry WHERE session = ? AND `+storedKind+` = 'user' ORDER BY seq LIMIT 1`, v.id)
		if err != nil {
			v.c.cfg.Logger.Error("the first prompt cannot be read", "session", v.id, "error", err)
			return
		}
		v.row.Title, v.row.titleBy = "", "" // the first that comes names it
		for _, e := range first {
			v.row.Title, v.row.titleBy = titleOf(said{text: e.Text, files: e.Attachments}.title()), titleByPrompt
		}
	}
}

func (v *conversation) patch(p Patch, chips []transcript.Attachment) {
	if p.Title != nil {
		v.row.Title, v.row.titleBy = strings.TrimSpace(v.c.secret.Text(*p.Title)), titleByPerson
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
			v.do(lifecycle.HoldAll{Why: lifecycle.HeldArchived}) // what is put away does not go on by itself
			v.idleness.putAway()
		}
	}
	v.row.showFacts()
	v.saveRow()
}

// restart ends the agent, quietly, and starts it on the same session.
func (v *conversation) restart() error {
	if v.state.Base != lifecycle.Closed {
		v.do(lifecycle.Exited{Code: transcript.ProblemRestart})
	}
	return v.wish(lifecycle.Start{})
}

// setConfig changes an option of the agent. One that sleeps is woken: it is told before anything else (rechoose), so that a mode in which it
// asks counts for the next message. With asked the agent has been asked, and then is called with its failure or nil.
func (v *conversation) setConfig(option string, value json.RawMessage, then func(*acp.Error)) (asked bool, err error) {
	unbegun := v.state.Base == lifecycle.Closed && !v.state.Asleep && v.fold.Facts.Start != nil // it could not begin as it had to
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

// recover ends what ran when the program died. The transcript is folded anew, since its tail may never have been.
func (v *conversation) recover(ctx context.Context) error {
	db, journal := v.c.cfg.Store, v.frames
	begun, damaged := v.refold(ctx, true)
	if damaged != nil {
		// One damaged conversation must not keep all the others shut. What was shown of it is stored beside its journal.
		v.c.cfg.Logger.Error("a journal cannot be read whole", "session", v.id, "error", damaged)
		v.fold = transcript.New(v.id, v.row.facts)
		_, again := v.refold(ctx, false)
		damaged = errors.Join(damaged, again)
		v.fold.Facts, v.fold.FactsChanged = v.row.facts, false
	}
	v.fold.KeepOptions(v.row.facts)
	turns, err := query(ctx, db.Read(), scanTurn, `SELECT `+turnColumns+` FROM turn WHERE session = ? AND state <> 'done' ORDER BY started_at`, v.id)
	if err != nil {
		return err
	}
	open, err := record.Readable[Request](ctx, db.Read(), `SELECT data FROM request WHERE session = ? AND status = 'requested' ORDER BY created_at, id`, v.id)
	if err != nil {
		return err
	}
	v.state = lifecycle.State{Base: lifecycle.Ready, Queue: v.state.Queue}
	for i := range turns {
		v.turn = &turns[i]
		v.state.Base, v.state.Turn, v.state.Sent = lifecycle.Working, v.turn.ID, true
	}
	if damaged == nil { // else nobody knows
		v.stopping.dropUnsentPrompt(begun)
	}
	for i := range open {
		v.inbox.open[open[i].ID] = &openRequest{Request: open[i]}
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

// refold folds the journal into the transcript, and gives how its newest turn began. With tail, only what the newest turn has changed is changed
// then: what came before is stored with the step that began that turn, at the latest (spare). All of a long conversation would be written, told
// and indexed anew, before anything is shown.
func (v *conversation) refold(ctx context.Context, tail bool) (begun begunTurn, damaged error) {
	lost, err := v.c.journal.Readable(ctx, v.id, func(f journal.Frame) {
		if begun.take(f) && tail {
			_, v.fold.FactsChanged = v.fold.Take()
		}
		v.fold.Apply(f)
	})
	return begun, errors.Join(lost, err)
}

// keepStored takes what is stored for what was folded of a journal that cannot be read whole, wherever that is less or something else. What went
// on then has ended, unless the agent goes on. journal is its last frame: what is of a later one was never there.
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
	rows, err := v.c.cfg.Store.Read().QueryContext(ctx, `SELECT data FROM entry WHERE session = ?`, v.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		stored, err := scanJSON[transcript.Entry](rows)
		if record.Damaged(err) { // the journal has it
			continue
		}
		if err != nil {
			return err
		}
		f := folded[stored.ID]
		if f != nil && f.Seq > unmade[f.Kind] && transcript.IsPrefixOf(mustJSON(&stored), f) {
			continue
		}
		cutOff := ended && stored.CutOff(Time{Time: time.Now()})
		switch {
		case f != nil:
			*f = stored
			same[f] = !cutOff
		case cutOff: // what it began with is lost
			v.fold.Touch(&stored)
		}
	}
	v.fold.Forget(same)
	return rows.Err()
}

// madeAnew finds what the fold has made of the wrong frames because the one that began an entry is lost. What goes on with that is an entry of its
// own then, of a frame that the journal has, with which all of its entries are stored: again is what would be there twice. Or it goes on with the entry
// before: unmade has the newest that is stored and was not folded, of each kind, and what is above it may have its text.
func (v *conversation) madeAnew(ctx context.Context, journal int64, folded map[string]*transcript.Entry) (unmade map[string]int64, again map[*transcript.Entry]bool, err error) {
	rows, err := v.c.cfg.Store.Read().QueryContext(ctx, `SELECT id, seq, coalesce(`+storedKind+`, '') FROM entry WHERE session = ? ORDER BY seq`, v.id)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	unmade, again = map[string]int64{}, map[*transcript.Entry]bool{}
	stored := map[string]bool{}
	for rows.Next() {
		var id, kind string
		var seq int64
		if err := rows.Scan(&id, &seq, &kind); err != nil {
			return nil, nil, err
		}
		stored[id] = true
		if folded[id] == nil {
			unmade[kind] = seq
		}
	}
	for id, e := range folded {
		if !stored[id] && e.Seq < (journal+1)*transcript.PerFrame {
			again[e] = true
		}
	}
	return unmade, again, rows.Err()
}

// quit ends the conversation with the program: a turn that runs is told as interrupted, the agent ends. Where the last step could not be written
// nothing is told: the next start finds the turn as running, and tells it then.
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

// closed is the end of the agent's process, whatever ended it.
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
