// Package journal hides how the frames of conversations are stored: their numbers and checksums, their compression, the large frames in
// files, and the difference between a damaged frame and a frame that cannot be read for the moment. The package owns the table frame and
// knows no conversation: other packages read the content of frames.
package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/store"
)

// Direction is whose word a frame is.
type Direction string

// The directions of frames.
const (
	In   Direction = "in"   // from the agent, as the message came
	Out  Direction = "out"  // to the agent, as the message went
	Note Direction = "note" // ours: a start, an exit, the beginning of a turn, and whatever else the wire does not tell
)

// Frame is a row of a session's journal. N counts 1, 2, 3… within the session. The whole transcript can be computed from the frames alone,
// in order.
type Frame struct {
	N          int64
	Generation int64 // which life of the agent's process
	At         time.Time
	Dir        Direction
	Data       []byte // a JSON message, secrets redacted
}

// The errors of frames that are damaged. A DamagedError wraps them.
var (
	ErrGap      = errors.New("frames are missing")
	ErrChecksum = errors.New("its checksum does not fit")
	ErrUnproven = errors.New("it has no checksum, and is no longer JSON") // a frame of before the checksums, see [Stored.Unproven]
)

// DamagedError is the error for a frame that can never be read again.
type DamagedError struct {
	N   int64 // of the frame
	Err error
}

func (d *DamagedError) Error() string { return fmt.Sprintf("frame %d: %s", d.N, d.Err) }
func (d *DamagedError) Unwrap() error { return d.Err }

// Part is the number of frames that are read at once: a slow reader must not keep the WAL from being checkpointed.
const Part = 512

// Journal is the journals of all sessions in a database.
type Journal struct{ db *store.DB }

// Of returns the journals that db has.
func Of(db *store.DB) Journal { return Journal{db} }

// Append adds frames to a session's journal, in the caller's transaction. The number of a frame is its key: adding a frame twice is an
// error, never a repeat.
func Append(ctx context.Context, tx *sql.Tx, session string, frames []Stored) error {
	if len(frames) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO frame (session, `+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, f := range frames {
		if _, err := insert.ExecContext(ctx, session, f.N, f.Generation, f.At.UnixMilli(), string(f.Dir), f.encoding, f.payload, f.checksum()); err != nil {
			return err
		}
	}
	return nil
}

// Last returns the number of a session's newest frame; 0 = there is none.
func (j Journal) Last(ctx context.Context, session string) (n int64, err error) {
	err = j.db.Read().QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM frame WHERE session = ?`, session).Scan(&n)
	return n, err
}

// Total returns how many frames there are in the journals of sessions, which is a query for their ids. Those of a session are numbered without
// a gap; to count them would be to read all journals.
func (j Journal) Total(ctx context.Context, sessions string) (n int64, err error) {
	err = j.db.Read().QueryRowContext(ctx, `SELECT coalesce(sum((SELECT max(n) FROM frame f WHERE f.session = s.id)), 0) FROM (`+sessions+`) s`).Scan(&n)
	return n, err
}

