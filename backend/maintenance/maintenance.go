// Package maintenance keeps the stored conversations of a data directory in order. A Maintainer rebuilds transcripts that older rules have
// made, removes blobs that nothing names, compares everything that is stored with the journals, repairs differences, compacts the database,
// runs long work one at a time, and tells how much of the disk is taken.
//
// A conversation is never deleted. The rebuilding of a transcript works in small transactions while the conversation goes on; a rebuild
// that breaks off is begun again at the next start. A damaged journal replaces nothing.
//
// The package stands below session: the journal is read by package journal, entries and turns are read and repaired by package entries, and
// the tables request and session are read here by SQL of the package's own. Session gives the Maintainer the functions of Deps.
package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/search"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// Deps are the surroundings of a Maintainer.
type Deps struct {
	Store  *store.DB
	Logger *slog.Logger
	Pace   time.Duration // between two tidyings that nothing has caused

	Publish  func(kind, session string, rec any) // tells every surface; session is "" for a record about all sessions
	Writable func() error                        // returns the reason when the data cannot be changed
	Running  func() int                          // counts the running turns
	Search   *search.Index

	Attachments    *attachments.Library
	PruneSnapshots func(ctx context.Context) error // removes old snapshots of directories
	SnapshotBytes  func(ctx context.Context) (int64, error)

	Workspaces    func(ctx context.Context) ([]workspace.KnownWorkspace, error)
	KnownAgent    func(id string) bool
	AgentSessions func(ctx context.Context, agent, before string) (list []AgentSession, next string, supported bool, err error)
	SessionsOf    func(ctx context.Context, agent string) (ids map[string]string, err error) // our sessions by the agent's ids

	// SaveOutcome stores in the row of a session what became of its transcript, in the caller's transaction.
	SaveOutcome func(ctx context.Context, tx *sql.Tx, session string, o Outcome) error
}

// Outcome is what became of the transcript of a session when the transcript was to be rebuilt.
type Outcome int

// The outcomes.
const (
	Rebuilt    Outcome = iota // the present rules have made the transcript; a choice of Kept is over
	Unreadable                // the journal is damaged: the present rules do not try again
	Kept                      // a person keeps the transcript, whatever the journal says
)

// AgentSession is a conversation in an agent's own list.
type AgentSession struct{ ID, Title, Cwd, Session string }

const local = "local" // the place of directories on this machine

// The events of the feed.
const (
	EventStorage      = "storage.upsert" // data: Storage
	EventVerification = "verify.upsert"  // data: Verification
	eventNotice       = "notice"
)

// Maintainer maintains a data directory between Start and Close.
type Maintainer struct {
	deps    Deps
	journal journal.Journal
	entries *entries.Library
	untidy  chan struct{} // has a token when there may be something to tidy

	verifying verifying
	job       job

	ctx  context.Context //nolint:containedctx // the life of verifications and work, which outlive the calls that began them
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu         sync.Mutex // protects the fields below
	closed     bool
	busy       map[string]chan struct{} // by the session that is rebuilt; closed when the rebuild is over
	rebuilding *Progress
	told       Storage // what the surfaces were told last
}

// New returns the Maintainer of a data directory.
func New(deps Deps) *Maintainer {
	return &Maintainer{deps: deps, journal: journal.Of(deps.Store), entries: entries.New(deps.Store), untidy: make(chan struct{}, 1), busy: map[string]chan struct{}{}}
}

// Start lets verifications and work begin, until ctx or Close ends them.
func (m *Maintainer) Start(ctx context.Context) { m.ctx, m.stop = context.WithCancel(ctx) }

// Close ends everything that runs, and waits for the end.
func (m *Maintainer) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.wg.Wait()
}

// Tidy has blobs that nothing names removed soon. Tidy does not block.
func (m *Maintainer) Tidy() {
	select {
	case m.untidy <- struct{}{}:
	default:
	}
}

// Run tidies up, at once and then after each Tidy, until the Maintainer is closed. One goroutine calls Run.
func (m *Maintainer) Run() {
	for {
		if err := m.tidyUp(m.ctx); err != nil && m.ctx.Err() == nil {
			m.deps.Logger.Error("the data directory cannot be tidied up", "error", err)
		}
		select {
		case <-m.untidy:
		case <-time.After(m.deps.Pace):
		case <-m.ctx.Done():
			return
		}
	}
}

func (m *Maintainer) tidyUp(ctx context.Context) error {
	removed, err := m.sweep(ctx)
	return errors.Join(err, m.deps.PruneSnapshots(ctx), m.rebuildAll(ctx, removed > 0))
}

// sweep removes the blobs that no frame and no attachment names. A new table with names of blobs must be asked in named, too.
func (m *Maintainer) sweep(ctx context.Context) (removed int, err error) {
	if err := m.deps.Attachments.Forget(ctx); err != nil {
		return 0, err
	}
	removed, err = m.deps.Store.Blobs.Sweep(ctx, func(sha string) (bool, error) { return m.named(ctx, sha) })
	if removed > 0 {
		m.deps.Logger.Info("blobs that nothing names any more were removed", "files", removed)
	}
	return removed, err
}

