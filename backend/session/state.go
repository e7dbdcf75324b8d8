package session

import (
	"slices"

	"deskhand/backend/transcript"
)

// The life of one session as a pure machine: decide tells what a command leads to, evolve what an event changes. Everything with
// an effect (frames, processes, timers, rows) is done by the conversation when it applies an event, so that the rules below can be
// tested and fuzzed without any of it.
//
//	closed ── start ──▶ starting ──▶ (replaying) ──▶ ready ◀──▶ working ◀──▶ waiting
//	   ▲                    │                                      │
//	   └──── exited, failed ┴──────────────── cancelling ◀─ cancel ┘
//
// From ready a session may also fall asleep, to closed: its agent is ended to save memory, if it says that it can take the conversation
// up again. Any may be deleted, which closes it; a deleted one can only be restored, and is closed then.
//
// A prompt is accepted while nothing runs: in ready it is sent, before ready it is held, in closed it starts the agent first.
// Waiting is not stored; it is starting, ready or working with an open request. A cancel ends a start where nothing can be asked of the
// agent yet: it has not answered initialize, or there is no process, since a person is asked what shall start with it.
//
// What waits behind the running turn is the queue, see queuestate.go.

// state is what the rules need to know.
type state struct {
	base Phase    // never Waiting
	turn string   // the running turn, "" while none
	sent bool     // its prompt has gone to the agent
	step int      // how far a cancel has escalated: 0 asked, 1 SIGINT, 2 killed
	open []string // requests that wait, oldest first

	asleep  bool // closed to save memory
	deleted bool // by a person: nothing happens in it but that this is taken back

	queue []queued // what waits behind the turn, in order
	next  string   // of the queue, what goes out however the turn that is being cancelled ends; "" = nothing
}

func (s state) phase() Phase {
	if len(s.open) > 0 && (s.base == Starting || s.base == Ready || s.base == Working) {
		return Waiting
	}
	return s.base
}

// A command is something that happened outside: a person's wish, the agent's word, a timer.
type command interface{ isCommand() }

type (
	doStart    struct{}                      // start the agent
	doReplay   struct{}                      // the agent is about to replay its history
	doReady    struct{}                      // the agent has a session for us
	doPrompt   struct{ turn string }         // a person's prompt
	doStopped  struct{ turn, reason string } // the agent answered the prompt
	doOpen     struct{ request string }      // the agent asks
	doResolve  struct{ request, status string }
	doCancel   struct{ unstarted bool } // a person's Stop; unstarted when nothing can be asked of the agent yet
	doEscalate struct{}                 // the cancel was not heeded in time
	doExited   struct{ code string }    // the process is gone, or never came; a stable problem code

	doHibernate struct{ comesBack bool } // its memory is wanted; whether the agent can take the conversation up again

	doDelete   struct{} // the session
	doUndelete struct{}

	queueCommand interface { // what a person does with the queue
		command
		decide(s state) []event
	}
)

func (doStart) isCommand()    {}
func (doReplay) isCommand()   {}
func (doReady) isCommand()    {}
func (doPrompt) isCommand()   {}
func (doStopped) isCommand()  {}
func (doOpen) isCommand()     {}
func (doResolve) isCommand()  {}
func (doCancel) isCommand()   {}
func (doEscalate) isCommand() {}
func (doExited) isCommand()   {}

func (doHibernate) isCommand() {}

func (doDelete) isCommand()   {}
func (doUndelete) isCommand() {}

// An event is a decision: it changes the state, and the conversation does what belongs to it.
type event interface{ isEvent() }

type (
	startBegun     struct{}
	replayBegun    struct{}
	becameReady    struct{}
	turnBegun      struct{ turn string }
	promptSent     struct{ turn string }
	turnEnded      struct{ turn, reason string }
	requestOpened  struct{ request string }
	requestEnded   struct{ request, status string } // answered, rejected, cancelled, expired
	cancelSent     struct{}
	interruptSent  struct{}
	killed         struct{}
	sessionClosed  struct{ code string }
	fellAsleep     struct{}
	commandRefused struct{ code string } // nothing happened; the code tells why

	deletionEvent interface {
		event
		isDeletion()
	}
	sessionDeleted  struct{}
	sessionRestored struct{}

	queueEvent interface { // the queue is another one
		event
		evolve(s state) state
	}
)

