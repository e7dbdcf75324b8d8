// Package subagents hides which messages of an agent's process belong to the child sessions in it (ACP, Subagents): an agent may hand a part of
// its work to a subagent, which it announces as a child session, and sends the child's updates and requests over the same connection. The
// conversation that reads the process gives each message to a [Family]; the conversations of the children read theirs from a [Member].
package subagents

import (
	"context"
	"io"
	"sync"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
	"deskhand/backend/transport"
)

// Child is the session of a child, as its owner has it.
type Child struct {
	Session string        // the session's id
	Known   bool          // the session was stored before the process began: what the process replays of it is stored already
	AtWork  func() bool   // reports whether a turn of the session runs
	Join    func(*Member) // has the session read its messages; does not wait for that
}

// Family is the child sessions in one agent process, with their own children. Divert and Replayed are called in the goroutine of the conversation
// that reads the process; any goroutine may call the other methods. A nil Family has no children.
type Family struct {
	process transport.Transport
	ended   <-chan struct{}
	adopt   func(id, teller string) (*Child, error)

	unknown map[string]bool // ids of sessions that are none of a child; belongs to the goroutine of Divert

	mu      sync.Mutex // protects members
	members map[string]*Member
}

// mostUnknown is how many ids of foreign sessions are remembered at a time, each of which is looked for once.
const mostUnknown = 64

// NewFamily returns the family of a process, which is over when ended is closed. adopt returns the child with an ACP session id: the session
// that is stored, or a new one that belongs to the session teller, or nil when none is stored and teller is empty.
func NewFamily(process transport.Transport, ended <-chan struct{}, adopt func(id, teller string) (*Child, error)) *Family {
	return &Family{process: process, ended: ended, adopt: adopt, unknown: map[string]bool{}, members: map[string]*Member{}}
}

// Divert gives a message of the process to the children that the message is about. own is the ACP session id of the session that reads the
// process, reader its id; replays tells that the process replays its history. Divert returns true for a message that is a child's alone.
func (f *Family) Divert(env acp.Envelope, m proxy.Message, own, reader string, replays bool) (theirs bool, err error) {
	session, announced := acp.SessionOf(m.Data, own)
	switch {
	case announced != "":
		return f.announced(session, announced, reader, m, replays)
	case session != own:
		to, err := f.member(session, "")
		if to != nil && (!replays || !to.child.Known) {
			to.push(m)
		}
		return to != nil, err
	case env.Kind == acp.Notification && (env.Method() == "elicitation/complete" || env.Method() == "$/cancel_request"): // these name no session
		for _, member := range f.all() {
			member.push(m)
		}
	}
	return false, nil
}

// announced gives what a session is told of a child to both.
func (f *Family) announced(session, id, reader string, m proxy.Message, replays bool) (theirs bool, err error) {
	teller := f.get(session)
	if teller != nil {
		reader = teller.child.Session
		if !replays || !teller.child.Known {
			teller.push(m)
		}
	}
	member, err := f.member(id, reader)
	switch {
	case member == nil:
	case replays && member.child.Known:
		member.last = []proxy.Message{m}
	default:
		member.push(m)
	}
	return teller != nil, err
}

// Replayed says that the process has replayed its history. What was last told of each child that was stored before is what the child does now.
func (f *Family) Replayed() {
	for _, member := range f.all() {
		for _, m := range member.last {
			member.push(m)
		}
		member.last = nil
	}
}

// AtWork reports whether a child works.
func (f *Family) AtWork() bool {
	for _, member := range f.all() {
		if member.child.AtWork() {
			return true
		}
	}
	return false
}

// Show returns the session of a child that the transcript of its parent does not show yet, and counts it as shown; otherwise Show returns "".
func (f *Family) Show(id string) string {
	member := f.get(id)
	if member == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if member.shown {
		return ""
	}
	member.shown = true
	return member.child.Session
}

func (f *Family) get(id string) *Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[id]
}

func (f *Family) all() (list []*Member) {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, member := range f.members {
		list = append(list, member)
	}
	return list
}

// member returns the child with an ACP session id, and adopts the child when it is new in the process; nil = there is none.
func (f *Family) member(id, teller string) (*Member, error) {
	if member := f.get(id); member != nil {
		return member, nil
	}
	if teller == "" && f.unknown[id] {
		return nil, nil //nolint:nilnil // there is none
	}
	child, err := f.adopt(id, teller)
	if child == nil || err != nil {
		if len(f.unknown) >= mostUnknown {
			clear(f.unknown)
		}
		f.unknown[id] = true
		return nil, err
	}
	member := &Member{family: f, child: child, shown: child.Known, fresh: make(chan struct{}, 1)}
	f.mu.Lock()
	f.members[id] = member
	f.mu.Unlock()
	child.Join(member)
	return member, nil
}

// Member is the place of a child session in the process of its parent's agent: a [transport.Transport] for the child's conversation.
type Member struct {
	family *Family
	child  *Child
	last   []proxy.Message // what was last told of a known child while the history is replayed; belongs to the goroutine of Divert
	shown  bool            // protected by the family
	fresh  chan struct{}   // holds a token when there are messages

	mu    sync.Mutex // protects queue
	queue []proxy.Message
}

// Family returns the family that the member belongs to.
func (m *Member) Family() *Family { return m.family }

func (m *Member) push(message proxy.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, message)
	select {
	case m.fresh <- struct{}{}:
	default:
	}
}

func (m *Member) take() (batch []proxy.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch, m.queue = m.queue, nil
	return batch
}

// Send sends a message of the child to the process.
func (m *Member) Send(ctx context.Context, msg []byte) error { return m.family.process.Send(ctx, msg) }

// After returns the one reader of the child's messages.
func (m *Member) After(uint64) transport.Reader { return reader{m} }

// Status returns the status of the whole process.
func (m *Member) Status() proxy.Status { return m.family.process.Status() }

// Problem returns no problem: the parent tells why a process is gone.
func (*Member) Problem() (code string, params map[string]string) { return "", nil }

// Interrupt sends no signal, which would reach the whole process.
func (*Member) Interrupt() error { return proxy.ErrNoSignal }

// Close leaves the process running.
func (*Member) Close() error { return nil }

// reader reads the messages of a member.
type reader struct{ *Member }

// Next returns io.EOF when the process has ended and all messages are read.
func (r reader) Next(ctx context.Context) ([]proxy.Message, error) {
	for {
		if batch := r.take(); len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-r.fresh:
		case <-r.family.ended:
			if batch := r.take(); len(batch) > 0 {
				return batch, nil
			}
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Working does nothing: a member holds all messages until they are read.
func (reader) Working() {}

// Close does nothing.
func (reader) Close() {}
