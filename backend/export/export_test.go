package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/export"
	"deskhand/backend/journal"
	"deskhand/backend/maintenance"
	"deskhand/backend/record"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// fixture is a data directory with stored conversations, without agents.
type fixture struct {
	t        *testing.T
	db       *store.DB
	secret   redact.Redactor
	unread   error // secrets that cannot be read
	work     maintenance.Work
	failed   error // the end of the work
	sessions map[string]session.Session
	*export.Exporter
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() { _ = db.Close() })
	f := &fixture{t: t, db: db, secret: redact.New(nil, nil), sessions: map[string]session.Session{}}
	find := func(_ context.Context, id string) (session.Session, error) {
		s, found := f.sessions[id]
		if !found {
			return s, refusal.ErrNotFound
		}
		return s, nil
	}
	f.Exporter = export.New(export.Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Version: "test", Session: find, Stored: find,
		LoadSecrets: func(context.Context) error { return f.unread },
		Redactor:    func(context.Context, session.Session) (redact.Redactor, error) { return f.secret, nil },
		Begin: func(kind string, do func(context.Context, func(func(*maintenance.Work))) error) (maintenance.Work, error) {
			f.work = maintenance.Work{Kind: kind}
			f.failed = do(t.Context(), func(change func(*maintenance.Work)) { change(&f.work) })
			return f.work, nil
		},
	})
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/work', 0, 0, 0, 1)`)
	return f
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(text, args...)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// put stores a conversation of one turn: message is what the person says, and answers are the agent's messages.
func (f *fixture) put(id, message string, answers ...string) {
	f.t.Helper()
	at := time.UnixMilli(1_700_000_000_000).Add(time.Duration(len(f.sessions)) * time.Second)
	f.sessions[id] = session.Session{
		ID: id, Title: "About " + id, AgentName: "Bot", Cwd: "/work", CreatedAt: record.Time{Time: at}, UpdatedAt: record.Time{Time: at}, Draft: "unsent words",
	}
	f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at, projection)
		VALUES (?, 'local', 'w', '/work', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', ?, ?, 0, 1)`, id, at.UnixMilli(), at.UnixMilli())
	var frames []journal.Frame
	add := func(dir journal.Direction, v any) {
		frames = append(frames, journal.Frame{N: int64(len(frames)) + 1, Generation: 1, At: at, Dir: dir, Data: record.JSON(v)})
	}
	text := func(s string) map[string]string { return map[string]string{"type": "text", "text": s} }
	turn := "turn-" + id
	add(journal.Note, transcript.Note{Note: transcript.NoteStarting})
	add(journal.Note, transcript.Note{Note: transcript.NoteTurnBegan, Turn: turn, Prompt: []json.RawMessage{record.JSON(text(message))}})
	for i, answer := range answers {
		add(journal.In, map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "s", "update": map[string]any{
			"sessionUpdate": "agent_message_chunk", "messageId": fmt.Sprint(i), "content": text(answer),
		}}})
	}
	add(journal.Note, transcript.Note{Note: transcript.NoteTurnEnded, Turn: turn, Reason: "cancelled"})
	f.exec(`INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES (?, ?, 1, 'done', 'cancelled', '', '', 1, 2)`, turn, id)
	stored, err := journal.Of(f.db).Encode(frames)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error { return journal.Append(f.t.Context(), tx, id, stored) }); err != nil {
		f.t.Fatal(err)
	}
}

// file exports a conversation and returns the bytes, those of a recording unpacked.
func (f *fixture) file(id, format string) (x *export.File, text string) {
	f.t.Helper()
	x, err := f.File(f.t.Context(), id, format)
	if err != nil {
		f.t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := x.WriteTo(&b); err != nil || n != int64(b.Len()) {
		f.t.Fatalf("WriteTo as %s: got %d bytes, %v; want %d bytes", format, n, err, b.Len())
	}
	if format != export.Recording {
		return x, b.String()
	}
	for _, part := range unzip(f.t, b.Bytes()) {
		text += part
	}
	return x, text
}

func unzip(t *testing.T, data []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[file.Name] = string(part)
	}
	return parts
}

func formats() []string { return []string{export.Markdown, export.JSON, export.Recording} }

func TestFileNamesAndTypes(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("one", "hello", "hi")
	for format, want := range map[string][2]string{
		export.Markdown: {"2023-11-14-about-one.md", "text/markdown; charset=utf-8"}, export.JSON: {"2023-11-14-about-one.json", "application/json"},
		export.Recording: {"2023-11-14-about-one.deskhand.zip", "application/zip"},
	} {
		if x, _ := f.file("one", format); x.Name != want[0] || x.Type != want[1] || x.Lost != nil {
			t.Errorf("File(%q): got name %q, type %q, lost %v; want %q", format, x.Name, x.Type, x.Lost, want)
		}
	}
	_, err := f.File(t.Context(), "one", "pdf")
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Code != "export.format" {
		t.Errorf("File as pdf: got %v, want the refusal export.format", err)
	}
	if _, err := f.File(t.Context(), "none", export.JSON); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("File of an unknown session: got %v, want %v", err, refusal.ErrNotFound)
	}
}

func TestFileHasTheWholeConversation(t *testing.T) {
	t.Parallel()
	f := open(t)
	long := strings.Repeat("0123456789abcdef", 20_000) // 320 kB, more than a transcript shows
	f.put("long", "say "+long, long)
	for _, format := range formats() {
		_, text := f.file("long", format)
		if n := strings.Count(text, long); n != 2 {
			t.Errorf("File as %s: got the long text %d times, want 2", format, n)
		}
		if strings.Contains(text, "unsent words") {
			t.Errorf("File as %s: got the draft, want it left out", format)
		}
	}
	if _, text := f.file("long", export.Markdown); !strings.Contains(text, "\n> **The turn was stopped before it was done.**\n") {
		t.Errorf("Markdown of a stopped turn: got %.300s…, want the words for the end", text)
	}
	if _, text := f.file("long", export.JSON); !strings.Contains(text, `"cause": "stopped before it was done"`) {
		t.Error("JSON of a stopped turn: got no cause, want one")
	}
}

