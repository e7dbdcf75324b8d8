package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a gateway answers in the runtime's place, with a page to log in at, is no word of the runtime: the message is sent again.
func TestLoginPageTakesNoMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ runtime, message, kind, body string }{
		"a notification":         {"Deskhand", `{"jsonrpc":"2.0","method":"session/cancel","params":{}}`, "", ""},
		"a request":              {"Deskhand", initialize, "", ""},
		"a request, answered":    {"Deskhand", initialize, "application/json; charset=utf-8", `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"a request to another":   {"another", initialize, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"a request it runs with": {"running", initialize, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, c.runtime)
				th.r.cfg.Unconfirmed = time.Minute
				var posts atomic.Int32
				th.on("GET", silent)
				th.on("POST", func(w http.ResponseWriter, _ *http.Request) {
					switch {
					case posts.Add(1) == 1:
						answer(w, http.StatusOK, "text/html; charset=utf-8", "<html>Log in</html>")
					case c.kind == "":
						w.WriteHeader(http.StatusAccepted)
					default:
						answer(w, http.StatusOK, c.kind, c.body)
					}
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: c.runtime == "running"})
				defer i.Leave()
				if err := i.Send(t.Context(), []byte(c.message)); err != nil {
					t.Fatal(err)
				}
				if n := posts.Load(); n != 2 {
					t.Errorf("POST requests: got %d, want 2", n)
				}
			})
		})
	}
}

// The line is not there where a page to log in at comes instead of it.
func TestLoginPageIsNoStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		var streams atomic.Int32
		th.on("GET", func(w http.ResponseWriter, r *http.Request) {
			if streams.Add(1) == 1 {
				answer(w, http.StatusOK, "text/html", "<html>\n\ndata: Log in\n\n</html>")
				return
			}
			silent(w, r)
		})
		i := th.r.Instance(Start{ServerID: "a", Agent: "x"})
		defer i.Leave()
		for {
			i.mu.Lock()
			up, started, changed := i.line.up, i.started, i.changed
			i.mu.Unlock()
			if started {
				if n := streams.Load(); !up || n != 2 {
					t.Errorf("stream %d: got started, up %v, want started only with stream 2, up", n, up)
				}
				return
			}
			within(t, "line", changed)
		}
	})
}

// A message may take as long to be sent as its line needs, while it gets on; and longer to be confirmed than a short one, since the system holds
// megabytes of what counts as written.
func TestLargeMessageOverSlowLineIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"a request":      `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"x":%q}}`,
		"a notification": `{"jsonrpc":"2.0","method":"much","params":{"x":%q}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, "Deskhand")
				th.r.cfg.Answer = time.Second
				var posts atomic.Int32
				th.on("GET", silent)
				th.on("POST", func(w http.ResponseWriter, r *http.Request) {
					posts.Add(1)
					for { // 24 MiB in 4.8 s, of which the system holds some
						if _, err := io.CopyN(io.Discard, r.Body, 1<<20); err != nil {
							break
						}
						time.Sleep(200 * time.Millisecond)
					}
					w.WriteHeader(http.StatusAccepted)
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
				defer i.Leave()
				if err := i.Send(t.Context(), fmt.Appendf(nil, message, strings.Repeat("x", 9<<20))); err != nil {
					t.Fatal(err)
				}
				if n := posts.Load(); n != 1 {
					t.Errorf("POST requests of a large message: got %d, want 1", n)
				}
			})
		})
	}
}

