// Package entries has the stored entries and turns of conversations: what a transcript shows, and the prompts that the entries belong to.
// The journal is the truth, and both are made of the journal; they are stored so that a list or a transcript opens at once.
//
// No other package writes the tables entry and turn. Functions that take a transaction write in the transaction of the caller, which
// stores the frames that the entries follow from. A write makes or changes a row by the row's id. Triggers of the database tell the search
// of each entry that was added, changed or removed.
package entries

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"deskhand/backend/record"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Library is the stored entries and turns of a database. Any goroutine may call the methods of Library.
type Library struct{ db *store.DB }

// New returns the stored entries and turns of a database.
func New(db *store.DB) *Library { return &Library{db} }

// Queryer runs queries: the readers of the database, or a transaction.
type Queryer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// Row is a stored entry. Data is the JSON of a transcript.Entry, or something else after damage on the disk.
type Row struct {
	ID          string
	Seq         int64
	Data        string
	Attachments int // number of the entry's attachments
}

// RowOf returns the row of an entry.
func RowOf(e *transcript.Entry) Row {
	return Row{ID: e.ID, Seq: e.Seq, Data: string(record.JSON(e)), Attachments: len(e.Attachments)}
}

// kind is the kind of the record in column data, in SQL. kind is null for records of older versions that are nested deeper than SQLite
// reads: without json_valid such a record would end the whole query with an error.
const kind = `CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END`

func (l *Library) list(ctx context.Context, text string, args ...any) ([]transcript.Entry, error) {
	return record.Query(ctx, l.db.Read(), record.ScanJSON[transcript.Entry], text, args...)
}

// Before returns at most limit entries before a seq, the last of them, in order. A notice takes the place of a damaged entry.
func (l *Library) Before(ctx context.Context, session string, seq int64, limit int) ([]transcript.Entry, error) {
	return record.Query(ctx, l.db.Read(), scanOrNotice, `SELECT id, seq, data FROM
		(SELECT id, seq, data FROM entry WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?) ORDER BY seq`, session, seq, limit)
}

// After returns at most limit entries after a seq, in order. A notice takes the place of a damaged entry.
func (l *Library) After(ctx context.Context, session string, seq int64, limit int) ([]transcript.Entry, error) {
	return record.Query(ctx, l.db.Read(), scanOrNotice, `SELECT id, seq, data FROM entry WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`, session, seq, limit)
}

// scanOrNotice scans the id, the seq and the record of an entry.
func scanOrNotice(s record.Scanner) (e transcript.Entry, err error) {
	var id, data string
	var seq int64
	if err := s.Scan(&id, &seq, &data); err != nil {
		return e, err
	}
	if json.Unmarshal([]byte(data), &e) == nil && e.Complete() {
		return e, nil
	}
	return transcript.Entry{ID: id, Seq: seq, Kind: "notice", Notice: &transcript.Notice{
		Severity: "error", Title: "This part of the conversation was damaged on the disk",
		Description: "deskhand verify tells whether the journal still has it.",
	}}, nil
}

// Newest returns the last entries, at most limit of them, the newest first.
func (l *Library) Newest(ctx context.Context, session string, limit int) ([]transcript.Entry, error) {
	return l.list(ctx, `SELECT data FROM entry WHERE session = ? ORDER BY seq DESC LIMIT ?`, session, limit)
}

// WithAttachments returns at most limit entries before a seq that have attachments, the newest first.
func (l *Library) WithAttachments(ctx context.Context, session string, before int64, limit int) ([]transcript.Entry, error) {
	return l.list(ctx, `SELECT data FROM entry WHERE session = ? AND seq < ? AND attachments > 0 ORDER BY seq DESC LIMIT ?`, session, before, limit)
}

