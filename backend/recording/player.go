// Package recording hides how the agent's part of a recorded conversation is played to a client: as an agent, a process that speaks ACP on
// stdin and stdout. A recording is a file of `deskhand sessions export --format recording`.
package recording

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
	"deskhand/backend/agentio"
)

// Config configures a replay.
type Config struct {
	File   string
	Speed  float64 // multiple of the recorded speed; 0 = no pauses
	Faults []Fault
	State  string // directory of the positions; "" = beside the histories of the demo agent
	Act    bool   // send the recorded requests to write files and run commands
}

// ExitError is the end of a replay by a recorded exit or by a fault.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "exit " + strconv.Itoa(e.Code) }

// patience limits the wait of a turn for an optional message of the client.
const patience = 2 * time.Second

// textAtTheEnd is the answer to prompts beyond the end of the recording.
const textAtTheEnd = "The recording has ended here. This prompt was not asked in it."

// Play plays the agent's part of a recorded conversation to the client behind in and out. Play sends the recorded messages in their order
// and with their pauses, and waits for the client where the agent had to wait: for a request by its method, for an answer, and for a cancel.
// Ids of requests, of the session and of terminals are new; everything else stays the same, paths included.
//
// The client need not repeat the recorded behaviour. A prompt may have any text. A recorded request that the client does not make is skipped.
// A request that is not in the recording gets the recorded answer to the same method, if there is one, else an error. A different answer of
// the client changes nothing. A cancel that came later in the recording, or never, skips to the recorded reaction or to the end of the turn.
// Play reports every such difference on stderr.
//
// Another process that resumes the session continues at the next prompt, or at the next start in the recording when this start is played
// completely. Play skips starts that ended before they had a session, unless the recording has no other start.
//
// Requests to write files and run commands are left out unless cfg.Act is set, since a recording may come from anybody. Play returns nil, or
// an ExitError with the exit code of the process.
func Play(ctx context.Context, cfg Config, in io.Reader, out, stderr io.Writer) error {
	rec, err := openRecording(cfg.File)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	work, stop := context.WithCancel(ctx)
	lines, _ := agentio.ReadLines(work, in)
	p := &player{
		Config: cfg, rec: rec, ctx: work, out: agentio.NewWriter(out, ctx.Done()), stderr: stderr, lines: lines, signals: signals,
		positions: openPositions(cfg.State, rec.digest), left: map[string]bool{}, ids: map[string]string{},
		client: clientRequests{live: map[int]json.RawMessage{}, passed: map[int]bool{}, late: map[string][]byte{}},
		agent:  agentRequests{lastID: -1, sent: map[int]json.RawMessage{}, replied: map[acp.Key]agentio.Message{}},
	}
	err = p.run()
	stop()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close() // ends a pending read
	}
	p.out.Close()
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// errGone reports that the client has gone, which is a normal end.
var errGone = errors.New("the client has gone")

// player is a replaying process. Only its own goroutine uses a player.
type player struct {
	Config
	rec       *recording
	ctx       context.Context //nolint:containedctx // the life of this process
	out       *agentio.Writer
	stderr    io.Writer
	lines     <-chan agentio.Line // nil once the client's end does not matter
	signals   <-chan os.Signal
	positions positions
	left      map[string]bool // remarks already on stderr

	at      int // the next step
	clock   clock
	written int // messages of the agent in this conversation, including those before a restart
	hung    bool

	initialized bool
	begun       bool   // a session is open, or was requested
	session     string // the session's id for the client
	cwd         string // the session's directory
	client      clientRequests
	agent       agentRequests
	prompt      int               // the step of the running prompt; -1 = none
	heeded      bool              // the running prompt has been cancelled
	ids         map[string]string // ids of sessions and terminals: recorded to new
	cancelled   bool              // a pending cancel; struck is a pending interrupt
	struck      bool
}

// clientRequests are the requests of the client.
type clientRequests struct {
	waiting []agentio.Message       // no step has taken these yet
	live    map[int]json.RawMessage // the id of the request that a step has taken
	passed  map[int]bool            // steps whose requests the client has not made
	late    map[string][]byte       // the answers to passed requests, by method
}

// agentRequests are the requests that the replay sends.
type agentRequests struct {
	lastID  int64
	sent    map[int]json.RawMessage // the id of the request that a step has sent
	replied map[acp.Key]agentio.Message
}

// clock relates the time of the recording to the real time.
type clock struct {
	since time.Time // the real time of base
	base  time.Duration
}

