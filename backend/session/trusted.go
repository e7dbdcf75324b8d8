package session

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"deskhand/backend/autorun"
	"deskhand/backend/trust"
)

// What an agent reads in a directory by itself (package trust) cannot be kept from it: it starts with all of that, or not at all. What is
// approved is looked at once more right before the process starts.

// readThere finds what an agent that looks in these places would read in a directory, and in further ones of its session. The skills that are
// linked there for a session are left out, where mine is not nil those that it tells of.
func (c *Client) readThere(ctx context.Context, directory string, further []string, reads []autorun.Place, mine func(digest string) bool) []Executable {
	w := trust.Where{Directory: directory, Further: further, Reads: reads}
	if c.cfg.Skills != nil {
		w.Linked = func(path string) bool {
			digest := c.cfg.Skills.Linked(ctx, directory, path)
			return digest != "" && (mine == nil || mine(digest))
		}
	}
	found := trust.Find(ctx, w)
	list := make([]Executable, 0, len(found))
	for _, f := range found {
		list = append(list, Executable{Kind: f.Kind, Name: f.Name, Hash: f.Hash, Detail: c.secret.KnownOnly(f.Detail)})
	}
	if err := c.judge(ctx, directory, list); err != nil { // then nothing counts as approved
		c.cfg.Logger.Error("approvals cannot be read", "directory", directory, "error", err)
	}
	return list
}

// permitted has a person asked about what the agent reads by itself and nobody has approved, until there is nothing of that: what changes
// while the person reads is asked about as well. Mine tells of the skills that are linked for a session those that are approved for this one,
// by their digests; nil = all, since it is yet to be asked about them. It is false when the agent shall not start, or the generation has ended meanwhile.
func (a *agentProcess) permitted(agent, cwd string, mine func(digest string) bool) bool {
	reads := a.v.c.cfg.Agents.Reads(agent)
	if len(reads) == 0 {
		return true
	}
	directory := filepath.Clean(cwd)
	for {
		var asked []Executable
		for _, e := range a.v.c.readThere(a.ctx, directory, a.further, reads, mine) {
			if !e.Approved && !slices.ContainsFunc(a.permits, e.same) {
				asked = append(asked, e)
			}
		}
		if len(asked) == 0 {
			return a.ctx.Err() == nil
		}
		verdict, ok := a.ask(asked, nil, declinableOptions())
		switch {
		case !ok:
			return false
		case verdict == trustDecline:
			a.post(func() { a.fail(problemDeclined, "agent", a.v.agentName, "path", directory) })
			return false
		}
		a.permits = append(a.permits, asked...)
	}
}

// same tells of the same content under the same name.
func (e Executable) same(o Executable) bool {
	return e.Kind == o.Kind && e.Name == o.Name && e.Hash == o.Hash
}

// Approval is something that a person has approved, at some time.
type Approval struct {
	Directory  string `json:"directory"`
	Kind       string `json:"kind" enum:"mcp,skill,hook,agent_config,script"`
	Name       string `json:"name"`
	Hash       string `json:"hash"`
	Detail     string `json:"detail" doc:"What was shown"`
	ApprovedAt Time   `json:"approvedAt"`
	Older      bool   `json:"older,omitempty" doc:"Another content was approved under this name since; this one is approved all the same"`
}

// mostApprovals are listed at once.
const mostApprovals = 2000

// Approvals lists what is approved, by directory and name, the newest of a name first. A directory need not be there any more; with ""
// it is all of them, as far as they are the newest.
func (c *Client) Approvals(ctx context.Context, directory string) ([]Approval, error) {
	scan := func(s scanner) (a Approval, err error) {
		var at int64
		err = s.Scan(&a.Directory, &a.Kind, &a.Name, &a.Hash, &a.Detail, &at)
		a.ApprovedAt = Time{Time: time.UnixMilli(at)}
		return a, err
	}
	if directory != "" {
		var err error
		if directory, err = cleanDirectory(directory); err != nil {
			return nil, err
		}
	}
	list, err := query(ctx, c.cfg.Store.Read(), scan, `SELECT directory, kind, name, hash, detail, approved_at FROM trust
		WHERE ? IN ('', directory) ORDER BY directory, kind, name, approved_at DESC, rowid DESC LIMIT ?`, directory, mostApprovals)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	for i := range list {
		if i > 0 {
			before := list[i-1]
			list[i].Older = before.Directory == list[i].Directory && before.Kind == list[i].Kind && before.Name == list[i].Name
		}
	}
	return list, nil
}

// RevokeAll takes all approvals of a directory back. What runs already goes on.
func (c *Client) RevokeAll(ctx context.Context, directory string) error {
	directory, err := cleanDirectory(directory) // which need not be there any more
	if err != nil {
		return err
	}
	from, ok := c.worktrees.stands(directory) // else it would still count here
	if !ok {
		from = directory
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM trust WHERE directory IN (?, ?)`, directory, from)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}
