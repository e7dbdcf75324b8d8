package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// socketPatience is how long a WebSocket may accept no byte, or no piece of a long message, and how long the client may take for its first
// message.
const socketPatience = time.Minute

// vanished is how long a client may be silent, although clients answer pings: TCP alone would take a quarter of an hour to give up.
const vanished = 2 * time.Minute

// socket is a client on a WebSocket, which carries all messages as text. The agent ends with the socket.
type socket struct {
	s    *standard
	conn *websocket.Conn
	inst *proxy.Instance

	ctx  context.Context //nolint:containedctx // ends with the connection, and with it every wait for the agent
	stop context.CancelFunc

	mu sync.Mutex // a WebSocket allows a single writer
}

// hijackable finds the connection of a wrapped response.
type hijackable struct{ http.ResponseWriter }

// Hijack takes over the connection.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

func (s *standard) socket(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("agent")
	if _, err := s.api.cfg.Agents.Info(r.Context(), agent, agents.InfoQuery{}); errors.Is(err, agents.ErrUnknown) {
		inWords(w, http.StatusNotFound, err.Error())
		return
	}
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		inWords(w, http.StatusServiceUnavailable, "The server is going")
		return
	default:
		s.sockets.Add(1)
		s.mu.Unlock()
	}
	defer s.sockets.Done()
	upgrader := websocket.Upgrader{
		HandshakeTimeout: headerPause,
		CheckOrigin:      func(*http.Request) bool { return true }, // the gate has checked the origin
		Error:            func(w http.ResponseWriter, _ *http.Request, status int, why error) { inWords(w, status, why.Error()) },
	}
	id := uuid.NewString()
	conn, err := upgrader.Upgrade(hijackable{w}, r, http.Header{headerPeer: {id}})
	if err != nil {
		return // answered by Upgrade
	}
	k := &socket{s: s, conn: conn}
	k.ctx, k.stop = context.WithCancel(r.Context())
	k.serve(r, id, agent)
}

// serve relays messages until the client or the agent is gone, the client's token ends, or the server closes.
func (k *socket) serve(r *http.Request, id, agent string) {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer close(ended)
	defer k.drop()
	watching.Go(func() {
		select {
		case <-r.Context().Done():
			k.bye(websocket.CloseGoingAway, "Server shutting down")
		case <-k.s.closing:
			k.bye(websocket.CloseGoingAway, "Server shutting down")
		case <-ended:
		}
	})
	k.conn.SetReadLimit(maxEnvelope)
	e, ok := k.initialize()
	if !ok {
		return
	}
	runtime := k.s.api.cfg.Runtime
	inst, err := runtime.Ensure(r.Context(), standardID(id), agent, k.s.api.prepare(agent, ""))
	if err != nil {
		k.refuse(e, err)
		_ = runtime.Remove(standardID(id)) // nothing was started
		return
	}
	k.inst = inst
	k.conn.SetPongHandler(func(string) error { k.heard(); return nil })
	watching.Go(func() { k.pump(ended) })
	k.hand(e)
	k.listen()
	if err := inst.Close(); err != nil {
		k.s.api.log.Error("an agent could not be ended", "server_id", inst.ServerID(), "error", err)
	}
}

// initialize reads the first message, which must be initialize.
func (k *socket) initialize() (acp.Envelope, bool) {
	_ = k.conn.SetReadDeadline(time.Now().Add(socketPatience)) // fails only with the connection
	for {
		e, ok := k.read()
		switch {
		case !ok:
			return e, false
		case e.Kind == acp.Request && e.Method() == "initialize":
			_ = k.conn.SetReadDeadline(time.Time{})
			return e, true
		case e.Kind == acp.Response: // an answer to no request
		case e.Kind != acp.Other:
			k.bye(websocket.CloseProtocolError, "First message must be initialize")
			return e, false
		}
	}
}

// read returns the next message; invalid messages are answered and skipped.
func (k *socket) read() (acp.Envelope, bool) {
	for {
		kind, in, err := k.conn.NextReader()
		if err != nil {
			return acp.Envelope{}, false
		}
		if kind != websocket.TextMessage {
			continue // the transport uses only text
		}
		data, err := io.ReadAll(arriving{in, k})
		if err != nil {
			return acp.Envelope{}, false
		}
		e, err := acp.Peek(data)
		switch {
		case err != nil:
			k.fail(json.RawMessage("null"), &acp.Error{Code: acp.CodeParseError, Message: err.Error()})
		case e.Raw[0] == '[':
			k.write(batchesRefused())
		case e.Kind == acp.Other, e.ID != nil && e.Key() == "":
			k.fail(json.RawMessage("null"), &acp.Error{Code: acp.CodeInvalidRequest, Message: "Invalid JSON-RPC message"})
		default:
			return e, true
		}
	}
}

