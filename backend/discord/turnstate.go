package discord

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"
)

// turnState is a turn as far as known.
type turnState struct {
	session, turn string
	free          bool // a message of the agent outside of any turn; turn is its entry

	items   []item
	files   []given
	breaks  []mark
	ended   bool
	reason  string
	failure string
	stale   bool            // the store has more
	nothing bool            // there is no such turn
	read    time.Time       // when the store was last read
	changed time.Time       // when a text was last added
	version int             // counts the changes
	waiters []chan struct{} // closed when everything known is shown
}

// teller shows the turns of a conversation, one after the other.
type teller struct {
	o       *output
	session string
	wake    chan struct{} // holds one element: something has changed
	end     context.CancelFunc

	mu    sync.Mutex   // protects the fields below, and the tellings
	turns []*turnState // the first is being shown
	told  []string     // the turns that are shown to their end, the newest last
}

// rememberedTurns is how many finished turns are known by their names, so that late events of them begin nothing new.
const rememberedTurns = 64

// freeQuiet is how long a message outside of turns must not grow to be complete.
const freeQuiet = 2 * time.Second

func (te *teller) stir() {
	select {
	case te.wake <- struct{}{}:
	default: // the teller will look anyhow
	}
}

func (te *teller) run(ctx context.Context) {
	for ctx.Err() == nil {
		te.mu.Lock()
		var t *turnState
		if len(te.turns) > 0 {
			t = te.turns[0]
		}
		te.mu.Unlock()
		if t == nil {
			te.await(ctx)
			continue
		}
		whole := te.tell(ctx, t)
		if ctx.Err() != nil {
			return // the next start continues
		}
		te.drop(t, whole)
		if !whole { // after drop, which must not drop the turns that are then read
			te.o.missed(te.session)
		}
	}
}

// drop removes the first turn. whole says that all of the turn is shown, and that no event begins the turn again.
func (te *teller) drop(t *turnState, whole bool) {
	te.mu.Lock()
	defer te.mu.Unlock()
	te.turns = te.turns[1:]
	if whole {
		te.told = append(te.told, t.turn)
	}
	te.told = te.told[max(0, len(te.told)-rememberedTurns):]
	t.release()
}

// release wakes the goroutines that wait until everything is shown.
func (t *turnState) release() {
	for _, w := range t.waiters {
		close(w)
	}
	t.waiters = nil
}

// breakOff makes the next text of the running turn begin a new message. The channel is closed when the earlier text is shown; nil = no
// turn runs.
func (te *teller) breakOff() <-chan struct{} {
	te.mu.Lock()
	defer te.mu.Unlock()
	if len(te.turns) == 0 {
		return nil
	}
	t := te.turns[len(te.turns)-1]
	if t.ended || t.free {
		return nil
	}
	var m mark
	if n := len(t.items); n > 0 {
		m = mark{t.items[n-1].id, len(t.items[n-1].text)}
	}
	if !slices.Contains(t.breaks, m) {
		t.breaks = append(t.breaks, m)
	}
	w := make(chan struct{})
	t.waiters = append(t.waiters, w)
	t.version++
	te.stir()
	return w
}

// post is a message as it is in the channel.
type post struct {
	id   snowflake.ID // 0 = has to be made again
	text string
	at   time.Time // when the message was last changed
	gone bool      // the message was deleted, and stays so
}

// showing is a turn on its way into the channel. Only the teller's goroutine uses a showing.
type showing struct {
	o  *output
	te *teller
	t  *turnState

	channel  snowflake.ID
	reply    snowflake.ID // the message that the turn answers; 0 = none
	answers  bool         // the message that began the turn is in the channel
	row      postRecord
	posts    []post
	blocked  map[int]bool // leaves that Discord refuses
	ride     int          // how many files go with a message
	late     bool         // files wait for the end
	ended    bool
	uploads  int      // failed uploads in a row
	failures int      // failed calls in a row
	tried    *sending // not found in the channel; its nonce is still valid
}

