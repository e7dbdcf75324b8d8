package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// slowStart returns a spawn that starts the agent after a while, like an installation first, or fails with err then.
func slowStart(takes time.Duration, err error) func(proxy.Command) (proxy.Process, error) {
	return func(c proxy.Command) (proxy.Process, error) {
		time.Sleep(takes)
		if err != nil {
			return nil, err
		}
		return proxytest.Spawn(agent)(c)
	}
}

// The time of the agent's start counts: a caller's patience for headers is the same.
func TestACPPostPaddingCountsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Config{}, slowStart(200*time.Second, nil))
		begin := time.Now()
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"sleep:300s"}`)
		if took := time.Since(begin); took != 240*time.Second || res.code != 200 {
			t.Errorf("headers: got %d after %v, want 200 after 240s", res.code, took)
		}
		if body := text(t, res); strings.TrimLeft(body, " ") != `{"jsonrpc":"2.0","id":1,"result":{"id":1,"method":"sleep:300s"}}` || len(body)-len(strings.TrimLeft(body, " ")) != 17 {
			t.Errorf("body: got %q after %v, want the result behind 17 spaces", body, time.Since(begin))
		}
	})
}

func TestACPPostStartThatFailsAfterPadding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Config{}, slowStart(1000*time.Second, errors.New("no network")))
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":"x","method":"m"}`)
		body := strings.TrimLeft(text(t, res), " ")
		if res.code != 200 || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"stream error: the agent could not be started: no network"`) ||
			!strings.Contains(body, `"data":{"type":"urn:sandbox-agent:error:stream_error","title":"Stream error","status":502`) {
			t.Errorf("answer: got %d %s, want a stream error in JSON-RPC", res.code, body)
		}
	})
}

// Where nothing can be sent before the end, as in the window, a failure still has a status.
func TestACPPostPaddingThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		got := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/v1/acp/a?agent=fake", strings.NewReader(`{"id":1,"method":"exit:1000s"}`))
		r.Header.Set("Content-Type", "application/json")
		w.api.Window().ServeHTTP(struct{ http.ResponseWriter }{got}, r)
		isProblem(t, recorded(got), 502, "agent_process_exited")
	})
}

// In the window, where nothing is sent before the end, a streamed installation continues and reports everything at its end.
func TestInstallWhoseEventsCannotBeFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		for range 20 {
			got := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/v1/agents/mock/install", strings.NewReader(`{}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			w.api.Window().ServeHTTP(struct{ http.ResponseWriter }{got}, r)
			if body := got.Body.String(); !strings.HasPrefix(body, "event: result\ndata: {\"already_installed\":true") {
				t.Fatalf("events: got %d %q, want result", got.Code, body)
			}
		}
	})
}

// A message whose caller leaves, or times out, during the agent's start is still delivered.
func TestACPPostOutlivesItsCallerDuringStart(t *testing.T) {
	for name, headers := range map[string][]string{
		"wait is over": {"Prefer", "wait=1"},
		"gone":         nil,
		"gone, async":  {"Prefer", "respond-async"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, Config{}, slowStart(100*time.Second, nil))
				begin := time.Now()
				for _, message := range []string{`{"id":1,"method":"sleep:5s"}`, `{"method":"print:{}"}`} {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					r, _ := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:2468/v1/acp/a?agent=fake", strings.NewReader(message))
					r.Header.Set("Authorization", "Bearer "+rightToken)
					r.Header.Set("Content-Type", "application/json")
					if headers != nil {
						r.Header.Set(headers[0], headers[1])
					}
					res, err := w.client.Do(r)
					if err == nil {
						isProblem(t, reply{res.StatusCode, res.Header, res.Body}, 504, "timeout")
						_ = res.Body.Close()
					}
				}
				e := follow(t, w.do("GET", "/v1/acp/a", ""))
				got := []string{e.next(t), e.next(t)}
				all := strings.Join(got, "\n")
				if !strings.Contains(all, `"id":1,"result"`) || !strings.Contains(all, "data: {}") || time.Since(begin) > 105*time.Second {
					t.Errorf("events: got %q after %v, want the result and {} within 105s", got, time.Since(begin))
				}
			})
		})
	}
}

