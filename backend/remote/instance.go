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
	queueBytes  = 8 << 20   // of queued messages; further messages wait in the connection
	itemBytes   = 128       // the cost of a message beside its bytes
	batchBytes  = 256 << 10 // of messages that Next returns at once
	batchLimit  = 4096
	firstPause  = 200 * time.Millisecond
	tellAfter   = time.Second            // a line restored faster than this is not reported as broken
	quietFor    = 400 * time.Millisecond // after this silence on a new line, the replayed messages have arrived
	overtakes   = 2 * time.Second        // how long the answer of a POST waits for the stream's copy, which follows all earlier messages
	unconfirmed = 250 * time.Millisecond // how long after its write a request counts as delivered when nothing confirms the request
)

// Message is a message of the agent. Seq is its number in the runtime's log.
type Message struct {
	Seq  uint64
	Data []byte
}

// GapError says that the messages between After and Next are lost.
type GapError struct{ After, Next uint64 }

func (*GapError) Error() string { return "messages of the agent are lost" }

// DoubtError says that nobody knows whether the agent has received a request.
type DoubtError struct{ Method string }

func (*DoubtError) Error() string { return "it is not known whether the agent has got a request" }

// Line is the state of the connection to the runtime.
type Line struct {
	State  string // LineUp, LineBroken or LineRefused
	Detail string
}

// The states of a line.
const (
	LineUp      = "up"
	LineBroken  = "broken"
	LineRefused = "refused" // the runtime refuses the token
)

// Start says which instance is wanted.
type Start struct {
	ServerID   string
	Agent, Cwd string
	Running    bool       // the instance was started before: only read on
	After      uint64     // the last known message of the instance
	Line       func(Line) // called when the state of the line changes; may block
}

// Exit is how the agent's process ended, as far as the runtime tells.
type Exit struct {
	Ended      bool
	Code       *int
	Signal     string
	StderrTail string
}

// item is an element of the queue: a message, or an error between two messages.
type item struct {
	Message
	err error
}

// call is a request that was sent to the agent.
type call struct {
	answered chan struct{} // closed when the response is in the queue
	byPost   bool          // the response came from the POST, so the stream's copy is dropped

	written  atomic.Bool // a try has written the whole request
	before   bool        // an earlier program may have sent the request; used by the sender alone, as doubtful is
	doubtful bool        // the request may have arrived
}

// Instance is an agent in a remote runtime. A goroutine reads its line until the instance is closed; each request that waits for its
// answer in a POST has a goroutine of its own. Close and Leave wait for all of them.
type Instance struct {
	runtime *Runtime
	id      string
	start   Start
	ctx     context.Context //nolint:containedctx // the life of the line
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup
	kick    chan struct{} // holds one element: try the line now
	posting sync.RWMutex  // held for reading while a message is posted

	mu       sync.Mutex // protects the fields below
	queue    []item
	size     int
	last     uint64 // number of the last message taken from the line
	hole     uint64 // number of the first missing message at the last hole
	count    uint64 // how many messages came over the line
	calls    map[acp.Key]*call
	answered acp.Key // the request that was answered last
	asked    bool    // a message that starts the instance may have reached the runtime
	started  bool    // the runtime has the instance
	closing  bool    // Close was called
	final    error   // the end of the messages
	exit     Exit
	up       bool
	made     int       // how often the line was made
	down     time.Time // since when the line is broken
	why      error     // why the line is broken
	heard    time.Time // when the line was made, or last brought any bytes
	partly   bool      // the line has brought part of a message, as far as that can be known
	full     bool      // the queue is full, so messages wait in the line
	late     *time.Timer
	cut      context.CancelCauseFunc // breaks the line
	denied   error                   // why the token of the last message was refused
	again    chan struct{}           // closed by Retry
	changed  chan struct{}           // closed when a field above has changed

	telling sync.Mutex // held while told is changed and reported
	told    Line
}