// heard extends the time until the client counts as gone. Writers may call heard too: the deadline is set on the connection itself, because
// a WebSocket allows a single reader.
func (k *socket) heard() {
	_ = k.conn.NetConn().SetReadDeadline(time.Now().Add(vanished)) // fails only with the connection
}

// arriving reads a message that may take long: no ping is answered in the middle of a message. The first message has a single deadline for all
// of it.
type arriving struct {
	io.Reader
	k *socket
}

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 && a.k.inst != nil {
		a.k.heard()
	}
	return n, err
}

func (k *socket) listen() {
	for {
		k.heard() // the agent may have been slow since
		e, ok := k.read()
		if !ok {
			return
		}
		if e.Kind == acp.Request && e.Method() == "initialize" {
			k.fail(json.RawMessage(e.ID), &acp.Error{Code: acp.CodeInvalidRequest, Message: "Initialize not allowed on existing connection"})
			continue
		}
		k.hand(e)
	}
}

// hand delivers a message to the agent.
func (k *socket) hand(e acp.Envelope) {
	var err error
	if e.Kind == acp.Request {
		err = ask(k.inst, e)
	} else {
		err = k.inst.Deliver(k.ctx, e)
	}
	switch {
	case err == nil:
	case errors.Is(err, proxy.ErrDuplicateID):
		k.fail(json.RawMessage(e.ID), &acp.Error{Code: acp.CodeInvalidRequest, Message: "a request with this id is in flight already"})
	case errors.As(err, new(*proxy.ExitError)): // the agent's last messages may still be unsent; the close frame follows them
	default:
		k.bye(websocket.CloseInternalServerErr, k.s.api.problemOf(err).Detail)
	}
}

// pump sends the agent's messages until there are no more.
func (k *socket) pump(ended <-chan struct{}) {
	reader := k.inst.After(k.inst.Since())
	defer reader.Close()
	ping := time.NewTicker(heartbeatEvery)
	defer ping.Stop()
	busy := make(chan struct{}) // always ready: there is always work
	close(busy)
	for {
		batch, more, err := reader.Poll()
		if err != nil {
			k.bye(websocket.CloseGoingAway, "The agent was ended")
			return
		}
		for _, m := range batch {
			e, err := acp.Peek(m.Data)
			switch method := e.Method(); {
			case method == "_adapter/agent_exited":
				k.bye(websocket.CloseGoingAway, "The agent has ended")
				return
			case err != nil, strings.HasPrefix(method, "_adapter/"): // messages of the other transport
			case !k.send(e.Line(), reader.Working):
				return
			}
			reader.Working()
		}
		if len(batch) > 0 {
			more = busy
		}
		select {
		case <-more:
		case <-ended:
			return
		case <-ping.C:
			// The reader may be waiting for the agent, and would not notice the client's end.
			if k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketPatience)) != nil {
				k.drop()
				return
			}
		}
	}
}

// write sends a message of this server.
func (k *socket) write(msg []byte) { k.send(msg, func() {}) }

// send sends a message, and reports success. took is called after each piece of a long message that the client has taken.
func (k *socket) send(msg []byte, took func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.sendLocked(msg, took); err != nil {
		k.drop()
		return false
	}
	return true
}

func (k *socket) sendLocked(msg []byte, took func()) error {
	_ = k.conn.SetWriteDeadline(time.Now().Add(socketPatience)) // fails only with the connection
	if len(msg) <= pieceBytes {
		return k.conn.WriteMessage(websocket.TextMessage, msg)
	}
	out, err := k.conn.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(msg, pieceBytes) {
		_ = k.conn.SetWriteDeadline(time.Now().Add(socketPatience))
		if _, err := out.Write(piece); err != nil {
			return err
		}
		took()
		k.heard() // the client is there: while it takes a message, no ping is sent
	}
	return out.Close()
}

func (k *socket) fail(id json.RawMessage, failure *acp.Error) {
	msg, _ := acp.NewErrorResponse(id, failure)
	k.write(msg)
}

// refuse answers initialize for an agent that cannot be started, and closes.
func (k *socket) refuse(e acp.Envelope, err error) {
	p := k.s.api.problemOf(err).document()
	k.fail(json.RawMessage(e.ID), &acp.Error{Code: acp.CodeInternalError, Message: p.Detail})
	k.bye(websocket.CloseInternalServerErr, "Initialize failed")
}

// bye sends a close frame with a reason, and drops the connection.
func (k *socket) bye(code int, why string) {
	const longest = 120 // limit of a control frame
	if len(why) > longest {
		why = strings.ToValidUTF8(why[:longest], "")
	}
	_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
	k.drop() // whether the client got the frame or not
}

// drop closes the connection, and ends waits for the agent. The reader notices the close.
func (k *socket) drop() {
	k.stop()
	_ = k.conn.Close()
}
