package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// The reader of the feed. The texts of a turn are taken from the events of the bus. After a reset, and at the start, a turn is read from
// the store; whether the store already includes the events that follow cannot be known for a text, so such a text is read again after
// each addition.

// The types of events that are followed.
const (
	feedSaid     = "evt.adapter.message.created"
	feedState    = "evt.request.lifecycle.changed"
	feedText     = "evt.agent.output.delta.text"
	feedFile     = "evt.agent.output.response.binary"
	feedTool     = "evt.agent.output.toolcall"
	feedRequest  = "request.upsert"
	feedSession  = "session.upsert"
	feedRemoved  = "session.removed"
	feedPatience = 25 * time.Second
	turnDone     = "done"
)

// run reads the feed of all conversations until ctx ends. As the only reader, run also passes requests to asks, and deleted conversations
// to in.
func (o *output) run(ctx context.Context) {
	defer o.close()
	q := feed.Query{Wait: feedPatience, Types: []string{feedSaid, feedState, feedText, feedFile, feedTool, feedRequest, feedSession, feedRemoved}}
	for ctx.Err() == nil && o.hear(ctx, &q) {
	}
}

// hear takes events until the followed conversations may have changed, and returns false when no more events come.
func (o *output) hear(ctx context.Context, q *feed.Query) bool {
	listen := o.listen(ctx)
	if q.Gen != "" { // otherwise everything is read in a moment
		o.look(ctx)
	}
	for {
		batch, err := o.client().Feed().After(listen, *q)
		if listen.Err() != nil { // the batch is requested again
			return true
		}
		if err != nil {
			return false
		}
		q.Gen, q.After = batch.Gen, batch.Seq
		if batch.Reset { // the first batch, too
			o.reload(ctx)
			continue
		}
		o.follow(ctx, batch.Events)
	}
}

