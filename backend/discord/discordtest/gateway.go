package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/disgoorg/snowflake/v2"
	"github.com/gorilla/websocket"
)

// The intents that the stand-in examines, and the set of all intents of Discord.
const (
	intentGuilds   = 1 << 0
	intentMembers  = 1 << 1
	intentPresence = 1 << 8
	intentMessages = 1 << 9
	intentDirect   = 1 << 12
	intentContent  = 1 << 15
	intentsKnown   = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
)

// The opcodes of frames at the gateway.
const (
	opDispatch   = 0
	opHeartbeat  = 1
	opIdentify   = 2
	opPresence   = 3
	opVoice      = 4
	opResume     = 6
	opReconnect  = 7
	opMembers    = 8
	opInvalid    = 9
	opHello      = 10
	opAck        = 11
	longestFrame = 4096
)

// The codes with which Discord closes a connection.
const (
	CloseUnknown       = 4000
	CloseOpcode        = 4001
	CloseDecode        = 4002
	CloseAnonymous     = 4003
	CloseToken         = 4004
	CloseTwice         = 4005
	CloseSequence      = 4007
	CloseTimeout       = 4009
	CloseShard         = 4010
	CloseVersion       = 4012
	CloseIntents       = 4013
	CloseNotAllowed    = 4014
	closeWithoutReason = 0 // the network breaks
)

// Connect is one identify or resume frame of a client.
type Connect struct {
	At      time.Time    `json:"at"`
	Resumed bool         `json:"resumed"` // the client resumed a session
	Path    string       `json:"path"`    // "/resume" is the address for resuming
	Session snowflake.ID `json:"-"`
	Seq     int          `json:"seq"`
	Intents int          `json:"intents"`
	Browser string       `json:"browser"` // the name that the client gives its browser
	Refused int          `json:"refused,omitempty"`
}

// session is a session that a client may resume. A session keeps all its events, numbered from 1.
type session struct {
	id      string
	intents int
	events  [][]byte
	line    *line // nil = no client is connected
}

func (s *session) add(kind string, data any) {
	s.events = append(s.events, encode(object{"op": opDispatch, "s": len(s.events) + 1, "t": kind, "d": data}))
	if s.line != nil {
		s.line.poke()
	}
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("standin: %v", err))
	}
	return data
}

// line is the connection of one client at the gateway. The reader of a line runs in the handler of its request; the writer ends with the
// reader.
type line struct {
	gateway *Gateway
	socket  *websocket.Conn
	path    string
	wake    chan struct{} // holds one: there is something to send
	session *session
	sent    int      // number of the session's events that were sent
	control [][]byte // frames to send before the events
	code    int      // the close code, when closing
	text    string
	closing bool
	over    bool
}

func (l *line) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drop breaks the connection as a failing network does, without a close frame.
func (l *line) drop() { l.hangUp(closeWithoutReason, "") }

// hangUp closes the connection; with a code, the frames that already wait are sent first. The caller holds the lock.
func (l *line) hangUp(code int, text string) {
	if !l.closing {
		l.closing, l.code, l.text = true, code, text
	}
	l.poke()
}

func (l *line) say(o object) {
	l.control = append(l.control, encode(o))
	l.poke()
}

// Gateway sends events to clients, over connections that they keep open.
type Gateway struct {
	URL string // without a path and a query, as the API returns the address too

	d         *Discord
	heartbeat time.Duration // how often a client must send a heartbeat
	patience  time.Duration // how long the gateway waits for a heartbeat
	sessions  map[string]*session
	lines     map[*line]struct{}
	beats     int // heartbeats that were acknowledged
	connects  []Connect

	dropAfter  int // events still sent before the connection breaks; -1 = the connection does not break
	muted      bool
	deaf       bool
	down       bool
	startsLeft int // -1 = as many as Discord gives
}

// dispatch sends an event to the sessions that asked for its intent. Every session receives an event of intent 0.
func (gw *Gateway) dispatch(kind string, intent int, data any) {
	for _, s := range gw.sessions {
		if intent == 0 || s.intents&intent != 0 {
			s.add(kind, data)
		}
	}
}

