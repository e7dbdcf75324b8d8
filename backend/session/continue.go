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

// Continuations let another agent go on with a conversation. Any goroutine may call the methods of Continuations.
type Continuations struct{ client *Client }

// Continuations returns the continuations of sessions with other agents.
func (c *Client) Continuations() *Continuations { return &Continuations{c} }

// Begin makes a session for another agent, in the same directory. That agent does not know the first conversation, so the draft of the
// new session is a summary of the conversation as plain Markdown, which the person can read, change and send. The summary is made from the
// transcript without a model: the prompts, decisions and plan, the changed files, and the last answer.
func (o *Continuations) Begin(ctx context.Context, id, agent string) (Session, error) {
	v, err := o.client.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	s := v.look()
	if err := o.client.hosts.At(s.Place).Startable(agent); err != nil {
		return Session{}, err
	}
	draft, err := o.summary(ctx, s)
	if err != nil {
		return Session{}, err
	}
	r := o.client.fresh(agent, s.Workspace)
	r.Place, r.Cwd, r.Directories, r.Labels = s.Place, s.Cwd, s.Directories, slices.Clone(s.Labels)
	if r.facts.Start, err = o.client.starts.Decide(ctx, r.Agent, r.Place, r.Cwd, startmode.Choice{}); err != nil {
		return Session{}, err
	}
	r.Origin = &Origin{Kind: originContinue, Session: s.ID, Title: s.Title, Agent: s.Agent}
	r.Title, r.titleBy = s.Title, titleByPrompt
	r.Draft = draft
	return o.client.begin(ctx, r)
}

// Summary returns the text that Begin gives another agent, for the session's own agent when it has lost the conversation.
func (o *Continuations) Summary(ctx context.Context, id string) (string, error) {
	v, err := o.client.conversation(ctx, id)
	if err != nil {
		return "", err
	}
	return o.summary(ctx, v.look())
}

// summary returns the summary of a session, with secrets hidden.
func (o *Continuations) summary(ctx context.Context, s Session) (string, error) {
	h, err := o.handover(ctx, s)
	if err != nil {
		return "", err
	}
	unread := o.loadSecretsAtOnce(ctx)
	secret, err := o.client.Redactor(ctx, s)
	if unread = errors.Join(unread, err); unread != nil {
		o.client.cfg.Logger.Warn("a summary may hold secrets that cannot be read", "session", s.ID, "error", unread)
	}
	return secret.Text(h.Markdown()), nil
}

// loadSecretsAtOnce is Secrets.Load for a call that a person waits for: no password is asked for.
func (o *Continuations) loadSecretsAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, host.PatientMany)
	defer cancel()
	return o.client.cfg.Roster.Secrets().Load(ctx, vault.IfUnlocked)
}

// entriesAtOnce is how many entries are read at a time for a summary.
const entriesAtOnce = 500

// handover reads the parts of a session's summary.
func (o *Continuations) handover(ctx context.Context, s Session) (*summary.Summary, error) {
	h := summary.New(cmp.Or(s.AgentName, o.client.cfg.Agents.Name(s.Agent)), s.Title, s.Cwd)
	for after := int64(0); ; {
		part, more, err := o.client.Transcripts().newer(ctx, s.ID, after, entriesAtOnce)
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
	asked, err := o.client.requests.Of(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	for i := range asked {
		if r := &asked[i]; r.Status == lifecycle.StatusAnswered || r.Status == lifecycle.StatusRejected {
			h.Decide(r)
		}
	}
	last, err := o.client.entries.NewestTurn(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if last != nil {
		h.End(last.State, last.StopReason, last.Error)
	}
	return h, nil
}
