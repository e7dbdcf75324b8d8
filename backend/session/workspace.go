package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/remotes"
	"deskhand/backend/rulebook"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// A workspace is a directory that sessions work in. It is found by its path; device, inode and time of birth are kept beside it, and
// only all three together say that another path is the same directory (an inode alone does not: file systems use it again at once).
// A directory that has moved is recognized when it is opened at its new path; else it is offered, and a person says so.

// KnownWorkspace is a workspace with what is known of it now.
type KnownWorkspace struct {
	ID       string `json:"id"`
	Place    string `json:"place"`
	Path     string `json:"path"`
	Missing  bool   `json:"missing" doc:"The directory is not there now"`
	MovedTo  string `json:"movedTo,omitempty" doc:"Of a missing one: where that very directory is now, if it was found. Nothing follows it until somebody relinks it"`
	Sessions int    `json:"sessions" doc:"How many work in it, with those that were put away"`

	birth birth
}

// birth is what a directory keeps when it is moved within its file system.
type birth struct{ device, inode, born int64 }

// known tells whether the file system says enough to recognize it.
func (b birth) known() bool { return b.inode != 0 && b.born != 0 }

func birthOf(path string, info fs.FileInfo) birth {
	device, inode, born := identity(path, info)
	return birth{device, inode, born}
}

// lookAt checks a path that is to be a workspace.
func lookAt(path string) (string, birth, error) {
	if !filepath.IsAbs(path) {
		return "", birth{}, bad("directory.relative", "path", path)
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", birth{}, bad(transcript.ProblemNoDirectory, "path", path)
	case err != nil:
		return "", birth{}, bad("directory.unreadable", "path", path, "detail", err.Error())
	case !info.IsDir():
		return "", birth{}, bad("directory.not_one", "path", path)
	}
	return path, birthOf(path, info), nil
}

// gone tells that there is no directory at a path. One that cannot be read is there.