// A failing start also discards the message.
func TestACPPostOfCallerThatHasGoneStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		w := newWorldOf(t, Config{}, func(proxy.Command) (proxy.Process, error) {
			starts.Add(1)
			time.Sleep(time.Minute)
			return nil, errors.New("no network")
		})
		isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"m"}`, "Prefer", "wait=1"), 504, "timeout")
		isProblem(t, w.do("POST", "/v1/acp/b?agent=fake", `{"id":1,"method":"m"}`, "Prefer", "wait=1"), 504, "timeout")
		w.do("DELETE", "/v1/acp/b", "")
		time.Sleep(time.Hour)
		if list := strings.TrimSpace(text(t, w.do("GET", "/v1/acp", ""))); starts.Load() != 2 || list != `{"servers":[]}` {
			t.Errorf("after callers that have gone: got %d starts, instances %s; want 2 and none", starts.Load(), list)
		}
	})
}

// A notification has no answer to pad: its caller waits for the whole start.
func TestACPPostOfNotificationWaitsForStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Config{}, slowStart(1000*time.Second, nil))
		begin := time.Now()
		if res := w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`); res.code != 202 || time.Since(begin) != 1000*time.Second {
			t.Errorf("notification: got %d after %v, want 202 after 1000s", res.code, time.Since(begin))
		}
	})
}

// Every late failure comes in the protocol's shape, and an early failure does not.
func TestACPPostFailuresAfterPadding(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(w *world)
		kind string
	}{
		"deleted":    {func(w *world) { w.do("DELETE", "/v1/acp/a", "") }, "stream_error"},
		"shutdown":   {func(w *world) { _ = w.set.Close() }, "stream_error"},
		"exit":       {func(w *world) { w.do("POST", "/v1/acp/a", `{"method":"exit"}`) }, "agent_process_exited"},
		"exit, calm": {func(w *world) { w.do("POST", "/v1/acp/a", `{"id":2,"method":"exit"}`) }, "agent_process_exited"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{}, agent)
				w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
				late := w.do("POST", "/v1/acp/a", `{"id":1,"method":"mute"}`)
				var early sync.WaitGroup
				early.Go(func() {
					if res := w.do("POST", "/v1/acp/a", `{"id":3,"method":"mute"}`); res.code != 502 {
						t.Errorf("POST that is in time: got status %d, want 502", res.code)
					}
				})
				synctest.Wait()
				c.fail(w)
				early.Wait()
				body := strings.TrimLeft(text(t, late), " ")
				if late.code != 200 || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`) || !strings.Contains(body, "urn:sandbox-agent:error:"+c.kind+`"`) {
					t.Errorf("late failure: got %d %s, want %s in JSON-RPC", late.code, body, c.kind)
				}
			})
		})
	}
}

// An explicit wait is never padded, however long.
func TestACPPostWithWaitIsNotPadded(t *testing.T) {
	for name, limit := range map[string]string{"long": "wait=100000", "the longest": "wait=2147483647"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{}, agent)
				begin := time.Now()
				res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"sleep:20h"}`, "Prefer", limit)
				if body, took := text(t, res), time.Since(begin); res.code != 200 || took != 20*time.Hour || strings.HasPrefix(body, " ") {
					t.Errorf("Prefer %s: got %d after %v: %q; want 200 after 20h without padding", limit, res.code, took, body)
				}
			})
		})
	}
}

// A stream that is opened early waits during the instance's start, and ends when the start fails.
func TestACPStreamWaitsForStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Config{}, slowStart(1000*time.Second, nil))
		begin := time.Now()
		var opened sync.WaitGroup
		opened.Go(func() {
			e := follow(t, w.do("GET", "/v1/acp/a", ""))
			if time.Since(begin) != 1000*time.Second {
				t.Errorf("stream: got it after %v, want 1000s", time.Since(begin))
			}
			if got := e.next(t); got != "event: message\nid: 1\ndata: {}" {
				t.Errorf("event: got %q, want message 1", got)
			}
		})
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"print:{}"}`)
		opened.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, Config{}, slowStart(1000*time.Second, errors.New("no network")))
		begin := time.Now()
		var opened sync.WaitGroup
		opened.Go(func() {
			isProblem(t, w.do("GET", "/v1/acp/a", ""), 404, "session_not_found")
			if time.Since(begin) != 1000*time.Second {
				t.Errorf("stream of a start that fails: got its refusal after %v, want 1000s", time.Since(begin))
			}
		})
		isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`), 502, "stream_error")
		opened.Wait()
	})
}

// During its start an instance is listed as starting, DELETE ends the start, and all waiting callers are told.
func TestACPDeleteDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		w := newWorldOf(t, Config{}, func(proxy.Command) (proxy.Process, error) {
			<-stop
			return nil, errors.New("too late")
		})
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"m"}`), 502, "stream_error")
			})
			synctest.Wait()
			waiting.Go(func() { isProblem(t, w.do("POST", "/v1/acp/a", `{"method":"m"}`), 502, "stream_error") })
		}
		waiting.Go(func() { isProblem(t, w.do("GET", "/v1/acp/a", ""), 404, "session_not_found") })
		time.Sleep(time.Second)
		isProblem(t, w.do("POST", "/v1/acp/a?agent=other", `{"method":"m"}`), 409, "conflict")
		if list := text(t, w.do("GET", "/v1/acp", "")); !strings.Contains(list, `"serverId":"a","agent":"fake","createdAtMs":`) || !strings.Contains(list, `"status":"starting"}`) {
			t.Errorf("instances: got %s, want a starting", list)
		}
		begin := time.Now()
		if res := w.do("DELETE", "/v1/acp/a", ""); res.code != 204 || time.Since(begin) > 2*time.Second {
			t.Errorf("DELETE during the start: got %d after %v, want 204 within 2s", res.code, time.Since(begin))
		}
		close(stop)
		waiting.Wait()
		if list := strings.TrimSpace(text(t, w.do("GET", "/v1/acp", ""))); list != `{"servers":[]}` {
			t.Errorf("instances: got %s, want none", list)
		}
	})
}

