package session_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

func (d *desk) forkOf(id string) session.Session {
	d.t.Helper()
	s, err := d.Fork(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func TestForkGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	parent := d.create()
	d.prompt(parent.ID, "permission")
	r := d.request(parent.ID)
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	d.idle(parent.ID)
	d.prompt(parent.ID, "echo "+strings.Repeat("long ", 5000)) // long enough for a frame in a blob
	d.idle(parent.ID)
	parent = d.get(parent.ID)

	s := d.forkOf(parent.ID)
	if s.ID == parent.ID || s.ACPSessionID == "" || s.ACPSessionID == parent.ACPSessionID || s.Phase != lifecycle.Starting && s.Phase != lifecycle.Ready || s.Agent != parent.Agent || s.Cwd != parent.Cwd {
		t.Fatalf("forked as %+v", s)
	}
	if want := (session.Origin{Kind: "fork", Session: parent.ID, Title: parent.Title, Agent: parent.Agent}); s.Origin == nil || *s.Origin != want {
		t.Fatalf("origin %+v", s.Origin)
	}
	before, tr := d.transcript(parent.ID), d.idle(s.ID)
	if len(tr.Items) != len(before.Items)+2 || asked(tr) != asked(before) || said(tr) != said(before) || dividers(tr) != "session.forked session.resumed" {
		t.Fatalf("%d entries of %d, %s", len(tr.Items), len(before.Items), dividers(tr))
	}
	if len(tr.Turns) != 2 || len(tr.Requests) != 1 || tr.Requests[0].Session != s.ID || tr.Requests[0].ID == r.ID || tr.Requests[0].Status != "answered" {
		t.Fatalf("turns %+v, requests %+v", tr.Turns, tr.Requests)
	}
	for i, e := range tr.Items[:len(before.Items)] {
		if e.ID == before.Items[i].ID || e.Session != s.ID || e.Seq != before.Items[i].Seq || e.Turn != "" && e.Turn == before.Items[i].Turn {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	d.sameAsRebuilt(s.ID)
	d.sameAsRebuilt(parent.ID)
	if text, err := d.Transcripts().Text(t.Context(), s.ID, tr.Items[len(before.Items)-1].ID); err != nil || text == "" {
		t.Fatalf("Text of the last entry of before: got %q, %v; want it", text, err)
	}

	d.prompt(s.ID, "echo in the fork")
	d.idle(s.ID)
	d.prompt(parent.ID, "echo in the parent")
	d.idle(parent.ID)
	fork, rest := d.transcript(s.ID), d.transcript(parent.ID)
	if !strings.Contains(asked(fork), "in the fork") || strings.Contains(asked(fork), "in the parent") || strings.Contains(asked(rest), "in the fork") {
		t.Fatalf("they are mixed: %s\n%s", asked(fork), asked(rest))
	}
	if got := dividers(fork); got != "session.forked session.resumed" {
		t.Fatalf("dividers of the fork: %s", got)
	}
	if got := dividers(rest); got != "" {
		t.Fatalf("dividers of the parent: %s", got)
	}
	d.sameAsRebuilt(s.ID)
	d.sameAsRebuilt(parent.ID)
	second := d.forkOf(s.ID)
	if got := dividers(d.idle(second.ID)); got != "session.forked session.resumed session.forked session.resumed" {
		t.Fatalf("dividers of a fork's fork: %s", got)
	}
}

// Fork starts the agent, asks it in the process that has the session, and closes the fork there.
func TestForkStartsTheAgentAndLetsGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	parent := d.create()
	d.prompt(parent.ID, "echo")
	d.idle(parent.ID)
	d.close()

	d = open(t, dir)
	s := d.forkOf(parent.ID)
	closed := false
	for dir, data := range d.journal(parent.ID) {
		var m struct {
			Method string
			Params struct{ SessionID string }
		}
		_ = json.Unmarshal(data, &m)
		closed = closed || dir == "out" && m.Method == "session/close" && m.Params.SessionID == s.ACPSessionID
	}
	if !closed {
		t.Fatal("the fork stays open in the parent's process")
	}
	if tr := d.transcript(parent.ID); find(tr, "raw") != nil {
		t.Fatalf("the parent shows what is the fork's: %+v", find(tr, "raw"))
	}
	d.sameAsRebuilt(parent.ID)
}

func TestForkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume")
	d := open(t, dir)
	id := d.create().ID
	d.prompt(id, "slow")
	d.works(id)
	_, err := d.Fork(t.Context(), id)
	refused(t, err, "turn.running")
	other := d.createOf("forgetful").ID
	for range 2 { // while the agent starts, and once its capabilities are known
		_, err = d.Fork(t.Context(), other)
		refused(t, err, "fork.unsupported")
		d.idle(other)
	}
	list, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("List after refused forks: got %+v, %v; want 2", list, err)
	}
}

// Fork fails when the agent ends before it has answered.
func TestForkFailsWhenAgentEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "forks")
	d := open(t, dir)
	id := d.createOf("forgetful").ID
	d.idle(id)
	_, err := d.Fork(t.Context(), id)
	refused(t, err, "agent.exited")
}

