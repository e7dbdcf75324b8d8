package session

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/journal"
	"deskhand/backend/maintenance"
	"deskhand/backend/proxy"
	"deskhand/backend/search"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

// shelf is a data directory with conversations that were written without an agent.
type shelf struct {
	t   testing.TB
	dir string
	db  *store.DB
}

func openShelf(tb testing.TB) *shelf {
	tb.Helper()
	s := &shelf{t: tb, dir: tb.TempDir()}
	s.reopen()
	tb.Cleanup(func() { _ = s.db.Close() })
	return s
}

func (s *shelf) reopen() {
	s.t.Helper()
	s.db = storetest.Open(s.t, s.dir)
}

func (s *shelf) exec(text string, args ...any) {
	s.t.Helper()
	if err := s.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(text, args...)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) number(text string, args ...any) (n int) {
	s.t.Helper()
	if err := s.db.Read().QueryRow(text, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// put writes a conversation, its journal and the entries of it, as its steps would have; each call writes a newer one.
func (s *shelf) put(id string, list []journal.Frame) {
	s.t.Helper()
	s.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', ?, 0, 0, 0, 1) ON CONFLICT DO NOTHING`, s.dir)
	at := 1_700_000_000_000 + s.number(`SELECT count(*) FROM session`)
	s.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at, projection)
		VALUES (?, 'local', 'w', ?, 'mock', 'kept title', 'person', '[]', 0, 1, 'kept draft', '', 1, 1, '{}', '', ?, ?, 0, ?)`, id, s.dir, at, at, transcript.Projection)
	for part := range slices.Chunk(list, 2000) {
		s.add(id, part)
	}
	s.fold(id)
}

func (s *shelf) add(id string, part []journal.Frame) {
	s.t.Helper()
	stored, err := journal.Of(s.db).Encode(part)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.db.Write(context.Background(), func(tx *sql.Tx) error { return journal.Append(context.Background(), tx, id, stored) }); err != nil {
		s.t.Fatal(err)
	}
}

// fold stores the entries that the journal folds to.
func (s *shelf) fold(id string) {
	s.t.Helper()
	s.exec(`UPDATE session SET projection = 1 WHERE id = ?`, id)
	m := maintenance.New(maintenance.Deps{
		Store: s.db, Logger: slog.New(slog.DiscardHandler), Search: search.New(search.Deps{Store: s.db, Logger: slog.New(slog.DiscardHandler)}),
		SaveOutcome: saveOutcome,
		Publish:     func(kind, _ string, rec any) { s.t.Errorf("folding %s published %s: %v", id, kind, rec) },
	})
	if err := m.Update(context.Background(), id); err != nil {
		s.t.Fatal(err)
	}
}

// age changes the transcript of a session as if older rules had made it: entries differ, are missing, or are too many.
func (s *shelf) age(id string) {
	s.t.Helper()
	s.exec(`UPDATE entry SET data = json_set(data, '$.text', 'as it was once') WHERE session = ? AND seq % 3 = 0`, id)
	s.exec(`DELETE FROM entry WHERE session = ? AND seq % 5 = 1`, id)
	s.exec(`UPDATE entry SET id = 'old' || id WHERE session = ? AND seq % 7 = 0`, id)
	s.exec(`INSERT INTO entry (id, session, seq, data) SELECT 'more' || id, session, seq + 9, data FROM entry WHERE session = ? AND seq % 11 = 0`, id)
	s.exec(`DELETE FROM turn WHERE session = ? AND rowid % 2 = 0`, id)
	s.exec(`UPDATE turn SET stop_reason = 'refusal' WHERE session = ?`, id)
	s.exec(`UPDATE session SET projection = 1 WHERE id = ?`, id)
}

// told returns all stored rows that are shown of a session.
func (s *shelf) told(id string) string {
	s.t.Helper()
	rows, err := query(context.Background(), s.db.Read(), scanText, `SELECT id || seq || data FROM entry WHERE session = ? ORDER BY seq, id`, id)
	if err != nil {
		s.t.Fatal(err)
	}
	turns, err := query(context.Background(), s.db.Read(), scanText, `SELECT id || state || stop_reason || error FROM turn WHERE session = ? ORDER BY id`, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(append(rows, turns...), "\n")
}

func (s *shelf) index() *search.Index {
	return search.New(search.Deps{Store: s.db, Logger: slog.New(slog.DiscardHandler), AgentName: func(id string) string { return id }})
}

// open opens a client on the directory.
func (s *shelf) open() *Client {
	s.t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{
		Self: agenttest.Program(s.t), File: filepath.Join(s.dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(s.dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile,
		Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(s.dir, "demo")),
	})
	index := s.index()
	c, err := Open(context.Background(), Config{Store: s.db, Agents: catalogue, Proxy: set, Version: "test", Search: index})
	if err != nil {
		s.t.Fatal(err)
	}
	index.Start(context.Background())
	s.t.Cleanup(func() {
		stopped := c.Close()
		index.Close()
		if err := errors.Join(stopped, catalogue.Close(), set.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return c
}

// until waits for the condition by the feed, and returns every event that came.
func until(t testing.TB, c *Client, holds func() bool) (events []feed.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Limit)
	defer cancel()
	for q := (feed.Query{Gen: c.feed.Gen(), Wait: 100 * time.Millisecond}); ; {
		done := holds()
		batch, err := c.feed.After(ctx, q)
		if err != nil || ctx.Err() != nil {
			t.Fatal("it never holds")
		}
		q.After = batch.Seq
		events = append(events, batch.Events...)
		if done {
			return events
		}
	}
}

func (s *shelf) current() bool {
	return s.number(`SELECT count(*) FROM session WHERE projection <> ?`, transcript.Projection) == 0
}

func TestRebuildOfTranscriptsOfOlderRules(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	want := map[string]string{}
	for i := range 4 {
		id := fmt.Sprintf("s%d", i)
		s.put(id, newStoryteller(t, uint64(i)).tell(4))
		want[id] = s.told(id)
		s.age(id)
		s.exec(`UPDATE session SET projection = ? WHERE id = ?`, 5+i, id)
		if s.told(id) == want[id] {
			t.Fatal("nothing is older")
		}
	}
	c := s.open()
	events := until(t, c, s.current)
	for id, as := range want {
		if now := s.told(id); now != as {
			t.Errorf("%s is not as its journal tells", id)
		}
	}
	if n := s.number(`SELECT count(*) FROM session WHERE title = 'kept title' AND draft = 'kept draft' AND unread`); n != len(want) {
		t.Errorf("%d of %d sessions have kept what people made of them", n, len(want))
	}
	if !slices.ContainsFunc(events, func(e feed.Event) bool {
		return e.Type == maintenance.EventStorage && bytes.Contains(e.Data, []byte(`"rebuilding":{`))
	}) {
		t.Error("no progress was told")
	}
	until(t, c, func() bool {
		now, err := c.maintainer.Storage(t.Context())
		return err == nil && now.Rebuilding == nil && now.Sessions == 4 && now.Frames == int64(s.number(`SELECT count(*) FROM frame`)) && now.DatabaseBytes > 0
	})
}

func TestRebuildWakesTheIndex(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("s", newStoryteller(t, 1).tell(1))
	c := &Client{core: &core{cfg: Config{Store: s.db, Search: s.index()}, feed: feed.New()}}
	c.maintainer = maintenance.New(maintenance.Deps{Store: s.db, Search: c.cfg.Search, SaveOutcome: saveOutcome})
	c.cfg.Search.Start(t.Context())
	defer c.cfg.Search.Close()
	pending := func() bool { return s.number(`SELECT count(*) FROM unsearched`) > 0 }
	until(t, c, func() bool { return !pending() })
	s.age("s")
	if err := c.maintainer.Update(t.Context(), "s"); err != nil { // stores every entry anew, so that the entries wait for the index
		t.Fatal(err)
	}
	until(t, c, func() bool { return !pending() })
}

// A message that the parent got while its agent made the fork is not part of the fork, and the agent must not be asked for the same fork
// again.
func TestForkHasOnlyTurnsOfItsJournal(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	story := newStoryteller(t, 1)
	until := int64(len(story.tell(2)))
	story.turn()
	s.put("parent", story.frames)
	s.exec(`UPDATE session SET acp_session_id = 'theirs'`)
	c := s.open()
	parent, _, err := c.load(t.Context(), "parent", false)
	if err != nil {
		t.Fatal(err)
	}
	unspoken := func(id string, until int64) string {
		r := parent
		r.ID, r.CreatedAt, r.Origin = id, Time{Time: time.Now()}, &Origin{Kind: originFork, Session: "parent"}
		if err := c.copyJournal(t.Context(), fork{peer: "p", until: until, parent: parent}, &r, until+1); err != nil {
			t.Fatal(err)
		}
		v := &conversation{c: c.core, id: id, row: r}
		return (&forkRequests{v: v}).unspokenParent()
	}
	if again := unspoken("early", until); again != "" || s.number(`SELECT count(*) FROM turn WHERE session = 'early'`) != 2 {
		t.Errorf("%d turns, and it is made again of %q", s.number(`SELECT count(*) FROM turn WHERE session = 'early'`), again)
	}
	if again := unspoken("late", int64(len(story.frames))); again != "theirs" || s.number(`SELECT count(*) FROM turn WHERE session = 'late'`) != 3 {
		t.Errorf("%d turns, and it is made again of %q", s.number(`SELECT count(*) FROM turn WHERE session = 'late'`), again)
	}
	if codes := verified(t, c, maintenance.Verify{}); len(codes) != 0 {
		t.Errorf("Verify: got findings %v, want none", codes)
	}
}

// When the program ended while a history was stored, the stored part of the history is removed. Lines that the agent had printed before
// stay, and so do lines printed since the history broke off and another process began it again.
func TestHalfImportTakesNothingElseAlong(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(*storyteller){
		"at once": func(*storyteller) {},
		"after it broke off": func(story *storyteller) {
			story.note(transcript.Note{Note: transcript.NoteClosed, Exit: &transcript.Exit{Problem: problemImport}})
			story.frame(journal.In, "a word after the end")
		},
		"after another start": func(story *storyteller) {
			story.note(transcript.Note{Note: transcript.NoteStarting})
			story.frame(journal.In, "a word after another start")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShelf(t)
			story := newStoryteller(t, 1)
			story.start()
			story.frame(journal.In, "a word before the history")
			story.note(transcript.Note{Note: transcript.NoteImporting})
			story.say("agent_message_chunk", 8)
			half := len(story.frames) * transcript.PerFrame
			since(story)
			s.put("s", story.frames)
			s.exec(`UPDATE session SET origin = '{"kind":"import"}'`)
			want := s.told("s")
			if !strings.Contains(want, `"raw"`) {
				t.Fatal(want)
			}
			s.exec(`INSERT INTO entry (id, session, seq, data) VALUES ('half', 's', ?, '{"id":"half","kind":"agent","text":"half"}')`, half)
			s.open()
			if now := s.told("s"); now != want {
				t.Errorf("%s\nbefore %s", now, want)
			}
		})
	}
}

// A session that is read is rebuilt first, whatever other sessions wait.
func TestRebuildBeginsWithSessionThatIsRead(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("looked-at", newStoryteller(t, 1).tell(3))
	want := s.told("looked-at")
	s.age("looked-at")
	for i := range 6 {
		id := fmt.Sprintf("newer-%d", i)
		s.put(id, newStoryteller(t, uint64(i)).tell(8))
		s.age(id)
	}
	c := s.open()
	if _, err := c.Transcripts().Entries(t.Context(), "looked-at", 0, 10); err != nil {
		t.Fatal(err)
	}
	if s.told("looked-at") != want {
		t.Error("an older transcript was shown")
	}
	if s.current() {
		t.Skip("all was made anew in a moment")
	}
}

// A rebuild that was cut off is begun again, with the same result.
func TestRebuildThatWasBrokenOffIsBegunAgain(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("s", newStoryteller(t, 5).tell(12))
	want := s.told("s")
	s.age("s")
	c := s.open()
	until(t, c, s.current)
	s.age("s")
	began := time.Now()
	if err := c.maintainer.Update(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(began)
	s.age("s")
	old := s.told("s")
	broken := 0
	for i := 0; i < 200 && broken < 3; i++ {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(whole*time.Duration(i%12)/12, stop)
		err := c.maintainer.Update(ctx, "s")
		cut := ctx.Err() != nil
		stop()
		if err == nil { // the machine was busier when the whole was measured
			whole = whole * 3 / 4
			s.age("s")
			old = s.told("s")
			continue
		}
		if !cut { // the error of the cut-off is the database's own
			t.Fatal(err)
		}
		if now := s.told("s"); now != old && now != want {
			broken++
		}
		if s.current() {
			t.Fatal("half a rebuild counts as one")
		}
	}
	if err := c.maintainer.Update(t.Context(), "s"); err != nil || s.told("s") != want {
		t.Errorf("it is not as its journal tells: %v", err)
	}
	t.Logf("broken off in the middle %d times", broken)
	if broken == 0 {
		t.Error("nothing was broken off in the middle")
	}
}

// A conversation goes on while its transcript is rebuilt.
func TestRebuildOfSessionThatGoesOn(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	teller := newStoryteller(t, 6)
	half := len(teller.tell(15))
	story := teller.tell(15)
	s.put("s", story[:half])
	c := s.open()
	until(t, c, s.current)
	s.age("s")
	fold := transcript.New("s", transcript.Facts{})
	for _, f := range story[:half] {
		fold.Apply(f)
	}
	fold.Take()
	stop := make(chan struct{})
	said := make(chan int)
	go func() {
		n := half
		defer func() { said <- n }()
		for ; n < len(story); n++ {
			select {
			case <-stop:
				return
			default:
			}
			fold.Apply(story[n])
			changes, _ := fold.Take()
			step := step{frames: story[n : n+1]}
			if err := step.save(context.Background(), s.db, "s", changes); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	err := c.maintainer.Update(t.Context(), "s")
	close(stop)
	n := <-said
	if err != nil {
		t.Fatal(err)
	}
	again := transcript.New("s", transcript.Facts{})
	for _, f := range story[:n] {
		again.Apply(f)
	}
	made, _ := again.Take()
	different := 0
	for _, ch := range made {
		different += 1 - s.number(`SELECT count(*) FROM entry WHERE id = ? AND seq = ? AND data = ?`, ch.Entry.ID, ch.Entry.Seq, string(mustJSON(ch.Entry)))
	}
	if different > 1 { // the fold of the last entry may be stored later
		t.Errorf("entries that are not as the journal of %d frames makes them: got %d of %d, want 1 at most", n, different, len(made))
	}
	if have := s.number(`SELECT count(*) FROM entry WHERE session = 's'`); have != len(made) {
		t.Errorf("entries: got %d, want %d", have, len(made))
	}
	t.Logf("%d of %d frames were said meanwhile", n-half, len(story)-half)
}

// The transcript of a journal that cannot be read is left as it was, with a notice.
func TestRebuildLeavesTranscriptOfDamagedJournal(t *testing.T) {
	for name, harm := range map[string]func(s *shelf){
		"a missing frame": func(s *shelf) { s.exec(`DELETE FROM frame WHERE session = 's' AND n = 20`) },
		"a missing blob": func(s *shelf) {
			if err := os.RemoveAll(filepath.Join(s.dir, "blobs")); err != nil {
				s.t.Fatal(err)
			}
		},
		"a damaged frame": func(s *shelf) {
			s.exec(`UPDATE frame SET payload = zeroblob(length(payload)) WHERE session = 's' AND encoding = 'zstd'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShelf(t)
			s.put("s", newStoryteller(t, 2).tell(5))
			s.age("s")
			harm(s)
			want := s.told("s")
			c := s.open()
			told := func() bool { // the notice comes after the rebuild is stored
				b, _ := c.feed.After(t.Context(), feed.Query{Gen: c.feed.Gen(), Types: []string{eventNotice}})
				return len(b.Events) > 0
			}
			events := until(t, c, func() bool { return s.number(`SELECT projection FROM session`) == -transcript.Projection && told() })
			if s.told("s") != want {
				t.Error("the transcript was changed")
			}
			if !slices.ContainsFunc(events, func(e feed.Event) bool {
				return e.Type == eventNotice && e.Session == "s" && bytes.Contains(e.Data, []byte("journal.damaged"))
			}) {
				t.Error("nobody was told")
			}
			if got, err := c.Transcripts().Entries(t.Context(), "s", 0, 1000); err != nil || len(got.Items) == 0 {
				t.Errorf("it cannot be read any more: %v", err)
			}
		})
	}
}

// Blobs that nothing names are removed.
func TestUnusedBlobsAreRemoved(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("kept", newStoryteller(t, 3).tell(4))
	s.put("erased", newStoryteller(t, 4).tell(4))
	blobs := func() (list []string) {
		if err := s.db.Blobs.Each(t.Context(), func(sha string, _ fs.FileInfo) error { list = append(list, sha); return nil }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	c := s.open()
	s.exec(`DELETE FROM session WHERE id = 'erased'`)
	if err := s.db.Blobs.Keep(func() error {
		_, err := s.db.Blobs.Put(bytes.Repeat([]byte("of a step that was never written "), 1000))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.maintainer.Tidy()
	named := s.number(`SELECT count(DISTINCT payload) FROM frame WHERE encoding = 'blob'`)
	until(t, c, func() bool { return len(blobs()) == named })
	if _, err := c.Transcripts().Rebuild(t.Context(), "kept"); err != nil {
		t.Errorf("blobs that are named are gone: %v", err)
	}
}
