package session

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"deskhand/backend/store"
)

// How the payload of a frame is kept, by its size. Decision 22 has the figures.
const (
	blobFrom = 16 << 10 // in a file of its own, compressed, by its sha256: the same file read twice is kept once
	packFrom = 1 << 10  // compressed: the page size of the database makes more of it than the bytes do
)

const (
	encodedRaw  = "raw"
	encodedZstd = "zstd"
	encodedBlob = "blob"
)

// errGap means that frames of a journal are missing.
var errGap = errors.New("frames are missing")

// errChecksum means that a frame is not what was stored; errUnproven that a message of an old journal, which has no checksums, looks as if it
// were not.
var (
	errChecksum = errors.New("its checksum does not fit")
	errUnproven = errors.New("it has no checksum, and is no longer JSON")
)

// damage is what keeps a frame from being read for good.
type damage struct {
	n   int64 // of the frame
	err error
}

func (d *damage) Error() string { return fmt.Sprintf("frame %d: %s", d.n, d.err) }
func (d *damage) Unwrap() error { return d.err }

// storedFrame is a frame as the database has it.
type storedFrame struct {
	frame
	encoding string
	payload  []byte
	sum      sql.NullInt64 // the checksum; frames of before migration 20 have none
}

// frameColumns is a frame as scanFrame takes it.
const frameColumns = "n, generation, at, dir, encoding, payload, sum"

// checksum is the CRC-32C of all that is stored of a frame but its session: a fork has the same frames.
func (f *storedFrame) checksum() int64 {
	var head [40]byte
	text := binary.BigEndian.AppendUint64(head[:0], uint64(f.N))     //nolint:gosec // only summed up
	text = binary.BigEndian.AppendUint64(text, uint64(f.Generation)) //nolint:gosec // the same
	text = binary.BigEndian.AppendUint64(text, uint64(millis(f.At))) //nolint:gosec // the same
	text = append(append(append(text, f.Dir...), 0), f.encoding...)
	table := crc32.MakeTable(crc32.Castagnoli) // made once
	return int64(crc32.Update(crc32.Checksum(text, table), table, f.payload))
}

func scanFrame(s scanner) (f storedFrame, err error) {
	var at int64
	err = s.Scan(&f.N, &f.Generation, &at, &f.Dir, &f.encoding, &f.payload, &f.sum)
	f.At = fromMillis(at).Time
	return f, err
}

// unproven tells of a message that its own text speaks against: JSON that cannot be read, without a checksum which says that the agent wrote
// it so. It must not be what replaces a transcript. Compressed messages and files are checked when they are unpacked.
func (f *storedFrame) unproven() bool {
	return !f.sum.Valid && f.encoding == encodedRaw && bytes.HasPrefix(bytes.TrimLeft(f.payload, " \t"), []byte("{")) && !json.Valid(f.payload)
}

// hasBlobs tells that some of the frames go to the blob store.
func hasBlobs(frames []frame) bool {
	for _, f := range frames {
		if len(f.Data) >= blobFrom {
			return true
		}
	}
	return false
}

// asItIs is how a frame of no great size is kept.
func asItIs(f frame) storedFrame { return storedFrame{frame: f, encoding: encodedRaw, payload: f.Data} }

// encoded puts frames into the shape in which they are kept. Our own notes stay as they are: they are looked through by what they say.
func encoded(db *store.DB, frames []frame) ([]storedFrame, error) {
	list := make([]storedFrame, len(frames))
	for i, f := range frames {
		list[i] = asItIs(f)
		switch {
		case len(f.Data) >= blobFrom:
			sha, err := db.Blobs.Put(f.Data)
			if err != nil {
				return nil, err
			}
			list[i].encoding, list[i].payload = encodedBlob, []byte(sha)
		case len(f.Data) >= packFrom && f.Dir != noted:
			short, err := db.Pack(f.Data)
			if err != nil {
				return nil, err
			}
			if len(short) < len(f.Data) {
				list[i].encoding, list[i].payload = encodedZstd, short
			}
		}
	}
	return list, nil
}

