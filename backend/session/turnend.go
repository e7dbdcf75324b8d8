package session

import (
	"fmt"
	"strings"
)

const wordsStopped = "stopped before it was done"

// Words tells a person why a turn has ended, where it has not ended by itself; "" of a turn that has, or that runs. agent is its name, and
// exit how the agent's process ended, where that ended the turn; nil = not known.
func (t Turn) Words(agent string, exit *Exit) string {
	switch t.StopReason {
	case "", stopEnd:
		return ""
	case stopCancelled:
		return wordsStopped
	case "refusal":
		return agent + " refused to go on"
	case "max_tokens":
		return "ended at the token limit: the answer is not whole"
	case "max_turn_requests":
		return "ended at the limit of requests to the model: the work is not whole"
	case stopInterrupted:
		return "interrupted: Deskhand ended while this ran"
	case stopAgentExited:
		return t.exitWords(agent, exit)
	}
	if t.Error != nil {
		return fmt.Sprintf("%s failed: %s (%d)", agent, t.Error.Message, t.Error.Code)
	}
	return "ended early: " + t.StopReason
}

func (t Turn) exitWords(agent string, exit *Exit) string {
	switch {
	case exit != nil:
		return exit.Words(agent)
	case t.Error != nil:
		return agent + " could not be started: " + t.Error.Message
	}
	return agent + " ended before it had answered"
}

// Words tells a person how an agent process ended, or why it did not start; agent is its name.
func (x *Exit) Words(agent string) string {
	if text := x.unbegun(); text != "" {
		return text
	}
	if x.Problem != problemExited {
		detail := x.Params["detail"]
		if detail == "" {
			_, detail, _ = strings.Cut(x.Problem, ".")
			detail = strings.ReplaceAll(detail, "_", " ")
		}
		return agent + " could not be started: " + detail + x.status()
	}
	return agent + " ended" + x.status()
}

// status is the exit code and the signal of the process, as far as there are any.
func (x *Exit) status() (text string) {
	if x.Code != nil {
		text += fmt.Sprintf(", exit code %d", *x.Code)
	}
	if x.Signal != "" {
		text += ", " + x.Signal
	}
	return text
}

// causes are why the turns of a transcript have ended that have not ended by themselves, by the ids of the turns, and where the last entry of
// each turn stands.
func causes(agent string, t Transcript) (why map[string]string, last map[string]int) {
	why, last = map[string]string{}, map[string]int{}
	exits := map[string]*Exit{}
	turn := ""
	for i, e := range t.Items {
		if e.Turn != "" {
			turn, last[e.Turn] = e.Turn, i
		}
		if e.Divider != nil && e.Divider.Exit != nil && exits[turn] == nil {
			exits[turn] = e.Divider.Exit
		}
	}
	for _, turn := range t.Turns {
		if text := turn.Words(agent, exits[turn.ID]); text != "" {
			why[turn.ID] = text
		}
	}
	return why, last
}
