package remote

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
)

const (
	endLimit    = 3 * time.Second
	lastWords   = 500 * time.Millisecond
	queueBytes  = 8 << 20   // of messages that have come and nobody has taken; the rest waits in the line
	itemBytes   = 128       // what one costs beside its bytes
	batchBytes  = 256 << 10 // of messages that Next gives at once
	batchLimit  = 4096
	firstPause  = 200 * time.Millisecond
	tellAfter   = time.Second            // a line that is made anew faster than this is no news
	quietFor    = 400 * time.Millisecond // how long nothing comes over a new line before what was held has come
	overtakes   = 2 * time.Second        // how long an answer of a POST waits for the stream, which has what was said before it
	unconfirmed = 250 * time.Millisecond // how long after it was written a request counts as delivered, where nothing confirms it
)

// Message is one message of the agent. Seq is its number in the runtime's log.
type Message struct {
	Seq  uint64
	Data []byte
}

// GapError tells that messages are lost between After and Next.
type GapError struct{ After, Next uint64 }

func (*GapError) Error() string { return "messages of the agent are lost" }

// DoubtError tells that it is not known whether the agent has got a request.
type DoubtError struct{ Method string }

func (*DoubtError) Error() string { return "it is not known whether the agent has got a request" }

// Line is how the connection to the runtime is.
type Line struct {
	State  string // LineUp, LineBroken, LineRefused
	Detail string
}

// The states of a line.
const (
	LineUp      = "up"
	LineBroken  = "broken"
	LineRefused = "refused" // the token is
)

// Start is which instance is wanted.
type Start struct {
	ServerID   string
	Agent, Cwd string
	Running    bool       // it was started before: read on, and start nothing
	After      uint64     // the last message of it that is known
	Line       func(Line) // hears how the line is, when that changes; it may block
}

// Exit is how the agent's process ended, as far as the runtime tells.
type Exit struct {
	Ended      bool
	Code       *int
	Signal     string
	StderrTail string
}

// item is what Next gives: a message, or an error that stands between two.
type item struct {
	Message
	err error
}

// call is a request that the agent was sent.
type call struct {
	answered chan struct{} // closed when its response was handed over
	byPost   bool          // and from its POST: the stream's copy is to be dropped

	written  atomic.Bool // in one of its tries it was, whole
	before   bool        // it may have been sent by the program before this one; of who sends it, and so is
	doubtful bool        // it may have arrived
}

// Instance is one agent in a runtime elsewhere. One goroutine reads its line, for as long as it is not let go; each request that waits for
// its answer in a POST has one of its own. Close and Leave wait for all of them.
type Instance struct {
	runtime *Runtime
	id      string
	start   Start
	ctx     context.Context //nolint:containedctx // the life of the line
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup
	kick    chan struct{} // of one: try the line now
	posting sync.RWMutex  // held for reading while a message goes out

	mu       sync.Mutex // protects the fields below
	queue    []item
	size     int
	last     uint64 // number of the last message that was taken from the line
	hole     uint64 // last when a hole was found behind it
	count    uint64 // of the messages that came over the line
	calls    map[acp.Key]*call
	answered acp.Key // the last of them
	asked    bool    // a message that starts it may have reached the runtime
	started  bool    // the runtime has it
	closing  bool    // and is told to end it
	final    error   // nothing comes any more
	exit     Exit
	up       bool
	made     int       // so many times the line was
	down     time.Time // since when it is not
	why      error     // that it is not
	heard    time.Time // when the line was made, or something last came over it
	partly   bool      // of a message at whose end it has not arrived yet, as far as that can be known
	full     bool      // what comes over it waits in it
	late     *time.Timer
	cut      context.CancelCauseFunc // breaks the line
	denied   error                   // what was sent last was refused for its token
	again    chan struct{}           // closed when a person wants it tried now
	changed  chan struct{}           // closed when something above has changed

	telling sync.Mutex // held while told is changed and told of
	told    Line
}

// Instance makes a line to an instance. It is started by the first message that is sent.
func (r *Runtime) Instance(s Start) *Instance {
	i := &Instance{
		runtime: r, id: s.ServerID, start: s, kick: make(chan struct{}, 1), last: s.After, started: s.Running,
		calls: map[acp.Key]*call{}, told: Line{State: LineUp}, changed: make(chan struct{}), again: make(chan struct{}),
	}
	i.ctx, i.stop = context.WithCancelCause(context.Background())
	i.wg.Go(i.run)
	return i
}

