package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/transcript"
	"deskhand/backend/worktree"
)

// WorktreeRemoval is what the removal of a work tree keeps, and what it does not.
type WorktreeRemoval struct {
	Path         string          `json:"path"`
	Branch       string          `json:"branch,omitempty" doc:"That is checked out; absent where none is"`
	Missing      bool            `json:"missing,omitempty" doc:"Somebody has deleted the directory: what git still has of it is kept"`
	BranchStays  bool            `json:"branchStays" doc:"false: it has no commit of its own, and goes"`
	Commits      int             `json:"commits" doc:"Of the branch, beyond the one that it began with: they stay"`
	Changed      []WorktreeFile  `json:"changed" doc:"What nobody has committed: it is kept, and comes back with the work tree. At most 500"`
	ChangedTotal int             `json:"changedTotal"`
	Ignored      []WorktreeGoing `json:"ignored" doc:"What the repository's rules leave out: it goes. The largest first, at most 200"`
	IgnoredTotal int             `json:"ignoredTotal" doc:"Files, of all"`
	IgnoredBytes int64           `json:"ignoredBytes"`
	Others       []string        `json:"others" doc:"The titles of other conversations that work there"`
	Running      string          `json:"running,omitempty" doc:"The title of one whose turn runs: nothing is removed then"`
	Kept         *KeptWork       `json:"kept,omitempty" doc:"Of a removal: where it is"`
	Left         string          `json:"left,omitempty" doc:"Of a removal: where what could not be deleted lies. Nothing there is needed"`
}

// WorktreeFile is a file that nobody has committed.
type WorktreeFile struct {
	Path string `json:"path"`
	Kind string `json:"kind" enum:"modified,added,deleted,untracked"`
}