// Markdown that a message leaves open would hide or change the rest of the conversation.
func TestMarkdownEndsWhatAMessageLeavesOpen(t *testing.T) {
	t.Parallel()
	f := open(t)
	for message, want := range map[string]string{
		"one\n\n```go\nx := 1":      "one\n\n```go\nx := 1\n```\n\n## ",
		"two\n\n<!-- a note":        "two\n\n<!-- a note\n-->\n\n## ",
		"three\n\n<details>\n\nout": "three\n\n<details>\n\nout\n\n</details>\n\n## ",
		"four\n\n$$\na + b":         "four\n\n$$\na + b\n$$\n\n## ",
	} {
		id := message[:3]
		f.put(id, message, "done")
		if _, text := f.file(id, export.Markdown); !strings.Contains(text, want) {
			t.Errorf("Markdown of %q: got\n%s\nwant %q in it", message, text, want)
		}
	}
}

func TestFileRedactsSecretsThatBecameKnownLater(t *testing.T) {
	t.Parallel()
	const key = "quoted-before-it-was-kept"
	f := open(t)
	f.put("s", "it is "+key, "yes, "+key)
	f.secret.Remember([]string{key})
	for _, format := range formats() {
		if _, text := f.file("s", format); strings.Contains(text, key) || strings.Count(text, redact.Mark) < 2 {
			t.Errorf("File as %s: got %s, want the secret redacted", format, text)
		}
	}
}

func TestFileNamesSecretsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello", "hi")
	f.unread = errors.New("the keyring is locked")
	for _, format := range formats() {
		if _, text := f.file("s", format); !strings.Contains(text, "the keyring is locked") {
			t.Errorf("File as %s: got %s, want a word about the keyring", format, text)
		}
	}
}

func TestFileOfADamagedJournalHasTheRest(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello", "first", "second")
	f.exec(`UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE n = 3`)
	for _, format := range formats() {
		x, text := f.file("s", format)
		if x.Lost == nil || !strings.Contains(text, "frame 3: ") || !strings.Contains(text, "second") || strings.Contains(text, "first") {
			t.Errorf("File as %s: got lost %v and %s; want frame 3 lost and the rest", format, x.Lost, text)
		}
	}
}

func TestWriteToOfAnErasedSessionFails(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello", "hi")
	for _, format := range formats() {
		f.exec(`UPDATE session SET deleted_at = 0`)
		x, err := f.File(t.Context(), "s", format)
		if err != nil {
			t.Fatal(err)
		}
		f.exec(`UPDATE session SET deleted_at = 1`)
		if _, err := x.WriteTo(io.Discard); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("WriteTo as %s: got %v, want %v", format, err, refusal.ErrNotFound)
		}
	}
}

// A damaged conversation is named in the list of the archive; the others are whole. A second archive of the day gets another name.
func TestAllWritesEveryConversation(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, id := range []string{"one", "two", "bad", "gone", "erased"} {
		f.put(id, "hello "+id, "hi")
	}
	f.exec(`UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE session = 'bad' AND n = 3`)
	f.exec(`UPDATE session SET deleted_at = 1 WHERE id = 'gone'`)
	delete(f.sessions, "erased") // between the list and the read
	dir := t.TempDir()
	for _, ending := range []string{".zip", "-2.zip"} {
		now, err := f.All(dir)
		if err != nil || f.failed != nil {
			t.Fatalf("All: got %v, %v, want no error", err, f.failed)
		}
		if now.Kind != maintenance.WorkExport || now.Done != 4 || now.Total != 4 || now.Skipped != 1 || !strings.HasSuffix(now.Path, time.Now().Format("2006-01-02")+ending) {
			t.Errorf("All: got the work %+v, want 4 done, 1 skipped, path …%s", now, ending)
		}
		data, err := os.ReadFile(now.Path)
		if err != nil || int64(len(data)) != now.Bytes {
			t.Fatalf("archive: got %d bytes, %v; want %d", len(data), err, now.Bytes)
		}
		checkArchive(t, unzip(t, data))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("files after two exports: got %v, %v; want 2", left, err)
	}
}

func checkArchive(t *testing.T, parts map[string]string) {
	t.Helper()
	var index struct {
		Format        string
		Conversations []struct{ ID, Folder, Problem string }
	}
	if err := json.Unmarshal([]byte(parts["conversations.json"]), &index); err != nil || index.Format != "deskhand.export/1" || len(index.Conversations) != 3 {
		t.Fatalf("conversations.json: got %s, %v; want 3 conversations", parts["conversations.json"], err)
	}
	for _, one := range index.Conversations {
		if (one.Problem != "") != (one.ID == "bad") {
			t.Errorf("problem of %s: got %q, want one of bad alone", one.ID, one.Problem)
		}
		if md := parts[one.Folder+"/conversation.md"]; !strings.Contains(md, "hello "+one.ID) || !strings.HasPrefix(parts[one.Folder+"/recording.zip"], "PK") {
			t.Errorf("folder %s: got Markdown %q, want the conversation and a recording", one.Folder, md)
		}
	}
}

func TestAllRefusesDirectories(t *testing.T) {
	t.Parallel()
	f := open(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"relative", filepath.Join(file, "nowhere"), file} {
		_, err := f.All(dir)
		if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Code != "export.directory" {
			t.Errorf("All(%q): got %v, want the refusal export.directory", dir, err)
		}
	}
}