func (startBegun) isEvent()     {}
func (replayBegun) isEvent()    {}
func (becameReady) isEvent()    {}
func (turnBegun) isEvent()      {}
func (promptSent) isEvent()     {}
func (turnEnded) isEvent()      {}
func (requestOpened) isEvent()  {}
func (requestEnded) isEvent()   {}
func (cancelSent) isEvent()     {}
func (interruptSent) isEvent()  {}
func (killed) isEvent()         {}
func (sessionClosed) isEvent()  {}
func (fellAsleep) isEvent()     {}
func (commandRefused) isEvent() {}

func (sessionDeleted) isEvent()     {}
func (sessionRestored) isEvent()    {}
func (sessionDeleted) isDeletion()  {}
func (sessionRestored) isDeletion() {}

// Why a command was refused.
const (
	refusedRunning  = "turn.running"
	refusedNoTurn   = "turn.none"
	refusedStarted  = "session.running"
	refusedNotOpen  = "request.resolved"
	refusedUntimely = "session.untimely" // the agent's word came when it means nothing any more
	refusedForgets  = "session.forgets"  // the agent could not take the conversation up again
)

// What ends a turn: two of ACP's stop reasons, and ours.
const (
	stopEnd         = "end_turn"
	stopCancelled   = "cancelled"
	stopAgentExited = "agent_exited"
	stopInterrupted = "interrupted"
	stopError       = "error"
)

const (
	statusRequested = "requested"
	statusAnswered  = "answered"
	statusRejected  = "rejected"
	statusCancelled = "cancelled"
	statusExpired   = "expired"
)

func refuse(code string) []event { return []event{commandRefused{code}} }

// decide tells what the command leads to in this state.
func decide(s state, c command) []event {
	if s.deleted {
		return decideDeleted(c)
	}
	switch c := c.(type) {
	case doStart:
		if s.base != Closed {
			return refuse(refusedStarted)
		}
		return []event{startBegun{}}
	case doReplay:
		if s.base != Starting {
			return refuse(refusedUntimely)
		}
		return []event{replayBegun{}}
	case doReady:
		return decideReady(s)
	case doPrompt:
		return decidePrompt(s, c)
	case doStopped:
		if c.turn == "" || c.turn != s.turn || s.base == Cancelling && s.step == 2 {
			// An agent may answer as it is killed. Its end is that of the turn: what follows must not begin in a process that goes.
			return refuse(refusedUntimely)
		}
		if s.base == Cancelling && c.reason == stopEnd {
			c.reason = stopCancelled // some agents say end_turn to a cancel; the person stopped it all the same
		}
		return append(endRequests(s, statusCancelled), endTurn(s, c.reason, holds(s, c.reason))...)
	case doOpen:
		return decideOpen(s, c)
	case doResolve:
		if !slices.Contains(s.open, c.request) {
			return refuse(refusedNotOpen)
		}
		return []event{requestEnded(c)}
	case doCancel:
		return decideCancel(s, c)
	case doEscalate:
		return decideEscalate(s)
	case doExited:
		return decideExited(s, c)
	case doHibernate:
		return decideHibernate(s, c)
	case doDelete:
		return decideDelete(s)
	case queueCommand:
		return c.decide(s)
	}
	return refuse(refusedUntimely)
}

func decideReady(s state) []event {
	if s.base != Starting && s.base != Replaying {
		return refuse(refusedUntimely)
	}
	events := []event{becameReady{}}
	if s.turn != "" {
		events = append(events, promptSent{s.turn})
	}
	return events
}

func decidePrompt(s state, c doPrompt) []event {
	switch {
	case c.turn == "":
		return refuse(refusedUntimely)
	case s.turn != "":
		return refuse(refusedRunning)
	case s.base == Ready:
		return []event{turnBegun(c), promptSent(c)}
	case s.base == Closed:
		return []event{turnBegun(c), startBegun{}}
	}
	return []event{turnBegun(c)} // starting or replaying: held until the agent is ready
}

func decideOpen(s state, c doOpen) []event {
	switch {
	case s.base == Closed || c.request == "" || slices.Contains(s.open, c.request):
		return refuse(refusedUntimely)
	case s.base == Cancelling:
		// Asked while it should stop: told no at once, and still seen in the transcript.
		return []event{requestOpened(c), requestEnded{c.request, statusCancelled}}
	}
	return []event{requestOpened(c)}
}