func (gw *Gateway) upgrade(w http.ResponseWriter, r *http.Request) {
	gw.d.mu.Lock()
	down := gw.down
	gw.d.mu.Unlock()
	if down {
		http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &line{gateway: gw, socket: socket, path: r.URL.Path, wake: make(chan struct{}, 1)}
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	gw.d.do(func() {
		gw.lines[l] = struct{}{}
		if gw.d.closed {
			l.drop()
		}
		l.greet(r)
	})
	l.read()
	gw.d.do(func() {
		l.over = true
		delete(gw.lines, l)
		if l.session != nil && l.session.line == l {
			l.session.line = nil
		}
		l.poke()
	})
	<-written
	_ = socket.Close()
}

func (l *line) greet(r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Get("v") != "10":
		l.hangUp(CloseVersion, "Invalid API version.")
	case query.Get("encoding") != "json" || query.Get("compress") != "":
		l.hangUp(CloseDecode, "This gateway speaks JSON alone.")
	default:
		l.say(object{"op": opHello, "d": object{"heartbeat_interval": l.gateway.heartbeat.Milliseconds(), "_trace": []string{}}, "s": nil, "t": nil})
	}
}

// write sends the frames and events that wait, until the connection ends.
func (l *line) write() {
	for {
		data, done := l.next()
		switch {
		case data != nil:
			if l.socket.WriteMessage(websocket.TextMessage, data) != nil {
				_ = l.socket.UnderlyingConn().Close() // the reader ends too
			}
		case done:
			l.end()
			return
		default:
			<-l.wake
		}
	}
}

// next returns the next frame to send, nil when nothing waits, or done when the connection is to end.
func (l *line) next() (data []byte, done bool) {
	l.gateway.d.mu.Lock()
	defer l.gateway.d.mu.Unlock()
	broken := l.closing && l.code == closeWithoutReason
	switch {
	case l.over || broken:
		return nil, true
	case l.gateway.muted:
		return nil, l.closing
	case len(l.control) > 0:
		data, l.control = l.control[0], l.control[1:]
		return data, false
	case l.session != nil && l.sent < len(l.session.events) && l.gateway.dropAfter == 0:
		l.gateway.dropAfter = -1
		l.drop()
		return nil, true
	case l.session != nil && l.sent < len(l.session.events):
		if l.gateway.dropAfter > 0 {
			l.gateway.dropAfter--
		}
		l.sent++
		return l.session.events[l.sent-1], false
	}
	return nil, l.closing
}

// end closes the socket, with a close frame when a code is set. The reader ends then.
func (l *line) end() {
	l.gateway.d.mu.Lock()
	code, text := l.code, l.text
	l.gateway.d.mu.Unlock()
	if code != closeWithoutReason {
		const patience = time.Second
		_ = l.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(patience))
	} else if tcp, ok := l.socket.UnderlyingConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.socket.UnderlyingConn().Close()
}

// read handles the frames of the client until the client is gone or has sent no heartbeat for too long.
func (l *line) read() {
	l.beaten()
	for {
		_, data, err := l.socket.ReadMessage()
		if err != nil {
			l.gateway.d.do(func() { l.gone(err) })
			return
		}
		l.gateway.d.do(func() { l.hear(data) })
	}
}

// beaten gives the client time until the next heartbeat.
func (l *line) beaten() {
	_ = l.socket.SetReadDeadline(time.Now().Add(l.gateway.patience))
}

func (l *line) gone(err error) {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		l.hangUp(CloseTimeout, "Session timed out.")
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) && l.session != nil:
		// A client that closes its connection properly gives up its session.
		delete(l.gateway.sessions, l.session.id)
	}
}

