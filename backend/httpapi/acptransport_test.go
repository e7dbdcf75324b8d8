package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"deskhand/backend/acp"
)

// speaker is an agent that sends a notification about each request before its answer. speaker makes a session, s1; "session/prompt" asks
// for a permission and is answered after that; "exit" ends speaker, "farewell" after some messages.
func speaker(stdin io.Reader, stdout, _ io.Writer) int {
	in := bufio.NewReader(stdin)
	var prompt []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		e, err := acp.Peek(line)
		if err != nil {
			return 9
		}
		say := func(format string, args ...any) { fmt.Fprintf(stdout, `{"jsonrpc":"2.0",`+format+"}\n", args...) }
		switch e.Method() {
		case "":
			say(`"method":"session/update","params":{"sessionId":"s1","answered":%s}`, e.ID)
			say(`"id":%s,"result":{"stopReason":"end_turn"}`, prompt)
		case "session/new":
			say(`"id":%s,"result":{"sessionId":"s1"}`, e.ID)
			say(`"method":"session/update","params":{"sessionId":"s1","hello":true}`)
		case "session/prompt":
			prompt = append([]byte(nil), e.ID...)
			say(`"id":"ask","method":"session/request_permission","params":{"sessionId":"s1"}`)
		case "session/load":
			say(`"method":"session/update","params":{"sessionId":"s1","history":true}`)
			say(`"id":%s,"result":{"loaded":true}`, e.ID)
		case "junk":
			_, _ = io.WriteString(stdout, "no JSON\n")
		case "farewell":
			say(`"method":"first"`)
			say(`"method":"last"`)
			return 3
		case "exit":
			return 3
		default:
			if e.Kind == acp.Request {
				say(`"id":%s,"result":{"method":%q}`, e.ID, e.Method())
			}
		}
	}
}

const firstMessage = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`

// connect returns the id of a new client.
func (w *world) connect() string {
	w.t.Helper()
	res := w.do("POST", "/acp/fake", firstMessage)
	id := res.header.Get(headerPeer)
	if body := text(w.t, res); res.code != 200 || id == "" || body != `{"jsonrpc":"2.0","id":0,"result":{"method":"initialize"}}` {
		w.t.Fatalf("initialize: got %d, connection %q, %s; want 200, an id, its result", res.code, id, body)
	}
	return id
}

// events opens a stream of server-sent events.
func (w *world) events(headers ...string) *bufio.Reader {
	w.t.Helper()
	res := w.do("GET", "/acp/fake", "", append([]string{"Accept", "text/event-stream"}, headers...)...)
	if res.code != 200 {
		w.t.Fatalf("GET /acp/fake: got %d %s, want 200", res.code, text(w.t, res))
	}
	return bufio.NewReader(res.body)
}

// nextEvent returns the next event, or "" at the end of the stream.
func nextEvent(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return ""
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

func TestStandardStreamsCarryConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		id := w.connect()
		own := w.events(headerPeer, id)
		post := func(body string, headers ...string) {
			t.Helper()
			if res := w.do("POST", "/acp/fake", body, append([]string{headerPeer, id}, headers...)...); res.code != 202 {
				t.Fatalf("POST %s: got %d %s, want 202", body, res.code, text(t, res))
			}
		}
		post(`{"jsonrpc":"2.0","method":"junk"}`) // the agent's reaction belongs to the other transport
		post(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
		if got := nextEvent(t, own); got != `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}` {
			t.Fatalf("event: got %q, want the answer to session/new", got)
		}
		session := w.events(headerPeer, id, headerSession, "s1") // the session already has messages
		if got := nextEvent(t, session); !strings.Contains(got, "hello") {
			t.Fatalf("event of s1: got %q, want hello", got)
		}
		post(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1"}}`, headerSession, "s1")
		if got := nextEvent(t, session); !strings.Contains(got, "session/request_permission") {
			t.Fatalf("event of s1: got %q, want the permission request", got)
		}
		answer := `{"jsonrpc":"2.0","id":"ask","result":{}}`
		if res := w.do("POST", "/acp/fake", answer, headerPeer, id); res.code != 400 {
			t.Errorf("answer without its session: got status %d, want 400", res.code)
		}
		if res := w.do("POST", "/acp/fake", answer, headerPeer, id, headerSession, "s2"); res.code != 400 {
			t.Errorf("answer of another session: got status %d, want 400", res.code)
		}
		post(answer, headerSession, "s1")
		if got := nextEvent(t, session); !strings.Contains(got, `"answered":"ask"`) {
			t.Fatalf("event of s1: got %q, want the answered permission", got)
		}
		if got := nextEvent(t, session); got != `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}` {
			t.Fatalf("event of s1: got %q, want end_turn", got)
		}
		post(`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s1"}}`, headerSession, "s1")
		if got := nextEvent(t, session); !strings.Contains(got, "history") {
			t.Fatalf("event of s1: got %q, want history", got)
		}
		if got := nextEvent(t, own); got != `{"jsonrpc":"2.0","id":3,"result":{"loaded":true}}` {
			t.Fatal("the answer to a load is not on the session's stream: ", got)
		}
		if res := w.do("DELETE", "/acp/fake", "", headerPeer, id); res.code != 202 {
			t.Errorf("DELETE: got status %d, want 202", res.code)
		}
		if got := nextEvent(t, own) + nextEvent(t, session); got != "" {
			t.Errorf("after DELETE: got the events %q, want none", got)
		}
		if res := w.do("DELETE", "/acp/fake", "", headerPeer, id); res.code != 404 {
			t.Errorf("DELETE again: got status %d, want 404", res.code)
		}
	})
}

