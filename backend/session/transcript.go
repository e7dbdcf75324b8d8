package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
)

// What an entry holds at most; more is left out and counted, and the journal keeps all of it.
const (
	maxText = 256 << 10 // bytes of one message
	maxItem = 64 << 10  // bytes of one text, diff side or raw value within a tool call

	// Of the blocks that are not text, such as images: an entry is stored and told whole with each that is added to it.
	mostBlocks = 64
	maxBlocks  = 1 << 20 // bytes of them together; one may be longer
)

// transcript folds the frames of a session into entries: a pure function with a memory. Fold the same frames and you get the same
// entries, ids included. What can still change (the message that streams, the tool calls of the running turn) is held; the rest is
// only in the database.
//
// Rules paid for by others: an update for an unknown tool call creates it; a user message that echoes the prompt is dropped; a
// changed message id starts a new message; an update that is unknown or broken becomes a raw entry, never an error.
type transcript struct {
	session    string
	limit      int                         // bytes of Text; maxText
	said       func(e *Entry, text string) // hears all that a message says, within the limit or not; nil = nobody
	generation int64
	turn       string
	replaying  bool
	prompt     string // what the running turn asked, as far as the agent has not echoed it
	asking     *Entry // that
	answered   bool   // the agent has said or done something in the running turn
	facts      facts

	open  *Entry            // the message that a chunk without an id goes on
	byID  map[string]*Entry // messages by kind and message id, until something else comes between
	tools map[string]*Entry // tool calls by their id: of this and the last turn, and those before that may go on
	plan  *Entry            // the plan of this turn

	terminals   map[string]*Entry // the programs that run for the agent, by terminal id
	displays    map[string]*Entry // the agent's own that it tells of, the same
	compactions map[string]*Entry // of this turn
	stragglers  map[string]*Entry // what runs on of turns that were stopped, by the id of that
	called      []*Entry          // the tool calls of this turn, or of the last one

	growing map[*Entry]*growth // entries that text is added to
	halves  map[*Entry]rune    // first halves of characters that messages end with so far
	clipped map[*Entry]int     // what of a clipped message was told last: it is told again when that has doubled, and at its end
	peer    string             // the agent\'s id of this session, once it is known

	imported imported
	forking  bool            // the agent is making a fork of this session, whose id we do not know yet
	forks    map[string]bool // the agent's ids of those that it has made in this life

	lastAdded int64 // the frame that the newest entry is of
	added     int64 // how many are of it

	goingOn map[*Entry]bool // what is not over, as of take

	dirty   []*Entry        // changed since take, in order unless mixed
	isDirty map[*Entry]bool // the same, to be asked
	mixed   bool            // an end has touched earlier ones: take puts them in order
	appends map[*Entry]*Append
	changed bool // facts changed since take
	told    bool // the agent has told of its options since it was started
}

// facts are what the agent told about the session beside its transcript.
type facts struct {
	Options  []ConfigOption `json:"options,omitempty"`
	Modes    bool           `json:"modes,omitempty"`  // Options[0] stands for the agent's older modes
	Models   bool           `json:"models,omitempty"` // the last of Options stands for the agent's older models
	Chosen   []ConfigOption `json:"chosen,omitempty"` // as they were before a start that goes on, or has failed: the next one sets them again
	Start    *startWish     `json:"start,omitempty"`  // what it is to begin with; nil once it has begun
	Commands []Command      `json:"commands,omitempty"`
	Usage    *Usage         `json:"usage,omitempty"`
	Title    string         `json:"title,omitempty"`      // the agent's own
	Offers   []string       `json:"offers"`               // what the agent can do beside the usual; null before it was first asked
	Takes    *takes         `json:"takes,omitempty"`      // nil before it was first asked
	Imported bool           `json:"imported,omitempty"`   // its history is taken in
	Unopened []unopened     `json:"unopenedAt,omitempty"` // since the last start that went well; with "unopened" they have no time

	Terminals int `json:"terminals,omitempty"` // how many programs run for the agent
	GoingOn   int `json:"goingOn,omitempty"`   // how many entries are not over, as of the last time that no turn ran
}