func (l *line) hear(data []byte) {
	var in struct {
		Op   *int            `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	if len(data) > longestFrame || json.Unmarshal(data, &in) != nil || in.Op == nil {
		l.hangUp(CloseDecode, "Error while decoding payload.")
		return
	}
	switch *in.Op {
	case opHeartbeat:
		if !l.gateway.deaf {
			l.beaten()
			l.gateway.beats++
			l.say(object{"op": opAck})
		}
	case opIdentify:
		l.identify(in.Data)
	case opResume:
		l.resume(in.Data)
	case opPresence, opVoice, opMembers:
		if l.session == nil {
			l.hangUp(CloseAnonymous, "Not authenticated.")
		}
	default:
		l.hangUp(CloseOpcode, "Unknown opcode.")
	}
}

func (l *line) identify(data json.RawMessage) {
	var in struct {
		Token      string
		Intents    *int
		Compress   bool
		Shard      *[2]int
		Properties *struct{ OS, Browser, Device string }
	}
	err := json.Unmarshal(data, &in)
	code, text := 0, ""
	switch {
	case err != nil || in.Intents == nil || in.Compress || in.Properties == nil:
		code, text = CloseDecode, "Error while decoding payload."
	case l.session != nil:
		code, text = CloseTwice, "Already authenticated."
	case !l.gateway.d.known(in.Token):
		code, text = CloseToken, "Authentication failed."
	case in.Shard != nil && (in.Shard[1] < 1 || in.Shard[0] >= in.Shard[1]):
		code, text = CloseShard, "Invalid shard."
	case *in.Intents&^intentsKnown != 0:
		code, text = CloseIntents, "Invalid intent(s)."
	case *in.Intents&(intentMembers|intentPresence) != 0, *in.Intents&intentContent != 0 && l.gateway.d.noContent:
		code, text = CloseNotAllowed, "Disallowed intent(s)."
	}
	connect := Connect{At: time.Now(), Path: l.path, Refused: code}
	if in.Intents != nil {
		connect.Intents = *in.Intents
	}
	if in.Properties != nil {
		connect.Browser = in.Properties.Browser
	}
	l.gateway.connects = append(l.gateway.connects, connect)
	if code != 0 {
		l.hangUp(code, text)
		return
	}
	l.begin(*in.Intents)
}

func (l *line) begin(intents int) {
	gw := l.gateway
	if gw.startsLeft > 0 {
		gw.startsLeft--
	}
	s := &session{id: "session-" + strconv.Itoa(len(gw.connects)), intents: intents, line: l}
	gw.sessions[s.id] = s
	l.session, l.sent = s, 0
	guilds := []object{}
	for _, g := range gw.d.guilds {
		guilds = append(guilds, object{"id": g.id, "unavailable": true})
	}
	s.add("READY", object{
		"v": 10, "user": gw.d.userJSON(gw.d.Bot), "guilds": guilds, "session_id": s.id, "resume_gateway_url": gw.URL + "/resume",
		"session_type": "normal", "private_channels": []any{}, "shard": [2]int{0, 1},
		"application": object{"id": gw.d.Application, "flags": gw.d.applicationFlags()},
	})
	for _, g := range gw.d.guilds {
		if intents&intentGuilds != 0 {
			s.add("GUILD_CREATE", gw.d.guildJSON(g, true))
		}
	}
}

func (l *line) resume(data json.RawMessage) {
	var in struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	gw := l.gateway
	if json.Unmarshal(data, &in) != nil {
		l.hangUp(CloseDecode, "Error while decoding payload.")
		return
	}
	s := gw.sessions[in.Session]
	connect := Connect{At: time.Now(), Path: l.path, Resumed: true, Seq: in.Seq}
	defer func() { gw.connects = append(gw.connects, connect) }()
	switch {
	case !gw.d.known(in.Token):
		connect.Refused = CloseToken
		l.hangUp(CloseToken, "Authentication failed.")
	case s == nil:
		connect.Refused = opInvalid
		l.say(object{"op": opInvalid, "d": false})
	case in.Seq > len(s.events):
		connect.Refused = CloseSequence
		delete(gw.sessions, s.id)
		l.hangUp(CloseSequence, "Invalid seq.")
	default:
		if s.line != nil && s.line != l {
			s.line.hangUp(CloseUnknown, "Another line resumed this session.")
		}
		s.line, l.session, l.sent = l, s, in.Seq
		connect.Intents = s.intents
		s.add("RESUMED", object{"_trace": []string{}})
	}
}