// A request whose id is in use is refused, and the answer to the earlier request goes to the earlier request's stream.
func TestStandardIDInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		id := w.connect()
		own := w.events(headerPeer, id)
		session := w.events(headerPeer, id, headerSession, "s1")
		post := func(want int, body string, headers ...string) {
			t.Helper()
			if res := w.do("POST", "/acp/fake", body, append([]string{headerPeer, id}, headers...)...); res.code != want {
				t.Fatalf("POST %s: got %d %s, want %d", body, res.code, text(t, res), want)
			}
		}
		post(202, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1"}}`, headerSession, "s1")
		post(400, `{"jsonrpc":"2.0","id":2,"method":"session/list"}`)
		post(202, `{"jsonrpc":"2.0","id":"ask","result":{}}`, headerSession, "s1")
		for _, want := range []string{"session/request_permission", `"answered":"ask"`, `"id":2,"result"`} {
			got := make(chan string, 1)
			go func() { got <- nextEvent(t, session) }()
			select {
			case got := <-got:
				if !strings.Contains(got, want) {
					t.Fatalf("got %s, want %s", got, want)
				}
			case <-time.After(time.Minute): // the heartbeats never end
				t.Fatalf("got nothing for a minute, want %s", want)
			}
		}
		post(202, `{"jsonrpc":"2.0","id":2,"method":"session/list"}`) // the id is free again
		if got := nextEvent(t, own); got != `{"jsonrpc":"2.0","id":2,"result":{"method":"session/list"}}` {
			t.Fatalf("event: got %q, want the answer to session/list", got)
		}
	})
}

func TestStandardRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		id := w.connect()
		w.events(headerPeer, id)
		const prompt = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1"}}`
		for _, c := range []struct {
			method, path, body string
			headers            []string
			status             int
		}{
			{"POST", "/acp/fake", firstMessage, []string{"Content-Type", "text/plain"}, 415},
			{"POST", "/acp/fake", `{`, nil, 400},
			{"POST", "/acp/fake", `[` + firstMessage + `]`, nil, 400},
			{"POST", "/acp/fake", `"text"`, nil, 400},
			{"POST", "/acp/fake", `{"jsonrpc":"2.0"}`, nil, 400},
			{"POST", "/acp/fake", `{"id":true,"method":"x"}`, []string{headerPeer, id}, 400},
			{"POST", "/acp/fake", firstMessage, []string{headerPeer, id}, 400},
			{"POST", "/acp/fake", prompt, nil, 400},
			{"POST", "/acp/fake", prompt, []string{headerPeer, "nobody"}, 404},
			{"POST", "/acp/other", prompt, []string{headerPeer, id, headerSession, "s1"}, 404},
			{"POST", "/acp/fake", prompt, []string{headerPeer, id}, 400},
			{"POST", "/acp/fake", prompt, []string{headerPeer, id, headerSession, "s2"}, 400},
			{"POST", "/acp/fake", `{"method":"session/cancel"}`, []string{headerPeer, id}, 400},
			{"POST", "/acp/fake", `{"method":"x"}`, []string{headerPeer, id, headerSession, strings.Repeat("s", 2000)}, 400},
			{"POST", "/acp/nobody", firstMessage, nil, 404},
			{"POST", "/acp/missing", firstMessage, nil, 500},
			{"GET", "/acp/fake", "", []string{headerPeer, id}, 406},
			{"GET", "/acp/fake", "", []string{"Accept", "text/event-stream"}, 400},
			{"GET", "/acp/fake", "", []string{"Accept", "text/event-stream", headerPeer, "nobody"}, 404},
			{"GET", "/acp/fake", "", []string{"Accept", "text/event-stream", headerPeer, id}, 409},
			{"DELETE", "/acp/fake", "", nil, 400},
			{"PUT", "/acp/fake", "", nil, 405},
			{"POST", "/acp", firstMessage, nil, 404},
			// The guard protects the transport.
			{"POST", "/acp/fake", firstMessage, []string{"Authorization", ""}, 401},
			{"POST", "/acp/fake", firstMessage, []string{"Authorization", "Bearer " + clientToken}, 401},
			{"POST", "/acp/fake", firstMessage, []string{"Origin", "http://evil.example"}, 403},
			{"POST", "/acp/fake", firstMessage, []string{"Host", "evil.example"}, 421},
		} {
			if res := w.do(c.method, c.path, c.body, c.headers...); res.code != c.status {
				t.Errorf("%s %s %s %v: got %d %s, want %d", c.method, c.path, c.body, c.headers, res.code, text(t, res), c.status)
			}
		}
		if list := w.set.List(); len(list) != 1 {
			t.Errorf("agents after refusals: got %+v, want 1", list)
		}
	})
}

// A client without a stream has a minute to come back; then its agent ends. When an agent ends by itself, the streams end.
func TestStandardConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		id := w.connect()
		ctx, hangUp := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:2468/acp/fake", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + w.token}, "Accept": {"text/event-stream"}, headerPeer: {id}}
		res, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		hangUp()
		_ = res.Body.Close()
		synctest.Wait()
		if len(w.set.List()) != 1 {
			t.Error("it is ended at once")
		}
		pass(abandoned + stopGrace)
		if list := w.set.List(); len(list) != 0 {
			t.Errorf("agents after the end: got %+v, want none", list)
		}

		id = w.connect()
		stream := w.events(headerPeer, id)
		if res := w.do("POST", "/acp/fake", `{"method":"exit"}`, headerPeer, id); res.code != 202 {
			t.Errorf("POST exit: got status %d, want 202", res.code)
		}
		if got := nextEvent(t, stream); got != "" {
			t.Errorf("event: got %q, want the end of the stream", got)
		}
		synctest.Wait()
		if res := w.do("POST", "/acp/fake", `{"method":"x"}`, headerPeer, id); res.code != 404 {
			t.Errorf("POST after the end: got status %d, want 404", res.code)
		}
		if list := w.set.List(); len(list) != 0 {
			t.Errorf("agents after the end: got %+v, want none", list)
		}
	})
}

