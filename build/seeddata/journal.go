package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/store"
)

// blobFrom is the size from which the program keeps a payload as a blob.
const blobFrom = 16 << 10

// epoch is the time of the first frame: a fixed day, so that every run writes the same data.
func epoch() time.Time { return time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC) }

// journals writes the sessions with their frames and turns, the long session last in time and first in the list, and returns their ids.
func journals(ctx context.Context, db *store.DB, o options) ([]string, error) {
	ids := make([]string, max(1, o.sessions))
	err := db.Write(ctx, func(tx *sql.Tx) error {
		place := id("workspace", 0)
		if _, err := tx.ExecContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, 0, 0, 0, ?)`,
			place, o.work, epoch().UnixMilli()); err != nil {
			return err
		}
		for i := range ids {
			w := &writer{ctx: ctx, db: db, tx: tx, session: id("session", i), at: epoch().Add(time.Duration(i) * time.Minute), text: newProse(o.seed + uint64(i))} //nolint:gosec // small
			turns, title := 2, fmt.Sprintf("Short conversation %d", i)
			if i == 0 {
				turns, title = o.turns, "The long one"
				w.at = w.at.Add(24 * time.Hour)
			}
			ids[i] = w.session
			if err := w.conversation(place, o.work, title, turns); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// id is a UUID that is the same in every run.
func id(what string, n int) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what), uint64(n))) //nolint:gosec // only hashed
	u, _ := uuid.FromBytes(sum[:16])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return u.String()
}

// writer writes the journal of a session.
type writer struct {
	ctx     context.Context //nolint:containedctx // the context of the writer's single use
	db      *store.DB
	tx      *sql.Tx
	frames  *sql.Stmt
	session string
	n       int64
	calls   int
	at      time.Time
	text    *prose
}

func (w *writer) conversation(place, cwd, title string, turns int) error {
	began := w.at
	if _, err := w.tx.ExecContext(w.ctx, `INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft,
		acp_session_id, protocol_version, generation, facts, exit, created_at, updated_at, archived_at)
		VALUES (?, 'local', ?, ?, 'mock', ?, 'person', '[]', 0, 0, '', ?, 1, 1, '{}', '', ?, ?, 0)`,
		w.session, place, cwd, title, w.peer(), began.UnixMilli(), began.UnixMilli()); err != nil {
		return err
	}
	var err error
	if w.frames, err = w.tx.PrepareContext(w.ctx, `INSERT INTO frame (session, n, generation, at, dir, encoding, payload) VALUES (?, ?, 1, ?, ?, ?, ?)`); err != nil {
		return err
	}
	defer w.frames.Close()
	if err := w.note(map[string]any{"note": "agent.starting"}); err != nil {
		return err
	}
	if err := w.note(map[string]any{"note": "session.ready", "reason": "new", "session": w.peer()}); err != nil {
		return err
	}
	for i := range turns {
		if err := w.turn(i); err != nil {
			return err
		}
	}
	_, err = w.tx.ExecContext(w.ctx, `UPDATE session SET updated_at = ? WHERE id = ?`, w.at.UnixMilli(), w.session)
	return err
}

func (w *writer) peer() string { return "demo-" + w.session[:8] }

// turn writes a prompt and the agent's work on the prompt.
func (w *writer) turn(n int) error {
	turn := id(w.session, n)
	began := w.at
	prompt := []any{map[string]any{"type": "text", "text": w.text.prompt(n)}}
	if err := w.note(map[string]any{"note": "turn.began", "turn": turn, "prompt": prompt}); err != nil {
		return err
	}
	request := n + 10
	if err := w.frame("out", map[string]any{
		"jsonrpc": "2.0", "id": request, "method": "session/prompt", "params": map[string]any{"sessionId": w.peer(), "prompt": prompt},
	}); err != nil {
		return err
	}
	for _, update := range w.text.work(n, w.call) {
		if err := w.frame("in", map[string]any{
			"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": w.peer(), "update": update},
		}); err != nil {
			return err
		}
	}
	if err := w.frame("in", map[string]any{"jsonrpc": "2.0", "id": request, "result": map[string]any{"stopReason": "end_turn"}}); err != nil {
		return err
	}
	if err := w.note(map[string]any{"note": "turn.ended", "turn": turn, "reason": "end_turn"}); err != nil {
		return err
	}
	_, err := w.tx.ExecContext(w.ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at)
		VALUES (?, ?, 1, 'done', 'end_turn', '', '', ?, ?)`, turn, w.session, began.UnixMilli(), w.at.UnixMilli())
	return err
}

// call gives the id of a new tool call.
func (w *writer) call() string {
	w.calls++
	return fmt.Sprintf("call-%d", w.calls)
}

func (w *writer) note(data any) error { return w.frame("note", data) }

func (w *writer) frame(dir string, data any) error {
	payload, err := json.Marshal(data)
	if err != nil {
		return err
	}
	w.n++
	w.at = w.at.Add(40 * time.Millisecond)
	encoding := "raw"
	if len(payload) >= blobFrom {
		sha, err := w.db.Blobs.Put(payload)
		if err != nil {
			return err
		}
		payload, encoding = []byte(sha), "blob"
	}
	_, err = w.frames.ExecContext(w.ctx, w.session, w.n, w.at.UnixMilli(), dir, encoding, payload)
	return err
}
