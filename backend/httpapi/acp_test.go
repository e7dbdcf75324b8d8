package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/files"
)

func TestACPPostPadsLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		begin := time.Now()
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"sleep:310s"}`)
		if took := time.Since(begin); took != 240*time.Second || res.code != 200 || res.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers: got %d %s after %v, want 200 as JSON after 240s", res.code, res.header.Get("Content-Type"), took)
		}
		space := make([]byte, 1)
		for n := range 4 {
			if _, err := io.ReadFull(res.body, space); err != nil || space[0] != ' ' {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != time.Duration(255+15*n)*time.Second {
				t.Errorf("space %d: got it after %v, want %v", n, took, time.Duration(255+15*n)*time.Second)
			}
		}
		if body := text(t, res); body != `{"jsonrpc":"2.0","id":1,"result":{"id":1,"method":"sleep:310s"}}` || time.Since(begin) != 310*time.Second {
			t.Errorf("body: got %s after %v, want the result after 310s", body, time.Since(begin))
		}
	})
}

func TestACPPostFailureAfterPaddingIsProtocolError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":"x","method":"exit:250s"}`)
		body := strings.TrimLeft(text(t, res), " ")
		if res.code != 200 || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"agent process exited: `) ||
			!strings.Contains(body, `"data":{"type":"urn:sandbox-agent:error:agent_process_exited"`) || !strings.Contains(body, "last words") {
			t.Errorf("answer: got %d %s, want the exit as a JSON-RPC error", res.code, body)
		}
	})
}

func TestACPPostTimesOut(t *testing.T) {
	for name, c := range map[string]struct {
		limit  time.Duration
		prefer string
		after  time.Duration
	}{
		"wait":                 {0, "wait=7", 7 * time.Second},
		"wait, quoted":         {0, `foo; a=1, Wait="8"; x`, 8 * time.Second},
		"longer than quiet":    {0, "wait=600", 600 * time.Second},
		"zero":                 {0, "wait=0", 0},
		"configured":           {9 * time.Second, "", 9 * time.Second},
		"wait beats the limit": {9 * time.Second, "wait=20", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{RequestTimeout: c.limit}, agent)
				w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
				begin := time.Now()
				isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1,"method":"mute"}`, "Prefer", c.prefer), 504, "timeout")
				if took := time.Since(begin); took != c.after {
					t.Errorf("Prefer %q: got the timeout after %v, want %v", c.prefer, took, c.after)
				}
				isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1.0,"method":"m"}`), 409, "conflict") // the first request is still in flight
			})
		})
	}
}

func TestACPPostTimesOutWhileAgentDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, func(stdin io.Reader, _, _ io.Writer) int {
			<-t.Context().Done()
			_, _ = io.Copy(io.Discard, stdin)
			return 0
		})
		begin := time.Now()
		isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`, "Prefer", "wait=3"), 504, "timeout")
		isProblem(t, w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"m"}`, "Prefer", "wait=3"), 504, "timeout")
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("two timeouts: got them after %v, want 6s", took)
		}
		begin = time.Now()
		if res := w.do("DELETE", "/v1/acp/a", ""); res.code != 204 || time.Since(begin) > 2*time.Second {
			t.Errorf("DELETE: got %d after %v, want 204 within 2s", res.code, time.Since(begin))
		}
	})
}

func TestACPPostRespondAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		begin := time.Now()
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"sleep:60s"}`, "Prefer", "respond-async, wait=9")
		if res.code != 202 || text(t, res) != "" || time.Since(begin) != 0 || res.header.Get("Preference-Applied") != "respond-async" {
			t.Errorf("respond-async: got %d after %v, want 202 at once, empty, applied", res.code, time.Since(begin))
		}
		isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1,"method":"m"}`), 409, "conflict")
		events := follow(t, w.do("GET", "/v1/acp/a", ""))
		for range 3 {
			if got := events.next(t); got != ": heartbeat" {
				t.Errorf("event: got %q, want a heartbeat", got)
			}
		}
		if got := events.next(t); got != ": heartbeat" && got != "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{"id":1,"method":"sleep:60s"}}` {
			t.Errorf("event: got %q, want a heartbeat or the answer", got)
		}
	})
}

