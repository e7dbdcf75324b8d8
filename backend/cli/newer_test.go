package cli_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// raise gives a data directory the schema version of a later release.
func raise(t *testing.T, dir string, changes ...string) {
	t.Helper()
	change(t, dir, append(changes, "PRAGMA user_version=99")...)
	if err := os.WriteFile(filepath.Join(dir, "written-by"), []byte("99.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// change runs SQL on the database of a data directory that no process uses.
func change(t *testing.T, dir string, changes ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		_, failed := db.ExecContext(t.Context(), change)
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNewerDataByEveryCommand(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	if _, stderr, code := run(t, dir, "sessions", "search", "zepp"); code != 0 {
		t.Fatal(code, stderr) // the program's end completes the index
	}
	raise(t, dir, "ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT ''", "CREATE TABLE later (id TEXT)")
	file := filepath.Join(dir, "deskhand.db")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const says = "was written by 99.0 of Deskhand (schema 99; this one, test, knows "
	for name, args := range map[string][]string{
		"list": {"sessions"}, "show": {"sessions", "show", "last"}, "search": {"sessions", "search", "zepp"},
		"export": {"sessions", "export", "last", "--format", "md", "-o", "-"},
	} {
		text, stderr, code := run(t, dir, args...)
		if code != 0 || !strings.Contains(text, "the quick zeppelin") || !strings.Contains(stderr, says) {
			t.Errorf("%s: want exit code 0, text with \"the quick zeppelin\" and stderr with %v, got exit code %d\ntext %s\nstderr %s", name, says, code, text, stderr)
		}
	}
	for name, args := range map[string][]string{
		"prompt": {"prompt", "--agent", "mock", "--dir", work, "x"}, "delete": {"sessions", "delete", "last", "--yes"},
	} {
		if text, stderr, code := run(t, dir, args...); code != 1 || !strings.Contains(stderr, "storage.newer") {
			t.Errorf("%s: want exit code 1 and stderr with \"storage.newer\", got exit code %d\ntext %s\nstderr %s", name, code, text, stderr)
		}
	}
	p, _ := server(t, dir)
	c := onSocket(t, dir)
	var hello struct {
		Newer struct{ Schema, Known, Version string }
	}
	if c.get("/client/hello", &hello); hello.Newer.Schema != "99" || hello.Newer.Version != "99.0" {
		t.Errorf(`get("/client/hello"): got hello %+v, want hello.Newer.Schema "99" and hello.Newer.Version "99.0"`, hello)
	}
	c.refusesChanges()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 || !strings.Contains(p.stderr.String(), says) { // the warning on stderr is certain only after the program's end
		t.Errorf("it ends with %d\n%s", code, p.stderr)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the database is another, %v", err)
	}
}

// refusesChanges calls every route of the API's document that could change data.
func (c *caller) refusesChanges() {
	c.t.Helper()
	data, err := os.ReadFile("../httpapi/client.openapi.json")
	if err != nil {
		c.t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		c.t.Fatal(err)
	}
	reads := []string{"/client/login", "/client/tab/proof", "/client/links", "/client/activate", "/client/sessions/{id}/tree/files"} // and change no data
	asked := 0
	for path, methods := range doc.Paths {
		for method := range methods {
			if method == "get" || slices.Contains(reads, path) {
				continue
			}
			asked++
			status, said := c.do(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), nil)
			if status != http.StatusConflict || !strings.Contains(string(said), `"code":"storage.newer"`) {
				c.t.Errorf("got method %s, path %s, status %d, said %s, want status http.StatusConflict and said with \"\\\"code\\\":\\\"storage.newer\\\"\"", method, path, status, said)
			}
		}
	}
	if asked < 30 {
		c.t.Errorf("only %d", asked)
	}
}

func TestNewerDataTellsWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", dir, "echo x"); code != 0 {
		t.Fatal(code, stderr)
	}
	raise(t, dir, "ALTER TABLE session RENAME COLUMN title TO heading")
	if text, stderr, code := run(t, dir, "sessions"); code != 1 || !strings.Contains(stderr, "no such column: s.title") || text != "" {
		t.Errorf("deskhand sessions: want exit code 1, stderr with \"no such column: s.title\" and text \"\", got exit code %d\ntext %s\nstderr %s", code, text, stderr)
	}
	server(t, dir)
	if status, said := onSocket(t, dir).do("GET", "/client/sessions", nil); status != http.StatusConflict || !strings.Contains(string(said), "storage.newer_unreadable") {
		t.Errorf(`do("GET", "/client/sessions"): got status %d, said %s, want status http.StatusConflict and said with "storage.newer_unreadable"`, status, said)
	}
}