// run keeps the line.
func (i *Instance) run() {
	pause := firstPause
	for {
		before := i.came()
		err := i.stream(i.ctx)
		if i.ctx.Err() != nil || !i.broke(err) {
			return
		}
		if errors.Is(err, errHole) || errors.Is(err, errRenewed) {
			continue
		}
		if i.came() != before {
			pause = firstPause
		}
		rest := pause
		if !errors.Is(err, errNotThere) {
			pause = min(2*pause, i.runtime.cfg.Backoff)
		}
		if p, ok := errors.AsType[*ProblemError](err); ok {
			rest = max(rest, p.after)
		}
		rest += rand.N(rest/4 + 1) //nolint:gosec // so that many do not come at once
		select {
		case <-i.ctx.Done():
			return
		case <-i.kick:
			pause = firstPause
		case <-time.After(rest):
		}
	}
}

// broke notes that the line is broken; false = for good.
func (i *Instance) broke(err error) bool {
	i.mu.Lock()
	i.up = false
	if i.down.IsZero() {
		i.down = time.Now()
	}
	i.why = err
	gone := errors.Is(err, ErrGone)
	switch {
	case gone && i.closing:
		i.finishLocked(ErrClosed)
	case gone:
		i.finishLocked(ErrGone)
	}
	if i.late == nil {
		i.late = time.AfterFunc(tellAfter, i.tell)
	}
	i.mu.Unlock()
	if !gone {
		i.tell()
	}
	return !gone
}

// connected notes that the line is made.
func (i *Instance) connected() {
	i.mu.Lock()
	i.made++
	i.up, i.started, i.heard, i.partly, i.down, i.why = true, true, time.Now(), false, time.Time{}, nil
	if i.late != nil {
		i.late.Stop()
		i.late = nil
	}
	i.changedLocked()
	i.mu.Unlock()
	i.tell()
}

// hears notes that something came over the line: a part of a message where partly is set.
func (i *Instance) hears(partly bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.heard, i.partly = time.Now(), partly
}

// tell tells how the line is now, if that is news. One that nobody has an agent behind yet is told of by what is sent.
func (i *Instance) tell() {
	i.telling.Lock()
	defer i.telling.Unlock()
	i.mu.Lock()
	now := i.told
	switch {
	case i.final != nil || i.ctx.Err() != nil:
	case i.denied != nil:
		now = Line{LineRefused, i.denied.Error()}
	case i.up:
		now = Line{State: LineUp}
	case errors.Is(i.why, ErrRefused):
		now = Line{LineRefused, i.why.Error()}
	case i.started && !i.down.IsZero() && time.Since(i.down) >= tellAfter:
		now = Line{LineBroken, i.why.Error()}
	}
	i.mu.Unlock()
	if now == i.told {
		return
	}
	i.told = now
	if i.start.Line != nil {
		i.start.Line(now)
	}
}

// Retry has the line tried now, and not when its pause is over.
func (i *Instance) Retry() {
	i.mu.Lock()
	close(i.again)
	i.again = make(chan struct{})
	i.mu.Unlock()
	i.kickLine()
}

func (i *Instance) kickLine() {
	select {
	case i.kick <- struct{}{}:
	default:
	}
}

func (i *Instance) changedLocked() {
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *Instance) finishLocked(err error) {
	if i.final == nil {
		i.final = err
		i.changedLocked()
	}
}

func (i *Instance) finish(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.finishLocked(err)
}

func (i *Instance) came() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count
}

// begin is where the line goes on, and whether the runtime is known to have the instance. cut is how it is broken by us.
func (i *Instance) begin(cut context.CancelCauseFunc) (last uint64, begun bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut = cut
	return i.last, i.started
}

// renew has the line made anew: it may be dead and not know it.
func (i *Instance) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.up = false
	if i.cut != nil {
		i.cut(errRenewed)
	}
	i.kickLine()
}

// skip notes that the runtime holds nothing before oldest. When it counts anew, what it holds is new as well. It waits like enqueue.
func (i *Instance) skip(ctx context.Context, oldest uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.putLocked(item{err: &GapError{i.last, oldest}})
	i.last = max(oldest, 1) - 1
	i.awaitRoomLocked(ctx)
}

// enqueue takes a message from the line. It waits while too many have not been taken from us.
func (i *Instance) enqueue(ctx context.Context, n uint64, e event) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case n == 0:
		n = i.last // of a runtime that does not count
	case n <= i.last:
		return nil // it came before
	case n > i.last+1 && i.hole != i.last+1:
		i.hole = i.last + 1 // a runtime may leave out messages for a reader that was slow, and hold them still
		return errHole
	case n > i.last+1:
		i.putLocked(item{err: &GapError{i.last, n}})
	}
	i.last, i.heard = n, time.Now()
	i.count++
	switch {
	case e.tooBig:
		i.putLocked(item{err: &GapError{n - 1, n + 1}})
	case i.fresh(e.data):
		i.putLocked(item{Message: Message{n, e.data}})
	}
	i.awaitRoomLocked(ctx)
	return nil
}

