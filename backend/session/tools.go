package session

import (
	"encoding/json"
	"strings"
)

// Our own tools for agents: an MCP server, made elsewhere, that each agent of this machine is given beside those of its directory.

// withTools are the servers of the directory and our own, which is made anew at each opening of the session.
func (a *link) withTools() []any {
	give := a.v.c.cfg.Tools
	if give == nil || a.v.there() {
		return a.servers
	}
	server, ok := give(a.v.id, a.transports())
	a.toolless = !ok
	if !ok {
		return a.servers
	}
	a.forgetSecrets() // the tools that they opened have ended
	a.secrets = secretsOf(server)
	a.v.c.secret.told.add(a.secrets)
	return append([]any{server}, a.servers...)
}

// forgetSecrets lets go of those of our own tools, which open nothing any more: every message is searched for all that are known.
func (a *link) forgetSecrets() {
	a.v.c.secret.told.drop(a.secrets)
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
func (a *link) tellOfTools(how string) {
	if a.v.c.cfg.Tools == nil || how != "new" {
		return
	}
	switch {
	case a.v.there():
		a.tell([]Notice{{
			Severity: "info", Title: "Deskhand's own tools are not there",
			Description: a.v.agentName + " runs elsewhere and cannot reach them: it gives no files here, and asks through no tool of ours.",
		}})
	case a.toolless:
		a.tell([]Notice{{
			Severity: "info", Title: "Deskhand's own tools are not there",
			Description: a.v.agentName + " takes no MCP servers of the kinds that we have.",
		}})
	}
}
