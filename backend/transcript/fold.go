// Package transcript makes entries of frames: it hides the rules by which messages of an agent, and the client's own notes, become the
// items that people see. The package is pure: no SQL, no goroutine, no clock. The same frames give the same entries, so that a journal can
// be folded anew at any time. The records of entries are here too, with their texts for people and for the search.
package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// The bounds of an entry. The rest is left out and counted; the journal keeps everything.
const (
	MaxText = 256 << 10 // bytes of a message
	MaxItem = 64 << 10  // bytes of a text, diff side or raw value within a tool call

	// Blocks are content that is not text, such as images. Each added block stores and publishes the whole entry again.
	mostBlocks = 64
	maxBlocks  = 1 << 20 // bytes of all blocks; a single block may be longer
)

// Fold makes entries of the frames of one session: a pure function with a memory. The same frames always give the same entries, ids
// included. A Fold keeps only entries that a later frame may change, such as the message that streams and the tool calls of the running
// turn; all others are in the database alone. A Fold belongs to one goroutine.
//
// Rules that other clients learned: an update for an unknown tool call creates the call; a user message that echoes the prompt is dropped;
// a changed message id starts a new message; an update that is unknown or broken becomes a raw entry, never an error.
type Fold struct {
	session    string
	Limit      int                         // bytes of Text; MaxText
	Said       func(e *Entry, text string) // called with every text of a message, also beyond the limit; nil = not called
	Whole      string                      // the id of the entry of a tool call whose texts are not cut; "" = none
	generation int64
	turn       string
	replaying  bool
	prompt     string // the rest of the turn's prompt that the agent has not echoed yet
	asking     *Entry // the entry of the prompt
	Answered   bool   // the agent has said or done something in the running turn
	Facts      Facts

	open    *Entry            // the message that a chunk without an id goes on
	byID    map[string]*Entry // messages by kind and message id, until something else comes between
	tools   map[string]*Entry // tool calls by their id: of this and the last turn, and those before that may go on
	besides besides
	plans   plans

	delegated delegated

	running running
	called  []*Entry // the tool calls of the running turn, or of the last turn

	texts    texts
	peers    peers
	imported imported

	lastAdded int64 // the frame of the newest entry
	added     int64 // how many entries that frame has made

	goingOn map[*Entry]bool // the entries that were not over at the last Take

	changes      changes
	FactsChanged bool // since the last Take
	Told         bool // the agent has sent its options since its start
}

// Facts are the parts of a session's state that its agent sent beside the transcript. The session's row stores them as JSON.
type Facts struct {
	Options  []ConfigOption `json:"options,omitempty"`
	Modes    bool           `json:"modes,omitempty"`  // Options[0] stands for the agent's older modes
	Models   bool           `json:"models,omitempty"` // the last of Options stands for the agent's older models
	Chosen   []ConfigOption `json:"chosen,omitempty"` // the options before a start that is not over, or has failed: the next start sets them again
	Start    *Start         `json:"start,omitempty"`  // nil once the conversation has begun
	Commands []Command      `json:"commands,omitempty"`
	Usage    *Usage         `json:"usage,omitempty"`
	Model    string         `json:"model,omitempty"`      // the model that the agent last said it used, by the provider's name
	Account  *acp.Account   `json:"account,omitempty"`    // the account that the agent last said it works with
	Title    string         `json:"title,omitempty"`      // the agent's own
	Offers   []string       `json:"offers"`               // null before the agent was first asked
	Takes    *Takes         `json:"takes,omitempty"`      // nil before the agent was first asked
	Imported bool           `json:"imported,omitempty"`   // the agent's history was taken in
	Unopened []FailedStart  `json:"unopenedAt,omitempty"` // since the last start that went well; the older name "unopened" had no times

	Terminals int `json:"terminals,omitempty"` // how many programs run for the agent
	GoingOn   int `json:"goingOn,omitempty"`   // how many entries are not over, as of the last time that no turn ran
}