// FirstPrompt returns the first prompt of a session, or nil.
func (l *Library) FirstPrompt(ctx context.Context, session string) (*transcript.Entry, error) {
	return first(l.list(ctx, `SELECT data FROM entry WHERE session = ? AND `+kind+` = 'user' ORDER BY seq LIMIT 1`, session))
}

// LastAnswer returns the text of the agent's last message in a session; "" = there is none.
func (l *Library) LastAnswer(ctx context.Context, session string) (string, error) {
	e, err := first(record.Readable[transcript.Entry](ctx, l.db.Read(), `SELECT data FROM entry WHERE session = ? AND `+kind+` = 'agent' ORDER BY seq DESC LIMIT 1`, session))
	if err != nil || e == nil {
		return "", err
	}
	return e.Text, nil
}

// NewestPlan returns the newest plan of a session, or nil. A damaged entry is left out.
func (l *Library) NewestPlan(ctx context.Context, session string) (*transcript.Entry, error) {
	return first(record.Readable[transcript.Entry](ctx, l.db.Read(), `SELECT data FROM entry WHERE session = ? AND `+kind+` = 'plan' ORDER BY seq DESC LIMIT 1`, session))
}

func first[T any](list []T, err error) (*T, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// HasStraggler reports whether a session has an entry of kind straggler with an id.
func (l *Library) HasStraggler(ctx context.Context, session, id string) (is bool, err error) {
	err = l.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM entry WHERE session = ? AND id = ? AND `+kind+` = 'straggler')`, session, id).Scan(&is)
	return is, err
}

// Readable passes the entries of a session to do, in no order. Damaged entries are left out.
func (l *Library) Readable(ctx context.Context, session string, do func(transcript.Entry)) error {
	rows, err := l.db.Read().QueryContext(ctx, `SELECT data FROM entry WHERE session = ?`, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := record.ScanJSON[transcript.Entry](rows)
		if record.Damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		do(e)
	}
	return rows.Err()
}

// Kinds passes the id, the kind and the seq of each entry of a session to do, in order. The kind of a damaged entry is "".
func (l *Library) Kinds(ctx context.Context, session string, do func(id, kind string, seq int64)) error {
	rows, err := l.db.Read().QueryContext(ctx, `SELECT id, seq, coalesce(`+kind+`, '') FROM entry WHERE session = ? ORDER BY seq`, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, kind string
		var seq int64
		if err := rows.Scan(&id, &seq, &kind); err != nil {
			return err
		}
		do(id, kind, seq)
	}
	return rows.Err()
}

// Count counts the entries of all sessions.
func (l *Library) Count(ctx context.Context) (n int64, err error) {
	return n, l.db.Read().QueryRowContext(ctx, `SELECT count(*) FROM entry`).Scan(&n)
}

// Numbering is a query for a text that says which number the row of each entry has, for [store.DB.Compact]. The search knows entries by
// these numbers.
const Numbering = `SELECT count(*) || ' ' || coalesce(sum(rowid), 0) || ' ' || coalesce(sum((rowid % 65521) * (seq + 1)), 0) FROM entry`

// Rows passes the rows of a session to do, in no order and without the number of attachments. do must not use the transaction.
func Rows(ctx context.Context, q Queryer, session string, do func(Row)) error {
	rows, err := q.QueryContext(ctx, `SELECT id, seq, data FROM entry WHERE session = ?`, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r Row
		if err := rows.Scan(&r.ID, &r.Seq, &r.Data); err != nil {
			return err
		}
		do(r)
	}
	return rows.Err()
}

// At returns the data of the entry of a session with a seq, or "".
func At(ctx context.Context, q Queryer, session string, seq int64) (data string, err error) {
	return dataOf(q.QueryRowContext(ctx, `SELECT data FROM entry WHERE session = ? AND seq = ?`, session, seq))
}

// Stored returns the data of the entry with an id and a seq, or "".
func Stored(ctx context.Context, q Queryer, id string, seq int64) (data string, err error) {
	return dataOf(q.QueryRowContext(ctx, `SELECT data FROM entry WHERE id = ? AND seq = ?`, id, seq))
}

// ByID returns the entry of a session with an id; nil when there is none.
func (l *Library) ByID(ctx context.Context, session, id string) (*transcript.Entry, error) {
	return first(l.list(ctx, `SELECT data FROM entry WHERE session = ? AND id = ?`, session, id))
}

func dataOf(row *sql.Row) (data string, err error) {
	err = row.Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return data, err
}

// IDs returns the ids of the entries of a session before a seq.
func (l *Library) IDs(ctx context.Context, session string, before int64) ([]string, error) {
	return record.Query(ctx, l.db.Read(), record.ScanText, `SELECT id FROM entry WHERE session = ? AND seq < ?`, session, before)
}

// Save stores entries of a session, new and changed.
func Save(ctx context.Context, tx *sql.Tx, session string, changes []transcript.Change) error {
	if len(changes) == 0 {
		return nil
	}
	upsert, err := tx.PrepareContext(ctx, `INSERT INTO entry (id, session, seq, data, attachments) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, attachments = excluded.attachments`)
	if err != nil {
		return err
	}
	defer upsert.Close()
	for _, c := range changes {
		r := RowOf(c.Entry)
		if _, err := upsert.ExecContext(ctx, r.ID, session, r.Seq, r.Data, r.Attachments); err != nil {
			return err
		}
	}
	return nil
}

// Replace stores entries in the place of the entries that older rules have made. A place, which is a seq of the session, keeps its row, since
// a search orders by rows.
func Replace(ctx context.Context, tx *sql.Tx, session string, list []Row) error {
	for _, r := range list {
		_, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE id = ? AND (session <> ? OR seq <> ?)`, r.ID, session, r.Seq)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `UPDATE entry SET id = ?, data = ?, attachments = ? WHERE session = ? AND seq = ?`, r.ID, r.Data, r.Attachments, session, r.Seq)
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
		if _, err := tx.ExecContext(ctx, `INSERT INTO entry (id, session, seq, data, attachments) VALUES (?, ?, ?, ?, ?)`, r.ID, session, r.Seq, r.Data, r.Attachments); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes entries by their ids.