// decode gives back the message that was kept. Only what is gone, or is not what it was, is damage: what cannot be read now, for want of a
// descriptor or of a disk that works, can be later.
func (f *storedFrame) decode(db *store.DB) (err error) {
	if f.sum.Valid && f.sum.Int64 != f.checksum() {
		return &damage{f.N, errChecksum}
	}
	switch f.encoding {
	case encodedBlob:
		f.Data, err = db.Blobs.Get(string(f.payload))
	case encodedZstd:
		f.Data, err = db.Unpack(f.payload)
	default:
		f.Data = f.payload
	}
	if err == nil && f.Dir == noted && !json.Valid(f.Data) { // an agent may say anything, but we do not
		err = store.ErrDamaged
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDamaged):
		return &damage{f.N, err}
	case err != nil:
		return fmt.Errorf("frame %d: %w", f.N, err)
	}
	return nil
}

// saveFrames adds to the journal. The number of a frame is its key: the same frame twice is an error, never a repeat.
func saveFrames(ctx context.Context, tx *sql.Tx, session string, frames []storedFrame) error {
	if len(frames) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO frame (session, `+frameColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, f := range frames {
		if _, err := insert.ExecContext(ctx, session, f.N, f.Generation, millis(f.At), string(f.Dir), f.encoding, f.payload, f.checksum()); err != nil {
			return err
		}
	}
	return nil
}

// querier is what a query can be asked of: readers, or a transaction that writes.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// journalPart is how many frames are read in one go: a reader that takes its time must not keep the WAL from being checkpointed.
const journalPart = 512

// storedFrames hands over a part of a journal as it is kept, in order, and tells the number of the last.
func storedFrames(ctx context.Context, q querier, session string, after int64, limit int, each func(storedFrame) error) (last int64, err error) {
	rows, err := q.QueryContext(ctx, `SELECT `+frameColumns+` FROM frame WHERE session = ? AND n > ? ORDER BY n LIMIT ?`, session, after, limit)
	if err != nil {
		return after, err
	}
	defer rows.Close()
	last = after
	for rows.Next() {
		f, err := scanFrame(rows)
		if err != nil {
			return last, err
		}
		last = f.N
		if err := each(f); err != nil {
			return last, err
		}
	}
	return last, rows.Err()
}

// framesAfter hands over a part of a journal. A frame that is missing or damaged is an error.
func framesAfter(ctx context.Context, q querier, db *store.DB, session string, after int64, limit int, each func(frame)) (last int64, err error) {
	want := after + 1
	return storedFrames(ctx, q, session, after, limit, func(f storedFrame) error {
		if f.N != want {
			return &damage{want, errGap}
		}
		want++
		if err := f.decode(db); err != nil {
			return err
		}
		each(f.frame)
		return nil
	})
}

// whole hands over all of a journal as it is kept, in order.
func whole(ctx context.Context, db *store.DB, session string, each func(storedFrame) error) error {
	for after := int64(0); ; {
		last, err := storedFrames(ctx, db.Read(), session, after, journalPart, each)
		if err != nil || last == after {
			return err
		}
		after = last
	}
}

// whatIsThere hands over each frame of a journal that can be read, in order, and tells of the first that cannot, or is missing: at its end,
// too, since it may be erased while it is read.
func whatIsThere(ctx context.Context, db *store.DB, session string, each func(frame)) (lost, err error) {
	newest, want := int64(0), int64(1)
	if err := db.Read().QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM frame WHERE session = ?`, session).Scan(&newest); err != nil {
		return nil, err
	}
	err = whole(ctx, db, session, func(f storedFrame) error {
		if f.N != want {
			lost = cmp.Or[error](lost, &damage{want, errGap})
		}
		want = f.N + 1
		if err := f.decode(db); err != nil {
			lost = cmp.Or(lost, err)
			return nil
		}
		each(f.frame)
		return nil
	})
	if err == nil && want <= newest {
		lost = cmp.Or[error](lost, &damage{want, errGap})
	}
	return lost, err
}

// frames reads the whole journal of a session in order and hands each frame over. Frames that are missing are left out: what is there
// is still wanted.
func frames(ctx context.Context, db *store.DB, session string, each func(frame)) error {
	return whole(ctx, db, session, func(f storedFrame) error {
		if err := f.decode(db); err != nil {
			return err
		}
		each(f.frame)
		return nil
	})
}
