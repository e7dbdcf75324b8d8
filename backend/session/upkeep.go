package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/transcript"
)

// Upkeep is what nobody waits for: transcripts of older rules are made anew, and blobs that no frame names any more are removed. One
// goroutine does it, one thing after the other; it works in small pieces, since conversations wait for the same database.
type upkeep struct {
	untidy chan struct{} // there may be something to do

	verifying verifying
	doing     doing

	mu         sync.Mutex // protects what is below
	busy       map[string]chan struct{}
	rebuilding *Progress
	told       Storage // what was told last
}

func newUpkeep() *upkeep {
	return &upkeep{untidy: make(chan struct{}, 1), busy: map[string]chan struct{}{}}
}

// tidy has the upkeep look for what is to be done, soon. It waits for nothing.
func (c *Client) tidy() {
	select {
	case c.upkeep.untidy <- struct{}{}:
	default:
	}
}

// keepUp does the upkeep until the client is closed.
func (c *Client) keepUp() {
	for {
		if err := c.tidyUp(c.ctx); err != nil && c.ctx.Err() == nil {
			c.cfg.Logger.Error("the data directory cannot be tidied up", "error", err)
		}
		select {
		case <-c.upkeep.untidy:
		case <-time.After(c.cfg.Unattached): // what was taken in then and is named by nothing is due
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *Client) tidyUp(ctx context.Context) error {
	removed, err := c.sweep(ctx)
	return errors.Join(err, c.undo.Prune(ctx), c.rebuildAll(ctx, removed > 0))
}

// sweep removes the blobs that no frame and no attachment names. What else keeps some must be asked here too.
func (c *Client) sweep(ctx context.Context) (removed int, err error) {
	if err := c.forgetAttachments(ctx); err != nil {
		return 0, err
	}
	removed, err = c.cfg.Store.Blobs.Sweep(ctx, func(sha string) (bool, error) { return c.named(ctx, sha) })
	if removed > 0 {
		c.cfg.Logger.Info("blobs that nothing names any more were removed", "files", removed)
	}
	return removed, err
}

// named tells whether a frame or an attachment names the blob.
func (c *Client) named(ctx context.Context, sha string) (is bool, err error) {
	if is, err = c.journal.Names(ctx, sha); err != nil || is {
		return is, err
	}
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attachment WHERE sha256 = ? AND sha256 <> '')`, sha).Scan(&is)
	return is, err
}

// rebuildAll makes the transcripts of older rules anew, the newest first, and tells how far it is.
func (c *Client) rebuildAll(ctx context.Context, tell bool) error {
	ids, err := query(ctx, c.cfg.Store.Read(), scanText,
		`SELECT id FROM session WHERE abs(projection) < ? AND kept = 0 AND deleted_at = 0 ORDER BY archived_at <> 0, updated_at DESC`, transcript.Projection)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if tell {
			c.tellStorage(ctx, nil)
		}
		return nil
	}
	c.cfg.Logger.Info("transcripts are made anew from their journals", "sessions", len(ids), "version", transcript.Projection)
	begun := time.Now()
	next := begun
	for i, id := range ids {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(tellAfter)
			c.tellStorage(ctx, &Progress{Done: i, Total: len(ids)})
		}
		c.setRebuilding(&Progress{Done: i, Total: len(ids)})
		if failed := c.bringUp(ctx, id); failed != nil {
			err = errors.Join(err, failed)
		}
		if ctx.Err() != nil {
			c.setRebuilding(nil)
			return ctx.Err()
		}
	}
	c.tellStorage(ctx, nil)
	c.cfg.Logger.Info("transcripts were made anew", "sessions", len(ids), "took", time.Since(begun).Round(time.Millisecond))
	return err
}

// tellAfter is how often the progress of something long is told at most.
const tellAfter = 300 * time.Millisecond

func (c *Client) setRebuilding(p *Progress) {
	c.upkeep.mu.Lock()
	c.upkeep.rebuilding = p
	c.upkeep.mu.Unlock()
}

func (u *upkeep) progress() *Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rebuilding
}

// tellStorage tells how far the rebuilding is. The sizes are looked up at its beginning and at its end.
func (c *Client) tellStorage(ctx context.Context, p *Progress) {
	c.setRebuilding(p)
	c.upkeep.mu.Lock()
	told := c.upkeep.told
	c.upkeep.mu.Unlock()
	if p == nil || p.Done == 0 || told.Sessions == 0 {
		now, err := c.Storage(ctx)
		if err != nil {
			return // nobody waits for it
		}
		told = now
	}
	told.Rebuilding, told.Work = p, c.upkeep.doing.show()
	c.upkeep.mu.Lock()
	c.upkeep.told = told
	c.upkeep.mu.Unlock()
	c.feed.publish(Event{Type: eventStorage, Data: mustJSON(told)})
}

const (
	eventStorage = "storage.upsert"
	eventVerify  = "verify.upsert"
)

// bringUp makes the transcript of a session anew if it was made by older rules; then it has to be before anybody sees it. One that
// cannot be made anew stays as it is, and that is told once.
func (c *Client) bringUp(ctx context.Context, id string) error {
	if c.cfg.Store.Newer() != nil {
		return nil // whose rules are newer knows better
	}
	if current, err := c.isCurrent(ctx, id); current || err != nil {
		return err
	}
	return c.alone(ctx, id, func() error {
		if current, err := c.isCurrent(ctx, id); current || err != nil { // whoever was here before us has done it
			return err
		}
		return c.rebuildOrTell(ctx, id)
	})
}

func (c *Client) isCurrent(ctx context.Context, id string) (is bool, err error) {
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT abs(projection) >= ? OR kept FROM session WHERE id = ?`, transcript.Projection, id).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return is, err
}

// alone runs f while nobody else rebuilds the same session.
func (c *Client) alone(ctx context.Context, id string, f func() error) error {
	u := c.upkeep
	for {
		u.mu.Lock()
		before := u.busy[id]
		if before == nil {
			break
		}
		u.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	u.busy[id] = done
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		delete(u.busy, id)
		u.mu.Unlock()
		close(done)
	}()
	return f()
}

// rebuildOrTell rebuilds a session; one whose journal is damaged keeps what it has, and is not tried again.
func (c *Client) rebuildOrTell(ctx context.Context, id string) error {
	err := c.rebuild(ctx, id, false)
	broken, damaged := errors.AsType[*journal.DamagedError](err)
	if !damaged {
		return wrapSession(id, err)
	}
	if erased, _ := Erased(ctx, c.cfg.Store, id); erased {
		return nil
	}
	c.cfg.Logger.Error("a transcript cannot be made anew, its journal is damaged", "session", id, "error", err)
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET projection = ? WHERE id = ?`, -transcript.Projection, id)
		return err
	})
	if err != nil {
		return wrapSession(id, err)
	}
	c.feed.publish(Event{Session: id, Type: eventNotice, Data: mustJSON(map[string]string{"code": "journal.damaged", "detail": broken.Error()})})
	return nil
}

func wrapSession(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("session %s: %w", id, err)
}