func Remove(ctx context.Context, tx *sql.Tx, ids []string) error {
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// eraseAtOnce is the number of entries that one transaction erases. Entries are longer than frames.
const eraseAtOnce = 50

// Erase erases the entries of a session, in small transactions. A trigger removes them from the index of the search.
func (l *Library) Erase(ctx context.Context, session string) error {
	for more := true; more; {
		err := l.db.Write(ctx, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE session = ?1 LIMIT ?2)`, session, eraseAtOnce)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			more = n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// imported selects the entries of an imported history: those without a turn of ours. Lines of ours have no turn either.
const imported = `coalesce(` + kind + `, '') NOT IN ('divider', 'notice', 'request')
	AND CASE WHEN json_valid(data) THEN coalesce(json_extract(data, '$.turn'), '') ELSE '' END = ''`

// HasImported reports whether a session has entries of an imported history.
func (l *Library) HasImported(ctx context.Context, session string) (has bool, err error) {
	err = l.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM entry WHERE session = ? AND `+imported+`)`, session).Scan(&has)
	return has, err
}

// RemoveImported removes the entries of an imported history of a session, from a seq and before another. Without such entries nothing is
// written, since a start on a full disk writes nothing.
func (l *Library) RemoveImported(ctx context.Context, session string, from, before int64) error {
	ids, err := record.Query(ctx, l.db.Read(), record.ScanText, `SELECT id FROM entry WHERE session = ? AND seq >= ? AND seq < ? AND `+imported, session, from, before)
	if err != nil || len(ids) == 0 {
		return err
	}
	return l.db.Write(ctx, func(tx *sql.Tx) error { return Remove(ctx, tx, ids) })
}
