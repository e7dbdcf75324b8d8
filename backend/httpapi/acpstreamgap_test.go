package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"deskhand/backend/acp"
)

// flooder is an agent that makes a session for each session/new, and on request sends more about s1 than the log keeps.
func flooder(stdin io.Reader, stdout, _ io.Writer) int {
	in := bufio.NewReader(stdin)
	for n := 0; ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		e, err := acp.Peek(line)
		if err != nil {
			return 1
		}
		say := func(format string, args ...any) {
			_, _ = fmt.Fprintf(stdout, `{"jsonrpc":"2.0",`+format+"}\n", args...)
		}
		switch {
		case e.Method() == "session/new":
			n++
			say(`"id":%s,"result":{"sessionId":"s%d"}`, e.ID, n)
			say(`"method":"session/update","params":{"sessionId":"s%d","hello":true}`, n)
		case e.Method() == "flood":
			for range 34 {
				say(`"method":"session/update","params":{"sessionId":"s1","x":%q}`, strings.Repeat("x", 1<<20))
			}
			say(`"id":%s,"result":{}`, e.ID)
		case e.Kind == acp.Request:
			say(`"id":%s,"result":{"method":%q}`, e.ID, e.Method())
		}
	}
}

// TestStandardStreamOfNewSessionAfterMuch: a session that begins after the log has dropped messages is read from its beginning, and dropped messages about
// other sessions end no client.
func TestStandardStreamOfNewSessionAfterMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, flooder)
		id := w.connect()
		own := w.events(headerPeer, id)
		post := func(body string) {
			t.Helper()
			if code := w.do("POST", "/acp/fake", body, headerPeer, id).code; code != http.StatusAccepted {
				t.Fatalf("POST %s: got status %d, want 202", body, code)
			}
		}
		post(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
		nextEvent(t, own)
		first := w.events(headerPeer, id, headerSession, "s1")
		nextEvent(t, first)
		post(`{"jsonrpc":"2.0","id":2,"method":"flood","params":{}}`)
		for range 34 {
			nextEvent(t, first)
		}
		nextEvent(t, own)
		post(`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{}}`)
		nextEvent(t, own)
		second := w.events(headerPeer, id, headerSession, "s2")
		if got := nextEvent(t, second); !strings.Contains(fmt.Sprint(got), "hello") {
			t.Errorf("event of s2: got %q, want hello", got)
		}
		post(`{"jsonrpc":"2.0","id":4,"method":"session/new","params":{}}`) // the client still exists
		nextEvent(t, own)
	})
}

// TestStandardStreamOfHistoryWithoutBeginning: when messages about a session were dropped before the session's stream was read, the stream does
// not silently begin in the middle. Later messages are read, and so are other sessions.
func TestStandardStreamOfHistoryWithoutBeginning(t *testing.T) {
	for name, reads := range map[string]bool{"another stream has passed it over": true, "nobody has": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{}, flooder)
				id := w.connect()
				var own *bufio.Reader
				post := func(body string) {
					t.Helper()
					if code := w.do("POST", "/acp/fake", body, headerPeer, id).code; code != http.StatusAccepted {
						t.Fatalf("POST %s: got status %d, want 202", body, code)
					}
					if own != nil {
						nextEvent(t, own)
					}
					synctest.Wait()
				}
				open := func(session string) int {
					t.Helper()
					return w.do("GET", "/acp/fake", "", "Accept", "text/event-stream", headerPeer, id, headerSession, session).code
				}
				if reads {
					own = w.events(headerPeer, id)
				}
				post(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
				post(`{"jsonrpc":"2.0","id":2,"method":"flood","params":{}}`)
				if code := open("s1"); code != http.StatusGone {
					t.Errorf("its stream: %d", code)
				}
				if code := open("s1"); code != http.StatusOK {
					t.Errorf("what is said behind that: %d", code)
				}
				if !reads {
					return
				}
				post(`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{}}`)
				if code := open("s2"); code != http.StatusOK {
					t.Errorf("another session: %d", code)
				}
			})
		})
	}
}
