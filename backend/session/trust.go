package session

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/autorun"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
)

// Executable is something in a directory that starts programs, or reaches out, when an agent starts there. It is approved once for
// each content: the hash covers all that counts, and the agent is given what was hashed, never what the file says later.
type Executable struct {
	Kind     string `json:"kind" enum:"mcp,skill,hook,agent_config,script" doc:"MCP servers and skills are given to the agent by Deskhand; the others it reads by itself"`
	Name     string `json:"name"`
	Hash     string `json:"hash" doc:"SHA-256 of what was shown"`
	Detail   string `json:"detail" doc:"What a person judges by, in several lines; secrets are hidden"`
	Approved bool   `json:"approved"`
	Before   string `json:"before,omitempty" doc:"What was approved last under this name, when it is another one. The same text: only hidden values differ"`

	off    bool        // it is not enabled, so no start asks for it
	server *mcp.Server // of kind mcp: what is started once it is approved
	skill  *skillEntry // of kind skill
}

// The answers to a request of kind trust.
const (
	trustApprove = "approve" // kept
	trustOnce    = "once"    // for this start alone
	trustWithout = "without"
	trustDecline = "decline" // of what the agent reads by itself: it does not start
)

// problemDeclined ends a generation in which a person did not want to start the agent with what it reads by itself.
const problemDeclined = "trust.declined"

func trustOptions() []RequestOption {
	return []RequestOption{
		{ID: trustApprove, Name: "Approve and start", Kind: "allow_always"},
		{ID: trustOnce, Name: "Start with these once", Kind: "allow_once"},
		{ID: trustWithout, Name: "Start without these", Kind: "reject_once"},
	}
}

func declinableOptions() []RequestOption {
	return []RequestOption{
		{ID: trustApprove, Name: "Approve and start", Kind: "allow_always"},
		{ID: trustOnce, Name: "Start with these once", Kind: "allow_once"},
		{ID: trustDecline, Name: "Do not start", Kind: "reject_once"},
	}
}

// discover finds what the directory has that Deskhand gives to agents and that starts programs, and what could not be read of that. Each
// part that knows of such things adds its own here.
func (c *Client) discover(ctx context.Context, directory string) ([]Executable, []transcript.Notice) {
	found, notices := c.findServers(ctx, directory)
	entries, more := c.findSkills(ctx, directory)
	found, notices = append(found, entries...), append(notices, more...)
	if err := c.judge(ctx, directory, found); err != nil { // then nothing counts as approved
		c.cfg.Logger.Error("approvals cannot be read", "directory", directory, "error", err)
	}
	return found, notices
}

// judge marks what was approved in the directory.
func (c *Client) judge(ctx context.Context, directory string, found []Executable) error {
	type approval struct{ kind, name, hash, detail string }
	scan := func(s scanner) (a approval, err error) {
		err = s.Scan(&a.kind, &a.name, &a.hash, &a.detail)
		return a, err
	}
	// A work tree of ours is the repository once more: the same content was approved there.
	from, ok := c.worktrees.stands(directory)
	if !ok {
		from = directory
	}
	list, err := query(ctx, c.cfg.Store.Read(), scan, `SELECT kind, name, hash, detail FROM trust WHERE directory IN (?, ?) ORDER BY approved_at, rowid`, directory, from)
	if err != nil {
		return err
	}
	for i := range found {
		e := &found[i]
		for _, a := range list {
			if a.kind != e.Kind || a.name != e.Name {
				continue
			}
			e.Before = a.detail
			e.Approved = e.Approved || a.hash == e.Hash
		}
		if e.Approved {
			e.Before = ""
		}
	}
	return nil
}

// Trust tells what there is in a directory that starts programs, and what of it is approved.
func (c *Client) Trust(ctx context.Context, directory string) ([]Executable, error) {
	directory, err := checkDirectory(directory)
	if err != nil {
		return nil, err
	}
	return c.all(ctx, directory), nil
}

// all is what there is in a directory for whatever agent.
func (c *Client) all(ctx context.Context, directory string) []Executable {
	found, _ := c.discover(ctx, directory)
	return append(found, c.readThere(ctx, directory, nil, autorun.Places(nil), nil)...)
}

// Approve approves what is in the directory now and has one of the hashes. When one of them is not there any more, because somebody
// has changed what it was of, nothing is approved.
func (c *Client) Approve(ctx context.Context, directory string, hashes []string) error {
	directory, err := checkDirectory(directory)
	if err != nil {
		return err
	}
	found := c.all(ctx, directory)
	var chosen []Executable
	for _, hash := range hashes {
		i := slices.IndexFunc(found, func(e Executable) bool { return e.Hash == hash })
		if i < 0 {
			return &RefusedError{Code: "trust.changed", Params: map[string]string{"hash": hash}}
		}
		chosen = append(chosen, found[i])
	}
	return c.saveApprovals(ctx, directory, chosen)
}

