package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/export"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/search"
	"deskhand/backend/session"
)

func (d *desk) delete(id string) {
	d.t.Helper()
	if err := d.Delete(d.t.Context(), id); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) restore(id string) session.Session {
	d.t.Helper()
	s, err := d.Restore(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// listed returns which lists of sessions, or of their contents, hold this session.
func (d *desk) listed(id, word string) []string {
	d.t.Helper()
	var where []string
	for _, archived := range []bool{false, true} {
		page, err := d.List(d.t.Context(), session.Which{Archived: archived}, "", 1000)
		if err != nil {
			d.t.Fatal(err)
		}
		if slices.ContainsFunc(page.Items, func(s session.Session) bool { return s.ID == id }) {
			where = append(where, "list")
		}
	}
	if found := d.found(word); slices.ContainsFunc(found.Items, func(h search.Hit) bool { return h.Session == id }) {
		where = append(where, "search")
	}
	inbox, err := d.Requests().Waiting(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	if slices.ContainsFunc(inbox, func(r requests.Request) bool { return r.Session == id }) {
		where = append(where, "inbox")
	}
	spaces, err := d.Workspaces().List(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, w := range spaces {
		if w.Sessions > 0 {
			where = append(where, "workspaces")
		}
	}
	return where
}

// rows counts the stored rows of a session, by table.
func (d *desk) rows(id string) map[string]int {
	d.t.Helper()
	counts := map[string]int{}
	for _, table := range []string{"session", "frame", "entry", "turn", "request", "queue_item"} {
		column := "session"
		if table == "session" {
			column = "id"
		}
		var n int
		if err := d.db.Read().QueryRowContext(d.t.Context(), "SELECT count(*) FROM "+table+" WHERE "+column+" = ?", id).Scan(&n); err != nil {
			d.t.Fatal(err)
		}
		if n > 0 {
			counts[table] = n
		}
	}
	return counts
}

// methods calls every method of the client that takes a session, and returns the errors.
func (d *desk) methods(ctx context.Context, id string) map[string]error {
	_, get := d.Get(ctx, id)
	_, change := d.Change(ctx, id, session.Patch{Draft: new("x")})
	_, entries := d.Transcripts().Entries(ctx, id, 0, 10)
	_, after := d.Transcripts().After(ctx, id, 0, 10)
	_, around := d.Transcripts().Around(ctx, id, 1, 10)
	_, text := d.Transcripts().Text(ctx, id, "none")
	_, prompt := d.Prompt(ctx, id, "x")
	_, send := d.Send(ctx, id, session.Prompt{Message: "x", When: session.Queue})
	_, queue := d.Queue(ctx, id)
	_, exported := d.exporter().File(ctx, id, export.Markdown)
	return map[string]error{
		"Get": get, "Change": change, "Entries": entries, "After": after, "Around": around, "Text": text, "Prompt": prompt, "Send": send,
		"Queue": queue, "Export": exported, "Cancel": d.Cancel(ctx, id), "Restart": d.Restart(ctx, id), "SetConfig": d.SetConfig(ctx, id, "x", nil),
	}
}

func (d *desk) notFound(id string) {
	d.t.Helper()
	for name, err := range d.methods(d.t.Context(), id) {
		if !errors.Is(err, session.ErrNotFound) {
			d.t.Errorf("%s of deleted session %s = %v, want ErrNotFound", name, id, err)
		}
	}
}

// A session that waits for an approval, with prompts in its queue, is in no list once it is deleted, and is whole again once it is
// restored.
func TestDeletedSessionIsGoneAtOnceAndComesBackWhole(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo zeppelin")
	d.idle(s.ID)
	d.prompt(s.ID, "please write a note")
	r := d.request(s.ID)
	d.queues(s.ID, "first")
	d.queues(s.ID, "second")
	if _, err := d.Change(t.Context(), s.ID, session.Patch{Draft: new("half a thou"), Labels: &[]string{"work"}, Pinned: new(true)}); err != nil {
		t.Fatal(err)
	}
	d.until("the index", func() bool { return len(d.found("zeppelin").Items) > 0 })
	if got := d.listed(s.ID, "zeppelin"); !slices.Equal(got, []string{"list", "search", "inbox", "workspaces"}) {
		t.Fatal(got)
	}
	before := d.get(s.ID)
	start := d.lastSeq()

	d.delete(s.ID)
	if got := d.listed(s.ID, "zeppelin"); len(got) > 0 {
		t.Errorf("it is still in: %v", got)
	}
	d.notFound(s.ID)
	refusedAnswer := d.Answer(t.Context(), r.ID, requests.Answer{OptionID: r.Options[0].ID}, "window")
	if !errors.Is(refusedAnswer, session.ErrNotFound) {
		t.Errorf("answer: %v", refusedAnswer)
	}
	if n := d.Running(); n != 0 {
		t.Errorf("%d turns run", n)
	}
	d.delete(s.ID)
	d.until("the end of the agent", func() bool { return d.process(s.ID) == 0 })

	var told []string
	for _, e := range d.since(start) {
		if e.Session == s.ID { // process events come at any measurement
			told = append(told, e.Type)
		}
	}
	if last := told[len(told)-1]; last != "session.removed" || slices.Contains(told, "session.upsert") || strings.Count(strings.Join(told, " "), "session.removed") != 1 {
		t.Errorf("feed: got %v, want session.removed last, once, and no session.upsert", told)
	}

	now := d.restore(s.ID)
	if now.Draft != before.Draft || !slices.Equal(now.Labels, before.Labels) || !now.Pinned || now.Title != before.Title || now.Phase != lifecycle.Closed || now.Exit != nil {
		t.Errorf("restored session: got %+v, want it closed, without an exit, otherwise as before: %+v", now, before)
	}
	d.queueIs(s.ID, "first stopped, second stopped")
	tr := d.transcript(s.ID)
	if last := lastTurn(tr); last.StopReason != "cancelled" || last.State != "done" {
		t.Errorf("last turn: got %+v, want it done and cancelled", last)
	}
	if i := slices.IndexFunc(tr.Requests, func(q requests.Request) bool { return q.ID == r.ID }); tr.Requests[i].Status != "cancelled" {
		t.Errorf("request of the restored session: got %+v, want it cancelled", tr.Requests[i])
	}
	if got := d.listed(s.ID, "zeppelin"); !slices.Equal(got, []string{"list", "search", "workspaces"}) {
		t.Error(got)
	}
	if again := d.restore(s.ID); again.ID != s.ID {
		t.Error(again)
	}
	d.prompt(s.ID, "echo again")
	if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, "echo again") {
		t.Error(text)
	}
	d.sameAsRebuilt(s.ID)
}

// An idle session that is deleted and restored keeps its position in the list.
func TestRestoredSessionKeepsItsPositionInList(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo one")
	d.idle(s.ID)
	before := d.get(s.ID)
	d.delete(s.ID)
	if now := d.restore(s.ID); now.UpdatedAt != before.UpdatedAt || now.Unread != before.Unread {
		t.Errorf("%+v, before %+v", now, before)
	}
}

func TestDeletedSessionIsErased(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Undo: 50 * time.Millisecond})
	s, other := d.create(), d.create()
	for _, id := range []string{s.ID, other.ID} {
		d.prompt(id, "please write a note")
		d.request(id)
		d.queues(id, "later")
	}
	if err := d.Cancel(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(other.ID)
	kept, words := d.rows(other.ID), len(d.found("note").Items)
	if have := d.rows(s.ID); len(have) != 6 || words == 0 {
		t.Fatalf("rows of the session: got %v and %d hits, want rows in 6 tables, and hits", have, words)
	}
	d.delete(s.ID)
	for len(d.rows(s.ID)) > 0 { // the erasure publishes no event
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(d.rows(s.ID))
		}
	}
	if _, err := d.Restore(t.Context(), s.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("restore: %v", err)
	}
	d.notFound(s.ID)
	d.delete(s.ID)
	if err := d.Delete(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("one that never was: %v", err)
	}
	var left int
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM words WHERE rowid NOT IN (SELECT rowid FROM entry)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows of the index are left, %v", left, err)
	}
	if now := d.rows(other.ID); fmt.Sprint(now) != fmt.Sprint(kept) || len(d.found("note").Items) == 0 {
		t.Errorf("the other one has %v, had %v", now, kept)
	}
	d.sameAsRebuilt(other.ID)
}

