package worktrees

import (
	"context"
	"errors"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/worktree"
)

// Restore makes the removed worktree of a session again, as it was at its removal.
func (l *Library) Restore(ctx context.Context, session string) error {
	r, done, err := l.claim(ctx, session)
	if err != nil {
		return err
	}
	defer done()
	if r.state == stateReady && !host.Gone(r.path) {
		return &refusal.Error{Code: refusedThere, Params: map[string]string{"path": r.path}}
	}
	ctx = context.WithoutCancel(ctx)
	// Rescue comes before git is told to forget a directory that another program has removed; what Remove has kept is in r already. A locked
	// worktree is on a disk that is not plugged in, and would count as removed after the disk has come back.
	err = l.git.Unlocked(ctx, r.main, r.path)
	var found *kept
	if err == nil {
		found, err = l.rescued(ctx, r)
	}
	if err != nil {
		return l.refused(err, r.path, r)
	}
	if r.kept == nil || r.state == stateReady {
		r.kept = found
	}
	r.state = stateRestoring
	if err := l.store(ctx, r, nil); err != nil {
		return err
	}
	if err := l.git.Restore(ctx, r.main, r.path, r.kept.given()); err != nil {
		_ = l.rests(&r, err)
		back := r
		back.state = stateRemoved // a Restore that fails removes what it has made
		return errors.Join(l.refused(err, r.path, r), l.store(ctx, back, nil))
	}
	r.state, r.kept = stateReady, nil
	if err := l.store(ctx, r, nil); err != nil {
		return err
	}
	l.deps.Sessions.Show(ctx, r.path)
	return nil
}

// rescued keeps what only git still has of a worktree whose directory is gone.
func (l *Library) rescued(ctx context.Context, r row) (*kept, error) {
	k, err := l.git.Rescue(ctx, r.main, r.path, keptRef(r.id), worktree.Kept{Branch: r.branch, Head: r.base})
	return keptOf(k), err
}

// rescue stores what rescued keeps, so that a removal that is cut off can go on.
func (l *Library) rescue(ctx context.Context, r *row) error {
	kept, err := l.rescued(ctx, *r)
	if err != nil {
		return err
	}
	r.kept = kept
	return l.store(ctx, *r, nil)
}