// view is the wanted look of a turn.
type view struct {
	leaves  []leaf
	ended   bool
	nothing bool          // there is no such turn
	unread  time.Duration // until the store is read again
	quiet   time.Duration // until a message outside of turns is complete
	version int
}

// op is a call to be made.
type op struct {
	at     int // the number of the leaf; -1 = only files
	text   string
	speaks bool
	files  []int
	make   bool // a message has to be made
}

// tell shows a turn until all of the turn is shown (whole is true), the turn loses its channel, or ctx ends.
func (te *teller) tell(ctx context.Context, t *turnState) (whole bool) {
	s := &showing{o: te.o, te: te, t: t, ride: mostFiles, blocked: map[int]bool{}}
	for begun := false; !begun; {
		switch s.begin(ctx) {
		case here:
			begun = true
		case nowhere:
			return true
		case unbound:
			return false
		case asleep:
			te.await(ctx)
		case unknown:
			_ = pause(ctx, s.later()) // ctx is checked below
		}
		if ctx.Err() != nil {
			return false
		}
	}
	for ctx.Err() == nil {
		wait, done := s.step(ctx)
		switch {
		case done:
			s.row.done = true
			s.save(ctx)
			return !s.row.Broken
		case wait > 0: // later events are looked at then: no call may come before
			_ = pause(ctx, wait) // the loop checks ctx
		case wait < 0:
			te.await(ctx)
		}
	}
	return false
}

// await waits until something has changed.
func (te *teller) await(ctx context.Context) {
	select {
	case <-te.wake:
	case <-ctx.Done():
	}
}

// where says where a turn is to be shown.
type where int

const (
	here    where = iota
	nowhere       // the turn belongs to another channel, or is shown to its end
	unbound       // the conversation has no channel
	asleep        // the surface is off
	unknown       // the record of the turn cannot be read
)

// begin finds the channel of the turn, and the part that is shown already.
func (s *showing) begin(ctx context.Context) where {
	channel, bound := s.o.s.bindings.channelOf(s.t.session)
	switch {
	case !bound:
		return unbound
	case !s.o.enabled():
		return asleep
	}
	row, found, err := s.o.read(ctx, s.t.session, s.t.turn)
	if err != nil {
		s.o.warn(ctx, "what is shown of a turn cannot be read", s.t.session, err)
		return unknown
	}
	if found && (row.done && !row.Broken && !s.t.free || row.channel != channel) {
		return nowhere
	}
	s.failures = 0
	if !s.t.free {
		var from []snowflake.ID
		if from, s.answers = s.o.s.in.from(ctx, s.t.session, s.t.turn); len(from) > 0 {
			s.reply = from[len(from)-1]
		}
	}
	s.channel, s.row = channel, row
	s.row.channel, s.row.done, s.row.Broken = channel, false, false
	for i, id := range row.Messages {
		s.posts = append(s.posts, post{id: id, gone: id == 0 && i < len(row.Messages)-1})
	}
	s.te.mu.Lock()
	s.t.breaks = append(slices.Clone(row.Breaks), s.t.breaks...)
	s.te.mu.Unlock()
	s.save(ctx)
	return here
}

// save stores the record of the turn. After a failure the turn is shown all the same.
func (s *showing) save(ctx context.Context) {
	s.row.Messages = make([]snowflake.ID, len(s.posts))
	for i, p := range s.posts {
		s.row.Messages[i] = p.id
	}
	s.o.warn(ctx, "what is shown of a turn cannot be written", s.t.session, s.o.write(ctx, s.t.session, s.t.turn, s.row))
}

