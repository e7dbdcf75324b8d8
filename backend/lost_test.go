package backend_test

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend"
	"deskhand/backend/datadir"
	"deskhand/backend/store"
)

// TestALostDatabaseWaitsForAChoice: a program whose database is lost changes nothing, reports the loss, and continues after the person's
// choice.
func TestALostDatabaseWaitsForAChoice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	places, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := backend.Config{Places: places, Version: "1.0.0", Kind: "window", Self: os.Args[0], Logger: slog.New(slog.DiscardHandler)}
	b, err := backend.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "deskhand.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Open(t.Context(), cfg); err == nil {
		t.Fatal("Open: got no error, want one that tells of the lost database")
	} else if gone, is := errors.AsType[*store.LostError](err); !is || gone.Kind != store.LostMissing {
		t.Fatalf("Open: got %v, want a LostError", err)
	}
	h, err := backend.OpenHost(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if status, said := onWindow(t, h, "GET", "/client/missing"); status != 200 || said["kind"] != store.LostMissing || said["directory"] != dir {
		t.Errorf("GET /client/missing: got %d %v, want what is missing", status, said)
	}
	if status, said := onWindow(t, h, "POST", "/client/missing/again"); status != 409 || said["code"] != "data.missing" {
		t.Errorf("POST again: got %d %v, want 409 data.missing", status, said)
	}
	if status, said := onWindow(t, h, "POST", "/client/missing/accept"); status != 204 || h.Missing() != nil {
		t.Errorf("POST accept: got %d %v, want 204 and an open program", status, said)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "lost-*", "written-by")); len(aside) != 1 {
		t.Errorf("what was beside the lost database: got %v put aside, want one directory", aside)
	}
}

// damagedPage returns a data directory in whose database the first page of a table or an index is of zeros.
func damagedPage(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	if err := db.Read().QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = ?`, name).Scan(&page); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "deskhand.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	if _, err := f.WriteAt(make([]byte, size), (page-1)*size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestADamagedTableStopsNothingElse: a start does without a damaged table, and the calls that need the table name the way on.
func TestADamagedTableStopsNothingElse(t *testing.T) {
	t.Parallel()
	const tree = `{"agent":"mock","cwd":"/","place":"elsewhere"}`
	for _, c := range []struct{ name, method, path, body string }{
		{"audit", "GET", "audit", ""},
		{"token", "GET", "tokens", ""},
		{"token", "POST", "tokens", `{"name":"a","scopes":["client"]}`},
		{"token", "DELETE", "tokens/a", ""},
		{"place", "POST", "sessions", tree},
		{"worktree", "", "", ""},
		{"stray", "", "", ""},
		{"turn_change_open", "", "", ""},
		{"turn", "", "", ""},
		{"turn_session", "", "", ""},
		{"request_open", "", "", ""},
		{"queue_item_session", "", "", ""},
		{"session_deleted", "", "", ""},
		{"session_line", "", "", ""},
		{"rule", "GET", "rules", ""},
		{"trust", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			places, err := datadir.Find(damagedPage(t, c.name))
			if err != nil {
				t.Fatal(err)
			}
			b, err := backend.Open(t.Context(), backend.Config{Places: places, Version: "1.0.0", Kind: "window", Self: os.Args[0], Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatalf("Open with a damaged page of %s: got %v, want a start without it", c.name, err)
			}
			defer b.Close()
			call := func(method, path, body string) (int, string) {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(method, "/client/"+path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				b.Window().ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			if status, said := call("GET", "sessions", ""); status != 200 {
				t.Errorf("GET sessions with a damaged page of %s: got %d %s, want 200", c.name, status, said)
			}
			if c.method == "" {
				return
			}
			if status, said := call(c.method, c.path, c.body); status != 503 || !strings.Contains(said, "storage.damaged") || !strings.Contains(said, "verify --salvage") {
				t.Errorf("%s %s with a damaged page of %s: got %d %s, want 503 storage.damaged that names verify --salvage", c.method, c.path, c.name, status, said)
			}
		})
	}
}

// TestADamagedTableOfDiscordTurnsDiscordOff: a damaged table of Discord turns off Discord alone.
func TestADamagedTableOfDiscordTurnsDiscordOff(t *testing.T) {
	t.Parallel()
	places, err := datadir.Find(damagedPage(t, "discord_setting"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := backend.OpenHost(t.Context(), backend.Config{Places: places, Version: "1.0.0", Kind: "window", Self: os.Args[0], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Missing() != nil {
		t.Fatalf("a damaged table of Discord: got a start that waits for %v, want one without Discord", h.Missing())
	}
	if status, said := onWindow(t, h, "GET", "/client/discord"); status != 409 || said["code"] != "discord.damaged" {
		t.Errorf("GET /client/discord: got %d %v, want 409 discord.damaged", status, said)
	}
	if status, said := onWindow(t, h, "GET", "/client/sessions"); status != 200 {
		t.Errorf("GET /client/sessions: got %d %v, want 200", status, said)
	}
}