func newTranscript(session string, f facts) *transcript {
	return &transcript{
		session: session, limit: maxText, facts: f,
		byID: map[string]*Entry{}, tools: map[string]*Entry{}, growing: map[*Entry]*growth{}, clipped: map[*Entry]int{}, halves: map[*Entry]rune{}, goingOn: map[*Entry]bool{}, isDirty: map[*Entry]bool{}, appends: map[*Entry]*Append{},
		terminals: map[string]*Entry{}, displays: map[string]*Entry{}, compactions: map[string]*Entry{}, stragglers: map[string]*Entry{},
	}
}

// change is what take gives: a whole entry, or only what was added to its text.
type change struct {
	Entry  *Entry // its state now, for the database in both cases
	Append *Append
}

// take gives what changed since the last take, oldest first, and whether the facts did.
func (t *transcript) take() ([]change, bool) {
	if t.mixed { // once, and not at the end of each turn: whoever folds a whole journal takes at its end alone, after thousands
		slices.SortStableFunc(t.dirty, func(a, b *Entry) int { return int(a.Seq - b.Seq) })
	}
	list := make([]change, 0, len(t.dirty))
	for _, e := range t.dirty {
		c := change{Entry: clone(e), Append: t.appends[e]}
		list = append(list, c)
		if e.isGoingOn() {
			t.goingOn[e] = true
		} else {
			delete(t.goingOn, e)
		}
	}
	t.countGoingOn()
	facts := t.changed
	t.dirty, t.mixed, t.changed = nil, false, false
	clear(t.isDirty)
	clear(t.appends)
	return list, facts
}

// countGoingOn remembers, in the session's record, what is to be ended should we die before. That of a turn ends with it.
func (t *transcript) countGoingOn() {
	if n := len(t.goingOn); (t.turn == "" || n == 0) && n != t.facts.GoingOn {
		t.facts.GoingOn, t.changed = n, true
	}
}

// isGoingOn tells of an entry that is not over.
func (e *Entry) isGoingOn() bool {
	switch {
	case e.Tool != nil:
		return e.goesOn()
	case e.Terminal != nil:
		return e.Terminal.Running
	case e.Compaction != nil:
		return e.Compaction.Status == "in_progress"
	case e.Straggler != nil:
		return e.Straggler.Running
	}
	return false
}

// forget takes back that entries have changed.
func (t *transcript) forget(unchanged map[*Entry]bool) {
	t.dirty = slices.DeleteFunc(t.dirty, func(e *Entry) bool { return unchanged[e] })
	for e, is := range unchanged {
		if is {
			delete(t.isDirty, e)
		}
		delete(t.appends, e)
	}
}

// cutOff ends what was still going on in an entry; false where nothing was.
func (e *Entry) cutOff(now Time) bool {
	switch {
	case !e.isGoingOn():
		return false
	case e.Tool != nil:
		e.Tool.Status, e.Tool.EndedAt = "cancelled", &now
	case e.Terminal != nil:
		e.Terminal.Running, e.Terminal.EndedAt = false, &now
	case e.Straggler != nil:
		e.Straggler.Running, e.Straggler.EndedAt, e.Straggler.EndedBy = false, &now, endedByAgent
	default:
		e.Compaction.Status, e.Compaction.EndedAt = "cancelled", &now
	}
	return true
}

// clone copies what apply may change later; the rest of an entry is replaced, never altered.
func clone(e *Entry) *Entry {
	c := *e
	c.Blocks = slices.Clone(e.Blocks)
	if e.Tool != nil {
		tool := *e.Tool
		c.Tool = &tool
	}
	return &c
}

// touch marks an entry as changed in a way that only the whole entry tells.
func (t *transcript) touch(e *Entry) {
	if t.holds(e) {
		return
	}
	if !t.isDirty[e] {
		t.isDirty[e] = true
		t.dirty = append(t.dirty, e)
	}
	delete(t.appends, e)
}