// step makes a call, or returns how long there is nothing to do; less than 0 = until something changes.
func (s *showing) step(ctx context.Context) (wait time.Duration, done bool) {
	if channel, ok := s.o.s.bindings.channelOf(s.t.session); !ok || channel != s.channel {
		s.row.Broken = true // the text is no longer for the people of the channel
		return 0, true
	}
	if !s.o.enabled() {
		return -1, false // continues when the surface is on again
	}
	if s.row.Sending != nil && !s.adopt(ctx) {
		return s.later(), false
	}
	v := s.look(ctx)
	if v.nothing && len(s.posts) == 0 {
		return 0, true
	}
	next, wait, found := s.next(v)
	switch {
	case found:
		return s.do(ctx, next)
	case wait > 0:
		return wait, false
	case v.unread > 0:
		return v.unread, false
	}
	s.te.mu.Lock()
	if s.t.version == v.version {
		s.t.release()
	}
	s.te.mu.Unlock()
	files := s.waiting(s.ride)
	switch {
	case v.quiet > 0:
		return v.quiet, false
	case !v.ended:
		return -1, false
	case len(files) > 0:
		return s.do(ctx, op{at: -1, files: files, make: true})
	}
	return 0, true
}

// look lays the turn out in its present state.
func (s *showing) look(ctx context.Context) view {
	unread := s.o.refresh(ctx, s.te, s.t)
	s.te.mu.Lock()
	defer s.te.mu.Unlock()
	t := s.t
	s.take(t.files)
	v := view{ended: t.ended, nothing: t.nothing, version: t.version, unread: unread}
	if t.free {
		v.quiet = time.Until(t.changed.Add(s.o.s.client.patience(freeQuiet)))
		v.ended = v.quiet <= 0
	}
	s.ended = v.ended
	items, breaks := slices.Clone(t.items), slices.Clone(t.breaks)
	if s.answers && len(items) > 0 && items[0].asked { // the message that began the turn is in the channel
		for i := range breaks {
			if breaks[i].Item == items[0].id {
				breaks[i].Item = ""
			}
		}
		items = items[1:]
	}
	s.row.Breaks = slices.Clone(t.breaks)
	if v.ended {
		items = append(items, s.told()...)
		if line := stopLine(t.reason, t.failure); line != "" {
			items = append(items, item{kind: itemLine, id: t.turn, text: line})
		}
	}
	v.leaves = s.complete(lay(items, breaks), v)
	return v
}

// complete ensures that a turn has a message, even without text.
func (s *showing) complete(leaves []leaf, v view) []leaf {
	switch {
	case len(leaves) > 0:
	case v.ended && slices.ContainsFunc(s.row.Files, func(g given) bool { return g.Told == "" }):
		return []leaf{{}} // files make the first message
	case v.ended:
		return []leaf{{text: doneLine}}
	case !s.t.free:
		return []leaf{{text: workingLine}}
	}
	return leaves
}

// next returns the call for the first message whose text is not as wanted.
func (s *showing) next(v view) (next op, wait time.Duration, found bool) {
	for i := range v.leaves {
		next := s.wanted(v, i)
		if s.agrees(next) {
			continue
		}
		if !next.make {
			wait = time.Until(s.posts[i].at.Add(s.o.pace()))
		}
		return next, wait, wait <= 0
	}
	return op{}, 0, false
}

// wanted returns the call that gives a message its wanted text and files.
func (s *showing) wanted(v view, at int) op {
	l := v.leaves[at]
	o := op{at: at, text: l.text, speaks: l.speaks, files: s.riding(v, at), make: at >= len(s.posts) || s.posts[at].id == 0}
	switch {
	case s.blocked[at]:
		o.text = blockedLine
	case l.text == "" && len(o.files) == 0:
		o.text = belowLine
	}
	return o
}

// agrees reports whether a message is as wanted already, or never will be.
func (s *showing) agrees(o op) bool {
	if o.at >= len(s.posts) {
		return false
	}
	p := s.posts[o.at]
	without := o.text == belowLine && s.holds(p.id) // a message with files needs no words
	return p.gone || !o.make && len(o.files) == 0 && (p.text == o.text || without)
}

// holds reports whether a message has files.
func (s *showing) holds(id snowflake.ID) bool {
	return slices.ContainsFunc(s.row.Files, func(g given) bool { return g.Sent == id.String() })
}

