package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/workspace"
	"deskhand/backend/worktree"
	"deskhand/backend/worktrees"
)

// worktreeSessions provides package worktrees with the sessions that work in worktrees.
type worktreeSessions struct{ *Client }

// find returns a session by its id.
func (c worktreeSessions) find(ctx context.Context, id string) (worktrees.Session, error) {
	s, err := c.Stored(ctx, id)
	return worktrees.Session{ID: s.ID, Cwd: s.Cwd, Local: c.hosts.At(s.Place).Directories != nil}, err
}

// makeWorktree makes the worktree in which a new session is to begin, and changes the directory of n to the worktree's.
func (c *Client) makeWorktree(ctx context.Context, id string, n *New) (*worktrees.Pending, error) {
	if c.hosts.At(n.Place).Directories == nil {
		return nil, bad(worktrees.Elsewhere)
	}
	if err := c.hosts.At(n.Place).Startable(n.Agent); err != nil {
		return nil, err
	}
	cwd, err := workspace.Directory(n.Cwd)
	if err == nil {
		_, err = workspace.Directories(n.Directories)
	}
	if err != nil {
		return nil, err
	}
	title := cmp.Or(n.Purpose, n.Title, titleOf(said{text: n.Message}.title()))
	tree, err := c.worktrees.Make(ctx, worktrees.Start{Session: id, Cwd: cwd, Branch: n.Branch, Base: n.Base, Commit: n.Commit, Title: title})
	if err == nil {
		n.Cwd = tree.Cwd
	}
	return tree, err
}

// in returns the ids of all sessions that work in a directory, under any path of the directory, or have it as a further directory.
// Sessions whose deletion can be undone are included.
func (c worktreeSessions) in(ctx context.Context, path string) ([]string, error) {
	list, err := query(ctx, c.cfg.Store.Read(), func(row scanner) (s Session, err error) {
		var further string
		if err = row.Scan(&s.ID, &s.Cwd, &further); err == nil {
			err = json.Unmarshal([]byte(further), &s.Directories)
		}
		return s, err
	}, `SELECT id, cwd, directories FROM session WHERE place = 'local' AND parent = '' ORDER BY id`)
	var ids []string
	at := host.Resolve(path)
	for _, s := range list {
		there := func(dir string) bool { return host.Within(path, dir) || host.Within(at, dir) }
		if there(s.Cwd) || slices.ContainsFunc(c.hosts.Local.Directories.Reach(s.Cwd, s.Directories), there) {
			ids = append(ids, s.ID)
		}
	}
	return ids, err
}

// occupants returns the sessions in a directory that are not deleted.
func (c worktreeSessions) occupants(ctx context.Context, path string) (list []worktrees.Occupant, err error) {
	ids, err := c.in(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		v, err := c.conversation(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s := v.look()
		list = append(list, worktrees.Occupant{ID: id, Title: s.Title, Running: s.Turn != nil})
	}
	return list, nil
}

// untilEnded is how long agents and terminals have to end before their directory is removed.
const untilEnded = 30 * time.Second

// end ends the agents and terminals in a directory, and waits for them. end refuses where a turn runs.
func (c worktreeSessions) end(ctx context.Context, path string) error {
	ids, err := c.in(ctx, path)
	if err != nil {
		return err
	}
	var ends []<-chan struct{}
	for _, id := range ids {
		v, err := c.any(ctx, id)
		if err == nil {
			err = v.reach(ctx, func() error {
				end, err := v.vacate()
				if end != nil {
					ends = append(ends, end)
				}
				return err
			})
		}
		if err != nil && !errors.Is(err, ErrNotFound) { // not found: the session is being erased
			return err
		}
	}
	return c.awaitEnds(slices.Concat(ends, c.shells.EndIn(path), c.cfg.Setups.EndIn(path)))
}

// awaitEnds waits until all channels are closed, for untilEnded at most.
func (c worktreeSessions) awaitEnds(ends []<-chan struct{}) error {
	enough := time.NewTimer(untilEnded)
	defer enough.Stop()
	for _, end := range ends {
		select {
		case <-end:
		case <-enough.C:
			return worktree.ErrBusy
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
	return nil
}

// show publishes the sessions in a directory again.
func (c worktreeSessions) show(ctx context.Context, path string) {
	ids, err := c.in(ctx, path)
	for _, id := range ids {
		v, found := c.conversation(ctx, id)
		if found == nil {
			found = v.call(ctx, func() error { v.saveRow(); return nil })
		}
		if found != nil && !errors.Is(found, ErrNotFound) {
			err = errors.Join(err, found)
		}
	}
	if err != nil && c.ctx.Err() == nil {
		c.cfg.Logger.Warn("the new state of a worktree could not be published to all sessions", "path", path, "error", err)
	}
}
