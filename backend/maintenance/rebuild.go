package maintenance

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/transcript"
)

// retelling folds a journal from the beginning into entries, by the rules of package transcript, and into turns. The journal says that a
// request was opened, and when the agent of the request ended; the answer to a request stands in the table request alone.
type retelling struct {
	session  string
	fold     *transcript.Fold
	last     int64 // number of the last frame
	seen     int   // bytes of frames since the last take
	ready    []transcript.Change
	turns    map[string]*retoldTurn
	order    []string // the ids of the turns, in the order of their beginning
	running  string   // the id of the running turn
	prompts  map[acp.Key]string
	requests map[string]*retoldRequest
	attached []transcript.Attachment
}

type retoldTurn struct {
	entries.Turn
	generation int64
}

type retoldRequest struct {
	id         string
	generation int64
	over       bool // the agent has ended
}

func retell(session string) *retelling {
	return &retelling{
		session: session, fold: transcript.New(session, transcript.Facts{}), turns: map[string]*retoldTurn{}, prompts: map[acp.Key]string{}, requests: map[string]*retoldRequest{},
	}
}

// heldBack limits the bytes of frames that are folded before the changed entries are taken. At the end of a turn they are taken anyway,
// since the entries are final then.
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

// take moves the changed entries to ready. An entry that is not final comes again.
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
		r.turns[n.Turn] = &retoldTurn{entries.Turn{ID: n.Turn, Session: r.session, State: entries.TurnRunning, StartedAt: record.Time{Time: f.At}}, f.Generation}
	case transcript.NoteTurnEnded:
		if t := r.turns[n.Turn]; t != nil {
			t.State, t.StopReason, t.Error, t.EndedAt = entries.TurnDone, n.Reason, n.Error, &record.Time{Time: f.At}
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

// applyUsage reads the usage of a turn from the answer to the turn's prompt.
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
	if t != nil && t.State != entries.TurnDone && json.Unmarshal(f.Data, &m) == nil {
		t.Usage = m.Result.Usage
	}
}

// The limits of one transaction, for which conversations wait.
const (
	batchEntries = 100
	batchOfBytes = 256 << 10
)

// rebuild makes the entries and turns of a session from the journal. The conversation may go on meanwhile: its frames are in the journal
// before they are folded here, and the last transaction takes in the rest. Until then the session does not count as rebuilt, so that a
// rebuild that breaks off is begun again. A journal.DamagedError leaves the entries as they are. With chosen, a person has chosen the
// journal; without, a frame without a checksum that looks damaged counts as damaged.
func (m *Maintainer) rebuild(ctx context.Context, session string, chosen bool) error {
	b := &rebuilding{Maintainer: m, retelling: retell(session), made: map[string]bool{}}
	defer m.deps.Search.Wake() // also when the rebuild breaks off: the next entry may be days away
	if err := m.proven(ctx, session, chosen); err != nil {
		return err
	}
	db := m.deps.Store
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

// proven returns an error, before anything is changed, when a part of the journal cannot be read.
func (m *Maintainer) proven(ctx context.Context, session string, chosen bool) error {
	db := m.deps.Store
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
	*Maintainer
	made  map[string]bool     // the ids of the entries
	ahead []transcript.Change // entries that are stored with more text than the journal had when rebuild read the journal
}

// different returns the ready entries that are not stored, or stored otherwise. Before the end, an entry that has become longer since the
// journal was read is put off: an entry of a conversation that goes on must never become shorter.
func (b *rebuilding) different(ctx context.Context, q entries.Queryer, end bool) (list []entries.Row, err error) {
	for _, ch := range b.ready {
		e := entries.RowOf(ch.Entry)
		b.made[e.ID] = true
		have, err := entries.Stored(ctx, q, e.ID, e.Seq)
		if err != nil {
			return nil, err
		}
		switch {
		case have == e.Data:
		case !end && isAhead(have, e.Data):
			b.ahead = append(b.ahead, ch)
		default:
			list = append(list, e)
		}
	}
	b.ready = b.ready[:0]
	return list, nil
}

// isAhead reports whether the stored entry is the made entry with more text.
func isAhead(stored, made string) bool {
	var e transcript.Entry
	return len(stored) > len(made) && json.Unmarshal([]byte(stored), &e) == nil && transcript.IsPrefixOf([]byte(made), &e)
}

// store writes the different entries, in several transactions.
func (b *rebuilding) store(ctx context.Context) error {
	list, err := b.different(ctx, b.deps.Store.Read(), false)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && n < batchEntries && size < batchOfBytes {
			size += len(list[n].Data)
			n++
		}
		if err := b.deps.Store.Write(ctx, func(tx *sql.Tx) error { return entries.Replace(ctx, tx, b.session, list[:n]) }); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// drop deletes the entries of older rules that the present rules do not make, up to the last frame that was read.
func (b *rebuilding) drop(ctx context.Context) error {
	db := b.deps.Store
	ids, err := b.entries.IDs(ctx, b.session, (b.last+1)*transcript.PerFrame)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return b.made[id] })
	for part := range slices.Chunk(ids, batchEntries) {
		if err := db.Write(ctx, func(tx *sql.Tx) error { return entries.Remove(ctx, tx, part) }); err != nil {
			return err
		}
	}
	return nil
}

// finish folds the frames that were written meanwhile, and marks the session as rebuilt.
func (b *rebuilding) finish(ctx context.Context) error {
	db := b.deps.Store
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
		return errors.Join(entries.Replace(ctx, tx, b.session, list), b.saveTurns(ctx, tx), attachments.Use(ctx, tx, b.session, b.attached),
			b.deps.SaveOutcome(ctx, tx, b.session, Rebuilt))
	})
}

// saveTurns stores the missing turns of the journal and corrects the ends of the others. The times of stored turns stay, since they are
// exacter.
func (b *rebuilding) saveTurns(ctx context.Context, tx *sql.Tx) error {
	have, err := entries.Ends(ctx, tx, b.session)
	if err != nil {
		return err
	}
	for _, id := range b.order {
		t := b.turns[id]
		if was, there := have[id]; there && t.sameAs(was) {
			continue
		}
		if err := entries.RestoreTurn(ctx, tx, &t.Turn, t.generation); err != nil {
			return err
		}
	}
	return nil
}

// sameAs reports whether the journal and the row agree on the end of a turn.
func (t *retoldTurn) sameAs(stored entries.Turn) bool {
	return (t.State == entries.TurnDone) == (stored.State == entries.TurnDone) && t.StopReason == stored.StopReason && (t.Error == nil) == (stored.Error == nil)
}
