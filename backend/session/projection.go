package session

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/transcript"
)

// retelling reads a journal from its beginning and makes of it what is shown: the entries by the transcript's rules, and the turns.
// Of requests the journal holds that they were opened, and when their agent ended; who answered is in the request's own row alone.
type retelling struct {
	session  string
	fold     *transcript.Fold
	last     int64 // frame
	seen     int   // bytes of frames since the last take
	ready    []transcript.Change
	turns    map[string]*retoldTurn
	order    []string // of turns, as they began
	running  string   // the turn
	prompts  map[acp.Key]string
	requests map[string]*retoldRequest
	attached []transcript.Attachment
}

type retoldTurn struct {
	Turn
	generation int64
}

type retoldRequest struct {
	id         string
	generation int64
	over       bool // its agent has ended
}

func retell(session string) *retelling {
	return &retelling{
		session: session, fold: transcript.New(session, transcript.Facts{}), turns: map[string]*retoldTurn{}, prompts: map[acp.Key]string{}, requests: map[string]*retoldRequest{},
	}
}

// What is held back at most until the end of a turn makes it final.
const heldBack = 8 << 20

func (r *retelling) apply(f journal.Frame) {
	r.last = f.N
	r.fold.Apply(f)
	r.seen += len(f.Data)
	final := false
	switch f.Dir {
	case journal.Note:
		var n transcript.Note
		if json.Unmarshal(f.Data, &n) == nil {
			r.applyNote(f, n)
			final = n.Note == transcript.NoteTurnBegan || n.Note == transcript.NoteStarting
		}
	case journal.Out:
		if bytes.Contains(f.Data, []byte(`"session/prompt"`)) {
			if env, err := acp.Peek(f.Data); err == nil && env.Kind == acp.Request && env.Method() == "session/prompt" {
				r.prompts[env.Key()] = r.running
			}
		}
	case journal.In:
		r.applyUsage(f)
	}
	if final || r.seen > heldBack {
		r.take()
	}
}

// take has ready what has changed. Most of it is final; what is not comes again.
func (r *retelling) take() {
	changes, _ := r.fold.Take()
	r.ready = append(r.ready, changes...)
	r.seen = 0
}

func (r *retelling) applyNote(f journal.Frame, n transcript.Note) {
	r.attached = append(r.attached, n.Attachments...)
	switch n.Note {
	case transcript.NoteStarting:
		clear(r.prompts)
	case transcript.NoteTurnBegan:
		r.running = n.Turn
		r.order = append(r.order, n.Turn)
		r.turns[n.Turn] = &retoldTurn{Turn{ID: n.Turn, Session: r.session, State: turnRunning, StartedAt: Time{Time: f.At}}, f.Generation}
	case transcript.NoteTurnEnded:
		if t := r.turns[n.Turn]; t != nil {
			t.State, t.StopReason, t.Error, t.EndedAt = turnDone, n.Reason, n.Error, &Time{Time: f.At}
		}
		r.running = ""
	case transcript.NoteRequest:
		r.requests[n.Request] = &retoldRequest{id: n.Request, generation: f.Generation}
	case transcript.NoteClosed:
		for _, q := range r.requests {
			q.over = true
		}
	}
}

const (
	turnRunning = "running"
	turnDone    = "done"
)

