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

// The grace periods of Close: how long an agent has to end by itself, and then after SIGTERM.
const (
	eofGrace  = 500 * time.Millisecond
	termGrace = time.Second
	soonGrace = 500 * time.Millisecond // after SIGTERM, for an agent that was asked to stop before, see Hasten
	killGrace = 150 * time.Millisecond
)

// muteGrace is how long an agent has to end by itself after the end of its output: an exiting agent closes its output first.
const muteGrace = 2 * time.Second

// reapPatience is how long the end of an instance waits for descendants to die of SIGKILL. Only broken devices take that long.
const reapPatience = 5 * time.Second

const (
	stderrTail = 8 << 10
	shownRaw   = 64 << 10 // how much of a line that is not JSON is shown
)

// Process is a started agent as an Instance sees the agent. One implementation is the process of the operating system, another is in
// memory, for tests.
type Process interface {
	PID() int
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait blocks until the process itself has ended, whatever its descendants do. Wait is called once.
	Wait() Exit
	// Interrupt and Terminate ask the process's group to stop, and to end. They return ErrNoSignal when the process cannot be asked.
	Interrupt() error
	Terminate() error
	// Note records the present descendants, of which some could not be recognised later, when their parents are gone.
	Note()
	// Kill ends the process and its descendants, and returns when they are gone, or after patience.
	Kill(patience time.Duration) error
	// Settle is called after Wait and Kill: reads of Stdout and Stderr then return the remaining bytes and io.EOF.
	Settle()
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // meaningful when Signal is empty
	Signal string // such as "SIGKILL"
}

// Instance is an agent process with its log. It has four goroutines: they write stdin, read stdout, read stderr, and wait for the end.
// All end with the process; the last closes Exited.
type Instance struct {
	serverID string
	agent    string
	purpose  string
	tty      bool // the program has a pseudo-terminal, and no stdout here
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
	left     error // why descendants are left; valid once exited is closed

	mu      sync.Mutex // protects the fields below
	status  Status
	calls   map[acp.Key]*Call
	closing bool
	failure error // the error of later calls; set once
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

// waitForEnd waits for the end of the process, and does the rest in the order that the package comment promises.
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

// exitMessage returns the last message of the process. The SDK for this API relies on its name.
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

// readStdout appends the agent's lines to the log.
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
		clear(in.batch) // an idle instance holds only its log
		clear(in.answers)
		if err != nil {
			if !i.tty {
				i.endMute()
			}
			return
		}
	}
}

// endMute ends an agent that lives on after its output has ended, because its calls would never be answered.
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
	if err := i.process.Kill(killGrace); err != nil { // waitForEnd kills the rest with more patience
		i.logger.Warn("an agent that has closed its output cannot be killed", "error", err)
	}
}

// invalidLine returns the message in place of an invalid line. The SDK for this API relies on its name.
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

// InvalidLine returns the invalid line for which the log has an "_adapter/invalid_stdout", as far as the line is kept.
func InvalidLine(msg []byte) string {
	var n struct {
		Params struct {
			Raw string `json:"raw"`
		} `json:"params"`
	}
	_ = json.Unmarshal(msg, &n) // invalidLine made the message
	return n.Params.Raw
}

// readStderr keeps the end of the agent's stderr.
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

// text returns the kept bytes, from the start of a line if there is one, as valid UTF-8 within the limit.
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

// ServerID returns the identity of the instance in its Set.
func (i *Instance) ServerID() string { return i.serverID }

// Agent returns the id of the agent with which the instance was started.
func (i *Instance) Agent() string { return i.agent }

// Delivered waits until the present readers have handled all messages that the log has now, but only briefly for a slow reader. A caller
// calls Delivered between the outcome of a call and its answer: an answer that overtakes the stream tells a client of the end of a turn
// whose last messages the client has not seen.
func (i *Instance) Delivered(ctx context.Context) { i.log.deliver(ctx) }

// Since returns the number of the newest message that the log had before this process: After(Since()) reads this process alone.
func (i *Instance) Since() uint64 { return i.since }

// Status returns a snapshot of the instance.
func (i *Instance) Status() Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.status
	if s.Phase != Exited {
		s.StderrTail = i.stderr.text()
	}
	return s
}

// Exited returns a channel that is closed when the process and its descendants are gone and the last message is in the log.
func (i *Instance) Exited() <-chan struct{} { return i.exited }

