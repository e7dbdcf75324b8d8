package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"deskhand/backend/acp"
)

// The ladder of Close: how long an agent has to end by itself, and then after SIGTERM.
const (
	eofGrace  = 500 * time.Millisecond
	termGrace = time.Second
	soonGrace = 500 * time.Millisecond // after SIGTERM, for one that was asked to stop before, see Hasten
	killGrace = 150 * time.Millisecond
)

// muteGrace is how long an agent has to end by itself whose output has ended: one that exits closes it first.
const muteGrace = 2 * time.Second

// reapPatience is how long the end of an instance waits for descendants to die of SIGKILL. It is spent on broken devices only.
const reapPatience = 5 * time.Second

const (
	stderrTail = 8 << 10
	shownRaw   = 64 << 10 // how much of a line that is not JSON is shown
)

// Process is a started agent as an Instance sees it. There is the one of the operating system, and the tests' in memory.
type Process interface {
	PID() int
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait blocks until the process itself has ended, whatever its descendants do. It is called once.
	Wait() Exit
	// Interrupt and Terminate ask the process's group to stop, and to end; ErrNoSignal is where it cannot be asked.
	Interrupt() error
	Terminate() error
	// Note remembers the descendants there are: later, with their parents gone, some could not be told any more.
	Note()
	// Kill ends what is left of the process and its descendants, and returns when they are gone, or after the given patience.
	Kill(patience time.Duration) error
	// Settle is called after Wait and Kill: reads of Stdout and Stderr return what is there, then io.EOF.
	Settle()
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // meaningful when Signal is empty
	Signal string // "SIGKILL"
}

// Instance is one agent process with its log. Four goroutines belong to it: they write stdin, read stdout, read stderr, and wait
// for the end. All end with the process; Exited is closed by the last.
type Instance struct {
	serverID string
	agent    string
	purpose  string
	tty      bool // its program is at a pseudo-terminal, and has no stdout here
	set      *Set
	slot     *slot
	since    uint64
	process  Process
	stdin    *stdin
	log      *messageLog
	logger   *slog.Logger
	ended    chan struct{} // closed when the process itself has ended
	exited   chan struct{}
	hasty    atomic.Bool
	left     error // why descendants are left, once exited is closed

	mu      sync.Mutex // protects the fields below
	status  Status
	calls   map[acp.Key]*Call
	closing bool
	failure error // what calls get that come too late; set once
	stderr  tail
}

func newInstance(sl *slot, p Process, logger *slog.Logger) *Instance {
	i := &Instance{
		serverID: sl.id, agent: sl.agent, set: sl.set, slot: sl, since: sl.log.last(), process: p, log: sl.log,
		logger: logger.With("server_id", sl.id, "agent", sl.agent),
		ended:  make(chan struct{}), exited: make(chan struct{}), calls: map[acp.Key]*Call{},
		status: Status{ServerID: sl.id, Agent: sl.agent, Phase: Running, PID: p.PID(), CreatedAt: time.Now()},
	}
	i.stdin = newStdin(p.Stdin(), maxBacklog, i.ended)
	return i
}

// start starts the four goroutines.
func (i *Instance) start() {
	var readers, writer sync.WaitGroup
	writer.Go(i.stdin.run)
	readers.Go(i.readStdout)
	readers.Go(i.readStderr)
	go func() {
		i.waitForEnd(&readers)
		writer.Wait()
		i.set.instanceExited(i)
		close(i.exited)
	}()
}

// waitForEnd sees the process off, in the order that the package comment promises.
func (i *Instance) waitForEnd(readers *sync.WaitGroup) {
	exit := i.process.Wait()
	close(i.ended)
	i.stdin.close(ErrExited)
	i.log.relieve(spill)
	if err := i.process.Kill(reapPatience); err != nil {
		i.logger.Error("descendants of the agent are left", "error", err)
		i.left = err
	}
	i.process.Settle()
	readers.Wait()
	err := i.recordExit(exit)
	i.logger.Info("agent exited", "code", exit.Code, "signal", exit.Signal)
	i.log.append([][]byte{i.exitMessage()}, func(int) {})
	i.failCalls(err)
}