func (c *Client) saveApprovals(ctx context.Context, directory string, list []Executable) error {
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return approve(ctx, tx, directory, list) })
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.heard(directory, list, "")
	return nil
}

// heard tells the sessions that wait in the directory what was approved: a person need not say it again in each of them.
func (c *Client) heard(directory string, list []Executable, surface string) {
	c.mu.Lock()
	live := slices.Collect(maps.Values(c.live))
	c.mu.Unlock()
	for _, v := range live {
		if filepath.Clean(v.look().Cwd) == directory { // whether it waits is shown after it is stored
			c.background(func() { v.post(func() { v.reconsider(list, surface) }) })
		}
	}
}

// reconsider answers a request all of which was approved elsewhere, at once or one by one.
func (v *conversation) reconsider(approved []Executable, surface string) {
	for _, r := range v.waiting() {
		if r.Kind != kindTrust {
			continue
		}
		a := v.agent.approval
		a.elsewhere = append(a.elsewhere, approved...)
		if slices.ContainsFunc(r.Executables, func(e Executable) bool { return !slices.ContainsFunc(a.elsewhere, e.same) }) {
			continue
		}
		if err := v.answerTrust(r, Answer{OptionID: trustApprove}, surface); err != nil {
			v.c.cfg.Logger.Warn("an approval does not fit", "session", v.id, "error", err)
		}
	}
}

// Revoke takes an approval back. What runs already goes on.
func (c *Client) Revoke(ctx context.Context, directory, hash string) error {
	directory, err := cleanDirectory(directory) // which need not be there any more
	if err != nil {
		return err
	}
	from, ok := c.worktrees.stands(directory) // else it would still count here
	if !ok {
		from = directory
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM trust WHERE directory IN (?, ?) AND hash = ?`, directory, from, hash)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

// approve stores approvals. The same content again is the newest one again.
func approve(ctx context.Context, tx *sql.Tx, directory string, list []Executable) error {
	for _, e := range list {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO trust (directory, kind, name, hash, detail, approved_at) VALUES (?, ?, ?, ?, ?, ?)`,
			directory, e.Kind, e.Name, e.Hash, e.Detail, millis(time.Now())); err != nil {
			return err
		}
	}
	return nil
}

// approval is a question about what a directory would start, while it waits.
type approval struct {
	about     []Executable
	elsewhere []Executable // what was approved since it waits, by other answers
	verdict   chan string  // takes one answer
}

// consider asks a person about what nobody has approved. Where there is nothing to ask, the answer is there at once.
func (a *agentProcess) consider(found []Executable, options []RequestOption) {
	a.approval = &approval{verdict: make(chan string, 1)}
	for _, e := range found {
		if !e.Approved && !e.off {
			a.approval.about = append(a.approval.about, e)
		}
	}
	if len(a.approval.about) == 0 {
		a.approval.verdict <- trustApprove
		return
	}
	v := a.v
	r := &openRequest{Request: Request{
		ID: uuid.Must(uuid.NewV7()).String(), Session: v.id, Generation: v.row.Generation, Agent: v.agentName, Kind: kindTrust,
		Title: "Start what is in this directory?", Detail: v.row.Cwd, Options: options, Executables: a.approval.about,
		Status: statusRequested, CreatedAt: Time{Time: time.Now()},
	}}
	if v.turn != nil {
		r.Turn = v.turn.ID
	}
	v.requests[r.ID] = r
	v.saveRequest(&r.Request)
	v.do(doOpen{r.ID})
}

// answerTrust takes a person's answer to a request of kind trust. The start goes on in a step of its own, so that an approval is
// stored before anything starts by it.
func (v *conversation) answerTrust(r *openRequest, answer Answer, surface string) error {
	i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.ID == answer.OptionID })
	if i < 0 {
		return bad("answer.unknown_option", "optionId", answer.OptionID)
	}
	status := statusAnswered
	if strings.HasPrefix(r.Options[i].Kind, "reject") {
		status = statusRejected
	}
	r.Answer, r.AnsweredBy = mustJSON(answer), surface
	if err := v.wish(doResolve{r.ID, status}); err != nil {
		return err
	}
	a := v.agent
	if answer.OptionID == trustApprove {
		directory, about := filepath.Clean(v.row.Cwd), a.approval.about
		v.step.writes = append(v.step.writes, func(ctx context.Context, tx *sql.Tx) error { return approve(ctx, tx, directory, about) })
		v.c.heard(directory, about, surface)
	}
	v.links.Go(func() { a.post(func() { a.approval.verdict <- answer.OptionID }) })
	return nil
}
