package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agents"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// Import makes a session of a conversation that an agent had without Deskhand. The agent replays the conversation (session/load); the
// replay is journaled like all messages of the agent, between two notes, and folded into the transcript. Nothing of the replay is shown
// before the second note, so that a load that breaks off leaves no half of a conversation: the session shows the error, and the next start
// tries again. Agents that can only resume replay nothing, which the transcript tells.

// AgentSession is a conversation of an agent, as the agent lists it.
type AgentSession struct {
	ACPSessionID string `json:"acpSessionId"`
	Title        string `json:"title"`
	Cwd          string `json:"cwd"`
	UpdatedAt    *Time  `json:"updatedAt,omitempty"`
	Session      string `json:"session,omitempty" doc:"The session of ours that is it"`

	Directories []string `json:"directories,omitempty" doc:"Directories that it works in beside cwd"`
}

// AgentSessions is a page of an agent's conversations.
type AgentSessions struct {
	Items     []AgentSession `json:"items"`
	Next      string         `json:"next,omitempty" doc:"What to pass as before for the next page"`
	Supported bool           `json:"supported" doc:"The agent lists its conversations"`
}

// Import holds the parameters of Imports.Take.
type Import struct {
	Agent        string `json:"agent" minLength:"1" maxLength:"64"`
	ACPSessionID string `json:"acpSessionId" minLength:"1" maxLength:"512"`
	Cwd          string `json:"cwd" minLength:"1" maxLength:"4096" doc:"Where the conversation was; the directory has to be there"`
	Title        string `json:"title,omitempty" maxLength:"1000"`

	Directories []string `json:"directories,omitempty" doc:"Directories that it works in beside cwd; those that cannot be chosen for a session are left out"`
}

// Imports makes sessions of the conversations that agents hold themselves. Any goroutine may call the methods of Imports.
type Imports struct{ client *Client }

// Imports returns the imports of the agents' own sessions.
func (c *Client) Imports() *Imports { return &Imports{c} }

// Sessions lists the conversations of an agent, of one directory or of all. A conversation that is imported already names its session.
func (m *Imports) Sessions(ctx context.Context, agent, directory, before string) (AgentSessions, error) {
	if err := m.client.ReadOnly(); err != nil {
		return AgentSessions{}, err // listing would start the agent
	}
	if err := m.client.hosts.Local.Startable(agent); err != nil {
		return AgentSessions{}, err
	}
	if directory != "" && !filepath.IsAbs(directory) {
		return AgentSessions{}, bad("directory.relative", "path", directory)
	}
	if directory != "" {
		directory = filepath.Clean(directory)
	}
	m.client.cfg.Roster.Secrets().Remember(agent)
	list, next, supported, err := m.client.cfg.Agents.ListSessions(ctx, agent, directory, before)
	if err != nil {
		return AgentSessions{}, m.notListed(ctx, agent, err)
	}
	ours, err := m.sessionsOf(ctx, agent)
	if err != nil {
		return AgentSessions{}, err
	}
	page := AgentSessions{Items: make([]AgentSession, len(list)), Supported: supported}
	if len(next) <= maxImportedCursor {
		page.Next = next
	}
	for i, l := range list {
		page.Items[i] = AgentSession{ACPSessionID: l.SessionID, Title: m.client.secret.Text(strings.TrimSpace(l.Title)), Cwd: l.Cwd, Session: ours[l.SessionID], Directories: l.Directories}
		if !l.UpdatedAt.IsZero() {
			page.Items[i].UpdatedAt = &Time{Time: l.UpdatedAt}
		}
	}
	return page, nil
}

// notListed returns the refusal for an agent that could not list its conversations.
func (m *Imports) notListed(ctx context.Context, agent string, err error) error {
	name := m.client.cfg.Agents.Name(agent)
	auth, wantsLogin := errors.AsType[*agents.AuthError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, agents.ErrClosed):
		return ErrClosed
	case wantsLogin:
		m.client.cfg.Roster.NoteLogin(agent, auth.Refused)
		return &RefusedError{Code: transcript.ProblemAuth, Params: map[string]string{"agent": name, "detail": m.client.cfg.Roster.Secrets().Sentence(auth.Refused)}}
	case errors.Is(err, agents.ErrNotInstalled):
		return &RefusedError{Code: transcript.ProblemMissing, Params: map[string]string{"agent": name}}
	}
	return &RefusedError{Code: refusedSessions, Params: map[string]string{"agent": name, "detail": m.client.secret.Text(err.Error())}}
}