// do makes a call, and notes the result.
func (s *showing) do(ctx context.Context, o op) (wait time.Duration, done bool) {
	files, ok := s.load(ctx, o.files)
	if !ok {
		s.save(ctx)
		return 0, false // a line has been added
	}
	var err error
	if o.make {
		err = s.send(ctx, o, files)
	} else {
		err = s.edit(ctx, o, files)
	}
	if err != nil {
		return s.failed(ctx, o, err)
	}
	s.failures = 0
	if b, _ := s.o.s.bindings.bound(s.channel); b.Problem != "" {
		s.o.warn(ctx, "a binding cannot be written", s.t.session, s.o.s.bindings.troubled(ctx, s.channel, ""))
	}
	return 0, false
}

// send makes a message. The record is stored before the call and after it.
func (s *showing) send(ctx context.Context, o op, files []*discord.File) error {
	now := &sending{At: o.at, Text: o.text, Speaks: o.speaks, Files: o.files, Nonce: newNonce(), Since: s.o.s.client.now()}
	again := s.tried != nil && s.tried.At == o.at && slices.Equal(s.tried.Files, o.files)
	if again {
		now.Nonce, now.Since = s.tried.Nonce, s.tried.Since
	}
	s.row.Sending, s.tried = now, nil
	s.save(ctx)
	m := discord.MessageCreate{Content: o.text, Files: files, Nonce: now.Nonce}
	switch {
	case o.at < 0:
		m.MessageReference = answerTo(s.last())
	case o.at == 0:
		m.MessageReference = answerTo(s.reply)
	}
	made, err := s.o.create(ctx, s.channel, m)
	if err != nil {
		if verdictOf(err) != unclear { // not made
			s.row.Sending = nil
		}
		return err
	}
	if again {
		now.Text = made.Content // may be the message of the first try
	}
	s.made(made.ID)
	s.save(ctx)
	return nil
}

// made takes the id of the message that was being made.
func (s *showing) made(id snowflake.ID) {
	was := s.row.Sending
	s.row.Sending = nil
	s.sent(was.Files, id)
	s.row.Spoke = s.row.Spoke || was.Speaks || len(was.Files) > 0
	if was.At < 0 {
		return
	}
	for len(s.posts) <= was.At {
		s.posts = append(s.posts, post{})
	}
	s.posts[was.At] = post{id: id, text: was.Text, at: time.Now()}
}

// adopt searches the message that was about to be made, and returns false while it is unknown whether the message was made.
func (s *showing) adopt(ctx context.Context) bool {
	was := s.row.Sending
	const before, most = time.Minute, 100
	after := max(snowflake.New(was.Since.Add(-before)), s.newest())
	list, err := s.o.s.client.rest.GetMessages(s.channel, 0, 0, after, most, rest.WithCtx(ctx))
	if v := verdictOf(err); err != nil && (v == unclear || v == off) {
		return false
	}
	taken, err := s.o.taken(ctx, s.t.session, s.channel)
	if err != nil {
		s.o.warn(ctx, "what is shown of a turn cannot be read", s.t.session, err)
		return false
	}
	for _, m := range list {
		if m.ID > after && !taken[m.ID] && s.is(m, was) {
			s.made(m.ID)
			s.save(ctx)
			return true
		}
	}
	s.row.Sending, s.tried = nil, was
	return true
}

// newest returns the newest message that must be older than a message made now.
func (s *showing) newest() (id snowflake.ID) {
	id = s.reply
	for _, p := range s.posts {
		id = max(id, p.id)
	}
	for _, g := range s.row.Files {
		id = max(id, idOf(g.Sent))
	}
	return id
}

