package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

// fixture is a database with the sessions "a" and "b".
type fixture struct {
	t  *testing.T
	db *store.DB
	journal.Journal

	dir string // of the data
}

func open(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	db := storetest.Open(t, dir)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close of the database: got %v, want no error", err)
		}
	})
	f := &fixture{t: t, db: db, Journal: journal.Of(db), dir: dir}
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/w', 0, 0, 0, 0)`)
	for _, id := range []string{"a", "b"} {
		f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
			generation, facts, exit, created_at, updated_at, archived_at)
			VALUES (?, 'local', 'w', '/w', 'demo', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 0, 0, 0)`, id)
	}
	return f
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	err := f.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(context.Background(), text, args...)
		return err
	})
	if err != nil {
		f.t.Fatalf("%s: got %v, want no error", text, err)
	}
}

// add appends frames to the session "a".
func (f *fixture) add(frames ...journal.Frame) {
	f.t.Helper()
	stored, err := f.Encode(frames)
	if err != nil {
		f.t.Fatalf("Encode: got %v, want no error", err)
	}
	if err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error { return journal.Append(f.t.Context(), tx, "a", stored) }); err != nil {
		f.t.Fatalf("Append: got %v, want no error", err)
	}
}

// noise is a JSON text of about so many bytes that does not become short by compression.
func noise(size int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	var b strings.Builder
	b.WriteByte('"')
	for b.Len() < size {
		b.WriteByte(byte('a' + r.IntN(26)))
	}
	b.WriteByte('"')
	return []byte(b.String())
}

func message(n int64, dir journal.Direction, data []byte) journal.Frame {
	return journal.Frame{N: n, Generation: 1 + n/10, At: time.UnixMilli(1_700_000_000_000 + n).UTC(), Dir: dir, Data: data}
}

func (f *fixture) readable(session string) (numbers []int64, lost error) {
	f.t.Helper()
	lost, err := f.Readable(f.t.Context(), session, func(fr journal.Frame) { numbers = append(numbers, fr.N) })
	if err != nil {
		f.t.Fatalf("Readable: got error %v, want none", err)
	}
	return numbers, lost
}

// Frames of every stored form come back byte for byte, in every direction.
func TestFramesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	f := open(t)
	var want []journal.Frame
	for i, data := range [][]byte{
		[]byte(`{}`), []byte("no JSON at all \x00\xff"), bytes.Repeat([]byte(`"x"`), 600), noise(1500), noise(16 << 10), noise(200 << 10), {},
	} {
		want = append(want, message(int64(i+1), journal.In, data))
	}
	want = append(want, message(8, journal.Out, []byte(`{"method":"m"}`)), message(9, journal.Note, append(append([]byte(`{"note":"n","text":`), noise(3000)...), '}')))
	if !journal.HasBlobs(want) {
		t.Error("HasBlobs of frames over 16 KiB: got false, want true")
	}
	f.add(want...)
	var got []journal.Frame
	if err := f.Each(t.Context(), "a", func(fr journal.Frame) { got = append(got, fr) }); err != nil {
		t.Fatalf("Each: got %v, want no error", err)
	}
	if len(got) != len(want) {
		t.Fatalf("Each: got %d frames, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := got[i], want[i]; g.N != w.N || g.Generation != w.Generation || !g.At.Equal(w.At) || g.Dir != w.Dir || !bytes.Equal(g.Data, w.Data) {
			t.Errorf("frame %d: got %d bytes of direction %s at %v, want %d of %s at %v", w.N, len(g.Data), g.Dir, g.At, len(w.Data), w.Dir, w.At)
		}
	}
	if n, err := f.Last(t.Context(), "a"); err != nil || n != 9 {
		t.Errorf("Last: got %d, %v, want 9", n, err)
	}
	if n, err := f.Last(t.Context(), "nobody"); err != nil || n != 0 {
		t.Errorf("Last of a session without frames: got %d, %v, want 0", n, err)
	}
	if n, err := f.Total(t.Context(), `SELECT id FROM session`); err != nil || n != 9 {
		t.Errorf("Total: got %d, %v, want 9", n, err)
	}
	if fr, found, err := f.Frame(t.Context(), "a", 6); err != nil || !found || !bytes.Equal(fr.Data, want[5].Data) {
		t.Errorf("Frame 6: got %d bytes, found %v, %v, want %d bytes", len(fr.Data), found, err, len(want[5].Data))
	}
	if _, found, err := f.Frame(t.Context(), "a", 10); err != nil || found {
		t.Errorf("Frame 10: got found %v, %v, want none", found, err)
	}
}

// The same frame twice is an error: it would be a second truth.
func TestAppendRefusesANumberTwice(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.add(message(1, journal.In, []byte(`1`)))
	stored, err := f.Encode([]journal.Frame{message(1, journal.In, []byte(`2`))})
	if err != nil {
		t.Fatalf("Encode: got %v, want no error", err)
	}
	if err := f.db.Write(t.Context(), func(tx *sql.Tx) error { return journal.Append(t.Context(), tx, "a", stored) }); err == nil {
		t.Error("Append of frame 1 a second time: got no error, want one")
	}
}

// Each kind of damage is told for what it is, and the rest is still handed over.
func TestDamageIsToldAndTheRestIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(f *fixture)
		want error
		left string
	}{
		"a gap":               {func(f *fixture) { f.exec(`DELETE FROM frame WHERE n = 2`) }, journal.ErrGap, "[1 3 4 5]"},
		"a changed letter":    {func(f *fixture) { f.exec(`UPDATE frame SET payload = CAST('{"a":2}' AS BLOB) WHERE n = 2`) }, journal.ErrChecksum, "[1 3 4 5]"},
		"another time":        {func(f *fixture) { f.exec(`UPDATE frame SET at = at + 1 WHERE n = 2`) }, journal.ErrChecksum, "[1 3 4 5]"},
		"a lost file":         {func(f *fixture) { f.blobs(func(file string) error { return os.Remove(file) }) }, os.ErrNotExist, "[1 2 3 5]"},
		"a cut file":          {func(f *fixture) { f.blobs(func(file string) error { return os.Truncate(file, 10) }) }, store.ErrDamaged, "[1 2 3 5]"},
		"a note that is none": {func(f *fixture) { f.exec(`UPDATE frame SET payload = CAST('{' AS BLOB), sum = NULL WHERE n = 5`) }, store.ErrDamaged, "[1 2 3 4]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.add(message(1, journal.In, []byte(`{}`)), message(2, journal.In, []byte(`{"a":1}`)), message(3, journal.Out, noise(1500)),
				message(4, journal.In, noise(20<<10)), message(5, journal.Note, []byte(`{"note":"n"}`)))
			c.harm(f)
			numbers, lost := f.readable("a")
			damage, is := errors.AsType[*journal.DamagedError](lost)
			if !is || !errors.Is(lost, c.want) || fmt.Sprint(numbers) != c.left {
				t.Errorf("Readable after %s: got %v and %v, want %s and a Damage of %v", name, numbers, lost, c.left, c.want)
			}
			if is && damage.N == 0 {
				t.Errorf("the damage of %s names no frame", name)
			}
		})
	}
}

func (f *fixture) blobs(do func(file string) error) {
	f.t.Helper()
	found := 0
	err := filepath.WalkDir(filepath.Join(f.dir, "blobs"), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		return do(file)
	})
	if err != nil || found != 1 {
		f.t.Fatalf("blobs: got %d files, %v, want 1", found, err)
	}
}

// A message of before the checksums that was JSON and is none any more proves nothing.
func TestUnprovenIsAMessageThatStoppedBeingJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{`{"a":1}`: false, `{"a":`: true, ` {"a"`: true, `no JSON`: false} {
		for _, checked := range []bool{true, false} {
			f := open(t)
			f.add(message(1, journal.In, []byte(text)))
			if !checked {
				f.exec(`UPDATE frame SET sum = NULL`)
			}
			_, err := f.Stored(t.Context(), f.db.Read(), "a", 0, 1, func(s journal.Stored) error {
				if got := s.Unproven(); got != (want && !checked) || s.Checked() != checked {
					t.Errorf("%q, checked %v: got unproven %v, checked %v, want %v", text, checked, got, s.Checked(), want && !checked)
				}
				return nil
			})
			if err != nil {
				t.Errorf("Stored: got %v, want no error", err)
			}
		}
	}
}

func TestNotesSentAndRangesAreThoseAskedFor(t *testing.T) {
	t.Parallel()
	f := open(t)
	var all []journal.Frame
	for n := int64(1); n <= 32; n++ {
		dir := []journal.Direction{journal.Note, journal.In, journal.Out}[n%3]
		all = append(all, message(n, dir, fmt.Appendf(nil, `{"note":"note.%d"}`, n)))
	}
	f.add(all...)
	list := func(do func(func(journal.Frame))) string {
		var numbers []int64
		do(func(fr journal.Frame) { numbers = append(numbers, fr.N) })
		return fmt.Sprint(numbers)
	}
	ctx := t.Context()
	for name, c := range map[string]struct{ got, want string }{
		"Notes before 12": {list(func(add func(journal.Frame)) {
			_ = f.Notes(ctx, "a", 12, func(fr journal.Frame, err error) {
				if err == nil {
					add(fr)
				}
			})
		}), "[9 6 3]"},
		"ShortNotes": {list(func(add func(journal.Frame)) {
			_ = f.ShortNotes(ctx, "a", func(fr journal.Frame, _ error) { add(fr) })
		}), "[3 6 9 12 15 18 21 24 27 30]"},
		"Between 4 and 11 from the agent": {list(func(add func(journal.Frame)) { _ = f.Between(ctx, "a", 4, 11, journal.In, add) }), "[4 7 10]"},
		"Range 4 to 9, newest first": {list(func(add func(journal.Frame)) {
			_ = f.Range(ctx, "a", journal.Range{Low: 4, High: 9, Newest: true}, func(s journal.Stored) bool { add(s.Frame); return true })
		}), "[8 7 5 4]"},
		"Range 4 to 9 with notes, until 7": {list(func(add func(journal.Frame)) {
			_ = f.Range(ctx, "a", journal.Range{Low: 4, High: 9, Notes: true}, func(s journal.Stored) bool { add(s.Frame); return s.N < 7 })
		}), "[4 5 6 7]"},
		"Range of a direction and a generation": {list(func(add func(journal.Frame)) {
			_ = f.Range(ctx, "a", journal.Range{Low: 1, High: 30, Dir: journal.Out, Generation: 3}, func(s journal.Stored) bool { add(s.Frame); return true })
		}), "[20 23 26 29]"},
		"Sent in the newest generation": {list(func(add func(journal.Frame)) {
			sent, _ := f.Sent(ctx, "a", 5)
			for _, fr := range sent {
				add(fr)
			}
		}), "[32]"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", name, c.got, c.want)
		}
	}
	if at := f.LastNote(ctx, "a", `{"note":"note.2`, ""); !at.Equal(all[26].At) {
		t.Errorf("LastNote of note.2…: got %v, want %v, the time of frame 27", at, all[26].At)
	}
	if at := f.LastNote(ctx, "a", `{"note":"note.2`, "27"); !at.Equal(all[23].At) {
		t.Errorf("LastNote of note.2… without 27: got %v, want %v, the time of frame 24", at, all[23].At)
	}
	if at := f.LastNote(ctx, "a", `{"note":"another`, ""); !at.IsZero() {
		t.Errorf("LastNote of a note that is not there: got %v, want the zero time", at)
	}
}

func TestCopyAndErase(t *testing.T) {
	t.Parallel()
	f := open(t)
	var all []journal.Frame
	for n := int64(1); n <= 1200; n++ {
		dir := journal.In
		if n%100 == 0 {
			dir = journal.Note
		}
		all = append(all, message(n, dir, fmt.Appendf(nil, `{"n":%d}`, n)))
	}
	f.add(all...)
	if n, err := f.Copy(t.Context(), "a", "b", 1100); err != nil || n != 1089 {
		t.Errorf("Copy of 1,100 frames with 11 notes: got %d, %v, want 1089", n, err)
	}
	if _, err := f.After(t.Context(), f.db.Read(), "b", 0, 100, func(journal.Frame) {}); !errors.Is(err, journal.ErrGap) {
		t.Errorf("After of a journal without its notes: got %v, want ErrGap", err)
	}
	if err := f.Erase(t.Context(), "a"); err != nil {
		t.Fatalf("Erase: got %v, want no error", err)
	}
	if a, _ := f.Last(t.Context(), "a"); a != 0 {
		t.Errorf("Last after Erase: got %d, want 0", a)
	}
	if b, _ := f.Last(t.Context(), "b"); b != 1099 {
		t.Errorf("Last of the other session: got %d, want 1099", b)
	}
}

func TestNamesFindsTheBlobOfAFrame(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.add(message(1, journal.In, noise(20<<10)))
	sha := ""
	_, err := f.Stored(t.Context(), f.db.Read(), "a", 0, 1, func(s journal.Stored) error {
		sha = s.Blob()
		return nil
	})
	if is, named := f.Names(t.Context(), sha); err != nil || named != nil || !is || len(sha) != 64 {
		t.Errorf("Names(%q): got %v, %v, want true", sha, is, errors.Join(err, named))
	}
	if is, err := f.Names(t.Context(), strings.Repeat("0", 64)); err != nil || is {
		t.Errorf("Names of another blob: got %v, %v, want false", is, err)
	}
}