// add makes an entry. Whatever is no message ends the message before it.
func (t *transcript) add(f journal.Frame, kind string) *Entry {
	if t.lastAdded != f.N {
		t.lastAdded, t.added = f.N, 0
	}
	e := &Entry{
		ID: stableID(t.session, f, kind), Session: t.session, Turn: t.turn, Generation: f.Generation,
		Seq: f.N*perFrame + t.added, At: Time{f.At}, Kind: kind,
	}
	t.added++
	t.answered = t.answered || kind == "agent" || kind == "tool"
	t.hold(e)
	t.touch(e)
	t.settle()
	if kind != "agent" && kind != "thought" {
		t.open = nil
		clear(t.byID)
		maps.DeleteFunc(t.growing, func(e *Entry, _ *growth) bool { return e.Terminal == nil && e.Compaction == nil })
	}
	return e
}

// apply folds one frame in.
func (t *transcript) apply(f journal.Frame) {
	t.generation = f.Generation
	switch f.Dir {
	case journal.Note:
		var n note
		if json.Unmarshal(f.Data, &n) == nil {
			t.applyNote(f, n)
		}
	case journal.In:
		t.applyInward(f)
	case journal.Out:
		t.applyOutward(f)
	}
}

// applyOutward folds what we sent. It is a stop that shows: the turn's calls are cancelled with it, whatever becomes of them. What the agent
// says of one after that counts again.
func (t *transcript) applyOutward(f journal.Frame) {
	const stop = "session/cancel"
	if t.turn == "" || !bytes.Contains(f.Data, []byte(stop)) {
		return
	}
	var m struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(f.Data, &m) == nil && m.Method == stop {
		t.endToolsOfTurn(f)
	}
}

func (t *transcript) applyNote(f journal.Frame, n note) {
	switch n.Note {
	case noteStarting: // another process: it goes on with nothing of the one before
		t.dropImport()
		t.forking, t.forks = false, nil
		clear(t.byID)
		t.endAll(f)
		t.settle()
		t.open, t.replaying, t.peer = nil, false, ""
	case noteReplaying:
		t.replaying = true
	case noteImporting, noteForking, noteFork, noteForked:
		t.applyOrigin(f, n)
	case noteReady:
		t.replaying, t.peer = false, n.Session
		if n.Reason == restoredImport || n.Reason == restoredUnseen {
			t.endImport(f, n.Reason == restoredUnseen)
		}
		if code, ok := map[string]string{"resume": "session.resumed", "load": "session.loaded", "fresh": "session.fresh"}[n.Reason]; ok {
			t.add(f, "divider").Divider = &Divider{Code: code}
		}
	case noteTurnBegan:
		t.beginTurn(f, n)
	case noteTurnEnded:
		t.endTurn(f)
	case noteComposed, noteSteered, noteGiven:
		t.travelled(f, n)
	case noteRequest, noteRuled:
		t.requested(f, n)
	case noteClosed:
		t.close(f, n)
	case noteRefused:
		t.raw(f, n.Raw, "unknown_method")
	case noteNotice:
		t.add(f, "notice").Notice = n.Notice
	case noteTerminal, noteWrote:
		t.served(f, n)
	case noteStraggler:
		t.left(f, n)
	default:
		if d := dividerOf(n); d != nil {
			t.add(f, "divider").Divider = d
		}
	}
}

// requested shows that something was asked for, or that a rule has answered it.
func (t *transcript) requested(f journal.Frame, n note) {
	if n.Note == noteRuled {
		t.add(f, "rule").Rule = n.Rule
		return
	}
	t.add(f, "request").Request = n.Request
}

// dividerOf is what a note is shown as that changes nothing else; nil = nothing.
func dividerOf(n note) *Divider {
	switch n.Note {
	case noteInterrupted:
		if n.Reason == reasonNoSignal {
			return &Divider{Code: "turn.no_signal"}
		}
		return &Divider{Code: "turn.interrupt_sent"}
	case noteMissing:
		return &Divider{Code: "messages.missing"}
	case noteTakenUp:
		return &Divider{Code: "agent.taken_up"}
	case noteKilled:
		return &Divider{Code: "turn.killed"}
	case noteMoved:
		return &Divider{Code: noteMoved, Params: map[string]string{"from": n.From, "to": n.To}}
	}
	return nil
}

func (t *transcript) beginTurn(f journal.Frame, n note) {
	t.turn, t.plan, t.prompt, t.called, t.answered = n.Turn, nil, "", nil, false
	goOn(t.tools, (*Entry).hasEnded, func(e *Entry) { t.endTool(f, e) })
	goOn(t.displays, (*Entry).hasExited, func(e *Entry) { t.endDisplay(f, e) })
	t.asking = t.asked(f, n)
}