// dialSocket opens a WebSocket.
func (w *world) dialSocket(path string, header http.Header) (conn *websocket.Conn, id string, status int, err error) {
	w.t.Helper()
	d := websocket.Dialer{NetDialContext: w.client.Transport.(*http.Transport).DialContext}
	if header.Get("Authorization") == "" {
		header.Set("Authorization", "Bearer "+w.token)
	}
	conn, res, err := d.DialContext(w.t.Context(), "ws://127.0.0.1:2468"+path, header)
	if err == nil {
		w.t.Cleanup(func() { _ = conn.Close() })
	}
	if res == nil {
		return conn, "", 0, err
	}
	defer res.Body.Close()
	return conn, res.Header.Get(headerPeer), res.StatusCode, err
}

func TestStandardSocketCarriesConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		t.Cleanup(w.api.Close)
		conn, id, _, err := w.dialSocket("/acp/fake", http.Header{})
		if err != nil || id == "" {
			t.Fatalf("dialSocket: got id %q, %v, want an id", id, err)
		}
		say := func(kind int, msg string) {
			t.Helper()
			if err := conn.WriteMessage(kind, []byte(msg)); err != nil {
				t.Fatal(err)
			}
		}
		hears := func(want string) {
			t.Helper()
			_, got, err := conn.ReadMessage()
			if err != nil || !strings.Contains(string(got), want) {
				t.Fatalf("%s, %v; want %s", got, err, want)
			}
		}
		say(websocket.BinaryMessage, firstMessage) // ignored
		say(websocket.TextMessage, `{`)
		hears("-32700")
		say(websocket.TextMessage, `[]`)
		hears("-32600")
		say(websocket.TextMessage, firstMessage)
		hears(`"id":0,"result"`)
		say(websocket.TextMessage, firstMessage)
		hears("-32600")
		say(websocket.TextMessage, `{"method":"junk"}`)
		say(websocket.TextMessage, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
		hears(`"sessionId":"s1"`)
		hears("hello")
		_ = conn.Close()
		pass(stopGrace)
		if list := w.set.List(); len(list) != 0 {
			t.Errorf("agents after the socket's end: got %+v, want none", list)
		}
	})
}

func TestStandardSocketRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		t.Cleanup(w.api.Close)
		for path, header := range map[string]http.Header{
			"/acp/nobody": {}, "/acp/fake": {"Authorization": {"Bearer wrong"}}, "/acp/other": {"Origin": {"http://evil.example"}},
		} {
			if _, _, status, err := w.dialSocket(path, header); !errors.Is(err, websocket.ErrBadHandshake) || status < 400 {
				t.Errorf("dialSocket(%s): got status %d, %v, want a bad handshake", path, status, err)
			}
		}
		conn, _, _, err := w.dialSocket("/acp/fake", http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`))
		if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseProtocolError) {
			t.Errorf("first message that is no initialize: got %v, want a close for a protocol error", err)
		}
		conn, _, _, err = w.dialSocket("/acp/missing", http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(firstMessage))
		if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), `"error"`) {
			t.Errorf("first message: got %s, %v, want an error", got, err)
		}
		silent, _, _, err := w.dialSocket("/acp/fake", http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		pass(socketPatience + stopGrace)
		if _, _, err := silent.ReadMessage(); err == nil {
			t.Error("who says nothing is kept")
		}
		if list := w.set.List(); len(list) != 0 {
			t.Errorf("instances: got %+v, want none", list)
		}
	})
}

// Close of the API ends the WebSockets, which closing the server does not.
func TestStandardSocketsEndWithTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		conn, _, _, err := w.dialSocket("/acp/fake", http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(firstMessage))
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		go func() {
			_, _, err := conn.ReadMessage()
			read <- err
		}()
		w.api.Close()
		var closed net.Error
		if err := <-read; err == nil || errors.As(err, &closed) && closed.Timeout() {
			t.Error(err)
		}
		if _, _, status, err := w.dialSocket("/acp/fake", http.Header{}); err == nil || status != http.StatusServiceUnavailable {
			t.Errorf("socket after the API's end: got %d, %v; want 503", status, err)
		}
	})
}

// A WebSocket to an agent that reads nothing ends, with its agent, when the client leaves, the token ends, or the server closes.
func TestStandardSocketOfAnAgentThatDoesNotRead(t *testing.T) {
	for name, end := range map[string]func(w *world, conn *websocket.Conn){
		"client": func(_ *world, conn *websocket.Conn) { _ = conn.Close() },
		"server": func(w *world, _ *websocket.Conn) { w.api.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				woken := make(chan struct{})
				w := newWorld(t, Config{}, func(stdin io.Reader, stdout, _ io.Writer) int {
					_, _ = bufio.NewReader(io.LimitReader(stdin, int64(len(firstMessage)+1))).ReadString('\n')
					fmt.Fprintln(stdout, `{"jsonrpc":"2.0","id":0,"result":{}}`)
					<-woken
					return 0
				})
				t.Cleanup(w.api.Close)
				defer close(woken)
				conn, _, _, err := w.dialSocket("/acp/fake", http.Header{})
				if err != nil {
					t.Fatal(err)
				}
				for n, msg := range []string{firstMessage, `{"method":"one"}`} {
					if err := conn.WriteMessage(websocket.TextMessage, []byte(msg)); err != nil {
						t.Fatal(err)
					}
					if n == 0 {
						if _, _, err := conn.ReadMessage(); err != nil {
							t.Fatal(err)
						}
					}
				}
				synctest.Wait()
				go end(w, conn)
				pass(2*heartbeatEvery + stopGrace)
				if list := w.set.List(); len(list) != 0 {
					t.Errorf("agents after the socket's end: got %+v, want none", list)
				}
			})
		})
	}
}

// greet opens a WebSocket and sends initialize.
func (w *world) greet() *websocket.Conn {
	w.t.Helper()
	conn, _, _, err := w.dialSocket("/acp/fake", http.Header{})
	if err == nil {
		err = conn.WriteMessage(websocket.TextMessage, []byte(firstMessage))
	}
	if err == nil {
		_, _, err = conn.ReadMessage()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// A client gets all messages that an agent sent before its end, even when the client lags behind and keeps sending.
func TestStandardSocketHasTheLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, speaker)
		t.Cleanup(w.api.Close)
		conn := w.greet()
		for _, msg := range []string{`{"method":"farewell"}`, `{"jsonrpc":"2.0","id":1,"method":"one"}`, `{"method":"two"}`} {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(msg)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var heard []string
		var err error
		for {
			var msg []byte
			if _, msg, err = conn.ReadMessage(); err != nil {
				break
			}
			heard = append(heard, string(msg))
		}
		if all := strings.Join(heard, " "); !strings.Contains(all, "first") || !strings.Contains(all, "last") || !websocket.IsCloseError(err, websocket.CloseGoingAway) {
			t.Errorf("messages: got %q, %v, want first, last, and a close frame", heard, err)
		}
	})
}

// A vanished client accepts bytes, as a proxy in between may, and answers nothing. A client that answers pings stays.
func TestStandardSocketOfAClientThatVanishes(t *testing.T) {
	for name, keeps := range map[string]bool{"vanished": false, "quiet": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{}, speaker)
				t.Cleanup(w.api.Close)
				conn := w.greet()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					if keeps {
						_, _, _ = conn.ReadMessage() // reading answers pings
					} else {
						_, _ = io.Copy(io.Discard, conn.NetConn())
					}
				}()
				pass(3*vanished + stopGrace)
				if list := w.set.List(); (len(list) == 1) != keeps {
					t.Errorf("agents: got %+v, want the agent kept %v", list, keeps)
				}
				_ = conn.Close()
				<-ended
				pass(stopGrace)
			})
		})
	}
}

// pass lets time pass in the bubble, and waits for everything due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
