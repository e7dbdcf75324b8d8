package session

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"deskhand/backend/host"
)

// A verification compares what is kept with what it is made of: the database with itself, each journal with its numbers and its blobs,
// what is shown with the journal, the index with what is shown, and our sessions with those that the agents know. It changes nothing
// unless it is told to repair, which makes anew what the journal holds; a conversation is never deleted. It reads each session as of
// one moment, so that conversations may go on meanwhile. Where a transcript and its journal contradict each other nobody knows which of them
// was damaged: the person chooses, and until then both stay.

// Verify is what is to be looked at.
type Verify struct {
	Agents bool `json:"agents,omitempty" doc:"Ask the agents, too, which sessions they know"`
	Repair bool `json:"repair,omitempty" doc:"Put back what is missing and the journal holds. Nothing that is shown is replaced, and no conversation is ever deleted"`

	TakeJournal    []string `json:"takeJournal,omitempty" maxItems:"1000" doc:"The ids of conversations whose transcript is made anew from the journal, although that replaces or removes something that is shown. A journal that is damaged replaces nothing"`
	KeepTranscript []string `json:"keepTranscript,omitempty" maxItems:"1000" doc:"The ids of conversations whose transcript stays as it is shown, although the journal makes something else: verifications and later versions leave it alone until the journal is taken"`
}

// Verification is how far the verification is, or what the last one found.
type Verification struct {
	State     string    `json:"state" enum:"none,running,done,cancelled"`
	StartedAt *Time     `json:"startedAt,omitempty"`
	EndedAt   *Time     `json:"endedAt,omitempty"`
	Done      int       `json:"done"`
	Total     int       `json:"total"`
	Findings  []Finding `json:"findings"`
}

// Finding is something that is not as it should be.
type Finding struct {
	Code     string            `json:"code" doc:"Stable and dotted; the texts are the surfaces'"`
	Session  string            `json:"session,omitempty"`
	Params   map[string]string `json:"params"`
	Repaired bool              `json:"repaired"`
}

// The codes of findings.
const (
	foundFailed      = "verify.failed"         // detail: something could not be looked at
	foundMore        = "verify.more"           // count: findings that are left out
	foundDatabase    = "database.damaged"      // detail: SQLite's own words
	foundRecord      = "database.record"       // table: a part of a row is no JSON any more
	foundForeign     = "database.references"   // table, rows: rows that belong to nothing
	foundGap         = "journal.gap"           // frame: the first of those that are missing, up to the one before next
	foundFrame       = "journal.damaged"       // frame, detail
	foundNoBlob      = "blob.missing"          // frame, sha256
	foundBadBlob     = "blob.damaged"          // frame, sha256
	foundOrphans     = "blob.unused"           // count, bytes
	foundNoFile      = "attachment.lost"       // attachment, name, sha256: its bytes are gone
	foundBadFile     = "attachment.damaged"    // attachment, name, sha256, detail
	foundFiles       = "attachments.differ"    // missing, different, extra: against what the journal names
	foundEntries     = "entries.differ"        // missing, different, extra: against what the journal makes; the first difference: entry, shown, made; unchecked: frames without a checksum
	foundTurns       = "turns.differ"          // the same
	foundRequests    = "requests.differ"       // the same; different: they wait for an agent that has ended
	foundUnindexed   = "search.missing"        // count: entries that no search finds
	foundOverindexed = "search.extra"          // count: index of entries that are gone
	foundIndex       = "search.damaged"        // detail
	foundNoDirectory = "workspace.missing"     // path, workspace, movedTo
	foundNoAgent     = "session.agent_unknown" // agent
	foundForgotten   = "agent.forgot"          // agent, acpSessionId: the agent no longer knows the session
	foundOffered     = "agent.offers"          // agent, acpSessionId, title, cwd: a session of the agent's that is not here
	foundUnlisted    = "agent.unlisted"        // agent, detail: it does not tell
)