// A deletion completes although the program ends before it is over.
func TestDeletionOutlivesProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Undo: time.Hour})
	back, gone := d.create(), d.create()
	for _, id := range []string{back.ID, gone.ID} {
		d.prompt(id, "echo zeppelin")
		d.idle(id)
		d.queueAndStop(id)
		d.delete(id)
	}
	d.close()

	d = openAs(t, dir, proxy.Config{}, session.Config{Undo: time.Hour})
	if page, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(page.Items) > 0 {
		t.Fatalf("List after reopening: got %+v, %v; want none", page, err)
	}
	d.notFound(gone.ID)
	d.restore(back.ID)
	d.queueIs(back.ID, "later stopped")
	d.sameAsRebuilt(back.ID)
	d.close()

	d = openAs(t, dir, proxy.Config{}, session.Config{Undo: time.Nanosecond})
	for len(d.rows(gone.ID)) > 0 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(d.rows(gone.ID))
		}
	}
	if page, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(page.Items) != 1 || page.Items[0].ID != back.ID {
		t.Fatalf("List after Restore: got %+v, %v; want only %s", page, err, back.ID)
	}
}

// queueAndStop leaves an item in the queue, held.
func (d *desk) queueAndStop(id string) {
	d.t.Helper()
	d.prompt(id, "please write a note")
	d.request(id)
	d.queues(id, "later")
	if err := d.Cancel(d.t.Context(), id); err != nil {
		d.t.Fatal(err)
	}
	d.idle(id)
}

