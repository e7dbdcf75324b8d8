package session

import (
	"deskhand/backend/emptychat"
)

// An agent that takes a conversation for broken deletes it at its next start, whichever conversation that is of. So what makes one look broken is
// removed before a start, for all conversations of the agent, and after each load.

// keepChats removes the empty files of the agent's conversations that an agent with this environment would take for broken ones.
func (a *agentProcess) keepChats(agent string, environ, ids []string) {
	u := a.v.c.cfg.Agents.Quirks(agent).CleanUp
	if u == nil {
		return
	}
	layout := emptychat.Layout{Home: u.Home, Dir: u.Dir, Files: u.Files, Context: u.Context}
	removed, err := layout.Remove(environ, ids)
	if err != nil { // what it leaves may cost the agent its memory of a conversation, and no more
		a.v.c.cfg.Logger.Warn("empty files of an agent's conversations stay", "session", a.v.id, "error", err)
	}
	if len(removed) > 0 {
		a.v.c.cfg.Logger.Info("empty files of an agent's conversations are removed", "session", a.v.id, "files", removed)
	}
}

// keepOwnChat is keepChats for the conversation that the agent has loaded, in the background.
func (a *agentProcess) keepOwnChat() {
	if a.environ == nil {
		return // it runs elsewhere
	}
	agent, environ, id := a.v.row.Agent, a.environ, a.v.row.ACPSessionID
	a.work.Go(func() { a.keepChats(agent, environ, []string{id}) })
}