const (
	verifyNone      = "none"
	verifyRunning   = "running"
	verifyDone      = "done"
	verifyCancelled = "cancelled"
)

const refusedVerifying = "verify.running"

// mostFindings is how many findings are told; the rest is counted.
const mostFindings = 500

// verifying is the verification that runs, or the last one.
type verifying struct {
	mu   sync.Mutex // protects what is below
	now  Verification
	more int // findings that are left out
	stop context.CancelFunc
	next time.Time // when progress is told again
}

// Verify begins a verification; there is one at a time.
func (c *Client) Verify(wish Verify) (Verification, error) {
	v := &c.upkeep.verifying
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Verification{}, ErrClosed
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now.State == verifyRunning {
		return Verification{}, &RefusedError{Code: refusedVerifying}
	}
	ctx, stop := context.WithCancel(c.ctx)
	v.now = Verification{State: verifyRunning, StartedAt: &Time{Time: time.Now()}, Findings: []Finding{}}
	v.stop, v.more, v.next = stop, 0, time.Time{}
	c.wg.Go(func() {
		defer stop()
		c.verify(ctx, wish)
	})
	return v.showLocked(), nil
}

// Verification tells how far it is.
func (c *Client) Verification() Verification {
	v := &c.upkeep.verifying
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.showLocked()
}

// CancelVerify ends it; what it has found so far is kept. That none runs is no error.
func (c *Client) CancelVerify() {
	v := &c.upkeep.verifying
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stop != nil {
		v.stop()
	}
}

func (v *verifying) showLocked() Verification {
	now := v.now
	if now.State == "" {
		now.State = verifyNone
	}
	now.Findings = slices.Clone(now.Findings)
	if now.Findings == nil {
		now.Findings = []Finding{}
	}
	return now
}

// verify does it all, and tells of it.
func (c *Client) verify(ctx context.Context, wish Verify) {
	x := &examination{c: c, v: &c.upkeep.verifying, wish: wish}
	err := x.run(ctx)
	x.v.mu.Lock()
	x.v.now.State, x.v.now.EndedAt = verifyDone, &Time{Time: time.Now()}
	switch {
	case ctx.Err() != nil:
		x.v.now.State = verifyCancelled
	case err != nil:
		x.v.now.Findings = append(x.v.now.Findings, Finding{Code: foundFailed, Params: map[string]string{"detail": err.Error()}})
	}
	if x.v.more > 0 {
		x.v.now.Findings = append(x.v.now.Findings, Finding{Code: foundMore, Params: map[string]string{"count": strconv.Itoa(x.v.more)}})
	}
	c.feed.publish(Event{Type: eventVerify, Data: mustJSON(x.v.showLocked())})
	x.v.mu.Unlock()
	c.tellStorage(ctx, c.upkeep.progress())
}

// examination is one verification at work.
type examination struct {
	c    *Client
	v    *verifying
	wish Verify
}

// find adds a finding.
func (x *examination) find(code, session string, repaired bool, params ...string) {
	x.add(Finding{Code: code, Session: session, Params: bad(code, params...).Params, Repaired: repaired})
}

func (x *examination) add(f Finding) {
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	if len(x.v.now.Findings) >= mostFindings {
		x.v.more++
		return
	}
	x.v.now.Findings = append(x.v.now.Findings, f)
}

// step tells that a part of it is done; a total is what there is to do, as soon as that is known.
func (x *examination) step(total int) {
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	if total > 0 {
		x.v.now.Total = total
	} else {
		x.v.now.Done++
	}
	if now := time.Now(); !now.Before(x.v.next) {
		x.v.next = now.Add(tellAfter)
		x.c.feed.publish(Event{Type: eventVerify, Data: mustJSON(x.v.showLocked())})
	}
}

