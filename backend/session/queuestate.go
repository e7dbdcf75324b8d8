package session

import "slices"

// The queue as the state machine sees it: what a person sends while a turn runs waits behind it, one prompt at a time.
//
// When a turn ends well, the first item that is not held becomes the next turn, under its own id. When it ends otherwise (stopped,
// failed, refused, the agent or the program gone) every item is held: what was written for another course of things goes out only when a
// person says so, item by item. So while no turn runs every item is held. Whoever interrupts says what goes next: that one goes however
// the turn ends, unless the program or the agent is restarted meanwhile; the others are held.

// queued is an item of the queue.
type queued struct {
	item string
	held string // why it waits for a person; "" = it does not
}

// Why an item is held.
const (
	heldStopped     = "stopped"     // a person stopped the turn before it, or interrupted it with another one
	heldFailed      = "failed"      // that turn ended with an error
	heldRefused     = "refused"     // the agent refused it
	heldExited      = "exited"      // the agent ended in it
	heldInterrupted = "interrupted" // the program ended or started the agent anew
	heldArchived    = "archived"    // the session was put away
	heldPerson      = "person"      // a person holds it, or took its deletion back
)

const (
	refusedFull = "queue.full"
	refusedGone = "queue.gone" // it has become a turn, or was deleted
)

const maxQueue = 100

type (
	// doQueue adds an item, which becomes a turn at once while none runs; with interrupt the running turn is cancelled for it.
	doQueue struct {
		item      string
		interrupt bool
	}
	doSend    struct{ item string } // this one, now
	doRelease struct{ item string } // this one, when its time has come
	doHold    struct{ item string }
	doHoldAll struct{ why string }
	doMove    struct {
		item string
		to   int
	}
	doRemove struct{ item string }
	// doRestore takes a removal back.
	doRestore struct {
		queued
		to int
	}
)

func (doQueue) isCommand()   {}
func (doSend) isCommand()    {}
func (doRelease) isCommand() {}
func (doHold) isCommand()    {}
func (doHoldAll) isCommand() {}
func (doMove) isCommand()    {}
func (doRemove) isCommand()  {}
func (doRestore) isCommand() {}

type (
	itemQueued struct {
		queued
		to int
	}
	itemMoved struct {
		item string
		to   int
	}
	itemHeld    queued                // or no longer
	itemRemoved struct{ item string } // by a person
	itemTaken   struct{ item string } // it becomes the turn that begins next
	nextChosen  struct{ item string }
)

func (itemQueued) isEvent()  {}
func (itemMoved) isEvent()   {}
func (itemHeld) isEvent()    {}
func (itemRemoved) isEvent() {}
func (itemTaken) isEvent()   {}
func (nextChosen) isEvent()  {}

// find is the place of an item, -1 where it is not there.
func (s state) find(item string) int {
	return slices.IndexFunc(s.queue, func(q queued) bool { return q.item == item })
}

func (s state) after(events []event) state {
	for _, e := range events {
		s = evolve(s, e)
	}
	return s
}

func (c doQueue) decide(s state) []event {
	switch {
	case c.item == "" || s.find(c.item) >= 0:
		return refuse(refusedUntimely)
	case s.turn == "":
		return takeUp(s, nil, c.item)
	case len(s.queue) >= maxQueue:
		return refuse(refusedFull)
	}
	events := []event{itemQueued{queued{item: c.item}, len(s.queue)}}
	// Who sends something while the turn is being stopped knows that: it need not be sent once more after the stop.
	if c.interrupt || s.base == Cancelling && s.next == "" {
		events = append(events, doSend{c.item}.decide(s.after(events))...)
	}
	return events
}

func (c doSend) decide(s state) []event {
	switch {
	case s.find(c.item) < 0:
		return refuse(refusedGone)
	case s.steering(c.item):
		return refuse(refusedSteering)
	case s.turn == "":
		return takeUp(s, nil, c.item)
	}
	events := []event{itemMoved{c.item, 0}, itemHeld{item: c.item}, nextChosen(c)}
	switch {
	case s.base == Cancelling:
		return events
	case !s.sent: // the agent knows nothing of the turn; a start goes on
		return append(events, endTurn(s.after(events), stopCancelled, heldStopped)...)
	}
	return append(events, stop(s)...)
}