// workspace finds or makes the record of a directory that is opened. One that has moved here brings its sessions.
func (c *Client) workspace(ctx context.Context, path string) (workspace.Workspace, error) {
	path, b, err := lookAt(path)
	if err != nil {
		return workspace.Workspace{}, err
	}
	if err := c.makeRoom(ctx, path); err != nil {
		return workspace.Workspace{}, err
	}
	if w, ok := c.recognize(ctx, path, b); ok {
		return workspace.Workspace{ID: w.ID, Path: w.Path}, nil
	}
	w := workspace.Workspace{ID: uuid.Must(uuid.NewV7()).String(), Path: path}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `UPDATE workspace SET device = ?, inode = ?, born = ? WHERE place = 'local' AND path = ? RETURNING id`,
			b.device, b.inode, b.born, path).Scan(&w.ID)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = tx.ExecContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, ?, ?, ?, ?)`,
				w.ID, path, b.device, b.inode, b.born, millis(time.Now()))
		}
		return err
	})
	if err != nil {
		return workspace.Workspace{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return w, nil
}

const workspaceColumns = `w.id, w.place, w.path, w.device, w.inode, w.born,
	(SELECT count(*) FROM session s WHERE s.workspace = w.id AND s.deleted_at = 0)`

func scanWorkspace(s scanner) (w KnownWorkspace, err error) {
	err = s.Scan(&w.ID, &w.Place, &w.Path, &w.birth.device, &w.birth.inode, &w.birth.born, &w.Sessions)
	return w, err
}

// makeRoom has the workspace at path follow its directory, when that was renamed and another one, a fresh clone or a copy, stands there
// now or is about to: else that one would take its conversations over, and nothing would know the renamed one any more. What stands in the
// way of that refuses the new one, since a path is one workspace. A directory that is found nowhere leaves what it had to the path, and so
// does a link that leads elsewhere now, whose path is what people mean. Where the renamed one has taken the path of yet another, that is
// first; on the way here are those that wait for it.
func (c *Client) makeRoom(ctx context.Context, path string, onTheWay ...string) error {
	w, err := c.localWorkspace(ctx, path)
	if err != nil || !w.birth.known() || !w.birth.left(path) {
		return err
	}
	to := movedTo(path, w.birth)
	if to == "" {
		return nil
	}
	at, err := c.localWorkspace(ctx, to)
	if err == nil && at.birth.known() && at.birth != w.birth && !slices.Contains(onTheWay, to) {
		if err = c.makeRoom(ctx, to, append(onTheWay, path)...); err == nil {
			at, err = c.localWorkspace(ctx, to)
		}
	}
	if err != nil || at.birth.known() && at.birth != w.birth { // two have changed places: to put them together would mix what they had
		return err
	}
	_, err = c.relink(ctx, w.ID, to, w.birth, w.birth)
	return err
}

// left tells whether the directory is at path no more: another one is, or none, where a work tree is about to be made. What is wrong with
// the path else is told by whoever works there.
func (b birth) left(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return errors.Is(err, fs.ErrNotExist)
	}
	now := birthOf(path, info)
	return now.known() && now != b
}

// makeRooms makes room at paths and at every directory above them.
func (c *Client) makeRooms(ctx context.Context, paths ...string) error {
	seen := map[string]bool{}
	for _, path := range paths {
		for ; !seen[path]; path = filepath.Dir(path) {
			seen[path] = true
			if err := c.makeRoom(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// localWorkspace is the workspace at a path of this machine; the zero one where there is none.
func (c *Client) localWorkspace(ctx context.Context, path string) (KnownWorkspace, error) {
	list, err := query(ctx, c.cfg.Store.Read(), scanWorkspace, `SELECT `+workspaceColumns+` FROM workspace w WHERE w.place = 'local' AND w.path = ?`, path)
	if err != nil {
		return KnownWorkspace{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return append(list, KnownWorkspace{})[0], nil
}

// recognize relinks a workspace whose directory has moved to path. What stands in the way of that (a turn that runs there) makes it a
// workspace of its own, until a person relinks it.
func (c *Client) recognize(ctx context.Context, path string, b birth) (KnownWorkspace, bool) {
	if !b.known() {
		return KnownWorkspace{}, false
	}
	list, err := query(ctx, c.cfg.Store.Read(), scanWorkspace, `SELECT `+workspaceColumns+` FROM workspace w
		WHERE w.place = 'local' AND w.device = ? AND w.inode = ? AND w.born = ? AND w.path <> ?`, b.device, b.inode, b.born, path)
	if err != nil {
		c.cfg.Logger.Error("the known directories cannot be read", "error", err)
		return KnownWorkspace{}, false
	}
	var now KnownWorkspace
	moved := false
	for _, w := range list {
		if w.Sessions == 0 || !host.Gone(w.Path) {
			continue
		}
		to, err := c.relink(ctx, w.ID, path, b, b)
		if err != nil {
			c.cfg.Logger.Warn("a directory has moved, and its sessions cannot follow", "from", w.Path, "to", path, "error", err)
			continue
		}
		if to.Path == path { // else somebody else was first
			now, moved = to, true
		}
	}
	return now, moved
}

// Workspaces gives every directory that has sessions, the most recently used first.
func (c *Client) Workspaces(ctx context.Context) ([]KnownWorkspace, error) {
	list, err := query(ctx, c.cfg.Store.Read(), scanWorkspace, `SELECT `+workspaceColumns+` FROM workspace w
		JOIN session s ON s.workspace = w.id AND s.deleted_at = 0 GROUP BY w.id ORDER BY max(s.updated_at) DESC, w.id`)
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		c.hosts.At(w.Place).Directories.Begin(w.Path)
	}
	for i := range list {
		c.find(&list[i])
	}
	return list, nil
}

// find tells whether the directory is there, and where it is when it is not.
func (c *Client) find(w *KnownWorkspace) {
	if !c.hosts.At(w.Place).Directories.Missing(w.Path) {
		return
	}
	w.Missing = true
	if w.birth.known() {
		path, b := w.Path, w.birth
		w.MovedTo = c.moves.At(path, func() string { return movedTo(path, b) })
	}
}

// mostBeside is how many directories are looked at for one that is lost.
const mostBeside = 5000

// movedTo looks for a lost directory where it most often is: renamed in its place, or with a directory above it that was. "" = it is
// not there.
func movedTo(path string, b birth) string {
	rest := ""
	for above := filepath.Dir(path); ; above = filepath.Dir(above) {
		if host.Gone(above) && above != filepath.Dir(above) {
			rest = filepath.Join(filepath.Base(above), rest)
			continue
		}
		_, below, _ := strings.Cut(filepath.Join(rest, filepath.Base(path)), string(filepath.Separator))
		return beside(above, below, b)
	}
}

// beside looks at below in each directory of one.
func beside(above, below string, b birth) string {
	dir, err := os.Open(above)
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(mostBeside)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		candidate := filepath.Join(above, e.Name(), below)
		if info, err := os.Lstat(candidate); err == nil && info.IsDir() && birthOf(candidate, info) == b {
			return candidate
		}
	}
	return ""
}

// Relink tells where the directory of a workspace is now. Its sessions follow, and idle agents of theirs end: they work in a place that
// is not there any more. Where the new path is a workspace already, the sessions become its own.
func (c *Client) Relink(ctx context.Context, id, path string) (KnownWorkspace, error) {
	w, err := c.knownWorkspace(ctx, id)
	switch {
	case err != nil:
		return KnownWorkspace{}, err
	case c.hosts.At(w.Place).Directories == nil:
		return KnownWorkspace{}, bad("workspace.remote", "path", w.Path)
	}
	path, b, err := lookAt(path)
	if err != nil {
		return KnownWorkspace{}, err
	}
	return c.relink(ctx, id, path, b, birth{})
}

func (c *Client) knownWorkspace(ctx context.Context, id string) (KnownWorkspace, error) {
	list, err := query(ctx, c.cfg.Store.Read(), scanWorkspace, `SELECT `+workspaceColumns+` FROM workspace w WHERE w.id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("workspace %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return KnownWorkspace{}, err
	}
	c.find(&list[0])
	return list[0], nil
}