// run looks at one thing after the other. What cannot be looked at is a finding, and the rest goes on.
func (x *examination) run(ctx context.Context) error {
	db := x.c.cfg.Store
	ids, err := query(ctx, db.Read(), scanText, `SELECT id FROM session WHERE deleted_at = 0 ORDER BY updated_at DESC`)
	if err != nil {
		return err
	}
	var listing []string
	if x.wish.Agents {
		if listing, err = query(ctx, db.Read(), scanText, `SELECT DISTINCT agent FROM session WHERE place = ? AND deleted_at = 0 ORDER BY agent`, host.Local); err != nil {
			return err
		}
	}
	parts := []func(context.Context) error{x.database, x.records, x.blobs, x.attachments}
	for _, id := range ids {
		parts = append(parts, func(ctx context.Context) error { return x.session(ctx, id) })
	}
	parts = append(parts, x.index, x.workspaces, x.agentsOfSessions)
	for _, agent := range listing {
		parts = append(parts, func(ctx context.Context) error { return x.agent(ctx, agent) })
	}
	x.step(len(parts))
	for _, part := range parts {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			x.find(foundFailed, "", false, "detail", err.Error())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.step(0)
	}
	return nil
}

// workspaces looks for directories that are not there, and where they are now.
func (x *examination) workspaces(ctx context.Context) error {
	list, err := x.c.Workspaces(ctx)
	for _, w := range list {
		if w.Missing {
			x.find(foundNoDirectory, "", false, "path", w.Path, "workspace", w.ID, "movedTo", w.MovedTo)
		}
	}
	return err
}

// agentsOfSessions looks for sessions whose agent nobody knows here.
func (x *examination) agentsOfSessions(ctx context.Context) error {
	type pair struct{ id, agent string }
	list, err := query(ctx, x.c.cfg.Store.Read(), func(s scanner) (p pair, err error) { return p, s.Scan(&p.id, &p.agent) },
		`SELECT id, agent FROM session WHERE place = ? AND deleted_at = 0 ORDER BY updated_at DESC`, host.Local)
	for _, p := range list {
		if !x.c.cfg.Agents.Known(p.agent) {
			x.find(foundNoAgent, p.id, false, "agent", p.agent)
		}
	}
	return err
}

// agent compares our sessions with those that their agent knows.
func (x *examination) agent(ctx context.Context, agent string) error {
	known, listed, err := x.listOf(ctx, agent)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		x.find(foundUnlisted, "", false, "agent", agent, "detail", refused.Params["detail"])
		return nil
	}
	if err != nil || !listed {
		return err
	}
	ours, err := x.c.sessionsOf(ctx, agent)
	if err != nil {
		return err
	}
	workspaces, err := x.c.Workspaces(ctx)
	if err != nil {
		return err
	}
	theirs := map[string]bool{}
	for _, s := range known {
		theirs[s.ACPSessionID] = true
		inOurs := slices.ContainsFunc(workspaces, func(w KnownWorkspace) bool { return w.Place == host.Local && w.Path == s.Cwd })
		if s.Session == "" && inOurs {
			x.find(foundOffered, "", false, "agent", agent, "acpSessionId", s.ACPSessionID, "title", s.Title, "cwd", s.Cwd)
		}
	}
	for acpID, id := range ours {
		if !theirs[acpID] {
			x.find(foundForgotten, id, false, "agent", agent, "acpSessionId", acpID)
		}
	}
	return nil
}

// mostPages is how many pages of an agent's list are asked for: one that never ends is not read to its end.
const mostPages = 200

// listOf are all sessions of an agent; listed is false when it does not tell, or more than we ask for.
func (x *examination) listOf(ctx context.Context, agent string) (all []AgentSession, listed bool, err error) {
	before := ""
	for range mostPages {
		page, err := x.c.AgentSessions(ctx, agent, "", before)
		if err != nil || !page.Supported {
			return nil, false, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, true, nil
		}
		before = page.Next
	}
	return nil, false, nil
}