// EraseUnused erases a session that nobody has used, and refuses one in which a person has begun something.
func TestEraseUnusedRefusesUsedSessions(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	id := d.create().ID
	d.idle(id)
	draft := func(text string) {
		if _, err := d.Change(t.Context(), id, session.Patch{Draft: &text}); err != nil {
			t.Fatal(err)
		}
	}
	draft("half a sentence")
	if r := refused(t, d.EraseUnused(t.Context(), id), "session.used"); r.Bad {
		t.Error("it is told as bad input")
	}
	draft("")
	other := d.create().ID
	d.prompt(other, "echo\nhello")
	d.idle(other)
	refused(t, d.EraseUnused(t.Context(), other), "session.used")
	if err := d.EraseUnused(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if page, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(page.Items) != 1 || page.Items[0].ID != other {
		t.Errorf("List after EraseUnused: got %+v, %v; want only %s", page.Items, err, other)
	}
}

func TestDeletionEndsStart(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{})
	s := d.create()
	d.prompt(s.ID, "echo held")
	d.delete(s.ID)
	d.notFound(s.ID)
	d.until("the end of the agent", func() bool { return d.process(s.ID) == 0 })
	if now := d.restore(s.ID); now.Phase != lifecycle.Closed || now.Turn != nil || now.Step != "" {
		t.Errorf("restored session: got %+v, want it closed, without turn and step", now)
	}
	if last := lastTurn(d.transcript(s.ID)); last.StopReason != "cancelled" && last.StopReason != "end_turn" { // the turn may end before the cancel
		t.Errorf("last turn: got %+v, want it cancelled, or ended before", last)
	}
	d.prompt(s.ID, "echo awake")
	if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, "echo awake") {
		t.Errorf("agent's text: got %q, want the echo of awake", text)
	}
}

