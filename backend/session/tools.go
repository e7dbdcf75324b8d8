package session

import (
	"encoding/json"
	"slices"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
)

// Our own tools for agents: an MCP server, made elsewhere, that each agent of this machine is given beside those of its directory.

// withTools are the servers of the directory and our own, which is made anew at each opening of the session.
func (a *agentProcess) withTools() []any {
	tools := a.v.host().Tools
	if tools == nil {
		return a.servers
	}
	server, listed, ok := tools.Give(a.v.id, a.toolTransports())
	a.toolless, a.listed = !ok, listed
	if !ok {
		return a.servers
	}
	a.forgetSecrets() // the tools that they opened have ended
	a.secrets = secretsOf(server)
	a.v.c.secret.Remember(a.secrets)
	return append([]any{server}, a.servers...)
}

// toolTransports are those by which the agent can be given our tools, the best first. HTTP starts no program; but where it was measured that the
// agent gives up on a server over HTTP too early, it is stdio.
func (a *agentProcess) toolTransports() []string {
	order := []string{mcp.HTTP, mcp.Stdio}
	if best := a.v.c.cfg.Agents.Quirks(a.v.row.Agent).OwnTools; best == mcp.Stdio {
		slices.Reverse(order)
	}
	takes := a.transports()
	return slices.DeleteFunc(order, func(t string) bool { return !slices.Contains(takes, t) })
}

// tellOfUnlisted says once in a start, at the end of the first turn in which the model was asked, that the agent has not fetched the list of our
// tools: the model cannot have known of them. Agents that the catalogue does not have may take no servers at all, and are not told of.
func (a *agentProcess) tellOfUnlisted(reason string) {
	if reason == lifecycle.StopCancelled || reason == lifecycle.StopError {
		return
	}
	listed := a.listed
	a.listed = nil
	if listed == nil || !a.v.c.cfg.Agents.InCatalogue(a.v.row.Agent) {
		return
	}
	select {
	case <-listed:
	default:
		a.tell([]transcript.Notice{{
			Severity: "warning", Title: "Deskhand's own tools were not there in this turn",
			Description: a.v.agentName + " has not fetched their list since it started, so it could give no files and ask nothing through them. A restart of the agent may help.",
		}})
	}
}

// forgetSecrets lets go of those of our own tools, which open nothing any more: every message is searched for all that are known.
func (a *agentProcess) forgetSecrets() {
	a.v.c.secret.Forget(a.secrets)
	a.secrets = nil
}

// secretsOf are the values of the variables and headers of an MCP server.
func secretsOf(server json.RawMessage) (list []string) {
	type pair struct{ Name, Value string }
	var s struct{ Env, Headers []pair }
	if json.Unmarshal(server, &s) != nil {
		return nil
	}
	const shortest = 16 // what is shorter is no secret of ours, and would be taken out of words
	for _, p := range append(s.Env, s.Headers...) {
		value := strings.TrimPrefix(p.Value, "Bearer ")
		_, last, parts := strings.Cut(value, ".")
		for _, secret := range []string{value, last} {
			if len(secret) >= shortest && (secret == value || parts) && !strings.ContainsAny(secret, `/\`) { // a path is none, and stays
				list = append(list, secret)
			}
		}
	}
	return list
}

// tellOfTools says once in a session that its agent has no tools of ours.
func (a *agentProcess) tellOfTools(how string) {
	if a.v.c.cfg.Tools == nil || how != "new" {
		return
	}
	switch {
	case a.v.host().Tools == nil:
		a.tell([]transcript.Notice{{
			Severity: "info", Title: "Deskhand's own tools are not there",
			Description: a.v.agentName + " runs elsewhere and cannot reach them: it gives no files here, and asks through no tool of ours.",
		}})
	case a.toolless:
		a.tell([]transcript.Notice{{
			Severity: "info", Title: "Deskhand's own tools are not there",
			Description: a.v.agentName + " takes no MCP servers of the kinds that we have.",
		}})
	}
}
