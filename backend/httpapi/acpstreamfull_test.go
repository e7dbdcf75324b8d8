package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"deskhand/backend/testkit"
)

// deaf is an agent that answers initialize, closes its stdin, and lives on.
func deaf(woken <-chan struct{}) func(stdin io.Reader, stdout, _ io.Writer) int {
	return func(stdin io.Reader, stdout, _ io.Writer) int {
		_, _ = bufio.NewReader(stdin).ReadString('\n')
		if in, is := stdin.(io.Closer); is {
			_ = in.Close()
		}
		fmt.Fprintln(stdout, `{"jsonrpc":"2.0","id":0,"result":{"method":"initialize"}}`)
		<-woken
		return 0
	}
}

// TestStandardRequestThatAgentDoesNotTakeIsRefused: no answer would ever come.
func TestStandardRequestThatAgentDoesNotTakeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{})
		defer close(woken)
		w := newWorld(t, Config{}, deaf(woken))
		t.Cleanup(w.api.Close)
		id := w.connect()
		w.do("POST", "/acp/fake", `{"jsonrpc":"2.0","method":"one"}`, headerPeer, id) // the write discovers the closed stdin
		pass(stopGrace)
		request := `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{}}`
		for range 2 { // the refused request does not take its id
			if res := w.do("POST", "/acp/fake", request, headerPeer, id); res.code != http.StatusBadGateway || !strings.Contains(text(t, res), "input is closed") {
				t.Errorf("POST: got status %d, want 502 with \"input is closed\"", res.code)
			}
		}
	})
}

func TestStandardSocketOfAgentThatTakesNothingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{})
		w := newWorld(t, Config{}, deaf(woken))
		t.Cleanup(w.api.Close)
		defer close(woken)
		conn := w.greet()
		say := func(msg string) {
			t.Helper()
			if err := conn.WriteMessage(websocket.TextMessage, []byte(msg)); err != nil {
				t.Fatal(err)
			}
		}
		say(`{"jsonrpc":"2.0","id":1,"method":"one"}`) // the write discovers the closed stdin
		pass(stopGrace)
		say(`{"jsonrpc":"2.0","id":2,"method":"two"}`)
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Limit))
		if _, msg, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseInternalServerErr) {
			t.Errorf("read: got %s, %v, want a close with an internal error", msg, err)
		}
	})
}