// Text in a quoted string is no item of a list, and an invalid number is no quality.
func TestQuotedListHeaders(t *testing.T) {
	for text, want := range map[string]preference{
		`note="a, wait=0"`: {},
		`note="a\", wait=0"; x="respond-async", wait=3`: {wait: 3 * time.Second, waits: true},
		`note="a\\", respond-async`:                     {async: true},
		`wait="4", note="`:                              {wait: 4 * time.Second, waits: true},
		`note="open, wait=0`:                            {},
	} {
		if got := prefers(asking("Prefer", text)); got != want {
			t.Errorf("Prefer %s: got %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]int{
		`text/html;note="a, application/json"`:        0,
		`application/json;note="a;q=0", text/*;q=0.1`: 1000,
		`application/json;q=NaN`:                      0,
		`application/json;q=-Inf`:                     0,
		`application/json;q=0x1p-1`:                   500,
	} {
		if got := quality(asking("Accept", text), "application/json"); got != want {
			t.Errorf("Accept %s: got %d, want %d", text, got, want)
		}
	}
}

// A stream that was cut for not reading resumes after its last whole event: with the kept messages, after a gap event.
func TestACPStreamResumesAfterCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
		stalled := follow(t, w.do("GET", "/v1/acp/a", ""))
		for n := range 20 { // of 50 kB each, through a log of 256 KiB
			w.do("POST", "/v1/acp/a", fmt.Sprintf(`{"method":"print:{\"n\":%d,\"x\":\"%s\"}"}`, n+1, strings.Repeat("y", 50_000)))
		}
		time.Sleep(2 * time.Minute)
		last := 0
		for lines := bufio.NewScanner(stalled.in); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "id: %d", &last); err == nil {
				last--
			}
		}
		resumed := follow(t, w.do("GET", "/v1/acp/a", "", "Last-Event-ID", strconv.Itoa(max(last, 1))))
		if got := resumed.next(t); got != "event: gap\ndata: {\"oldest\":16}" {
			t.Errorf("event: got %.100s, want a gap up to 16", got)
		}
		for n := 16; n <= 20; n++ {
			if got := resumed.next(t); !strings.HasPrefix(got, fmt.Sprintf("event: message\nid: %d\ndata: {\"n\":%d,", n, n)) {
				t.Errorf("event: got %.100s, want message %d", got, n)
			}
		}
	})
}

// The longest message is 64 MiB: this message is refused for its content, not its length.
func TestACPPostTakesLongestBody(t *testing.T) {
	h := direct(t, Config{}).Window()
	r := httptest.NewRequest("POST", "/v1/acp/a", &endless{left: maxEnvelope})
	r.ContentLength = maxEnvelope
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if d := isProblem(t, recorded(w), 400, "invalid_request"); !strings.Contains(d.Detail, "not JSON: empty") {
		t.Errorf("problem: got %q, want \"not JSON: empty\"", d.Detail)
	}
}

