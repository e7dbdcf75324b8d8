package lifecycle

import "slices"

// The queue as the state machine sees it: what a person sends while a turn runs waits behind it, one prompt at a time.
//
// When a turn ends well, the first item that is not held becomes the next turn, under its own id. When it ends otherwise (stopped,
// failed, refused, the agent or the program gone) every item is held: what was written for another course of things goes out only when a
// person says so, item by item. So while no turn runs every item is held. Whoever interrupts says what goes next: that one goes however
// the turn ends, unless the program or the agent is restarted meanwhile; the others are held.

// Queued is an item of the queue.
type Queued struct {
	Item string
	Held string // why it waits for a person; "" = it does not
}

// The reasons for which an item is held.
const (
	HeldStopped     = "stopped"     // a person stopped the turn before it, or interrupted it with another one
	heldFailed      = "failed"      // that turn ended with an error
	heldRefused     = "refused"     // the agent refused it
	heldExited      = "exited"      // the agent ended in it
	HeldInterrupted = "interrupted" // the program ended or started the agent anew
	HeldArchived    = "archived"    // the session was put away
	heldPerson      = "person"      // a person holds it, or took its deletion back
)

// The codes of CommandRefused for commands to the queue.
const (
	RefusedFull = "queue.full"
	RefusedGone = "queue.gone" // it has become a turn, or was deleted
)

// MaxQueue is how many items a queue holds at most.
const MaxQueue = 100

type (
	// Queue adds an item, which becomes a turn at once while none runs. With Interrupt the running turn is cancelled for the item.
	Queue struct {
		Item      string
		Interrupt bool
	}
	// Send sends an item now.
	Send struct{ Item string }
	// Release lets an item go out when its time has come.
	Release struct{ Item string }
	// Hold has an item wait for a person.
	Hold struct{ Item string }
	// HoldAll has every item wait for a person.
	HoldAll struct{ Why string }
	// Move moves an item to another place in the queue.
	Move struct {
		Item string
		To   int
	}
	// Remove deletes an item.
	Remove struct{ Item string }
	// Restore takes the removal of an item back.
	Restore struct {
		Queued
		To int
	}
)

func (Queue) isCommand()   {}
func (Send) isCommand()    {}
func (Release) isCommand() {}
func (Hold) isCommand()    {}
func (HoldAll) isCommand() {}
func (Move) isCommand()    {}
func (Remove) isCommand()  {}
func (Restore) isCommand() {}

type (
	// ItemQueued puts an item into the queue.
	ItemQueued struct {
		Queued
		To int
	}
	// ItemMoved moves an item to another place.
	ItemMoved struct {
		Item string
		To   int
	}
	// ItemHeld has an item wait for a person, or no longer wait.
	ItemHeld Queued
	// ItemRemoved deletes an item for a person.
	ItemRemoved struct{ Item string }
	// ItemTaken makes an item the turn that begins next.
	ItemTaken struct{ Item string }
	// NextChosen chooses the item that goes out after the turn that is being cancelled.
	NextChosen struct{ Item string }
)

func (ItemQueued) isEvent()  {}
func (ItemMoved) isEvent()   {}
func (ItemHeld) isEvent()    {}
func (ItemRemoved) isEvent() {}
func (ItemTaken) isEvent()   {}
func (NextChosen) isEvent()  {}

// Find returns the place of an item in the queue, or -1.
func (s State) Find(item string) int {
	return slices.IndexFunc(s.Queue, func(q Queued) bool { return q.Item == item })
}

func (s State) after(events []Event) State {
	for _, e := range events {
		s = s.Evolve(e)
	}
	return s
}

func (c Queue) decide(s State) []Event {
	switch {
	case c.Item == "" || s.Find(c.Item) >= 0:
		return refuse(RefusedUntimely)
	case s.Turn == "":
		return takeUp(s, nil, c.Item)
	case len(s.Queue) >= MaxQueue:
		return refuse(RefusedFull)
	}
	events := []Event{ItemQueued{Queued{Item: c.Item}, len(s.Queue)}}
	// Who sends something while the turn is being stopped knows that: it need not be sent once more after the stop.
	if c.Interrupt || s.Base == Cancelling && s.next == "" {
		events = append(events, Send{c.Item}.decide(s.after(events))...)
	}
	return events
}

func (c Send) decide(s State) []Event {
	switch {
	case s.Find(c.Item) < 0:
		return refuse(RefusedGone)
	case s.Steering(c.Item):
		return refuse(RefusedSteering)
	case s.Turn == "":
		return takeUp(s, nil, c.Item)
	}
	events := []Event{ItemMoved{c.Item, 0}, ItemHeld{Item: c.Item}, NextChosen(c)}
	switch {
	case s.Base == Cancelling:
		return events
	case !s.Sent: // the agent knows nothing of the turn; a start goes on
		return append(events, endTurn(s.after(events), StopCancelled, HeldStopped)...)
	}
	return append(events, stop(s)...)
}

