// Package terminal hides the pseudo-terminal that a program runs on: what it writes is a numbered stream of bytes that any number of
// readers follow, and what is typed is written to it.
//
// Delivery. Every byte that the program writes has a number, from 0 on. The newest of them are kept, up to Scrollback; a reader that asks
// for older ones gets what is left, and sees so by [Output.From]. The program is never made to wait for a reader. The exit code is told
// after the last byte.
//
// Failure. The program belongs to a proxy.Set, which ends it with everything that it has started: when it ends by itself, when the
// terminal is closed, and when we are killed. A terminal that is closed sends it a hang-up first, as a window does. On Windows there are
// none: Open fails with proxy.ErrTerminal.
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

// Errors of a terminal.
var (
	ErrEnded = errors.New("the program has ended")
	ErrBusy  = errors.New("the program does not read what is typed")
)

// Bounds of a terminal.
const (
	Scrollback   = 1 << 20 // how many bytes are kept
	most         = 64 << 10
	chunk        = 8 << 10
	lastWords    = 5 * time.Second // how long output is waited for when the program and all that it started are gone
	inputLimit   = 5 * time.Second
	smallest     = 2
	largest      = 1000
	usualColumns = 80
	usualRows    = 24
)

// Works tells whether there are terminals on this system.
const Works = runtime.GOOS != "windows"

// Size of a terminal in cells. Zero, and what no window has, is made to fit.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

func (s Size) cells() *pty.Winsize {
	fit := func(n, usual int) uint16 {
		if n == 0 {
			n = usual
		}
		return uint16(min(max(n, smallest), largest)) //nolint:gosec // it is in range now
	}
	return &pty.Winsize{Cols: fit(s.Cols, usualColumns), Rows: fit(s.Rows, usualRows)}
}

// Output is a part of what the program wrote.
type Output struct {
	From     int64 // the number of the first byte; later than asked for when those before are no longer kept
	Data     []byte
	Next     int64 // what to ask for next
	Seen     int64 // up to where readers had it when this was asked for: what is shown again asks the screen for no more answers
	Exited   bool  // nothing will follow Data
	ExitCode *int  // of a program that has ended by itself
	Signal   string
}

// Terminal is one program on one pseudo-terminal. Its methods may be called at the same time.
type Terminal struct {
	master *os.File
	inst   *proxy.Instance
	work   sync.WaitGroup
	read   chan struct{} // closed when nothing is left to read
	ended  chan struct{} // closed when the program is gone and all is read
	typed  chan typed    // what write is given, where the system lets a write wait for ever; else nil

	mu      sync.Mutex // protects the fields below
	kept    []byte     // the newest output
	from    int64      // the number of its first byte
	seen    int64      // the highest number that was asked for: what is before it has been taken
	changed chan struct{}
}

// Open opens a terminal and starts a program on it: start is given the program's side and returns its instance. The end of ctx ends the
// start alone.
func Open(ctx context.Context, size Size, start func(context.Context, *os.File) (*proxy.Instance, error)) (*Terminal, error) {
	master, slave, err := openPair()
	if errors.Is(err, pty.ErrUnsupported) {
		return nil, proxy.ErrTerminal
	}
	if err != nil {
		return nil, fmt.Errorf("no terminal can be opened: %w", err)
	}
	defer slave.Close() // the program has its own; while we have one too its end is not seen
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

// typed is what was typed, for write.
type typed struct {
	data []byte
	done chan error // has room
}

// write writes what is typed where a write knows no deadline (macOS): one that the program lets wait ends with the program, and those who type
// do not wait with it. A file in Go's poller would do, but kqueue and terminals do not get on (golang/go#22099): a read might end at once.
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

// hand gives to write. It fails with os.ErrDeadlineExceeded; what was given may be written later then.
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

// follow keeps what the program writes. A terminal that nobody has open any more ends with an error that is none.
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

// wait sees the program off. Something that has escaped us may still have the terminal open: it is not listened to for ever.
func (t *Terminal) wait() {
	<-t.inst.Exited()
	select {
	case <-t.read:
	case <-time.After(lastWords):
	}
	_ = t.master.Close() // it may be closed already
	<-t.read
	close(t.ended)
}

// After gives what the program wrote from a number on, at most 64 KiB of it. It waits for that until ctx ends, and then gives nothing,
// which is no error.
func (t *Terminal) After(ctx context.Context, after int64) Output {
	seen := t.taken(after)
	for {
		// Whether it has ended is looked at first: then all that it wrote is there.
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

// taken notes that a reader has all up to a number, and gives up to where any had it before.
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

// Type writes to the program as a keyboard does. It fails with ErrEnded, and with ErrBusy when the program lets it wait for 5 s.
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

// Resize tells the program another size.
func (t *Terminal) Resize(size Size) error {
	if err := resize(t.master, size.cells()); err != nil {
		return ErrEnded
	}
	return nil
}

// Ended is closed when the program, and all that it has started, is gone and all that it wrote is there.
func (t *Terminal) Ended() <-chan struct{} { return t.ended }

// Status is how the program is.
func (t *Terminal) Status() proxy.Status { return t.inst.Status() }

// Close ends the program with all that it has started, as proxy.Instance.Close does, and waits for that. What it wrote can still be read.
func (t *Terminal) Close() error {
	_ = t.master.Close() // which hangs up
	err := t.inst.Close()
	t.work.Wait()
	return err
}