// named reports whether a frame or an attachment names the blob.
func (m *Maintainer) named(ctx context.Context, sha string) (is bool, err error) {
	if is, err = m.journal.Names(ctx, sha); err != nil || is {
		return is, err
	}
	return attachments.Names(ctx, m.deps.Store, sha)
}

// rebuildAll rebuilds the transcripts that older rules have made, those of the newest sessions first, and tells the surfaces of the
// progress. With tell, the surfaces are told of the storage also when there is nothing to rebuild.
func (m *Maintainer) rebuildAll(ctx context.Context, tell bool) error {
	ids, err := record.Query(ctx, m.deps.Store.Read(), record.ScanText,
		`SELECT id FROM session WHERE abs(projection) < ? AND kept = 0 AND deleted_at = 0 ORDER BY archived_at <> 0, updated_at DESC`, transcript.Projection)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if tell {
			m.tellStorage(ctx, nil)
		}
		return nil
	}
	m.deps.Logger.Info("transcripts are made anew from their journals", "sessions", len(ids), "version", transcript.Projection)
	begun := time.Now()
	next := begun
	for i, id := range ids {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(tellAfter)
			m.tellStorage(ctx, &Progress{Done: i, Total: len(ids)})
		}
		m.setRebuilding(&Progress{Done: i, Total: len(ids)})
		if failed := m.Update(ctx, id); failed != nil {
			err = errors.Join(err, failed)
		}
		if ctx.Err() != nil {
			m.setRebuilding(nil)
			return ctx.Err()
		}
	}
	m.tellStorage(ctx, nil)
	m.deps.Logger.Info("transcripts were made anew", "sessions", len(ids), "took", time.Since(begun).Round(time.Millisecond))
	return err
}

// tellAfter is the least time between two events about the same progress.
const tellAfter = 300 * time.Millisecond

func (m *Maintainer) setRebuilding(p *Progress) {
	m.mu.Lock()
	m.rebuilding = p
	m.mu.Unlock()
}

// progress returns how far the rebuilding of transcripts is, or nil.
func (m *Maintainer) progress() *Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rebuilding
}

// tellStorage tells the surfaces of the storage, with the progress of the rebuilding. The sizes are measured at the beginning and at the
// end.
func (m *Maintainer) tellStorage(ctx context.Context, p *Progress) {
	m.setRebuilding(p)
	m.mu.Lock()
	told := m.told
	m.mu.Unlock()
	if p == nil || p.Done == 0 || told.Sessions == 0 {
		now, err := m.Storage(ctx)
		if err != nil {
			return // nobody waits for the event
		}
		told = now
	}
	told.Rebuilding, told.Work = p, m.job.show()
	m.mu.Lock()
	m.told = told
	m.mu.Unlock()
	m.deps.Publish(EventStorage, "", told)
}

// Update rebuilds the transcript of a session if older rules have made the transcript. Session calls Update before anybody sees the
// transcript. When the journal is damaged, the transcript stays, and the surfaces are told once.
func (m *Maintainer) Update(ctx context.Context, id string) error {
	if m.deps.Store.Newer() != nil {
		return nil // newer rules have made the transcript
	}
	if current, err := m.isCurrent(ctx, id); current || err != nil {
		return err
	}
	return m.alone(ctx, id, func() error {
		if current, err := m.isCurrent(ctx, id); current || err != nil { // rebuilt by the former caller of alone
			return err
		}
		return m.rebuildOrTell(ctx, id)
	})
}

func (m *Maintainer) isCurrent(ctx context.Context, id string) (is bool, err error) {
	err = m.deps.Store.Read().QueryRowContext(ctx, `SELECT abs(projection) >= ? OR kept FROM session WHERE id = ?`, transcript.Projection, id).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return is, err
}

// alone runs f while no other goroutine rebuilds the same session.
func (m *Maintainer) alone(ctx context.Context, id string, f func() error) error {
	for {
		m.mu.Lock()
		before := m.busy[id]
		if before == nil {
			break
		}
		m.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	m.busy[id] = done
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.busy, id)
		m.mu.Unlock()
		close(done)
	}()
	return f()
}

// rebuildOrTell rebuilds a session. A session with a damaged journal keeps its transcript, and is not rebuilt again by the same rules.
func (m *Maintainer) rebuildOrTell(ctx context.Context, id string) error {
	err := m.rebuild(ctx, id, false)
	broken, damaged := errors.AsType[*journal.DamagedError](err)
	if !damaged {
		return wrapSession(id, err)
	}
	if erased, _ := m.erased(ctx, id); erased {
		return nil
	}
	m.deps.Logger.Error("a transcript cannot be made anew, its journal is damaged", "session", id, "error", err)
	err = m.deps.Store.Write(ctx, func(tx *sql.Tx) error { return m.deps.SaveOutcome(ctx, tx, id, Unreadable) })
	if err != nil {
		return wrapSession(id, err)
	}
	m.deps.Publish(eventNotice, id, map[string]string{"code": "journal.damaged", "detail": broken.Error()})
	return nil
}

func wrapSession(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("session %s: %w", id, err)
}

// erased reports whether a session is erased, or is being erased: then missing rows are no damage.
func (m *Maintainer) erased(ctx context.Context, id string) (is bool, err error) {
	err = m.deps.Store.Read().QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM session WHERE id = ? AND deleted_at <> 1)`, id).Scan(&is)
	return is, err
}