func (p *player) run() error {
	p.prompt = -1
	if err := p.after(); err != nil { // for the fault crash@0
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

// step plays a step, unless a cancel or an interrupt changes the course.
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

// atTheEnd answers requests after the last step. After the fault hang, atTheEnd answers none.
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

// remark reports, once per text, how the replay differs from the recording.
func (p *player) remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !p.left[text] {
		p.left[text] = true
		_, _ = fmt.Fprintf(p.stderr, "replay: %s\n", text) // a failed write to stderr can be reported nowhere
	}
}

// wait reads the client's messages until the condition holds, limit passes, or a cancel or interrupt comes.
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
		case <-p.out.Lost():
			return errGone
		case <-p.ctx.Done():
			return errGone
		}
	}
	return nil
}

func (p *player) receive(next agentio.Line) error {
	m, failed := agentio.Parse(next.Text)
	switch {
	case next.TooLong || failed != nil:
		return p.put(agentio.Frame{ID: json.RawMessage("null"), Error: agentio.Errorf(acp.CodeParseError, "parse error")}.Encode())
	case m.Method == nil:
		p.agent.replied[keyOf(m.ID)] = m
	case m.ID != nil && p.prompt >= 0 && !p.comes(p.at, *m.Method):
		return p.extra(m) // a turn may be long
	case m.ID != nil:
		p.client.waiting = append(p.client.waiting, m)
	case *m.Method == "session/cancel":
		p.cancelled = true
	}
	return nil
}

func keyOf(id json.RawMessage) acp.Key {
	env := acp.Envelope{ID: id}
	return env.Key()
}

// turn handles a pending cancel or interrupt, and reports whether the course changed.
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

// cancel skips to the recorded reaction to a cancel in this turn. Without one, the turn ends.
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
	id := p.client.live[p.prompt]
	if answered >= 0 {
		end++
	}
	p.jump(end)
	p.prompt = -1
	p.keep(p.at)
	return true, p.put(agentio.Frame{ID: id, Result: map[string]string{"stopReason": "cancelled"}}.Encode())
}

// jump continues at another step without the pause before that step.
func (p *player) jump(to int) {
	p.at = to
	if to < len(p.rec.steps) {
		p.clock.sync(p.rec.steps[to].at)
	}
}

// sync equates the present moment with a moment of the recording.
func (c *clock) sync(at time.Duration) { c.base, c.since = at, time.Now() }

// pause waits for the time of a step. A message between two turns does not wait while the client waits for an answer.
func (p *player) pause(at time.Duration) error {
	if p.Speed == 0 || at <= p.clock.base {
		return p.poll()
	}
	due := p.clock.since.Add(time.Duration(float64(at-p.clock.base) / p.Speed))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	return p.wait(func() bool { return p.prompt < 0 && len(p.client.waiting) > 0 }, timer.C)
}

// poll reads the client's pending messages without waiting.
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

// keep stores the position of this conversation, and whether the next session/new in this directory continues there: an agent that cannot
// resume sessions is recognised only by that.
func (p *player) keep(next int) {
	var errs []error
	now := position{Step: next, Sent: p.written}
	if p.session != "" {
		errs = append(errs, p.positions.save("session:"+p.session, now))
	}
	end := p.rec.end(max(next-1, 0))
	if i := p.rec.next(next, isWants); i < 0 || i >= end {
		if p.opening(end) == methodNew {
			errs = append(errs, p.positions.save("cwd:"+p.cwd, position{Step: end, Sent: p.written}))
		}
	}
	if err := errors.Join(errs...); err != nil {
		p.remark("a restart will not know how far this has come: %v", err)
	}
}

// put sends a message, with the faults at that message.
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
		p.out.Send(agentio.Entry{Line: line})
	}
	return p.after()
}

// stay waits for d, unless the client ends.
func (p *player) stay(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.clock.since = p.clock.since.Add(d)
		return nil
	case <-p.ctx.Done():
		return errGone
	}
}

// after applies the faults that follow the latest message.
func (p *player) after() error {
	for _, f := range p.Faults {
		if f.At != p.written {
			continue
		}
		switch f.Kind {
		case "garbage":
			p.out.Send(agentio.Entry{Line: []byte("This line is not JSON: fault garbage@" + strconv.Itoa(f.At) + "\n")})
		case "stderr":
			_, _ = fmt.Fprintf(p.stderr, "replay: fault stderr@%d\n", f.At) // a failed write to stderr can be reported nowhere
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

// exit stores the position and ends the process once every message is written. A restarted process continues behind this step.
func (p *player) exit(code int) error {
	p.keep(min(p.at+1, len(p.rec.steps)))
	p.out.Flush()
	return &ExitError{Code: code}
}

// endBy ends the process by a signal, or with the shell's code for the signal where the process cannot raise that signal.
func (p *player) endBy(name string) error {
	p.keep(min(p.at+1, len(p.rec.steps)))
	p.out.Flush()
	return &ExitError{Code: raise(name)}
}