// applyUsage takes from the answer to a prompt what its turn used.
func (r *retelling) applyUsage(f journal.Frame) {
	if !bytes.Contains(f.Data, []byte(`"stopReason"`)) {
		return
	}
	env, err := acp.Peek(f.Data)
	if err != nil || env.Kind != acp.Response {
		return
	}
	t := r.turns[r.prompts[env.Key()]]
	var m struct {
		Result struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"result"`
	}
	if t != nil && t.State != turnDone && json.Unmarshal(f.Data, &m) == nil {
		t.Usage = m.Result.Usage
	}
}

// A batch is what is written in one transaction: conversations wait for it.
const (
	batchEntries = 100
	batchOfBytes = 256 << 10
)

// rebuild makes what is shown of a session anew from its journal. It may run while
// the conversation goes on: what is said meanwhile is in the journal before it is folded here, and the last batch takes in the rest.
// Until then the session counts as not rebuilt, so that one that was broken off is begun again. An error of type damage leaves the
// entries as they are. chosen says that a person has chosen the journal: else one of before there were checksums is not trusted where its
// messages look damaged.
func (c *Client) rebuild(ctx context.Context, session string, chosen bool) error {
	b := &rebuilding{c: c, retelling: retell(session), made: map[string]bool{}}
	defer c.cfg.Search.Wake() // also when the rebuild is broken off: the next entry may be days away
	if err := c.proven(ctx, session, chosen); err != nil {
		return err
	}
	db := c.cfg.Store
	for {
		before := b.last
		if _, err := journal.Of(db).After(ctx, db.Read(), session, before, journal.Part, b.apply); err != nil {
			return err
		}
		if b.last == before {
			b.take()
		}
		if err := b.store(ctx); err != nil {
			return err
		}
		if b.last == before {
			break
		}
	}
	if err := b.drop(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}

// proven tells, before anything is changed, whether the whole journal can be read.
func (c *Client) proven(ctx context.Context, session string, chosen bool) error {
	db := c.cfg.Store
	for want := int64(1); ; {
		before := want
		_, err := journal.Of(db).Stored(ctx, db.Read(), session, before-1, journal.Part, func(f journal.Stored) error {
			if f.N != want {
				return &journal.DamagedError{N: want, Err: journal.ErrGap}
			}
			want++
			if !chosen && f.Unproven() {
				return &journal.DamagedError{N: f.N, Err: journal.ErrUnproven}
			}
			return journal.Of(db).Decode(&f)
		})
		if err != nil || want == before {
			return err
		}
	}
}

type rebuilding struct {
	*retelling
	c     *Client
	made  map[string]bool     // the ids of the entries
	ahead []transcript.Change // stored with more text than the journal had when it was read
}

// entryWrite is an entry as it is to be.
type entryWrite struct {
	id   string
	seq  int64
	data string

	attachments int
}

// different are those of the entries that are ready which are stored otherwise, or not at all. Before the end those are left that have
// become longer since their journal was read: what is stored of a conversation that goes on must at no time be less than it was.
func (b *rebuilding) different(ctx context.Context, q rowQuerier, end bool) (list []entryWrite, err error) {
	for _, ch := range b.ready {
		e := entryWrite{ch.Entry.ID, ch.Entry.Seq, string(mustJSON(ch.Entry)), len(ch.Entry.Attachments)}
		b.made[e.id] = true
		var have string
		err := q.QueryRowContext(ctx, `SELECT data FROM entry WHERE id = ? AND seq = ?`, e.id, e.seq).Scan(&have)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		switch {
		case err == nil && have == e.data:
		case err == nil && !end && isAhead(have, e.data):
			b.ahead = append(b.ahead, ch)
		default:
			list = append(list, e)
		}
	}
	b.ready = b.ready[:0]
	return list, nil
}

// isAhead tells that what is stored is the same entry with more text.
func isAhead(stored, made string) bool {
	var e transcript.Entry
	return len(stored) > len(made) && json.Unmarshal([]byte(stored), &e) == nil && transcript.IsPrefixOf([]byte(made), &e)
}

type rowQuerier interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// store writes what differs, in batches.
func (b *rebuilding) store(ctx context.Context) error {
	list, err := b.different(ctx, b.c.cfg.Store.Read(), false)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && n < batchEntries && size < batchOfBytes {
			size += len(list[n].data)
			n++
		}
		if err := b.c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return b.write(ctx, tx, list[:n]) }); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// write puts entries in their places; whatever older rules had put there goes. A place keeps its row: searches give the newest rows first.
func (b *rebuilding) write(ctx context.Context, tx *sql.Tx, list []entryWrite) error {
	for _, e := range list {
		_, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE id = ? AND (session <> ? OR seq <> ?)`, e.id, b.session, e.seq)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `UPDATE entry SET id = ?, data = ?, attachments = ? WHERE session = ? AND seq = ?`, e.id, e.data, e.attachments, b.session, e.seq)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO entry (id, session, seq, data, attachments) VALUES (?, ?, ?, ?, ?)`, e.id, b.session, e.seq, e.data, e.attachments); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the entries that older rules made and that are none by these. What was said since the last frame that was read is not
// its business.
func (b *rebuilding) drop(ctx context.Context) error {
	db := b.c.cfg.Store
	ids, err := query(ctx, db.Read(), scanText, `SELECT id FROM entry WHERE session = ? AND seq < ?`, b.session, (b.last+1)*transcript.PerFrame)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return b.made[id] })
	for part := range slices.Chunk(ids, batchEntries) {
		err := db.Write(ctx, func(tx *sql.Tx) error {
			for _, id := range part {
				if _, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE id = ?`, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// finish takes in what was said meanwhile, and has the session count as rebuilt.
func (b *rebuilding) finish(ctx context.Context) error {
	db := b.c.cfg.Store
	return db.Write(ctx, func(tx *sql.Tx) error {
		for {
			before := b.last
			if _, err := journal.Of(db).After(ctx, tx, b.session, before, journal.Part, b.apply); err != nil {
				return err
			}
			if b.last == before {
				break
			}
		}
		b.take()
		b.ready = append(b.ahead, b.ready...)
		list, err := b.different(ctx, tx, true)
		if err != nil {
			return err
		}
		_, done := tx.ExecContext(ctx, `UPDATE session SET projection = ?, kept = 0 WHERE id = ?`, transcript.Projection, b.session)
		return errors.Join(b.write(ctx, tx, list), b.saveTurns(ctx, tx), useAttachments(ctx, tx, b.session, b.attached), done)
	})
}

// saveTurns puts back the turns that the journal tells of and corrects how they ended; the times of those that are there are exacter.
func (b *rebuilding) saveTurns(ctx context.Context, tx *sql.Tx) error {
	have, err := storedTurns(ctx, tx, b.session)
	if err != nil {
		return err
	}
	for _, id := range b.order {
		t := b.turns[id]
		if was, there := have[id]; there && t.sameAs(was) {
			continue
		}
		failure := ""
		if t.Error != nil {
			failure = string(mustJSON(t.Error))
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, stop_reason = excluded.stop_reason,
			error = excluded.error, ended_at = max(ended_at, excluded.ended_at)`,
			t.ID, t.Session, t.generation, t.State, t.StopReason, failure, string(t.Usage), millis(t.StartedAt.Time), optionalMillis(t.EndedAt)); err != nil {
			return err
		}
	}
	return nil
}

// storedTurns are the turns of a session by their ids.
func storedTurns(ctx context.Context, q journal.Queryer, session string) (map[string]Turn, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+turnColumns+` FROM turn WHERE session = ?`, session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	have := map[string]Turn{}
	for rows.Next() {
		t, err := scanTurn(rows)
		if err != nil {
			return nil, err
		}
		have[t.ID] = t
	}
	return have, rows.Err()
}

// sameAs tells whether the journal and the row of a turn agree on whether and how it ended.
func (t *retoldTurn) sameAs(stored Turn) bool {
	return (t.State == turnDone) == (stored.State == turnDone) && t.StopReason == stored.StopReason && (t.Error == nil) == (stored.Error == nil)
}
