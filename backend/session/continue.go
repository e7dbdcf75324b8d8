package session

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/startmode"
	"deskhand/backend/summary"
	"deskhand/backend/vault"
)

// Continue makes a session for another agent, in the same directory. That agent does not know the first conversation, so the draft of the
// new session is a summary of the conversation as plain Markdown, which the person can read, change and send. The summary is made from the
// transcript without a model: the prompts, decisions and plan, the changed files, and the last answer.
func (c *Client) Continue(ctx context.Context, id, agent string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	s := v.look()
	if err := c.hosts.At(s.Place).Startable(agent); err != nil {
		return Session{}, err
	}
	draft, err := c.summary(ctx, s)
	if err != nil {
		return Session{}, err
	}
	r := c.fresh(agent, s.Workspace)
	r.Place, r.Cwd, r.Directories, r.Labels = s.Place, s.Cwd, s.Directories, slices.Clone(s.Labels)
	if r.facts.Start, err = c.starts.Decide(ctx, r.Agent, r.Place, r.Cwd, startmode.Choice{}); err != nil {
		return Session{}, err
	}
	r.Origin = &Origin{Kind: originContinue, Session: s.ID, Title: s.Title, Agent: s.Agent}
	r.Title, r.titleBy = s.Title, titleByPrompt
	r.Draft = draft
	return c.begin(ctx, r)
}

// Summary returns the text that Continue gives another agent, for the session's own agent when it has lost the conversation.
func (c *Client) Summary(ctx context.Context, id string) (string, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return "", err
	}
	return c.summary(ctx, v.look())
}

// summary returns the summary of a session, with secrets hidden.
func (c *Client) summary(ctx context.Context, s Session) (string, error) {
	h, err := c.handover(ctx, s)
	if err != nil {
		return "", err
	}
	unread := c.loadSecretsAtOnce(ctx)
	secret, err := c.Redactor(ctx, s)
	if unread = errors.Join(unread, err); unread != nil {
		c.cfg.Logger.Warn("a summary may hold secrets that cannot be read", "session", s.ID, "error", unread)
	}
	return secret.Text(h.Markdown()), nil
}

// loadSecretsAtOnce is Secrets.Load for a call that a person waits for: no password is asked for.
func (c *Client) loadSecretsAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, host.PatientMany)
	defer cancel()
	return c.cfg.Roster.Secrets().Load(ctx, vault.IfUnlocked)
}

// entriesAtOnce is how many entries are read at a time for a summary.
const entriesAtOnce = 500

// handover reads the parts of a session's summary.
func (c *Client) handover(ctx context.Context, s Session) (*summary.Summary, error) {
	h := summary.New(cmp.Or(s.AgentName, c.cfg.Agents.Name(s.Agent)), s.Title, s.Cwd)
	for after := int64(0); ; {
		part, more, err := c.newer(ctx, s.ID, after, entriesAtOnce)
		if err != nil {
			return nil, err
		}
		for i := range part {
			h.Add(&part[i])
		}
		if !more {
			break
		}
		after = part[len(part)-1].Seq
	}
	db := c.cfg.Store.Read()
	asked, err := c.requests.Of(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	for i := range asked {
		if r := &asked[i]; r.Status == lifecycle.StatusAnswered || r.Status == lifecycle.StatusRejected {
			h.Decide(r)
		}
	}
	last, err := query(ctx, db, scanTurn, `SELECT `+turnColumns+` FROM turn WHERE session = ? ORDER BY started_at DESC, id DESC LIMIT 1`, s.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range last {
		h.End(t.State, t.StopReason, t.Error)
	}
	return h, nil
}
