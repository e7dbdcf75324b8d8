package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// office is a client API with an inbox, and a desktop on which what is shown can be seen; the real one is tested in e2e/window.
type office struct {
	t      *testing.T
	events chan string // what the feed tells
	focus  chan bool

	mu       sync.Mutex // protects what is below
	waits    []request
	sessions []conversation
	settings settings
	answers  []string
	refuse   string // the code with which the next answer is refused

	dialogs []*onScreen // on the screen
	notices []*onScreen
	opened  []string
}

// onScreen is a dialog or a notification.
type onScreen struct {
	sheet  sheet
	notice notice
	press  chan reply
	take   chan string
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	problem := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q}`, code)
	}
	if r.Header.Get("Deskhand-Surface") != "native" {
		o.t.Error("it does not say who it is")
	}
	if r.URL.Path == "/client/events" && r.URL.Query().Get("gen") != "" {
		select {
		case e := <-o.events:
			fmt.Fprintf(w, `{"gen":"g","seq":6,"events":[%s]}`, e)
		case <-r.Context().Done():
		}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch path := r.URL.Path; {
	case path == "/client/events":
		fmt.Fprint(w, `{"gen":"g","seq":5,"reset":true}`)
	case path == "/client/settings":
		_ = json.NewEncoder(w).Encode(o.settings)
	case path == "/client/sessions":
		_ = json.NewEncoder(w).Encode(map[string]any{"items": o.sessions})
	case path == "/client/inbox":
		_ = json.NewEncoder(w).Encode(map[string]any{"items": o.waits, "questions": []any{}})
	case strings.HasSuffix(path, "/rules"):
		fmt.Fprint(w, `{"suggestions":[]}`)
	case strings.HasPrefix(path, "/client/sessions/"):
		fmt.Fprint(w, `{"title":"T","cwd":"/w"}`)
	case r.Method == http.MethodPost && o.refuse != "":
		problem(http.StatusConflict, o.refuse)
		o.refuse = ""
	case r.Method == http.MethodPost:
		var body struct{ OptionID string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		o.answers = append(o.answers, path+" "+body.OptionID)
		w.WriteHeader(http.StatusNoContent)
	default:
		problem(http.StatusNotFound, "not_found")
	}
}

func (o *office) ask(ctx context.Context, s sheet) (reply, error) {
	one := &onScreen{sheet: s, press: make(chan reply)}
	o.with(func() { o.dialogs = append(o.dialogs, one) })
	defer o.with(func() { o.dialogs = slices.DeleteFunc(o.dialogs, func(d *onScreen) bool { return d == one }) })
	select {
	case r := <-one.press:
		return r, nil
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

func (o *office) notify(ctx context.Context, n notice) (string, error) {
	one := &onScreen{notice: n, take: make(chan string)}
	o.with(func() { o.notices = append(o.notices, one) })
	defer o.with(func() { o.notices = slices.DeleteFunc(o.notices, func(d *onScreen) bool { return d == one }) })
	select {
	case key := <-one.take:
		return key, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (o *office) with(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// dialog is the one on the screen, and notice that of an agent.
func (o *office) dialog() *onScreen {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dialogs[0]
}

func (o *office) noticeOf(agent string) *onScreen {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notices[slices.IndexFunc(o.notices, func(n *onScreen) bool { return strings.HasPrefix(n.notice.title, agent) })]
}

// came tells of a request by the feed, and went of its end.
func (o *office) came(id string) {
	r := approval(id)
	o.with(func() { o.waits = append(o.waits, r) })
	o.tell(r)
}

func (o *office) went(id string) {
	r := approval(id)
	r.Status = "answered"
	o.with(func() { o.waits = slices.DeleteFunc(o.waits, func(r request) bool { return r.ID == id }) })
	o.tell(r)
}

func (o *office) tell(r request) {
	data, _ := json.Marshal(r)
	o.events <- `{"type":"request.upsert","data":` + string(data) + `}`
	synctest.Wait()
}

func approval(id string) request {
	return request{ID: id, Session: "s", Kind: kindPermission, Agent: id, Status: waits, Options: []option{{ID: "yes", Name: "Yes", Kind: "allow_once"}, {ID: "no", Name: "No", Kind: "reject_once"}}}
}

// see compares what is on the screen, by agents.
func (o *office) see(dialogs, notices string) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	var d, n []string
	for _, one := range o.dialogs {
		agent, _, _ := strings.Cut(one.sheet.heading, " asks")
		d = append(d, agent)
	}
	for _, one := range o.notices {
		agent, _, _ := strings.Cut(one.notice.title, " asks")
		n = append(n, agent)
	}
	slices.Sort(n)
	if strings.Join(d, ",") != dialogs || strings.Join(n, ",") != notices {
		o.t.Errorf("there are dialogs %q and notifications %q, want %q and %q", d, n, dialogs, notices)
	}
}

func (o *office) look(focused bool) {
	o.focus <- focused
	synctest.Wait()
}

func inOffice(t *testing.T, set settings, f func(o *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, settings: set, events: make(chan string), focus: make(chan bool)}
		n := native{focus: o.focus, ask: o.ask, notify: o.notify, close: func() {}}
		a := newAsking(api{o}, n, slog.New(slog.DiscardHandler), func(request, session string) {
			o.with(func() { o.opened = append(o.opened, request+"@"+session) })
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			a.run(ctx)
			close(ended)
		}()
		synctest.Wait()
		f(o)
		stop()
		<-ended
		o.see("", "") // at the end nothing is left on the screen
	})
}

func usual() settings { return settings{NativeDialogs: "unfocused", Notifications: true} }

func after(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func TestNothingIsShownWhileTheWindowIsLookedAt(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(true)
		o.came("a")
		after(time.Hour)
		o.see("", "")
	})
}

func TestARequestOfAWindowThatNobodyLooksAt(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(false)
		after(time.Second)
		o.came("a")
		o.came("b")
		o.see("a", "a,b")
		o.dialog().press <- reply{button: 1}
		o.see("b", "a,b") // the next one, after it
		o.went("a")
		o.see("b", "b")
		if want := "/client/requests/a/answer no"; !slices.Equal(o.answers, []string{want}) {
			o.t.Errorf("answered %q", o.answers)
		}
		o.went("b") // answered elsewhere
		o.see("", "")
	})
}

func TestTheDialogGoesWhenTheWindowIsLookedAt(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(false)
		after(time.Second)
		o.came("a")
		o.see("a", "a")
		o.look(true)
		o.see("", "")
		after(glance)
		o.look(false)
		after(patience - time.Millisecond) // it was seen: who comes back soon is not asked again
		o.see("", "")
		after(time.Millisecond)
		o.see("a", "a")
	})
}

func TestAMomentWithoutTheFocusIsNone(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(true)
		o.came("a")
		o.look(false)
		after(settled - time.Millisecond)
		o.see("", "")
		o.look(true)
		o.look(false)
		after(settled)
		o.see("a", "a") // it came a moment ago: nobody can have seen it
	})
}

func TestPutAside(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(false)
		after(time.Second)
		o.came("a")
		o.came("b")
		o.dialog().press <- reply{button: pressedLater}
		o.see("b", "a,b")
		o.dialog().press <- reply{button: pressedOpen}
		o.see("", "a,b")
		after(time.Hour)
		o.see("", "a,b")
		o.noticeOf("a").take <- "" // put away
		o.see("", "b")
		o.noticeOf("").take <- actionOpen
		o.see("", "")
		after(time.Hour)
		o.see("", "")
		if len(o.answers) != 0 || !slices.Equal(o.opened, []string{"b@s", "b@s"}) {
			o.t.Errorf("answered %q, opened %q", o.answers, o.opened)
		}
	})
}

func TestAnAnswerThatIsNotTaken(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		o.look(false)
		after(time.Second)
		o.came("a")
		o.with(func() { o.refuse = "storage.failed" })
		o.dialog().press <- reply{button: 0}
		synctest.Wait()
		if s := o.dialog().sheet; s.heading != "Your answer was not taken" || s.text[0].text != "storage.failed" || s.plain == "" {
			o.t.Errorf(`got s %+v, want heading "Your answer was not taken", s.text[0].text "storage.failed" and plain other than ""`, s)
		}
		o.dialog().press <- reply{button: pressedLater}
		o.see("a", "a") // it is asked again
		o.with(func() { o.refuse = "request.resolved" })
		o.dialog().press <- reply{button: 0}
		synctest.Wait()
		if s := o.dialog().sheet; s.text[0].text != "This was already answered." {
			o.t.Errorf(`got s %+v, want s.text[0].text "This was already answered."`, s)
		}
		after(tellingFor)
		o.see("", "a")
		o.with(func() { o.refuse = "request.resolved" })
		o.noticeOf("").take <- "option-0"
		synctest.Wait()
		if n := o.noticeOf("").notice; n.body != "This was already answered." {
			o.t.Errorf(`got n %+v, want body "This was already answered."`, n)
		}
		after(tellingFor)
		if len(o.answers) != 0 {
			o.t.Errorf("got answers %q, want no answers", o.answers)
		}
	})
}

func TestAnAnswerByANotification(t *testing.T) {
	inOffice(t, settings{NativeDialogs: "never", Notifications: true}, func(o *office) {
		o.look(false)
		after(time.Second)
		o.came("a")
		o.see("", "a")
		o.noticeOf("").take <- "option-0"
		o.see("", "")
		if want := "/client/requests/a/answer yes"; !slices.Equal(o.answers, []string{want}) {
			o.t.Errorf("answered %q", o.answers)
		}
	})
}

func TestManyAreTheirNumber(t *testing.T) {
	inOffice(t, settings{NativeDialogs: "never", Notifications: true}, func(o *office) {
		o.look(false)
		after(time.Second)
		for _, id := range []string{"a", "b", "c"} {
			o.came(id)
		}
		o.see("", "a,b,c")
		o.came("d")
		o.see("", "4 requests wait")
		o.came("e")
		o.see("", "5 requests wait")
		o.went("a")
		o.see("", "5 requests wait") // not again for each that is answered
		o.went("b")
		o.see("", "")
		o.came("f")
		o.see("", "4 requests wait")
		o.noticeOf("").take <- actionOpen
		o.see("", "")
		if !slices.Equal(o.opened, []string{"@"}) {
			o.t.Errorf(`got %q, want []string{"@"}`, o.opened)
		}
	})
}

func TestTheSettingsCount(t *testing.T) {
	inOffice(t, settings{NativeDialogs: dialogsAlways}, func(o *office) {
		o.look(true)
		o.came("a")
		after(time.Hour)
		o.see("a", "")
		o.events <- `{"type":"settings.upsert","data":{"nativeDialogs":"never","notifications":true}}`
		o.see("", "")
		o.look(false)
		after(time.Hour)
		o.see("", "a")
		o.with(func() { o.settings = settings{NativeDialogs: "unfocused"} }) // in the file, which nobody tells of
		o.came("b")
		o.see("a", "")
	})
}

func TestADesktopWithNeither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, settings: usual(), events: make(chan string), focus: make(chan bool)}
		var tries atomic.Int32
		n := native{
			focus: o.focus,
			ask: func(context.Context, sheet) (reply, error) {
				tries.Add(1)
				return reply{}, errors.New("none")
			},
			notify: func(context.Context, notice) (string, error) {
				tries.Add(1)
				return "", errors.New("none")
			},
		}
		var log strings.Builder
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			newAsking(api{o}, n, slog.New(slog.NewTextHandler(&log, nil)), nil).run(ctx)
			close(ended)
		}()
		o.look(false)
		after(time.Second)
		o.came("a")
		o.came("b")
		after(time.Hour)
		stop()
		<-ended
		if tries.Load() != 4 || strings.Count(log.String(), "level=") != 2 {
			t.Errorf("%d tries; %s", tries.Load(), log.String())
		}
	})
}

// setUp is a conversation whose set-up is in a state.
func setUp(session, state string, waiting bool) conversation {
	c := conversation{ID: session, Agent: session}
	c.Setup.State, c.Setup.Waiting = state, waiting
	return c
}

func TestASetUpThatHoldsAnAgentIsToldOf(t *testing.T) {
	inOffice(t, usual(), func(o *office) {
		tell := func(kind string, c conversation) {
			data, _ := json.Marshal(c)
			o.events <- `{"type":"` + kind + `","data":` + string(data) + `}`
			synctest.Wait()
		}
		o.look(false)
		after(time.Second)
		for _, c := range []conversation{setUp("a", "running", true), setUp("a", "failed", false), setUp("a", "done", false)} {
			tell(eventSession, c)
			o.see("", "")
		}
		tell(eventSession, setUp("a", "failed", true))
		tell(eventSession, setUp("a", "failed", true))
		o.see("", "a cannot start yet") // a dialog could not say what has gone wrong
		if n := o.noticeOf("a").notice; n.body != "Worktree set-up failed\nT" || len(n.actions) != 1 {
			o.t.Errorf("the notification of a set-up that failed: got %+v, want what has failed, the conversation, and one action", n)
		}
		tell(eventSession, setUp("a", "running", true)) // run again
		o.see("", "")
		tell(eventSession, setUp("a", "stopped", true))
		o.noticeOf("a").take <- actionOpen
		synctest.Wait()
		o.see("", "")
		if len(o.opened) != 1 || !strings.HasSuffix(o.opened[0], "@a") {
			o.t.Errorf("opened: got %q, want the conversation a", o.opened)
		}
		tell(eventRemoved, conversation{ID: "a"})
		tell(eventSession, setUp("a", "failed", true))
		o.see("", "a cannot start yet")
	})
}

func TestASetUpThatHeldAnAgentBeforeIsToldOf(t *testing.T) {
	page := office{t: t, sessions: []conversation{setUp("b", "failed", true), setUp("c", "done", true)}}
	list, err := api{&page}.waiting(t.Context())
	if err != nil || len(list) != 1 || list[0].Session != "b" || list[0].Kind != kindSetUp {
		t.Errorf("waiting with a set-up that has failed and one that is done: got %+v, %v; want the first alone", list, err)
	}
}
