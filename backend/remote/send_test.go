package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What a gateway answers in the runtime's place, with a page to log in at, is no word of the runtime: the message is sent again.
func TestALoginPageTakesNoMessage(t *testing.T) {
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
				t.Errorf("it is sent %d times", n)
			}
		})
	}
}

// The line is not there where a page to log in at comes instead of it.
func TestALoginPageIsNoLine(t *testing.T) {
	t.Parallel()
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
		up, started, changed := i.up, i.started, i.changed
		i.mu.Unlock()
		if started {
			if n := streams.Load(); !up || n != 2 {
				t.Errorf("it counts as started with stream %d, up %v", n, up)
			}
			return
		}
		within(t, "line", changed)
	}
}

// A message may take as long to be sent as its line needs, while it gets on.
func TestALargeMessageOverASlowLine(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"a request":      `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"x":%q}}`,
		"a notification": `{"jsonrpc":"2.0","method":"much","params":{"x":%q}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			th := runtimeThere(t, "Deskhand")
			th.r.cfg.Answer = 2 * time.Second
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
			if err := i.Send(t.Context(), fmt.Appendf(nil, message, strings.Repeat("x", 24<<20))); err != nil {
				t.Fatal(err)
			}
			if n := posts.Load(); n != 1 {
				t.Errorf("it is sent %d times", n)
			}
		})
	}
}

// One that nobody takes is sent again.
func TestAMessageThatDoesNotGetOn(t *testing.T) {
	t.Parallel()
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
		t.Errorf("it is sent %d times", n)
	}
}
