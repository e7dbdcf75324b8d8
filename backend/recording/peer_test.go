package recording

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/agentio"
)

// received is a message of the player.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *agentio.Error  `json:"error"`
}

// peer is a client of a player.
type peer struct {
	t      *testing.T
	in     io.WriteCloser
	lines  chan []byte // closed at the end of the player's output
	ended  chan error  // the result of Play
	lastID int
	// onRequest answers the player's requests. The default fails the test.
	onRequest func(received)
	closing   sync.Once
}

func connect(t *testing.T, in io.WriteCloser, out io.Reader) *peer {
	t.Helper()
	p := &peer{t: t, in: in, lines: make(chan []byte, 1<<15), ended: make(chan error, 1)}
	p.onRequest = func(m received) { t.Errorf("a request %s %s: want none", m.Method, m.Params) }
	go func() {
		defer close(p.lines)
		reader := bufio.NewReader(out)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				p.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// close ends the player's input and waits for its end. close may be called twice.
func (p *peer) close() {
	p.closing.Do(func() {
		p.in.Close()
		for line := range p.lines {
			p.decode(line, &received{})
		}
		if err := <-p.ended; err != nil {
			p.t.Errorf("Play: got %v, want no error", err)
		}
	})
}

func (p *peer) send(message any) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(message); err != nil {
		p.t.Fatal(err)
	}
}

// reply answers a request of the player with a result in JSON.
func (p *peer) reply(m received, result string) {
	p.t.Helper()
	p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(result)})
}

func (p *peer) decode(raw []byte, value any) {
	p.t.Helper()
	if err := json.Unmarshal(raw, value); err != nil {
		p.t.Errorf("Unmarshal of %.300q: got %v, want no error", raw, err)
	}
}

// exchange holds the answer to a request, and the updates before the answer with their text.
type exchange struct {
	updates []json.RawMessage
	said    string
	result  json.RawMessage
	err     *agentio.Error
}

// call sends a request and collects messages up to its answer.
func (p *peer) call(method string, params any) exchange {
	p.t.Helper()
	id := fmt.Sprint(p.lastID)
	p.lastID++
	p.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	var e exchange
	for line := range p.lines {
		var m received
		p.decode(line, &m)
		switch {
		case m.Method == "session/update":
			var params struct {
				Update struct{ Content struct{ Text string } }
			}
			p.decode(m.Params, &params)
			e.updates = append(e.updates, m.Params)
			e.said += params.Update.Content.Text
		case m.Method != "":
			p.onRequest(m)
		case string(m.ID) == id:
			e.result, e.err = m.Result, m.Error
			return e
		default:
			p.t.Fatalf("an answer %s: got id %s, want %s", line, m.ID, id)
		}
	}
	p.t.Fatalf("%s: got the end of the player, want an answer", method)
	return e
}

// mustCall fails the test when the answer is an error.
func (p *peer) mustCall(method string, params any) exchange {
	p.t.Helper()
	e := p.call(method, params)
	if e.err != nil {
		p.t.Fatalf("%s: got error %+v, want none", method, *e.err)
	}
	return e
}

// prompt runs a turn.
func (p *peer) prompt(session, prompt string) exchange {
	p.t.Helper()
	return p.call("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": prompt}}})
}

func (e exchange) wantSaid(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(e.said, want) {
		t.Errorf("said: got %q, want in it %q", e.said, want)
	}
}
