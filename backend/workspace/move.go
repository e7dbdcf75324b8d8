package workspace

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
)

// Move is a workspace that follows its directory. From is the workspace before the move; To is the workspace that the sessions work in
// afterwards, and another workspace than From where the new path has one already. To is complete once Save was called.
type Move struct {
	From KnownWorkspace
	To   Workspace

	birth birth
}

// Save stores a move in the caller's transaction. The caller moves the sessions in the same transaction.
func (m *Move) Save(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, `SELECT id FROM workspace WHERE place = 'local' AND path = ?`, m.To.Path).Scan(&m.To.ID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if m.To.ID != m.From.ID { // From is empty from now on, and no longer taken for the directory that has moved
		if _, err := tx.ExecContext(ctx, `UPDATE workspace SET device = 0, inode = 0, born = 0 WHERE id = ?`, m.From.ID); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE workspace SET path = ?, device = ?, inode = ?, born = ? WHERE id = ?`,
		m.To.Path, m.birth.device, m.birth.inode, m.birth.born, m.To.ID)
	return err
}

// Relink takes a person's word for where the directory of a workspace is now. The sessions follow, and their idle agents end, since the agents
// work in a directory that is gone. Where the new path is a workspace already, the sessions join that workspace.
func (l *Library) Relink(ctx context.Context, id, path string) (KnownWorkspace, error) {
	w, err := l.get(ctx, id)
	switch {
	case err != nil:
		return KnownWorkspace{}, err
	case l.deps.Host(w.Place).Directories == nil:
		return KnownWorkspace{}, refusal.Bad("workspace.remote", "path", w.Path)
	}
	path, b, err := identified(path)
	if err != nil {
		return KnownWorkspace{}, err
	}
	return l.relink(ctx, id, path, b, birth{})
}

// relink moves a workspace to path, or its sessions into the workspace at path. A caller that has recognized the directory gives the birth that
// the workspace had then, and moves nothing where another caller was first: the birth may be that of the directory at path by now, which has
// sessions of its own. A person gives no birth.
func (l *Library) relink(ctx context.Context, id, path string, b, had birth) (KnownWorkspace, error) {
	l.relinking.Lock()
	defer l.relinking.Unlock()
	w, err := l.get(ctx, id)
	if err != nil {
		return KnownWorkspace{}, err
	}
	if w.Path == path || had.known() && w.birth != had {
		return w, nil
	}
	m := &Move{From: w, To: Workspace{ID: w.ID, Path: path}, birth: b}
	if err := l.deps.Follow(ctx, m); err != nil {
		return KnownWorkspace{}, err
	}
	return l.get(ctx, m.To.ID)
}

// recognize relinks a workspace whose directory has moved to path. When the sessions cannot follow, since a turn runs there, the directory
// becomes another workspace, until a person relinks the first.
func (l *Library) recognize(ctx context.Context, path string, b birth) (now KnownWorkspace, moved bool) {
	if !b.known() {
		return now, false
	}
	list, err := l.query(ctx, `WHERE w.place = 'local' AND w.device = ? AND w.inode = ? AND w.born = ? AND w.path <> ?`, b.device, b.inode, b.born, path)
	if err != nil {
		l.deps.Logger.Error("the known directories cannot be read", "error", err)
		return now, false
	}
	for _, w := range list {
		if w.Sessions == 0 || !host.Gone(w.Path) {
			continue
		}
		to, err := l.relink(ctx, w.ID, path, b, b)
		if err != nil {
			l.deps.Logger.Warn("a directory has moved, and its sessions cannot follow", "from", w.Path, "to", path, "error", err)
			continue
		}
		if to.Path == path { // otherwise another caller was first
			now, moved = to, true
		}
	}
	return now, moved
}

// MakeRoom has the workspaces at some paths, and at all directories above the paths, follow directories that were renamed, before another
// directory is made at a path.
func (l *Library) MakeRoom(ctx context.Context, paths ...string) error {
	seen := map[string]bool{}
	for _, path := range paths {
		for ; !seen[path]; path = filepath.Dir(path) {
			seen[path] = true
			if err := l.makeRoom(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeRoom has the workspace at path follow its directory when the directory was renamed, and another directory, such as a fresh clone or a
// copy, is at path now or about to be. Otherwise the other directory would take over the sessions, and nothing would know the renamed
// directory any more. When the sessions cannot follow, makeRoom fails, since a path is one workspace.
//
// A directory that is not found leaves its sessions to the path, and so does a link that leads elsewhere now, since people mean the path of
// a link. Where the renamed directory has taken the path of another renamed directory, the other follows first; waiting has the paths that
// wait for makeRoom.
func (l *Library) makeRoom(ctx context.Context, path string, waiting ...string) error {
	w, err := l.at(ctx, path)
	if err != nil || !w.birth.known() || !w.birth.left(path) {
		return err
	}
	to := movedTo(path, w.birth)
	if to == "" {
		return nil
	}
	at, err := l.at(ctx, to)
	if err == nil && at.birth.known() && at.birth != w.birth && !slices.Contains(waiting, to) {
		if err = l.makeRoom(ctx, to, append(waiting, path)...); err == nil {
			at, err = l.at(ctx, to)
		}
	}
	if err != nil || at.birth.known() && at.birth != w.birth { // two directories have changed places: their sessions are not mixed
		return err
	}
	_, err = l.relink(ctx, w.ID, to, w.birth, w.birth)
	return err
}
