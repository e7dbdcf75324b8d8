package editor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"deskhand/backend/acp"
)

// shown is a session that is open in the editor. shown follows the session's feed, which announces changes, and reads the journal, which holds
// them. A single goroutine does this and handles the editor's requests about the session, in order.
type shown struct {
	e    *editor
	id   string
	ctx  context.Context //nolint:containedctx // ends when the session is closed in the editor
	stop context.CancelFunc

	mu     sync.Mutex // protects wishes, left and heir
	wishes []wish
	left   bool          // no goroutine handles wishes any more
	heir   bool          // another opening of the same session takes over the prompts
	more   chan struct{} // receives a value when there are wishes

	before *shown        // the previous opening of the same session
	gone   chan struct{} // closed when the state no longer changes

	// The following fields belong to the session's goroutine.
	now     session
	at      int64 // the last frame applied
	unread  bool  // later frames could not be read, and will be read again
	mirror  *mirror
	opening func(result any, failure *acp.Error) // answers the request that opens the session; nil afterwards
	prompts map[string]*prompt                   // the editor's prompts, by turn
	unsure  []string                             // prompts that left the queue while the journal could not be read
	asks    map[string]*ask                      // requests open in the editor, by id
	changes map[string]request                   // changes of settings that the agent has not answered, by the agent's id
	unready []request                            // changes of settings that wait for a ready agent
	told    facts
}

// facts is the state of the session that the editor knows.
type facts struct {
	title   string
	options string
	mode    string
}

// open opens a session. When the session is open already, the new opening takes over the unanswered prompts, so that a turn that the editor
// waits for goes on.
func (e *editor) open(id string, opening func(any, *acp.Error), begin func(*shown)) *shown {
	ctx, stop := context.WithCancel(e.ctx)
	e.mu.Lock()
	s := &shown{
		e: e, id: id, ctx: ctx, stop: stop, more: make(chan struct{}, 1), gone: make(chan struct{}), mirror: newMirror(e.takes), opening: opening,
		prompts: map[string]*prompt{}, asks: map[string]*ask{}, changes: map[string]request{},
	}
	s.before = e.shown[id]
	e.shown[id] = s
	e.mu.Unlock()
	if s.before != nil {
		s.before.mu.Lock()
		s.before.heir = true
		s.before.mu.Unlock()
		s.before.stop()
	}
	s.mirror.out = s.update
	s.mirror.pass = func(method string, params json.RawMessage) { e.wire.notify(method, params) }
	s.mirror.ours = s.began
	s.mirror.ended = s.turnEnded
	e.work.Go(func() {
		defer stop()
		s.run(begin)
	})
	return s
}

// wish is work for the session's goroutine. left is called instead when the goroutine has ended, so that every request gets an answer.
type wish struct {
	do   func()
	left func() // nil = nobody waits
}

// errLeft is the answer to a request for a session that is not open any more.
func errLeft() *acp.Error {
	return &acp.Error{Code: acp.CodeResourceNotFound, Message: "this session is not open here any more: load it first"}
}

// request queues f, or fails r when the session is closed.
func (s *shown) request(r request, f func()) {
	s.wish(wish{f, func() { s.e.wire.fail(r.id, errLeft()) }})
}

// do queues f for the session's goroutine. do does not wait.
func (s *shown) do(f func()) { s.wish(wish{do: f}) }

