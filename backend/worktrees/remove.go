package worktrees

import (
	"context"
	"errors"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/worktree"
)

// WorktreeRemoval describes what the removal of a worktree keeps and deletes.
type WorktreeRemoval struct {
	Path         string          `json:"path"`
	Branch       string          `json:"branch,omitempty" doc:"Branch that is checked out; absent where none is"`
	Missing      bool            `json:"missing,omitempty" doc:"Another program has deleted the directory; what git still has of the worktree is kept"`
	BranchStays  bool            `json:"branchStays" doc:"false: the branch has no commit of its own, and is deleted"`
	Commits      int             `json:"commits" doc:"Number of commits of the branch after the commit with which the worktree began; they stay"`
	Changed      []WorktreeFile  `json:"changed" doc:"Uncommitted files, which are kept and come back with the worktree. At most 500"`
	ChangedTotal int             `json:"changedTotal"`
	Ignored      []WorktreeGoing `json:"ignored" doc:"Files that the repository's rules ignore, which are deleted. The largest first, at most 200"`
	IgnoredTotal int             `json:"ignoredTotal" doc:"Number of all ignored files"`
	IgnoredBytes int64           `json:"ignoredBytes"`
	Others       []string        `json:"others" doc:"Titles of other conversations that work there"`
	Running      string          `json:"running,omitempty" doc:"Title of a conversation whose turn runs; nothing is removed then"`
	Kept         *KeptWork       `json:"kept,omitempty" doc:"Of a removal: the kept files"`
	Left         string          `json:"left,omitempty" doc:"Of a removal: the folder with the files that could not be deleted. Nothing there is needed"`
}

// WorktreeFile is an uncommitted file.
type WorktreeFile struct {
	Path string `json:"path"`
	Kind string `json:"kind" enum:"modified,added,deleted,untracked"`
}

