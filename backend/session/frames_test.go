package session_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

func (d *desk) wire(id string, q session.FrameQuery) session.FramePage {
	d.t.Helper()
	page, err := d.Wire(d.t.Context(), id, q)
	if err != nil {
		d.t.Fatal(err)
	}
	return page
}

// inShort is a frame in short: its direction, kind and method.
func inShort(items []session.Frame) (list []string) {
	for _, f := range items {
		list = append(list, f.Dir+" "+f.Kind+" "+f.Method)
	}
	return list
}

// fill writes frames straight into the journal of a session that sleeps, as a long conversation has left them.
func (d *desk) fill(id string, count int, data func(n int) (dir, text string)) {
	d.t.Helper()
	err := d.db.Write(d.t.Context(), func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRow(`SELECT max(n) FROM frame WHERE session = ?`, id).Scan(&last); err != nil {
			return err
		}
		insert, err := tx.Prepare(`INSERT INTO frame (session, n, generation, at, dir, encoding, payload) VALUES (?, ?, 9, ?, ?, 'raw', ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for n := range count {
			dir, text := data(n)
			if _, err := insert.Exec(id, last+int64(n)+1, 1_700_000_000_000+n, dir, []byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func update(n int) (dir, text string) {
	return "in", fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word %d"}}}}`, n)
}

func TestWhatWentOverTheWire(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo\nthe lighthouse")
	d.idle(s.ID)

	all := d.wire(s.ID, session.FrameQuery{After: new(int64(0)), Limit: 500, Notes: true, Bodies: true})
	var want []string
	for dir, data := range d.journal(s.ID) {
		want = append(want, dir+" "+string(data))
	}
	var got []string
	for i, f := range all.Items {
		got = append(got, f.Dir+" "+string(f.Body))
		if f.Seq != int64(i)+1 || f.Size != len(f.Body) || f.At.IsZero() || f.Generation != 1 {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Equal(got, want) || all.More || all.Next != int64(len(want)) {
		t.Errorf("got %q, next %d, more %v\nwant %q", got, all.Next, all.More, want)
	}

	prompts := d.wire(s.ID, session.FrameQuery{Method: "session/prompt", Limit: 10})
	if list := inShort(prompts.Items); !slices.Equal(list, []string{"in response session/prompt", "out request session/prompt"}) {
		t.Fatalf("%q", list)
	}
	answer, question := prompts.Items[0], prompts.Items[1]
	if answer.Millis == nil || *answer.Millis != answer.At.Sub(question.At.Time).Milliseconds() || string(answer.ID) != string(question.ID) || question.Millis != nil {
		t.Errorf("%+v\n%+v", answer, question)
	}
	if answer.Body != nil || answer.Size == 0 {
		t.Errorf("nobody asked for the body: %+v", answer)
	}
	if out := d.wire(s.ID, session.FrameQuery{Dir: "out", Limit: 100}); slices.ContainsFunc(out.Items, func(f session.Frame) bool { return f.Dir != "out" }) || len(out.Items) < 3 {
		t.Errorf("%q", inShort(out.Items))
	}
	notes := d.wire(s.ID, session.FrameQuery{Notes: true, Method: "turn.", Limit: 100})
	if list := inShort(notes.Items); !slices.Equal(list, []string{"note note turn.ended", "note note turn.began"}) {
		t.Errorf("%q", list)
	}
	if found := d.wire(s.ID, session.FrameQuery{Text: "LIGHTHOUSE", Limit: 100}); len(found.Items) < 2 {
		t.Errorf("%q", inShort(found.Items))
	}
	if found := d.wire(s.ID, session.FrameQuery{Text: `"sessionUpdate":"agent_message_chunk"`, Limit: 100}); len(found.Items) == 0 {
		t.Error("what is looked for may be JSON")
	}
	told := d.wire(s.ID, session.FrameQuery{Method: "agent_mess", Limit: 100})
	if len(told.Items) == 0 || slices.ContainsFunc(told.Items, func(f session.Frame) bool { return f.Update != "agent_message_chunk" || f.Method != "session/update" }) {
		t.Errorf("%+v", told.Items)
	}
	if newest := d.wire(s.ID, session.FrameQuery{Limit: 1}); newest.Items[0].Seq != answer.Seq {
		t.Errorf("%+v", newest)
	}
	if _, err := d.Wire(t.Context(), "none", session.FrameQuery{Limit: 1}); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

func TestPagesOfTheWireHaveEachFrameOnce(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.idle(s.ID)
	d.fill(s.ID, 2_000, update)
	down, up := []int64{}, []int64{}
	for q := (session.FrameQuery{Limit: 300}); ; {
		page := d.wire(s.ID, q)
		for _, f := range page.Items {
			down = append(down, f.Seq)
		}
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	for q := (session.FrameQuery{Limit: 500, After: new(int64(0))}); ; {
		page := d.wire(s.ID, q)
		for _, f := range page.Items {
			up = append(up, f.Seq)
		}
		if q.After = &page.Next; !page.More {
			break
		}
	}
	slices.Reverse(down)
	if !slices.Equal(up, down) || len(up) <= 2_000 || !slices.IsSorted(up) {
		t.Errorf("%d frames upwards, %d downwards", len(up), len(down))
	}
}

// A filter that finds nothing looks through a bounded part of the journal at a time, and goes on where it was.
func TestAFilterLooksThroughALongJournalInParts(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.idle(s.ID)
	d.fill(s.ID, 30_000, func(n int) (string, string) {
		if n == 10 {
			return "out", `{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"the needle"}]}}`
		}
		if n == 29_999 {
			return "in", `{"jsonrpc":"2.0","id":77,"result":{"stopReason":"end_turn"}}`
		}
		return update(n)
	})
	calls, found := 0, []session.Frame{}
	for q := (session.FrameQuery{Limit: 100, Text: "needle"}); ; calls++ {
		page := d.wire(s.ID, q)
		found = append(found, page.Items...)
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if len(found) != 1 || calls < 2 || calls > 10 {
		t.Errorf("%d found in %d calls", len(found), calls)
	}
	newest := d.wire(s.ID, session.FrameQuery{Limit: 1})
	if f := newest.Items[0]; f.Method != "session/prompt" || f.Millis == nil || *f.Millis != 29_989 {
		t.Errorf("the request is far before its response, and has to be found: %+v", f)
	}
}

func TestLongAndBrokenFrames(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.idle(s.ID)
	long := `{"jsonrpc":"2.0","method":"long","params":"` + strings.Repeat("x", 100<<10) + `"}`
	d.fill(s.ID, 3, func(n int) (string, string) {
		return "in", []string{long, `no JSON at all`, `{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"told by our-own-token"}}`}[n]
	})
	page := d.wire(s.ID, session.FrameQuery{Limit: 3, Bodies: true})
	if list := inShort(page.Items); !slices.Equal(list, []string{"in response ", "in unknown ", "in notification long"}) {
		t.Fatalf("%q", list)
	}
	failed, broken, cut := page.Items[0], page.Items[1], page.Items[2]
	if !failed.Failed || strings.Contains(string(failed.Body), "our-own-token") || !json.Valid(failed.Body) {
		t.Errorf("%s", failed.Body)
	}
	if string(broken.Body) != `"no JSON at all"` {
		t.Errorf("%s", broken.Body)
	}
	if !cut.Truncated || cut.Body != nil || cut.Size != len(long) {
		t.Errorf("%v, %d bytes", cut.Truncated, cut.Size)
	}
	if whole, err := d.FrameBody(t.Context(), s.ID, cut.Seq); err != nil || string(whole) != long {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	if _, err := d.FrameBody(t.Context(), s.ID, cut.Seq+100); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

func TestFollowingTheWire(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.idle(s.ID)
	at := d.wire(s.ID, session.FrameQuery{Limit: 1, Notes: true}).Items[0].Seq
	got := make(chan []session.Frame, 1)
	go func() {
		var list []session.Frame
		for after := at; len(list) == 0 || list[len(list)-1].Method != "turn.began"; { // what the agent says at its start may come before
			page, err := d.Wire(context.Background(), s.ID, session.FrameQuery{After: &after, Wait: 25 * time.Second, Limit: 1, Notes: true})
			if err != nil || len(page.Items) == 0 {
				t.Errorf("%+v, %v", page, err)
				break
			}
			list, after = append(list, page.Items...), page.Next
		}
		got <- list
	}()
	d.prompt(s.ID, "echo\nhello")
	for i, f := range <-got {
		if f.Seq != at+int64(i)+1 {
			t.Errorf("frame %d is behind %d", f.Seq, at+int64(i))
		}
	}
	d.idle(s.ID)
	begun := time.Now()
	end := d.wire(s.ID, session.FrameQuery{Limit: 1, Notes: true}).Items[0].Seq
	page := d.wire(s.ID, session.FrameQuery{After: &end, Wait: 50 * time.Millisecond, Limit: 500})
	if len(page.Items) != 0 || page.Next != end || page.More || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("%+v", page)
	}
}

func TestWhatAnAgentWasGivenAndItsStderr(t *testing.T) {
	d := open(t, t.TempDir())
	d.mcpFile(`{"files":` + saysEntry(t, "hello") + `}`)
	s := d.create()
	d.answer(d.request(s.ID), session.Answer{OptionID: "approve"})
	d.ready(s.ID)
	d.prompt(s.ID, "echo\nhello")
	d.idle(s.ID)
	g, err := d.Given(t.Context(), s.ID)
	if err != nil || g.Generation != 1 || g.Turns != 1 || len(g.Servers) != 1 || g.Servers[0] != (session.GivenServer{Name: "files", Transport: "stdio"}) {
		t.Errorf("%+v %v", g, err)
	}
	if g.Plan != nil {
		t.Errorf("there was none yet: %+v", g.Plan)
	}
	d.prompt(s.ID, "plan")
	plan := find(d.idle(s.ID), "plan")
	if g, err = d.Given(t.Context(), s.ID); err != nil || plan == nil || g.Plan == nil || g.Plan.ID != plan.ID || len(g.Plan.Plan) != len(plan.Plan) || g.Turns != 2 {
		t.Errorf("%+v %v", g, err)
	}
	running, err := d.Stderr(t.Context(), s.ID)
	if err != nil || !running.Running || running.PID == 0 || running.Generation != 1 {
		t.Errorf("%+v %v", running, err)
	}
	d.prompt(s.ID, "crash")
	d.until("the crash", func() bool { return d.get(s.ID).Exit != nil })
	ended, err := d.Stderr(t.Context(), s.ID)
	if err != nil || ended.Running || ended.Text != d.get(s.ID).Exit.StderrTail || ended.Text == "" {
		t.Errorf("%+v %v", ended, err)
	}
}

// BenchmarkWire is a page of a journal of 100,000 frames: its end, and one that a filter has to look for.
func BenchmarkWire(b *testing.B) {
	d := open(b, b.TempDir())
	s := d.create()
	d.idle(s.ID)
	d.fill(s.ID, 100_000, update)
	for name, q := range map[string]session.FrameQuery{
		"tail": {Limit: 500}, "middle": {Limit: 500, Before: 50_000}, "needle": {Limit: 500, Text: "no such text"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Wire(b.Context(), s.ID, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Who looks through long journals at the same time does not wait for a connection that another of them holds: there are four.
func TestManyLooksThroughALongJournal(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.ready(s.ID)
	const frames = 600 // more than a search reads in one go, so that the request is looked for in a second one
	d.fill(s.ID, frames+2, func(n int) (dir, text string) {
		switch n {
		case 0:
			return "out", `{"jsonrpc":"2.0","id":77,"method":"session/prompt"}`
		case frames + 1:
			return "in", `{"jsonrpc":"2.0","id":77,"result":{}}`
		}
		return "in", `{"jsonrpc":"2.0","method":"session/update"}`
	})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := d.Wire(ctx, s.ID, session.FrameQuery{Text: "none", Limit: 100}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
