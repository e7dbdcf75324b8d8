package worktrees

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/worktree"
)

// The states of a worktree.
const (
	stateMaking    = "making"
	stateReady     = "ready"
	stateRemoving  = "removing"
	stateRemoved   = "removed"
	stateRestoring = "restoring"
	stateMissing   = "missing" // is shown, and never stored
)

// row is a row of the table worktree.
type row struct {
	id, main, repository, path, branch, base, baseBranch, state string

	kept *kept
}

// kept is the record from which a removed worktree is restored.
type kept struct {
	Commit string      `json:"commit,omitempty"` // "" = everything was committed
	Files  int         `json:"files,omitempty"`
	Branch string      `json:"branch,omitempty"` // the branch that was checked out
	Head   string      `json:"head"`
	At     record.Time `json:"at"`
	Left   string      `json:"left,omitempty"` // the folder with the files that could not be deleted
}

func keptOf(k worktree.Kept) *kept {
	return &kept{Commit: k.Commit, Files: k.Files, Branch: k.Branch, Head: k.Head, At: record.Time{Time: time.Now()}}
}

func (k *kept) given() worktree.Kept {
	return worktree.Kept{Commit: k.Commit, Files: k.Files, Branch: k.Branch, Head: k.Head}
}

func (r row) keptWork() *KeptWork {
	if r.kept == nil || r.kept.Commit == "" {
		return nil
	}
	return &KeptWork{Ref: keptRef(r.id), Commit: r.kept.Commit, Files: r.kept.Files, At: r.kept.At}
}

// Load reads the worktrees from the database. A worktree whose record is damaged is left out, and nothing is done with its directory.
func (l *Library) Load(ctx context.Context) error {
	var list []row
	_, err := record.Query(ctx, l.deps.Store.Read(), func(s record.Scanner) (_ struct{}, err error) {
		var r row
		var kept string
		if err = s.Scan(&r.id, &r.main, &r.repository, &r.path, &r.branch, &r.base, &r.baseBranch, &r.state, &kept); err != nil {
			return struct{}{}, err
		}
		if kept != "" {
			err = json.Unmarshal([]byte(kept), &r.kept)
		}
		if err != nil {
			l.deps.Logger.Error("the record of a worktree is damaged, and is left out: see deskhand verify", "session", r.id, "path", r.path, "error", err)
		} else {
			list = append(list, r)
		}
		return struct{}{}, nil
	}, `SELECT id, main, repository, path, branch, base, base_branch, state, kept FROM worktree`)
	l.put(list...)
	return err
}

// store writes a row and what with writes, in one transaction, even when the caller has gone. Only the holder of the claim may call store,
// because all columns are written.
func (l *Library) store(ctx context.Context, r row, with func(*sql.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	// The row must survive a loss of power, because git's files do.
	err := l.deps.Store.WriteSync(ctx, func(tx *sql.Tx) error {
		err := r.save(ctx, tx)
		if err == nil && r.state == stateRemoved && l.deps.Removed != nil {
			err = l.deps.Removed(ctx, tx, r.id)
		}
		if err == nil && with != nil {
			err = with(tx)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	l.put(r)
	return nil
}

func (r row) save(ctx context.Context, tx *sql.Tx) error {
	kept := ""
	if r.kept != nil {
		kept = string(record.JSON(r.kept))
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO worktree (id, main, repository, path, branch, base, base_branch, state, kept, made_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET main = excluded.main, repository = excluded.repository, path = excluded.path, state = excluded.state, kept = excluded.kept`,
		r.id, r.main, r.repository, r.path, r.branch, r.base, r.baseBranch, r.state, kept, time.Now().UnixMilli())
	return err
}

// put replaces rows in memory after they were stored.
func (l *Library) put(list ...row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range list {
		l.all[r.id] = r
	}
}

// drop deletes a row.
func (l *Library) drop(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	err := l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM worktree WHERE id = ?`, id)
		if err == nil && l.deps.Removed != nil {
			err = l.deps.Removed(ctx, tx, id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	l.forget(id)
	return nil
}

func (l *Library) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, id)
}
