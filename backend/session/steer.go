package session

import (
	"encoding/json"
	"slices"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/transcript"
)

// Steering reaches an agent within the turn that runs, where the agent has _session/steering. The message stands in the queue, held,
// until the agent has answered: so it outlasts a crash, and goes out behind the turn when the agent has not taken it. An agent that
// answers only when the turn is over is told (idleBehavior) not to begin one of its own: no turn runs that we do not know of.

// heldSteering marks what is on its way into the running turn; it is held as long as nobody knows whether it has come there.
const heldSteering = "steering"

const (
	refusedSteer    = "steer.unsupported"
	refusedSteering = "queue.steering" // it is on its way
)

// steerLimit is how long an agent may take to say whether it has taken a message. It is no wait of the person's: the turn goes on.
const steerLimit = 30 * time.Second

type (
	doSteer struct{ item string } // a person's message for the running turn
	// doSteered is what has become of it. Of one that was delivered nothing more is to be sent.
	doSteered struct {
		item      string
		delivered bool
	}
)

func (doSteer) isCommand()   {}
func (doSteered) isCommand() {}

type (
	steerSent   struct{ item string }
	itemSteered struct{ item string } // the agent has it
)

func (steerSent) isEvent()   {}
func (itemSteered) isEvent() {}

func (steerSent) evolve(s state) state     { return s }
func (e itemSteered) evolve(s state) state { return s.without(e.item) }

func (c doSteer) decide(s state) []event {
	switch {
	case s.base != Working: // there is no turn, or none that the agent could be told something in
		return doQueue{item: c.item}.decide(s)
	case c.item == "" || s.find(c.item) >= 0:
		return refuse(refusedUntimely)
	case len(s.queue) >= maxQueue:
		return refuse(refusedFull)
	}
	return []event{itemQueued{queued{c.item, heldSteering}, 0}, steerSent(c)}
}

func (c doSteered) decide(s state) []event {
	i := s.find(c.item)
	switch {
	case i < 0:
		return refuse(refusedUntimely)
	case c.delivered:
		return []event{itemSteered{c.item}}
	case s.queue[i].held != heldSteering: // the turn was stopped meanwhile, or failed: a person decides
		return nil
	case s.turn == "": // the turn has ended meanwhile, and well
		return takeUp(s, nil, c.item)
	}
	return []event{itemHeld{item: c.item}}
}

// steering tells whether the item is on its way.
func (s state) steering(item string) bool {
	i := s.find(item)
	return i >= 0 && s.queue[i].held == heldSteering
}

// steers tells whether anything is.
func (s state) steers() bool {
	return slices.ContainsFunc(s.queue, func(q queued) bool { return q.held == heldSteering })
}

func (v *conversation) steer(m said) (Sent, error) {
	if v.state.base == Working && !slices.Contains(v.row.Offers, transcript.OfferSteer) {
		return Sent{}, &RefusedError{Code: refusedSteer, Params: map[string]string{"agent": v.agentName}}
	}
	if v.composing != nil { // the agent does not have the turn yet
		return v.enqueue(m, func(item string) command { return doQueue{item: item} })
	}
	return v.enqueue(m, func(item string) command { return doSteer{item} })
}

// sendSteering sends an item of the queue into the running turn.
func (v *conversation) sendSteering(item string) {
	a, open := v.agent, true
	settle := func(delivered bool, why string) {
		if open && why != "" {
			a.tell([]transcript.Notice{{Severity: "warning", Title: "The message waits in the queue", Description: v.agentName + " has not taken it into the running turn: " + v.c.secret.Text(why)}})
		}
		open = false
		v.do(doSteered{item, delivered})
	}
	late := time.AfterFunc(steerLimit, func() {
		a.post(func() {
			if open {
				settle(false, "it has not answered")
			}
		})
	})
	send := func(c attachments.Composed) {
		params := map[string]any{"sessionId": v.row.ACPSessionID, "prompt": c.Prompt}
		meta := map[string]any{"steering": map[string]any{"idleBehavior": "promptRequired"}}
		params["_meta"] = c.Meta(meta)
		v.request("_session/steering", params, func(result json.RawMessage, failure *acp.Error) {
			late.Stop()
			if failure != nil {
				settle(false, failure.Sentence())
				return
			}
			settle(steered(result))
		})
	}
	q := v.prompts.items[item]
	if len(q.Attachments) == 0 {
		send(attachments.Composed{Prompt: textPrompt(q.Message)})
		return
	}
	v.composeSteering(item, q, send, func(why string) { late.Stop(); settle(false, why) })
}

// steered reads the agent's answer. One that begins a turn of its own all the same has the message, which must not go out twice.
func steered(result json.RawMessage) (delivered bool, why string) {
	var r struct {
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	}
	_ = json.Unmarshal(result, &r) // what cannot be read is no delivery
	switch r.Outcome {
	case "injected", "startedNewTurn":
		return true, ""
	case "promptRequired": // the turn was over: it becomes the next one
		return false, ""
	}
	if r.Reason == "" {
		r.Reason = "it says " + string(mustJSON(r.Outcome))
	}
	return false, r.Reason
}

// wasSteered shows the message where the agent has it.
func (v *conversation) wasSteered(item string) {
	q := v.prompts.items[item]
	n := transcript.Note{Note: transcript.NoteSteered, Prompt: textPrompt(q.Message), Attachments: q.Attachments}
	if v.turn != nil {
		n.Turn = v.turn.ID
	}
	v.note(n)
	v.touched()
}

// textPrompt is a message as content blocks.
func textPrompt(message string) []json.RawMessage {
	return []json.RawMessage{mustJSON(map[string]string{"type": "text", "text": message})}
}
