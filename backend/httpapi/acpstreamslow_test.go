package httpapi

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"deskhand/backend/acp"
)

// A message that takes minutes to arrive does not count as silence: its client cannot answer pings in the middle of the message.
func TestStandardSocketOfAClientThatSendsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, agent)
		t.Cleanup(w.api.Close)
		conn := w.greet()
		conn.SetPingHandler(func(string) error { return nil })
		answered := make(chan []byte, 1)
		go func() {
			_, msg, _ := conn.ReadMessage()
			answered <- msg
		}()
		const parts = 10
		msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"long","params":{"x":%q}}`, strings.Repeat("x", 1<<20))
		const final, text, masked, long = 0x80, 1, 0x80, 127
		frame := binary.BigEndian.AppendUint64([]byte{final | text, masked | long}, uint64(len(msg)))
		frame = append(append(frame, 0, 0, 0, 0), msg...) // a mask without effect
		for n := range parts {
			if _, err := conn.NetConn().Write(frame[n*len(frame)/parts : (n+1)*len(frame)/parts]); err != nil {
				t.Fatalf("part %d: %v", n, err)
			}
			pass(20 * time.Second)
		}
		if got := <-answered; !strings.HasPrefix(string(got), `{"jsonrpc":"2.0","id":7,"result"`) || len(got) < len(msg) {
			t.Errorf("%d bytes are the answer", len(got))
		}
	})
}

// talker is an agent that sends a message of 8 MiB on request.
func talker(stdin io.Reader, stdout, _ io.Writer) int {
	in := bufio.NewReader(stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		e, err := acp.Peek(line)
		if err != nil {
			return 1
		}
		much := ""
		if e.Method() == "long" {
			much = strings.Repeat("x", 8<<20)
		}
		_, _ = fmt.Fprintf(stdout, `{"jsonrpc":"2.0","id":%s,"result":{"x":%q}}`+"\n", e.ID, much)
	}
}

// A client that takes minutes for a message gets the whole message, and the next.
func TestStandardSocketOfAClientThatReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{}, talker)
		t.Cleanup(w.api.Close)
		conn := w.greet()
		conn.SetPingHandler(func(string) error { return nil }) // busy: no pongs
		for n, method := range []string{"long", "short"} {
			if err := conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, n, method)); err != nil {
				t.Fatal(err)
			}
		}
		for n, want := range []int{8 << 20, 0} {
			kind, in, err := conn.NextReader()
			if err != nil || kind != websocket.TextMessage {
				t.Fatalf("NextReader: got %v, %v, want a text message of %d bytes", kind, err, want)
			}
			var msg []byte
			for {
				part, err := io.ReadAll(io.LimitReader(in, 1<<20))
				if err != nil {
					t.Fatalf("after %d bytes: %v", len(msg), err)
				}
				if len(part) == 0 {
					break
				}
				msg = append(msg, part...)
				pass(20 * time.Second)
			}
			var got struct {
				ID     int
				Result struct{ X string }
			}
			if err := json.Unmarshal(msg, &got); err != nil || got.ID != n || len(got.Result.X) != want {
				t.Fatalf("%d: %d bytes, %v", got.ID, len(msg), err)
			}
		}
	})
}