// After returns a reader of the messages after seq: first the kept messages, then the new. 0 means all messages.
func (i *Instance) After(seq uint64) *Reader { return i.log.after(seq) }

// Send writes a JSON message of any size, on one line, and returns when the message is written. The end of ctx ends the wait, not the
// message. A request is sent like any message: its response comes on the log.
func (i *Instance) Send(ctx context.Context, msg []byte) error {
	e, err := acp.Peek(msg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return i.Deliver(ctx, e)
}

// Deliver is Send for a message that was already read by acp.Peek.
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
	if err := wait(ctx, i.exited); err != nil { // how the process ended is known in a moment
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// lineOf returns a copy of the message with its line end, because the caller keeps the original.
func lineOf(e acp.Envelope) []byte {
	return append(acp.Compact(make([]byte, 0, len(e.Raw)+1), e.Raw), '\n')
}

// Call is a request that was sent to an agent. The call stays in flight, and its id taken, until the agent answers, whether or not
// anybody waits.
type Call struct {
	written chan struct{}
	done    chan struct{}
	answer  []byte
	err     error
}

// Written returns a channel that is closed when the call is written to the agent's input. When the write fails, the channel stays open,
// and the call's outcome says why.
func (c *Call) Written() <-chan struct{} { return c.written }

// Done returns a channel that is closed when the call has an outcome.
func (c *Call) Done() <-chan struct{} { return c.done }

// Outcome returns the response as the agent wrote it, or why there will be none. Outcome is valid once Done is closed.
func (c *Call) Outcome() ([]byte, error) { return c.answer, c.err }

func (c *Call) finish(answer []byte, err error) {
	c.answer, c.err = answer, err
	close(c.done)
}

// Call sends a request and returns at once. Call fails with ErrDuplicateID while the id is in flight.
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
		case errors.Is(err, ErrExited): // failed once the last output is read, which may contain the answer
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

// takeCall removes a call from the calls in flight; its caller finishes the call.
func (i *Instance) takeCall(key acp.Key) *Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	call := i.calls[key]
	delete(i.calls, key)
	return call
}

// dropCall removes exactly that call from the calls in flight, and reports whether it was there.
func (i *Instance) dropCall(key acp.Key, call *Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls[key] != call {
		return false
	}
	delete(i.calls, key)
	return true
}

// failCalls fails all calls, and all later calls.
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

// Interrupt sends SIGINT to the agent's process group, and fails with ErrNoSignal where signals do not exist.
func (i *Instance) Interrupt() error {
	if !i.live() {
		return &ExitError{Status: i.Status()}
	}
	return i.process.Interrupt()
}

// Close ends the process and everything the process started, as DELETE does, and removes the instance from its Set: stdin is closed, the
// process has half a second, its group gets SIGTERM, and after another second SIGKILL. Close returns when all processes are gone, and
// within seven seconds when some cannot be killed.
func (i *Instance) Close() error { return i.set.removeInstance(i, yield) }

// End is Close for a caller that needs every message of the agent. When the log is full, Close drops messages that readers have not
// taken, so that the agent can write the rest and end by itself; End lets a full log hold the agent up for its readers, and keeps for
// them the remaining content of the agent's pipe after the kill.
func (i *Instance) End() error { return i.set.removeInstance(i, hold) }

// Hasten gives the process half a second after SIGTERM, rather than a whole second, in a later Close. Hasten is for an agent that has
// ignored a request to stop.
func (i *Instance) Hasten() { i.hasty.Store(true) }

// Last returns the number of the newest message in the log of the instance; 0 before the first.
func (i *Instance) Last() uint64 { return i.log.last() }

// shut is Close without the Set; full says what an append to a full log does meanwhile. Any number of goroutines may call shut.
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
	heard := !errors.Is(told, ErrNoSignal) || !i.live() // otherwise the process has received no signal that it could obey
	if heard && await(i.ended, grace) && await(i.exited, killGrace) {
		return nil
	}
	err := i.process.Kill(killGrace)
	if await(i.exited, reapPatience) { // a killed process needs a processor to die on, and this process needs a processor to notice
		return i.left
	}
	return errors.Join(ErrStuck, err)
}

// live reports whether the process runs. When the process does not, Exited may still be a moment away.
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
