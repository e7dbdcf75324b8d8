package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/worktree"
)

// What a crash has left half done is settled at the next start, or when somebody wants something of it:
//
//	making     no session is there: it goes, with its branch. What somebody has put into it since stays, and is no longer ours.
//	removing   the directory is where it was: nothing has gone, it is ready. It is out of the way: it goes if all was kept, else it is back.
//	restoring  it goes once more: all was kept. What somebody has put into it since makes it ready as it is; what was kept stays on its ref.
//	ready      a move was written, and the halves of the work tree do not find each other yet: they do.

// settleTrees does so for all, at the start.
func (c *Client) settleTrees() {
	c.worktrees.mu.Lock()
	ids := slices.Sorted(maps.Keys(c.worktrees.all))
	c.worktrees.mu.Unlock()
	for _, id := range ids {
		if c.ctx.Err() != nil || !c.inReach(id) || !c.worktrees.take(c.ctx, id) {
			continue
		}
		err := c.settle(c.ctx, id)
		c.worktrees.giveBack(id)
		if err != nil && c.ctx.Err() == nil {
			c.cfg.Logger.Error("a work tree that was left half done cannot be settled", "session", id, "error", err)
		}
	}
}

// settleWait is how long the disk of a work tree may take to answer at the start.
const settleWait = 10 * time.Second

// inReach tells whether a work tree and its repository can be read in time.
func (c *Client) inReach(id string) bool {
	ctx, cancel := context.WithTimeout(c.ctx, settleWait)
	defer cancel()
	c.worktrees.mu.Lock()
	r := c.worktrees.all[id]
	c.worktrees.mu.Unlock()
	if r.state == treeRemoved {
		return true // nothing is done to it
	}
	err := errors.Join(c.hosts.Local.Directories.Answers(ctx, r.path), c.hosts.Local.Directories.Answers(ctx, r.main))
	if err != nil && c.ctx.Err() == nil {
		c.cfg.Logger.Warn("the disk of a work tree does not answer: it is settled when it is wanted", "path", r.path)
	}
	return err == nil
}

// settle is for who has claimed it.
func (c *Client) settle(ctx context.Context, id string) error {
	c.worktrees.mu.Lock()
	r := c.worktrees.all[id]
	c.worktrees.mu.Unlock()
	git := c.worktrees.git
	var err error
	var over bool
	switch r.state {
	case treeMaking:
		return c.settleMaking(ctx, r)
	case treeRemoving:
		over, err = c.settleRemoving(ctx, &r)
	case treeRestoring:
		over, err = git.Abandon(ctx, r.main, r.path, "", r.kept.given())
		err = c.rests(&r, err)
	case treeReady:
		c.rejoin(ctx, r)
		return nil
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if r.state == treeRestoring && !over && r.kept.Commit != "" {
		c.cfg.Logger.Warn("a work tree that was brought back in part has something new in it, and stays as it is", "path", r.path, "kept", keptRef(r.id))
	}
	r.state = treeReady
	if over {
		r.state = treeRemoved
	} else {
		r.kept = nil
	}
	if err := c.putTree(ctx, r, nil); err != nil {
		return err
	}
	c.tellTree(ctx, r.path)
	return nil
}

// rejoin has the halves of a work tree find each other again, where they do not. Where they cannot, what is wanted of it says why.
func (c *Client) rejoin(ctx context.Context, r treeRow) {
	if !worktree.Parted(r.path) || host.Gone(r.main) {
		return
	}
	if err := c.worktrees.git.Repair(ctx, r.main, r.path); err != nil && c.ctx.Err() == nil {
		c.cfg.Logger.Warn("a work tree does not find its repository", "path", r.path, "error", err)
	}
}

func (c *Client) settleRemoving(ctx context.Context, r *treeRow) (over bool, err error) {
	kept := worktree.Kept{} // of which nobody knows takes nothing away
	switch {
	case r.kept != nil:
		kept = r.kept.given()
	case host.Gone(r.path): // somebody has deleted it
		if err := c.rescue(ctx, r); err != nil {
			return false, err
		}
		kept = r.kept.given()
	}
	return c.resume(ctx, r, kept)
}

func (c *Client) settleMaking(ctx context.Context, r treeRow) error {
	if c.worktrees.shared(r) { // it was cut off while it was refused
		return c.dropTree(ctx, r.id)
	}
	removed, err := c.worktrees.git.Abandon(ctx, r.main, r.path, r.branch, worktree.Kept{Head: r.base})
	switch err = c.rests(&r, err); {
	case errors.Is(err, worktree.ErrNoRepository): // nor is there anything to remove it from
	case err != nil:
		return err
	case !removed:
		c.cfg.Logger.Warn("a work tree without a session has something in it, and stays", "path", r.path, "branch", r.branch)
	}
	return c.dropTree(ctx, r.id)
}
