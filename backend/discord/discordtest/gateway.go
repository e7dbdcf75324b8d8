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

// The intents that are looked at, and those that Discord knows at all.
const (
	intentGuilds   = 1 << 0
	intentMembers  = 1 << 1
	intentPresence = 1 << 8
	intentMessages = 1 << 9
	intentDirect   = 1 << 12
	intentContent  = 1 << 15
	intentsKnown   = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
)

// What is sent and received at the gateway.
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

// The reasons for which Discord hangs up.
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

// Connect is one time that a client said who it is.
type Connect struct {
	At      time.Time    `json:"at"`
	Resumed bool         `json:"resumed"` // it wanted to go on where it was
	Path    string       `json:"path"`    // "/resume" is the address for that
	Session snowflake.ID `json:"-"`
	Seq     int          `json:"seq"`
	Intents int          `json:"intents"`
	Browser string       `json:"browser"` // what it calls itself
	Refused int          `json:"refused,omitempty"`
}

// session is what a client may come back to: all that was told to it, from 1.
type session struct {
	id      string
	intents int
	events  [][]byte
	line    *line // nil = nobody is there
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

// line is one client at the gateway. Its reader is the handler of its request; its writer ends with it.
type line struct {
	d       *Discord
	socket  *websocket.Conn
	path    string
	wake    chan struct{} // holds one: there is something to send
	session *session
	sent    int      // of the session's events
	control [][]byte // what is to be sent before them
	code    int      // with which it is to be closed, when closing
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

// drop breaks the line as a network does: nothing is said.
func (l *line) drop() { l.hangUp(closeWithoutReason, "") }

// hangUp closes the line after what was to be sent before. The lock is held, as for all that begins with a small letter here.
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

// dispatch tells an event to the sessions that asked for it. Intent 0 is asked for by all.
func (d *Discord) dispatch(kind string, intent int, data any) {
	for _, s := range d.sessions {
		if intent == 0 || s.intents&intent != 0 {
			s.add(kind, data)
		}
	}
}

func (d *Discord) upgrade(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	down := d.faults.gatewayDown
	d.mu.Unlock()
	if down {
		http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &line{d: d, socket: socket, path: r.URL.Path, wake: make(chan struct{}, 1)}
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	d.do(func() {
		d.lines[l] = struct{}{}
		if d.closed {
			l.drop()
		}
		l.greet(r)
	})
	l.read()
	d.do(func() {
		l.over = true
		delete(d.lines, l)
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
		l.say(object{"op": opHello, "d": object{"heartbeat_interval": l.d.options.Heartbeat.Milliseconds(), "_trace": []string{}}, "s": nil, "t": nil})
	}
}

// write sends what there is, until the line is over.
func (l *line) write() {
	for {
		data, done := l.next()
		switch {
		case data != nil:
			if l.socket.WriteMessage(websocket.TextMessage, data) != nil {
				_ = l.socket.UnderlyingConn().Close() // its reader ends too
			}
		case done:
			l.end()
			return
		default:
			<-l.wake
		}
	}
}

// next is what is to be sent now: a frame, the end, or nothing yet.
func (l *line) next() (data []byte, done bool) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	f := &l.d.faults
	broken := l.closing && l.code == closeWithoutReason
	switch {
	case l.over || broken:
		return nil, true
	case f.muted:
		return nil, l.closing
	case len(l.control) > 0:
		data, l.control = l.control[0], l.control[1:]
		return data, false
	case l.session != nil && l.sent < len(l.session.events) && f.dropAfter == 0:
		f.dropAfter = -1
		l.drop()
		return nil, true
	case l.session != nil && l.sent < len(l.session.events):
		if f.dropAfter > 0 {
			f.dropAfter--
		}
		l.sent++
		return l.session.events[l.sent-1], false
	}
	return nil, l.closing
}

// end closes the socket, with a reason or without. The reader ends then.
func (l *line) end() {
	l.d.mu.Lock()
	code, text := l.code, l.text
	l.d.mu.Unlock()
	if code != closeWithoutReason {
		const patience = time.Second
		_ = l.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(patience))
	} else if tcp, ok := l.socket.UnderlyingConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.socket.UnderlyingConn().Close()
}

// read hears the client until it is gone, or has not beaten for too long.
func (l *line) read() {
	l.beaten()
	for {
		_, data, err := l.socket.ReadMessage()
		if err != nil {
			l.d.do(func() { l.gone(err) })
			return
		}
		l.d.do(func() { l.hear(data) })
	}
}

// beaten gives the client time until its next heartbeat.
func (l *line) beaten() {
	_ = l.socket.SetReadDeadline(time.Now().Add(l.d.options.Patience))
}

func (l *line) gone(err error) {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		l.hangUp(CloseTimeout, "Session timed out.")
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) && l.session != nil:
		// Who says good-bye properly does not come back.
		delete(l.d.sessions, l.session.id)
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
		if !l.d.faults.deaf {
			l.beaten()
			l.d.beats++
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
	case !l.d.known(in.Token):
		code, text = CloseToken, "Authentication failed."
	case in.Shard != nil && (in.Shard[1] < 1 || in.Shard[0] >= in.Shard[1]):
		code, text = CloseShard, "Invalid shard."
	case *in.Intents&^intentsKnown != 0:
		code, text = CloseIntents, "Invalid intent(s)."
	case *in.Intents&(intentMembers|intentPresence) != 0, *in.Intents&intentContent != 0 && l.d.options.NoContent:
		code, text = CloseNotAllowed, "Disallowed intent(s)."
	}
	connect := Connect{At: time.Now(), Path: l.path, Refused: code}
	if in.Intents != nil {
		connect.Intents = *in.Intents
	}
	if in.Properties != nil {
		connect.Browser = in.Properties.Browser
	}
	l.d.connects = append(l.d.connects, connect)
	if code != 0 {
		l.hangUp(code, text)
		return
	}
	l.begin(*in.Intents)
}

func (l *line) begin(intents int) {
	d := l.d
	if d.faults.startsLeft > 0 {
		d.faults.startsLeft--
	}
	s := &session{id: "session-" + strconv.Itoa(len(d.connects)), intents: intents, line: l}
	d.sessions[s.id] = s
	l.session, l.sent = s, 0
	guilds := []object{}
	for _, g := range d.guilds {
		guilds = append(guilds, object{"id": g.id, "unavailable": true})
	}
	s.add("READY", object{
		"v": 10, "user": d.userJSON(d.Bot), "guilds": guilds, "session_id": s.id, "resume_gateway_url": d.gateway + "/resume",
		"session_type": "normal", "private_channels": []any{}, "shard": [2]int{0, 1},
		"application": object{"id": d.Application, "flags": d.applicationFlags()},
	})
	for _, g := range d.guilds {
		if intents&intentGuilds != 0 {
			s.add("GUILD_CREATE", d.guildJSON(g, true))
		}
	}
}

func (l *line) resume(data json.RawMessage) {
	var in struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	d := l.d
	if json.Unmarshal(data, &in) != nil {
		l.hangUp(CloseDecode, "Error while decoding payload.")
		return
	}
	s := d.sessions[in.Session]
	connect := Connect{At: time.Now(), Path: l.path, Resumed: true, Seq: in.Seq}
	defer func() { d.connects = append(d.connects, connect) }()
	switch {
	case !d.known(in.Token):
		connect.Refused = CloseToken
		l.hangUp(CloseToken, "Authentication failed.")
	case s == nil:
		connect.Refused = opInvalid
		l.say(object{"op": opInvalid, "d": false})
	case in.Seq > len(s.events):
		connect.Refused = CloseSequence
		delete(d.sessions, s.id)
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

// known tells whether a token is that of the bot, and good.
func (d *Discord) known(token string) bool { return token == d.Token && !d.faults.revoked }

func (d *Discord) applicationFlags() int {
	const contentLimited = 1 << 19
	if d.options.NoContent {
		return 0
	}
	return contentLimited
}