func (c Release) decide(s State) []Event {
	switch i := s.Find(c.Item); {
	case i < 0:
		return refuse(RefusedGone)
	case s.Steering(c.Item):
		return refuse(RefusedSteering)
	case s.Turn == "":
		return takeUp(s, nil, c.Item)
	case s.Queue[i].Held == "":
		return nil
	}
	return []Event{ItemHeld{Item: c.Item}}
}

func (c Hold) decide(s State) []Event {
	switch i := s.Find(c.Item); {
	case i < 0:
		return refuse(RefusedGone)
	case s.Queue[i].Held != "":
		return nil
	}
	return []Event{ItemHeld{c.Item, heldPerson}}
}

func (c HoldAll) decide(s State) []Event { return hold(s, c.Why, "") }

func (c Move) decide(s State) []Event {
	if s.Find(c.Item) < 0 {
		return refuse(RefusedGone)
	}
	return []Event{ItemMoved{c.Item, min(max(c.To, 0), len(s.Queue)-1)}}
}

func (c Remove) decide(s State) []Event {
	switch {
	case s.Find(c.Item) < 0:
		return refuse(RefusedGone)
	case s.Steering(c.Item):
		return refuse(RefusedSteering)
	}
	return []Event{ItemRemoved(c)}
}

func (c Restore) decide(s State) []Event {
	switch {
	case s.Find(c.Item) >= 0:
		return refuse(RefusedUntimely)
	case len(s.Queue) >= MaxQueue:
		return refuse(RefusedFull)
	case c.Held == "" && s.Turn == "":
		c.Held = heldPerson
	}
	return []Event{ItemQueued{c.Queued, min(max(c.To, 0), len(s.Queue))}}
}

// holds tells why the queue is held after a turn that ends so; "" when it goes on.
func holds(s State, reason string) string {
	if s.Base == Cancelling {
		return HeldStopped // whatever the agent calls it
	}
	switch reason {
	case StopEnd, "max_tokens", "max_turn_requests":
		return ""
	case StopCancelled:
		return HeldStopped
	case StopAgentExited:
		return heldExited
	case StopInterrupted:
		return HeldInterrupted
	case "refusal":
		return heldRefused
	}
	return heldFailed // an error, or a reason that nobody knows
}

// hold holds every item but one.
func hold(s State, why, but string) []Event {
	var events []Event
	for _, q := range s.Queue {
		if (q.Held == "" || q.Held == HeldSteering) && why != "" && q.Item != but {
			events = append(events, ItemHeld{q.Item, why})
		}
	}
	return events
}

// endTurn ends the running turn and begins the one that follows, if any does: what was chosen, or what is first where nothing is held.
func endTurn(s State, reason, why string) []Event {
	next := s.next
	if i := slices.IndexFunc(s.Queue, func(q Queued) bool { return q.Held == "" }); next == "" && why == "" && i >= 0 {
		next = s.Queue[i].Item
	}
	events := append([]Event{TurnEnded{s.Turn, reason}}, hold(s, why, next)...)
	return append(events, takeUp(s, events, next)...)
}

// takeUp makes an item the turn that begins after the events.
func takeUp(s State, events []Event, item string) []Event {
	if item == "" {
		return nil
	}
	return append([]Event{ItemTaken{item}}, decidePrompt(s.after(events), Prompt{item})...)
}

func (e ItemQueued) evolve(s State) State {
	s.Queue = slices.Insert(slices.Clone(s.Queue), e.To, e.Queued)
	return s
}

func (e ItemMoved) evolve(s State) State {
	i := s.Find(e.Item)
	q := s.Queue[i]
	s.Queue = slices.Insert(slices.Delete(slices.Clone(s.Queue), i, i+1), e.To, q)
	return s
}

func (e ItemHeld) evolve(s State) State {
	s.Queue = slices.Clone(s.Queue)
	s.Queue[s.Find(e.Item)].Held = e.Held
	if e.Held != "" {
		s = s.unchosen(e.Item)
	}
	return s
}

func (e ItemRemoved) evolve(s State) State { return s.without(e.Item) }
func (e ItemTaken) evolve(s State) State   { return s.without(e.Item) }

func (e NextChosen) evolve(s State) State {
	s.next = e.Item
	return s
}

func (s State) without(item string) State {
	s.Queue = slices.DeleteFunc(slices.Clone(s.Queue), func(q Queued) bool { return q.Item == item })
	return s.unchosen(item)
}

func (s State) unchosen(item string) State {
	if s.next == item {
		s.next = ""
	}
	return s
}
