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

// steerLimit is how long an agent may take to answer whether it has taken a message into the turn. Nobody waits for the answer: the turn
// goes on.
const steerLimit = 30 * time.Second

// steer sends a message into the running turn. If the prompt of the turn was not sent yet, or no turn runs, the message is queued or begins
// a turn.
func (w *waitingPrompts) steer(m said) (Sent, error) {
	if w.v.state.Base == lifecycle.Working && !slices.Contains(w.v.row.Offers, transcript.OfferSteer) {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedSteer, Params: map[string]string{"agent": w.v.agentName}}
	}
	if w.v.composer.now != nil { // the agent was not sent the prompt of the turn yet
		return w.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Queue{Item: item} })
	}
	return w.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Steer{Item: item} })
}

// sendSteering sends an item of the queue into the running turn. An item that the agent does not take stays in the queue, and a notice says
// why.
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

// steered reads the agent's answer. An agent that begins a turn of its own with the message has the message, so the message must not be
// sent again.
func steered(result json.RawMessage) (delivered bool, why string) {
	var r struct {
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	}
	_ = json.Unmarshal(result, &r) // an answer that cannot be read counts as not delivered
	switch r.Outcome {
	case "injected", "startedNewTurn":
		return true, ""
	case "promptRequired": // the turn was over: the message becomes the next turn
		return false, ""
	}
	if r.Reason == "" {
		r.Reason = "it says " + string(mustJSON(r.Outcome))
	}
	return false, r.Reason
}

// wasSteered adds the delivered message to the transcript.
func (w *waitingPrompts) wasSteered(item string) {
	q := w.items[item]
	n := transcript.Note{Note: transcript.NoteSteered, Prompt: textPrompt(q.Message), Attachments: q.Attachments}
	if w.v.turn != nil {
		n.Turn = w.v.turn.ID
	}
	w.v.note(n)
	w.v.touched()
}

// textPrompt returns a message as content blocks of ACP.
func textPrompt(message string) []json.RawMessage {
	return []json.RawMessage{mustJSON(map[string]string{"type": "text", "text": message})}
}