// WorktreeGoing is an ignored file, or an ignored folder with a slash at its end.
type WorktreeGoing struct {
	Path  string `json:"path"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

const (
	mostChanges = 500
	mostGoing   = 200
	untilFree   = 5 * time.Second
)

// claim claims the worktree of a session for one change; done releases the claim. A worktree that a crash has left half done is settled first.
func (l *Library) claim(ctx context.Context, session string) (_ row, done func(), err error) {
	if err := l.deps.Writable(); err != nil {
		return row{}, nil, err
	}
	r, err := l.ofSession(ctx, session)
	if err != nil {
		return row{}, nil, err
	}
	id := r.id
	if !l.take(ctx, id) {
		return row{}, nil, ErrWorking()
	}
	if r, err = l.claimed(ctx, session, r); err != nil {
		l.release(id)
		return row{}, nil, err
	}
	return r, func() { l.release(id) }, nil
}

// claimed returns the worktree of a session after the claim: while the claim was waited for, session and worktree may have moved.
func (l *Library) claimed(ctx context.Context, session string, r row) (row, error) {
	if err := l.settle(ctx, r.id); err != nil {
		return row{}, l.refused(err, r.path, r)
	}
	now, err := l.ofSession(ctx, session)
	if err == nil && now.id != r.id {
		err = &refusal.Error{Code: refusedNone}
	}
	return now, err
}

// ofSession returns the worktree that a session works in.
func (l *Library) ofSession(ctx context.Context, session string) (row, error) {
	s, err := l.deps.Sessions.Find(ctx, session)
	if err != nil {
		return row{}, err
	}
	r, ok := l.of(s.Cwd)
	if !ok || !s.Local || r.state == stateMaking {
		return row{}, &refusal.Error{Code: refusedNone}
	}
	return r, nil
}

// take claims a worktree. When another claim is not over within 5 s, take returns false; settling at a start takes less.
func (l *Library) take(ctx context.Context, id string) bool {
	enough := time.NewTimer(untilFree)
	defer enough.Stop()
	for {
		l.mu.Lock()
		over := l.busy[id]
		if over == nil {
			l.busy[id] = make(chan struct{})
			l.mu.Unlock()
			return true
		}
		l.mu.Unlock()
		select {
		case <-over:
		case <-enough.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// release ends a claim.
func (l *Library) release(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.busy[id])
	delete(l.busy, id)
}

// Preview describes what Remove would keep and delete, and changes nothing.
func (l *Library) Preview(ctx context.Context, session string) (WorktreeRemoval, error) {
	r, done, err := l.claim(ctx, session)
	if err != nil {
		return WorktreeRemoval{}, err
	}
	defer done()
	if r.state != stateReady {
		return WorktreeRemoval{}, &refusal.Error{Code: refusedRemoved}
	}
	return l.removal(ctx, r, session)
}

func (l *Library) removal(ctx context.Context, r row, session string) (WorktreeRemoval, error) {
	out := WorktreeRemoval{Path: r.path, BranchStays: true, Changed: []WorktreeFile{}, Ignored: []WorktreeGoing{}, Others: []string{}}
	occupants, err := l.deps.Sessions.Occupants(ctx, r.path)
	if err != nil {
		return out, err
	}
	for _, o := range occupants {
		if o.Running {
			out.Running = o.Title
		}
		if o.ID != session {
			out.Others = append(out.Others, o.Title)
		}
	}
	if out.Missing = host.Gone(r.path); out.Missing {
		return out, nil
	}
	state, err := l.git.Inspect(ctx, r.path, r.base)
	if err != nil {
		return out, l.refused(err, r.path, r)
	}
	out.Branch, out.Commits = state.Branch, state.Commits+state.Strays
	out.BranchStays = state.Branch != r.branch || out.Commits > 0 || len(state.Changes) > 0
	out.ChangedTotal = len(state.Changes)
	for _, f := range state.Changes[:min(len(state.Changes), mostChanges)] {
		out.Changed = append(out.Changed, WorktreeFile(f))
	}
	for i, f := range state.Ignored {
		out.IgnoredTotal += f.Files
		out.IgnoredBytes += f.Bytes
		if i < mostGoing {
			out.Ignored = append(out.Ignored, WorktreeGoing(f))
		}
	}
	return out, nil
}

// Remove removes the worktree of a session. Uncommitted files are kept in the repository first, and come back with [Library.Restore]; ignored
// files are deleted. Agents and terminals in the worktree end; a running turn refuses the removal.
func (l *Library) Remove(ctx context.Context, session string) (WorktreeRemoval, error) {
	r, done, err := l.claim(ctx, session)
	if err != nil {
		return WorktreeRemoval{}, err
	}
	defer done()
	if r.state != stateReady {
		return WorktreeRemoval{}, &refusal.Error{Code: refusedRemoved}
	}
	out, err := l.removal(ctx, r, session)
	switch {
	case err != nil:
		return out, err
	case out.Running != "":
		return out, &refusal.Error{Code: Busy, Params: map[string]string{"title": out.Running}}
	}
	if out.Missing { // a locked worktree is on a disk that is not plugged in: a removal that was stored could not go on
		if err := l.git.Unlocked(ctx, r.main, r.path); err != nil {
			return out, l.refused(err, r.path, r)
		}
	}
	ctx = context.WithoutCancel(ctx) // half a removal helps nobody
	r.state, r.kept = stateRemoving, nil
	if err := l.store(ctx, r, nil); err != nil { // from now on no agent starts there
		return out, err
	}
	if !out.Missing { // before anything ends: a later refusal would have ended agents for nothing
		err = l.git.Try(ctx, r.path)
	}
	if err == nil {
		err = l.deps.Sessions.End(ctx, r.path)
	}
	if err == nil {
		err = l.takeAway(ctx, &r, &out)
	}
	if err != nil {
		return out, errors.Join(l.refused(err, r.path, r), l.settle(ctx, r.id))
	}
	l.deps.Sessions.Show(ctx, r.path)
	return out, nil
}

// takeAway keeps the uncommitted files, and removes the directory.
func (l *Library) takeAway(ctx context.Context, r *row, out *WorktreeRemoval) error {
	strays := 0
	if host.Gone(r.path) { // another program has deleted the directory
		if err := l.rescue(ctx, r); err != nil {
			return err
		}
		all, err := l.resume(ctx, r, r.kept.given())
		if err == nil && !all { // the directory has come back
			err = worktree.ErrBusy
		}
		if err != nil {
			return err
		}
	} else {
		err := l.git.Remove(ctx, r.main, r.path, keptRef(r.id), func(k worktree.Kept) error {
			r.kept, strays = keptOf(k), k.Strays
			return l.store(ctx, *r, nil)
		})
		if err = l.rests(r, err); err != nil {
			return err
		}
	}
	out.Kept, out.Left = r.keptWork(), r.kept.Left
	out.BranchStays = true
	if r.kept.Commit == "" && r.kept.Head == r.base && strays == 0 {
		dropped, err := l.git.DropUnused(ctx, r.main, r.branch, r.base)
		if err != nil {
			l.deps.Logger.Warn("a branch without a commit stays", "branch", r.branch, "error", err)
		}
		out.BranchStays = !dropped
	}
	r.state = stateRemoved
	return l.store(ctx, *r, nil)
}

// resume continues a removal that was cut off.
func (l *Library) resume(ctx context.Context, r *row, kept worktree.Kept) (over bool, err error) {
	over, err = l.git.Resume(ctx, r.main, r.path, kept)
	return over, l.rests(r, err)
}

// rests counts a removal as a success when only files that nobody needs could not be deleted, and notes their folder in r. As an error, the
// removal would be tried again at every start and every use of the worktree, with the same end.
func (l *Library) rests(r *row, err error) error {
	left, is := errors.AsType[*worktree.LeftError](err)
	if !is {
		return err
	}
	l.deps.Logger.Warn("a worktree is removed, but not all of it can be deleted", "rests", left.Path, "error", left.Err)
	if r.kept != nil {
		kept := *r.kept // the record in memory may have readers
		kept.Left = left.Path
		r.kept = &kept
	}
	return nil
}
