package session_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/settings"
)

// polite is an agent in memory that can resume a session. A prompt "hang" is never answered, "ask" ends when a permission was given, "quit"
// ends the agent.
func polite(in io.Reader, out io.Writer) int {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	asking := "" // the prompt that waits for a permission
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID string
				Prompt    []struct{ Text string }
			}
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		switch m.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}}`, m.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`, m.ID)
		case "session/resume":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case "session/prompt":
			switch m.Params.Prompt[0].Text {
			case "hang":
			case "quit":
				return 0
			case "ask":
				asking = string(m.ID)
				say(`{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"x"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]}}`)
			default:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
			}
		case "":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, asking)
		}
	}
	return 0
}

// scale holds the sizes of agents in memory, by the title of their session.
type scale struct {
	mu     sync.Mutex
	titles map[string]string // by session
	weight map[string]int64  // MiB by title
	cpu    map[string]time.Duration
	began  time.Time
	agents *proxy.Set
}

// measure replaces Set.Overview, which would read all of /proc without finding agents in memory.
func (s *scale) measure(bool) (proxy.Overview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := proxy.Overview{Self: proxy.Member{RSS: 1 << 20}}
	for _, i := range s.agents.List() {
		if !i.ExitedAt.IsZero() {
			continue
		}
		id, _, _ := strings.Cut(i.ServerID, ".")
		title := s.titles[id]
		m := proxy.Member{PID: i.PID, RSS: s.weight[title] << 20, CPU: time.Duration(s.cpu[title].Seconds() * float64(time.Since(s.began)))}
		o.Usage = append(o.Usage, proxy.Usage{ServerID: i.ServerID, Agent: i.Agent, Purpose: processes.ForSession, PID: i.PID, StartedAt: i.CreatedAt, Tree: []proxy.Member{m}})
	}
	return o, nil
}