// mostGoingOn is how many tool calls of before a turn may go on in it, and how many programs.
const mostGoingOn = 50

// goOn takes out of m what is over by the agent's own word. The rest is kept when a turn begins, since what works in the background is told of
// turns later, but not all that an agent never ends: the oldest that are too many are ended here.
func goOn(m map[string]*Entry, over func(*Entry) bool, end func(*Entry)) {
	maps.DeleteFunc(m, func(_ string, e *Entry) bool { return over(e) })
	if len(m) <= mostGoingOn {
		return
	}
	list := inOrder(m)
	first := list[len(list)-mostGoingOn]
	for _, e := range list {
		if e.Seq < first.Seq {
			end(e)
		}
	}
	maps.DeleteFunc(m, func(_ string, e *Entry) bool { return e.Seq < first.Seq })
}

func inOrder(m map[string]*Entry) []*Entry {
	return slices.SortedFunc(maps.Values(m), func(a, b *Entry) int { return cmp.Compare(a.Seq, b.Seq) })
}

// asked shows what a person has sent, and expects the agent to echo it.
func (t *transcript) asked(f journal.Frame, n note) *Entry {
	e := t.add(f, "user")
	t.ofNow(e)
	e.Attachments = n.Attachments
	for _, block := range n.Prompt {
		var b struct{ Type, Text string }
		if json.Unmarshal(block, &b) == nil && b.Type == "text" {
			t.extend(e, b.Text)
			t.prompt += b.Text
			continue
		}
		e.Blocks = append(e.Blocks, block)
	}
	return e
}

// travelled folds a note of what went to the agent within a turn, or came from it.
func (t *transcript) travelled(f journal.Frame, n note) {
	switch n.Note {
	case noteComposed:
		t.composed(n)
	case noteSteered:
		t.prompt = ""
		t.asked(f, n)
	case noteGiven:
		t.add(f, "attachment").Attachments = n.Attachments
	}
}

// composed tells how the files of a prompt have gone to the agent.
func (t *transcript) composed(n note) {
	if t.asking == nil || n.Turn != t.turn {
		return
	}
	t.asking.Attachments = n.Attachments
	t.touch(t.asking)
	if n.Text != "" {
		t.prompt = n.Text // which is what the agent would echo
	}
}

// endTurn closes what the agent left open: a tool call that was cut off is cancelled, whatever it said last. What it has begun without a
// turn goes on without one.
func (t *transcript) endTurn(f journal.Frame) {
	t.settle()
	t.endToolsOfTurn(f)
	for _, e := range inOrder(t.displays) {
		if e.Turn != "" {
			t.endDisplay(f, e)
		}
	}
	t.endCompactions(f)
	t.mixed = true
	t.turn, t.plan, t.open, t.prompt, t.asking = "", nil, nil, "", nil
	clear(t.byID)
	clear(t.growing)
}

// endAll ends what goes on, with the agent that was at it. Nothing more is heard of that.
func (t *transcript) endAll(f journal.Frame) {
	t.endTools(f)
	clear(t.tools)
	t.endTerminals(f)
	t.endCompactions(f)
	t.endStragglers(f)
}

func (t *transcript) endToolsOfTurn(f journal.Frame) {
	for _, e := range inOrder(t.tools) {
		if e.Turn != "" {
			t.endTool(f, e)
		}
	}
}

func (t *transcript) endTools(f journal.Frame) {
	for _, e := range inOrder(t.tools) {
		t.endTool(f, e)
	}
}

// goesOn tells of a tool call that is not over.
func (e *Entry) goesOn() bool { return e.Tool.Status == "pending" || e.Tool.Status == "in_progress" }

// hasEnded tells of a tool call whose own end was told, rather than that of its turn.
func (e *Entry) hasEnded() bool { return e.Tool.Status == "completed" || e.Tool.Status == "failed" }

// endTool cancels a call that has not ended.
func (t *transcript) endTool(f journal.Frame, e *Entry) {
	if e.goesOn() {
		e.Tool.Status = "cancelled"
		e.Tool.EndedAt = &Time{f.At}
		t.touch(e)
	}
}