// is reports whether a message is the message that was about to be made.
func (s *showing) is(m discord.Message, was *sending) bool {
	self := s.o.s.client.self()
	if !m.Author.Bot || self != 0 && m.Author.ID != self {
		return false
	}
	if m.Nonce != "" {
		return string(m.Nonce) == was.Nonce
	}
	same := slices.EqualFunc(m.Attachments, was.Files, func(a discord.Attachment, i int) bool { return a.Filename == fileName(s.row.Files[i].Name) })
	return same && m.Content == strings.TrimSpace(was.Text)
}

// last returns the last message that can be answered.
func (s *showing) last() snowflake.ID {
	for _, p := range slices.Backward(s.posts) {
		if p.id != 0 && !p.gone {
			return p.id
		}
	}
	return 0
}

// edit changes a message.
func (s *showing) edit(ctx context.Context, o op, files []*discord.File) error {
	p := &s.posts[o.at]
	update := discord.MessageUpdate{Content: &o.text, AllowedMentions: nobodyPinged()}
	if len(files) > 0 {
		update.Files, update.Attachments = files, attached(files)
	}
	_, err := s.o.s.client.rest.UpdateMessage(s.channel, p.id, update, rest.WithCtx(ctx))
	p.at = time.Now()
	if err != nil {
		return err
	}
	p.text = o.text
	s.sent(o.files, p.id)
	if spoke := s.row.Spoke; len(o.files) > 0 || o.speaks && !spoke {
		s.row.Spoke = true
		s.save(ctx)
	}
	return nil
}

// failed takes that a call failed: failed makes the changes that are needed before another try, and returns how long to wait.
func (s *showing) failed(ctx context.Context, o op, err error) (wait time.Duration, done bool) {
	v := verdictOf(err)
	if v != unclear && v != off {
		s.o.warn(ctx, "something cannot be shown", s.t.session, err)
	}
	switch v {
	case noChannel:
		s.o.warn(ctx, "a binding cannot be written", s.t.session, s.o.s.bindings.troubled(ctx, s.channel, problemGone))
		return 0, true
	case lost, archived, foreign:
		return s.lost(ctx, o, v), false
	case forbidden, large, unwanted:
		return s.refused(ctx, o, v), false
	case unclear:
		if len(o.files) > 0 && isServers(err) {
			s.failedUpload(o)
		}
	case off:
	}
	return s.later(), false
}

// lost takes that a message cannot be changed any more: it was deleted, it belongs to another bot, or its thread was archived, which a
// new message opens again.
func (s *showing) lost(ctx context.Context, o op, v verdict) time.Duration {
	if o.make {
		return s.refused(ctx, o, unwanted)
	}
	p := &s.posts[o.at]
	if v == lost && s.unsent(p.id) {
		s.row.Spoke = false
	}
	// A full message could be read before it was deleted; the growing message continues in a new message.
	*p = post{gone: o.at < len(s.posts)-1}
	s.save(ctx)
	return 0
}

// refused takes that Discord refuses a call.
func (s *showing) refused(ctx context.Context, o op, v verdict) time.Duration {
	defer s.save(ctx)
	switch {
	case len(o.files) > 0 && v == large:
		s.refusedFiles(o.files, s.largeLine)
	case len(o.files) > 0 && o.at >= 0:
		s.late = true // either the files or the words are refused
	case len(o.files) > 0:
		s.refusedFiles(o.files, s.missedLine)
	case v == forbidden:
		s.o.warn(ctx, "a binding cannot be written", s.t.session, s.o.s.bindings.troubled(ctx, s.channel, problemForbidden))
		return s.o.s.client.patience(time.Minute)
	case s.blocked[o.at]: // even the replacement is refused
		for len(s.posts) <= o.at {
			s.posts = append(s.posts, post{})
		}
		s.posts[o.at].gone = true
	default:
		s.blocked[o.at] = true
	}
	return 0
}

// later returns how long to wait after a failure that may pass.
func (s *showing) later() time.Duration {
	const first, longest = 500 * time.Millisecond, 30 * time.Second
	wait := min(longest, first<<min(s.failures, 10))
	s.failures++
	return s.o.s.client.patience(wait)
}