// Queryer runs queries: the readers of the database, or a transaction that writes.
type Queryer interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func each(ctx context.Context, q Queryer, do func(Stored) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		f, err := scan(rows)
		if err != nil {
			return err
		}
		if err := do(f); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// Stored passes at most limit frames after a number to do, in their stored form and in order. Stored returns the number of the last frame.
func (j Journal) Stored(ctx context.Context, q Queryer, session string, after int64, limit int, do func(Stored) error) (last int64, err error) {
	last = after
	err = each(ctx, q, func(f Stored) error {
		last = f.N
		return do(f)
	}, `SELECT `+columns+` FROM frame WHERE session = ? AND n > ? ORDER BY n LIMIT ?`, session, after, limit)
	return last, err
}

// After hands over at most limit frames after a number, in order. A frame that is missing or damaged is an error.
func (j Journal) After(ctx context.Context, q Queryer, session string, after int64, limit int, do func(Frame)) (last int64, err error) {
	want := after + 1
	return j.Stored(ctx, q, session, after, limit, func(f Stored) error {
		if f.N != want {
			return &DamagedError{want, ErrGap}
		}
		want++
		if err := j.Decode(&f); err != nil {
			return err
		}
		do(f.Frame)
		return nil
	})
}

// all passes a whole journal to do, in stored form and in order.
func (j Journal) all(ctx context.Context, session string, do func(Stored) error) error {
	for after := int64(0); ; {
		last, err := j.Stored(ctx, j.db.Read(), session, after, Part, do)
		if err != nil || last == after {
			return err
		}
		after = last
	}
}

// Each passes the frames of a session to do, in order, and ends at a damaged frame. Missing frames are skipped: the later frames are still
// useful.
func (j Journal) Each(ctx context.Context, session string, do func(Frame)) error {
	return j.all(ctx, session, func(f Stored) error {
		if err := j.Decode(&f); err != nil {
			return err
		}
		do(f.Frame)
		return nil
	})
}

// Readable passes each readable frame of a session to do, in order. lost is the error of the first frame that is unreadable or missing,
// also at the journal's end, since a journal may be erased during the reading.
func (j Journal) Readable(ctx context.Context, session string, do func(Frame)) (lost, err error) {
	newest, err := j.Last(ctx, session)
	if err != nil {
		return nil, err
	}
	want := int64(1)
	err = j.all(ctx, session, func(f Stored) error {
		if f.N != want {
			lost = cmp.Or[error](lost, &DamagedError{want, ErrGap})
		}
		want = f.N + 1
		if err := j.Decode(&f); err != nil {
			lost = cmp.Or(lost, err)
			return nil
		}
		do(f.Frame)
		return nil
	})
	if err == nil && want <= newest {
		lost = cmp.Or[error](lost, &DamagedError{want, ErrGap})
	}
	return lost, err
}

// Frame returns a frame of a session; found is false when there is none.
func (j Journal) Frame(ctx context.Context, session string, n int64) (f Frame, found bool, err error) {
	err = each(ctx, j.db.Read(), func(s Stored) error {
		err := j.Decode(&s)
		f, found = s.Frame, true
		return err
	}, `SELECT `+columns+` FROM frame WHERE session = ? AND n = ?`, session, n)
	return f, found, err
}

// Between hands over the frames of a direction with the numbers from and to, and between them.
func (j Journal) Between(ctx context.Context, session string, from, to int64, dir Direction, do func(Frame)) error {
	for ; from <= to; from += Part {
		err := each(ctx, j.db.Read(), func(f Stored) error {
			if err := j.Decode(&f); err != nil {
				return err
			}
			do(f.Frame)
			return nil
		}, `SELECT `+columns+` FROM frame WHERE session = ? AND n BETWEEN ? AND ? AND dir = ? ORDER BY n`, session, from, min(from+Part-1, to), string(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

// Notes passes the newest notes before a number to do, the newest first and at most [Part]. do gets the error of an unreadable note.
func (j Journal) Notes(ctx context.Context, session string, before int64, do func(Frame, error)) error {
	return each(ctx, j.db.Read(), func(f Stored) error {
		err := j.Decode(&f)
		do(f.Frame, err)
		return nil
	}, `SELECT `+columns+` FROM frame WHERE session = ? AND dir = 'note' AND n < ? ORDER BY n DESC LIMIT ?`, session, before, Part)
}

// ShortNotes passes all notes of a session to do, in order, except notes in files of their own. do gets the error of an unreadable note.
func (j Journal) ShortNotes(ctx context.Context, session string, do func(Frame, error)) error {
	return each(ctx, j.db.Read(), func(f Stored) error {
		err := j.Decode(&f)
		do(f.Frame, err)
		return nil
	}, `SELECT `+columns+` FROM frame WHERE session = ? AND dir = 'note' AND encoding = 'raw' ORDER BY n`, session)
}

// LastNote returns the time of the newest note whose text begins with begin and does not contain without; the zero time when there is none.
// Notes in files of their own are skipped.
func (j Journal) LastNote(ctx context.Context, session, begin, without string) time.Time {
	var at int64
	err := j.db.Read().QueryRowContext(ctx, `SELECT at FROM frame WHERE session = ?1 AND dir = 'note'
		AND substr(CAST(payload AS TEXT), 1, length(?2)) = ?2 AND (?3 = '' OR instr(CAST(payload AS TEXT), ?3) = 0)
		ORDER BY n DESC LIMIT 1`, session, begin, without).Scan(&at)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

// Sent returns the first messages to the agent in the newest generation, at most limit of them. Those that cannot be read are left out.
func (j Journal) Sent(ctx context.Context, session string, limit int) (frames []Frame, err error) {
	err = each(ctx, j.db.Read(), func(f Stored) error {
		if j.Decode(&f) == nil {
			frames = append(frames, f.Frame)
		}
		return nil
	}, `SELECT `+columns+` FROM frame
		WHERE session = ?1 AND dir = 'out' AND generation = (SELECT generation FROM frame WHERE session = ?1 ORDER BY n DESC LIMIT 1) ORDER BY n LIMIT ?2`, session, limit)
	return frames, err
}

// Names reports whether a frame lies in the blob with this hash.
func (j Journal) Names(ctx context.Context, sha string) (is bool, err error) {
	err = j.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM frame WHERE encoding = 'blob' AND payload = ?)`, []byte(sha)).Scan(&is)
	return is, err
}

// Copy copies the messages of a session up to a number into the journal of another session, without our notes, and returns their number.
// The first session may be erased meanwhile, so that fewer are copied.
func (j Journal) Copy(ctx context.Context, from, to string, until int64) (copied int, err error) {
	for after := int64(0); after < until; after += Part {
		err := j.db.Write(ctx, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `INSERT INTO frame (session, `+columns+`)
				SELECT ?, `+columns+` FROM frame WHERE session = ? AND n > ? AND n <= ? AND dir <> 'note'`, to, from, after, min(after+Part, until))
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			copied += int(n)
			return err
		})
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// eraseAtOnce is the number of frames that one transaction erases: each frame has less than 16 KiB in the table.
const eraseAtOnce = 500

// Erase erases the journal of a session, in small transactions.
func (j Journal) Erase(ctx context.Context, session string) error {
	for more := true; more; {
		err := j.db.Write(ctx, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `DELETE FROM frame WHERE session = ?1 AND n IN (SELECT n FROM frame WHERE session = ?1 ORDER BY n LIMIT ?2)`, session, eraseAtOnce)
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

// Range says which frames [Journal.Range] hands over.
type Range struct {
	Low, High  int64     // the numbers, both among them
	Dir        Direction // "" = both directions
	Notes      bool      // our notes beside those
	Generation int64     // the oldest
	Newest     bool      // the newest first
}

// Range passes frames to do in their stored form. do ends the reading by returning false.
func (j Journal) Range(ctx context.Context, session string, r Range, do func(Stored) (more bool)) error {
	order := "ASC"
	if r.Newest {
		order = "DESC"
	}
	err := each(ctx, j.db.Read(), func(f Stored) error {
		if !do(f) {
			return errEnough
		}
		return nil
	}, `SELECT `+columns+` FROM frame WHERE session = ? AND n BETWEEN ? AND ? AND (dir = ? OR ? = '' AND dir <> 'note' OR ? AND dir = 'note') AND generation >= ?
		ORDER BY n `+order, session, r.Low, r.High, string(r.Dir), string(r.Dir), r.Notes, r.Generation)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough")
