package session

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// Work is something long that is done to all that is kept, one at a time: the database gives back what it does not use, or every
// conversation is written to a file. Nothing of what is kept changes by it, and it can be ended before it is through.
type Work struct {
	Kind      string            `json:"kind" enum:"compact,export"`
	State     string            `json:"state" enum:"running,done,failed,cancelled"`
	StartedAt Time              `json:"startedAt"`
	EndedAt   *Time             `json:"endedAt,omitempty"`
	Done      int               `json:"done" doc:"Conversations, of an export"`
	Total     int               `json:"total" doc:"0 where nobody can tell before"`
	Bytes     int64             `json:"bytes" doc:"What the file takes, of an export; what was given back to the disk, of compacting"`
	Path      string            `json:"path,omitempty" doc:"The file of an export"`
	Skipped   int               `json:"skipped" doc:"Conversations that are not whole in an export, because their journal is damaged; its list says which"`
	Code      string            `json:"code,omitempty" doc:"Why it has failed"`
	Params    map[string]string `json:"params,omitempty"`
}

// WorkExport is the kind of the work of an export.
const WorkExport = "export"

const (
	workCompact   = "compact"
	workRunning   = "running"
	workDone      = "done"
	workFailed    = "failed"
	workCancelled = "cancelled"
)

const (
	refusedWork       = "work.running"  // params kind: another one is not through
	refusedCompacting = "compact.turns" // turns run, and would wait
	refusedWorkFailed = "work.failed"   // params detail
)

// doing is the work that is done, or was done last.
type doing struct {
	mu   sync.Mutex // protects what is below
	now  *Work
	stop context.CancelFunc
	next time.Time // when progress is told again
}

// show is a copy, so that nobody sees it change.
func (w *doing) show() *Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		return nil
	}
	now := *w.now
	return &now
}

// change changes what is told, and tells whether it is time to.
func (w *doing) change(f func(*Work)) (due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.now)
	now := time.Now()
	if due = !now.Before(w.next) || w.now.State != workRunning; due {
		w.next = now.Add(tellAfter)
	}
	return due
}

// BeginWork runs work of a kind in the background, one at a time. change changes the record of the work, and tells the surfaces of the record
// when they have not been told for a moment.
func (c *Client) BeginWork(kind string, do func(ctx context.Context, change func(func(*Work))) error) (Work, error) {
	if refused := c.ReadOnly(); refused != nil {
		return Work{}, refused
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Work{}, ErrClosed
	}
	w := &c.upkeep.doing
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != nil && w.now.State == workRunning {
		return Work{}, &RefusedError{Code: refusedWork, Params: map[string]string{"kind": w.now.Kind}}
	}
	ctx, stop := context.WithCancel(c.ctx)
	w.now, w.stop, w.next = &Work{Kind: kind, State: workRunning, StartedAt: Time{Time: time.Now()}}, stop, time.Time{}
	c.wg.Go(func() {
		defer stop()
		c.endWork(ctx, do(ctx, func(f func(*Work)) {
			if w.change(f) {
				c.tellWork()
			}
		}))
	})
	return *w.now, nil
}

// endWork writes down what came of it.
func (c *Client) endWork(ctx context.Context, err error) {
	refused, isRefused := errors.AsType[*RefusedError](err)
	c.upkeep.doing.change(func(w *Work) {
		w.EndedAt = &Time{Time: time.Now()}
		switch {
		case err == nil:
			w.State = workDone
		case ctx.Err() != nil:
			w.State = workCancelled
		case isRefused:
			w.State, w.Code, w.Params = workFailed, refused.Code, refused.Params
		default:
			w.State, w.Code, w.Params = workFailed, refusedWorkFailed, map[string]string{"detail": err.Error()}
		}
	})
	if c.ctx.Err() == nil {
		c.tellStorage(c.ctx, c.upkeep.progress()) //nolint:contextcheck // that of the work may have ended
	}
}

// tellWork tells how far it is, as a part of what is told of the storage.
func (c *Client) tellWork() {
	c.upkeep.mu.Lock()
	told := c.upkeep.told
	c.upkeep.mu.Unlock()
	told.Rebuilding, told.Work = c.upkeep.progress(), c.upkeep.doing.show()
	if told.DatabaseBytes > 0 { // else nobody has asked yet
		c.feed.publish(Event{Type: eventStorage, Data: mustJSON(told)})
	}
}

// CancelWork ends what is done. That nothing is, is no error.
func (c *Client) CancelWork() {
	w := &c.upkeep.doing
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
}

// Compact has the database give back what it does not use. Messages that are sent meanwhile wait for its end, so none may be on its way.
func (c *Client) Compact() (Work, error) {
	if c.Running() > 0 {
		return Work{}, &RefusedError{Code: refusedCompacting}
	}
	return c.BeginWork(workCompact, func(ctx context.Context, change func(func(*Work))) error {
		before, err := c.takes(ctx)
		if err != nil {
			return err
		}
		c.tellStorage(ctx, c.upkeep.progress())
		if _, err := c.sweep(ctx); err != nil {
			return err
		}
		if err := c.compact(ctx); err != nil {
			return err
		}
		after, err := c.takes(ctx)
		change(func(w *Work) { w.Bytes = max(0, before-after) })
		return err
	})
}

// takes is how much of the disk the database and the blobs take.
func (c *Client) takes(ctx context.Context) (int64, error) {
	total, err := c.cfg.Store.Size()
	if err != nil {
		return 0, err
	}
	return total, c.cfg.Store.Blobs.Each(ctx, func(_ string, file fs.FileInfo) error {
		total += file.Size()
		return nil
	})
}

// compact rewrites the database. The index of the search knows entries by the numbers of their rows.
func (c *Client) compact(ctx context.Context) error {
	const numbers = `SELECT count(*) || ' ' || coalesce(sum(rowid), 0) || ' ' || coalesce(sum((rowid % 65521) * (seq + 1)), 0) FROM entry`
	err := c.cfg.Search.Merge(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // the rest of the database has its space all the same
		c.cfg.Logger.Error("the index of the search cannot be merged", "error", err)
	}
	renumbered, err := c.cfg.Store.Compact(ctx, numbers)
	if err != nil || !renumbered {
		return err
	}
	c.cfg.Logger.Warn("the rows of the database have other numbers now: the search is indexed anew")
	return c.cfg.Search.Rebuild(ctx)
}
