package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/rulebook"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// move is the move of a workspace to another path, with its sessions. Each session of the workspace is held between two steps meanwhile,
// and no call works on the worktrees: all sessions move in one transaction, and no step writes an old path.
type move struct {
	*workspace.Move

	c     *Client
	at    Time
	trees *worktrees.Move
	held  []*conversation
	ended sync.WaitGroup // the steps of the held conversations
	over  chan struct{}  // closed when the conversations may go on
	done  bool           // the move is stored; read after over is closed only
}

// follow moves the sessions of a workspace to the workspace's new directory.
func (c *Client) follow(ctx context.Context, w *workspace.Move) error {
	trees, err := c.worktrees.BeginMove(ctx, w.From.Path, w.To.Path)
	if err != nil {
		return err
	}
	defer trees.End()
	m := &move{Move: w, c: c, trees: trees, at: Time{Time: time.Now()}, over: make(chan struct{})}
	defer m.wait()
	if err := m.holdAll(ctx); err != nil {
		return err
	}
	if err := c.cfg.Store.WriteSync(ctx, func(tx *sql.Tx) error { return m.save(ctx, tx) }); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	trees.Saved()
	m.done = true
	m.wait() // until every conversation has shown the move
	trees.Repair(ctx)
	return nil
}

// wait lets the conversations go on, and waits until their steps have ended.
func (m *move) wait() {
	select {
	case <-m.over:
	default:
		close(m.over)
	}
	m.ended.Wait()
}

// holdAll holds every session of the workspace.
func (m *move) holdAll(ctx context.Context) error {
	ids, err := query(ctx, m.c.cfg.Store.Read(), scanText, `SELECT id FROM session WHERE workspace = ? ORDER BY id`, m.From.ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v, err := m.c.any(ctx, id)
		if err == nil {
			err = m.hold(ctx, v)
		}
		if err != nil && !errors.Is(err, ErrNotFound) { // a session that is being erased is left behind
			return err
		}
	}
	return nil
}

// hold waits until the conversation is between two steps, and keeps it there.
func (m *move) hold(ctx context.Context, v *conversation) error {
	taken := make(chan error, 1)
	m.ended.Add(1)
	begun := m.c.background.Start(func() {
		defer m.ended.Done()
		err := v.reach(ctx, func() error {
			if v.state.Turn != "" {
				return &RefusedError{Code: "workspace.busy", Params: map[string]string{"path": m.From.Path, "title": v.row.Title}}
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
			default: // the conversation was held: a later step shows what this step could not
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

// save stores the move of the workspace, its sessions, their rules and worktrees.
func (m *move) save(ctx context.Context, tx *sql.Tx) error {
	if err := m.Save(ctx, tx); err != nil {
		return err
	}
	_, joined := tx.ExecContext(ctx, `UPDATE session SET workspace = ? WHERE workspace = ?`, m.To.ID, m.From.ID)
	ruled := rulebook.MoveWorkspace(ctx, tx, m.From.ID, m.To.ID)
	if err := errors.Join(joined, ruled); err != nil {
		return err
	}
	for _, v := range m.held {
		f := m.frame(v)
		t := transcript.New(v.id, transcript.Facts{})
		t.Apply(f)
		told, _ := t.Take()
		cwd, directories := m.paths(v)
		_, err := tx.ExecContext(ctx, `UPDATE session SET cwd = ?, directories = ? WHERE id = ?`, cwd, string(mustJSON(directories)), v.id)
		if err := errors.Join(err, journal.Append(ctx, tx, v.id, []journal.Stored{journal.Short(f)}), entries.Save(ctx, tx, v.id, told)); err != nil {
			return err
		}
	}
	return m.trees.Save(ctx, tx)
}

// frame returns the next frame in the journal of a session, which tells of the move.
func (m *move) frame(v *conversation) journal.Frame {
	data := mustJSON(transcript.Note{Note: transcript.NoteMoved, From: m.From.Path, To: m.To.Path})
	return journal.Frame{N: v.frames + 1, Generation: v.row.Generation, At: time.UnixMilli(m.at.UnixMilli()), Dir: journal.Note, Data: v.c.secret.Message(data)}
}

// paths returns the directories of a session after the move.
func (m *move) paths(v *conversation) (cwd string, directories []string) {
	for _, d := range v.row.Directories {
		directories = append(directories, workspace.Rebase(d, m.From.Path, m.To.Path))
	}
	if directories == nil {
		directories = []string{}
	}
	return workspace.Rebase(v.row.Cwd, m.From.Path, m.To.Path), directories
}

// follow applies the stored move to a held conversation, and ends an agent that works in the old directory. Nothing has happened in the
// session, so the session keeps its place in the list.
func (v *conversation) follow(m *move) {
	f, at := m.frame(v), v.row.UpdatedAt
	v.row.Cwd, v.row.Directories = m.paths(v)
	v.row.Workspace = m.To
	v.frames = f.N
	v.fold.Apply(f)
	if v.state.Base != lifecycle.Closed {
		v.do(lifecycle.Exited{Code: transcript.ProblemQuit})
	}
	v.row.UpdatedAt = at
	v.saveRow()
}
