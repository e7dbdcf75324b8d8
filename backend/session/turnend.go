package session

import (
	"fmt"

	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// TurnStopped is the result of Turn.Words for a turn that a person has stopped.
const TurnStopped = "stopped before it was done"

// Words returns a text that tells why a turn has not ended well; "" for a turn that has, or that runs. agent is the agent's name; exit is
// how the agent's process ended, or nil when that did not end the turn or is not known.
func (t Turn) Words(agent string, exit *transcript.Exit) string {
	switch t.StopReason {
	case "", lifecycle.StopEnd:
		return ""
	case lifecycle.StopCancelled:
		return TurnStopped
	case "refusal":
		return agent + " refused to go on"
	case "max_tokens":
		return "ended at the token limit: the answer is not whole"
	case "max_turn_requests":
		return "ended at the limit of requests to the model: the work is not whole"
	case lifecycle.StopInterrupted:
		return "interrupted: Deskhand ended while this ran"
	case lifecycle.StopAgentExited:
		return t.exitWords(agent, exit)
	}
	if t.Error != nil {
		return fmt.Sprintf("%s failed: %s (%d)", agent, t.Error.Message, t.Error.Code)
	}
	return "ended early: " + t.StopReason
}

func (t Turn) exitWords(agent string, exit *transcript.Exit) string {
	switch {
	case exit != nil:
		return exit.Words(agent)
	case t.Error != nil:
		return agent + " could not be started: " + t.Error.Message
	}
	return agent + " ended before it had answered"
}