// A message that cannot be written to the agent is not confirmed.
func TestACPPostRespondAsyncToAgentThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, func(stdin io.Reader, _, _ io.Writer) int {
			_ = stdin.(io.Closer).Close()
			<-t.Context().Done()
			return 0
		})
		for _, path := range []string{"/v1/acp/a?agent=fake", "/v1/acp/a"} { // the first fails when written, the second is refused
			d := isProblem(t, w.do("POST", path, `{"id":1,"method":"m"}`, "Prefer", "respond-async"), 502, "stream_error")
			if details, _ := d.Details.(map[string]any); details["reason"] != "input_closed" {
				t.Errorf("problem: got %+v, want the reason input_closed", d)
			}
		}
	})
}

// An agent that reads later gets the request: the request is not known to be lost, and its id is taken.
func TestACPPostRespondAsyncWhileAgentDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, func(stdin io.Reader, stdout, stderr io.Writer) int {
			time.Sleep(time.Minute)
			return agent(stdin, stdout, stderr)
		})
		begin := time.Now()
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"m"}`, "Prefer", "respond-async")
		if took := time.Since(begin); res.code != 202 || took > 5*time.Second {
			t.Errorf("respond-async: got %d after %v, want 202 within 5s", res.code, took)
		}
		isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1,"method":"m"}`, "Prefer", "respond-async"), 409, "conflict")
		events := follow(t, w.do("GET", "/v1/acp/a", ""))
		for got := ": heartbeat"; got != "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{"id":1,"method":"m"}}`; got = events.next(t) {
			if got != ": heartbeat" {
				t.Fatalf("event: got %q, want a heartbeat", got)
			}
		}
	})
}

func TestACPPostGoesOnWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:2468/v1/acp/a?agent=fake", strings.NewReader(`{"id":1,"method":"sleep:5s"}`))
		r.Header.Set("Authorization", "Bearer "+rightToken)
		r.Header.Set("Content-Type", "application/json")
		if _, err := w.client.Do(r); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // no response
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := follow(t, w.do("GET", "/v1/acp/a", "")).next(t); !strings.Contains(got, `"id":1,"result"`) {
			t.Errorf("event: got %q, want the answer to request 1", got)
		}
	})
}

// events reads server-sent events.
type events struct{ in *bufio.Reader }

func follow(t *testing.T, res reply) *events {
	t.Helper()
	if res.code != 200 || res.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: got %d %s: %s; want 200 and events", res.code, res.header.Get("Content-Type"), text(t, res))
	}
	return &events{bufio.NewReader(res.body)}
}

// next returns the next event unparsed, or "EOF".
func (e *events) next(t *testing.T) string {
	t.Helper()
	var lines []string
	for {
		line, err := e.in.ReadString('\n')
		if errors.Is(err, io.EOF) && len(lines) == 0 && line == "" {
			return "EOF"
		}
		if err != nil {
			t.Fatalf("event: got %v after %q, want a whole one", err, lines)
		}
		if line == "\n" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

func TestACPStreamHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
		e := follow(t, w.do("GET", "/v1/acp/a", "", "Last-Event-ID", "0"))
		begin := time.Now()
		for n := range 3 {
			if got := e.next(t); got != ": heartbeat" || time.Since(begin) != time.Duration(15*(n+1))*time.Second {
				t.Errorf("event %d: got %q after %v, want a heartbeat after %ds", n, got, time.Since(begin), 15*(n+1))
			}
		}
		time.Sleep(10 * time.Second)
		w.do("POST", "/v1/acp/a", `{"method":"print:{}"}`)
		if got := e.next(t); got != "event: message\nid: 1\ndata: {}" {
			t.Errorf("event: got %q, want message 1", got)
		}
		begin = time.Now()
		if got := e.next(t); got != ": heartbeat" || time.Since(begin) != 15*time.Second { // counted from the message
			t.Errorf("event after the message: got %q after %v, want a heartbeat after 15s", got, time.Since(begin))
		}
	})
}

func TestACPStreamOfUnknownInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		begin := time.Now()
		d := isProblem(t, w.do("GET", "/v1/acp/a", ""), 404, "session_not_found")
		if took := time.Since(begin); took != 2*time.Second || d.SessionID != "a" {
			t.Errorf("stream of an unknown instance: got %+v after %v, want session_id a after 2s", d, took)
		}
		var opened sync.WaitGroup
		opened.Go(func() { // the SDK opens its stream just before its first POST
			if got := follow(t, w.do("GET", "/v1/acp/a", "")).next(t); got != "event: message\nid: 1\ndata: {}" {
				t.Errorf("event: got %q, want message 1", got)
			}
		})
		time.Sleep(time.Second)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"print:{}"}`)
		opened.Wait()
	})
}

func TestACPStreamOverExitRestartAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		res := w.do("POST", "/v1/acp/a?agent=fake", `{"id":1,"method":"exit"}`)
		d := isProblem(t, res, 502, "agent_process_exited")
		if details, _ := d.Details.(map[string]any); details["exitCode"] != 3.0 || details["stderrTail"] != "last words\n" || d.Agent != "fake" {
			t.Errorf("problem: got %+v, want exit code 3 and the stderr of fake", d)
		}
		isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1,"method":"m"}`), 502, "agent_process_exited")
		e := follow(t, w.do("GET", "/v1/acp/a", ""))
		want := "event: message\nid: 1\ndata: " +
			`{"jsonrpc":"2.0","method":"_adapter/agent_exited","params":{"success":false,"code":3,"stderrTail":"last words\n"}}`
		if got := e.next(t); got != want {
			t.Errorf("event: got %q, want %q", got, want)
		}
		if got := e.next(t); got != ": heartbeat" {
			t.Errorf("event: got %q, want a heartbeat", got)
		}
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"print:{}"}`)
		if got := e.next(t); got != "event: message\nid: 2\ndata: {}" {
			t.Errorf("event: got %q, want message 2", got)
		}
		if res := w.do("DELETE", "/v1/acp/a", ""); res.code != 204 || text(t, res) != "" {
			t.Errorf("DELETE: got status %d, want 204 without a body", res.code)
		}
		if got := e.next(t); !strings.Contains(got, "_adapter/agent_exited") {
			t.Errorf("event: got %q, want the exit of the agent", got)
		}
		if got := e.next(t); got != "EOF" {
			t.Errorf("event: got %q, want EOF", got)
		}
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"print:[]"}`)
		if got := follow(t, w.do("GET", "/v1/acp/a", "", "Last-Event-ID", "7")); got.next(t) != "event: gap\ndata: {\"oldest\":1}" ||
			got.next(t) != "event: message\nid: 1\ndata: []" {
			t.Error("no gap, or not all after it")
		}
	})
}

func TestACPStreamTellsGapAfterEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		long := `{"method":"print:{\"x\":\"` + strings.Repeat("y", 50_000) + `\"}"}`
		w.do("POST", "/v1/acp/a?agent=fake", long)
		for range 9 {
			w.do("POST", "/v1/acp/a", long)
		}
		synctest.Wait()
		for after, want := range map[string]string{"": "event: message\nid: 6", "0": "event: gap\ndata: {\"oldest\":6}", "5": "event: message\nid: 6", "8": "event: message\nid: 9"} {
			if got := follow(t, w.do("GET", "/v1/acp/a", "", "Last-Event-ID", after)).next(t); !strings.HasPrefix(got, want) {
				t.Errorf("event after %q: got %.60s, want %s", after, got, want)
			}
		}
	})
}

