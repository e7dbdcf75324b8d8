package maintenance

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Work is long work on all stored data: compacting the database, or exporting every conversation to a file. The work changes no
// conversation, and can be cancelled at any time.
type Work struct {
	Kind      string            `json:"kind" enum:"compact,export"`
	State     string            `json:"state" enum:"running,done,failed,cancelled"`
	StartedAt record.Time       `json:"startedAt"`
	EndedAt   *record.Time      `json:"endedAt,omitempty"`
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
	refusedWork       = "work.running"  // params kind: other work runs
	refusedCompacting = "compact.turns" // turns run, and would have to wait
	refusedWorkFailed = "work.failed"   // params detail
)

// job is the running work, or the last work.
type job struct {
	mu   sync.Mutex // protects the fields below
	now  *Work
	stop context.CancelFunc
	next time.Time // when the progress is told again
}

// show returns a copy of the work's record, or nil.
func (w *job) show() *Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		return nil
	}
	now := *w.now
	return &now
}

// change changes the work's record, and reports whether the surfaces are to be told.
func (w *job) change(f func(*Work)) (due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.now)
	now := time.Now()
	if due = !now.Before(w.next) || w.now.State != workRunning; due {
		w.next = now.Add(tellAfter)
	}
	return due
}

// BeginWork runs work of a kind in the background, one at a time. change changes the record of the work, and tells the surfaces of the
// record when they have not been told for a moment.
func (m *Maintainer) BeginWork(kind string, do func(ctx context.Context, change func(func(*Work))) error) (Work, error) {
	if refused := m.deps.Writable(); refused != nil {
		return Work{}, refused
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Work{}, refusal.ErrClosed
	}
	w := &m.job
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != nil && w.now.State == workRunning {
		return Work{}, &refusal.Error{Code: refusedWork, Params: map[string]string{"kind": w.now.Kind}}
	}
	ctx, stop := context.WithCancel(m.ctx)
	w.now, w.stop, w.next = &Work{Kind: kind, State: workRunning, StartedAt: record.Time{Time: time.Now()}}, stop, time.Time{}
	m.wg.Go(func() {
		defer stop()
		m.endWork(ctx, do(ctx, func(f func(*Work)) {
			if w.change(f) {
				m.tellWork()
			}
		}))
	})
	return *w.now, nil
}

// endWork records the end of the work.
func (m *Maintainer) endWork(ctx context.Context, err error) {
	refused, isRefused := errors.AsType[*refusal.Error](err)
	m.job.change(func(w *Work) {
		w.EndedAt = &record.Time{Time: time.Now()}
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
	if m.ctx.Err() == nil {
		m.tellStorage(m.ctx, m.progress()) //nolint:contextcheck // the work's own context may have ended
	}
}

// tellWork tells the surfaces of the progress, as a part of the storage.
func (m *Maintainer) tellWork() {
	m.mu.Lock()
	told := m.told
	m.mu.Unlock()
	told.Rebuilding, told.Work = m.progress(), m.job.show()
	if told.DatabaseBytes > 0 { // else the storage was never measured
		m.deps.Publish(EventStorage, "", told)
	}
}

// CancelWork cancels the running work, if any.
func (m *Maintainer) CancelWork() {
	w := &m.job
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
}

// Compact begins to return the unused space of the database to the disk. Compact is refused while turns run, since their messages would
// have to wait for the end.
func (m *Maintainer) Compact() (Work, error) {
	if m.deps.Running() > 0 {
		return Work{}, &refusal.Error{Code: refusedCompacting}
	}
	return m.BeginWork(workCompact, func(ctx context.Context, change func(func(*Work))) error {
		before, err := m.takes(ctx)
		if err != nil {
			return err
		}
		m.tellStorage(ctx, m.progress())
		if _, err := m.sweep(ctx); err != nil {
			return err
		}
		if err := m.compact(ctx); err != nil {
			return err
		}
		after, err := m.takes(ctx)
		change(func(w *Work) { w.Bytes = max(0, before-after) })
		return err
	})
}

// takes returns the bytes of the database and the blobs on the disk.
func (m *Maintainer) takes(ctx context.Context) (int64, error) {
	total, err := m.deps.Store.Size()
	if err != nil {
		return 0, err
	}
	return total, m.deps.Store.Blobs.Each(ctx, func(_ string, file fs.FileInfo) error {
		total += file.Size()
		return nil
	})
}

// compact rewrites the database. The index of the search knows entries by the numbers of their rows, which the rewriting may change.
func (m *Maintainer) compact(ctx context.Context) error {
	err := m.deps.Search.Merge(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // the rest of the database is compacted all the same
		m.deps.Logger.Error("the index of the search cannot be merged", "error", err)
	}
	renumbered, err := m.deps.Store.Compact(ctx, entries.Numbering)
	if err != nil || !renumbered {
		return err
	}
	m.deps.Logger.Warn("the rows of the database have other numbers now: the search is indexed anew")
	return m.deps.Search.Rebuild(ctx)
}
