package export

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/session"
)

// recordedFrame is a line of frames.jsonl.
type recordedFrame struct {
	N          int64             `json:"n"`
	Generation int64             `json:"generation"`
	AtMs       int64             `json:"atMs"` // since the first frame
	Dir        journal.Direction `json:"dir"`
	Data       json.RawMessage   `json:"data"`
}

// writeRecording writes everything readable of the journal as a zip archive, and returns what is lost. The head follows the frames, because
// only the frames tell whether the recording is whole.
func (c conversation) writeRecording(ctx context.Context, w io.Writer) (lost, err error) {
	z := zip.NewWriter(w)
	damaged, err := c.recordFrames(ctx, z)
	gone, kept := c.recordBlobs(ctx, z)
	lost = errors.Join(damaged, gone)
	return lost, errors.Join(err, c.recordHead(lost, z), kept, z.Close())
}

// recordHead writes session.json: the session, and what is lost.
func (c conversation) recordHead(lost error, z *zip.Writer) error {
	head, err := z.CreateHeader(&zip.FileHeader{Name: "session.json", Method: zip.Deflate, Modified: c.session.CreatedAt.Time})
	if err != nil {
		return err
	}
	return json.NewEncoder(cleaner{head, c.secret}).Encode(struct {
		Format  string          `json:"format"`
		Damage  string          `json:"damage,omitempty"`
		Unknown string          `json:"unknownSecrets,omitempty"`
		Session session.Session `json:"session"`
	}{"deskhand.recording/1", textOf(lost), textOf(c.unknown), c.head()})
}

// recordFrames writes frames.jsonl: the readable frames of the journal.
func (c conversation) recordFrames(ctx context.Context, z *zip.Writer) (lost, err error) {
	out, err := z.CreateHeader(&zip.FileHeader{Name: "frames.jsonl", Method: zip.Deflate, Modified: c.session.UpdatedAt.Time})
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(cleaner{out, c.secret})
	enc.SetEscapeHTML(false)
	var first time.Time
	var failed error
	lost, err = c.journal.Readable(ctx, c.session.ID, func(f journal.Frame) {
		if first.IsZero() {
			first = f.At
		}
		if failed == nil {
			failed = enc.Encode(recordedFrame{f.N, f.Generation, f.At.Sub(first).Milliseconds(), f.Dir, record.AsJSON(withoutAccount(f))})
		}
	})
	return lost, errors.Join(err, failed)
}

// recordBlobs writes the bytes of attachments below blobs, each under its SHA-256.
func (c conversation) recordBlobs(ctx context.Context, z *zip.Writer) (lost, err error) {
	list, err := attachments.Of(ctx, c.deps.Store, c.session.ID)
	if err != nil {
		return nil, err
	}
	return c.eachBlob(list, func(sha string, data []byte) error {
		part, err := z.CreateHeader(&zip.FileHeader{Name: "blobs/" + sha, Method: zip.Deflate, Modified: c.session.UpdatedAt.Time})
		if err != nil {
			return err
		}
		_, err = part.Write(data)
		return err
	})
}

// withoutAccount returns the message of a frame. Of a message about the account of a person only the method is left: a recording is for others,
// who need no e-mail address.
func withoutAccount(f journal.Frame) []byte {
	if f.Dir != journal.In || !bytes.Contains(f.Data, []byte("status_update")) {
		return f.Data
	}
	e, err := acp.Peek(f.Data)
	if err != nil || e.Method() != acp.MethodAccountUpdate && e.Method() != acp.MethodStatusUpdate {
		return f.Data
	}
	return record.JSON(map[string]any{"jsonrpc": "2.0", "method": e.Method(), "params": map[string]any{}})
}