// WorktreeGoing is a file, or a folder with a slash at its end, that would go.
type WorktreeGoing struct {
	Path  string `json:"path"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

const (
	mostTreeChanges = 500
	mostTreeGoing   = 200
	untilFree       = 5 * time.Second
	untilEnded      = 30 * time.Second // what an agent and terminals have to end, before their directory goes
)

// claim takes the work tree of a session for something that is done to it, one at a time; done gives it back. What a crash has left half
// done is settled first.
func (c *Client) claim(ctx context.Context, session string) (_ treeRow, s Session, done func(), err error) {
	if refused := c.ReadOnly(); refused != nil {
		return treeRow{}, s, nil, refused
	}
	r, s, err := c.treeOf(ctx, session)
	if err != nil {
		return treeRow{}, s, nil, err
	}
	id := r.id
	if !c.worktrees.take(ctx, id) {
		return treeRow{}, s, nil, &RefusedError{Code: refusedWorktreeWorking}
	}
	if r, s, err = c.claimed(ctx, session, r); err != nil {
		c.worktrees.giveBack(id)
		return treeRow{}, s, nil, err
	}
	return r, s, func() { c.worktrees.giveBack(id) }, nil
}

// claimed is a session and its work tree once nobody else is at that: both may have moved while it was waited for.
func (c *Client) claimed(ctx context.Context, session string, r treeRow) (treeRow, Session, error) {
	if err := c.settle(ctx, r.id); err != nil {
		return treeRow{}, Session{}, c.refusedTree(err, r.path, r)
	}
	now, s, err := c.treeOf(ctx, session)
	if err == nil && now.id != r.id {
		err = &RefusedError{Code: refusedWorktreeNone}
	}
	return now, s, err
}

// treeOf is a session and the work tree that it works in.
func (c *Client) treeOf(ctx context.Context, session string) (treeRow, Session, error) {
	s, err := c.Get(ctx, session)
	if err != nil {
		return treeRow{}, s, err
	}
	r, ok := c.worktrees.of(s.Cwd)
	if !ok || c.hosts.At(s.Place).Directories == nil || r.state == treeMaking {
		return treeRow{}, s, &RefusedError{Code: refusedWorktreeNone}
	}
	return r, s, nil
}

// take waits a while for who is at it: what a start settles is settled soon.
func (w *worktrees) take(ctx context.Context, id string) bool {
	enough := time.NewTimer(untilFree)
	defer enough.Stop()
	for {
		w.mu.Lock()
		over := w.busy[id]
		if over == nil {
			w.busy[id] = make(chan struct{})
			w.mu.Unlock()
			return true
		}
		w.mu.Unlock()
		select {
		case <-over:
		case <-enough.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (w *worktrees) giveBack(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.busy[id])
	delete(w.busy, id)
}

// PreviewRemoval tells what the removal of a session's work tree would keep, and what it would not. It changes nothing.
func (c *Client) PreviewRemoval(ctx context.Context, id string) (WorktreeRemoval, error) {
	r, s, done, err := c.claim(ctx, id)
	if err != nil {
		return WorktreeRemoval{}, err
	}
	defer done()
	if r.state != treeReady {
		return WorktreeRemoval{}, &RefusedError{Code: refusedWorktreeRemoved}
	}
	return c.removal(ctx, r, s)
}

func (c *Client) removal(ctx context.Context, r treeRow, s Session) (WorktreeRemoval, error) {
	out := WorktreeRemoval{Path: r.path, BranchStays: true, Changed: []WorktreeFile{}, Ignored: []WorktreeGoing{}, Others: []string{}}
	if err := c.others(ctx, r.path, s.ID, &out); err != nil {
		return out, err
	}
	if out.Missing = host.Gone(r.path); out.Missing {
		return out, nil
	}
	state, err := c.worktrees.git.Inspect(ctx, r.path, r.base)
	if err != nil {
		return out, c.refusedTree(err, r.path, r)
	}
	out.Branch, out.Commits = state.Branch, state.Commits+state.Strays
	out.BranchStays = state.Branch != r.branch || out.Commits > 0 || len(state.Changes) > 0
	out.ChangedTotal = len(state.Changes)
	for _, f := range state.Changes[:min(len(state.Changes), mostTreeChanges)] {
		out.Changed = append(out.Changed, WorktreeFile(f))
	}
	for i, f := range state.Ignored {
		out.IgnoredTotal += f.Files
		out.IgnoredBytes += f.Bytes
		if i < mostTreeGoing {
			out.Ignored = append(out.Ignored, WorktreeGoing(f))
		}
	}
	return out, nil
}

// others finds who else works in a directory, and whose turn runs there.
func (c *Client) others(ctx context.Context, path, session string, out *WorktreeRemoval) error {
	ids, err := c.inTree(ctx, path)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v, err := c.conversation(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue // it is deleted
		}
		if err != nil {
			return err
		}
		other := v.look()
		if other.Turn != nil {
			out.Running = other.Title
		}
		if id != session {
			out.Others = append(out.Others, other.Title)
		}
	}
	return nil
}

// inTree gives the ids of all sessions that work in a directory, by whatever path and as a further one too; those that were just deleted as well.
func (c *Client) inTree(ctx context.Context, path string) ([]string, error) {
	list, err := query(ctx, c.cfg.Store.Read(), func(row scanner) (s Session, err error) {
		var further string
		if err = row.Scan(&s.ID, &s.Cwd, &further); err == nil {
			err = json.Unmarshal([]byte(further), &s.Directories)
		}
		return s, err
	}, `SELECT id, cwd, directories FROM session WHERE place = 'local' ORDER BY id`)
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

// RemoveWorktree removes the work tree of a session. What nobody has committed is kept in the repository first, and comes back with
// [Client.RestoreWorktree]; ignored files go. Agents and terminals that are there end; a turn that runs refuses it.
func (c *Client) RemoveWorktree(ctx context.Context, id string) (WorktreeRemoval, error) {
	r, s, done, err := c.claim(ctx, id)
	if err != nil {
		return WorktreeRemoval{}, err
	}
	defer done()
	if r.state != treeReady {
		return WorktreeRemoval{}, &RefusedError{Code: refusedWorktreeRemoved}
	}
	out, err := c.removal(ctx, r, s)
	switch {
	case err != nil:
		return out, err
	case out.Running != "":
		return out, &RefusedError{Code: refusedWorktreeBusy, Params: map[string]string{"title": out.Running}}
	}
	if out.Missing { // one that is locked is only unplugged: what would be written of it nobody could go on with
		if err := c.worktrees.git.Unlocked(ctx, r.main, r.path); err != nil {
			return out, c.refusedTree(err, r.path, r)
		}
	}
	ctx = context.WithoutCancel(ctx) // half of it helps nobody
	r.state, r.kept = treeRemoving, nil
	if err := c.putTree(ctx, r, nil); err != nil { // no agent starts there from now on
		return out, err
	}
	if !out.Missing { // a removal that is refused after that would have ended what runs there
		err = c.worktrees.git.Try(ctx, r.path)
	}
	if err == nil {
		err = c.clear(ctx, r.path)
	}
	if err == nil {
		err = c.takeAway(ctx, &r, &out)
	}
	if err != nil {
		return out, errors.Join(c.refusedTree(err, r.path, r), c.settle(ctx, r.id))
	}
	c.tellTree(ctx, r.path)
	return out, nil
}

// takeAway keeps what is in no commit, and removes the directory.
func (c *Client) takeAway(ctx context.Context, r *treeRow, out *WorktreeRemoval) error {
	git, strays := c.worktrees.git, 0
	if host.Gone(r.path) { // by somebody else
		if err := c.rescue(ctx, r); err != nil {
			return err
		}
		all, err := c.resume(ctx, r, r.kept.given())
		if err == nil && !all { // it was out of the way, and is back
			err = worktree.ErrBusy
		}
		if err != nil {
			return err
		}
	} else {
		err := git.Remove(ctx, r.main, r.path, keptRef(r.id), func(k worktree.Kept) error {
			r.kept, strays = keptOf(k), k.Strays
			return c.putTree(ctx, *r, nil)
		})
		if err = c.rests(r, err); err != nil {
			return err
		}
	}
	out.Kept, out.Left = r.keptWork(), r.kept.Left
	out.BranchStays = true
	if r.kept.Commit == "" && r.kept.Head == r.base && strays == 0 {
		dropped, err := git.DropUnused(ctx, r.main, r.branch, r.base)
		if err != nil {
			c.cfg.Logger.Warn("a branch without a commit stays", "branch", r.branch, "error", err)
		}
		out.BranchStays = !dropped
	}
	r.state = treeRemoved
	return c.putTree(ctx, *r, nil)
}

// resume goes on with a removal that was cut off.
func (c *Client) resume(ctx context.Context, r *treeRow, kept worktree.Kept) (over bool, err error) {
	over, err = c.worktrees.git.Resume(ctx, r.main, r.path, kept)
	return over, c.rests(r, err)
}

// rests takes a removal for one that has succeeded where all that had to be is kept, and something else cannot be deleted: as an error, it
// would be tried again at every start and whenever somebody wants something of the work tree, and end the same way. Where it lies is told.
func (c *Client) rests(r *treeRow, err error) error {
	left, is := errors.AsType[*worktree.LeftError](err)
	if !is {
		return err
	}
	c.cfg.Logger.Warn("a work tree is removed, but not all of it can be deleted", "rests", left.Path, "error", left.Err)
	if r.kept != nil {
		kept := *r.kept // somebody may be reading the one that is known
		kept.Left = left.Path
		r.kept = &kept
	}
	return nil
}

// clear ends all that runs in a directory, and waits for it. A turn that has begun meanwhile refuses it.
func (c *Client) clear(ctx context.Context, path string) error {
	ids, err := c.inTree(ctx, path)
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
		if err != nil && !errors.Is(err, ErrNotFound) { // one that is being erased
			return err
		}
	}
	return c.awaitEnds(append(ends, c.shells.endIn(path)...))
}

// vacate ends the agent, whose process has ended with all that it started when the channel is closed; nil where there was none.
func (v *conversation) vacate() (end <-chan struct{}, err error) {
	if v.state.turn != "" {
		return nil, &RefusedError{Code: refusedWorktreeBusy, Params: map[string]string{"title": v.row.Title}}
	}
	if at := v.row.UpdatedAt; v.state.base != Closed {
		v.do(doExited{transcript.ProblemQuit})
		v.row.UpdatedAt = at // nothing has happened in it
		v.saveRow()
	}
	return v.gone, nil
}

func (c *Client) awaitEnds(ends []<-chan struct{}) error {
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

// endIn ends the terminals that were started in a directory, those that are only about to be too; each channel is closed when nothing of one
// is left.
func (s *shells) endIn(path string) (ends []<-chan struct{}) {
	at := host.Resolve(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.all {
		if host.Within(at, host.Resolve(sh.record.Directory)) && sh.record.Running {
			sh.end()
			ends = append(ends, sh.ended)
		}
	}
	return ends
}

// tellTree shows the sessions of a work tree as they are now.
func (c *Client) tellTree(ctx context.Context, path string) {
	ids, err := c.inTree(ctx, path)
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
		c.cfg.Logger.Warn("what became of a work tree is not told to all", "path", path, "error", err)
	}
}

// RestoreWorktree makes the work tree of a session again, as it was when it was removed.
func (c *Client) RestoreWorktree(ctx context.Context, id string) (Session, error) {
	r, _, done, err := c.claim(ctx, id)
	if err != nil {
		return Session{}, err
	}
	defer done()
	if r.state == treeReady && !host.Gone(r.path) {
		return Session{}, &RefusedError{Code: refusedWorktreeThere, Params: map[string]string{"path": r.path}}
	}
	ctx = context.WithoutCancel(ctx)
	// Before git is told to forget what somebody else has removed. What we have removed is known. One that is locked is only unplugged, and
	// would count as removed when it is plugged in again.
	err = c.worktrees.git.Unlocked(ctx, r.main, r.path)
	var found *keptTree
	if err == nil {
		found, err = c.rescued(ctx, r)
	}
	if err != nil {
		return Session{}, c.refusedTree(err, r.path, r)
	}
	if r.kept == nil || r.state == treeReady {
		r.kept = found
	}
	r.state = treeRestoring
	if err := c.putTree(ctx, r, nil); err != nil {
		return Session{}, err
	}
	if err := c.worktrees.git.Restore(ctx, r.main, r.path, r.kept.given()); err != nil {
		_ = c.rests(&r, err)
		back := r
		back.state = treeRemoved // what Restore could not make it has removed
		return Session{}, errors.Join(c.refusedTree(err, r.path, r), c.putTree(ctx, back, nil))
	}
	r.state, r.kept = treeReady, nil
	if err := c.putTree(ctx, r, nil); err != nil {
		return Session{}, err
	}
	c.tellTree(ctx, r.path)
	return c.Get(ctx, id)
}

// rescued keeps what git alone still has of a work tree whose directory is not there.
func (c *Client) rescued(ctx context.Context, r treeRow) (*keptTree, error) {
	k, err := c.worktrees.git.Rescue(ctx, r.main, r.path, keptRef(r.id), worktree.Kept{Branch: r.branch, Head: r.base})
	return keptOf(k), err
}

// rescue writes it down as well, for who goes on with a removal that is cut off.
func (c *Client) rescue(ctx context.Context, r *treeRow) error {
	kept, err := c.rescued(ctx, *r)
	if err != nil {
		return err
	}
	r.kept = kept
	return c.putTree(ctx, *r, nil)
}

func keptOf(k worktree.Kept) *keptTree {
	return &keptTree{Commit: k.Commit, Files: k.Files, Branch: k.Branch, Head: k.Head, At: Time{Time: time.Now()}}
}

func (k *keptTree) given() worktree.Kept {
	return worktree.Kept{Commit: k.Commit, Files: k.Files, Branch: k.Branch, Head: k.Head}
}