// New returns a Fold that has seen no frame of the session.
func New(session string, f Facts) *Fold {
	return &Fold{
		session: session, Limit: MaxText, Facts: f,
		plans: plans{}, delegated: newDelegated(), byID: map[string]*Entry{}, tools: map[string]*Entry{}, besides: besides{}, goingOn: map[*Entry]bool{},
		texts:   texts{growing: map[*Entry]*growth{}, clipped: map[*Entry]int{}, begun: map[*Entry]string{}},
		changes: changes{has: map[*Entry]bool{}, appends: map[*Entry]*Append{}},
		running: running{terminals: map[string]*Entry{}, displays: map[string]*Entry{}, compactions: map[string]*Entry{}, stragglers: map[string]*Entry{}},
	}
}

// Take returns the entries that changed since the last Take, the oldest first, and whether the facts changed.
func (t *Fold) Take() ([]Change, bool) {
	for _, e := range t.changes.list {
		if e.isGoingOn() {
			t.goingOn[e] = true
		} else {
			delete(t.goingOn, e)
		}
	}
	t.countGoingOn()
	facts := t.FactsChanged
	t.FactsChanged = false
	return t.changes.take(), facts
}

// countGoingOn stores, in the session's record, the number of entries that must be ended if Deskhand dies. The entries of a turn end with
// the turn.
func (t *Fold) countGoingOn() {
	if n := len(t.goingOn); (t.turn == "" || n == 0) && n != t.Facts.GoingOn {
		t.Facts.GoingOn, t.FactsChanged = n, true
	}
}

// Pending returns the entries that changed since the last Take, unsorted.
func (t *Fold) Pending() []*Entry { return t.changes.list }

// Doing returns the title of the newest tool call that runs in the turn of t; "" = none.
func Doing(t *Fold) (title string) {
	const longest = 200 // bytes
	newest := int64(-1)
	for _, e := range t.tools {
		if e.Turn == t.turn && e.Seq > newest && !e.hasEnded() {
			newest, title = e.Seq, e.Tool.Title
		}
	}
	return strings.ToValidUTF8(title[:min(len(title), longest)], "")
}

// Held counts the entries that the fold keeps in memory because a later frame may change them.
func (t *Fold) Held() int {
	kept := map[*Entry]bool{t.open: true, t.asking: true}
	for _, list := range []map[string]*Entry{t.plans, t.byID, t.tools, t.running.terminals, t.running.displays, t.running.compactions, t.delegated.children, t.delegated.messages} {
		for _, e := range list {
			kept[e] = true
		}
	}
	for _, list := range t.besides {
		for _, e := range list {
			kept[e] = true
		}
	}
	for e := range t.texts.growing {
		kept[e] = true
	}
	delete(kept, nil)
	return len(kept)
}

// CallOfTurn returns the entry of a tool call that began in the running turn; nil when there is none, or when several calls run that share
// the id.
func (t *Fold) CallOfTurn(id string) *Entry {
	if e := t.tools[id]; e != nil && e.Turn == t.turn && len(t.besides.running(id)) == 0 {
		return e
	}
	return nil
}

// Touch marks an entry as changed as a whole.
func (t *Fold) Touch(e *Entry) {
	if t.imported.isHeld[e] {
		return
	}
	t.changes.mark(e)
}

// add makes an entry. An entry that is no message ends the message before the entry.
func (t *Fold) add(f journal.Frame, kind string) *Entry {
	if t.lastAdded != f.N {
		t.lastAdded, t.added = f.N, 0
	}
	e := &Entry{
		ID: stableID(t.session, f, kind), Session: t.session, Turn: t.turn, Generation: f.Generation,
		Seq: f.N*PerFrame + t.added, At: record.Time{Time: f.At}, Kind: kind,
	}
	t.added++
	t.Answered = t.Answered || kind == "agent" || kind == "tool"
	t.hold(e)
	t.Touch(e)
	t.settle()
	if kind != "agent" && kind != "thought" {
		t.open = nil
		clear(t.byID)
		maps.DeleteFunc(t.texts.growing, func(e *Entry, _ *growth) bool { return e.Terminal == nil && e.Compaction == nil })
	}
	return e
}