// awaitRoomLocked waits while too many have not been taken from us.
func (i *Instance) awaitRoomLocked(ctx context.Context) {
	if i.size <= queueBytes {
		return
	}
	i.full = true
	defer func() {
		i.full, i.heard = false, time.Now() // the line is read from here on
		i.changedLocked()
	}()
	for i.size > queueBytes && ctx.Err() == nil {
		changed := i.changed
		i.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		i.mu.Lock()
	}
}

func (i *Instance) putLocked(it item) {
	i.queue = append(i.queue, it)
	i.size += it.cost()
	i.changedLocked()
}

func (it item) cost() int { return len(it.Data) + itemBytes }

// fresh looks at a message from the line, and tells whether it is to be handed over: the response that its POST has brought is not.
func (i *Instance) fresh(data []byte) bool {
	e, err := acp.Peek(data)
	switch {
	case err != nil:
	case e.Kind == acp.Response:
		c := i.calls[e.Key()]
		if c == nil {
			return true
		}
		delete(i.calls, e.Key())
		i.answered = e.Key()
		if c.byPost {
			return false
		}
		close(c.answered)
	case e.Kind == acp.Notification && e.Method() == "_adapter/agent_exited":
		var m struct {
			Params struct {
				Code       *int   `json:"code"`
				Signal     string `json:"signal"`
				StderrTail string `json:"stderrTail"`
			} `json:"params"`
		}
		_ = json.Unmarshal(data, &m) // what is not as it should be is not known
		i.exit = Exit{true, m.Params.Code, m.Params.Signal, m.Params.StderrTail}
	}
	return true
}

// Next waits for messages. A *GapError or *DoubtError stands between them, and the next call goes on; any other error is the end.
func (i *Instance) Next(ctx context.Context) ([]Message, error) {
	for {
		i.mu.Lock()
		batch, err, some := i.dequeueLocked()
		final, changed := i.final, i.changed
		i.mu.Unlock()
		switch {
		case some:
			return batch, err
		case final != nil:
			return nil, final
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (i *Instance) dequeueLocked() (batch []Message, err error, some bool) {
	if len(i.queue) == 0 {
		return nil, nil, false
	}
	n, size := 0, 0
	for n < len(i.queue) && n < batchLimit && size < batchBytes && i.queue[n].err == nil {
		batch = append(batch, i.queue[n].Message)
		size += i.queue[n].cost()
		n++
	}
	if n == 0 {
		n, size, err = 1, i.queue[0].cost(), i.queue[0].err
	}
	clear(i.queue[:n]) // what was taken is held no more; the rest stays where it is, of many gaps each is taken by itself
	if i.queue = i.queue[n:]; len(i.queue) == 0 {
		i.queue = nil
	}
	i.size -= size
	i.changedLocked()
	return batch, err, true
}

// Exit is how the process ended, when it has.
func (i *Instance) Exit() Exit {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.exit
}

// Leave lets go of the instance and leaves it running.
func (i *Instance) Leave() {
	i.finish(ErrClosed)
	i.stop(ErrClosed)
	i.mu.Lock()
	if i.late != nil {
		i.late.Stop()
	}
	i.mu.Unlock()
	i.wg.Wait()
}

// Close ends the agent's process there. An error tells that the runtime has not said that it did, within three seconds.
func (i *Instance) Close() error {
	defer i.Leave()
	i.mu.Lock()
	started := i.started
	i.closing = true
	i.mu.Unlock()
	if !started && !i.withdraw() {
		return nil
	}
	err := i.runtime.Remove(context.Background(), i.id)
	if errors.Is(err, context.DeadlineExceeded) { // the existing server may end the agent and never say so
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if known, lost := i.runtime.knows(ctx, i.id); lost == nil && !known {
			err = nil
		}
	}
	if err != nil {
		i.finish(ErrNotEnded)
		return errors.Join(ErrNotEnded, err)
	}
	if started {
		i.lastWord()
	}
	return nil
}

// withdraw stops the messages that start it: one that arrived behind its end would start it anew. It tells whether any may have arrived; the
// runtime answers when the agent is installed, which takes minutes, and would run it for nobody.
func (i *Instance) withdraw() bool {
	i.stop(ErrClosed)
	i.posting.Lock()
	defer i.posting.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// lastWord waits a moment for what the agent said at its end.
func (i *Instance) lastWord() {
	limit := time.NewTimer(lastWords)
	defer limit.Stop()
	for {
		i.mu.Lock()
		over, changed := i.exit.Ended || i.final != nil, i.changed
		i.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			return
		}
	}
}