// sessionsOf returns the ids of the sessions with an agent of this machine, by ACP session id. Of two with the same id, the newer counts.
func (m *Imports) sessionsOf(ctx context.Context, agent string) (map[string]string, error) {
	type pair struct{ acp, id string }
	list, err := query(ctx, m.client.cfg.Store.Read(), func(s scanner) (p pair, err error) { return p, s.Scan(&p.acp, &p.id) },
		`SELECT acp_session_id, id FROM session WHERE agent = ? AND place = ? AND acp_session_id <> '' AND deleted_at = 0 ORDER BY created_at`, agent, host.Local)
	if err != nil {
		return nil, err
	}
	ours := make(map[string]string, len(list))
	for _, p := range list {
		ours[p.acp] = p.id
	}
	return ours, nil
}

// Take makes a session of an agent's conversation, and begins to take in its history; events report the rest. A conversation that is
// imported already returns its session.
func (m *Imports) Take(ctx context.Context, from Import) (Session, error) {
	if err := m.client.hosts.Local.Startable(from.Agent); err != nil {
		return Session{}, err
	}
	m.client.taking.Lock() // otherwise two calls for the same conversation could make two sessions
	defer m.client.taking.Unlock()
	ours, err := m.sessionsOf(ctx, from.Agent)
	if err != nil {
		return Session{}, err
	}
	if id := ours[from.ACPSessionID]; id != "" {
		return m.client.Get(ctx, id)
	}
	w, err := m.client.workspaces.Open(ctx, from.Cwd)
	if err != nil {
		return Session{}, err
	}
	r := m.client.fresh(from.Agent, w)
	if r.facts.Start, err = m.client.starts.Decide(ctx, r.Agent, r.Place, r.Cwd, startmode.Choice{}); err != nil {
		return Session{}, err
	}
	r.facts.Start.Model = "" // an imported conversation keeps its own model
	r.ACPSessionID, r.Directories = from.ACPSessionID, workspace.Choosable(from.Directories)
	r.Origin = &Origin{Kind: originImport, Agent: from.Agent}
	if title := strings.TrimSpace(m.client.secret.Text(from.Title)); title != "" {
		r.Title, r.titleBy, r.facts.Title = titleOf(title), titleByAgent, title
	}
	return m.client.begin(ctx, r)
}

// fresh returns the row of a new session in a workspace.
func (c *Client) fresh(agent string, w workspace.Workspace) row {
	now := Time{Time: time.Now()}
	r := row{Session: Session{
		ID: uuid.Must(uuid.NewV7()).String(), Place: host.Local, Workspace: w, Cwd: w.Path, Agent: agent, Phase: lifecycle.Closed, CreatedAt: now, UpdatedAt: now,
	}}
	r.showFacts()
	return r
}

// begin stores a new session, and starts its agent.
func (c *Client) begin(ctx context.Context, r row) (Session, error) {
	v, err := c.store(ctx, r)
	if err != nil {
		return Session{}, err
	}
	if err := v.call(ctx, func() error { return v.wish(lifecycle.Start{}) }); err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

func (c *Client) store(ctx context.Context, r row) (*conversation, error) {
	if err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return r.save(ctx, tx) }); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return c.enliven(r, 0)
}

// dropHalfImported removes stored entries of imports that did not complete. Entries from before the import or after it broke off stay, such
// as a line that the agent has printed.
func (m *Imports) dropHalfImported(ctx context.Context) error {
	ids, err := query(ctx, m.client.cfg.Store.Read(), scanText, `SELECT id FROM session WHERE origin <> ''
		AND CASE WHEN json_valid(origin) AND json_valid(facts) THEN json_extract(origin, '$.kind') = ? AND coalesce(json_extract(facts, '$.imported'), 0) = 0 END`, originImport)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if has, err := m.client.entries.HasImported(ctx, id); err != nil {
			return err
		} else if !has {
			continue
		}
		from, to, err := m.lastImport(ctx, id)
		if err == nil {
			err = m.client.entries.RemoveImported(ctx, id, from*transcript.PerFrame, to*transcript.PerFrame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastImport returns the frame at which the last import of a session began, and the frame at which it broke off: after a crash that is the
// start that followed. With a damaged journal nothing counts as half imported: no frame lies between the results then. Only notes are read,
// since a history may be long, and each start calls lastImport.
func (m *Imports) lastImport(ctx context.Context, session string) (from, to int64, err error) {
	const end = math.MaxInt64 / transcript.PerFrame
	from, to = end, end
	err = m.client.journal.ShortNotes(ctx, session, func(f journal.Frame, damaged error) {
		var told transcript.Note
		switch {
		case damaged != nil || json.Unmarshal(f.Data, &told) != nil:
		case told.Note == transcript.NoteImporting:
			from, to = f.N, end
		case to == end && (told.Note == transcript.NoteStarting || told.Note == transcript.NoteClosed):
			to = f.N
		}
	})
	return from, to, err
}