// Apply folds one frame in. Frames come in the order of the journal.
func (t *Fold) Apply(f journal.Frame) {
	t.generation = f.Generation
	switch f.Dir {
	case journal.Note:
		var n Note
		if json.Unmarshal(f.Data, &n) == nil {
			t.applyNote(f, n)
		}
	case journal.In:
		t.applyInward(f)
	case journal.Out:
		t.applyOutward(f)
	}
}

// applyOutward folds a frame that we sent. Only a stop shows: the stop cancels the turn's calls, whatever becomes of them. Updates that the
// agent sends about a cancelled call afterwards count again.
func (t *Fold) applyOutward(f journal.Frame) {
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

func (t *Fold) applyNote(f journal.Frame, n Note) {
	switch n.Note {
	case NoteStarting: // a new process, which continues nothing of the previous process
		t.dropImport()
		t.peers.forking, t.peers.forks = false, nil
		t.delegated = newDelegated()
		clear(t.byID)
		t.endAll(f)
		t.settle()
		t.open, t.replaying, t.peers.own = nil, false, ""
	case NoteReplaying:
		t.replaying = true
	case NoteImporting, NoteForking, NoteFork, NoteForked:
		t.applyOrigin(f, n)
	case NoteReady:
		t.replaying, t.peers.own = false, n.Session
		if n.Reason == RestoredImport || n.Reason == RestoredUnseen {
			t.endImport(f, n.Reason == RestoredUnseen)
		}
		if code, ok := map[string]string{"resume": "session.resumed", "load": "session.loaded", "fresh": "session.fresh"}[n.Reason]; ok {
			t.add(f, "divider").Divider = &Divider{Code: code}
		}
	case NoteTurnBegan:
		t.beginTurn(f, n)
	case NoteTurnEnded:
		t.endTurn(f)
	case NoteComposed, NoteSteered, NoteGiven:
		t.travelled(f, n)
	case NoteRequest, NoteRuled:
		t.requested(f, n)
	case NoteClosed:
		t.close(f, n)
	case NoteRefused:
		t.raw(f, n.Raw, "unknown_method")
	case NoteNotice:
		t.add(f, "notice").Notice = n.Notice
	case NoteTerminal, NoteWrote:
		t.served(f, n)
	case NoteStraggler:
		t.left(f, n)
	default:
		further(t, f, n)
	}
}

// further shows a note that changes nothing else.
func further(t *Fold, f journal.Frame, n Note) {
	if n.Note == NoteSubagent {
		t.delegated.announced(t, f, n)
	} else if d := dividerOf(n); d != nil {
		t.add(f, "divider").Divider = d
	}
}

// requested shows a request, or that a rule has answered the request.
func (t *Fold) requested(f journal.Frame, n Note) {
	if n.Note == NoteRuled {
		t.add(f, "rule").Rule = n.Rule
		return
	}
	t.add(f, "request").Request = n.Request
}

// dividerOf returns the divider of a note that changes nothing else; nil = no divider.
func dividerOf(n Note) *Divider {
	switch n.Note {
	case NoteInterrupted:
		if n.Reason == ReasonNoSignal {
			return &Divider{Code: "turn.no_signal"}
		}
		return &Divider{Code: "turn.interrupt_sent"}
	case NoteMissing:
		return &Divider{Code: "messages.missing"}
	case NoteTakenUp:
		return &Divider{Code: "agent.taken_up"}
	case NoteKilled:
		return &Divider{Code: "turn.killed"}
	case NoteMoved:
		return &Divider{Code: NoteMoved, Params: map[string]string{"from": n.From, "to": n.To}}
	}
	return nil
}

func (t *Fold) beginTurn(f journal.Frame, n Note) {
	t.turn, t.prompt, t.called, t.Answered = n.Turn, "", nil, false
	delete(t.plans, "")
	goOn(t.tools, (*Entry).hasEnded, func(e *Entry) { t.endTool(f, e) })
	goOn(t.running.displays, (*Entry).hasExited, func(e *Entry) { t.endDisplay(f, e) })
	if n.Reason != ReasonSubagent {
		t.asking = t.asked(f, n)
	}
}

// mostGoingOn is the number of earlier tool calls that may go on in a turn, and likewise of programs.
const mostGoingOn = 50

// goOn removes the entries from m that the agent has ended. The others stay when a turn begins, since later turns report background work.
// An agent may never end some of them, so goOn ends the oldest when there are too many.
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

// asked shows a person's prompt, and expects the agent to echo the prompt.
func (t *Fold) asked(f journal.Frame, n Note) *Entry {
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

// travelled folds a note of an attachment or a prompt that went to the agent within a turn, or came from the agent.
func (t *Fold) travelled(f journal.Frame, n Note) {
	switch n.Note {
	case NoteComposed:
		t.composed(n)
	case NoteSteered:
		t.prompt = ""
		t.asked(f, n)
	case NoteGiven:
		t.add(f, "attachment").Attachments = n.Attachments
	}
}

// composed tells how the files of a prompt have gone to the agent.
func (t *Fold) composed(n Note) {
	if t.asking == nil || n.Turn != t.turn {
		return
	}
	t.asking.Attachments = n.Attachments
	t.Touch(t.asking)
	if n.Text != "" {
		t.prompt = n.Text // the text that the agent would echo
	}
}

// endTurn closes the entries that the agent left open: a tool call that was cut off is cancelled, whatever state the agent last sent.
// Entries that the agent began outside a turn go on outside a turn.
func (t *Fold) endTurn(f journal.Frame) {
	t.settle()
	t.endToolsOfTurn(f)
	for _, e := range inOrder(t.running.displays) {
		if e.Turn != "" {
			t.endDisplay(f, e)
		}
	}
	t.endCompactions(f)
	t.changes.mixed = true
	t.turn, t.open, t.prompt, t.asking = "", nil, "", nil
	delete(t.plans, "")
	clear(t.byID)
	clear(t.texts.growing)
}

// endAll ends the entries that go on, together with their agent, which sends nothing more about them.
func (t *Fold) endAll(f journal.Frame) {
	t.endTools(f)
	clear(t.tools)
	t.endTerminals(f)
	t.endCompactions(f)
	t.endStragglers(f)
}

func (t *Fold) endToolsOfTurn(f journal.Frame) {
	for _, e := range inOrder(t.tools) {
		if e.Turn != "" {
			t.endTool(f, e)
		}
	}
	t.endBesides(f, true)
}

func (t *Fold) endTools(f journal.Frame) {
	t.endBesides(f, false)
	for _, e := range inOrder(t.tools) {
		t.endTool(f, e)
	}
}

// endTool cancels a call that has not ended.
func (t *Fold) endTool(f journal.Frame, e *Entry) {
	if e.goesOn() {
		e.Tool.Status = "cancelled"
		e.Tool.EndedAt = &record.Time{Time: f.At}
		t.Touch(e)
	}
}

func (t *Fold) close(f journal.Frame, n Note) {
	t.dropImport()
	t.endAll(f)
	switch {
	case n.Reason == ReasonHibernated:
		t.add(f, "divider").Divider = &Divider{Code: "session.hibernated"}
	case n.Exit == nil: // the agent ended quietly because Deskhand ended
	case n.Exit.Problem == ProblemInterrupted:
		t.add(f, "divider").Divider = &Divider{Code: "app.interrupted"}
	case n.Exit.Problem == ProblemExited:
		t.add(f, "divider").Divider = &Divider{Code: "agent.exited", Exit: n.Exit}
	default:
		t.add(f, "divider").Divider = &Divider{Code: "agent.start_failed", Exit: n.Exit, Params: n.Exit.Params}
	}
}

func (t *Fold) raw(f journal.Frame, data []byte, reason string) {
	e := t.add(f, "raw")
	e.Raw, e.Reason = ClipRaw(data), reason
}

// aside shows output of an agent that is no message. The streaming message continues behind the output.
func (t *Fold) aside(f journal.Frame) {
	open, byID, begun := t.open, maps.Clone(t.byID), t.texts.begun
	t.texts.begun = map[*Entry]string{}
	t.raw(f, f.Data, "invalid_stdout")
	t.open, t.byID, t.texts.begun = open, byID, begun
}

// applyInward folds a frame that the agent sent. Responses are not shown: notes record their results.
func (t *Fold) applyInward(f journal.Frame) {
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
		if !t.peers.foreign(m.Result) {
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
	case acp.MethodAccountUpdate, acp.MethodStatusUpdate:
		t.FactsChanged = t.Facts.takeAccount(m.Method, m.Params) || t.FactsChanged
	}
}

// applyUpdate folds one session/update. An update that replays history changes only the facts.
func (t *Fold) applyUpdate(f journal.Frame, u acp.Update) error {
	if t.peers.ofFork(u.SessionID) {
		return nil
	}
	if t.peers.own != "" && u.SessionID != "" && u.SessionID != t.peers.own && u.Kind != "subagent_update" {
		t.raw(f, f.Data, "other_session") // not this agent's own words to this person
		return nil
	}
	if t.replaying && !IsFact(u.Kind) {
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
		return t.toolCall(f, u.Body, announces)
	case "tool_call_update":
		return t.toolCall(f, u.Body, updates)
	case "plan", "plan_update", "plan_removed":
		return t.plans.apply(t, f, u)
	case "subagent_update", "session_message", "session_message_chunk":
		return t.delegated.apply(t, f, u)
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
			t.add(f, "notice").Notice = &Notice{Severity: Clip(n.Severity, maxLabel), Title: ClipText(n.Title), Description: ClipText(n.Description)}
		}
		return err
	}
	known, err := t.applyFact(u)
	if !known {
		t.raw(f, f.Data, "unknown_update")
	}
	return err
}

// What a message about a tool call may do.
const (
	updates   = iota // change a call
	asks             // also begin another call that reuses the id of a call that is over
	announces        // also begin another call beside a call that runs
)

// toolCall folds a message about a tool call.
func (t *Fold) toolCall(f journal.Frame, body json.RawMessage, may int) error {
	patch, err := acp.ParseToolCall(body)
	if err != nil {
		return err
	}
	e := t.named(patch)
	if e == nil {
		if may != updates {
			t.begunAnew(f, patch)
		}
		if may == announces {
			t.announced(patch)
		}
		e = t.tools[patch.ToolCallID]
		if list := t.besides.running(patch.ToolCallID); may == updates && len(list) > 0 {
			e = list[0]
		}
	}
	t.patchTool(f, e, patch)
	return nil
}

// permission folds the tool call of a permission request: the agent may not have sent the call before. No agent asks for a call that has
// ended, so a request with the id of an ended call begins a new call.
func (t *Fold) permission(f journal.Frame, params json.RawMessage) {
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
	_ = t.toolCall(f, p.ToolCall, asks) // the call was parsed above
}

func (t *Fold) chunk(f journal.Frame, u acp.Update, kind string) error {
	c, err := acp.ParseChunk(u.Body)
	if err != nil {
		return err
	}
	if c.Block == nil && c.Text == "" {
		return nil // Qwen sends these messages around its tool calls; each would be an empty entry
	}
	e := t.message(f, kind, c.MessageID)
	if c.Block == nil {
		t.extend(e, t.texts.joined(e, c.Cut))
		return nil
	}
	block := ClipRaw(c.Block)
	if !e.hasRoom(block) {
		e = t.begin(f, kind, c.MessageID) // nothing is left out: the message goes on in another entry
	}
	e.Blocks = append(e.Blocks, block)
	t.Touch(e)
	return nil
}

// message returns the entry that a chunk continues, or begins an entry.
func (t *Fold) message(f journal.Frame, kind, id string) *Entry {
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
func (t *Fold) begin(f journal.Frame, kind, id string) *Entry {
	e := t.add(f, kind)
	t.open = e
	if id != "" {
		t.byID[messageKey(kind, id)] = e
	}
	return e
}

func messageKey(kind, id string) string { return kind + "\x00" + id }

// extend adds text to a message, as far as there is room.
func (t *Fold) extend(e *Entry, text string) {
	if t.Said != nil {
		t.Said(e, text)
	}
	if room := t.Limit - len(e.Text); len(text) > room {
		cut := max(room, 0)
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		e.Clipped += len(text) - cut
		t.texts.lengthen(e, text[:cut])
		if e.Clipped >= 2*t.texts.clipped[e] {
			t.texts.clipped[e] = e.Clipped
			t.Touch(e)
		}
		return
	}
	t.grow(e, text)
}

// grow appends to the text of an entry of any length.
func (t *Fold) grow(e *Entry, text string) {
	before := t.texts.lengthen(e, text)
	if !t.imported.isHeld[e] {
		t.changes.markText(e, text, before)
	}
}

// endText ends a text that ends within a character.
func (t *Fold) endText(e *Entry) {
	if t.texts.begun[e] != "" {
		delete(t.texts.begun, e)
		t.extend(e, string(utf8.RuneError))
	}
}

// settle updates the count of omitted bytes of messages that no longer grow, and ends messages that end within a character.
func (t *Fold) settle() {
	cut := slices.SortedFunc(maps.Keys(t.texts.begun), func(a, b *Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range cut {
		if e.Terminal == nil { // a program goes on beside the conversation
			t.endText(e)
		}
	}
	for e, told := range t.texts.clipped {
		if told != e.Clipped {
			t.Touch(e)
		}
	}
	clear(t.texts.clipped)
}

// userChunk drops text that echoes our own prompt and shows other text, such as a prompt that a person typed into the agent elsewhere.
func (t *Fold) userChunk(f journal.Frame, u acp.Update) error {
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

// patchTool creates a tool call, or changes the call of e: fields that the patch does not name stay.
func (t *Fold) patchTool(f journal.Frame, e *Entry, p acp.ToolCallPatch) {
	if e == nil {
		e = t.add(f, "tool")
		e.Tool = &ToolCall{ToolCallID: p.ToolCallID, Kind: "other", Status: "pending", StartedAt: record.Time{Time: f.At}}
		t.tools[p.ToolCallID] = e
		if !t.imported.running {
			t.called = append(t.called, e)
		}
	}
	cutOff := e.Tool.Status == "cancelled"
	t.patch(e)(e.Tool, p)
	switch {
	case e.hasEnded() && (e.Tool.EndedAt == nil || cutOff):
		e.Tool.EndedAt = &record.Time{Time: f.At}
	case e.goesOn(): // the call may nevertheless have been cut off with its turn
		e.Tool.EndedAt = nil
	}
	if p.Changes() {
		t.Touch(e)
	}
	if p.Display != nil {
		if d := t.running.displays[p.Display.ID]; d != nil && !d.Terminal.Running && d.Seq < e.Seq {
			delete(t.running.displays, p.Display.ID) // the terminal belongs to an earlier call
		}
		t.display(f, *p.Display)
	}
}

// begunAnew forgets the call of an id when the agent begins another call with the id: some agents count their calls from the start in each
// turn, or in each answer of their model, and some give every call the same id. begunAnew also forgets the program of the forgotten call,
// and a program that has ended.
func (t *Fold) begunAnew(f journal.Frame, p acp.ToolCallPatch) {
	e := t.tools[p.ToolCallID]
	if e != nil {
		if e.givesWay(t.turn, p, t.patch(e)) {
			t.giveUp(f, p.ToolCallID)
		}
		return
	}
	if d := t.running.displays[p.ToolCallID]; d != nil && t.turn != "" && d.Turn != t.turn {
		t.giveUp(f, p.ToolCallID)
	}
}

// giveUp forgets a call and the program of its id: later updates of the id belong to another call.
func (t *Fold) giveUp(f journal.Frame, id string) {
	delete(t.tools, id)
	if d := t.running.displays[id]; d != nil {
		t.endDisplay(f, d)
		delete(t.running.displays, id)
	}
}

// ApplyToolCall applies an update to a tool call. The functions text and value may shorten texts and values; path is the JSON pointer of the
// text or value in the tool call.
func ApplyToolCall(tool *ToolCall, p acp.ToolCallPatch, text func(path, s string) string, value func(path string, raw json.RawMessage) json.RawMessage) {
	set := func(path string, to *string, from *string) {
		if from != nil {
			*to = text(path, *from)
		}
	}
	set("/title", &tool.Title, p.Title)
	set("/name", &tool.Name, p.Name)
	set("/kind", &tool.Kind, p.Kind)
	set("/status", &tool.Status, p.Status)
	if p.Parent != "" {
		tool.Parent = p.Parent
	}
	if p.Content != nil {
		tool.Content = make([]json.RawMessage, len(*p.Content))
		for i, item := range *p.Content {
			tool.Content[i] = value(fmt.Sprintf("/content/%d", i), item)
		}
	}
	if p.Locations != nil {
		tool.Locations = make([]Location, len(*p.Locations))
		for i, l := range *p.Locations {
			tool.Locations[i] = Location(l)
		}
	}
	if p.RawInput != nil {
		tool.RawInput = value("/rawInput", p.RawInput)
	}
	if p.RawOutput != nil {
		tool.RawOutput = value("/rawOutput", p.RawOutput)
	}
}

// ClipRaw returns a JSON value that is small enough to be shown: long texts in the value are cut, see [Clip], and images keep their data up
// to maxImage. A small value comes back unchanged. Data that is no JSON becomes a text, because no record could hold the data itself.
func ClipRaw(raw json.RawMessage) json.RawMessage {
	return clipRaw("", raw, func(_, text string) string { return ClipText(text) })
}

// clipRaw is ClipRaw with a function that shortens the texts. path is the JSON pointer of the value.
func clipRaw(path string, raw json.RawMessage, text func(path, s string) string) json.RawMessage {
	deep := TooDeep(raw)
	if len(raw) == 0 || len(raw) <= MaxItem && !deep && json.Valid(raw) {
		return raw
	}
	var v any
	if deep || json.Unmarshal(raw, &v) != nil {
		v = string(raw)
	}
	short, err := json.Marshal(clipValue(path, v, text))
	if err != nil {
		return nil
	}
	return short
}

// TooDeep reports whether SQLite could not read a record with this value: SQLite reads 1,000 levels, encoding/json ten times as many.
func TooDeep(raw json.RawMessage) bool {
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

const maxImage = 8 << 20

func clipValue(path string, v any, text func(path, s string) string) any {
	switch v := v.(type) {
	case string:
		return text(path, v)
	case []any:
		for i := range v {
			v[i] = clipValue(fmt.Sprintf("%s/%d", path, i), v[i], text)
		}
	case map[string]any:
		data, isText := v["data"].(string)
		_, hasType := v["mimeType"].(string)
		for k := range v {
			if k == "data" && isText && hasType && len(data) <= maxImage {
				continue
			}
			v[k] = clipValue(path+"/"+pointerName.Replace(k), v[k], text)
		}
	}
	return v
}

// Grew reports whether nothing but text was added to an entry that is stored already.
func (c Change) Grew() bool { return c.Append != nil && c.Append.Offset > 0 }

// ReasonHibernated is the reason of a NoteClosed when the agent was ended to save memory.
const ReasonHibernated = "hibernated"

// Reasons of a NoteReady, beside the methods new, resume and load.
const (
	RestoredFresh  = "fresh"         // begun anew: the agent has not opened its stored session
	RestoredImport = "import"        // imported with its history
	RestoredUnseen = "import_unseen" // imported without a history
	RestoredFork   = "fork"          // forked from the parent again
)

// ReasonBranch is the reason of a NoteForked when the session goes on from before a message, and its agent has not seen the parent.
const ReasonBranch = "branch"

// imported is the state of an import: entries are held back while a history is taken in.
type imported struct {
	running bool
	held    []*Entry
	isHeld  map[*Entry]bool
}

// ReasonNoSignal is the reason of a NoteInterrupted when no signal could be sent.
const ReasonNoSignal = "no_signal"

// Projection is the version of the rules by which frames become entries. Raise Projection with every change that makes other entries of
// frames that are stored already: transcripts of earlier versions are then rebuilt.
const Projection = 13

// PerFrame is the distance of two frames in Entry.Seq: a frame makes at most two entries, so that there is room.
const PerFrame = 16
