package attachments

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// open returns the attachments of an empty data directory, and the directory of the only session, "s". The session "far" is elsewhere.
func open(t *testing.T) (l *Library, work string) {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	work = t.TempDir()
	return New(Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Writable: func() error { return nil }, Unnamed: time.Hour,
		Find: func(_ context.Context, session string) (Where, error) {
			if session == "far" {
				return Where{Cwd: work}, nil
			}
			return Where{Cwd: work, Host: host.Capabilities{Directories: host.NewDirectories(nil, nil)}}, nil
		},
	}), work
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 7, 7))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func wantRefused(t *testing.T, what string, err error, code string) *refusal.Error {
	t.Helper()
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok || r.Code != code {
		t.Fatalf("%s: got %v, want the refusal %s", what, err, code)
	}
	return r
}

func (l *Library) count(t *testing.T) (n int) {
	t.Helper()
	if err := l.deps.Store.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM attachment`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUploadFails(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	broken := io.MultiReader(strings.NewReader("begun"), iotest.ErrReader(errors.New("it broke off")))
	if a, err := l.Upload(t.Context(), "b.txt", "", broken); err == nil || errors.Is(err, refusal.ErrStorage) {
		t.Errorf("an upload that breaks off: got %+v, %v, want an error that is not of the storage", a, err)
	}
	_, err := l.Upload(t.Context(), "long.bin", "", io.LimitReader(zeros{}, 50<<20+1))
	if r := wantRefused(t, "a long upload", err, "attachment.too_large"); !r.Bad || r.Params["name"] != "long.bin" {
		t.Errorf("the refusal of a long upload: got %+v, want it bad and about long.bin", r)
	}
	if n := l.count(t); n != 0 {
		t.Errorf("the records of failed uploads: got %d, want none", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestThumbnailOfHungDisk: a thumbnail of a file on a disk that does not answer is given up soon, since a page asks for few at a time.
func TestThumbnailOfHungDisk(t *testing.T) {
	t.Parallel()
	l, work := open(t)
	path := filepath.Join(work, "shot.png")
	write(t, path, picture(t))
	r, err := l.Attach(t.Context(), AttachInput{Paths: []string{path}})
	if err != nil || len(r.Items) != 1 || r.Items[0].SHA256 != "" {
		t.Fatalf("got %+v, %v, want a record without bytes", r, err)
	}
	until := make(chan struct{})
	look, _ := l.files.Begin(path, func() bool { <-until; return false })
	for _, when := range []string{"first", "again"} {
		_, err := l.Thumbnail(t.Context(), r.Items[0].ID, 16)
		wantRefused(t, when, err, "attachment.unreadable")
	}
	close(until)
	if !l.files.Await(look, time.Hour) {
		t.Fatal("the look does not end")
	}
	if data, err := l.Thumbnail(t.Context(), r.Items[0].ID, 16); err != nil || len(data) == 0 {
		t.Errorf("the thumbnail of a disk that answers again: got %d bytes, %v", len(data), err)
	}
}

func TestAttachKeepsTheOthers(t *testing.T) {
	t.Parallel()
	l, work := open(t)
	write(t, filepath.Join(work, "a#b%.txt"), []byte("odd"))
	r, err := l.Attach(t.Context(), AttachInput{Session: "s", Paths: []string{"gone.txt", "a#b%.txt", "file://" + work + "/a#b%.txt", "file://" + work + "/a%23b%25.txt"}})
	if err != nil || len(r.Problems) != 1 || r.Problems[0].Code != "attachment.missing" || r.Problems[0].Params["path"] != "gone.txt" || len(r.Items) != 3 {
		t.Fatalf("got %+v, %v, want the missing file as a problem, and the others", r, err)
	}
	for _, a := range r.Items {
		if want := filepath.Join(work, "a#b%.txt"); a.Path != want {
			t.Errorf("the path: got %q, want %q", a.Path, want)
		}
	}
	if _, err := l.Attach(t.Context(), AttachInput{Session: "far", Paths: []string{"a#b%.txt"}}); err != nil {
		t.Error(err)
	}
}

// TestAcceptElsewhere: an agent elsewhere gets the bytes of a file that fits into the prompt, and a file that could only be a link is refused.
func TestAcceptElsewhere(t *testing.T) {
	t.Parallel()
	l, work := open(t)
	far := Where{Cwd: "/far"}
	text, data := filepath.Join(work, "a.txt"), filepath.Join(work, "b.bin")
	write(t, text, []byte("text"))
	write(t, data, []byte{0, 1})
	list, err := l.Accept(t.Context(), far, []PromptAttachment{{Path: text}})
	if err != nil || len(list) != 1 || list[0].SHA256 == "" {
		t.Fatalf("a text: got %+v, %v, want its bytes stored", list, err)
	}
	if is, err := Names(t.Context(), l.deps.Store, list[0].SHA256); err != nil || !is {
		t.Errorf("the blob is named: got %v, %v, want true", is, err)
	}
	for _, p := range []PromptAttachment{{Path: data}, {Path: work}} {
		_, err := l.Accept(t.Context(), far, []PromptAttachment{p})
		wantRefused(t, p.Path, err, "attachment.elsewhere")
	}
	_, err = l.Accept(t.Context(), far, []PromptAttachment{{ID: "nothing"}})
	wantRefused(t, "an unknown id", err, "attachment.unknown")
	_, err = l.FindPaths(t.Context(), "far", "", "a", 10)
	wantRefused(t, "the paths", err, "paths.elsewhere")
}

func TestForgetKeepsWhatIsNamed(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	l.deps.Unnamed = -time.Hour // at once
	var list []transcript.Attachment
	for _, name := range []string{"named.txt", "unnamed.txt"} {
		a, err := l.Upload(t.Context(), name, "", strings.NewReader(name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	err := l.deps.Store.Write(t.Context(), func(tx *sql.Tx) error {
		_, workspace := tx.Exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/', 0, 0, 0, 1)`)
		_, session := tx.Exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id,
			protocol_version, generation, facts, exit, created_at, updated_at, archived_at)
			VALUES ('s', 'local', 'w', '/', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 1, 1, 0)`)
		return errors.Join(workspace, session, Use(t.Context(), tx, "s", list[:1]))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept, err := Of(t.Context(), l.deps.Store, "s"); err != nil || len(kept) != 1 || kept[0].ID != list[0].ID || l.count(t) != 1 {
		t.Errorf("after Forget: got %+v, %v, and %d records, want the named alone", kept, err, l.count(t))
	}
}
