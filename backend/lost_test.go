package backend_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

// TestADamagedTableOfDiscordTurnsDiscordOff: a damaged table of Discord turns off Discord alone.
func TestADamagedTableOfDiscordTurnsDiscordOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	if err := db.Read().QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = 'discord_setting'`).Scan(&page); err != nil {
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
	places, err := datadir.Find(dir)
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
