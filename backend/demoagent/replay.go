package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"deskhand/backend/acp"
)

// ReplayConfig is what a replay is made of.
type ReplayConfig struct {
	File   string
	Speed  float64 // how many times as fast as it was recorded; 0 = without any pause
	Faults []Fault
	State  string // directory of the positions; "" = beside the histories of the demo agent
	Act    bool   // send what has the client write files and run commands
}

// ExitError is the end of a replay by an exit that was recorded, or is a fault.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "exit " + strconv.Itoa(e.Code) }

// patience is how long a turn waits for something of the client that it can do without.
const patience = 2 * time.Second

// textAtTheEnd is what prompts get that nobody asked in the recording.
const textAtTheEnd = "The recording has ended here. This prompt was not asked in it."

// Replay plays the agent's part of a recorded conversation with the client behind in and out. It says what it said then, in the same
// order and with the same pauses, and waits for the client where the agent had to: for its requests, by their method, for its answers,
// and for a cancel. Ids of requests, of the session and of terminals are those of now; everything else stays as it was, paths too.
//
// The client may do other things than then. A prompt may say anything. What the client does not ask though it did then is passed over;
// what it asks in addition gets an answer of the same method if there is one, else an error. An answer of it that is not the recorded
// one changes nothing. A cancel that came later then, or never, goes to where it was heeded or to the end of the turn.
// stderr is told of all that.
//
// A session that is taken up again by another process goes on at the next prompt, or with the next start in the recording if all of
// this one was played. What ended before a session was asked for is passed over, unless nothing else is there.
//
// Of what a recording asks the client to do, writing files and running commands are left out without Act: a recording can come from
// anybody. The end is nil, or ExitError where the process has to exit with a code.
func Replay(ctx context.Context, cfg ReplayConfig, in io.Reader, out, stderr io.Writer) error {
	rec, err := openRecording(cfg.File)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	work, stop := context.WithCancel(ctx)
	lines, _ := readLines(work, in)
	p := &player{
		ReplayConfig: cfg, rec: rec, ctx: work, out: newWriter(out, ctx.Done()), stderr: stderr, lines: lines, signals: signals,
		positions: openPositions(cfg.State, rec.digest), left: map[string]bool{}, live: map[int]json.RawMessage{}, sent: map[int]json.RawMessage{},
		passed: map[int]bool{}, late: map[string][]byte{}, replied: map[acp.Key]message{}, ids: map[string]string{},
	}
	err = p.run()
	stop()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close() // lets go of a read that still waits
	}
	p.out.close()
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// errGone is the end of the client, which is a normal end.
var errGone = errors.New("the client has gone")

// player is one process that replays. Only its own goroutine uses it.
type player struct {
	ReplayConfig
	rec       *recording
	ctx       context.Context //nolint:containedctx // the life of this process
	out       *writer
	stderr    io.Writer
	lines     <-chan incoming // nil when the client's end does not matter any more
	signals   <-chan os.Signal
	positions positions
	left      map[string]bool // what stderr was told

	at      int       // the step that is next
	since   time.Time // when the step at base was, or would have been
	base    time.Duration
	written int // messages of the agent in this conversation, those before a restart included
	hung    bool

	initialized bool
	begun       bool                    // a session is open, or was asked for
	session     string                  // as the client knows it
	cwd         string                  // of the session
	waiting     []message               // requests of the client that no step has taken
	live        map[int]json.RawMessage // the client's id of the request that a step has taken
	passed      map[int]bool            // steps of requests that the client has not made
	late        map[string][]byte       // answers to those, by method
	prompt      int                     // the step of the running prompt; -1 = none
	heeded      bool                    // the running prompt has been cancelled
	lastID      int64
	sent        map[int]json.RawMessage // our id of the request that a step has sent
	replied     map[acp.Key]message
	ids         map[string]string // of sessions and terminals: what was recorded, what it is now
	cancelled   bool              // events that are not dealt with
	struck      bool
}

func (p *player) run() error {
	p.prompt, p.lastID = -1, -1
	if err := p.after(); err != nil { // crash@0
		return err
	}
	if err := p.open(); err != nil {
		return err
	}
	for p.at < len(p.rec.steps) && !p.hung {
		if err := p.step(); err != nil {
			return err
		}
	}
	return p.atTheEnd()
}

// step plays one step, unless the client turns the course.
func (p *player) step() error {
	if turned, err := p.turn(); turned || err != nil {
		return err
	}
	done, err := p.play(p.at)
	if done && err == nil {
		p.at++
	}
	return err
}

// atTheEnd answers when the recording has no more steps. After the fault hang nobody is answered.
func (p *player) atTheEnd() error {
	for {
		m, err := p.next()
		if err == nil {
			err = p.extra(m)
		}
		if err != nil {
			return err
		}
	}
}

// remark tells stderr once how the replay differs from the recording.
func (p *player) remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !p.left[text] {
		p.left[text] = true
		_, _ = fmt.Fprintf(p.stderr, "replay: %s\n", text) // nobody to tell if this fails
	}
}

// wait takes what comes from the client until there is what is waited for, or something that changes the course.
func (p *player) wait(until func() bool, limit <-chan time.Time) error {
	for !until() && !p.cancelled && !p.struck {
		select {
		case next, ok := <-p.lines:
			if !ok {
				return errGone
			}
			if err := p.receive(next); err != nil {
				return err
			}
		case <-limit:
			return nil
		case <-p.signals:
			p.struck = true
		case <-p.out.lost:
			return errGone
		case <-p.ctx.Done():
			return errGone
		}
	}
	return nil
}

