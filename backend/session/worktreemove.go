package session

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"deskhand/backend/host"
	"deskhand/backend/workspace"
)

// A directory that has moved may be the repository of work trees, or have some in it, or be a folder of either: they follow it. All of a row
// is written at once, so nobody may be at a work tree meanwhile whose row is still what it was: a removal would put it back where it was.

// shift is that a directory has moved, and what lies in it. Where the one above it is gone as well and both are called the same, the one above
// has moved, and so on.
type shift struct{ from, to, aboveFrom, aboveTo string }

func shiftOf(from, to string) shift {
	s := shift{from, to, from, to}
	for filepath.Base(s.aboveFrom) == filepath.Base(s.aboveTo) && host.Gone(filepath.Dir(s.aboveFrom)) {
		s.aboveFrom, s.aboveTo = filepath.Dir(s.aboveFrom), filepath.Dir(s.aboveTo)
	}
	return s
}

// of is where a repository or a work tree is then. One that does not lie in what has moved is taken to have moved along only where it is gone,
// and one is where it would be: somebody may have moved a folder out of it, and unplugged the rest.
func (s shift) of(path string) string {
	if now := workspace.Rebase(path, s.from, s.to); now != path {
		return now
	}
	if now := workspace.Rebase(path, s.aboveFrom, s.aboveTo); now != path && host.Gone(path) && isOfGit(now) {
		return now
	}
	return path
}

// isOfGit tells whether there is a work tree, or a repository that has none, as far as a look can tell.
func isOfGit(path string) bool {
	return slices.ContainsFunc([]string{".git", "HEAD"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(path, name))
		return err == nil
	})
}

// moved are the work trees that a shift concerns, as they are after it.
func (w *worktrees) moved(s shift) (list []treeRow) {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.all))
	w.mu.Unlock()
	for _, r := range all {
		now := r
		now.main, now.repository, now.path = s.of(r.main), s.of(r.repository), s.of(r.path)
		if now != r {
			list = append(list, now)
		}
	}
	slices.SortFunc(list, func(a, b treeRow) int { return cmp.Or(len(a.path)-len(b.path), cmp.Compare(a.id, b.id)) })
	return list
}

// claimTrees takes the work trees that move, for as long as it lasts. One that is begun later is begun where its repository is by then.
func (m *move) claimTrees(ctx context.Context) error {
	w, s := &m.c.worktrees, shiftOf(m.From.Path, m.To.Path)
	for _, r := range w.moved(s) {
		if !w.take(ctx, r.id) {
			return &RefusedError{Code: refusedWorktreeWorking}
		}
		m.taken = append(m.taken, r.id)
	}
	m.trees = slices.DeleteFunc(w.moved(s), func(r treeRow) bool { return !slices.Contains(m.taken, r.id) }) // as who was at them has left them
	return nil
}

func (m *move) giveBack() {
	for _, id := range m.taken {
		m.c.worktrees.giveBack(id)
	}
}

// repairTrees has the halves of each work tree find each other again. It is written where they are: it is done whether its caller is there
// still or not. After a kill it is done when they are settled.
func (m *move) repairTrees(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, r := range m.trees {
		if host.Gone(r.path) {
			continue
		}
		if err := m.c.worktrees.git.Repair(ctx, r.main, r.path); err != nil {
			m.c.cfg.Logger.Warn("a work tree cannot follow a directory that has moved", "path", r.path, "error", err)
		}
	}
}
