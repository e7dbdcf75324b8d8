package session

import (
	"encoding/json"
	"slices"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// steerLimit is how long an agent may take to say whether it has taken a message. It is no wait of the person's: the turn goes on.
const steerLimit = 30 * time.Second

func (w *waitingPrompts) steer(m said) (Sent, error) {
	if w.v.state.Base == lifecycle.Working && !slices.Contains(w.v.row.Offers, transcript.OfferSteer) {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedSteer, Params: map[string]string{"agent": w.v.agentName}}
	}
	if w.v.composer.now != nil { // the agent does not have the turn yet
		return w.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Queue{Item: item} })
	}
	return w.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Steer{Item: item} })
}

// sendSteering sends an item of the queue into the running turn.
func (w *waitingPrompts) sendSteering(item string) {
	a, open := w.v.agent, true
	settle := func(delivered bool, why string) {
		if open && why != "" {
			a.tell([]transcript.Notice{{Severity: "warning", Title: "The message waits in the queue", Description: w.v.agentName + " has not taken it into the running turn: " + w.v.c.secret.Text(why)}})
		}
		open = false
		w.v.do(lifecycle.Steered{Item: item, Delivered: delivered})
	}
	late := time.AfterFunc(steerLimit, func() {
		a.post(func() {
			if open {
				settle(false, "it has not answered")
			}
		})
	})
	send := func(c attachments.Composed) {
		params := map[string]any{"sessionId": w.v.row.ACPSessionID, "prompt": c.Prompt}
		meta := map[string]any{"steering": map[string]any{"idleBehavior": "promptRequired"}}
		params["_meta"] = c.Meta(meta)
		w.v.request("_session/steering", params, func(result json.RawMessage, failure *acp.Error) {
			late.Stop()
			if failure != nil {
				settle(false, failure.Sentence())
				return
			}
			settle(steered(result))
		})
	}
	q := w.items[item]
	if len(q.Attachments) == 0 {
		send(attachments.Composed{Prompt: textPrompt(q.Message)})
		return
	}
	w.v.composer.composeSteering(item, q, send, func(why string) { late.Stop(); settle(false, why) })
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
func (w *waitingPrompts) wasSteered(item string) {
	q := w.items[item]
	n := transcript.Note{Note: transcript.NoteSteered, Prompt: textPrompt(q.Message), Attachments: q.Attachments}
	if w.v.turn != nil {
		n.Turn = w.v.turn.ID
	}
	w.v.note(n)
	w.v.touched()
}

// textPrompt is a message as content blocks.
func textPrompt(message string) []json.RawMessage {
	return []json.RawMessage{mustJSON(map[string]string{"type": "text", "text": message})}
}