func (c doRelease) decide(s state) []event {
	switch i := s.find(c.item); {
	case i < 0:
		return refuse(refusedGone)
	case s.steering(c.item):
		return refuse(refusedSteering)
	case s.turn == "":
		return takeUp(s, nil, c.item)
	case s.queue[i].held == "":
		return nil
	}
	return []event{itemHeld{item: c.item}}
}

func (c doHold) decide(s state) []event {
	switch i := s.find(c.item); {
	case i < 0:
		return refuse(refusedGone)
	case s.queue[i].held != "":
		return nil
	}
	return []event{itemHeld{c.item, heldPerson}}
}

func (c doHoldAll) decide(s state) []event { return hold(s, c.why, "") }

func (c doMove) decide(s state) []event {
	if s.find(c.item) < 0 {
		return refuse(refusedGone)
	}
	return []event{itemMoved{c.item, min(max(c.to, 0), len(s.queue)-1)}}
}

func (c doRemove) decide(s state) []event {
	switch {
	case s.find(c.item) < 0:
		return refuse(refusedGone)
	case s.steering(c.item):
		return refuse(refusedSteering)
	}
	return []event{itemRemoved(c)}
}

func (c doRestore) decide(s state) []event {
	switch {
	case s.find(c.item) >= 0:
		return refuse(refusedUntimely)
	case len(s.queue) >= maxQueue:
		return refuse(refusedFull)
	case c.held == "" && s.turn == "":
		c.held = heldPerson
	}
	return []event{itemQueued{c.queued, min(max(c.to, 0), len(s.queue))}}
}

// holds tells why the queue is held after a turn that ends so; "" when it goes on.
func holds(s state, reason string) string {
	if s.base == Cancelling {
		return heldStopped // whatever the agent calls it
	}
	switch reason {
	case stopEnd, "max_tokens", "max_turn_requests":
		return ""
	case stopCancelled:
		return heldStopped
	case stopAgentExited:
		return heldExited
	case stopInterrupted:
		return heldInterrupted
	case "refusal":
		return heldRefused
	}
	return heldFailed // an error, or a reason that nobody knows
}

// hold holds every item but one.
func hold(s state, why, but string) []event {
	var events []event
	for _, q := range s.queue {
		if (q.held == "" || q.held == heldSteering) && why != "" && q.item != but {
			events = append(events, itemHeld{q.item, why})
		}
	}
	return events
}

// endTurn ends the running turn and begins the one that follows, if any does: what was chosen, or what is first where nothing is held.
func endTurn(s state, reason, why string) []event {
	next := s.next
	if i := slices.IndexFunc(s.queue, func(q queued) bool { return q.held == "" }); next == "" && why == "" && i >= 0 {
		next = s.queue[i].item
	}
	events := append([]event{turnEnded{s.turn, reason}}, hold(s, why, next)...)
	return append(events, takeUp(s, events, next)...)
}

// takeUp makes an item the turn that begins after the events.
func takeUp(s state, events []event, item string) []event {
	if item == "" {
		return nil
	}
	return append([]event{itemTaken{item}}, decidePrompt(s.after(events), doPrompt{item})...)
}

func (e itemQueued) evolve(s state) state {
	s.queue = slices.Insert(slices.Clone(s.queue), e.to, e.queued)
	return s
}

func (e itemMoved) evolve(s state) state {
	i := s.find(e.item)
	q := s.queue[i]
	s.queue = slices.Insert(slices.Delete(slices.Clone(s.queue), i, i+1), e.to, q)
	return s
}

func (e itemHeld) evolve(s state) state {
	s.queue = slices.Clone(s.queue)
	s.queue[s.find(e.item)].held = e.held
	if e.held != "" {
		s = s.unchosen(e.item)
	}
	return s
}

func (e itemRemoved) evolve(s state) state { return s.without(e.item) }
func (e itemTaken) evolve(s state) state   { return s.without(e.item) }

func (e nextChosen) evolve(s state) state {
	s.next = e.item
	return s
}

func (s state) without(item string) state {
	s.queue = slices.DeleteFunc(slices.Clone(s.queue), func(q queued) bool { return q.item == item })
	return s.unchosen(item)
}

func (s state) unchosen(item string) state {
	if s.next == item {
		s.next = ""
	}
	return s
}
