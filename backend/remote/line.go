package remote

import (
	"context"
	"errors"
	"time"
)

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

// lineState is the state of the line to the runtime. The lock of the instance protects a lineState.
type lineState struct {
	up     bool
	made   int                     // how often the line was made
	down   time.Time               // since when the line is broken
	why    error                   // why the line is broken
	heard  time.Time               // when the line was made, or last brought any bytes
	partly bool                    // the line has brought part of a message, as far as that can be known
	denied error                   // why the token of the last message was refused
	cut    context.CancelCauseFunc // breaks the line
}

// broke notes that the line is broken.
func (l *lineState) broke(err error) {
	l.up = false
	if l.down.IsZero() {
		l.down = time.Now()
	}
	l.why = err
}

// connected notes that the line is made.
func (l *lineState) connected() {
	l.made++
	l.up, l.heard, l.partly, l.down, l.why = true, time.Now(), false, time.Time{}, nil
}

// shown returns the state to report, which is told when nothing new is to be reported. The broken line of an instance that has not started
// is not reported, because sending reports the failure.
func (l *lineState) shown(told Line, started bool) Line {
	switch {
	case l.denied != nil:
		return Line{LineRefused, l.denied.Error()}
	case l.up:
		return Line{State: LineUp}
	case errors.Is(l.why, ErrRefused):
		return Line{LineRefused, l.why.Error()}
	case started && !l.down.IsZero() && time.Since(l.down) >= tellAfter:
		return Line{LineBroken, l.why.Error()}
	}
	return told
}

// broke notes that the line is broken, and returns false when the instance is gone.
func (i *Instance) broke(err error) bool {
	i.mu.Lock()
	i.line.broke(err)
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
	i.line.connected()
	i.started = true
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
	i.line.heard, i.line.partly = time.Now(), partly
}

// tell reports the state of the line when the state has changed.
func (i *Instance) tell() {
	i.telling.Lock()
	defer i.telling.Unlock()
	i.mu.Lock()
	now := i.told
	if i.final == nil && i.ctx.Err() == nil {
		now = i.line.shown(now, i.started)
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

// begin returns where the line goes on, and whether the runtime is known to have the instance. cut breaks the line.
func (i *Instance) begin(cut context.CancelCauseFunc) (last uint64, begun bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.line.cut = cut
	return i.inbox.last, i.started
}

// renew breaks the line and makes a new line, because the old line may be dead without an error.
func (i *Instance) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.line.up = false
	if i.line.cut != nil {
		i.line.cut(errRenewed)
	}
	i.kickLine()
}