// One that nobody takes is sent again.
func TestStalledMessageIsSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		th.r.cfg.Answer = 300 * time.Millisecond
		var posts atomic.Int32
		th.on("GET", silent)
		th.on("POST", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else its end is not seen
			if posts.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
		defer i.Leave()
		if err := i.Send(t.Context(), []byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{}}`)); err != nil {
			t.Fatal(err)
		}
		if n := posts.Load(); n != 2 {
			t.Errorf("POST requests: got %d, want 2", n)
		}
	})
}

// lines are the streams of an instance, of which each does what comes next; the last is silent.
func (th *there) lines(each ...func(say func(string), r *http.Request)) {
	var n atomic.Int32
	th.on("GET", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, "text/event-stream", "")
		say := func(text string) {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
		say(": here\n\n")
		if k := int(n.Add(1)); k <= len(each) {
			each[k-1](say, r)
		}
		<-r.Context().Done()
	})
}

func nothing(func(string), *http.Request) {}

// answered brings the answer to the first request, in two parts.
func answered(say func(string), _ *http.Request) {
	say("id: 1\n")
	<-time.After(quietFor)
	say("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
}

// lost takes a message and says nothing of it.
func lost(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// A request that the program before this one may have sent is not sent before what the runtime held has come, and of a runtime that would
// take it twice it is told instead.
func TestDoubtfulRequestWaitsForReplay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runtime string
		line    func(func(string), *http.Request)
		posts   int32
		doubt   bool
	}{
		"it is answered":             {"Deskhand", answered, 0, false},
		"it is not":                  {"Deskhand", nothing, 1, false},
		"it is answered, by another": {"another", answered, 0, false},
		"it is not, by another":      {"another", nothing, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, c.runtime)
				var posts atomic.Int32
				th.lines(c.line)
				th.on("POST", func(w http.ResponseWriter, _ *http.Request) {
					posts.Add(1)
					w.WriteHeader(http.StatusAccepted)
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
				defer i.Leave()
				if err := i.SendAgain(t.Context(), []byte(initialize)); err != nil {
					t.Fatal(err)
				}
				if n := posts.Load(); n != c.posts {
					t.Errorf("POST requests: got %d, want %d", n, c.posts)
				}
				i.mu.Lock()
				defer i.mu.Unlock()
				if doubt := len(i.inbox.queue) == 1 && i.inbox.queue[0].err != nil; doubt != c.doubt {
					t.Errorf("doubt: got %v, want %v", doubt, c.doubt)
				}
			})
		})
	}
}

// That a request may have arrived is not forgotten with a try that surely has not.
func TestDoubtLastsUntilConfirmation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		var posts atomic.Int32
		refused := make(chan struct{})
		th.lines(nothing, func(say func(string), r *http.Request) {
			select {
			case <-refused:
				answered(say, r)
			case <-r.Context().Done():
			}
		})
		th.on("POST", func(w http.ResponseWriter, r *http.Request) {
			switch posts.Add(1) {
			case 1:
				lost(w, r)
			case 2:
				answer(w, http.StatusServiceUnavailable, "text/plain", "a gateway")
				close(refused)
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		})
		i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
		defer i.Leave()
		if err := i.Send(t.Context(), []byte(initialize)); err != nil {
			t.Fatal(err)
		}
		if n := posts.Load(); n != 2 {
			t.Errorf("POST requests: got %d, want 2", n)
		}
	})
}

// A request that is on its way once more is given up with the answer to the first, before the runtime has it whole.
func TestAnsweredRequestIsNotSentToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		under, whole := make(chan struct{}), make(chan bool, 1)
		var posts atomic.Int32
		th.lines(nothing, func(say func(string), r *http.Request) {
			select {
			case <-under:
				answered(say, r)
			case <-r.Context().Done():
			}
		})
		th.on("POST", func(w http.ResponseWriter, r *http.Request) {
			if posts.Add(1) == 1 {
				lost(w, r)
				return
			}
			close(under)
			for {
				<-time.After(100 * time.Millisecond)
				if _, err := io.CopyN(io.Discard, r.Body, 1<<20); err != nil {
					whole <- errors.Is(err, io.EOF)
					return
				}
			}
		})
		i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
		defer i.Leave()
		message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"x":%q}}`, strings.Repeat("x", 9<<20))
		if err := i.Send(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		if within(t, "end of the second", whole) {
			t.Error("it is sent twice")
		}
	})
}

// A token that is accepted again is told, also when the answer to the message comes before the runtime confirms the message.
func TestAnswerShowsThatTokenIsAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		taken := make(chan struct{})
		var posts atomic.Int32
		th.lines(func(say func(string), r *http.Request) {
			select {
			case <-taken:
				answered(say, r)
			case <-r.Context().Done():
			}
		})
		th.on("POST", func(w http.ResponseWriter, r *http.Request) {
			if posts.Add(1) == 1 {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			close(taken)
			<-r.Context().Done()
		})
		var told []string
		i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true, Line: func(l Line) { told = append(told, l.State) }})
		err := i.Send(t.Context(), []byte(initialize))
		i.Leave()
		if want := []string{LineRefused, LineUp}; err != nil || !slices.Equal(told, want) {
			t.Errorf("Send: got %v and lines %v, want no error and %v", err, told, want)
		}
	})
}

// Only an agent that has closed its input takes no more messages.
func TestSendReportsClosedInput(t *testing.T) {
	t.Parallel()
	for details, closed := range map[string]bool{`{"reason":"input_closed"}`: true, `{"reason":"another"}`: false, `null`: false, `"input_closed"`: false} {
		t.Run(details, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, "Deskhand")
				th.on("GET", silent)
				th.on("POST", func(w http.ResponseWriter, _ *http.Request) {
					answer(w, http.StatusBadGateway, "application/problem+json", `{"type":"urn:sandbox-agent:error:stream_error","status":502,"details":`+details+`}`)
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
				defer i.Leave()
				err := i.Send(t.Context(), []byte(initialize))
				if errors.Is(err, ErrInput) != closed || !closed && err != nil {
					t.Errorf("Send: got error %v, want ErrInput %v", err, closed)
				}
			})
		})
	}
}

// A long message may be confirmed late, but not over a connection that is likely dead: its line was made anew, or a person wants it tried.
func TestLongMessageIsTriedAnew(t *testing.T) {
	t.Parallel()
	for name, hurry := range map[string]func(*Instance){"a person wants it": (*Instance).Retry, "the line is made anew": (*Instance).renew} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, "Deskhand")
				th.r.cfg.Answer = 500 * time.Millisecond
				th.on("GET", silent)
				there := make(chan struct{})
				var posts atomic.Int32
				th.on("POST", func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if posts.Add(1) == 1 {
						close(there)
						<-r.Context().Done()
						return
					}
					w.WriteHeader(http.StatusAccepted)
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
				defer i.Leave()
				message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"x":%q}}`, strings.Repeat("x", 1<<20))
				begin, sent := time.Now(), make(chan error, 1)
				go func() { sent <- i.Send(t.Context(), message) }()
				within(t, "first try", there)
				<-time.After(quietFor) // it is known to be written
				hurry(i)
				if err := <-sent; err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took > 15*time.Second || posts.Load() != 2 {
					t.Errorf("long message: got %d POST requests in %v, want 2 in 15s at most", posts.Load(), took)
				}
			})
		})
	}
}
