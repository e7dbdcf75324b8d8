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

func (v *conversation) steer(m said) (Sent, error) {
	if v.state.Base == lifecycle.Working && !slices.Contains(v.row.Offers, transcript.OfferSteer) {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedSteer, Params: map[string]string{"agent": v.agentName}}
	}
	if v.composing != nil { // the agent does not have the turn yet
		return v.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Queue{Item: item} })
	}
	return v.enqueue(m, func(item string) lifecycle.Command { return lifecycle.Steer{Item: item} })
}

// sendSteering sends an item of the queue into the running turn.
func (v *conversation) sendSteering(item string) {
	a, open := v.agent, true
	settle := func(delivered bool, why string) {
		if open && why != "" {
			a.tell([]transcript.Notice{{Severity: "warning", Title: "The message waits in the queue", Description: v.agentName + " has not taken it into the running turn: " + v.c.secret.Text(why)}})
		}
		open = false
		v.do(lifecycle.Steered{Item: item, Delivered: delivered})
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
