package maintenance

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/workspace"
)

// A verification compares the database with itself, each journal with its numbers, checksums and blobs, each transcript with the journal,
// the index with the entries, and our sessions with the lists of the agents. Without a repair the verification changes nothing; a repair
// restores missing entries and turns from the journal, and never deletes a conversation. Each session is read as of one moment, so that
// conversations may go on meanwhile. When a transcript and its journal contradict each other, nobody knows which of them was damaged: the
// person chooses, and until then both stay.

// Verify selects the scope of a verification.
type Verify struct {
	Agents bool `json:"agents,omitempty" doc:"Ask the agents, too, which sessions they know"`
	Repair bool `json:"repair,omitempty" doc:"Put back what is missing and the journal holds. Nothing that is shown is replaced, and no conversation is ever deleted"`

	TakeJournal    []string `json:"takeJournal,omitempty" maxItems:"1000" doc:"The ids of conversations whose transcript is made anew from the journal, although that replaces or removes something that is shown. A journal that is damaged replaces nothing"`
	KeepTranscript []string `json:"keepTranscript,omitempty" maxItems:"1000" doc:"The ids of conversations whose transcript stays as it is shown, although the journal makes something else: verifications and later versions leave it alone until the journal is taken"`
}

// Verification is the progress of the running verification, or the result of the last.
type Verification struct {
	State     string       `json:"state" enum:"none,running,done,cancelled"`
	StartedAt *record.Time `json:"startedAt,omitempty"`
	EndedAt   *record.Time `json:"endedAt,omitempty"`
	Done      int          `json:"done"`
	Total     int          `json:"total"`
	Findings  []Finding    `json:"findings"`
}

// Finding is a fault that a verification has found.
type Finding struct {
	Code     string            `json:"code" doc:"Stable and dotted; the texts are the surfaces'"`
	Session  string            `json:"session,omitempty"`
	Params   map[string]string `json:"params"`
	Repaired bool              `json:"repaired"`
}

// The codes of findings.
const (
	foundFailed      = "verify.failed"         // detail: a part could not be verified
	foundMore        = "verify.more"           // count: findings that are left out
	foundDatabase    = "database.damaged"      // detail: SQLite's own words
	foundRecord      = "database.record"       // table: a column of a row is no valid JSON
	foundForeign     = "database.references"   // table, rows: rows that belong to nothing
	foundGap         = "journal.gap"           // frame: the first missing frame, next: the frame after the gap
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
	foundOffered     = "agent.offers"          // agent, acpSessionId, title, cwd: a session of the agent that is not ours
	foundUnlisted    = "agent.unlisted"        // agent, detail: the agent returns no list
)

const (
	verifyNone      = "none"
	verifyRunning   = "running"
	verifyDone      = "done"
	verifyCancelled = "cancelled"
)

const refusedVerifying = "verify.running"

// mostFindings limits the findings of a verification; the rest is counted.
const mostFindings = 500

// verifying is the running verification, or the last.
type verifying struct {
	mu   sync.Mutex // protects the fields below
	now  Verification
	more int // findings that are left out
	stop context.CancelFunc
	next time.Time // when the progress is told again
}

// Verify begins a verification. One verification runs at a time.
func (m *Maintainer) Verify(wish Verify) (Verification, error) {
	v := &m.verifying
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Verification{}, refusal.ErrClosed
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now.State == verifyRunning {
		return Verification{}, &refusal.Error{Code: refusedVerifying}
	}
	ctx, stop := context.WithCancel(m.ctx)
	v.now = Verification{State: verifyRunning, StartedAt: &record.Time{Time: time.Now()}, Findings: []Finding{}}
	v.stop, v.more, v.next = stop, 0, time.Time{}
	m.wg.Go(func() {
		defer stop()
		m.verify(ctx, wish)
	})
	return v.showLocked(), nil
}

// Verification returns the progress of the running verification, or the result of the last.
func (m *Maintainer) Verification() Verification {
	v := &m.verifying
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.showLocked()
}