func (t *transcript) close(f journal.Frame, n note) {
	t.dropImport()
	t.endAll(f)
	switch {
	case n.Reason == reasonHibernated:
		t.add(f, "divider").Divider = &Divider{Code: "session.hibernated"}
	case n.Exit == nil: // it ended because we ended, in quiet
	case n.Exit.Problem == problemInterrupted:
		t.add(f, "divider").Divider = &Divider{Code: "app.interrupted"}
	case n.Exit.Problem == problemExited:
		t.add(f, "divider").Divider = &Divider{Code: "agent.exited", Exit: n.Exit}
	default:
		t.add(f, "divider").Divider = &Divider{Code: "agent.start_failed", Exit: n.Exit, Params: n.Exit.Params}
	}
}

func (t *transcript) raw(f journal.Frame, data []byte, reason string) {
	e := t.add(f, "raw")
	e.Raw, e.Reason = clipRaw(data), reason
}

// aside shows what an agent printed that is no message. The message that streams goes on behind it.
func (t *transcript) aside(f journal.Frame) {
	open, byID, halves := t.open, maps.Clone(t.byID), t.halves
	t.halves = map[*Entry]rune{}
	t.raw(f, f.Data, "invalid_stdout")
	t.open, t.byID, t.halves = open, byID, halves
}

// applyInward folds what the agent sent. Responses are not shown: the notes tell what they led to.
func (t *transcript) applyInward(f journal.Frame) {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(f.Data, &m) != nil {
		t.raw(f, f.Data, "broken_update")
		return
	}
	switch m.Method {
	case "":
		if !t.foreign(m.Result) {
			t.applyOptions(m.Result)
		}
		t.applyOffers(m.Result)
	case "session/update":
		u, err := acp.ParseUpdate(m.Params)
		if err == nil {
			err = t.applyUpdate(f, u)
		}
		if err != nil {
			t.raw(f, f.Data, "broken_update")
		}
	case "session/request_permission":
		t.permission(f, m.Params)
	case "_adapter/invalid_stdout":
		t.aside(f)
	}
}

// applyUpdate folds one session/update. What replays history tells us nothing new but the facts.
func (t *transcript) applyUpdate(f journal.Frame, u acp.Update) error {
	if t.ofFork(u.SessionID) {
		return nil
	}
	if t.peer != "" && u.SessionID != "" && u.SessionID != t.peer {
		t.raw(f, f.Data, "other_session") // not this agent's own words to this person
		return nil
	}
	if t.replaying && !isFact(u.Kind) {
		return nil
	}
	switch u.Kind {
	case "agent_message_chunk":
		return t.chunk(f, u, "agent")
	case "agent_thought_chunk":
		return t.chunk(f, u, "thought")
	case "user_message_chunk":
		return t.userChunk(f, u)
	case "tool_call":
		return t.toolCall(f, u.Body, true)
	case "tool_call_update":
		return t.toolCall(f, u.Body, false)
	case "plan":
		return t.setPlan(f, u)
	case "compaction_update", "compaction_summary_chunk":
		parse := acp.ParseCompaction
		if u.Kind == "compaction_summary_chunk" {
			parse = acp.ParseCompactionChunk
		}
		patch, err := parse(u.Body)
		if err == nil {
			t.compaction(f, patch)
		}
		return err
	case "notice":
		n, err := acp.ParseNotice(u.Body)
		if err == nil {
			t.add(f, "notice").Notice = &Notice{Severity: clipTo(n.Severity, maxLabel), Title: clipString(n.Title), Description: clipString(n.Description)}
		}
		return err
	}
	known, err := t.applyFact(u)
	if !known {
		t.raw(f, f.Data, "unknown_update")
	}
	return err
}

// toolCall folds what is told of a tool call. Where that says so itself, it may be another call than one before of the same id.
func (t *transcript) toolCall(f journal.Frame, body json.RawMessage, begins bool) error {
	patch, err := acp.ParseToolCall(body)
	if err != nil {
		return err
	}
	if begins {
		t.begunAnew(f, patch)
	}
	t.patchTool(f, patch)
	return nil
}