func (i *Instance) recordExit(exit Exit) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status.Phase = Exited
	i.status.ExitedAt = time.Now()
	i.status.Signal = exit.Signal
	if exit.Signal == "" {
		i.status.ExitCode = &exit.Code
	}
	i.status.StderrTail = i.stderr.text()
	if i.closing {
		return ErrRemoved
	}
	return &ExitError{Status: i.status}
}

// exitMessage is the last message of the process. The SDK for this API relies on its name.
func (i *Instance) exitMessage() []byte {
	s := i.Status()
	params := struct {
		Success    bool   `json:"success"`
		Code       *int   `json:"code"`
		Signal     string `json:"signal,omitempty"`
		StderrTail string `json:"stderrTail,omitempty"`
	}{s.ExitCode != nil && *s.ExitCode == 0, s.ExitCode, s.Signal, s.StderrTail}
	msg, _ := acp.NewNotification("_adapter/agent_exited", params) // strings and numbers always encode
	return msg
}

// readStdout brings the agent's lines to the log.
func (i *Instance) readStdout() {
	lines := lineReader{src: &wideReader{src: i.process.Stdout()}, max: maxLine}
	in := intake{i: i}
	for {
		read, err := lines.next()
		in.batch, in.answers = in.batch[:0], in.answers[:0]
		for _, l := range read {
			in.line(l)
		}
		told := 0
		i.log.append(in.batch, func(taken int) {
			for ; told < len(in.answers) && in.answers[told].at < taken; told++ {
				in.answers[told].call.finish(in.answers[told].msg, nil)
			}
		})
		clear(in.batch) // an idle instance holds nothing but its log
		clear(in.answers)
		if err != nil {
			if !i.tty {
				i.endMute()
			}
			return
		}
	}
}

// endMute ends an agent that lives on after its output has ended: nothing of what it was asked would ever be answered.
func (i *Instance) endMute() {
	if await(i.ended, muteGrace) {
		return
	}
	i.mu.Lock()
	i.status.Mute = true
	i.mu.Unlock()
	i.logger.Warn("an agent has closed its output and lives on: it is ended")
	i.process.Note()
	i.stdin.close(ErrExited)
	if await(i.ended, eofGrace) {
		return
	}
	if err := i.process.Terminate(); err == nil && await(i.ended, termGrace) {
		return
	}
	if err := i.process.Kill(killGrace); err != nil { // waitForEnd kills with more patience what is left
		i.logger.Warn("an agent that has closed its output cannot be killed", "error", err)
	}
}

// invalidLine is the message in place of a line that is none. The SDK for this API relies on its name.
func invalidLine(reason error, raw []byte) []byte {
	text := reason.Error()
	if len(raw) > shownRaw {
		text = fmt.Sprintf("%s (raw is the start of %d bytes)", text, len(raw))
		raw = raw[:shownRaw]
	}
	params := struct {
		Error string `json:"error"`
		Raw   string `json:"raw"`
	}{text, strings.ToValidUTF8(string(raw), "\uFFFD")}
	msg, _ := acp.NewNotification("_adapter/invalid_stdout", params) // strings always encode
	return msg
}

// InvalidLine is the line in place of which the log has an "_adapter/invalid_stdout", as far as it is kept.
func InvalidLine(msg []byte) string {
	var n struct {
		Params struct {
			Raw string `json:"raw"`
		} `json:"params"`
	}
	_ = json.Unmarshal(msg, &n) // invalidLine made it
	return n.Params.Raw
}