func (p *player) receive(next incoming) error {
	m, failed := parse(next.line)
	switch {
	case next.tooLong || failed != nil:
		return p.put(frame{ID: json.RawMessage("null"), Error: errorf(acp.CodeParseError, "parse error")}.encode())
	case m.Method == nil:
		p.replied[keyOf(m.ID)] = m
	case m.ID != nil && p.prompt >= 0 && !p.comes(p.at, *m.Method):
		return p.extra(m) // the turn may be a long one
	case m.ID != nil:
		p.waiting = append(p.waiting, m)
	case *m.Method == "session/cancel":
		p.cancelled = true
	}
	return nil
}

func keyOf(id json.RawMessage) acp.Key {
	env := acp.Envelope{ID: id}
	return env.Key()
}

// turn takes another course where the client cancelled or interrupted.
func (p *player) turn() (bool, error) {
	switch {
	case p.struck:
		p.struck = false
		i := p.rec.next(p.at, func(s *step) bool { return s.kind == interrupted })
		if p.hung || p.prompt < 0 || i < 0 || i >= p.rec.end(p.at) {
			return false, p.endBy("SIGINT")
		}
		p.jump(i + 1)
		return true, nil
	case p.cancelled:
		p.cancelled = false
		return p.cancel()
	}
	return false, nil
}

// cancel goes to where a cancel was heeded in this turn; where there was none, the turn ends.
func (p *player) cancel() (bool, error) {
	if p.prompt < 0 || p.heeded {
		return false, nil
	}
	p.heeded = true
	end, answered := p.rec.end(p.prompt), p.rec.steps[p.prompt].other
	if answered >= 0 {
		end = answered
	}
	if i := p.rec.next(p.at, func(s *step) bool { return s.kind == cancels }); i >= 0 && i < end {
		p.jump(i + 1)
		return true, nil
	}
	p.remark("a cancel that is not in the recording: the rest of this turn is left out")
	id := p.live[p.prompt]
	if answered >= 0 {
		end++
	}
	p.jump(end)
	p.prompt = -1
	p.keep(p.at)
	return true, p.put(frame{ID: id, Result: map[string]string{"stopReason": "cancelled"}}.encode())
}

// jump goes on at another step, without the pause before it.
func (p *player) jump(to int) {
	p.at = to
	if to < len(p.rec.steps) {
		p.sync(p.rec.steps[to].at)
	}
}

// sync makes now the moment at which the recording was there.
func (p *player) sync(at time.Duration) { p.base, p.since = at, time.Now() }

// pause waits for the time of a step. What the agent said between two turns waits for nothing once the client wants something.
func (p *player) pause(at time.Duration) error {
	if p.Speed == 0 || at <= p.base {
		return p.poll()
	}
	due := p.since.Add(time.Duration(float64(at-p.base) / p.Speed))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	return p.wait(func() bool { return p.prompt < 0 && len(p.waiting) > 0 }, timer.C)
}

// poll takes what has come from the client and waits for nothing.
func (p *player) poll() error {
	for {
		select {
		case next, ok := <-p.lines:
			if !ok {
				return errGone
			}
			if err := p.receive(next); err != nil {
				return err
			}
		case <-p.signals:
			p.struck = true
		default:
			return nil
		}
	}
}

// keep writes down how far this conversation is, and whether the next session/new in this directory goes on with it: of an agent that
// can take up no session, that is how its next start is known.
func (p *player) keep(next int) {
	var errs []error
	now := place{Step: next, Sent: p.written}
	if p.session != "" {
		errs = append(errs, p.positions.save("session:"+p.session, now))
	}
	end := p.rec.end(max(next-1, 0))
	if i := p.rec.next(next, isWants); i < 0 || i >= end {
		if p.opening(end) == methodNew {
			errs = append(errs, p.positions.save("cwd:"+p.cwd, place{Step: end, Sent: p.written}))
		}
	}
	if err := errors.Join(errs...); err != nil {
		p.remark("a restart will not know how far this has come: %v", err)
	}
}

// put sends a message, with the faults that are at it.
func (p *player) put(line []byte) error {
	if p.hung {
		return nil
	}
	p.written++
	copies := 1
	for _, f := range p.Faults {
		switch {
		case f.At != p.written:
		case f.Kind == "drop":
			copies = 0
		case f.Kind == "duplicate":
			copies++
		case f.Kind == "slow":
			if err := p.stay(f.For); err != nil {
				return err
			}
		}
	}
	for range copies {
		p.out.send(outgoing{line: line})
	}
	return p.after()
}

// stay waits whatever the client does, but for its end.
func (p *player) stay(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.since = p.since.Add(d)
		return nil
	case <-p.ctx.Done():
		return errGone
	}
}

// after does the faults that come after the message that was sent last.
func (p *player) after() error {
	for _, f := range p.Faults {
		if f.At != p.written {
			continue
		}
		switch f.Kind {
		case "garbage":
			p.out.send(outgoing{line: []byte("This line is not JSON: fault garbage@" + strconv.Itoa(f.At) + "\n")})
		case "stderr":
			_, _ = fmt.Fprintf(p.stderr, "replay: fault stderr@%d\n", f.At) // nobody to tell if this fails
		case "hang":
			p.hung = true
		case "exit":
			return p.exit(f.Code)
		case "crash":
			return p.exit(crashCode)
		}
	}
	return nil
}

// exit ends the process when all that was said is on its way. The place is kept: what starts again goes on behind it.
func (p *player) exit(code int) error {
	p.keep(min(p.at+1, len(p.rec.steps)))
	p.out.flush()
	return &ExitError{Code: code}
}

// endBy ends the process by a signal where that can be had, else with the code that shells give it.
func (p *player) endBy(name string) error {
	p.keep(min(p.at+1, len(p.rec.steps)))
	p.out.flush()
	return &ExitError{Code: raise(name)}
}
