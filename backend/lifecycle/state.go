// Package lifecycle holds the rules of a session's life as a state machine: which phase follows which, when a prompt goes to the agent, what
// a stop does, and what becomes of the prompts that wait. The package is pure: [State.Decide] returns the events that a command leads to,
// [State.Evolve] returns the state after an event, and the conversation of package session carries out every effect (frames, processes,
// timers, rows), so that the rules can be tested and fuzzed without any effect.
//
//	closed ── start ──▶ starting ──▶ (replaying) ──▶ ready ◀──▶ working ◀──▶ waiting
//	   ▲                    │                                      │
//	   └──── exited, failed ┴──────────────── cancelling ◀─ cancel ┘
//
// From ready a session may also fall asleep, to closed: its agent is ended to save memory when the agent says that it can take the
// conversation up again. A session can be deleted in every phase, which closes the session; a deleted session can only be restored, and is
// closed then.
//
// A prompt is accepted while no turn runs: in ready the prompt is sent, before ready the prompt is held, in closed the prompt starts the agent
// first. Waiting is not stored: a session waits when it is starting, ready or working with an open request. A cancel ends a start where the
// agent cannot be asked for anything yet: before the agent has answered initialize, and while no process runs because a person is asked what
// shall start with the agent.
package lifecycle

import (
	"slices"

	"deskhand/backend/transcript"
)

// Phase is where a session is in its life.
type Phase string

// The phases of a session. Ready is idle with a live agent; Closed has no agent process: with an Exit it failed, without one
// it sleeps, and the next prompt wakes it.
const (
	Starting   Phase = "starting"
	Replaying  Phase = "replaying"
	Ready      Phase = "ready"
	Working    Phase = "working"
	Waiting    Phase = "waiting"
	Cancelling Phase = "cancelling"
	Closed     Phase = "closed"
)

// State is the part of a session that the rules read. The zero value is not a state; the state of a session without an agent is
// State{Base: Closed}.
type State struct {
	Base Phase    // never Waiting
	Turn string   // id of the running turn, or ""
	Sent bool     // the prompt of the turn has gone to the agent
	step int      // how far a cancel has escalated: 0 asked, 1 SIGINT, 2 killed
	Open []string // ids of the requests that wait, oldest first

	Asleep  bool // closed to save memory
	Deleted bool // by a person, who can only take the deletion back

	Queue []Queued // prompts that wait behind the turn, in order
	next  string   // the item of the queue that goes out however the turn that is being cancelled ends, or ""
}

// Phase returns the phase that people see.
func (s State) Phase() Phase {
	if len(s.Open) > 0 && (s.Base == Starting || s.Base == Ready || s.Base == Working) {
		return Waiting
	}
	return s.Base
}

// TurnState returns the state of the running turn, as the API names it.
func (s State) TurnState() string {
	if len(s.Open) > 0 {
		return "requires_action"
	}
	return "running"
}

// A Command is something that happened outside of the state: a person's wish, the agent's word, a timer.
type Command interface{ isCommand() }

type (
	// Start starts the agent.
	Start struct{}
	// Replay says that the agent is about to replay its history.
	Replay struct{}
	// AgentReady says that the agent has a session for us.
	AgentReady struct{}
	// Prompt is a person's prompt.
	Prompt struct{ Turn string }
	// Stopped says that the agent has answered the prompt.
	Stopped struct{ Turn, Reason string }
	// Open says that the agent asks a person.
	Open struct{ Request string }
	// Resolve ends a request with a status.
	Resolve struct{ Request, Status string }
	// Cancel is a person's stop. Unstarted says that the agent cannot be asked for anything yet.
	Cancel struct{ Unstarted bool }
	// Escalate says that the cancel was not heeded in time.
	Escalate struct{}
	// Exited says that the process is gone, or never came. Code is the code of a problem.
	Exited struct{ Code string }
	// Hibernate asks for the agent's memory. ComesBack says that the agent can take the conversation up again.
	Hibernate struct{ ComesBack bool }
	// Delete deletes the session.
	Delete struct{}
	// Undelete takes the deletion of the session back.
	Undelete struct{}

	// A queueCommand is what a person does with the queue.
	queueCommand interface {
		Command
		decide(s State) []Event
	}
)