// A client that reads nothing blocks the agent for a minute and is then dropped; a client that reads gets everything.
func TestACPStreamThatStallsIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
		stalled := w.do("GET", "/v1/acp/a", "")
		reading := follow(t, w.do("GET", "/v1/acp/a", ""))
		begin := time.Now()
		var work sync.WaitGroup
		work.Go(func() {
			for range 20 {
				w.do("POST", "/v1/acp/a", `{"method":"print:{\"x\":\"`+strings.Repeat("y", 50_000)+`\"}"}`)
			}
		})
		for n := 1; n <= 20; {
			got := reading.next(t)
			if got != ": heartbeat" && !strings.HasPrefix(got, fmt.Sprintf("event: message\nid: %d\n", n)) {
				t.Fatalf("event %d: got %.40s, want its number or a heartbeat", n, got)
			}
			if got != ": heartbeat" {
				n++
			}
		}
		work.Wait()
		if took := time.Since(begin); took < time.Minute || took > 2*time.Minute {
			t.Errorf("stalled stream: got its end after %v, want 1 to 2 minutes", took)
		}
		time.Sleep(2 * stopGrace)
		if _, err := io.Copy(io.Discard, stalled.body); err == nil {
			t.Error("the write was not cut")
		}
	})
}

// A client on a slow line keeps reading, only slowly, and is not dropped.
func TestACPStreamOverThinLineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
		thin := w.do("GET", "/v1/acp/a", "")
		var work sync.WaitGroup
		work.Go(func() {
			for range 30 {
				w.do("POST", "/v1/acp/a", `{"method":"print:{\"x\":\"`+strings.Repeat("y", 50_000)+`\"}"}`)
			}
		})
		var got strings.Builder
		for !strings.Contains(got.String(), "id: 30\n") {
			time.Sleep(50 * time.Second)
			if _, err := io.CopyN(&got, thin.body, pieceBytes); err != nil {
				t.Fatalf("thin line: got %v after %d bytes, want it kept", err, got.Len())
			}
		}
		work.Wait()
	})
}

func TestACPDeleteFailsWaitingPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		w.do("POST", "/v1/acp/a?agent=fake", `{"method":"m"}`)
		var waiting sync.WaitGroup
		waiting.Go(func() { isProblem(t, w.do("POST", "/v1/acp/a", `{"id":1,"method":"mute"}`), 502, "stream_error") })
		time.Sleep(time.Second)
		w.do("DELETE", "/v1/acp/a", "")
		waiting.Wait()
		isProblem(t, w.do("POST", "/v1/acp/a", `{"method":"m"}`), 400, "invalid_request")
		if res := w.do("DELETE", "/v1/acp/never-seen", ""); res.code != 204 {
			t.Errorf("DELETE of an unknown instance: got status %d, want 204", res.code)
		}
	})
}

func TestACPPostSetsWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"root/sub", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "root")
	if err := errors.Join(
		os.Symlink(filepath.Join(dir, "outside"), filepath.Join(root, "out")),
		os.Symlink(filepath.Join(root, "sub"), filepath.Join(root, "in")),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	tree, err := files.Open(files.Config{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	for path, want := range map[string]string{
		"": home, root: root, "sub": filepath.Join(root, "sub"), root + "/sub/": filepath.Join(root, "sub"), root + "/in": filepath.Join(root, "in"),
		".": root, "/": "permission_denied", dir: "permission_denied", root + "x": "permission_denied", filepath.Join(dir, "outside"): "permission_denied",
		root + "/out": "permission_denied", "out": "permission_denied", "../outside": "invalid_request", root + "/../outside": "invalid_request",
		"a\x00": "invalid_request", "none": "not_found", "file": "invalid_request",
	} {
		got, err := tree.Directory(path)
		if err != nil {
			got = runtimeProblem(err).Type
		}
		if got != want {
			t.Errorf("%q: %s (%v), want %s", path, got, err, want)
		}
	}
}
