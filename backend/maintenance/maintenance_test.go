package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/attachments"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/search"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// fixture is a data directory with stored conversations and a Maintainer, without agents.
type fixture struct {
	t  *testing.T
	db *store.DB
	*Maintainer

	running int
	refused error
	mu      sync.Mutex // protects the fields below
	kinds   []string   // of the published records
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	f := &fixture{t: t, db: db}
	none := func(context.Context) error { return nil }
	f.Maintainer = New(Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Pace: time.Hour,
		Publish: func(kind, _ string, _ any) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.kinds = append(f.kinds, kind)
		},
		Writable: func() error { return f.refused }, Running: func() int { return f.running },
		Search:         search.New(search.Deps{Store: db, Logger: slog.New(slog.DiscardHandler)}),
		Attachments:    attachments.New(attachments.Deps{Store: db, Unnamed: time.Hour}),
		PruneSnapshots: none, SnapshotBytes: func(context.Context) (int64, error) { return 0, nil },
		Workspaces: func(context.Context) ([]workspace.KnownWorkspace, error) {
			return []workspace.KnownWorkspace{{ID: "w", Place: local, Path: "/work"}}, nil
		},
		SaveOutcome: saveOutcome,
		KnownAgent:  func(id string) bool { return id == "mock" },
		AgentSessions: func(context.Context, string, string) ([]AgentSession, string, bool, error) {
			return []AgentSession{{ID: "theirs", Title: "of theirs", Cwd: "/work"}}, "", true, nil
		},
		SessionsOf: func(context.Context, string) (map[string]string, error) {
			return map[string]string{"forgotten": "s"}, nil
		},
	})
	f.Start(context.Background())
	t.Cleanup(func() {
		f.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/work', 0, 0, 0, 1)`)
	return f
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	if err := f.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(text, args...)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// text returns the text of the agent's only message.
func (f *fixture) text() (text string) {
	f.t.Helper()
	if err := f.db.Read().QueryRow(`SELECT data ->> 'text' FROM entry WHERE data ->> 'kind' = 'agent'`).Scan(&text); err != nil {
		f.t.Fatal(err)
	}
	return text
}

func (f *fixture) add(id string, frames ...journal.Frame) {
	f.t.Helper()
	stored, err := journal.Of(f.db).Encode(frames)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.db.Write(context.Background(), func(tx *sql.Tx) error { return journal.Append(context.Background(), tx, id, stored) }); err != nil {
		f.t.Fatal(err)
	}
}

func note(n int64, note transcript.Note) journal.Frame {
	return journal.Frame{N: n, Generation: 1, At: time.UnixMilli(1_700_000_000_000), Dir: journal.Note, Data: record.JSON(note)}
}

func says(n int64, text string) journal.Frame {
	return journal.Frame{N: n, Generation: 1, At: time.UnixMilli(1_700_000_000_000), Dir: journal.In, Data: []byte(`{"jsonrpc":"2.0","method":"session/update",
		"params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`)}
}

// put stores a conversation whose agent says a text, without a transcript, and returns the journal.
func (f *fixture) put(id, text string) []journal.Frame {
	f.t.Helper()
	f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at, projection)
		VALUES (?, 'local', 'w', '/work', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 1, 1, 0, 1)`, id)
	frames := []journal.Frame{note(1, transcript.Note{Note: transcript.NoteTurnBegan, Turn: "t-" + id}), says(2, text)}
	f.add(id, frames...)
	return frames
}

func (f *fixture) update(id string) {
	f.t.Helper()
	if err := f.Update(context.Background(), id); err != nil {
		f.t.Fatal(err)
	}
}

// verify runs a verification to its end and returns the codes of the findings.
func (f *fixture) verify(wish Verify) (codes []string) {
	f.t.Helper()
	if _, err := f.Verify(wish); err != nil {
		f.t.Fatal(err)
	}
	f.wg.Wait()
	now := f.Verification()
	if now.State != verifyDone || now.Done != now.Total {
		f.t.Errorf("Verification: got state %s, %d of %d; want done", now.State, now.Done, now.Total)
	}
	for _, found := range now.Findings {
		code := found.Code
		if found.Repaired {
			code += "+"
		}
		codes = append(codes, code)
	}
	return codes
}

func TestUpdateRebuildsTheTranscriptOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello")
	f.update("s")
	if got := f.text(); got != "hello" {
		t.Errorf("text after Update: got %q, want hello", got)
	}
	f.exec(`UPDATE entry SET data = json_set(data, '$.text', 'other')`)
	f.update("s")
	if got := f.text(); got != "other" {
		t.Errorf("text after an Update of a current transcript: got %q, want it left as it is", got)
	}
}

func TestUpdateOfADamagedJournalChangesNothingAndTellsOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello")
	f.update("s")
	f.exec(`UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE n = 2`)
	f.exec(`UPDATE session SET projection = 1`)
	f.kinds = nil
	f.update("s")
	f.update("s")
	if got := f.text(); got != "hello" || !slices.Equal(f.kinds, []string{eventNotice}) {
		t.Errorf("two Updates of a damaged journal: got text %q and events %v, want hello and one notice", got, f.kinds)
	}
}

// A rebuild that has read the journal of a conversation does not undo what was said since.
func TestRebuildIsNeverBehindTheConversation(t *testing.T) {
	t.Parallel()
	f := open(t)
	b := &rebuilding{Maintainer: f.Maintainer, retelling: retell("x"), made: map[string]bool{}}
	for _, frame := range f.put("x", "one") {
		b.apply(frame)
	}
	b.take()
	f.add("x", says(3, ", two"))
	f.update("x")
	if err := b.store(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.text(); got != "one, two" {
		t.Errorf("text after a part of the rebuild: got %q, want %q", got, "one, two")
	}
	f.exec(`UPDATE entry SET data = json_set(data, '$.text', 'one, two, more than was said') WHERE data ->> 'kind' = 'agent'`)
	if err := b.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.text(); got != "one, two" {
		t.Errorf("text after the rebuild: got %q, want %q", got, "one, two")
	}
}

func TestVerifyFindsAndRepairs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm  func(f *fixture)
		found []string
		fixed []string
	}{
		"nothing":            {func(*fixture) {}, nil, nil},
		"a missing entry":    {func(f *fixture) { f.exec(`DELETE FROM entry`) }, []string{"entries.differ"}, []string{"entries.differ+"}},
		"a missing turn":     {func(f *fixture) { f.exec(`DELETE FROM turn`) }, []string{"turns.differ"}, []string{"turns.differ+"}},
		"a changed entry":    {func(f *fixture) { f.exec(`UPDATE entry SET data = json_set(data, '$.text', 'other')`) }, []string{"entries.differ"}, []string{"entries.differ"}},
		"a gap":              {func(f *fixture) { f.exec(`DELETE FROM frame WHERE n = 1`) }, []string{"journal.gap"}, []string{"journal.gap"}},
		"a damaged frame":    {func(f *fixture) { f.exec(`UPDATE frame SET at = at + 1 WHERE n = 1`) }, []string{"journal.damaged"}, []string{"journal.damaged"}},
		"a damaged record":   {func(f *fixture) { f.exec(`UPDATE session SET labels = '['`) }, []string{"database.record"}, []string{"database.record"}},
		"an unknown agent":   {func(f *fixture) { f.exec(`UPDATE session SET agent = 'nobody'`) }, []string{"session.agent_unknown"}, []string{"session.agent_unknown"}},
		"an unindexed entry": {func(f *fixture) { f.exec(`DELETE FROM unsearched`) }, []string{"search.missing"}, []string{"search.missing+"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.put("s", "hello")
			f.update("s")
			tc.harm(f)
			if got := f.verify(Verify{}); !slices.Equal(got, tc.found) {
				t.Errorf("Verify of %s: got %v, want %v", name, got, tc.found)
			}
			if got := f.verify(Verify{Repair: true}); !slices.Equal(got, tc.fixed) {
				t.Errorf("Verify with repair of %s: got %v, want %v", name, got, tc.fixed)
			}
		})
	}
}

func TestVerifyTakesTheJournalOrKeepsTheTranscript(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wish Verify
		want string
	}{
		"take": {Verify{TakeJournal: []string{"s"}}, "hello"},
		"keep": {Verify{KeepTranscript: []string{"s"}}, "other"},
	} {
		f := open(t)
		f.put("s", "hello")
		f.update("s")
		f.exec(`UPDATE entry SET data = json_set(data, '$.text', 'other') WHERE data ->> 'kind' = 'agent'`)
		if got := f.verify(tc.wish); !slices.Equal(got, []string{"entries.differ+"}) || f.text() != tc.want {
			t.Errorf("%s: got %v and text %q, want entries.differ+ and %q", name, got, f.text(), tc.want)
		}
		f.exec(`UPDATE session SET projection = 1`)
		f.update("s")
		if got := f.verify(Verify{Repair: true}); len(got) > 0 || f.text() != tc.want {
			t.Errorf("%s, after an update: got %v and text %q, want no finding and %q", name, got, f.text(), tc.want)
		}
	}
}

func TestVerifyComparesWithTheAgentsLists(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello")
	f.update("s")
	if got, want := f.verify(Verify{Agents: true}), []string{"agent.offers", "agent.forgot"}; !slices.Equal(got, want) {
		t.Errorf("Verify with agents: got %v, want %v", got, want)
	}
}

func TestVerifyOfAnErasedSessionFindsNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello")
	f.update("s")
	f.exec(`UPDATE session SET deleted_at = 1`)
	f.exec(`DELETE FROM frame WHERE n = 1`)
	x := &examination{Maintainer: f.Maintainer, v: &verifying{}}
	if err := x.session(t.Context(), "s"); err != nil || len(x.v.now.Findings) > 0 {
		t.Errorf("session: got the findings %v, %v; want none", x.v.now.Findings, err)
	}
}

// work begins work that ends with err when end is closed, or when the work is cancelled.
func (f *fixture) work(end <-chan struct{}, err error) (Work, error) {
	return f.BeginWork(WorkExport, func(ctx context.Context, change func(func(*Work))) error {
		change(func(w *Work) { w.Done = 1 })
		select {
		case <-end:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func TestWorkRunsOneAtATimeAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		for _, tc := range []struct {
			err         error
			state, code string
		}{{nil, workDone, ""}, {refusal.Bad("export.directory"), workFailed, "export.directory"}, {errors.New("no"), workFailed, refusedWorkFailed}} {
			end := make(chan struct{})
			if _, err := f.work(end, tc.err); err != nil {
				t.Fatal(err)
			}
			_, err := f.Compact()
			if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Code != refusedWork {
				t.Errorf("Compact while work runs: got %v, want the refusal %s", err, refusedWork)
			}
			close(end)
			f.wg.Wait()
			if now := f.job.show(); now.State != tc.state || now.Code != tc.code || now.Done != 1 || now.EndedAt == nil {
				t.Errorf("work that ended with %v: got %+v, want state %s and code %q", tc.err, now, tc.state, tc.code)
			}
		}
		if _, err := f.work(nil, nil); err != nil {
			t.Fatal(err)
		}
		f.CancelWork()
		f.wg.Wait()
		if now := f.job.show(); now.State != workCancelled {
			t.Errorf("cancelled work: got state %s, want %s", now.State, workCancelled)
		}
	})
}

func TestBeginWorkAndVerifyAfterCloseAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Close()
	if _, err := f.work(nil, nil); !errors.Is(err, refusal.ErrClosed) {
		t.Errorf("BeginWork after Close: got %v, want %v", err, refusal.ErrClosed)
	}
	if _, err := f.Verify(Verify{}); !errors.Is(err, refusal.ErrClosed) {
		t.Errorf("Verify after Close: got %v, want %v", err, refusal.ErrClosed)
	}
}

func TestCompactIsRefusedWhileTurnsRun(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.running = 1
	_, err := f.Compact()
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Code != refusedCompacting {
		t.Errorf("Compact while a turn runs: got %v, want the refusal %s", err, refusedCompacting)
	}
	f.running = 0
	if _, err := f.Compact(); err != nil {
		t.Fatal(err)
	}
	f.wg.Wait()
	if now := f.job.show(); now.State != workDone {
		t.Errorf("Compact: got state %s (%s, %v), want done", now.State, now.Code, now.Params)
	}
}

func TestStorageCountsWhatIsStored(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("s", "hello")
	f.update("s")
	s, err := f.Storage(t.Context())
	if err != nil || s.Sessions != 1 || s.Frames != 2 || s.Entries == 0 || s.Pending != s.Entries || s.DatabaseBytes == 0 || s.Rebuilding != nil {
		t.Errorf("Storage: got %+v, %v; want 1 session, 2 frames, every entry pending", s, err)
	}
}

func TestApartCutsTextsToTheirDifference(t *testing.T) {
	t.Parallel()
	one, other := apart("the same beginning of both texts, which is long, and one end", "the same beginning of both texts, which is long, and other end")
	if want := "…of both texts, which is long, and "; !strings.HasPrefix(one, "…") || !strings.HasSuffix(one, "one end") || !strings.HasSuffix(other, "other end") || len(one) > len(want)+20 {
		t.Errorf("apart: got %q and %q, want the ends of both, cut before their difference", one, other)
	}
}

// saveOutcome stores an outcome as package session does.
func saveOutcome(ctx context.Context, tx *sql.Tx, session string, o Outcome) error {
	columns := map[Outcome]string{
		Rebuilt: `projection = ?1, kept = 0`, Unreadable: `projection = -?1`, Kept: `kept = ?1 > 0`,
	}
	_, err := tx.ExecContext(ctx, `UPDATE session SET `+columns[o]+` WHERE id = ?2`, transcript.Projection, session)
	return err
}
