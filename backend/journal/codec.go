package journal

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"time"

	"deskhand/backend/store"
)

// The forms in which a frame's payload is stored, by its size. Decision 22 has the figures.
const (
	blobFrom = 16 << 10 // in a file of its own, compressed, by its sha256: a repeated file is stored once
	packFrom = 1 << 10  // compressed: the page size of the database outweighs the bytes below
)

const (
	encodedRaw  = "raw"
	encodedZstd = "zstd"
	encodedBlob = "blob"
)

// Stored is a frame in its stored form. Its Data is empty before [Journal.Decode].
type Stored struct {
	Frame

	encoding string
	payload  []byte
	sum      sql.NullInt64 // the checksum; frames of before migration 20 have none
}

// columns are the columns of a frame in the order of scan.
const columns = "n, generation, at, dir, encoding, payload, sum"

// checksum returns the CRC-32C of the stored fields of a frame but its session: a fork has the same frames.
func (f *Stored) checksum() int64 {
	var head [40]byte
	text := binary.BigEndian.AppendUint64(head[:0], uint64(f.N))         //nolint:gosec // only summed up
	text = binary.BigEndian.AppendUint64(text, uint64(f.Generation))     //nolint:gosec // the same
	text = binary.BigEndian.AppendUint64(text, uint64(f.At.UnixMilli())) //nolint:gosec // the same
	text = append(append(append(text, f.Dir...), 0), f.encoding...)
	table := crc32.MakeTable(crc32.Castagnoli) // made once
	return int64(crc32.Update(crc32.Checksum(text, table), table, f.payload))
}

func scan(s *sql.Rows) (f Stored, err error) {
	var at int64
	err = s.Scan(&f.N, &f.Generation, &at, &f.Dir, &f.encoding, &f.payload, &f.sum)
	f.At = time.UnixMilli(at).UTC()
	return f, err
}

// Unproven reports whether a message from before the checksums is no longer JSON although it began as JSON: no checksum proves that the
// agent wrote the message so. Such a frame must not replace a transcript. Compressed messages and files are checked when they are unpacked.
func (f *Stored) Unproven() bool {
	return !f.sum.Valid && f.encoding == encodedRaw && bytes.HasPrefix(bytes.TrimLeft(f.payload, " \t"), []byte("{")) && !json.Valid(f.payload)
}

// HasBlobs reports whether some of the frames go to the blob store.
func HasBlobs(frames []Frame) bool {
	for _, f := range frames {
		if len(f.Data) >= blobFrom {
			return true
		}
	}
	return false
}

// Short returns the stored form of a frame below 1 KiB, which is the frame as it is.
func Short(f Frame) Stored { return Stored{Frame: f, encoding: encodedRaw, payload: f.Data} }

// Encode returns the stored form of frames, and writes the large ones into the blob store. Our own notes stay as they are: they are searched by
// their text.
func (j Journal) Encode(frames []Frame) ([]Stored, error) {
	list := make([]Stored, len(frames))
	for i, f := range frames {
		list[i] = Short(f)
		switch {
		case len(f.Data) >= blobFrom:
			sha, err := j.db.Blobs.Put(f.Data)
			if err != nil {
				return nil, err
			}
			list[i].encoding, list[i].payload = encodedBlob, []byte(sha)
		case len(f.Data) >= packFrom && f.Dir != Note:
			short, err := j.db.Pack(f.Data)
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

// Decode reads the message of a stored frame into its Data. The error is a *[DamagedError] only when the message is gone or has changed: a
// message that cannot be read now, for lack of a descriptor or because of a faulty disk, can be read later.
func (j Journal) Decode(f *Stored) (err error) {
	if f.sum.Valid && f.sum.Int64 != f.checksum() {
		return &DamagedError{f.N, ErrChecksum}
	}
	switch f.encoding {
	case encodedBlob:
		f.Data, err = j.db.Blobs.Get(string(f.payload))
	case encodedZstd:
		f.Data, err = j.db.Unpack(f.payload)
	default:
		f.Data = f.payload
	}
	if err == nil && f.Dir == Note && !json.Valid(f.Data) { // an agent may say anything, but we write JSON
		err = store.ErrDamaged
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDamaged):
		return &DamagedError{f.N, err}
	case err != nil:
		return fmt.Errorf("frame %d: %w", f.N, err)
	}
	return nil
}

// Blob returns the sha256 of the blob that the message lies in; "" for a message in the table.
func (f *Stored) Blob() string {
	if f.encoding != encodedBlob {
		return ""
	}
	return string(f.payload)
}

// Checked reports whether the frame has a checksum.
func (f *Stored) Checked() bool { return f.sum.Valid }