func (Start) isCommand()      {}
func (Replay) isCommand()     {}
func (AgentReady) isCommand() {}
func (Prompt) isCommand()     {}
func (Stopped) isCommand()    {}
func (Open) isCommand()       {}
func (Resolve) isCommand()    {}
func (Cancel) isCommand()     {}
func (Escalate) isCommand()   {}
func (Exited) isCommand()     {}

func (Hibernate) isCommand() {}

func (Delete) isCommand()   {}
func (Undelete) isCommand() {}

// An Event is a decision: an event changes the state, and the conversation does the work that belongs to the event.
type Event interface{ isEvent() }

type (
	// StartBegun says that the agent is started.
	StartBegun struct{}
	// ReplayBegun says that the agent replays its history.
	ReplayBegun struct{}
	// BecameReady says that the agent takes prompts.
	BecameReady struct{}
	// TurnBegun begins a turn.
	TurnBegun struct{ Turn string }
	// PromptSent sends the prompt of the turn to the agent.
	PromptSent struct{ Turn string }
	// TurnEnded ends the running turn.
	TurnEnded struct{ Turn, Reason string }
	// RequestOpened has a request wait for a person.
	RequestOpened struct{ Request string }
	// RequestEnded ends a request with one of the statuses below.
	RequestEnded struct{ Request, Status string }
	// CancelSent asks the agent to stop the turn.
	CancelSent struct{}
	// InterruptSent interrupts an agent that does not stop.
	InterruptSent struct{}
	// Killed kills an agent that does not stop.
	Killed struct{}
	// SessionClosed says that the session has no agent any more. Code is the code of a problem.
	SessionClosed struct{ Code string }
	// FellAsleep ends the agent to save memory.
	FellAsleep struct{}
	// CommandRefused says that nothing happened. Code is the reason.
	CommandRefused struct{ Code string }

	// A DeletionEvent deletes or restores the session.
	DeletionEvent interface {
		Event
		isDeletion()
	}
	// SessionDeleted deletes the session.
	SessionDeleted struct{}
	// SessionRestored takes the deletion of the session back.
	SessionRestored struct{}

	// A QueueEvent changes the queue.
	QueueEvent interface {
		Event
		evolve(s State) State
	}
)

func (StartBegun) isEvent()     {}
func (ReplayBegun) isEvent()    {}
func (BecameReady) isEvent()    {}
func (TurnBegun) isEvent()      {}
func (PromptSent) isEvent()     {}
func (TurnEnded) isEvent()      {}
func (RequestOpened) isEvent()  {}
func (RequestEnded) isEvent()   {}
func (CancelSent) isEvent()     {}
func (InterruptSent) isEvent()  {}
func (Killed) isEvent()         {}
func (SessionClosed) isEvent()  {}
func (FellAsleep) isEvent()     {}
func (CommandRefused) isEvent() {}

func (SessionDeleted) isEvent()     {}
func (SessionRestored) isEvent()    {}
func (SessionDeleted) isDeletion()  {}
func (SessionRestored) isDeletion() {}

// The codes of CommandRefused.
const (
	RefusedRunning  = "turn.running"
	refusedNoTurn   = "turn.none"
	refusedStarted  = "session.running"
	RefusedNotOpen  = "request.resolved"
	RefusedUntimely = "session.untimely" // the agent's word came too late to mean anything
	refusedForgets  = "session.forgets"  // the agent could not take the conversation up again
)

// The reasons of TurnEnded that the rules know: the first two are stop reasons of ACP, the others are ours.
const (
	StopEnd         = "end_turn"
	StopCancelled   = "cancelled"
	StopAgentExited = "agent_exited"
	StopInterrupted = "interrupted"
	StopError       = "error"
)