// readStderr keeps the end of what the agent says there.
func (i *Instance) readStderr() {
	buf := make([]byte, 4<<10)
	for {
		n, err := i.process.Stderr().Read(buf)
		i.mu.Lock()
		i.stderr.write(buf[:n])
		i.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// tail keeps the last bytes that were written to it.
type tail struct {
	buf []byte
	cut bool
}

func (t *tail) write(p []byte) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - stderrTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
}

// text is what is kept, from the start of a line where there is one, as valid UTF-8 within the limit.
func (t *tail) text() string {
	b := t.buf
	if t.cut {
		if n := bytes.IndexByte(b, '\n'); n >= 0 && n < len(b)-1 {
			b = b[n+1:]
		}
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return strings.ToValidUTF8(string(b), "?")
}

// ServerID is the identity under which the instance stands in its Set.
func (i *Instance) ServerID() string { return i.serverID }

// Agent is the id of the agent, as it was started with.
func (i *Instance) Agent() string { return i.agent }

// Delivered waits until the readers that there are have dealt with all that the log holds now, but not long for one that lags. It is
// called between the outcome of a call and its answer: an answer that overtakes the stream tells a client that a turn is over of
// which it has not seen the end.
func (i *Instance) Delivered(ctx context.Context) { i.log.deliver(ctx) }

// Since is the number of the newest message that the log held before this process: After(Since()) reads this process alone.
func (i *Instance) Since() uint64 { return i.since }

// Status is where the instance is now.
func (i *Instance) Status() Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.status
	if s.Phase != Exited {
		s.StderrTail = i.stderr.text()
	}
	return s
}

// Exited is closed when the process and its descendants are gone and its last message is in the log.
func (i *Instance) Exited() <-chan struct{} { return i.exited }

// After reads the log from the message after seq on: what is held, then what comes. 0 asks for everything.
func (i *Instance) After(seq uint64) *Reader { return i.log.after(seq) }

// Send writes one JSON message of any size, on one line, and returns when it is written. The end of ctx ends the wait, not the
// message. Whether the message is a request makes no difference here: its response comes on the log.
func (i *Instance) Send(ctx context.Context, msg []byte) error {
	e, err := acp.Peek(msg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return i.Deliver(ctx, e)
}

// Deliver is Send for a message that was peeked at already.
func (i *Instance) Deliver(ctx context.Context, e acp.Envelope) error {
	written := make(chan error, 1)
	err := i.stdin.put(outgoing{line: lineOf(e), written: func(err error) { written <- err }})
	if err == nil {
		select {
		case err = <-written:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !errors.Is(err, ErrExited) {
		return err
	}
	if err := wait(ctx, i.exited); err != nil { // how it ended is known in a moment
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// lineOf is a copy of the message with its line end: the caller keeps its own.
func lineOf(e acp.Envelope) []byte {
	return append(acp.Compact(make([]byte, 0, len(e.Raw)+1), e.Raw), '\n')
}

// Call is a request that an agent was sent. It stays in flight, and its id taken, until the agent answers it, whether somebody
// waits or not.
type Call struct {
	written chan struct{}
	done    chan struct{}
	answer  []byte
	err     error
}

// Written is closed when the agent's input has the call. It never is where that fails, and the call's outcome says why.
func (c *Call) Written() <-chan struct{} { return c.written }

// Done is closed when the call has an outcome.
func (c *Call) Done() <-chan struct{} { return c.done }

// Outcome is the response as the agent wrote it, or why there will be none. It is valid once Done is closed.
func (c *Call) Outcome() ([]byte, error) { return c.answer, c.err }

func (c *Call) finish(answer []byte, err error) {
	c.answer, c.err = answer, err
	close(c.done)
}

// Call sends a request and returns at once. It fails with ErrDuplicateID while the id is in flight.
func (i *Instance) Call(e acp.Envelope) (*Call, error) {
	key := e.Key()
	if e.Kind != acp.Request || key == "" {
		return nil, fmt.Errorf("%w: not a request", ErrMessage)
	}
	call := &Call{written: make(chan struct{}), done: make(chan struct{})}
	if err := i.putCall(key, call); err != nil {
		return nil, err
	}
	written := func(err error) {
		switch {
		case err == nil:
			close(call.written)
		case errors.Is(err, ErrExited): // it is failed once the process's last output is read: the answer may be there
		case i.dropCall(key, call):
			call.finish(nil, err)
		}
	}
	if err := i.stdin.put(outgoing{line: lineOf(e), written: written}); err != nil {
		written(err)
	}
	return call, nil
}

func (i *Instance) putCall(key acp.Key, call *Call) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure != nil {
		return i.failure
	}
	if i.calls[key] != nil {
		return ErrDuplicateID
	}
	i.calls[key] = call
	return nil
}

// takeCall takes a call out of the books: who takes it finishes it.
func (i *Instance) takeCall(key acp.Key) *Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	call := i.calls[key]
	delete(i.calls, key)
	return call
}

// dropCall takes that very call out of the books, and reports whether it was there.
func (i *Instance) dropCall(key acp.Key, call *Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls[key] != call {
		return false
	}
	delete(i.calls, key)
	return true
}

// failCalls fails all calls, and those that still come.
func (i *Instance) failCalls(err error) {
	i.mu.Lock()
	if i.failure == nil {
		i.failure = err
	}
	calls := i.calls
	i.calls = map[acp.Key]*Call{}
	i.mu.Unlock()
	for _, call := range calls {
		call.finish(nil, err)
	}
}

// Interrupt sends SIGINT to the agent's process group, and fails with ErrNoSignal where there is no such thing.
func (i *Instance) Interrupt() error {
	if !i.live() {
		return &ExitError{Status: i.Status()}
	}
	return i.process.Interrupt()
}

// Close ends the process and everything it started, as DELETE does, and takes the instance out of its Set: its stdin is closed, it
// has half a second, its group gets SIGTERM, after another second SIGKILL. It returns when all are gone, and within seven seconds
// where some cannot be killed.
func (i *Instance) Close() error { return i.set.removeInstance(i, yield) }

// End is Close for an owner to whom every word of the agent counts. Close lets go of what readers have not taken when the log is full, so
// that the agent can write the rest and end by itself; here a full log goes on holding the agent up for those that read, and what its pipe
// still holds when it is killed at last is kept for them.
func (i *Instance) End() error { return i.set.removeInstance(i, hold) }

// Hasten leaves the process half a second after SIGTERM, rather than a whole one, when it is ended from now on. It is for an agent that did
// not heed it when it was asked to stop.
func (i *Instance) Hasten() { i.hasty.Store(true) }

// Last is the number of the newest message in the log of the instance; 0 before the first.
func (i *Instance) Last() uint64 { return i.log.last() }

// shut is Close without the Set; full is what an append does meanwhile that finds the log full. Any number may call it.
func (i *Instance) shut(full pressure) error {
	if i.gone() {
		return nil
	}
	i.mu.Lock()
	i.closing = true
	i.mu.Unlock()
	i.failCalls(ErrRemoved)
	i.log.relieve(full)
	i.process.Note()
	i.stdin.close(ErrRemoved)
	if await(i.exited, eofGrace) {
		return nil
	}
	told := i.process.Terminate()
	if told != nil {
		i.logger.Debug("terminate", "error", told)
	}
	grace := termGrace
	if i.hasty.Load() {
		grace = soonGrace
	}
	heard := !errors.Is(told, ErrNoSignal) || !i.live() // else there is nothing that it could heed
	if heard && await(i.ended, grace) && await(i.exited, killGrace) {
		return nil
	}
	err := i.process.Kill(killGrace)
	if await(i.exited, reapPatience) { // who is killed needs a processor to die on, and we one to hear of it
		return i.left
	}
	return errors.Join(ErrStuck, err)
}

// live reports whether the process runs. When it does not, Exited may still be a moment away.
func (i *Instance) live() bool { return !isClosed(i.ended) }

// gone reports whether Exited is closed.
func (i *Instance) gone() bool { return isClosed(i.exited) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
