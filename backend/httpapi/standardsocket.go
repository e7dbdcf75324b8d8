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

// socketPatience is how long a WebSocket may take nothing, or no piece of a long message, and how long it may take to say its first word.
const socketPatience = time.Minute

// vanished is how long nothing may be heard of a client, which answers our pings: TCP alone takes a quarter of an hour to give it up.
const vanished = 2 * time.Minute

// socket is a client on one WebSocket: all messages go over it, as text. Its agent ends with it.
type socket struct {
	s    *standard
	conn *websocket.Conn
	inst *proxy.Instance

	ctx  context.Context //nolint:containedctx // ends when the connection has: an agent that does not read is waited for no longer
	stop context.CancelFunc

	mu sync.Mutex // a WebSocket has one writer at a time
}

// hijackable gives the connection of a response that is wrapped.
type hijackable struct{ http.ResponseWriter }

// Hijack takes the connection over.
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
		CheckOrigin:      func(*http.Request) bool { return true }, // the gate has
		Error:            func(w http.ResponseWriter, _ *http.Request, status int, why error) { inWords(w, status, why.Error()) },
	}
	id := uuid.NewString()
	conn, err := upgrader.Upgrade(hijackable{w}, r, http.Header{headerPeer: {id}})
	if err != nil {
		return // it is answered
	}
	k := &socket{s: s, conn: conn}
	k.ctx, k.stop = context.WithCancel(r.Context())
	k.serve(r, id, agent)
}

// serve speaks with the client until either has gone, the token that it came with is no good any more, or the server ends.
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
		_ = runtime.Remove(standardID(id)) // nothing of it is there
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

// initialize reads the first message, which has to be that.
func (k *socket) initialize() (acp.Envelope, bool) {
	_ = k.conn.SetReadDeadline(time.Now().Add(socketPatience)) // it fails with the connection only
	for {
		e, ok := k.read()
		switch {
		case !ok:
			return e, false
		case e.Kind == acp.Request && e.Method() == "initialize":
			_ = k.conn.SetReadDeadline(time.Time{})
			return e, true
		case e.Kind == acp.Response: // nobody has asked
		case e.Kind != acp.Other:
			k.bye(websocket.CloseProtocolError, "First message must be initialize")
			return e, false
		}
	}
}

// read gives the next message; what is none is answered, and passed over.
func (k *socket) read() (acp.Envelope, bool) {
	for {
		kind, in, err := k.conn.NextReader()
		if err != nil {
			return acp.Envelope{}, false
		}
		if kind != websocket.TextMessage {
			continue // the transport has text alone
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

// heard puts off the moment in which the client counts as gone. Who writes may say so as well: the connection is asked, since a WebSocket
// has one reader at a time.
func (k *socket) heard() {
	_ = k.conn.NetConn().SetReadDeadline(time.Now().Add(vanished)) // it fails with the connection only
}

// arriving reads a message that may take long to come: in the middle of it no ping is answered. The first one has its time for all of it.
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
		k.heard() // the agent may have been waited for since
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

// hand gives a message to the agent.
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
	case errors.As(err, new(*proxy.ExitError)): // what it said last may be on its way still; the goodbye comes behind it
	default:
		k.bye(websocket.CloseInternalServerErr, k.s.api.problemOf(err).Detail)
	}
}

// pump sends what the agent says, until there will be no more.
func (k *socket) pump(ended <-chan struct{}) {
	reader := k.inst.After(k.inst.Since())
	defer reader.Close()
	ping := time.NewTicker(heartbeatEvery)
	defer ping.Stop()
	busy := make(chan struct{}) // always there is something to do
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
			case err != nil, strings.HasPrefix(method, "_adapter/"): // of the other transport
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
			// The reader may wait for the agent to read, and then sees no end.
			if k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketPatience)) != nil {
				k.drop()
				return
			}
		}
	}
}

// write sends a message of ours.
func (k *socket) write(msg []byte) { k.send(msg, func() {}) }

// send sends a message; false when it cannot be. took hears of each piece of a long one that the client has taken.
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
	_ = k.conn.SetWriteDeadline(time.Now().Add(socketPatience)) // it fails with the connection only
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
		k.heard() // it is there: meanwhile it is sent no ping to answer
	}
	return out.Close()
}

func (k *socket) fail(id json.RawMessage, failure *acp.Error) {
	msg, _ := acp.NewErrorResponse(id, failure)
	k.write(msg)
}

// refuse answers initialize for an agent that is not there, and closes.
func (k *socket) refuse(e acp.Envelope, err error) {
	p := k.s.api.problemOf(err).document()
	k.fail(json.RawMessage(e.ID), &acp.Error{Code: acp.CodeInternalError, Message: p.Detail})
	k.bye(websocket.CloseInternalServerErr, "Initialize failed")
}

// bye closes, with a reason.
func (k *socket) bye(code int, why string) {
	const longest = 120 // what a control frame has room for
	if len(why) > longest {
		why = strings.ToValidUTF8(why[:longest], "")
	}
	_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
	k.drop() // whether it was heard or not
}

// drop ends the connection, and who waits for the agent on its account. Whoever reads from it hears of it.
func (k *socket) drop() {
	k.stop()
	_ = k.conn.Close()
}