// permission folds what a request for a permission tells of its call: who asks may not have told of the call before. Nobody asks for one that has
// ended: of that id a new one begins.
func (t *transcript) permission(f journal.Frame, params json.RawMessage) {
	p, err := acp.ParsePermission(params)
	if err != nil {
		return
	}
	patch, err := acp.ParseToolCall(p.ToolCall)
	if err != nil {
		return
	}
	if e := t.tools[patch.ToolCallID]; e != nil && e.hasEnded() {
		t.giveUp(f, patch.ToolCallID)
	}
	_ = t.toolCall(f, p.ToolCall, true) // it was read above
}

func (t *transcript) chunk(f journal.Frame, u acp.Update, kind string) error {
	c, err := acp.ParseChunk(u.Body)
	if err != nil {
		return err
	}
	if c.Block == nil && c.Text == "" {
		return nil // Qwen sends these around its tool calls; each would be an entry without a word
	}
	e := t.message(f, kind, c.MessageID)
	if c.Block == nil {
		text, half := c.Joined(t.halves[e])
		if t.halves[e] = half; half == 0 {
			delete(t.halves, e)
		}
		t.extend(e, text)
		return nil
	}
	block := clipRaw(c.Block)
	if !e.hasRoom(block) {
		e = t.begin(f, kind, c.MessageID) // nothing is left out: the message goes on in another entry
	}
	e.Blocks = append(e.Blocks, block)
	t.touch(e)
	return nil
}

// hasRoom tells whether a block can be added to those that an entry has.
func (e *Entry) hasRoom(block json.RawMessage) bool {
	size := len(block)
	for _, b := range e.Blocks {
		size += len(b)
	}
	return len(e.Blocks) == 0 || len(e.Blocks) < mostBlocks && size <= maxBlocks
}

// message finds the entry that a chunk goes on, or begins one.
func (t *transcript) message(f journal.Frame, kind, id string) *Entry {
	if id == "" {
		if t.open != nil && t.open.Kind == kind {
			return t.open
		}
	} else if e := t.byID[messageKey(kind, id)]; e != nil {
		t.open = e
		return e
	}
	if kind == "user" {
		t.importedTurn(f)
	}
	return t.begin(f, kind, id)
}

// begin makes the entry that the chunks of a message go on from now on.
func (t *transcript) begin(f journal.Frame, kind, id string) *Entry {
	e := t.add(f, kind)
	t.open = e
	if id != "" {
		t.byID[messageKey(kind, id)] = e
	}
	return e
}

func messageKey(kind, id string) string { return kind + "\x00" + id }

// extend adds text to a message, as far as there is room.
func (t *transcript) extend(e *Entry, text string) {
	if t.said != nil {
		t.said(e, text)
	}
	if room := t.limit - len(e.Text); len(text) > room {
		cut := max(room, 0)
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		e.Clipped += len(text) - cut
		t.lengthen(e, text[:cut])
		if e.Clipped >= 2*t.clipped[e] {
			t.clipped[e] = e.Clipped
			t.touch(e)
		}
		return
	}
	t.grow(e, text)
}

// grow adds to the text of an entry whatever its length.
func (t *transcript) grow(e *Entry, text string) {
	before := t.lengthen(e, text)
	switch a := t.appends[e]; {
	case t.holds(e):
	case a != nil:
		a.Text += text
	case !t.isDirty[e]:
		t.isDirty[e] = true
		t.dirty = append(t.dirty, e)
		t.appends[e] = &Append{ID: e.ID, Field: "text", Text: text, Offset: before}
	}
}

// growth is the text of an entry that is added to: a string would be copied whole for each word.
type growth struct {
	text  strings.Builder
	units int // its length
}

// lengthen gives how long the text was before, in UTF-16 units.
func (t *transcript) lengthen(e *Entry, text string) (before int) {
	g := t.growing[e]
	if g == nil || g.text.Len() != len(e.Text) { // else it was cut since
		g = &growth{units: units(e.Text)}
		g.text.WriteString(e.Text)
		t.growing[e] = g
	}
	before = g.units
	g.text.WriteString(text)
	g.units += units(text)
	e.Text = g.text.String()
	return before
}