// The statuses of a request. All but the first end the request.
const (
	StatusRequested = "requested"
	StatusAnswered  = "answered"
	StatusRejected  = "rejected"
	StatusCancelled = "cancelled"
	StatusExpired   = "expired"
)

func refuse(code string) []Event { return []Event{CommandRefused{code}} }

// Decide returns the events that a command leads to in the state. They are to be applied in order, by Evolve.
func (s State) Decide(c Command) []Event {
	if s.Deleted {
		return decideDeleted(c)
	}
	switch c := c.(type) {
	case Start:
		if s.Base != Closed {
			return refuse(refusedStarted)
		}
		return []Event{StartBegun{}}
	case Replay:
		if s.Base != Starting {
			return refuse(RefusedUntimely)
		}
		return []Event{ReplayBegun{}}
	case AgentReady:
		return decideReady(s)
	case Prompt:
		return decidePrompt(s, c)
	case Stopped:
		if c.Turn == "" || c.Turn != s.Turn || s.Base == Cancelling && s.step == 2 {
			// An agent may answer as it is killed. Its end is that of the turn: what follows must not begin in a process that goes.
			return refuse(RefusedUntimely)
		}
		if s.Base == Cancelling && c.Reason == StopEnd {
			c.Reason = StopCancelled // some agents say end_turn to a cancel; the person stopped it all the same
		}
		return append(endRequests(s, StatusCancelled), endTurn(s, c.Reason, holds(s, c.Reason))...)
	case Open:
		return decideOpen(s, c)
	case Resolve:
		if !slices.Contains(s.Open, c.Request) {
			return refuse(RefusedNotOpen)
		}
		return []Event{RequestEnded(c)}
	case Cancel:
		return decideCancel(s, c)
	case Escalate:
		return decideEscalate(s)
	case Exited:
		return decideExited(s, c)
	case Hibernate:
		return decideHibernate(s, c)
	case Delete:
		return decideDelete(s)
	case queueCommand:
		return c.decide(s)
	}
	return refuse(RefusedUntimely)
}

func decideReady(s State) []Event {
	if s.Base != Starting && s.Base != Replaying {
		return refuse(RefusedUntimely)
	}
	events := []Event{BecameReady{}}
	if s.Turn != "" {
		events = append(events, PromptSent{s.Turn})
	}
	return events
}

func decidePrompt(s State, c Prompt) []Event {
	switch {
	case c.Turn == "":
		return refuse(RefusedUntimely)
	case s.Turn != "":
		return refuse(RefusedRunning)
	case s.Base == Ready:
		return []Event{TurnBegun(c), PromptSent(c)}
	case s.Base == Closed:
		return []Event{TurnBegun(c), StartBegun{}}
	}
	return []Event{TurnBegun(c)} // starting or replaying: held until the agent is ready
}

func decideOpen(s State, c Open) []Event {
	switch {
	case s.Base == Closed || c.Request == "" || slices.Contains(s.Open, c.Request):
		return refuse(RefusedUntimely)
	case s.Base == Cancelling:
		// Asked while it should stop: told no at once, and still seen in the transcript.
		return []Event{RequestOpened(c), RequestEnded{c.Request, StatusCancelled}}
	}
	return []Event{RequestOpened(c)}
}

func decideCancel(s State, c Cancel) []Event {
	switch {
	case c.Unstarted && (s.Base == Starting || s.Base == Replaying):
		return decideEndOfStart(s)
	case s.Turn == "":
		return refuse(refusedNoTurn)
	case s.Base == Cancelling && s.next != "":
		return []Event{NextChosen{""}} // nothing shall follow any more
	case s.Base == Cancelling:
		return refuse(RefusedUntimely)
	case !s.Sent: // held: the agent knows nothing of it
		return endTurn(s, StopCancelled, HeldStopped)
	}
	return stop(s)
}

// stop asks the agent to stop, and only then answers what it has asked: to one that is told no before, that is how the turn goes on.
func stop(s State) []Event { return append([]Event{CancelSent{}}, endRequests(s, StatusCancelled)...) }