func decideCancel(s state, c doCancel) []event {
	switch {
	case c.unstarted && (s.base == Starting || s.base == Replaying):
		return decideEndOfStart(s)
	case s.turn == "":
		return refuse(refusedNoTurn)
	case s.base == Cancelling && s.next != "":
		return []event{nextChosen{""}} // nothing shall follow any more
	case s.base == Cancelling:
		return refuse(refusedUntimely)
	case !s.sent: // held: the agent knows nothing of it
		return endTurn(s, stopCancelled, heldStopped)
	}
	return stop(s)
}

// stop asks the agent to stop, and only then answers what it has asked: to one that is told no before, that is how the turn goes on.
func stop(s state) []event { return append([]event{cancelSent{}}, endRequests(s, statusCancelled)...) }

// decideEndOfStart ends the agent before it is ready: it is as if it had not been started.
func decideEndOfStart(s state) []event {
	events := endRequests(s, statusCancelled)
	if s.turn != "" {
		events = append(events, endTurn(s, stopCancelled, heldStopped)...)
	}
	return append(events, sessionClosed{transcript.ProblemQuit})
}

func decideEscalate(s state) []event {
	switch {
	case s.base != Cancelling:
		return refuse(refusedUntimely)
	case s.step == 0:
		return []event{interruptSent{}}
	case s.step == 1:
		return []event{killed{}}
	}
	return refuse(refusedUntimely)
}

func decideExited(s state, c doExited) []event {
	if s.base == Closed {
		return refuse(refusedUntimely)
	}
	reason := stopAgentExited
	switch {
	case s.base == Cancelling:
		reason = stopCancelled
	case c.code == transcript.ProblemInterrupted, c.code == transcript.ProblemRestart:
		reason = stopInterrupted
	}
	next := s.next
	if c.code != transcript.ProblemExited {
		next = "" // it is not the cancel that ended it
	}
	events := endRequests(s, statusExpired)
	if s.turn != "" {
		events = append(events, turnEnded{s.turn, reason})
	}
	events = append(events, hold(s, holds(s, reason), next)...)
	events = append(events, sessionClosed(c))
	return append(events, takeUp(s, events, next)...)
}

// decideHibernate lets only those sleep that nothing is lost of: nothing runs, nobody is asked, and the agent comes back.
func decideHibernate(s state, c doHibernate) []event {
	switch {
	case s.base != Ready || s.turn != "" || len(s.open) > 0 || s.steers():
		return refuse(refusedUntimely)
	case !c.comesBack:
		return refuse(refusedForgets)
	}
	return []event{fellAsleep{}}
}

// decideDelete ends all that goes on: what waits in the queue stays, and is held.
func decideDelete(s state) []event {
	events := endRequests(s, statusCancelled)
	if s.turn != "" {
		events = append(events, turnEnded{s.turn, stopCancelled})
	}
	events = append(events, hold(s, heldStopped, "")...)
	if s.base != Closed {
		events = append(events, sessionClosed{transcript.ProblemDeleted})
	}
	return append(events, sessionDeleted{})
}

func decideDeleted(c command) []event {
	if _, back := c.(doUndelete); back {
		return []event{sessionRestored{}}
	}
	return refuse(refusedUntimely)
}

func endRequests(s state, status string) []event {
	var events []event
	for _, r := range s.open {
		events = append(events, requestEnded{r, status})
	}
	return events
}

// evolve is the state after the event.
func evolve(s state, e event) state {
	switch e := e.(type) {
	case startBegun:
		s.base, s.asleep = Starting, false
	case replayBegun:
		s.base = Replaying
	case becameReady:
		s.base = Ready
	case turnBegun:
		s.turn, s.sent = e.turn, false
	case promptSent:
		s.base, s.sent = Working, true
	case turnEnded:
		if s.sent {
			s.base = Ready
		}
		s.turn, s.sent, s.step, s.next = "", false, 0, ""
	case requestOpened:
		s.open = append(slices.Clone(s.open), e.request)
	case requestEnded:
		s.open = slices.DeleteFunc(slices.Clone(s.open), func(r string) bool { return r == e.request })
	case cancelSent:
		s.base, s.step = Cancelling, 0
	case interruptSent:
		s.step = 1
	case killed:
		s.step = 2
	case sessionClosed:
		s = state{base: Closed, queue: s.queue}
	case fellAsleep:
		s = state{base: Closed, asleep: true, queue: s.queue}
	case sessionDeleted, sessionRestored:
		_, s.deleted = e.(sessionDeleted)
	case queueEvent:
		s = e.evolve(s)
	case commandRefused:
	}
	return s
}