// A hundred sessions are deleted at once while others send prompts to them and restore every second one: each is whole, or erased.
func TestDeletionOfManySessionsInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := `{"agents":[{"id":"none","command":"/there/is/none"}]}`
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{Undo: 300 * time.Millisecond})
	const many = 100
	var ids []string
	for range many {
		s, err := d.Create(t.Context(), session.New{Agent: "none", Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	var all sync.WaitGroup
	restored := make([]bool, many)
	for i, id := range ids {
		all.Go(func() {
			if err := d.Delete(t.Context(), id); err != nil {
				t.Errorf("delete: %v", err)
			}
			if i%2 == 0 {
				_, err := d.Restore(t.Context(), id)
				if restored[i] = err == nil; err != nil && !errors.Is(err, session.ErrNotFound) {
					t.Errorf("restore: %v", err)
				}
			}
		})
		all.Go(func() {
			for name, err := range d.methods(t.Context(), id) {
				var refused *session.RefusedError
				if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.As(err, &refused) {
					t.Errorf("%s of %s = %v, want nil, ErrNotFound or a refusal", name, id, err)
				}
			}
		})
	}
	all.Wait()
	for i, id := range ids {
		if restored[i] {
			d.idle(id) // a start that fails is shown a moment later
			d.sameAsRebuilt(id)
			continue
		}
		for len(d.rows(id)) > 0 {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal(d.rows(id))
			}
		}
	}
}

// The agent of a deleted session is told by the methods that it offers, and by no other.
func TestDeletionIsToldToAgent(t *testing.T) {
	t.Parallel()
	const wait = 400 * time.Millisecond
	for name, tc := range map[string]struct {
		words   string
		do      func(d *desk, id string)
		want    string
		forever bool
	}{
		"deleted":                {"resume close delete", nil, "session/close session/delete", true},
		"deleted, no close":      {"resume delete", nil, "session/delete", true},
		"deleted, close alone":   {"resume close", nil, "session/close", true},
		"deleted, nothing":       {"resume", nil, "", true},
		"restored":               {"resume close delete", func(d *desk, id string) { d.restore(id) }, "session/close", false},
		"the program ends":       {"resume close delete", func(d *desk, _ string) { d.close() }, "session/close", false},
		"it answers neither":     {"resume close delete unanswered", nil, "session/close session/delete", true},
		"archived":               {"resume close", func(d *desk, id string) { d.restore(id); d.prompt(id, "two"); d.idle(id); d.archive(id) }, "session/close session/close", false},
		"archived, no close":     {"resume", func(d *desk, id string) { d.restore(id); d.prompt(id, "two"); d.idle(id); d.archive(id) }, "", false},
		"archived, no way back":  {"close", func(d *desk, id string) { d.restore(id); d.prompt(id, "two"); d.idle(id); d.archive(id) }, "session/close session/close", false},
		"gone before the end":    {"resume close delete leaves", nil, "session/close", true},
		"imported again":         {"resume close delete", (*desk).importAgain, "session/close session/close", true},
		"restored and spoken to": {"resume close delete", func(d *desk, id string) { d.restore(id); d.prompt(id, "two"); d.idle(id) }, "session/close session/close", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			forgetfulAgent(t, dir, tc.words+" writes")
			cfg := session.Config{Undo: wait}
			if !strings.Contains(tc.words, "unanswered") && !strings.Contains(tc.words, "leaves") { // these agents do not answer
				cfg.CloseWait = 20 * time.Second
			}
			if tc.forever && tc.do != nil {
				cfg.Undo = 5 * time.Second // long enough for the steps before
			}
			d := openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, cfg)
			if tc.do != nil && !tc.forever {
				d = openAgain(d, dir)
			}
			id := d.forgetful()
			d.prompt(id, "one")
			d.idle(id)
			d.delete(id)
			if tc.do != nil {
				tc.do(d, id)
			}
			if tc.forever {
				for d.process(id) != 0 || len(d.rows(id)) > 0 {
					select {
					case <-time.After(5 * time.Millisecond):
					case <-t.Context().Done():
						t.Fatal(d.process(id), d.rows(id))
					}
				}
			}
			d.close()
			heard, _ := os.ReadFile(filepath.Join(d.work, "heard"))
			if got := strings.Join(strings.Fields(string(heard)), " "); got != tc.want {
				t.Errorf("it heard %q, want %q", got, tc.want)
			}
		})
	}
}