// Instance makes a line to an instance. The first message that is sent starts the agent.
func (r *Runtime) Instance(s Start) *Instance {
	i := &Instance{
		runtime: r, id: s.ServerID, start: s, kick: make(chan struct{}, 1), last: s.After, started: s.Running,
		calls: map[acp.Key]*call{}, told: Line{State: LineUp}, changed: make(chan struct{}), again: make(chan struct{}),
	}
	i.ctx, i.stop = context.WithCancelCause(context.Background())
	i.wg.Go(i.run)
	return i
}

// run keeps the line until the instance ends.
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
		rest += rand.N(rest/4 + 1) //nolint:gosec // spreads the attempts of many instances
		select {
		case <-i.ctx.Done():
			return
		case <-i.kick:
			pause = firstPause
		case <-time.After(rest):
		}
	}
}

// broke notes that the line is broken, and returns false when the instance is gone.
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

// hears notes that bytes came over the line. partly says that they end within a message.
func (i *Instance) hears(partly bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.heard, i.partly = time.Now(), partly
}

// tell reports the state of the line when the state has changed. The broken line of an instance that has not started is not reported,
// because sending reports the failure.
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

// Retry tries the line, and the messages that wait, without the rest of their pause.
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

// begin returns where the line goes on, and whether the runtime is known to have the instance. cut breaks the line.
func (i *Instance) begin(cut context.CancelCauseFunc) (last uint64, begun bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut = cut
	return i.last, i.started
}

// renew breaks the line and makes a new line, because the old line may be dead without an error.
func (i *Instance) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.up = false
	if i.cut != nil {
		i.cut(errRenewed)
	}
	i.kickLine()
}

// skip notes that the runtime holds no message before oldest. A runtime that counts anew holds only new messages. skip waits for room as
// enqueue does.
func (i *Instance) skip(ctx context.Context, oldest uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.putLocked(item{err: &GapError{i.last, oldest}})
	i.last = max(oldest, 1) - 1
	i.awaitRoomLocked(ctx)
}

// enqueue takes a message from the line. enqueue waits while the queue is full.
func (i *Instance) enqueue(ctx context.Context, n uint64, e event) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case n == 0:
		n = i.last // the runtime does not count
	case n <= i.last:
		return nil // a repeated message
	case n > i.last+1 && i.hole != i.last+1:
		i.hole = i.last + 1 // ask once more, as a runtime may skip messages for a slow reader and still hold them
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

// awaitRoomLocked waits while the queue is full.
func (i *Instance) awaitRoomLocked(ctx context.Context) {
	if i.size <= queueBytes {
		return
	}
	i.full = true
	defer func() {
		i.full, i.heard = false, time.Now() // reading of the line resumes here
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

// fresh reports whether a message from the line belongs in the queue. A response that its POST has brought already does not. fresh also
// notes responses and the exit of the agent.
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
		_ = json.Unmarshal(data, &m) // a malformed message leaves the exit unknown
		i.exit = Exit{true, m.Params.Code, m.Params.Signal, m.Params.StderrTail}
	}
	return true
}

// Next waits for messages and returns them. After a *GapError or *DoubtError, which stands between messages, the next call goes on; any
// other error is the end.
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
	clear(i.queue[:n]) // frees the taken messages; the rest is not moved, because many gaps are taken one by one
	if i.queue = i.queue[n:]; len(i.queue) == 0 {
		i.queue = nil
	}
	i.size -= size
	i.changedLocked()
	return batch, err, true
}

// Exit returns how the process ended, once the process has ended.
func (i *Instance) Exit() Exit {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.exit
}

// Leave closes the line and leaves the agent running.
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

// Close ends the agent's process in the runtime. An error says that the runtime has not confirmed the end within three seconds.
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
	if errors.Is(err, context.DeadlineExceeded) { // some runtimes end the agent and never answer
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

// withdraw stops the messages that start the agent, because a message that arrived after its end would start the agent anew. withdraw
// reports whether such a message may have arrived: the runtime answers only when the agent is installed, which takes minutes, and would
// then run an agent for nobody.
func (i *Instance) withdraw() bool {
	i.stop(ErrClosed)
	i.posting.Lock()
	defer i.posting.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// lastWord waits a moment for the last messages of the agent.
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
