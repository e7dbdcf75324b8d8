package session_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// eachFrame calls heard for each message to an agent; an answer has no method.
func eachFrame(in io.Reader, heard func(method string, id json.RawMessage)) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		heard(m.Method, m.ID)
	}
}

// tardy is an agent that takes its time for each step of a start; with murmur it writes a message each murmur meanwhile.
func tardy(initialize, open, murmur time.Duration) proxytest.Agent {
	return func(in io.Reader, out, _ io.Writer) int {
		wait := func(d time.Duration) {
			for ; murmur > 0 && d > murmur; d -= murmur {
				time.Sleep(murmur)
				_, _ = fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"_still/here"}`)
			}
			time.Sleep(d)
		}
		eachFrame(in, func(method string, id json.RawMessage) {
			switch method {
			case "initialize":
				wait(initialize)
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`+"\n", id)
			case "session/new":
				wait(open)
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", id)
			}
		})
		return 0
	}
}

// Each step of a start is shown when it begins, with its time.
func TestStartTellsItsSteps(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		spawn := proxytest.Spawn(tardy(5*time.Second, 20*time.Second, 0))
		d := openWith(t, dir, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			time.Sleep(2 * time.Second)
			return spawn(c)
		}})
		begun := time.Now()
		s := d.create()
		type stage struct {
			step  string
			since time.Duration
		}
		var got []stage
		q := feed.Query{Gen: d.Feed().Gen(), Session: s.ID, Types: []string{"session.upsert"}, Wait: time.Second}
		for ready := false; !ready; {
			batch, err := d.Feed().After(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			q.After = batch.Seq
			for _, e := range batch.Events {
				var now session.Session
				if err := json.Unmarshal(e.Data, &now); err != nil {
					t.Fatal(err)
				}
				ready = now.Phase == lifecycle.Ready
				if ready != (now.StepSince == nil) || ready != (now.Step == "") {
					t.Errorf("%s: step %q since %v", now.Phase, now.Step, now.StepSince)
				}
				if now.StepSince == nil {
					continue
				}
				next := stage{now.Step, now.StepSince.Sub(begun).Round(time.Second)}
				if !slices.Contains(got, next) {
					got = append(got, next)
				}
				if late := e.At.Sub(now.StepSince.Time); late > 100*time.Millisecond && next == got[len(got)-1] && len(got) < 4 {
					t.Errorf("%s was told %v late", now.Step, late)
				}
			}
		}
		want := []stage{{"resolve", 0}, {"spawn", 0}, {"initialize", 2 * time.Second}, {"session", 7 * time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		d.close()
	})
}

// A start of an agent that says nothing is given up; an agent that is known to be slow has longer, and so has one that writes messages.
func TestStartLimitsSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		agent        string
		open, murmur time.Duration
		ends         time.Duration // when the start is given up; 0 = it is not
	}{
		"in time":                   {"mock", 59 * time.Second, 0, 0},
		"silent":                    {"mock", time.Hour, 0, time.Minute},
		"slow, as is known":         {"claude", 115 * time.Second, 0, 0},
		"silent, and known as slow": {"claude", time.Hour, 0, 2 * time.Minute},
		"slow, and says so":         {"mock", 10 * time.Minute, 50 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			file := fmt.Sprintf(`{"agents":[{"id":"claude","command":%q,"override":true}]}`, self)
			if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				d := openWith(t, dir, proxy.Config{Spawn: proxytest.Spawn(tardy(0, tc.open, tc.murmur))})
				begun := time.Now()
				s, err := d.Create(t.Context(), session.New{Agent: tc.agent, Cwd: d.work})
				if err != nil {
					t.Fatal(err)
				}
				for end := begun.Add(2 * time.Hour); d.get(s.ID).Phase == lifecycle.Starting && time.Now().Before(end); {
					pass(time.Second)
				}
				now, took := d.get(s.ID), time.Since(begun).Round(time.Second)
				switch {
				case tc.ends == 0 && now.Phase != lifecycle.Ready:
					t.Errorf("%s after %v: %+v", now.Phase, took, now.Exit)
				case tc.ends != 0 && (now.Exit == nil || now.Exit.Problem != "agent.no_answer" || now.Exit.Params["step"] != "session" || took-tc.ends > time.Second || took < tc.ends):
					t.Errorf("%s after %v, want no answer after %v: %+v", now.Phase, took, tc.ends, now.Exit)
				}
				d.close()
				time.Sleep(time.Hour) // until the agent has noticed
			})
		})
	}
}

// signsIn is an agent that asks a person to open an address before it opens a session, which then takes it so long.
func signsIn(open time.Duration) proxytest.Agent {
	return func(in io.Reader, out, _ io.Writer) int {
		var opens json.RawMessage
		eachFrame(in, func(method string, id json.RawMessage) {
			switch method {
			case "initialize":
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`+"\n", id)
			case "session/new":
				opens = id
				_, _ = fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"mode":"url","message":"Sign in","elicitationId":"e","url":"https://example.com/"}}`)
			case "":
				time.Sleep(open)
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", opens)
			}
		})
		return 0
	}
}

// While a request of a starting agent waits for a person, the start has no limit; after the answer the limit starts anew.
func TestStartWaitsForPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		action string
		open   time.Duration // how long the agent takes after the answer
		stop   bool
		ready  bool
	}{
		"in time":                        {"decline", 59 * time.Second, false, true},
		"silent":                         {"decline", 61 * time.Second, false, false},
		"who accepts is at it for long":  {"accept", 20 * time.Minute, false, true},
		"who accepts can stop the start": {"accept", time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := openWith(t, dir, proxy.Config{Spawn: proxytest.Spawn(signsIn(tc.open))})
				s := d.create()
				r := d.request(s.ID)
				pass(10*time.Minute + 50*time.Second)
				if now := d.get(s.ID); now.Phase != lifecycle.Waiting {
					t.Fatalf("%s while it is read: %+v", now.Phase, now.Exit)
				}
				d.answer(r, requests.Answer{Action: tc.action})
				if tc.stop {
					pass(5 * time.Minute)
					if now := d.get(s.ID); now.Phase != lifecycle.Starting {
						t.Errorf("session while the agent waits: got %s, exit %+v; want it starting", now.Phase, now.Exit)
					}
					if err := d.Cancel(t.Context(), s.ID); err != nil {
						t.Error(err)
					}
				}
				pass(min(tc.open, 20*time.Minute) + 2*time.Second)
				now := d.get(s.ID)
				switch {
				case tc.ready && now.Phase != lifecycle.Ready:
					t.Errorf("session: got %s, exit %+v; want it ready", now.Phase, now.Exit)
				case tc.stop && (now.Phase != lifecycle.Closed || now.Exit != nil):
					t.Errorf("stopped start: got %s, exit %+v; want it closed without an exit", now.Phase, now.Exit)
				case !tc.ready && !tc.stop && (now.Exit == nil || now.Exit.Problem != "agent.no_answer" || now.Exit.Params["step"] != "session"):
					t.Errorf("slow start: got %s, exit %+v; want agent.no_answer at session", now.Phase, now.Exit)
				}
				d.close()
				time.Sleep(time.Hour) // until the agent has noticed
			})
		})
	}
}
