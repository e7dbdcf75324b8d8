package transcript

// StopNotice returns a notice that tells why the agent ended an unfinished turn; nil for a turn that is finished, or that something else
// has ended. answered reports whether the agent produced any output in the turn.
func StopNotice(reason, agent string, answered, files bool) *Notice {
	n := &Notice{Severity: "warning"}
	switch reason {
	case "max_tokens":
		n.Title = "The answer is cut off"
		n.Description = "It has become as long as the model of " + agent + " allows, or the conversation has (max_tokens). Ask to go on, or begin a new conversation."
		if !answered {
			n.Title = "No answer: this is too long for the model"
			n.Description = agent + " takes the message, with what was said before, for longer than its model takes (max_tokens). " +
				"Send less of it, or begin a new conversation."
			if files {
				n.Description = agent + " takes the message, with its files and what was said before, for longer than its model takes (max_tokens). " +
					"Send smaller files or fewer of them, or begin a new conversation."
			}
		}
	case "max_turn_requests":
		n.Title = agent + " has stopped before it was done"
		n.Description = "It has asked its model as often as it may in one turn (max_turn_requests). Ask it to go on."
	case "refusal":
		n.Title = agent + " refuses to go on"
		n.Description = "Its model refused (refusal). An agent forgets a message that was refused, and all that it has said to it."
	default:
		return nil
	}
	return n
}