// A fork that the agent has forgotten before the first prompt is made again, as long as that gives the same.
func TestForkThatAgentForgetsIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "forks lives resume refuses")
	d := open(t, dir)
	parent := d.createOf("forgetful").ID
	d.prompt(parent, "hello")
	d.idle(parent)
	fork := func() session.Session {
		s := d.forkOf(parent)
		if got := dividers(d.idle(s.ID)); got != "session.forked" {
			t.Fatalf("dividers %s", got)
		}
		return s
	}
	first, second := fork(), fork()
	d.prompt(first.ID, "go on")
	if got := textOf(d.idle(first.ID), "agent"); !strings.HasSuffix(got, "initialize session/resume session/fork session/prompt\n") {
		t.Fatalf("it says %q", got)
	}
	d.prompt(parent, "and further")
	d.idle(parent)
	for _, id := range []string{first.ID, second.ID} { // each has gone on, or its parent has
		if err := d.Restart(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		d.prompt(id, "what now?")
		if got := dividers(d.idle(id)); got != "session.forked session.fresh" {
			t.Fatalf("dividers %s", got)
		}
		d.sameAsRebuilt(id)
	}
}

// longParent makes a conversation whose fork is copied in several pieces: an imported history of so many turns, and one turn that was
// prompted here.
func (d *desk) longParent(turns int) string {
	d.t.Helper()
	id, cwd := d.elsewhere("echo")
	longHistory(d.t, filepath.Join(d.dir, "demo", id+".jsonl"), turns, 20)
	s := d.importOf("mock", id, cwd)
	d.idle(s.ID)
	d.prompt(s.ID, "echo and on")
	d.idle(s.ID)
	return s.ID
}

// A fork of a long conversation is copied in pieces, between which other sessions write.
func TestForkOfALongConversation(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	turns := 45
	if long() {
		turns = 5_000
	}
	parent := d.longParent(turns)
	began, made := time.Now(), make(chan session.Session, 1)
	go func() {
		s, err := d.Fork(t.Context(), parent)
		if err != nil {
			t.Error(err)
		}
		made <- s
	}()
	longest := d.waitElsewhere(func() bool { return len(made) > 0 })
	t.Logf("%d turns copied in %v; another conversation waited %v at most", turns, time.Since(began), longest)
	s := <-made
	d.idle(s.ID)
	if before, after := d.rows(parent)["entry"], d.rows(s.ID)["entry"]; after != before+2 { // two dividers: forked and resumed
		t.Fatalf("%d entries of %d", after, before)
	}
	if !long() { // all entries fit on one page
		d.sameAsRebuilt(s.ID)
	}
}

// A fork that is being copied does not hold up the removal of blobs, for which every other writer of blobs would wait.
func TestForkHoldsNoBlobs(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	parent := d.longParent(5)
	d.sql(fmt.Sprintf(`CREATE TRIGGER slow AFTER INSERT ON entry WHEN NEW.session <> '%s' AND (SELECT count(*) FROM entry WHERE session = NEW.session) = 50
		BEGIN SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000000) SELECT i FROM n WHERE i %% 7 = 8); END`, parent))
	sha, err := d.db.Blobs.Put([]byte("nobody names this"))
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() { _, err := d.Fork(t.Context(), parent); made <- err }()
	copying := func() (is bool) {
		if err := d.db.Read().QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM session WHERE deleted_at = 1)`).Scan(&is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	d.until("the copy", copying)
	if _, err := d.db.Blobs.Sweep(t.Context(), func(name string) (bool, error) { return name != sha, nil }); err != nil {
		t.Fatal(err)
	}
	if !copying() {
		t.Error("it had to wait for the copy")
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
}

// sql changes the database behind the client.
func (d *desk) sql(text string) {
	d.t.Helper()
	if err := d.db.Write(d.t.Context(), func(tx *sql.Tx) error { _, err := tx.ExecContext(d.t.Context(), text); return err }); err != nil {
		d.t.Fatal(err)
	}
}

// A copy that breaks off leaves no rows: when the disk fails in the middle, and when the parent is erased meanwhile. Until the copy is
// whole it counts as deleted, for a kill of the program in between.
func TestForkThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"disk":   `BEFORE INSERT ON entry WHEN NEW.session <> '%s' AND (SELECT count(*) FROM entry WHERE session = NEW.session) = 600 BEGIN SELECT RAISE(ABORT, 'no space'); END`,
		"parent": `AFTER INSERT ON frame WHEN NEW.session <> '%[1]s' AND NEW.n = 100 BEGIN DELETE FROM frame WHERE session = '%[1]s' AND n > 600; END`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, t.TempDir())
			parent := d.longParent(45)
			d.sql(`CREATE TABLE seen (id TEXT, deleted_at INTEGER)`)
			d.sql(`CREATE TRIGGER seeing AFTER INSERT ON frame WHEN NEW.n = 20 BEGIN INSERT INTO seen SELECT id, deleted_at FROM session WHERE id = NEW.session; END`)
			d.sql(fmt.Sprintf(`CREATE TRIGGER breaking `+at, parent))
			if s, err := d.Fork(t.Context(), parent); err == nil {
				t.Fatalf("forked as %s", s.ID)
			}
			var id string
			var deleted int
			if err := d.db.Read().QueryRowContext(t.Context(), `SELECT id, deleted_at FROM seen`).Scan(&id, &deleted); err != nil || deleted == 0 {
				t.Fatalf("while it was made it counted as deleted at %d, %v", deleted, err)
			}
			if page, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(page.Items) != 1 {
				t.Fatalf("there are %+v, %v", page.Items, err)
			}
			d.until("the end of what was made", func() bool { return len(d.rows(id)) == 0 })
		})
	}
}