func (s *shown) wish(w wish) {
	s.mu.Lock()
	if s.left {
		s.mu.Unlock()
		if w.left != nil {
			w.left()
		}
		return
	}
	s.wishes = append(s.wishes, w)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *shown) run(begin func(*shown)) {
	defer s.leave()
	s.inherit()
	first, ok := s.poll("", 0)
	if !ok {
		return
	}
	begin(s)
	batches := make(chan batch)
	s.e.work.Go(func() { s.follow(first, batches) })
	for {
		select {
		case b := <-batches:
			s.take(b)
		case <-s.more:
			s.mu.Lock()
			list := s.wishes
			s.wishes = nil
			s.mu.Unlock()
			for i, w := range list {
				if s.ctx.Err() != nil { // a wish has closed the session
					s.mu.Lock()
					s.wishes = append(list[i:], s.wishes...)
					s.mu.Unlock()
					return
				}
				w.do()
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// inherit takes over the prompts of the previous opening, their position in the journal, and the prompts whose state is unknown.
func (s *shown) inherit() {
	if s.before == nil {
		return
	}
	<-s.before.gone
	if len(s.before.prompts) > 0 {
		s.prompts, s.at, s.unsure = s.before.prompts, s.before.at, s.before.unsure
	}
	s.before = nil
}

// leave answers the requests that the editor still waits for, unless another opening has taken them over. The session goes on.
func (s *shown) leave() {
	defer close(s.gone)
	s.mu.Lock()
	heir := s.heir
	s.mu.Unlock()
	if s.opening != nil {
		s.opening(nil, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"})
	}
	for id, p := range s.prompts {
		if !heir {
			delete(s.prompts, id)
			s.e.wire.answer(p.id, map[string]any{"stopReason": "cancelled"})
		}
	}
	for _, a := range s.asks {
		s.e.wire.withdraw(a.id)
	}
	for _, r := range s.changes {
		s.e.wire.fail(r.id, errLeft())
	}
	for _, r := range s.unready {
		s.e.wire.fail(r.id, errLeft())
	}
	s.mu.Lock()
	s.left = true
	list := s.wishes
	s.wishes = nil
	s.mu.Unlock()
	for _, w := range list {
		if w.left != nil {
			w.left()
		}
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.e.shown[s.id] == s {
		delete(s.e.shown, s.id)
	}
}

// follow passes the session's events to batches until the context ends.
func (s *shown) follow(from batch, batches chan<- batch) {
	for {
		b, ok := s.poll(from.Gen, from.Seq)
		if !ok {
			return
		}
		from = b
		if !b.Reset && len(b.Events) == 0 {
			continue
		}
		select {
		case batches <- b:
		case <-s.ctx.Done():
			return
		}
	}
}

// poll repeats the call until there is an answer, since another Deskhand may take over the sessions at any moment.
func (s *shown) poll(gen string, after int64) (batch, bool) {
	const pause = 200 * time.Millisecond
	for told := false; ; {
		b, err := s.e.client.events(s.ctx, gen, after, s.id)
		if err == nil {
			return b, true
		}
		if s.ctx.Err() == nil && !told {
			told = true
			s.e.tell("Deskhand does not answer: %s", err)
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return batch{}, false
		}
	}
}

// news is the content of a batch of events.
type news struct {
	now      *session
	requests []asking
	queue    []queued
	unqueued []string
	removed  bool
}

// queued is a waiting prompt, with the members that matter for an editor.
type queued struct{ ID, Held string }

func read(events []event) (n news) {
	for _, ev := range events {
		switch ev.Type {
		case "session.upsert":
			var now session
			if json.Unmarshal(ev.Data, &now) == nil {
				n.now = &now
			}
		case "session.removed":
			n.removed = true
		case "request.upsert":
			var r asking
			if json.Unmarshal(ev.Data, &r) == nil {
				n.requests = append(n.requests, r)
			}
		case "queue.upsert":
			var item queued
			if json.Unmarshal(ev.Data, &item) == nil {
				n.queue = append(n.queue, item)
			}
		case "queue.removed":
			var gone struct{ ID string }
			if json.Unmarshal(ev.Data, &gone) == nil {
				n.unqueued = append(n.unqueued, gone.ID)
			}
		}
	}
	return n
}

// take handles a batch of events.
func (s *shown) take(b batch) {
	n := read(b.Events)
	if n.removed {
		s.e.tell("the session %s was deleted", s.id)
		s.stop()
		return
	}
	if b.Reset {
		n.requests = s.refresh()
	}
	if n.now != nil {
		s.now = *n.now
	}
	if s.opening != nil {
		if s.opened() {
			s.start()
		}
		return // start reads the open requests
	}
	whole := s.catchUp()
	for _, r := range n.requests {
		s.requested(r)
	}
	for _, item := range n.queue {
		s.held(item)
	}
	s.unsure = append(s.unsure, n.unqueued...)
	if whole { // else the prompts may be turns by now
		for _, id := range s.unsure {
			s.unqueued(id)
		}
		s.unsure = nil
	}
	if b.Reset {
		s.compare()
	}
}

// catchUp brings the editor up to date. whole is false when the journal could not be read completely.
func (s *shown) catchUp() (whole bool) {
	whole = s.flush()
	s.tellFacts()
	s.settleChanges()
	return whole
}

// refresh reads the state that lost events would have reported.
func (s *shown) refresh() []asking {
	if err := s.reread(); err != nil && s.ctx.Err() == nil {
		s.e.tell("%s", err)
	}
	return s.inbox()
}

// reread reads the session anew, so that ended parts, such as a turn, are gone.
func (s *shown) reread() error {
	var now session
	if err := s.call(http.MethodGet, "", nil, &now); err != nil {
		return err
	}
	s.now = now
	return nil
}

// inbox lists this session's waiting requests. A request that is open in the editor and not in the list has been answered.
func (s *shown) inbox() []asking {
	var page struct{ Items []asking }
	if err := s.e.client.call(s.ctx, http.MethodGet, "inbox", nil, &page); err != nil {
		return nil
	}
	list := slices.DeleteFunc(page.Items, func(r asking) bool { return r.Session != s.id })
	for id := range s.asks {
		if !slices.ContainsFunc(list, func(r asking) bool { return r.ID == id }) {
			s.resolved(id)
		}
	}
	return list
}

// flush applies the journal's new frames. whole is false when some could not be read.
func (s *shown) flush() (whole bool) {
	const most = 500
	for !whole {
		q := url.Values{"after": {strconv.FormatInt(s.at, 10)}, "limit": {strconv.Itoa(most)}, "notes": {"true"}}
		var page framePage
		if err := s.call(http.MethodGet, "frames?"+q.Encode(), nil, &page); err != nil {
			if s.ctx.Err() == nil {
				s.e.tell("the journal cannot be read: %s", err)
			}
			break
		}
		if !s.apply(page.Items) {
			break
		}
		s.at = max(s.at, page.Next)
		whole = !page.More
	}
	s.mirror.settle()
	if !whole {
		s.again()
	}
	return whole
}

// again schedules another read of the journal, unless an event comes first.
func (s *shown) again() {
	const pause = 5 * time.Second
	if s.unread {
		return
	}
	s.unread = true
	time.AfterFunc(pause, func() {
		s.do(func() {
			if s.unread = false; s.opening == nil {
				s.take(batch{})
			}
		})
	})
}

// apply applies frames up to the first that cannot be read yet.
func (s *shown) apply(frames []frame) (all bool) {
	for _, f := range frames {
		f, ok := s.whole(f)
		if !ok {
			return false
		}
		s.mirror.apply(f)
		s.at = max(s.at, f.Seq)
	}
	return true
}

// whole is a frame with its full body. ok is false when the body may become readable later. A damaged frame is skipped.
func (s *shown) whole(f frame) (_ frame, ok bool) {
	if !f.Truncated {
		return f, true
	}
	err := s.call(http.MethodGet, "frames/"+strconv.FormatInt(f.Seq, 10), nil, &f.Body)
	if err != nil && s.ctx.Err() == nil {
		s.e.tell("a message of the agent cannot be read: %s", err)
	}
	refused, _ := err.(*problem) //nolint:errorlint // client wraps no problem
	return f, err == nil || refused != nil && refused.Status != http.StatusServiceUnavailable
}

// call calls the API about this session.
func (s *shown) call(method, path string, in, out any) error {
	at := "sessions/" + url.PathEscape(s.id)
	if path != "" {
		at += "/" + path
	}
	return s.e.client.call(s.ctx, method, at, in, out)
}

func (s *shown) update(update any) {
	s.e.wire.notify("session/update", map[string]any{"sessionId": s.id, "update": update})
}

// tellFacts sends changes of the session's title, settings and mode, whoever made them.
func (s *shown) tellFacts() {
	if s.now.Title != s.told.title {
		s.told.title = s.now.Title
		s.update(map[string]any{"sessionUpdate": "session_info_update", "title": s.now.Title})
	}
	list := s.options()
	if text := string(encoded(list)); text != s.told.options {
		s.told.options = text
		s.update(map[string]any{"sessionUpdate": "config_option_update", "configOptions": list})
	}
	if mode := modeOf(s.now.ConfigOptions).Value; mode != s.told.mode {
		s.told.mode = mode
		s.update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": mode})
	}
}
