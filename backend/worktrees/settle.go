package worktrees

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/worktree"
)

// A worktree that a crash has left half done is settled at the next start, or before its next change, by its state:
//
//	making     The session was not stored: worktree and branch are removed. A worktree with files of somebody stays, and its row goes.
//	removing   A directory at its path is whole, and ready. A directory that was moved aside is removed if all was kept, else moved back.
//	restoring  The directory is removed again, because all was kept. A directory with files of somebody is ready; the kept files stay on their ref.
//	ready      After a move that was stored, worktree and repository may not find each other: their paths are repaired.

// SettleAll settles every worktree, at the start.
func (l *Library) SettleAll(ctx context.Context) {
	l.mu.Lock()
	ids := slices.Sorted(maps.Keys(l.all))
	l.mu.Unlock()
	for _, id := range ids {
		if ctx.Err() != nil || !l.inReach(ctx, id) || !l.take(ctx, id) {
			continue
		}
		err := l.settle(ctx, id)
		l.release(id)
		if err != nil && ctx.Err() == nil {
			l.deps.Logger.Error("a worktree that was left half done cannot be settled", "session", id, "error", err)
		}
	}
}

// settleWait is how long the disk of a worktree may take to answer at the start.
const settleWait = 10 * time.Second

// inReach reports whether the disks of a worktree and of its repository answer in time.
func (l *Library) inReach(ctx context.Context, id string) bool {
	wait, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	r := l.get(id)
	if r.state == stateRemoved {
		return true // settling does nothing
	}
	err := errors.Join(l.deps.Directories.Answers(wait, r.path), l.deps.Directories.Answers(wait, r.main))
	if err != nil && ctx.Err() == nil {
		l.deps.Logger.Warn("the disk of a worktree does not answer: the worktree is settled before its next change", "path", r.path)
	}
	return err == nil
}

// settle settles a claimed worktree.
func (l *Library) settle(ctx context.Context, id string) error {
	r := l.get(id)
	var err error
	var over bool
	switch r.state {
	case stateMaking:
		return l.settleMaking(ctx, r)
	case stateRemoving:
		over, err = l.settleRemoving(ctx, &r)
	case stateRestoring:
		over, err = l.git.Abandon(ctx, r.main, r.path, "", r.kept.given())
		err = l.rests(&r, err)
	case stateReady:
		l.rejoin(ctx, r)
		return nil
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if r.state == stateRestoring && !over && r.kept.Commit != "" {
		l.deps.Logger.Warn("a worktree that was restored in part has new files, and stays as it is", "path", r.path, "kept", keptRef(r.id))
	}
	r.state = stateReady
	if over {
		r.state = stateRemoved
	} else {
		r.kept = nil
	}
	if err := l.store(ctx, r, nil); err != nil {
		return err
	}
	l.deps.Sessions.Show(ctx, r.path)
	return nil
}

// rejoin repairs the paths between a worktree and its repository. A repair that fails is logged only: the next use of the worktree fails with
// the reason.
func (l *Library) rejoin(ctx context.Context, r row) {
	if !worktree.Parted(r.path) || host.Gone(r.main) {
		return
	}
	if err := l.git.Repair(ctx, r.main, r.path); err != nil && ctx.Err() == nil {
		l.deps.Logger.Warn("a worktree does not find its repository", "path", r.path, "error", err)
	}
}

func (l *Library) settleRemoving(ctx context.Context, r *row) (over bool, err error) {
	kept := worktree.Kept{} // with nothing known to be kept, Resume deletes nothing
	switch {
	case r.kept != nil:
		kept = r.kept.given()
	case host.Gone(r.path): // another program has deleted the directory
		if err := l.rescue(ctx, r); err != nil {
			return false, err
		}
		kept = r.kept.given()
	}
	return l.resume(ctx, r, kept)
}

func (l *Library) settleMaking(ctx context.Context, r row) error {
	if l.shared(r) { // the program ended while it refused this second row of a path
		return l.drop(ctx, r.id)
	}
	removed, err := l.git.Abandon(ctx, r.main, r.path, r.branch, worktree.Kept{Head: r.base})
	switch err = l.rests(&r, err); {
	case errors.Is(err, worktree.ErrNoRepository): // without a repository there is nothing to remove
	case err != nil:
		return err
	case !removed:
		l.deps.Logger.Warn("a worktree without a session has files of somebody, and stays", "path", r.path, "branch", r.branch)
	}
	return l.drop(ctx, r.id)
}
