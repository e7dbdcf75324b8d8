package session_test

import (
	"errors"
	"slices"
	"testing"

	"deskhand/backend/inspect"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

func (d *desk) inspected(id string, q inspect.Query) []inspect.Frame {
	d.t.Helper()
	page, err := d.Inspector().Frames(d.t.Context(), id, q)
	if err != nil {
		d.t.Fatalf("Frames(%+v): got %v, want a page", q, err)
	}
	return page.Items
}

func TestInspectorShowsEveryFrame(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo\nthe lighthouse")
	d.idle(s.ID)
	var want, got []string
	for dir, data := range d.journal(s.ID) {
		want = append(want, dir+" "+string(data))
	}
	for i, f := range d.inspected(s.ID, inspect.Query{After: new(int64(0)), Limit: 500, Notes: true, Bodies: true}) {
		got = append(got, f.Dir+" "+string(f.Body))
		if f.Seq != int64(i)+1 || f.Size != len(f.Body) || f.At.IsZero() || f.Generation != 1 {
			t.Errorf("got frame %+v, want number %d of generation 1 with its time and size", f, i+1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want the journal %q", got, want)
	}
	if _, err := d.Inspector().Frames(t.Context(), "none", inspect.Query{Limit: 1}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Frames of no session: got %v, want ErrNotFound", err)
	}
}

func TestInspectorFollowsConversation(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.idle(s.ID)
	at := d.inspected(s.ID, inspect.Query{Limit: 1, Notes: true})[0].Seq
	followed := make(chan []inspect.Frame, 1)
	go func() {
		var list []inspect.Frame
		for after := at; len(list) == 0 || list[len(list)-1].Method != "turn.began"; { // reports of the agent's start may come before
			page, err := d.Inspector().Frames(t.Context(), s.ID, inspect.Query{After: &after, Wait: testkit.Limit, Limit: 1, Notes: true})
			if err != nil || len(page.Items) == 0 {
				t.Errorf("Frames after %d: got %+v, %v; want the next frame", after, page, err)
				break
			}
			list, after = append(list, page.Items...), page.Next
		}
		followed <- list
	}()
	d.prompt(s.ID, "echo\nhello")
	for i, f := range <-followed {
		if want := at + int64(i) + 1; f.Seq != want {
			t.Errorf("got frame %d, want %d", f.Seq, want)
		}
	}
}

func TestInspectorShowsWhatAgentWasGivenAndItsStderr(t *testing.T) {
	d := open(t, t.TempDir())
	i := d.Inspector()
	d.mcpFile(`{"files":` + saysEntry(t, "hello") + `}`)
	s := d.create()
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.ready(s.ID)
	d.prompt(s.ID, "echo\nhello")
	d.idle(s.ID)
	g, err := i.Given(t.Context(), s.ID)
	if want := (inspect.GivenServer{Name: "files", Transport: "stdio"}); err != nil || g.Generation != 1 || g.Turns != 1 || !slices.Equal(g.Servers, []inspect.GivenServer{want}) || g.Plan != nil {
		t.Errorf("Given: got %+v, %v; want generation 1, one turn, no plan and the server %+v", g, err, want)
	}
	d.prompt(s.ID, "plan")
	plan := find(d.idle(s.ID), "plan")
	if g, err = i.Given(t.Context(), s.ID); err != nil || plan == nil || g.Plan == nil || g.Plan.ID != plan.ID || len(g.Plan.Plan) != len(plan.Plan) || g.Turns != 2 {
		t.Errorf("Given after a plan: got %+v, %v; want two turns and the plan %+v", g, err, plan)
	}
	running, err := i.Stderr(t.Context(), s.ID)
	if err != nil || !running.Running || running.PID == 0 || running.Generation != 1 {
		t.Errorf("Stderr of a running agent: got %+v, %v; want its process, of generation 1", running, err)
	}
	d.prompt(s.ID, "crash")
	d.until("the crash", func() bool { return d.get(s.ID).Exit != nil })
	ended, err := i.Stderr(t.Context(), s.ID)
	if want := d.get(s.ID).Exit.StderrTail; err != nil || ended.Running || ended.Text != want || want == "" {
		t.Errorf("Stderr after the crash: got %+v, %v; want %q", ended, err, want)
	}
}