func (s *scale) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// weighed is a desk whose agents run in memory and have the sizes that the scale holds.
func weighed(t *testing.T, dir string, budget int, agent proxytest.Agent, cfg session.Config) (*desk, *scale) {
	t.Helper()
	file := filepath.Join(dir, "settings.json")
	cfg.Settings = settings.New(file)
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"memoryBudgetMiB":%d}`, budget), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scale{titles: map[string]string{}, weight: map[string]int64{}, cpu: map[string]time.Duration{}, began: time.Now()}
	processes := proxy.Config{Spawn: proxytest.Spawn(agent), Purpose: processes.ForSession}
	d := openAs(t, dir, processes, cfg)
	s.agents = d.set
	d.MeasureWith(s.measure)
	return d, s
}

func plainly(in io.Reader, out, _ io.Writer) int { return polite(in, out) }

// named makes a session that is ready, whose agent takes 40 MiB.
func (d *desk) named(s *scale, title string) string {
	d.t.Helper()
	made, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work, Title: title})
	if err != nil {
		d.t.Fatal(err)
	}
	s.set(func() { s.titles[made.ID], s.weight[title] = title, 40 })
	d.until("ready "+title, func() bool { return d.get(made.ID).Phase == lifecycle.Ready })
	return made.ID
}

// said runs one whole turn.
func (d *desk) said(id string) {
	d.t.Helper()
	d.prompt(id, "hello")
	d.idle(id)
}

// asleep returns the titles of the hibernated sessions.
func (d *desk) asleep() string {
	d.t.Helper()
	page, err := d.List(d.t.Context(), session.Which{}, "", 100)
	if err != nil {
		d.t.Fatal(err)
	}
	var titles []string
	for _, s := range page.Items {
		if s.Hibernated {
			titles = append(titles, s.Title)
			if s.Phase != lifecycle.Closed || s.Exit != nil || s.Step != "" {
				d.t.Errorf("session that sleeps: got %+v, want it closed, without exit and step", s)
			}
		}
	}
	slices.Sort(titles)
	return strings.Join(titles, " ")
}

// pass lets time pass, and then runs everything that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheLongestIdleIsPutToSleepFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := weighed(t, dir, 100, plainly, session.Config{})
		a, b, c := d.named(s, "a"), d.named(s, "b"), d.named(s, "c")
		d.said(b)
		pass(10 * time.Second)
		d.said(c)
		pass(10 * time.Second)
		d.said(a)
		pass(35 * time.Second)
		before := d.get(b).UpdatedAt
		if got := d.asleep(); got != "" {
			t.Errorf("%s sleeps before it was idle for a minute", got)
		}
		pass(20 * time.Second)
		if got := d.asleep(); got != "b" {
			t.Errorf("%q sleeps, want b", got)
		}
		pass(time.Hour)
		if got := d.asleep(); got != "b" {
			t.Errorf("%q sleeps, though the others are within the budget", got)
		}
		if !d.get(b).UpdatedAt.Equal(before.Time) {
			t.Error("sleep is news in the list")
		}
		d.said(b) // now c has been idle longest
		pass(2 * time.Minute)
		if got := d.asleep(); got != "c" {
			t.Errorf("%q sleeps, want c", got)
		}
		tr := d.transcript(b)
		var codes []string
		for _, e := range tr.Items {
			if e.Divider != nil {
				codes = append(codes, e.Divider.Code)
			}
		}
		if !slices.Equal(codes, []string{"session.hibernated", "session.resumed"}) {
			t.Errorf("dividers: got %v, want session.hibernated, session.resumed", codes)
		}
		// A changed draft counts as use, since the person is about to send a prompt.
		pass(time.Hour)
		draft := "and n"
		if _, err := d.Change(t.Context(), a, session.Patch{Draft: &draft}); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.weight["a"] = 80 })
		pass(20 * time.Second)
		if got := d.asleep(); got != "b c" {
			t.Errorf("%q sleep, want b and c", got)
		}
		for _, id := range []string{a, b, c} {
			d.sameAsRebuilt(id)
		}
		d.close()
	})
}

// The sampler hibernates no session that is in use, with a budget smaller than any agent.
func TestSamplerNeverHibernatesSessionsInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := weighed(t, dir, 1, plainly, session.Config{})
		d.named(s, "never-spoken-to")
		works, asks, computes, idle := d.named(s, "works"), d.named(s, "asks"), d.named(s, "computes"), d.named(s, "idle")
		s.set(func() { s.cpu["computes"] = 200 * time.Millisecond }) // in each second
		d.said(computes)
		d.said(works)
		d.said(asks)
		d.said(idle)
		d.prompt(works, "hang")
		d.prompt(asks, "ask")
		r := d.request(asks)
		pass(time.Hour)
		if got := d.asleep(); got != "idle never-spoken-to" {
			t.Errorf("%q sleep, want the idle ones alone", got)
		}
		d.answer(r, requests.Answer{OptionID: "a"})
		d.idle(asks)
		s.set(func() { s.cpu["computes"], s.began = 10*time.Millisecond, time.Now().Add(-30*time.Hour) })
		pass(2 * time.Minute)
		if got := d.asleep(); got != "asks computes idle never-spoken-to" {
			t.Errorf("%q sleep, want all that can", got)
		}
		d.said(idle) // the session is woken, and hibernated again a minute later
		pass(50 * time.Second)
		if got := d.asleep(); got != "asks computes never-spoken-to" {
			t.Errorf("%q sleep", got)
		}
		pass(30 * time.Second)
		if got := d.asleep(); got != "asks computes idle never-spoken-to" {
			t.Errorf("%q sleep", got)
		}
		d.close()
	})
}

// An agent that takes long to end still takes memory, for which no other agent is hibernated.
func TestSamplerLeavesOutAgentsThatEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		slow := func(in io.Reader, out, _ io.Writer) int {
			code := polite(in, out)
			time.Sleep(time.Second)
			return code
		}
		d, s := weighed(t, dir, 100, slow, session.Config{SamplePace: 100 * time.Millisecond, LeastIdle: time.Second})
		for _, title := range []string{"a", "b", "c"} {
			d.said(d.named(s, title))
		}
		pass(time.Minute)
		if got := d.asleep(); got != "a" {
			t.Errorf("%q sleep, want a alone", got)
		}
		d.close()
	})
}

func TestSamplerFollowsChangedSettings(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := weighed(t, dir, 0, plainly, session.Config{})
		d.said(d.named(s, "a"))
		d.said(d.named(s, "b"))
		pass(time.Hour + 3*time.Second)
		if got := d.asleep(); got != "" {
			t.Errorf("%s sleeps without a budget", got)
		}
		q := feed.Query{Gen: d.Feed().Gen(), After: d.seq(), Types: []string{"settings.upsert"}}
		now, err := d.Settings().Change(settings.SettingsPatch{MemoryBudgetMiB: new(50)})
		synctest.Wait()
		if err != nil || now.MemoryBudgetMiB != 50 || d.Settings().Get() != now {
			t.Errorf("Change(budget 50): got %+v, %v; want it in the settings", now, err)
		}
		if got := d.asleep(); got != "a" {
			t.Errorf("%q sleeps, want a", got)
		}
		// A change of the settings file is found by the next measurement, and told.
		if err := os.WriteFile(now.Path, []byte(`{"memoryBudgetMiB": 10`), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if got := d.asleep(); got != "a" {
			t.Errorf("asleep by a broken file: got %q, want a", got)
		}
		if err := os.WriteFile(now.Path, []byte(`{"memoryBudgetMiB": 10}`), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if got := d.asleep(); got != "a b" {
			t.Errorf("asleep: got %q, want a b", got)
		}
		batch, err := d.Feed().After(t.Context(), q)
		if err != nil || len(batch.Events) != 3 || !strings.Contains(string(batch.Events[1].Data), `"problem":"line 1`) {
			t.Errorf("events of settings: got %+v, %v; want 3, the second with the problem of line 1", batch, err)
		}
		d.close()
	})
}

// seq returns the number of the newest event.
func (d *desk) seq() int64 {
	d.t.Helper()
	batch, err := d.Feed().After(d.t.Context(), feed.Query{})
	if err != nil {
		d.t.Fatal(err)
	}
	return batch.Seq
}
