package session

import (
	"encoding/json"
	"slices"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
)

// Deskhand's own tools for agents are an MCP server, which each agent of this machine gets beside the servers of its directory.

// withTools returns the servers of the directory and Deskhand's own, which is made anew for each opening of a session.
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
	a.forgetSecrets() // the tools of the secrets have ended
	a.secrets = secretsOf(server)
	a.v.c.secret.Remember(a.secrets)
	return append([]any{server}, a.servers...)
}

// toolTransports returns the transports by which the agent can get Deskhand's tools, the best first. HTTP starts no program; but for agents
// that were measured to give up too early on a server over HTTP, stdio comes first.
func (a *agentProcess) toolTransports() []string {
	order := []string{mcp.HTTP, mcp.Stdio}
	if best := a.v.c.cfg.Agents.Quirks(a.v.row.Agent).OwnTools; best == mcp.Stdio {
		slices.Reverse(order)
	}
	takes := a.transports()
	return slices.DeleteFunc(order, func(t string) bool { return !slices.Contains(takes, t) })
}

// tellOfUnlisted adds a notice if the agent has not fetched the list of Deskhand's tools by the end of the first turn in which the model
// was asked: the model cannot know the tools then. tellOfUnlisted does so once in a start. Agents outside the catalogue may take no servers
// at all, and get no notice.
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

// forgetSecrets drops the secrets of Deskhand's tools for this agent, since they have become invalid, and every message is searched for all
// known secrets.
func (a *agentProcess) forgetSecrets() {
	a.v.c.secret.Forget(a.secrets)
	a.secrets = nil
}

// secretsOf returns the values of the variables and headers of an MCP server.
func secretsOf(server json.RawMessage) (list []string) {
	type pair struct{ Name, Value string }
	var s struct{ Env, Headers []pair }
	if json.Unmarshal(server, &s) != nil {
		return nil
	}
	const shortest = 16 // shorter values are no secrets of Deskhand's, and may be words
	for _, p := range append(s.Env, s.Headers...) {
		value := strings.TrimPrefix(p.Value, "Bearer ")
		_, last, parts := strings.Cut(value, ".")
		for _, secret := range []string{value, last} {
			if len(secret) >= shortest && (secret == value || parts) && !strings.ContainsAny(secret, `/\`) { // a path is no secret
				list = append(list, secret)
			}
		}
	}
	return list
}

// tellOfTools adds a notice if the agent of a new session has none of Deskhand's tools.
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