// Ten minutes after its end an instance is forgotten, and its streams end.
func TestACPStreamEndsWithExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"exit"}`), 502, "agent_process_exited")
		begin := time.Now()
		e := follow(t, w.do("GET", "/v1/acp/a", ""))
		e.next(t)
		time.Sleep(10*time.Minute - time.Second)
		if list := text(t, w.do("GET", "/v1/acp", "")); !strings.Contains(list, `"status":"exited","exitCode":3}`) {
			t.Errorf("instances: got %s, want an exited one", list)
		}
		isProblem(t, w.do("POST", "/v1/acp/a", `{"method":"m"}`), 502, "agent_process_exited")
		for e.next(t) == ": heartbeat" {
		}
		if took := time.Since(begin); took != 10*time.Minute {
			t.Errorf("stream: got its end after %v, want 10m", took)
		}
		if list := strings.TrimSpace(text(t, w.do("GET", "/v1/acp", ""))); list != `{"servers":[]}` {
			t.Errorf("instances: got %s, want none", list)
		}
		isProblem(t, w.do("POST", "/v1/acp/a", `{"method":"m"}`), 400, "invalid_request")
	})
}

// counted counts running processes.
type counted struct {
	proxy.Process
	running *atomic.Int32
}

func (c counted) Wait() proxy.Exit {
	defer c.running.Add(-1)
	return c.Process.Wait()
}

// Random calls on one server_id: each gets an answer that the contract allows, and its own; the numbers of a stream rise by one; one
// process runs at a time, and none at the end.
func TestACPStormOfCalls(t *testing.T) {
	var running, most atomic.Int32
	w := newWorldOf(t, Config{}, func(c proxy.Command) (proxy.Process, error) {
		most.Store(max(most.Load(), running.Add(1)))
		p, err := proxytest.Spawn(agent)(c)
		return counted{p, &running}, err
	})
	end := time.Now().Add(1500 * time.Millisecond)
	var answered atomic.Int32
	var work sync.WaitGroup
	for n := range 16 {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(n), 11))
			more := func() bool { return answered.Load() < 100 && time.Now().Before(end.Add(time.Minute)) } // a busy machine takes longer
			for round := 0; time.Now().Before(end) || more(); round++ {
				storm(t, w, dice, fmt.Sprintf(`"%d/%d"`, n, round), &answered)
			}
		})
	}
	work.Wait()
	if res := w.do("DELETE", "/v1/acp/a", ""); res.code != 204 || running.Load() != 0 {
		t.Errorf("DELETE after the storm: got %d with %d processes, want 204 and none", res.code, running.Load())
	}
	if most.Load() > 1 || answered.Load() < 100 {
		t.Errorf("storm: got %d processes at once and %d answers, want 1 at most and 100 or more", most.Load(), answered.Load())
	}
}

// storm makes a random call.
func storm(t *testing.T, w *world, dice *rand.Rand, id string, answered *atomic.Int32) {
	t.Helper()
	path := "/v1/acp/a?agent=fake"
	switch dice.IntN(20) {
	case 0:
		if res := w.do("DELETE", "/v1/acp/a", ""); res.code != 204 {
			t.Errorf("DELETE: got status %d, want 204", res.code)
		}
		return
	case 1:
		w.do("POST", path, `{"method":"exit"}`)
		return
	case 2, 3, 4:
		stormStream(t, w, dice)
		return
	case 5:
		if list := text(t, w.do("GET", "/v1/acp", "")); strings.Count(list, "serverId") > 1 {
			t.Errorf("instances: got %s, want at most one", list)
		}
		return
	case 6:
		path = "/v1/acp/a"
	}
	res := w.do("POST", path, `{"id":`+id+`,"method":"m"}`)
	body := text(t, res)
	switch {
	case res.code == 200 && body == `{"jsonrpc":"2.0","id":`+id+`,"result":{"id":`+id+`,"method":"m"}}`:
		answered.Add(1)
	case res.code == 502: // exited, or removed
	case res.code == 400 && path == "/v1/acp/a" && strings.Contains(body, "server_id is unknown"):
	default:
		t.Errorf("POST %s: got %d %s, want a result or one of the known refusals", path, res.code, body)
	}
}

// stormStream reads a stream for a moment.
func stormStream(t *testing.T, w *world, dice *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(20))*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:2468/v1/acp/a", nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	res, err := w.client.Do(r)
	if err != nil {
		return // the moment is over
	}
	defer res.Body.Close()
	next := 0
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var id int
		if n, _ := fmt.Sscanf(lines.Text(), "id: %d", &id); n == 1 {
			if next != 0 && id != next {
				t.Errorf("event: got id %d, want %d", id, next)
			}
			next = id + 1
		}
	}
}