// settle tells the last of what was left out of messages that go on no more, and ends those that end within a character.
func (t *transcript) settle() {
	cut := slices.SortedFunc(maps.Keys(t.halves), func(a, b *Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	clear(t.halves)
	for _, e := range cut {
		t.extend(e, string(utf8.RuneError))
	}
	for e, told := range t.clipped {
		if told != e.Clipped {
			t.touch(e)
		}
	}
	clear(t.clipped)
}

// units is the length of a text as JavaScript counts it.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// userChunk drops what echoes our own prompt and shows the rest, such as what a person typed into the agent elsewhere.
func (t *transcript) userChunk(f journal.Frame, u acp.Update) error {
	c, err := acp.ParseChunk(u.Body)
	if err != nil {
		return err
	}
	ours := t.turn != "" && !t.imported.running
	if c.Block != nil && ours {
		return nil
	}
	if rest, echoed := strings.CutPrefix(t.prompt, c.Text); echoed && ours {
		t.prompt = rest
		return nil
	}
	return t.chunk(f, u, "user")
}

func (t *transcript) setPlan(f journal.Frame, u acp.Update) error {
	steps, err := acp.ParsePlan(u.Body)
	if err != nil {
		return err
	}
	if t.plan == nil {
		t.plan = t.add(f, "plan")
	}
	t.plan.Plan = planItems(steps)
	t.touch(t.plan)
	return nil
}

// planItems are the steps of a plan. Of one that is too long the last tells how many more there are.
func planItems(steps []acp.PlanItem) []PlanItem {
	list, room := make([]PlanItem, 0, len(steps)), maxText
	for i, s := range steps {
		item := PlanItem{Content: clipString(s.Content), Priority: clipTo(s.Priority, maxLabel), Status: clipTo(s.Status, maxLabel)}
		if room -= len(mustJSON(item)); room < 0 {
			return append(list, PlanItem{Content: fmt.Sprintf("… %d more steps, kept in the journal", len(steps)-i), Status: "pending"})
		}
		list = append(list, item)
	}
	return list
}

// patchTool creates or changes a tool call: what the patch does not name stays.
func (t *transcript) patchTool(f journal.Frame, p acp.ToolCallPatch) {
	e := t.tools[p.ToolCallID]
	if e == nil {
		e = t.add(f, "tool")
		e.Tool = &ToolCall{ToolCallID: p.ToolCallID, Kind: "other", Status: "pending", StartedAt: Time{f.At}}
		t.tools[p.ToolCallID] = e
		if !t.imported.running {
			t.called = append(t.called, e)
		}
	}
	cutOff := e.Tool.Status == "cancelled"
	patchToolCall(e.Tool, p)
	switch {
	case e.hasEnded() && (e.Tool.EndedAt == nil || cutOff):
		e.Tool.EndedAt = &Time{f.At}
	case e.goesOn(): // though it may have been cut off with its turn
		e.Tool.EndedAt = nil
	}
	if p.Changes() {
		t.touch(e)
	}
	if p.Display != nil {
		if d := t.displays[p.Display.ID]; d != nil && !d.Terminal.Running && d.Seq < e.Seq {
			delete(t.displays, p.Display.ID) // it is of a call before this one
		}
		t.display(f, *p.Display)
	}
}

// begunAnew forgets the call of an id where the agent begins another one: some count their calls anew in each turn, or in each answer of their
// model, and some call each of them the same. So it does with the program that is left of it, or of one that is over.
func (t *transcript) begunAnew(f journal.Frame, p acp.ToolCallPatch) {
	e := t.tools[p.ToolCallID]
	if e != nil {
		if e.givesWay(t.turn, p) {
			t.giveUp(f, p.ToolCallID)
		}
		return
	}
	if d := t.displays[p.ToolCallID]; d != nil && t.turn != "" && d.Turn != t.turn {
		t.giveUp(f, p.ToolCallID)
	}
}

// givesWay tells whether what begins in a turn with the id of this call is another call: this one was cut off with another turn, or it has ended and
// the other has not, or has ended with other words than this one. What merely tells again of the end of a call is no other.
func (e *Entry) givesWay(turn string, p acp.ToolCallPatch) bool {
	if turn != "" && e.Turn != turn && e.Tool.Status == "cancelled" {
		return true
	}
	if !e.hasEnded() {
		return false
	}
	if p.Status == nil || *p.Status == "pending" || *p.Status == "in_progress" { // it is pending where it does not say
		return true
	}
	after := *e.Tool
	patchToolCall(&after, p)
	return e.Tool.loses(after)
}

// loses tells whether something that the call says is not in what it says after.
func (c *ToolCall) loses(after ToolCall) bool {
	text := func(was, now string) bool { return was != "" && was != now }
	raw := func(was, now json.RawMessage) bool { return len(was) > 0 && !bytes.Equal(was, now) }
	return text(c.Title, after.Title) || text(c.Name, after.Name) || raw(c.RawInput, after.RawInput) || raw(c.RawOutput, after.RawOutput) ||
		len(c.Content) > 0 && !slices.EqualFunc(c.Content, after.Content, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// giveUp lets go of a call and of the program of its id: what comes of that id is another's.
func (t *transcript) giveUp(f journal.Frame, id string) {
	delete(t.tools, id)
	if d := t.displays[id]; d != nil {
		t.endDisplay(f, d)
		delete(t.displays, id)
	}
}

// patchToolCall takes what an update tells of a tool call, as much as an entry holds of that.
func patchToolCall(tool *ToolCall, p acp.ToolCallPatch) {
	applyToolCall(tool, p, clipString, clipRaw)
}

// applyToolCall takes what an update tells of a tool call, through the functions that may shorten texts and values.
func applyToolCall(tool *ToolCall, p acp.ToolCallPatch, text func(string) string, value func(json.RawMessage) json.RawMessage) {
	set := func(to *string, from *string) {
		if from != nil {
			*to = text(*from)
		}
	}
	set(&tool.Title, p.Title)
	set(&tool.Name, p.Name)
	set(&tool.Kind, p.Kind)
	set(&tool.Status, p.Status)
	if p.Parent != "" {
		tool.Parent = p.Parent
	}
	if p.Content != nil {
		tool.Content = make([]json.RawMessage, len(*p.Content))
		for i, item := range *p.Content {
			tool.Content[i] = value(item)
		}
	}
	if p.Locations != nil {
		tool.Locations = make([]Location, len(*p.Locations))
		for i, l := range *p.Locations {
			tool.Locations[i] = Location(l)
		}
	}
	if p.RawInput != nil {
		tool.RawInput = value(p.RawInput)
	}
	if p.RawOutput != nil {
		tool.RawOutput = value(p.RawOutput)
	}
}

// clipRaw keeps a JSON value small enough to be shown: long texts within it are cut, at a rune, and end in a mark that tells how
// much is missing. A value that is small comes back as it is. Images keep their data up to maxImage. What is no JSON is a text: a record
// with it could not be written.
func clipRaw(raw json.RawMessage) json.RawMessage {
	deep := tooDeep(raw)
	if len(raw) == 0 || len(raw) <= maxItem && !deep && json.Valid(raw) {
		return raw
	}
	var v any
	if deep || json.Unmarshal(raw, &v) != nil {
		v = string(raw)
	}
	short, err := json.Marshal(clipValue(v))
	if err != nil {
		return nil
	}
	return short
}

// tooDeep tells that SQLite, which reads 1,000 levels, could not read the value within a record of ours; encoding/json reads ten times as many.
func tooDeep(raw json.RawMessage) bool {
	const deepest, ours = 1_000, 50
	if len(raw) < deepest-ours {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(raw) && depth <= deepest-ours; i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
		case c == ']', c == '}':
			depth--
		}
	}
	return depth > deepest-ours
}

// storedKind is the kind of what is stored as data, in SQL; null of what versions before have stored deeper than SQLite reads (tooDeep): without
// json_valid such a record ends the whole query with an error.
const storedKind = `CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END`

const maxImage = 8 << 20

func clipValue(v any) any {
	switch v := v.(type) {
	case string:
		return clipString(v)
	case []any:
		for i := range v {
			v[i] = clipValue(v[i])
		}
	case map[string]any:
		data, isText := v["data"].(string)
		_, hasType := v["mimeType"].(string)
		for k := range v {
			if k == "data" && isText && hasType && len(data) <= maxImage {
				continue
			}
			v[k] = clipValue(v[k])
		}
	}
	return v
}