// listen returns a context that ends when the followed conversations may have changed.
func (o *output) listen(ctx context.Context) context.Context {
	ctx, end := context.WithCancel(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rouse = end
	return ctx
}

// look updates the followed conversations. New conversations are read first, because their events were not noted.
func (o *output) look(ctx context.Context) {
	o.reading.Lock()
	defer o.reading.Unlock()
	o.catchUp(ctx)
}

// catchUp is look for callers that hold reading.
func (o *output) catchUp(ctx context.Context) {
	now := map[string]snowflake.ID{}
	if o.enabled() {
		for _, b := range o.s.bindings.list() {
			if b.Session != "" {
				now[b.Session] = idOf(b.Channel)
			}
		}
	}
	o.mu.Lock()
	was := o.follows
	o.follows = maps.Clone(now)
	o.mu.Unlock()
	for id, channel := range now {
		if was[id] == channel {
			continue
		}
		if err := o.resume(ctx, id); err != nil {
			o.warn(ctx, "a conversation cannot be read", id, err)
			o.mu.Lock()
			delete(o.follows, id) // tried again at the next events
			o.mu.Unlock()
		}
	}
}

// followed reports whether a conversation is followed.
func (o *output) followed(session string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.follows[session]
	return is
}

// follow takes events. Requests come last: the tool call of a request is reported behind the request, and belongs above it.
func (o *output) follow(ctx context.Context, events []feed.Event) {
	o.reading.Lock()
	defer o.reading.Unlock()
	o.catchUp(ctx)
	var asked []requests.Request
	for _, e := range events {
		switch e.Type {
		case feedRequest:
			var r requests.Request
			if json.Unmarshal(e.Data, &r) == nil {
				asked = append(asked, r)
			}
		case feedSession:
			o.s.bindings.sessionThere(e.Session)
		case feedRemoved:
			o.s.bindings.sessionGone(e.Session)
			o.forget(e.Session)
			o.s.requests.refresh()
		default:
			if o.followed(e.Session) {
				o.note(ctx, e)
			}
		}
	}
	for _, r := range asked {
		o.s.requests.changed(r)
	}
}

// note takes an event of a turn.
func (o *output) note(ctx context.Context, e feed.Event) {
	var b session.BusEvent
	te := o.teller(ctx, e.Session)
	if te == nil || json.Unmarshal(e.Data, &b) != nil {
		return
	}
	te.mu.Lock()
	defer te.mu.Unlock()
	turn, free := b.RequestID, false
	if turn == "" {
		turn, free = b.MessageID, true
	}
	if free && e.Type != feedText && e.Type != feedFile {
		return
	}
	t := te.find(turn, free, e.Type == feedSaid)
	if t == nil {
		return
	}
	t.note(e.Type, b)
	t.version++
	t.changed = time.Now()
	te.stir()
}

// find returns a turn that is shown, or begins to show the turn; nil = the turn was shown to its end. A turn whose beginning was missed
// is read from the store.
func (te *teller) find(turn string, free, begins bool) *turnState {
	if i := slices.IndexFunc(te.turns, func(t *turnState) bool { return t.turn == turn }); i >= 0 {
		return te.turns[i]
	}
	told := slices.Contains(te.told, turn)
	if turn == "" || told && !free {
		return nil
	}
	t := &turnState{session: te.session, turn: turn, free: free, stale: told || !begins && !free}
	te.turns = append(te.turns, t)
	return t
}

// note applies an event to the turn.
func (t *turnState) note(kind string, b session.BusEvent) {
	switch kind {
	case feedSaid:
		t.put(item{id: b.MessageID, kind: itemSaid, text: b.Text, asked: len(t.items) == 0 && !t.stale})
	case feedTool:
		title := b.Title
		if title == "" {
			title = b.Kind
		}
		t.put(item{id: b.MessageID, kind: itemTool, text: title, status: b.Status})
	case feedText:
		t.add(b.MessageID, b.Delta)
	case feedFile:
		if b.Blob != nil {
			t.give(given{Entry: b.MessageID, SHA256: b.Blob.SHA256, Name: b.Filename})
		}
	case feedState:
		if b.State == turnDone {
			t.ended, t.reason = true, b.StopReason
			t.stale = t.stale || b.StopReason == "error" || b.StopReason == "agent_exited" // the reason is stored
		}
	}
}

// put replaces an item, or appends a new item.
func (t *turnState) put(it item) {
	if i := t.index(it.id); i >= 0 {
		it.asked = t.items[i].asked
		t.items[i] = it
		return
	}
	t.items = append(t.items, it)
}

func (t *turnState) index(id string) int {
	return slices.IndexFunc(t.items, func(it item) bool { return it.id == id })
}

// add adds to a text.
func (t *turnState) add(id, more string) {
	i := t.index(id)
	switch {
	case i < 0:
		t.items = append(t.items, item{id: id, kind: itemText, text: more})
	case t.items[i].stored:
		t.stale = true
	default:
		t.items[i].text += more
	}
}

func (t *turnState) give(g given) {
	if !slices.ContainsFunc(t.files, func(old given) bool { return old.Entry == g.Entry && old.SHA256 == g.SHA256 }) {
		t.files = append(t.files, g)
	}
}

// reload makes the messages fit the store: at the start, and after missed events.
func (o *output) reload(ctx context.Context) {
	o.mu.Lock()
	o.follows = map[string]snowflake.ID{}
	o.mu.Unlock()
	o.look(ctx)
	o.warn(ctx, "what is asked cannot be read", "", o.s.requests.reload(ctx))
}

// resume continues to show the open turns of a conversation: the turns that were being shown, the running turn, and turns that somebody
// began from the channel and has seen nothing of.
func (o *output) resume(ctx context.Context, id string) error {
	done, err := o.written(ctx, id)
	if err != nil {
		return err
	}
	const newest = 200
	tail, err := o.client().Transcripts().Entries(ctx, id, 0, newest)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	te := o.teller(ctx, id)
	if te == nil {
		return nil
	}
	open := map[string]bool{}
	for turn, is := range done {
		open[turn] = !is
	}
	for _, t := range tail.Turns {
		if _, known := done[t.ID]; known {
			continue
		}
		open[t.ID] = t.State != turnDone
		if !open[t.ID] {
			_, open[t.ID] = o.s.in.from(ctx, id, t.ID)
		}
	}
	te.resume(tail.Turns, open)
	return nil
}

// resume begins to show open turns, in the order in which they ran, and has the shown turns read again.
func (te *teller) resume(turns []session.Turn, open map[string]bool) {
	te.mu.Lock()
	defer te.mu.Unlock()
	for _, t := range te.turns {
		t.stale = true
		t.version++
	}
	names := make([]string, 0, len(open))
	for name, is := range open {
		if is {
			names = append(names, name)
		}
	}
	te.told = slices.DeleteFunc(te.told, func(name string) bool { return open[name] })
	ran := func(name string) int {
		return slices.IndexFunc(turns, func(t session.Turn) bool { return t.ID == name })
	}
	slices.SortFunc(names, func(a, b string) int { // turns that ended long ago are not in the list, and come first
		if i, j := ran(a), ran(b); i != j {
			return i - j
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if t := te.find(name, false, false); t != nil {
			t.stale = true
		}
	}
	te.stir()
}

// refresh reads a turn again when the store has more than is known, and returns when to read the turn again; 0 = all is known.
func (o *output) refresh(ctx context.Context, te *teller, t *turnState) (wait time.Duration) {
	te.mu.Lock()
	stale, version, due := t.stale, t.version, time.Until(t.read.Add(o.pace()))
	te.mu.Unlock()
	if !stale {
		return 0
	}
	if due > 0 {
		return due
	}
	entries, turn, err := o.recall(ctx, t.session, t.turn)
	o.warn(ctx, "a turn cannot be read", t.session, err)
	te.mu.Lock()
	defer te.mu.Unlock()
	t.read = time.Now()
	if err != nil {
		return o.pace()
	}
	t.recall(entries, turn)
	if t.stale = t.version != version; t.stale { // an event came meanwhile, which may or may not be in the store
		return o.pace()
	}
	return 0
}

// recall reads the entries of a turn, or the single entry outside of turns, and the turn, or nil.
func (o *output) recall(ctx context.Context, id, turn string) (entries []transcript.Entry, t *session.Turn, err error) {
	const page, most = 200, 200
	for before, pages := int64(0), 0; pages < most; pages++ {
		part, err := o.client().Transcripts().Entries(ctx, id, before, page)
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(part.Turns, func(s session.Turn) bool { return s.ID == turn }); i >= 0 {
			t = &part.Turns[i]
		}
		here, older := ofTurn(part.Items, turn)
		entries = append(here, entries...)
		if part.Next == 0 || older && (len(entries) > 0 || t != nil && t.State != turnDone) { // a running turn is the newest
			break
		}
		before = part.Next
	}
	return entries, t, nil
}

// ofTurn returns the entries of a turn, and whether an entry of another turn precedes them.
func ofTurn(list []transcript.Entry, turn string) (entries []transcript.Entry, older bool) {
	for _, e := range list {
		switch {
		case e.Turn == turn || e.Turn == "" && e.ID == turn:
			entries = append(entries, e)
		case e.Turn != "" && len(entries) == 0:
			older = true
		}
	}
	return entries, older
}

func (t *turnState) recallEntry(e *transcript.Entry) {
	switch e.Kind {
	case "user":
		t.put(item{id: e.ID, kind: itemSaid, text: e.Text, asked: len(t.items) == 0})
	case "agent":
		t.put(item{id: e.ID, kind: itemText, text: e.Text, stored: true})
	case "tool":
		t.put(item{id: e.ID, kind: itemTool, text: cmp.Or(e.Tool.Title, e.Tool.Kind), status: e.Tool.Status})
	case "attachment":
		for _, a := range e.Attachments {
			t.give(given{Entry: e.ID, SHA256: a.SHA256, Name: a.Filename})
		}
	}
}

// recall replaces the turn by its stored state.
func (t *turnState) recall(entries []transcript.Entry, turn *session.Turn) {
	if turn == nil && len(entries) == 0 { // an entry outside of turns may not be stored yet; a turn is stored before its events
		t.ended, t.nothing = t.ended || !t.free, !t.free
		return
	}
	t.nothing = false
	t.items, t.files = nil, nil
	for i := range entries {
		t.recallEntry(&entries[i])
	}
	if turn == nil { // an entry outside of turns
		t.free, t.ended = true, false
	}
	if turn != nil && turn.State == turnDone {
		t.ended, t.reason = true, turn.StopReason
		if turn.Error != nil {
			t.failure = turn.Error.Message
		}
	}
}
