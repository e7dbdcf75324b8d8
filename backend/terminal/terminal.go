// Package terminal hides the pseudo-terminal of a program: the output is a numbered stream of bytes that any number of readers follow,
// and typed input is written to the program.
//
// Delivery. Every byte of the output has a number, from 0 on. The newest bytes are kept, up to Scrollback; a reader that asks for older
// bytes gets the kept ones, and sees the gap by [Output.From]. The program never waits for a reader. The exit code follows the last byte.
//
// Failure. The program belongs to a proxy.Set, which ends the program and all its children: when the program ends by itself, when the
// terminal is closed, and when we are killed. Closing a terminal sends a hang-up first, as closing a window does. Windows has no
// pseudo-terminal: there Open fails with proxy.ErrTerminal.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/creack/pty"

	"deskhand/backend/proxy"
)

// The errors of a terminal.
var (
	ErrEnded = errors.New("the program has ended")
	ErrBusy  = errors.New("the program does not read what is typed")
)

// The bounds of a terminal.
const (
	Scrollback   = 1 << 20 // how many bytes are kept
	most         = 64 << 10
	chunk        = 8 << 10
	lastWords    = 5 * time.Second // how long output is awaited after the program and all its children have ended
	inputLimit   = 5 * time.Second
	smallest     = 2
	largest      = 1000
	usualColumns = 80
	usualRows    = 24
)

// Works reports whether this system has terminals.
const Works = runtime.GOOS != "windows"

// Size is the size of a terminal in cells. Zero and sizes that no window has are replaced by usual sizes.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

func (s Size) cells() *pty.Winsize {
	fit := func(n, usual int) uint16 {
		if n == 0 {
			n = usual
		}
		return uint16(min(max(n, smallest), largest)) //nolint:gosec // the value is in range now
	}
	return &pty.Winsize{Cols: fit(s.Cols, usualColumns), Rows: fit(s.Rows, usualRows)}
}

// Output is a part of the program's output.
type Output struct {
	From     int64 // the number of the first byte; higher than requested when older bytes are no longer kept
	Data     []byte
	Next     int64 // the number to request next
	Seen     int64 // the number up to which readers had the output at this request; the screen answers no query in output that is shown again
	Exited   bool  // nothing follows Data
	ExitCode *int  // of a program that has ended by itself
	Signal   string
}

// Terminal is a program on a pseudo-terminal. Its methods may be called concurrently.
type Terminal struct {
	master *os.File
	inst   *proxy.Instance
	work   sync.WaitGroup
	read   chan struct{} // closed when no output is left to read
	ended  chan struct{} // closed when the program has ended and all output is read
	typed  chan typed    // input for write, on systems where a write may wait for ever; else nil

	mu      sync.Mutex // protects the fields below
	kept    []byte     // the newest output
	from    int64      // the number of the first byte in kept
	seen    int64      // the highest number requested: readers have all bytes before
	changed chan struct{}
}

// Open opens a terminal and starts a program on the terminal: start gets the program's side and returns the program's instance. ctx
// bounds the start alone.
func Open(ctx context.Context, size Size, start func(context.Context, *os.File) (*proxy.Instance, error)) (*Terminal, error) {
	master, slave, err := openPair()
	if errors.Is(err, pty.ErrUnsupported) {
		return nil, proxy.ErrTerminal
	}
	if err != nil {
		return nil, fmt.Errorf("no terminal can be opened: %w", err)
	}
	defer slave.Close() // the program has its own copy; an open copy here would hide the program's end
	t := &Terminal{master: master, read: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{})}
	if err = resize(master, size.cells()); err == nil {
		t.inst, err = start(ctx, slave)
	}
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	if errors.Is(master.SetWriteDeadline(time.Time{}), os.ErrNoDeadline) {
		t.typed = make(chan typed)
		t.work.Go(t.write)
	}
	t.work.Go(t.follow)
	t.work.Go(t.wait)
	return t, nil
}

// typed is input for write.
type typed struct {
	data []byte
	done chan error // buffered
}

