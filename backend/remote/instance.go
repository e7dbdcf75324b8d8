package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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

	mu      sync.Mutex // protects the fields below
	inbox   inbox
	line    lineState
	calls   calls
	asked   bool  // a message that starts the instance may have reached the runtime
	started bool  // the runtime has the instance
	closing bool  // Close was called
	final   error // the end of the messages
	exit    Exit
	late    *time.Timer   // reports that the line is broken
	again   chan struct{} // closed by Retry
	changed chan struct{} // closed when a field above has changed

	telling sync.Mutex // held while told is changed and reported
	told    Line
}

// Instance makes a line to an instance. The first message that is sent starts the agent.
func (r *Runtime) Instance(s Start) *Instance {
	i := &Instance{
		runtime: r, id: s.ServerID, start: s, kick: make(chan struct{}, 1), inbox: inbox{last: s.After}, started: s.Running,
		calls: calls{waiting: map[acp.Key]*call{}}, told: Line{State: LineUp}, changed: make(chan struct{}), again: make(chan struct{}),
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
