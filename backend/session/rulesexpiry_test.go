package session

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/store"
)

func TestARuleExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{cfg: Config{Store: db}, feed: newFeed()}
		at := &Time{time.Now().Add(time.Hour)}
		now := &Time{time.Now()}
		for _, r := range []Rule{
			{ID: "hour", Effect: "allow", Scope: scopeEverywhere, Kind: "execute", Pattern: "git status", ExpiresAt: at, CreatedAt: now},
			{ID: "ever", Effect: "allow", Scope: scopeEverywhere, Kind: "execute", Pattern: "git diff", CreatedAt: now},
		} {
			if err := db.Write(t.Context(), func(tx *sql.Tx) error { return saveRule(t.Context(), tx, r) }); err != nil {
				t.Fatal(err)
			}
		}
		have := func() (ids string) {
			list, err := c.rulesOf(context.Background(), &Session{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				ids += r.ID + " "
			}
			return ids
		}
		if got := have(); got != "hour ever " {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Hour - time.Millisecond)
		if got := have(); got != "hour ever " {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Millisecond)
		if got := have(); got != "ever " {
			t.Errorf("it goes on: %q", got)
		}
		if err := c.writeRules(t.Context(), func(*sql.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM rule`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d are left, %v", left, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