// write passes input to the program where a write has no deadline (macOS): a write that the program lets wait ends with the program, and
// callers of Type do not wait for the write. A file in Go's poller would not do, because kqueue does not support terminals
// (golang/go#22099): a read might end at once.
func (t *Terminal) write() {
	for {
		select {
		case <-t.ended:
			return
		case now := <-t.typed:
			_, err := t.master.Write(now.data)
			now.done <- err
		}
	}
}

// hand passes data to write. hand fails with os.ErrDeadlineExceeded after limit; the data may still be written later.
func (t *Terminal) hand(data []byte, limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	now := typed{slices.Clone(data), make(chan error, 1)}
	select {
	case t.typed <- now:
	case <-t.ended:
		return os.ErrClosed
	case <-late.C:
		return os.ErrDeadlineExceeded
	}
	select {
	case err := <-now.done:
		return err
	case <-late.C:
		return os.ErrDeadlineExceeded
	}
}

// follow keeps the output of the program. The error of a terminal that nobody has open any more is the end of the output.
func (t *Terminal) follow() {
	defer close(t.read)
	buf := make([]byte, chunk)
	for {
		n, err := t.master.Read(buf)
		t.keep(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *Terminal) keep(data []byte) {
	if len(data) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if over := len(t.kept) - Scrollback; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.from += int64(over)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// wait waits for the end of the program, and then up to lastWords for its output: a process that escaped the set may still have the
// terminal open.
func (t *Terminal) wait() {
	<-t.inst.Exited()
	select {
	case <-t.read:
	case <-time.After(lastWords):
	}
	_ = t.master.Close() // may be closed already
	<-t.read
	close(t.ended)
}

// After returns the output from the number after on, at most 64 KiB. After waits for output until ctx ends, and then returns none, which
// is no error.
func (t *Terminal) After(ctx context.Context, after int64) Output {
	seen := t.taken(after)
	for {
		// Check the end first: an ended terminal has all its output.
		var over bool
		select {
		case <-t.ended:
			over = true
		default:
		}
		out, changed := t.look(after)
		out.Seen = seen
		if end := out.Next; over && end == t.end() {
			status := t.inst.Status()
			out.Exited, out.ExitCode, out.Signal = true, status.ExitCode, status.Signal
		}
		if out.Exited || len(out.Data) > 0 {
			return out
		}
		select {
		case <-changed:
		case <-t.ended:
		case <-ctx.Done():
			return out
		}
	}
}

func (t *Terminal) look(after int64) (Output, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.from + int64(len(t.kept))
	after = min(max(after, t.from), end)
	data := t.kept[after-t.from:]
	data = append([]byte(nil), data[:min(len(data), most)]...)
	return Output{From: after, Data: data, Next: after + int64(len(data))}, t.changed
}

// taken notes that a reader has all output before a number, and returns up to where any reader had the output before.
func (t *Terminal) taken(after int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.seen
	t.seen = max(before, min(after, t.from+int64(len(t.kept))))
	return before
}

func (t *Terminal) end() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.from + int64(len(t.kept))
}

// Type writes to the program as a keyboard does. Type fails with ErrEnded, and with ErrBusy when the program reads nothing for 5 s.
func (t *Terminal) Type(data []byte) error {
	err := t.put(data)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrBusy
	case err != nil:
		return ErrEnded
	}
	return nil
}

func (t *Terminal) put(data []byte) error {
	if t.typed != nil {
		return t.hand(data, inputLimit)
	}
	if err := t.master.SetWriteDeadline(time.Now().Add(inputLimit)); err != nil {
		return err
	}
	_, err := t.master.Write(data)
	return err
}

// Resize gives the terminal another size, of which the system informs the program.
func (t *Terminal) Resize(size Size) error {
	if err := resize(t.master, size.cells()); err != nil {
		return ErrEnded
	}
	return nil
}

// Ended returns a channel that is closed when the program and all its children have ended and all output is kept.
func (t *Terminal) Ended() <-chan struct{} { return t.ended }

// Status returns the status of the program.
func (t *Terminal) Status() proxy.Status { return t.inst.Status() }

// Close ends the program with all its children, as proxy.Instance.Close does, and waits for their end. The output can still be read.
func (t *Terminal) Close() error {
	_ = t.master.Close() // hangs up
	err := t.inst.Close()
	t.work.Wait()
	return err
}
