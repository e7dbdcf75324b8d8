// Package workspace knows the directories that sessions work in, by ids that outlive their paths.
//
// A Library finds a workspace by the directory's path. Beside the path, a workspace has the directory's device, inode and time of birth; only all
// three together identify a directory that was moved, since file systems use an inode again at once. A moved directory is recognized when
// the directory is opened at its new path, and the sessions follow. Otherwise the new path is offered to a person, who may Relink the workspace.
//
// The package hides the table workspace, and how directories are recognized.
package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
)

// Workspace is a directory with an identity that survives a move.
type Workspace struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Missing bool   `json:"missing,omitempty" doc:"The directory is not there now"`
}

// KnownWorkspace is a workspace with its present state.
type KnownWorkspace struct {
	ID       string `json:"id"`
	Place    string `json:"place"`
	Path     string `json:"path"`
	Missing  bool   `json:"missing" doc:"The directory is not there now"`
	MovedTo  string `json:"movedTo,omitempty" doc:"Of a missing one: where that very directory is now, if it was found. Nothing follows it until somebody relinks it"`
	Sessions int    `json:"sessions" doc:"How many work in it, with those that were put away"`

	birth birth
}

// Deps is the surroundings of a Library.
type Deps struct {
	Store  *store.DB
	Logger *slog.Logger
	Host   func(place string) host.Capabilities

	// Follow has the sessions of a workspace follow a Move. Follow calls Save of the Move in the transaction that moves the sessions, and fails
	// when a session cannot follow now.
	Follow func(context.Context, *Move) error
}

// Library is the workspaces of a data directory.
type Library struct {
	deps      Deps
	relinking sync.Mutex            // held during a relink
	moves     host.Presence[string] // the path that a missing directory has now; "" = unknown
}

// New returns the workspaces of a database.
func New(deps Deps) *Library {
	return &Library{deps: deps, moves: host.Presence[string]{Patience: host.PatientMany}}
}

// Open finds or makes the workspace of a directory of this machine. A directory that has moved to path brings its sessions along.
func (l *Library) Open(ctx context.Context, path string) (Workspace, error) {
	path, b, err := identified(path)
	if err != nil {
		return Workspace{}, err
	}
	if err := l.makeRoom(ctx, path); err != nil {
		return Workspace{}, err
	}
	if w, ok := l.recognize(ctx, path, b); ok {
		return Workspace{ID: w.ID, Path: w.Path}, nil
	}
	w := Workspace{ID: uuid.Must(uuid.NewV7()).String(), Path: path}
	err = l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `UPDATE workspace SET device = ?, inode = ?, born = ? WHERE place = 'local' AND path = ? RETURNING id`,
			b.device, b.inode, b.born, path).Scan(&w.ID)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = tx.ExecContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, ?, ?, ?, ?)`,
				w.ID, path, b.device, b.inode, b.born, time.Now().UnixMilli())
		}
		return err
	})
	return w, notStored(err)
}

// OpenAt finds or makes the workspace of a directory elsewhere, whose path alone identifies the directory. The caller has checked the path.
func (l *Library) OpenAt(ctx context.Context, place, directory string) (Workspace, error) {
	w := Workspace{ID: uuid.Must(uuid.NewV7()).String(), Path: directory}
	err := l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, ?, ?, 0, 0, 0, ?)
			ON CONFLICT (place, path) DO UPDATE SET path = excluded.path RETURNING id`, w.ID, place, directory, time.Now().UnixMilli()).Scan(&w.ID)
	})
	return w, notStored(err)
}

// Join is the middle of a query of rows that name a workspace, before the column that names the workspace: w is the workspace then, with its
// id, place and path.
const Join = ` JOIN workspace w ON w.id = `

// At returns the workspace at a path of a place. The error is refusal.ErrNotFound when there is none.
func At(ctx context.Context, db *store.DB, place, path string) (w Workspace, err error) {
	err = db.Read().QueryRowContext(ctx, `SELECT id, path FROM workspace WHERE path = ? AND place = ?`, path, place).Scan(&w.ID, &w.Path)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("workspace %s: %w", path, refusal.ErrNotFound)
	}
	return w, err
}

// List returns every directory that has sessions, the most recently used first.
func (l *Library) List(ctx context.Context) ([]KnownWorkspace, error) {
	list, err := l.query(ctx, `JOIN session s ON s.workspace = w.id AND s.deleted_at = 0 GROUP BY w.id ORDER BY max(s.updated_at) DESC, w.id`)
	if err != nil {
		return nil, err
	}
	for _, w := range list { // every look begins before the first wait
		l.deps.Host(w.Place).Directories.Begin(w.Path)
	}
	for i := range list {
		l.find(&list[i])
	}
	return list, nil
}

// longestLook is how long Examine waits for all disks together.
const longestLook = 5 * time.Second

// Examine is List for a verification: a look that is under way may be older than the call, and a disk may be slow, so Examine waits for the looks
// of before, and then for its own.
func (l *Library) Examine(ctx context.Context) ([]KnownWorkspace, error) {
	list, err := l.query(ctx, "")
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(longestLook)
	for range 2 {
		for _, w := range list {
			l.deps.Host(w.Place).Directories.Begin(w.Path)
		}
		for _, w := range list {
			if at := l.deps.Host(w.Place).Directories; at != nil {
				at.InTime(w.Path, time.Until(until))
			}
		}
	}
	return l.List(ctx)
}

func (l *Library) get(ctx context.Context, id string) (KnownWorkspace, error) {
	list, err := l.query(ctx, `WHERE w.id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("workspace %s: %w", id, refusal.ErrNotFound)
	}
	if err != nil {
		return KnownWorkspace{}, err
	}
	l.find(&list[0])
	return list[0], nil
}

// at returns the workspace at a path of this machine, or the zero value.
func (l *Library) at(ctx context.Context, path string) (KnownWorkspace, error) {
	list, err := l.query(ctx, `WHERE w.place = 'local' AND w.path = ?`, path)
	if err != nil {
		return KnownWorkspace{}, notStored(err)
	}
	return append(list, KnownWorkspace{})[0], nil
}

// query returns the workspaces that a clause selects.
func (l *Library) query(ctx context.Context, clause string, args ...any) ([]KnownWorkspace, error) {
	return record.Query(ctx, l.deps.Store.Read(), func(s record.Scanner) (w KnownWorkspace, err error) {
		err = s.Scan(&w.ID, &w.Place, &w.Path, &w.birth.device, &w.birth.inode, &w.birth.born, &w.Sessions)
		return w, err
	}, `SELECT w.id, w.place, w.path, w.device, w.inode, w.born, (SELECT count(*) FROM session s WHERE s.workspace = w.id AND s.deleted_at = 0)
		FROM workspace w `+clause, args...)
}

// find sets whether the directory is missing, and the path that a missing directory has now.
func (l *Library) find(w *KnownWorkspace) {
	if !l.deps.Host(w.Place).Directories.Missing(w.Path) {
		return
	}
	w.Missing = true
	if w.birth.known() {
		path, b := w.Path, w.birth
		w.MovedTo = l.moves.At(path, func() string { return movedTo(path, b) })
	}
}

func notStored(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return err
}
