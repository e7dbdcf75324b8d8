package session

import (
	"deskhand/backend/emptychat"
	"deskhand/backend/host"
)

// An agent that takes a conversation for broken deletes it at its next start, whichever conversation that is of. So what makes one look broken is
// removed before a start, for all conversations of the agent, and after each load.

// keepChats removes the empty files of an agent's conversations that an agent with this environment would take for broken ones. session is
// named in the log.
func (c *core) keepChats(session, agent string, environ, ids []string) {
	u := c.cfg.Agents.Quirks(agent).CleanUp
	if u == nil {
		return
	}
	layout := emptychat.Layout{Home: u.Home, Dir: u.Dir, Files: u.Files, Context: u.Context}
	removed, err := layout.Remove(environ, ids)
	if err != nil { // what it leaves may cost the agent its memory of a conversation, and no more
		c.cfg.Logger.Warn("empty files of an agent's conversations stay", "session", session, "error", err)
	}
	if len(removed) > 0 {
		c.cfg.Logger.Info("empty files of an agent's conversations are removed", "session", session, "files", removed)
	}
}

// chatsOf are the agent's ids of its conversations on this machine.
func (c *core) chatsOf(agent string) []string {
	ids, err := query(c.ctx, c.cfg.Store.Read(), scanText,
		`SELECT acp_session_id FROM session WHERE agent = ? AND place = ? AND acp_session_id <> ''`, agent, host.Local)
	if err != nil {
		c.cfg.Logger.Warn("the conversations of an agent cannot be read", "agent", agent, "error", err)
	}
	return ids
}
