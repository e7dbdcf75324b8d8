package search

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIndexFollowsWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := openAt(t, dir)
		defer f.close()
		id := f.session("nova")
		pending := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got, err := f.Pending(t.Context()); err != nil || got != want {
				t.Errorf("%s: got %d pending entries and error %v, want %d", when, got, err, want)
			}
		}
		f.fill(id, 250, func(int) string { return "before the start" })
		pending("before Start", 250)
		f.Start(t.Context())
		pending("after Start", 0)
		f.exec(`UPDATE entry SET data = json_set(data, '$.text', 'the zeppelin') WHERE seq <= 48`)
		pending("after a change", 3)
		f.Wake()
		f.Wake()
		pending("after Wake", 3)
		time.Sleep(indexAfter)
		pending("a moment after Wake", 0)
		if found, err := f.Find(t.Context(), Query{Text: "zeppelin", Limit: 10}); err != nil || len(found.Items) != 3 {
			t.Errorf("Find(zeppelin): got %q and error %v, want 3 hits", hits(found), err)
		}
		f.Close()
		f.exec(`UPDATE entry SET data = '{' WHERE seq = 16`)
		f.Wake()
		time.Sleep(2 * indexAfter)
		pending("after Close", 1)
		f.Start(t.Context())
		pending("a damaged entry, after another Start", 0)
	})
}

func TestIndexForgetsDeletedSessions(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.session("nova")
	f.fill(id, 2, func(int) string { return "quicksilver" })
	if found := f.found(Query{Text: "quicksilver"}); len(found.Items) != 2 {
		t.Fatalf("got %q, want 2 hits", hits(found))
	}
	f.exec(`UPDATE session SET deleted_at = 1`)
	if found := f.found(Query{Text: "quicksilver"}); len(found.Items) != 0 {
		t.Errorf("got %q in a session that is about to be erased, want none", hits(found))
	}
	f.exec(`DELETE FROM session WHERE id = ?`, id)
	if n := f.number(`SELECT count(*) FROM words_docsize`); n != 0 {
		t.Errorf("got %d rows in the index after the session was erased, want 0", n)
	}
}

func TestRepairRemovesTheFaultsOfCheck(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.fill(f.session("nova"), 10, func(n int) string { return fmt.Sprint("zeppelin ", n) })
	f.fill(f.session("nova"), 1, func(int) string { return "!" }) // has no word
	f.index()
	check := func(when string, missing, extra []int64) Faults {
		t.Helper()
		got, err := f.Check(t.Context())
		if err != nil || !slices.Equal(got.Missing, missing) || !slices.Equal(got.Extra, extra) {
			t.Errorf("%s: Check: got %+v and error %v, want %v missing and %v extra", when, got, err, missing, extra)
		}
		return got
	}
	check("an index without faults", nil, []int64{})
	f.exec(`DELETE FROM words WHERE rowid IN (2, 3)`)
	f.exec(`INSERT INTO words (rowid, text) VALUES (999, 'gone')`)
	faults := check("an index with faults", []int64{2, 3}, []int64{999})
	if err := f.Repair(t.Context(), faults); err != nil {
		t.Fatal(err)
	}
	check("after Repair", nil, []int64{})
	if found := f.found(Query{Text: "zeppelin"}); len(found.Items) != 10 {
		t.Errorf("Find(zeppelin) after Repair: got %q, want 10 hits", hits(found))
	}
}

func TestRebuildMakesADamagedIndexAnew(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.fill(f.session("nova"), 10, func(n int) string { return fmt.Sprint("zeppelin ", n) })
	f.index()
	f.exec(`UPDATE words_data SET block = x'00000000' WHERE id > 10`)
	f.exec(`INSERT INTO unsearched VALUES (999)`) // of before the rows got other numbers
	if err := f.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := f.found(Query{Text: "zeppelin"}); len(found.Items) != 10 {
		t.Errorf("Find(zeppelin) after Rebuild: got %q, want 10 hits", hits(found))
	}
}

func TestMergeLeavesNoWordOfDeletedEntries(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.exec(`INSERT INTO words (words, rank) VALUES ('automerge', 0), ('pgsz', 64), ('usermerge', 2)`)
	const rows = 400 // of a transaction, which makes a segment of the index
	for n := range 4 {
		f.exec(`WITH RECURSIVE n (i) AS (VALUES (?1 * ?2 + 1) UNION ALL SELECT i + 1 FROM n WHERE i < (?1 + 1) * ?2)
			INSERT INTO words (rowid, text) SELECT i, 'ibex wombat' || i FROM n`, n, rows)
	}
	f.exec(`INSERT INTO words (words, rank) VALUES ('merge', 100)`)
	f.exec(`DELETE FROM words`)
	pages := func() int {
		return f.number(`SELECT count(*) FROM words_data WHERE instr(block, CAST('ibex' AS BLOB)) + instr(block, CAST('wombat' AS BLOB)) > 0`)
	}
	if pages() == 0 {
		t.Fatal("got no page with a word of a deleted entry before Merge, want some")
	}
	if err := f.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := pages(); n != 0 {
		t.Errorf("got %d pages with words of deleted entries after Merge, want 0", n)
	}
}
