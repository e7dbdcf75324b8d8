package session_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
	"unicode/utf16"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// A streaming message is not stored at every few words. Readers get the published text all the same, and a verification finds nothing.
func TestAStreamIsStoredNowAndThen(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	d.alter(`CREATE TABLE stored (n INTEGER)`)
	d.alter(`INSERT INTO stored VALUES (0)`)
	d.alter(`CREATE TRIGGER counted AFTER UPDATE OF data ON entry BEGIN UPDATE stored SET n = n + 1; END`)
	q := feed.Query{Gen: d.Feed().Gen(), Wait: time.Second}
	d.prompt(s.ID, "stream 500/s 3s")
	told, longest, verified := 0, 0, false
	for running := true; running; {
		batch, err := d.Feed().After(t.Context(), q)
		if err != nil || batch.Reset {
			t.Fatalf("After: got reset %v, %v; want events", batch.Reset, err)
		}
		q.After = batch.Seq
		ends := map[string]int{} // the published ends of entries' texts
		for _, e := range batch.Events {
			if e.Type != "entry.append" {
				continue
			}
			var a transcript.Append
			if err := json.Unmarshal(e.Data, &a); err != nil {
				t.Fatal(err)
			}
			told++
			ends[a.ID] = a.Offset + length(a.Text)
			longest = max(longest, ends[a.ID])
		}
		running = d.get(s.ID).Turn != nil
		if len(ends) == 0 {
			continue
		}
		for name, tr := range map[string]func() (session.Transcript, error){
			"the newest":        func() (session.Transcript, error) { return d.Transcripts().Entries(t.Context(), s.ID, 0, 50) },
			"those that follow": func() (session.Transcript, error) { return d.Transcripts().After(t.Context(), s.ID, 0, 500) },
		} {
			have, err := tr()
			if err != nil {
				t.Fatal(err)
			}
			for id, end := range ends {
				i := slices.IndexFunc(have.Items, func(e transcript.Entry) bool { return e.ID == id })
				if i < 0 || length(have.Items[i].Text) < end {
					t.Fatalf("%s: of an entry %d were told, and it is not there or shorter", name, end)
				}
			}
		}
		if running && !verified && told > 20 {
			verified = true
			if found := d.verified(maintenance.Verify{}); len(found) > 0 {
				t.Errorf("while it streams: %+v", found)
			}
		}
	}
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
	var stored int
	if err := d.db.Read().QueryRow(`SELECT n FROM stored`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d times told, %d stored, %d units", told, stored, longest)
	if stored == 0 || told > 100 && (4*stored > told || !verified) { // few events on a busy machine prove nothing
		t.Errorf("told %d times, stored %d times; verified: %v", told, stored, verified)
	}
}

func length(s string) int { return len(utf16.Encode([]rune(s))) }

// halting writes an agent "halts" that sends one text, and another when a file "more" exists; its turn does not end.
func halting(t *testing.T, dir, first, then string) {
	t.Helper()
	const says = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`
	custom(t, dir, map[string]string{"halts": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; ` + says + first + `"}}}}'
		until [ -e more ]; do sleep 0.02; done; ` + says + then + `"}}}}'
		cat >/dev/null`})
}

// The deferred text of an agent that falls silent in its turn is stored soon.
func TestWhatIsLateIsStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	halting(t, dir, "Half a ", "sentence")
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "halts", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "go")
	stored := func() (text string) {
		_ = d.db.Read().QueryRow(`SELECT data ->> 'text' FROM entry WHERE session = ? AND data ->> 'kind' = 'agent'`, s.ID).Scan(&text)
		return text
	}
	d.until("the first words", func() bool { return stored() == "Half a " })
	d.write("more", "")
	d.until("the others to be shown", func() bool { return textOf(d.transcript(s.ID), "agent") == "Half a sentence\n" })
	d.until("them to be stored", func() bool { return stored() == "Half a sentence" })
}

// A conversation whose agent has ended keeps nothing of its last turn in memory, and goes on as before.
func TestWithoutAnAgentNothingIsHeld(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	d.prompt(s.ID, "markdown diff plan")
	d.idle(s.ID)
	if n, err := d.Holds(t.Context(), s.ID); err != nil || n == 0 {
		t.Fatalf("%d, %v: nothing is held that could be let go", n, err)
	}
	d.prompt(s.ID, "diff crash")
	d.until("the end of the agent", func() bool { return d.get(s.ID).Phase == lifecycle.Closed })
	if n, err := d.Holds(t.Context(), s.ID); err != nil || n != 0 {
		t.Errorf("%d entries are held, %v", n, err)
	}
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
}

// Text that the disk refuses for a while can be searched once it is stored, without another message.
func TestWhatWasLateIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	halting(t, dir, "A grey ", "zeppelin")
	d := open(t, dir)
	s := d.createOf("halts")
	d.prompt(s.ID, "go")
	d.until("the first words", func() bool { return textOf(d.transcript(s.ID), "agent") == "A grey \n" })
	d.found("grey")
	d.alter(`CREATE TRIGGER refused BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
	d.write("more", "")
	d.until("the others to be shown", func() bool { return textOf(d.transcript(s.ID), "agent") == "A grey zeppelin\n" })
	<-time.After(2500 * time.Millisecond) // the index has read meanwhile, after a second
	d.alter(`DROP TRIGGER refused`)
	d.until("them to be stored", func() bool {
		var text string
		_ = d.db.Read().QueryRow(`SELECT data ->> 'text' FROM entry WHERE session = ? AND data ->> 'kind' = 'agent'`, s.ID).Scan(&text)
		return text == "A grey zeppelin"
	})
	if got := hits(d.found("zeppelin")); got != "agent: zeppelin; " {
		t.Errorf("Find(zeppelin) = %q, want one hit of the agent", got)
	}
}