// An agent that works and ignores the close of its session is not kept running for as long as the deletion can be undone.
func TestDeletionEndsAgentAtWork(t *testing.T) {
	t.Parallel()
	const heeds = `read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read l; echo "$l" >>heard; exit`
	for name, tc := range map[string]struct {
		can, then string
		kept      bool
	}{
		"it ignores the close":  {`"close":{},"delete":{}`, `sleep 1000`, false},
		"it ignores the cancel": {`"delete":{}`, `sleep 1000`, false},
		"it heeds the cancel":   {`"delete":{}`, heeds, true},
		"it takes its time":     {`"delete":{}`, `sleep 1.5; ` + heeds, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			custom(t, dir, map[string]string{"busy": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{` + tc.can + `}}}}'
				read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'; read l; touch at-it; ` + tc.then})
			cfg := session.Config{Undo: time.Hour, CloseWait: 300 * time.Millisecond}
			if tc.kept {
				cfg = session.Config{Undo: 3 * time.Second, Patience: 20 * time.Second}
			}
			d := openAs(t, dir, proxy.Config{}, cfg)
			id := d.createOf("busy").ID
			d.isReady(id)
			d.prompt(id, "go on")
			d.until("work", func() bool { _, err := os.Stat(filepath.Join(d.work, "at-it")); return err == nil })
			d.delete(id)
			d.until("end of the process", func() bool { n, _ := d.set.Running(); return n == 0 })
			heard, _ := os.ReadFile(filepath.Join(d.work, "heard"))
			if kept := strings.Contains(string(heard), "session/delete"); kept != tc.kept {
				t.Errorf("it heard %q", heard)
			}
		})
	}
}

// importAgain imports a deleted session's conversation again, from the agent's own record.
func (d *desk) importAgain(id string) {
	d.t.Helper()
	var agent, theirs string
	if err := d.db.Read().QueryRowContext(d.t.Context(), `SELECT agent, acp_session_id FROM session WHERE id = ?`, id).Scan(&agent, &theirs); err != nil {
		d.t.Fatal(err)
	}
	s := d.importOf(agent, theirs, d.work)
	d.until("the import", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
}

// archive archives a session, and checks that its agent ends if the agent can open the session again.
func (d *desk) archive(id string) {
	d.t.Helper()
	s, err := d.Change(d.t.Context(), id, session.Patch{Archived: new(true)})
	if err != nil {
		d.t.Fatal(err)
	}
	if ends := slices.Contains(s.Offers, "close") && strings.Contains(textOf(d.transcript(id), "agent"), "session/resume"); ends != s.Hibernated {
		d.t.Errorf("it ends: %v; %+v", ends, s)
	}
}

// openAgain opens a desk that erases no session before it is closed.
func openAgain(d *desk, dir string) *desk {
	d.close()
	return openAs(d.t, dir, proxy.Config{Purpose: processes.ForSession}, session.Config{Undo: time.Hour, CloseWait: 20 * time.Second})
}

// TestReadsDuringErasureAreWholeOrRefused: a read of a conversation that is being erased returns all of it, or is refused.
func TestReadsDuringErasureAreWholeOrRefused(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo what there is")
	d.idle(s.ID)
	d.alter(`WITH RECURSIVE more (n) AS (SELECT max(n) + 1 FROM frame UNION ALL SELECT n + 1 FROM more WHERE n < 1200)
		INSERT INTO frame (session, n, generation, at, dir, encoding, payload) SELECT '` + s.ID + `', n, 1, 0, 'in', 'raw', CAST('{}' AS BLOB) FROM more`)
	read := 0
	lost, err := d.WhatIsThere(t.Context(), s.ID, func([]byte) {
		if read++; read == 1 {
			d.alter(`DELETE FROM frame`)
		}
	})
	if err != nil || lost == nil {
		t.Errorf("erased to its end: %d frames, lost: %v, %v", read, lost, err)
	}

	s = d.create()
	d.prompt(s.ID, "echo what there is")
	d.idle(s.ID)
	x := map[string]*export.File{}
	for _, format := range []string{export.Markdown, export.JSON, export.Recording} {
		if x[format], err = d.exporter().File(t.Context(), s.ID, format); err != nil {
			t.Fatal(err)
		}
	}
	d.alter(`UPDATE session SET deleted_at = 1, projection = 0 WHERE id = '` + s.ID + `'`)
	d.alter(`DELETE FROM frame WHERE n <= 2`)
	if batch, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen()}); err != nil || bytes.Contains(asJSON(t, batch.Events), []byte("journal.damaged")) {
		t.Errorf("people are told of damage: %v", err)
	}
	if err := d.Erase(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	for format, x := range x {
		if _, err := x.WriteTo(io.Discard); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("as %s: %v, lost: %v", format, err, x.Lost)
		}
	}
}
