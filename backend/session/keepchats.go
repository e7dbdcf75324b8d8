package session

import (
	"deskhand/backend/emptychat"
	"deskhand/backend/host"
)

// Some agents delete, at each start, conversations that they take for broken, whichever conversation the start is for. So files that make a
// conversation look broken are removed before each start, for all conversations of the agent, and after each load.

// keepChats removes the empty files for which an agent with this environment would take its conversations for broken. session is the
// session to log.
func (c *core) keepChats(session, agent string, environ, ids []string) {
	u := c.cfg.Agents.Quirks(agent).CleanUp
	if u == nil {
		return
	}
	layout := emptychat.Layout{Home: u.Home, Dir: u.Dir, Files: u.Files, Context: u.Context}
	removed, err := layout.Remove(environ, ids)
	if err != nil { // the agent may lose its memory of a conversation, and nothing else
		c.cfg.Logger.Warn("empty files of an agent's conversations stay", "session", session, "error", err)
	}
	if len(removed) > 0 {
		c.cfg.Logger.Info("empty files of an agent's conversations are removed", "session", session, "files", removed)
	}
}

// chatsOf returns the ACP session ids of an agent's conversations on this machine.
func (c *core) chatsOf(agent string) []string {
	ids, err := query(c.ctx, c.cfg.Store.Read(), scanText,
		`SELECT acp_session_id FROM session WHERE agent = ? AND place = ? AND acp_session_id <> ''`, agent, host.Local)
	if err != nil {
		c.cfg.Logger.Warn("the conversations of an agent cannot be read", "agent", agent, "error", err)
	}
	return ids
}
