package lifecycle

import "slices"

// Steering reaches an agent within the turn that runs, where the agent has _session/steering. The message stands in the queue, held,
// until the agent has answered: so it outlasts a crash, and goes out behind the turn when the agent has not taken it. An agent that
// answers only when the turn is over is told (idleBehavior) not to begin one of its own: no turn runs that we do not know of.

// HeldSteering marks an item that is on its way into the running turn. The item is held until the agent has said whether it took the item.
const HeldSteering = "steering"

// The codes of CommandRefused for steering.
const (
	RefusedSteer    = "steer.unsupported"
	RefusedSteering = "queue.steering" // the item is on its way
)

type (
	// Steer sends a person's message into the running turn.
	Steer struct{ Item string }
	// Steered tells whether the agent has taken an item. An item that was delivered is not sent again.
	Steered struct {
		Item      string
		Delivered bool
	}
)

func (Steer) isCommand()   {}
func (Steered) isCommand() {}

type (
	// SteerSent sends an item into the running turn.
	SteerSent struct{ Item string }
	// ItemSteered says that the agent has the item.
	ItemSteered struct{ Item string }
)

func (SteerSent) isEvent()   {}
func (ItemSteered) isEvent() {}

func (SteerSent) evolve(s State) State     { return s }
func (e ItemSteered) evolve(s State) State { return s.without(e.Item) }

func (c Steer) decide(s State) []Event {
	switch {
	case s.Base != Working: // there is no turn, or none that the agent could be told something in
		return Queue{Item: c.Item}.decide(s)
	case c.Item == "" || s.Find(c.Item) >= 0:
		return refuse(RefusedUntimely)
	case len(s.Queue) >= MaxQueue:
		return refuse(RefusedFull)
	}
	return []Event{ItemQueued{Queued{c.Item, HeldSteering}, 0}, SteerSent(c)}
}

func (c Steered) decide(s State) []Event {
	i := s.Find(c.Item)
	switch {
	case i < 0:
		return refuse(RefusedUntimely)
	case c.Delivered:
		return []Event{ItemSteered{c.Item}}
	case s.Queue[i].Held != HeldSteering: // the turn was stopped meanwhile, or failed: a person decides
		return nil
	case s.Turn == "": // the turn has ended meanwhile, and well
		return takeUp(s, nil, c.Item)
	}
	return []Event{ItemHeld{Item: c.Item}}
}

// Steering reports whether an item is on its way into the running turn.
func (s State) Steering(item string) bool {
	i := s.Find(item)
	return i >= 0 && s.Queue[i].Held == HeldSteering
}

// steers reports whether any item is on its way into the running turn.
func (s State) steers() bool {
	return slices.ContainsFunc(s.Queue, func(q Queued) bool { return q.Held == HeldSteering })
}