// relink moves a workspace to path, or its sessions into the one that is there. Every session of it is held between two of its steps
// meanwhile, and nobody is at its work trees, so that all of them move in one transaction, and none is written with what it was before.
// Whoever has recognized it gives the birth that it had then, and moves nothing where somebody else was first: it may be that of what stands
// there now, with conversations of that one. A person gives none.
func (c *Client) relink(ctx context.Context, id, path string, b, had birth) (KnownWorkspace, error) {
	c.relinking.Lock()
	defer c.relinking.Unlock()
	w, err := c.knownWorkspace(ctx, id)
	if err != nil {
		return KnownWorkspace{}, err
	}
	if w.Path == path || had.known() && w.birth != had {
		return w, nil
	}
	m := &move{c: c, from: w, to: workspace.Workspace{ID: w.ID, Path: path}, birth: b, at: Time{Time: time.Now()}, over: make(chan struct{})}
	defer m.giveBack()
	if err := m.claimTrees(ctx); err != nil {
		return KnownWorkspace{}, err
	}
	defer m.wait()
	if err := m.holdAll(ctx); err != nil {
		return KnownWorkspace{}, err
	}
	if err := c.cfg.Store.WriteSync(ctx, func(tx *sql.Tx) error { return m.save(ctx, tx) }); err != nil {
		return KnownWorkspace{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.worktrees.put(m.trees...)
	m.done = true
	m.wait() // until all of them have told it
	m.repairTrees(ctx)
	return c.knownWorkspace(ctx, m.to.ID)
}

// move is a relink on its way.
type move struct {
	c     *Client
	from  KnownWorkspace
	to    workspace.Workspace
	birth birth
	at    Time
	trees []treeRow // as they are then
	taken []string  // their ids, of those that nobody else is at
	held  []*conversation
	ended sync.WaitGroup // their steps
	over  chan struct{}  // closed when they may go on
	done  bool           // and it was written; only read after over is closed
}

// wait lets the conversations go on, and waits until they have.
func (m *move) wait() {
	select {
	case <-m.over:
	default:
		close(m.over)
	}
	m.ended.Wait()
}

func (m *move) holdAll(ctx context.Context) error {
	ids, err := query(ctx, m.c.cfg.Store.Read(), scanText, `SELECT id FROM session WHERE workspace = ? ORDER BY id`, m.from.ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v, err := m.c.any(ctx, id)
		if err == nil {
			err = m.hold(ctx, v)
		}
		if err != nil && !errors.Is(err, ErrNotFound) { // one that is being erased
			return err
		}
	}
	return nil
}

// hold waits until the conversation is between two steps, and keeps it there.
func (m *move) hold(ctx context.Context, v *conversation) error {
	taken := make(chan error, 1)
	m.ended.Add(1)
	begun := m.c.background(func() {
		defer m.ended.Done()
		err := v.reach(ctx, func() error {
			if v.state.turn != "" {
				return &RefusedError{Code: "workspace.busy", Params: map[string]string{"path": m.from.Path, "title": v.row.Title}}
			}
			taken <- nil
			<-m.over
			if m.done {
				v.follow(m)
			}
			return nil
		})
		if err != nil {
			select {
			case taken <- err:
			default: // it was held: what its step could not tell, it will
			}
		}
	})
	if !begun {
		m.ended.Done()
		return ErrClosed
	}
	err := <-taken
	if err == nil {
		m.held = append(m.held, v)
	}
	return err
}

// save writes all of it.
func (m *move) save(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, `SELECT id FROM workspace WHERE place = 'local' AND path = ?`, m.to.Path).Scan(&m.to.ID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if m.to.ID != m.from.ID { // it is empty from now on, and is no longer taken for the directory that has moved
		_, err = tx.ExecContext(ctx, `UPDATE workspace SET device = 0, inode = 0, born = 0 WHERE id = ?`, m.from.ID)
	} else {
		err = nil
	}
	_, moved := tx.ExecContext(ctx, `UPDATE workspace SET path = ?, device = ?, inode = ?, born = ? WHERE id = ?`,
		m.to.Path, m.birth.device, m.birth.inode, m.birth.born, m.to.ID)
	_, joined := tx.ExecContext(ctx, `UPDATE session SET workspace = ? WHERE workspace = ?`, m.to.ID, m.from.ID)
	ruled := rulebook.MoveWorkspace(ctx, tx, m.from.ID, m.to.ID)
	if err := errors.Join(err, moved, joined, ruled); err != nil {
		return err
	}
	for _, v := range m.held {
		f := m.frame(v)
		t := transcript.New(v.id, transcript.Facts{})
		t.Apply(f)
		told, _ := t.Take()
		cwd, directories := m.paths(v)
		_, err := tx.ExecContext(ctx, `UPDATE session SET cwd = ?, directories = ? WHERE id = ?`, cwd, string(mustJSON(directories)), v.id)
		if err := errors.Join(err, journal.Append(ctx, tx, v.id, []journal.Stored{journal.Short(f)}), saveEntries(ctx, tx, v.id, told)); err != nil {
			return err
		}
	}
	for _, r := range m.trees {
		if err := r.save(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// frame is how the journal of a session tells of the move: the next of its frames.
func (m *move) frame(v *conversation) journal.Frame {
	data := mustJSON(transcript.Note{Note: transcript.NoteMoved, From: m.from.Path, To: m.to.Path})
	return journal.Frame{N: v.frames + 1, Generation: v.row.Generation, At: time.UnixMilli(m.at.UnixMilli()), Dir: journal.Note, Data: v.c.secret.Message(data)}
}

// paths are the directories of a session after the move.
func (m *move) paths(v *conversation) (cwd string, directories []string) {
	for _, d := range v.row.Directories {
		directories = append(directories, rebase(d, m.from.Path, m.to.Path))
	}
	if directories == nil {
		directories = []string{}
	}
	return rebase(v.row.Cwd, m.from.Path, m.to.Path), directories
}

// rebase is a path below from, below to; any other as it is.
func rebase(path, from, to string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(to, rel)
}

// follow takes up what was written of the move, and ends an agent that works in what is there no more. Nothing has happened in the
// session, so its place in the list stays.
func (v *conversation) follow(m *move) {
	f, at := m.frame(v), v.row.UpdatedAt
	v.row.Cwd, v.row.Directories = m.paths(v)
	v.row.Workspace = m.to
	v.frames = f.N
	v.fold.Apply(f)
	if v.state.base != Closed {
		v.do(doExited{transcript.ProblemQuit})
	}
	v.row.UpdatedAt = at
	v.saveRow()
}

// refound shows the sessions of a directory anew: the directory is missing, or is found again.
func (c *Client) refound(path string) {
	if c.ReadOnly() != nil {
		return
	}
	c.background(func() {
		c.mu.Lock()
		var list []*conversation
		for _, v := range c.live {
			if s := v.look(); s.Cwd == path && c.hosts.At(s.Place).Directories != nil {
				list = append(list, v)
			}
		}
		c.mu.Unlock()
		for _, v := range list {
			v.post(v.saveRow)
		}
	})
}

// workspaceAt finds or makes the record of a directory elsewhere. The path alone identifies the directory.
func (c *Client) workspaceAt(ctx context.Context, place, directory string) (workspace.Workspace, error) {
	directory, err := remotes.CleanPath(directory)
	if err != nil {
		return workspace.Workspace{}, err
	}
	w := workspace.Workspace{ID: uuid.Must(uuid.NewV7()).String(), Path: directory}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, ?, ?, 0, 0, 0, ?)
			ON CONFLICT (place, path) DO UPDATE SET path = excluded.path RETURNING id`, w.ID, place, directory, millis(time.Now())).Scan(&w.ID)
	})
	if err != nil {
		return workspace.Workspace{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return w, nil
}

// whereabouts returns the place and the directories of a new session.
func (c *Client) whereabouts(ctx context.Context, n New) (place string, w workspace.Workspace, further []string, err error) {
	if c.hosts.At(n.Place).Directories == nil {
		_, err := c.remotes.Get(n.Place)
		if err == nil {
			w, err = c.workspaceAt(ctx, n.Place, n.Cwd)
		}
		return n.Place, w, slices.Compact(n.Directories), err
	}
	if err := c.startable(n.Place, n.Agent); err != nil {
		return "", w, nil, err
	}
	if w, err = c.workspace(ctx, n.Cwd); err == nil {
		further, err = directories(n.Directories)
	}
	return host.Local, w, further, err
}
