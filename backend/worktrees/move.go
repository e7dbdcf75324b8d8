package worktrees

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"deskhand/backend/host"
	"deskhand/backend/workspace"
)

// shift is the move of a directory, with everything in it. Where the parent directory is gone as well and both have the same name, the parent
// has moved, and so on upwards.
type shift struct{ from, to, aboveFrom, aboveTo string }

func shiftOf(from, to string) shift {
	s := shift{from, to, from, to}
	for filepath.Base(s.aboveFrom) == filepath.Base(s.aboveTo) && host.Gone(filepath.Dir(s.aboveFrom)) {
		s.aboveFrom, s.aboveTo = filepath.Dir(s.aboveFrom), filepath.Dir(s.aboveTo)
	}
	return s
}

// of returns the path of a repository or worktree after the move. A path outside of the moved directory counts as moved only when the path is
// gone and a repository is at its new place: a person may have moved a folder out of the repository, and unplugged the disk of the rest.
func (s shift) of(path string) string {
	if now := workspace.Rebase(path, s.from, s.to); now != path {
		return now
	}
	if now := workspace.Rebase(path, s.aboveFrom, s.aboveTo); now != path && host.Gone(path) && isOfGit(now) {
		return now
	}
	return path
}

// isOfGit reports whether a directory looks like a worktree, or like a repository without one.
func isOfGit(path string) bool {
	return slices.ContainsFunc([]string{".git", "HEAD"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(path, name))
		return err == nil
	})
}

// moved returns the rows that a move changes, with their new paths.
func (l *Library) moved(s shift) (list []row) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	for _, r := range all {
		now := r
		now.main, now.repository, now.path = s.of(r.main), s.of(r.repository), s.of(r.path)
		if now != r {
			list = append(list, now)
		}
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Or(len(a.path)-len(b.path), cmp.Compare(a.id, b.id)) })
	return list
}

// Move is the worktrees that follow a directory which has moved: the directory may be their repository, contain them, or be a folder of either.
// Its worktrees are claimed, because a removal that runs would store the old paths again.
type Move struct {
	l     *Library
	rows  []row    // with the new paths
	taken []string // the ids of the claimed worktrees
}

// BeginMove claims the worktrees that follow a directory, until [Move.End]. When another claim is not over in time, BeginMove refuses. A
// worktree that is made later is made where its repository is by then.
func (l *Library) BeginMove(ctx context.Context, from, to string) (*Move, error) {
	m, s := &Move{l: l}, shiftOf(from, to)
	for _, r := range l.moved(s) {
		if !l.take(ctx, r.id) {
			m.End()
			return nil, ErrWorking()
		}
		m.taken = append(m.taken, r.id)
	}
	m.rows = slices.DeleteFunc(l.moved(s), func(r row) bool { return !slices.Contains(m.taken, r.id) }) // as the claims before have left the rows
	return m, nil
}

// Save writes the rows in the transaction of the move.
func (m *Move) Save(ctx context.Context, tx *sql.Tx) error {
	for _, r := range m.rows {
		if err := r.save(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// Saved makes the new paths count, after the transaction.
func (m *Move) Saved() { m.l.put(m.rows...) }

// Repair repairs the paths between each worktree and its repository, even when the caller has gone. After a kill, settling repairs the paths.
func (m *Move) Repair(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, r := range m.rows {
		if host.Gone(r.path) {
			continue
		}
		if err := m.l.git.Repair(ctx, r.main, r.path); err != nil {
			m.l.deps.Logger.Warn("a worktree cannot follow a directory that has moved", "path", r.path, "error", err)
		}
	}
}

// End ends the claims.
func (m *Move) End() {
	for _, id := range m.taken {
		m.l.release(id)
	}
}