// decideEndOfStart ends the agent before it is ready: it is as if it had not been started.
func decideEndOfStart(s State) []Event {
	events := endRequests(s, StatusCancelled)
	if s.Turn != "" {
		events = append(events, endTurn(s, StopCancelled, HeldStopped)...)
	}
	return append(events, SessionClosed{transcript.ProblemQuit})
}

func decideEscalate(s State) []Event {
	switch {
	case s.Base != Cancelling:
		return refuse(RefusedUntimely)
	case s.step == 0:
		return []Event{InterruptSent{}}
	case s.step == 1:
		return []Event{Killed{}}
	}
	return refuse(RefusedUntimely)
}

func decideExited(s State, c Exited) []Event {
	if s.Base == Closed {
		return refuse(RefusedUntimely)
	}
	reason := StopAgentExited
	switch {
	case s.Base == Cancelling:
		reason = StopCancelled
	case c.Code == transcript.ProblemInterrupted, c.Code == transcript.ProblemRestart:
		reason = StopInterrupted
	}
	next := s.next
	if c.Code != transcript.ProblemExited {
		next = "" // it is not the cancel that ended it
	}
	events := endRequests(s, StatusExpired)
	if s.Turn != "" {
		events = append(events, TurnEnded{s.Turn, reason})
	}
	events = append(events, hold(s, holds(s, reason), next)...)
	events = append(events, SessionClosed(c))
	return append(events, takeUp(s, events, next)...)
}

// decideHibernate lets only those sleep that nothing is lost of: nothing runs, nobody is asked, and the agent comes back.
func decideHibernate(s State, c Hibernate) []Event {
	switch {
	case s.Base != Ready || s.Turn != "" || len(s.Open) > 0 || s.steers():
		return refuse(RefusedUntimely)
	case !c.ComesBack:
		return refuse(refusedForgets)
	}
	return []Event{FellAsleep{}}
}

// decideDelete ends all that goes on: what waits in the queue stays, and is held.
func decideDelete(s State) []Event {
	events := endRequests(s, StatusCancelled)
	if s.Turn != "" {
		events = append(events, TurnEnded{s.Turn, StopCancelled})
	}
	events = append(events, hold(s, HeldStopped, "")...)
	if s.Base != Closed {
		events = append(events, SessionClosed{transcript.ProblemDeleted})
	}
	return append(events, SessionDeleted{})
}

func decideDeleted(c Command) []Event {
	if _, back := c.(Undelete); back {
		return []Event{SessionRestored{}}
	}
	return refuse(RefusedUntimely)
}

func endRequests(s State, status string) []Event {
	var events []Event
	for _, r := range s.Open {
		events = append(events, RequestEnded{r, status})
	}
	return events
}

// Evolve returns the state after an event.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case StartBegun:
		s.Base, s.Asleep = Starting, false
	case ReplayBegun:
		s.Base = Replaying
	case BecameReady:
		s.Base = Ready
	case TurnBegun:
		s.Turn, s.Sent = e.Turn, false
	case PromptSent:
		s.Base, s.Sent = Working, true
	case TurnEnded:
		if s.Sent {
			s.Base = Ready
		}
		s.Turn, s.Sent, s.step, s.next = "", false, 0, ""
	case RequestOpened:
		s.Open = append(slices.Clone(s.Open), e.Request)
	case RequestEnded:
		s.Open = slices.DeleteFunc(slices.Clone(s.Open), func(r string) bool { return r == e.Request })
	case CancelSent:
		s.Base, s.step = Cancelling, 0
	case InterruptSent:
		s.step = 1
	case Killed:
		s.step = 2
	case SessionClosed:
		s = State{Base: Closed, Queue: s.Queue}
	case FellAsleep:
		s = State{Base: Closed, Asleep: true, Queue: s.Queue}
	case SessionDeleted, SessionRestored:
		_, s.Deleted = e.(SessionDeleted)
	case QueueEvent:
		s = e.evolve(s)
	case CommandRefused:
	}
	return s
}
