package setup

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/worktrees"
)

// cutOff is the problem of what was cut off.
const cutOff = "Deskhand ended while it ran"

// stored is the record of a set-up in its row.
type stored struct {
	Setup
	Output kept     `json:"output"`
	Tests  *TestRun `json:"tests,omitempty"`
}

// Load reads the stored set-ups. One that ran when the program ended was cut off.
func (l *Library) Load(ctx context.Context) error {
	_, err := record.Query(ctx, l.deps.Store.Read(), func(s record.Scanner) (_ struct{}, err error) {
		var id, state, text string
		var port, ports int
		if err := s.Scan(&id, &port, &ports, &state, &text); err != nil {
			return struct{}{}, err
		}
		var r stored
		if text != "" && json.Unmarshal([]byte(text), &r) != nil {
			l.deps.Logger.Error("the record of a set-up is damaged: what it has written is lost", "worktree", id)
		}
		r.State, r.Port, r.Ports = state, port, ports
		if state == Running {
			r.State, r.Problem = Stopped, cutOff
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		w := l.ofLocked(id)
		w.setup, w.output = r.Setup, r.Output.restored()
		if t := r.Tests; t != nil {
			if t.State == Running {
				t.State, t.Problem = Stopped, cutOff
			}
			w.tests = &testRun{run: *t, output: kept{t.Head, t.Tail, t.Cut}.restored()}
		}
		return struct{}{}, nil
	}, `SELECT worktree, port, ports, state, record FROM setup`)
	return err
}

// save stores the set-up of a worktree as it is now, even when the caller has gone. That of a worktree that was forgotten meanwhile is not stored.
func (l *Library) save(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	err := l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		l.mu.Lock() // within the transaction, so that the order of the rows is the order of the changes
		w := l.all[id]
		if w == nil || w.setup.State == "" && w.tests == nil {
			l.mu.Unlock()
			return nil
		}
		r := stored{Setup: w.setup, Output: w.output.keep(l.sessions.Clean), Tests: w.tests.shown(l.sessions.Clean)}
		l.mu.Unlock()
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO setup (worktree, port, ports, state, record) VALUES (?, ?, ?, ?, ?)`,
			id, r.Port, r.Ports, r.State, string(record.JSON(r)))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return nil
}

// show publishes the sessions of a worktree.
func (l *Library) show(at worktrees.Place) {
	if l.life.Err() == nil {
		l.sessions.Show(l.life, at.Path)
	}
}

// logged saves, for a caller who can do nothing about a failure.
func (l *Library) logged(ctx context.Context, id string) {
	if err := l.save(ctx, id); err != nil && !errors.Is(err, context.Canceled) {
		l.deps.Logger.Error("the state of a set-up cannot be stored", "worktree", id, "error", err)
	}
}
