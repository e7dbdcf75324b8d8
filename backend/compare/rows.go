package compare

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"deskhand/backend/attachments"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// row is a stored comparison. The zero values of what the sessions tell (Title, the names of members) are set by show.
type row struct {
	Comparison

	Message     string                         `json:"message"`
	Attachments []attachments.PromptAttachment `json:"attachments,omitempty"`
	Labels      []string                       `json:"labels,omitempty"`
}

func (r *row) clone() row {
	c := *r
	c.Members = slices.Clone(r.Members)
	return c
}

// member returns the member with a session; nil = there is none.
func (r *row) member(session string) *Member {
	i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Session == session })
	if i < 0 {
		return nil
	}
	return &r.Members[i]
}

// load reads all comparisons. A damaged record is left out: its sessions are there all the same.
func (l *Library) load(ctx context.Context) error {
	list, err := record.Readable[row](ctx, l.deps.Store.Read(), `SELECT record FROM comparison ORDER BY id`)
	for i := range list {
		l.all[list[i].ID] = &list[i]
	}
	return err
}

// save stores a comparison as r says, and publishes it.
func (l *Library) save(ctx context.Context, r *row) error {
	if err := l.deps.Sessions.ReadOnly(); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = l.deps.Store.WriteSync(context.WithoutCancel(ctx), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO comparison (id, created_at, record) VALUES (?, ?, ?)`, r.ID, r.CreatedAt.UnixMilli(), string(data))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	kept := r.clone()
	l.mu.Lock()
	l.all[r.ID] = &kept
	l.mu.Unlock()
	l.publish(ctx, r.ID)
	return nil
}

// drop deletes a comparison. Its sessions stay.
func (l *Library) drop(ctx context.Context, id string) error {
	err := l.deps.Store.Write(context.WithoutCancel(ctx), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM comparison WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	l.mu.Lock()
	delete(l.all, id)
	l.mu.Unlock()
	l.deps.Sessions.Publish(eventRemoved, ComparisonRemoved{ID: id})
	return nil
}

// get returns a comparison as stored.
func (l *Library) get(id string) (row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.all[id]
	if r == nil {
		return row{}, fmt.Errorf("comparison %s: %w", id, refusal.ErrNotFound)
	}
	return r.clone(), nil
}

// claim makes the caller the only one that changes a comparison, until release is called.
func (l *Library) claim(id string) (r row, release func(), err error) {
	l.busyLock.Lock()
	defer l.busyLock.Unlock()
	if l.busy[id] {
		return row{}, nil, &refusal.Error{Code: refusedBusy}
	}
	if r, err = l.get(id); err != nil {
		return row{}, nil, err
	}
	l.busy[id] = true
	return r, func() {
		l.busyLock.Lock()
		defer l.busyLock.Unlock()
		delete(l.busy, id)
	}, nil
}