// CancelVerify cancels the running verification, if any. The findings so far are kept.
func (m *Maintainer) CancelVerify() {
	v := &m.verifying
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

// verify runs a verification to the end, and tells the surfaces of the result.
func (m *Maintainer) verify(ctx context.Context, wish Verify) {
	x := &examination{Maintainer: m, v: &m.verifying, wish: wish}
	err := x.run(ctx)
	x.v.mu.Lock()
	x.v.now.State, x.v.now.EndedAt = verifyDone, &record.Time{Time: time.Now()}
	switch {
	case ctx.Err() != nil:
		x.v.now.State = verifyCancelled
	case err != nil:
		x.v.now.Findings = append(x.v.now.Findings, Finding{Code: foundFailed, Params: map[string]string{"detail": err.Error()}})
	}
	if x.v.more > 0 {
		x.v.now.Findings = append(x.v.now.Findings, Finding{Code: foundMore, Params: map[string]string{"count": strconv.Itoa(x.v.more)}})
	}
	m.deps.Publish(EventVerification, "", x.v.showLocked())
	x.v.mu.Unlock()
	m.tellStorage(ctx, m.progress())
}

// examination is a running verification.
type examination struct {
	*Maintainer
	v    *verifying
	wish Verify
}

// find adds a finding.
func (x *examination) find(code, session string, repaired bool, params ...string) {
	x.add(Finding{Code: code, Session: session, Params: refusal.Bad(code, params...).Params, Repaired: repaired})
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

// step sets the total number of parts, or with 0 counts a part as done.
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
		x.deps.Publish(EventVerification, "", x.v.showLocked())
	}
}

// run verifies one part after the other. A part that cannot be verified is a finding, and the next part follows.
func (x *examination) run(ctx context.Context) error {
	db := x.deps.Store
	ids, err := record.Query(ctx, db.Read(), record.ScanText, `SELECT id FROM session WHERE deleted_at = 0 ORDER BY updated_at DESC`)
	if err != nil {
		return err
	}
	var listing []string
	if x.wish.Agents {
		if listing, err = record.Query(ctx, db.Read(), record.ScanText, `SELECT DISTINCT agent FROM session WHERE place = ? AND deleted_at = 0 ORDER BY agent`, local); err != nil {
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

// workspaces finds missing directories, and their present paths.
func (x *examination) workspaces(ctx context.Context) error {
	list, err := x.deps.Workspaces(ctx)
	for _, w := range list {
		if w.Missing {
			x.find(foundNoDirectory, "", false, "path", w.Path, "workspace", w.ID, "movedTo", w.MovedTo)
		}
	}
	return err
}

// agentsOfSessions finds sessions of unknown agents.
func (x *examination) agentsOfSessions(ctx context.Context) error {
	type pair struct{ id, agent string }
	list, err := record.Query(ctx, x.deps.Store.Read(), func(s record.Scanner) (p pair, err error) { return p, s.Scan(&p.id, &p.agent) },
		`SELECT id, agent FROM session WHERE place = ? AND deleted_at = 0 ORDER BY updated_at DESC`, local)
	for _, p := range list {
		if !x.deps.KnownAgent(p.agent) {
			x.find(foundNoAgent, p.id, false, "agent", p.agent)
		}
	}
	return err
}

// agent compares our sessions with an agent's own list.
func (x *examination) agent(ctx context.Context, agent string) error {
	known, listed, err := x.listOf(ctx, agent)
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		x.find(foundUnlisted, "", false, "agent", agent, "detail", refused.Params["detail"])
		return nil
	}
	if err != nil || !listed {
		return err
	}
	ours, err := x.deps.SessionsOf(ctx, agent)
	if err != nil {
		return err
	}
	workspaces, err := x.deps.Workspaces(ctx)
	if err != nil {
		return err
	}
	theirs := map[string]bool{}
	for _, s := range known {
		theirs[s.ID] = true
		inOurs := slices.ContainsFunc(workspaces, func(w workspace.KnownWorkspace) bool { return w.Place == local && w.Path == s.Cwd })
		if s.Session == "" && inOurs {
			x.find(foundOffered, "", false, "agent", agent, "acpSessionId", s.ID, "title", s.Title, "cwd", s.Cwd)
		}
	}
	for acpID, id := range ours {
		if !theirs[acpID] {
			x.find(foundForgotten, id, false, "agent", agent, "acpSessionId", acpID)
		}
	}
	return nil
}

// mostPages limits the pages that are read of an agent's list, since a list may never end.
const mostPages = 200

// listOf returns an agent's own list of sessions. listed is false when the agent has no list, or a list that is too long.
func (x *examination) listOf(ctx context.Context, agent string) (all []AgentSession, listed bool, err error) {
	before := ""
	for range mostPages {
		page, next, supported, err := x.deps.AgentSessions(ctx, agent, before)
		if err != nil || !supported {
			return nil, false, err
		}
		all = append(all, page...)
		if next == "" {
			return all, true, nil
		}
		before = next
	}
	return nil, false, nil
}
