package entries_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/record"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// fixture is a database with the sessions s and t, both in generation 3.
type fixture struct {
	*entries.Library
	t  *testing.T
	db *store.DB
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{entries.New(db), t, db}
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', '', '/', 0, 0, 0, 0)`)
	for _, id := range []string{"s", "t"} {
		f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id,
			protocol_version, generation, facts, exit, created_at, updated_at, archived_at)
			VALUES (?, '', 'w', '/', 'mock', '', '', '[]', 0, 0, '', '', 1, 3, '{}', '', 0, 0, 0)`, id)
	}
	return f
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	f.write(func(tx *sql.Tx) error {
		_, err := tx.ExecContext(f.t.Context(), text, args...)
		return err
	})
}

func (f *fixture) write(do func(tx *sql.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), do); err != nil {
		f.t.Fatal(err)
	}
}

// save stores entries of a session with the seqs 1, 2 and so on, of which each has its kind as its id.
func (f *fixture) save(session string, kinds ...string) {
	f.t.Helper()
	var changes []transcript.Change
	for i, kind := range kinds {
		changes = append(changes, transcript.Change{Entry: &transcript.Entry{ID: session + "-" + kind, Seq: int64(i + 1), Kind: kind, Text: kind}})
	}
	f.write(func(tx *sql.Tx) error { return entries.Save(f.t.Context(), tx, session, changes) })
}

// stored returns the id, the seq and the number of the row of each entry of a session, in order.
func (f *fixture) stored(session string) []string {
	f.t.Helper()
	list, err := record.Query(f.t.Context(), f.db.Read(), record.ScanText, `SELECT id || ' ' || seq || ' ' || rowid FROM entry WHERE session = ? ORDER BY seq`, session)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func (f *fixture) wantStored(session string, want ...string) {
	f.t.Helper()
	if got := f.stored(session); !slices.Equal(got, want) {
		f.t.Errorf("entries of %s: got %q, want %q", session, got, want)
	}
}

func idsOf(list []transcript.Entry) (ids []string) {
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestPagesShowDamagedEntriesAsNotices(t *testing.T) {
	f := open(t)
	f.save("s", "user", "agent", "thought", "plan")
	f.exec(`UPDATE entry SET data = '{"id":' WHERE id = 's-agent'`)
	before, err := f.Before(t.Context(), "s", 4, 2)
	if got, want := idsOf(before), []string{"s-agent", "s-thought"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("Before(4): got %q and %v, want %q", got, err, want)
	}
	if e := before[0]; e.Kind != "notice" || e.Seq != 2 || e.Notice == nil {
		t.Errorf("damaged entry: got %+v, want a notice with seq 2", e)
	}
	after, err := f.After(t.Context(), "s", 1, 2)
	if got, want := idsOf(after), []string{"s-agent", "s-thought"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("After(1): got %q and %v, want %q", got, err, want)
	}
	var readable []string
	err = f.Readable(t.Context(), "s", func(e transcript.Entry) { readable = append(readable, e.ID) })
	slices.Sort(readable)
	if want := []string{"s-plan", "s-thought", "s-user"}; err != nil || !slices.Equal(readable, want) {
		t.Errorf("Readable: got %q and %v, want %q", readable, err, want)
	}
	var kinds []string
	err = f.Kinds(t.Context(), "s", func(_, kind string, seq int64) { kinds = append(kinds, fmt.Sprint(seq, kind)) })
	if want := []string{"1user", "2", "3thought", "4plan"}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("Kinds: got %q and %v, want %q", kinds, err, want)
	}
}

func TestEntriesAreFoundByKind(t *testing.T) {
	f := open(t)
	if e, err := f.FirstPrompt(t.Context(), "s"); err != nil || e != nil {
		t.Errorf("FirstPrompt of an empty session: got %v and %v, want nothing", e, err)
	}
	f.save("s", "plan", "user", "agent", "straggler")
	if e, err := f.FirstPrompt(t.Context(), "s"); err != nil || e == nil || e.ID != "s-user" {
		t.Errorf("FirstPrompt: got %v and %v, want s-user", e, err)
	}
	if text, err := f.LastAnswer(t.Context(), "s"); err != nil || text != "agent" {
		t.Errorf("LastAnswer: got %q and %v, want agent", text, err)
	}
	if text, err := f.LastAnswer(t.Context(), "t"); err != nil || text != "" {
		t.Errorf("LastAnswer of a session without one: got %q and %v, want nothing", text, err)
	}
	if e, err := f.NewestPlan(t.Context(), "s"); err != nil || e == nil || e.ID != "s-plan" {
		t.Errorf("NewestPlan: got %v and %v, want s-plan", e, err)
	}
	for id, want := range map[string]bool{"s-straggler": true, "s-user": false, "none": false} {
		if got, err := f.HasStraggler(t.Context(), "s", id); err != nil || got != want {
			t.Errorf("HasStraggler(%s): got %v and %v, want %v", id, got, err, want)
		}
	}
	if n, err := f.Count(t.Context()); err != nil || n != 4 {
		t.Errorf("Count: got %d and %v, want 4", n, err)
	}
}

func TestReplacedEntriesKeepTheirRows(t *testing.T) {
	f := open(t)
	f.save("s", "user", "agent", "plan")
	f.save("t", "user")
	f.write(func(tx *sql.Tx) error {
		return entries.Replace(t.Context(), tx, "s", []entries.Row{
			{ID: "new", Seq: 2, Data: `{}`},
			{ID: "t-user", Seq: 3, Data: `{}`, Attachments: 1}, // an id that an entry of another session has
			{ID: "s-user", Seq: 4, Data: `{}`},                 // an entry at another place
		})
	})
	f.wantStored("s", "new 2 2", "t-user 3 3", "s-user 4 4")
	f.wantStored("t")
	if list, err := f.WithAttachments(t.Context(), "s", 9, 9); err != nil || len(list) != 1 {
		t.Errorf("WithAttachments: got %d entries and %v, want 1", len(list), err)
	}
	for seq, want := range map[int64]string{2: "{}", 5: ""} {
		if got, err := entries.At(t.Context(), f.db.Read(), "s", seq); err != nil || got != want {
			t.Errorf("At(%d): got %q and %v, want %q", seq, got, err, want)
		}
	}
	if got, err := entries.Stored(t.Context(), f.db.Read(), "new", 3); err != nil || got != "" {
		t.Errorf("Stored at another seq: got %q and %v, want nothing", got, err)
	}
}

func TestErasedEntriesAreGoneInOneSession(t *testing.T) {
	f := open(t)
	kinds := make([]string, 120) // more than one transaction erases
	for i := range kinds {
		kinds[i] = fmt.Sprint("kind", i)
	}
	f.save("s", kinds...)
	f.save("t", "user")
	if err := f.Erase(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	f.wantStored("s")
	f.wantStored("t", "t-user 1 121")
}

func TestOnlyImportedEntriesAreRemoved(t *testing.T) {
	f := open(t)
	f.save("s", "user", "agent", "notice", "divider", "request", "thought", "plan")
	f.exec(`UPDATE entry SET data = json_set(data, '$.turn', 'u') WHERE id = 's-agent'`)
	if has, err := f.HasImported(t.Context(), "s"); err != nil || !has {
		t.Errorf("HasImported: got %v and %v, want true", has, err)
	}
	if err := f.RemoveImported(t.Context(), "s", 1, 7); err != nil {
		t.Fatal(err)
	}
	f.wantStored("s", "s-agent 2 2", "s-notice 3 3", "s-divider 4 4", "s-request 5 5", "s-plan 7 7")
	if err := f.RemoveImported(t.Context(), "s", 7, 8); err != nil {
		t.Fatal(err)
	}
	if has, err := f.HasImported(t.Context(), "s"); err != nil || has {
		t.Errorf("HasImported after the removal: got %v and %v, want false", has, err)
	}
}

func at(second int64) record.Time { return record.FromMillis(second * 1000) }

func (f *fixture) saveTurn(session, id, state string, began int64) *entries.Turn {
	f.t.Helper()
	turn := &entries.Turn{ID: id, Session: session, State: state, StartedAt: at(began)}
	if state == entries.TurnDone {
		ended := at(began + 2)
		turn.EndedAt, turn.StopReason = &ended, "end_turn"
	}
	f.write(func(tx *sql.Tx) error { return entries.SaveTurn(f.t.Context(), tx, turn) })
	return turn
}

func turnIDs(list []entries.Turn) (ids []string) {
	for _, t := range list {
		ids = append(ids, t.ID)
	}
	return ids
}

func TestTurnsAreFound(t *testing.T) {
	f := open(t)
	f.saveTurn("s", "a", entries.TurnDone, 1)
	f.saveTurn("s", "b", entries.TurnDone, 5)
	f.saveTurn("s", "c", entries.TurnRunning, 9)
	f.saveTurn("t", "d", entries.TurnRunning, 9)
	for name, tc := range map[string]struct {
		list func() ([]entries.Turn, error)
		want []string
	}{
		"RunningTurns":        {func() ([]entries.Turn, error) { return f.RunningTurns(t.Context(), "s") }, []string{"c"}},
		"DoneTurns":           {func() ([]entries.Turn, error) { return f.DoneTurns(t.Context(), "s") }, []string{"a", "b"}},
		"NamedOrRunningTurns": {func() ([]entries.Turn, error) { return f.NamedOrRunningTurns(t.Context(), `["b","none"]`, "s") }, []string{"b", "c"}},
	} {
		list, err := tc.list()
		if got := turnIDs(list); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q and %v, want %q", name, got, err, tc.want)
		}
	}
	if got, err := f.NewestTurn(t.Context(), "s"); err != nil || got == nil || got.ID != "c" {
		t.Errorf("NewestTurn: got %v and %v, want c", got, err)
	}
	if got, err := f.DoneTurn(t.Context(), "a"); err != nil || got == nil || got.EndedAt == nil || !got.EndedAt.Equal(at(3).Time) {
		t.Errorf("DoneTurn(a): got %v and %v, want the end after 3 s", got, err)
	}
	if got, err := f.DoneTurn(t.Context(), "c"); err != nil || got != nil {
		t.Errorf("DoneTurn of a running turn: got %v and %v, want nothing", got, err)
	}
	if n, ms, err := f.Worked(t.Context(), "s"); err != nil || n != 3 || ms != 4000 {
		t.Errorf("Worked: got %d turns in %d ms and %v, want 3 in 4000", n, ms, err)
	}
	if ids, err := f.Unfinished(t.Context()); err != nil || len(ids) != 2 {
		t.Errorf("Unfinished: got %q and %v, want c and d", ids, err)
	}
	f.exec(`DELETE FROM turn WHERE session = 't'`)
	if has, err := f.HasTurn(t.Context(), "t"); err != nil || has {
		t.Errorf("HasTurn without a turn: got %v and %v, want false", has, err)
	}
}

func TestRestoredTurnKeepsItsTimesAndUsage(t *testing.T) {
	f := open(t)
	turn := f.saveTurn("s", "a", entries.TurnRunning, 1)
	turn.Usage = []byte(`{"n":1}`)
	f.write(func(tx *sql.Tx) error { return entries.SaveTurn(t.Context(), tx, turn) })
	var generation int
	if err := f.db.Read().QueryRowContext(t.Context(), `SELECT generation FROM turn`).Scan(&generation); err != nil || generation != 3 {
		t.Errorf("generation of a new turn: got %d and %v, want 3, of the session", generation, err)
	}
	ended := record.Time{Time: time.UnixMilli(4000)}
	told := &entries.Turn{
		ID: "a", Session: "s", State: entries.TurnDone, StopReason: "refusal", Error: &transcript.TurnError{Code: 1, Message: "no"}, StartedAt: at(2), EndedAt: &ended,
	}
	f.write(func(tx *sql.Tx) error { return entries.RestoreTurn(t.Context(), tx, told, 7) })
	got, err := f.DoneTurn(t.Context(), "a")
	if err != nil || got == nil || got.StopReason != "refusal" || got.Error == nil || string(got.Usage) != `{"n":1}` || !got.StartedAt.Equal(at(1).Time) || !got.EndedAt.Equal(at(4).Time) {
		t.Errorf("restored turn: got %+v and %v, want the end of the journal, and the usage and the beginning of before", got, err)
	}
	f.exec(`UPDATE turn SET error = '{', usage = '['`)
	if got, err = f.DoneTurn(t.Context(), "a"); err != nil || got.Error != nil || got.Usage != nil {
		t.Errorf("turn with damaged columns: got %+v and %v, want it without error and usage", got, err)
	}
	ends, err := entries.Ends(t.Context(), f.db.Read(), "s")
	if end := ends["a"]; err != nil || len(ends) != 1 || end.State != entries.TurnDone || end.Error != nil {
		t.Errorf("Ends: got %+v and %v, want a done turn a without error", ends, err)
	}
}

func TestForkHasSpokenOnceAnyoneGoesOn(t *testing.T) {
	const forked = 10
	for name, tc := range map[string]struct {
		more func(f *fixture)
		want bool
	}{
		"nobody":                     {func(*fixture) {}, false},
		"a turn of the fork":         {func(f *fixture) { f.saveTurn("t", "more", entries.TurnDone, forked+1) }, true},
		"a running turn of the fork": {func(f *fixture) { f.saveTurn("t", "more", entries.TurnRunning, forked+1) }, false},
		"a turn of the parent":       {func(f *fixture) { f.saveTurn("s", "more", entries.TurnRunning, forked-1) }, true},
	} {
		f := open(t)
		f.saveTurn("s", "a", entries.TurnDone, 1)
		f.saveTurn("t", "b", entries.TurnDone, 1) // the copy of a
		tc.more(f)
		if got, err := f.HasSpoken(t.Context(), "t", "s", forked*1000); err != nil || got != tc.want {
			t.Errorf("HasSpoken after %s: got %v and %v, want %v", name, got, err, tc.want)
		}
	}
}
