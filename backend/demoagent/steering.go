package demoagent

import (
	"context"
	"encoding/json"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// steeringMethod sends a message to a running turn. Several agents share this extension of ACP.
const steeringMethod = "_session/steering"

type initializeMeta struct {
	Steering steeringSupport `json:"steering"`
}

type steeringSupport struct {
	Supported bool `json:"supported"`
}

type steeringResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// steer queues a message for the running turn, which reports the message with its next chunk.
func (a *agent) steer(params json.RawMessage) (any, *agentio.Error) {
	request, err := decode[promptRequest](params)
	if err == nil && len(request.Prompt) == 0 {
		err = agentio.Errorf(acp.CodeInvalidParams, "invalid params: the prompt is empty")
	}
	if err != nil {
		return nil, err
	}
	asked := readInput(request, nil).text
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.openLocked(request.SessionID)
	if s == nil {
		return nil, unknownSession(request.SessionID)
	}
	if s.turn == nil || s.turn.full {
		return steeringResponse{Outcome: "promptRequired", Reason: "noRunningTurn"}, nil
	}
	s.turn.steered = append(s.turn.steered, asked)
	return steeringResponse{Outcome: "injected"}, nil
}

// heed reports the messages that arrived meanwhile. After a turn's last call of heed, the turn accepts no message.
func (t *turn) heed(ctx context.Context, last bool) {
	t.agent.mu.Lock()
	asked := t.steered
	t.steered, t.full = nil, last
	t.agent.mu.Unlock()
	for _, text := range asked {
		t.history.other(chunk{SessionUpdate: "user_message_chunk", MessageID: t.nextMessage(), Content: keptBlock(encodeUpdate(textBlock{"text", text}))})
		t.send(ctx, "agent_message_chunk", t.nextMessage(), "You add: *"+clip(strings.Join(strings.Fields(text), " "), 200)+"*. I work that in.\n\n")
	}
}
