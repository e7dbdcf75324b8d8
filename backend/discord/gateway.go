package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/gorilla/websocket"
)

// intents are the events that Discord is to send: messages in servers with their content, threads and channels, and direct messages,
// which are only counted.
const intents = gateway.IntentGuilds | gateway.IntentGuildMessages | gateway.IntentMessageContent | gateway.IntentDirectMessages

// Times and sizes of the gateway.
const (
	dialLimit    = 20 * time.Second
	helloLimit   = 30 * time.Second // until the session is ready
	writeLimit   = 10 * time.Second
	mostOfFrame  = 32 << 20
	identifyRate = 5 * time.Second // Discord accepts one identify in that time
	closeKept    = 4900            // our own code, with which Discord keeps the session for a resume
)

// The reasons for which a link ends and the next begins.
var (
	errZombie    = errors.New("a heartbeat was not answered")
	errReconnect = errors.New("the gateway asks for another connection")
	errInvalid   = errors.New("the gateway has ended the session")
)

// link is the connection to Discord's gateway, over as many websockets as needed. The library has such a type, too, which this package
// cannot use: see docs/decisions/0030-discord.md.
type link struct {
	l     *client
	token string
	fixed string // the gateway's address, when a person has set it

	session    string       // of the session to be resumed
	address    string       // where to resume
	seq        atomic.Int64 // of the last event
	identified time.Time
	held       time.Duration // the least time until the next identify
	missed     int           // dials in a row without an answer
}

// frame is a message of the gateway. The library's own type decodes all of a message at once, and fails on an unknown kind of channel or
// component, with people's messages in the error.
type frame struct {
	Op gateway.Opcode    `json:"op"`
	S  int64             `json:"s,omitempty"`
	T  gateway.EventType `json:"t,omitempty"`
	D  json.RawMessage   `json:"d,omitempty"`
}

func (g *link) resumable() bool { return g.session != "" }

// forget drops the session to be resumed.
func (g *link) forget() {
	g.session, g.address = "", ""
	g.seq.Store(0)
}

// wait returns how long Discord wants us to wait before the next connection.
func (g *link) wait() time.Duration {
	if g.resumable() {
		return 0
	}
	return max(g.held, identifyRate-time.Since(g.identified))
}

// connect makes a connection and reads it to its end.
func (g *link) connect(ctx context.Context) error {
	g.held = 0
	target, err := g.target(ctx)
	if err != nil {
		return err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialLimit}
	conn, resp, err := dialer.DialContext(ctx, target+"?v="+strconv.Itoa(gateway.Version)+"&encoding=json", nil)
	if resp != nil {
		_ = resp.Body.Close() // the library has read the body
	}
	if err != nil {
		g.unanswered()
		return refuse(refusedUnreachable, "detail", why(err))
	}
	g.missed = 0
	return g.serve(ctx, conn)
}

// mostMissed is how many dials in a row without an answer end the session to be resumed.
const mostMissed = 4

// unanswered takes that a dial had no answer. The address for a resume belongs to a single machine, which may be gone for good, so the
// next dial goes to the general address, where the session can be resumed, too.
func (g *link) unanswered() {
	g.address = ""
	if g.missed++; g.missed >= mostMissed {
		g.missed = 0
		g.forget()
	}
}

// target returns the address to connect to. The token goes there, so target returns only addresses where Discord's gateway can be.
func (g *link) target(ctx context.Context) (string, error) {
	if g.resumable() && g.address != "" {
		return g.address, nil
	}
	if g.fixed != "" {
		return g.fixed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	told, err := g.l.rest.GetGatewayBot(rest.WithCtx(ctx))
	if err != nil {
		return "", err
	}
	if start := told.SessionStartLimit; start.Total > 0 && start.Remaining == 0 {
		return "", &limitedError{time.Now().Add(time.Duration(start.ResetAfter) * time.Millisecond)}
	}
	target, ok := g.trusted(told.URL)
	if !ok {
		return "", refuse(refusedURL, "url", told.URL)
	}
	return target, nil
}

// trusted reports whether the token may go to an address that Discord has named: an address of Discord's own or, when a person has set
// the address of Discord's API, any encrypted or local address.
func (g *link) trusted(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	host := u.Hostname()
	own := g.l.access().rest == "" && g.fixed == ""
	switch {
	case own:
		if u.Scheme != "wss" || host != "discord.gg" && !strings.HasSuffix(host, ".discord.gg") {
			return "", false
		}
	case u.Scheme == "ws" && loopback(host):
	case u.Scheme != "wss":
		return "", false
	}
	return strings.TrimSuffix(u.String(), "/"), true
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// plug is a websocket. A single goroutine reads the plug, and writes are made by that goroutine and by the goroutine of the heartbeats.
type plug struct {
	conn *websocket.Conn
	fail context.CancelCauseFunc

	mu    sync.Mutex // protects the fields below and is held during a write
	acked bool       // the last heartbeat was answered
}

func (p *plug) send(op gateway.Opcode, data any) error {
	d, err := json.Marshal(data)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return p.conn.WriteJSON(frame{Op: op, D: d})
}

// serve reads a connection to its end, and ends its other goroutines.
func (g *link) serve(ctx context.Context, conn *websocket.Conn) error {
	conn.SetReadLimit(mostOfFrame)
	life, fail := context.WithCancelCause(ctx)
	p := &plug{conn: conn, fail: fail, acked: true}
	var wg sync.WaitGroup
	wg.Go(func() {
		<-life.Done() // nothing else ends a read
		code := closeKept
		if ctx.Err() != nil {
			code = websocket.CloseNormalClosure // Discord then shows the bot as away at once
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
		_ = conn.Close()
	})
	err := conn.SetReadDeadline(time.Now().Add(helloLimit))
	for err == nil {
		err = g.read(life, p, &wg)
	}
	fail(err)
	wg.Wait()
	return g.ended(context.Cause(life))
}

// read handles a frame.
func (g *link) read(ctx context.Context, p *plug, wg *sync.WaitGroup) error {
	_, data, err := p.conn.ReadMessage()
	if err != nil {
		return err
	}
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("a frame of the gateway is no JSON: %w", err)
	}
	switch f.Op {
	case gateway.OpcodeHello:
		return g.greet(ctx, p, wg, f.D)
	case gateway.OpcodeDispatch:
		if f.S > 0 {
			g.seq.Store(f.S)
		}
		return g.dispatch(p, f)
	case gateway.OpcodeHeartbeat:
		return g.beat(p)
	case gateway.OpcodeHeartbeatACK:
		p.mu.Lock()
		p.acked = true
		p.mu.Unlock()
	case gateway.OpcodeReconnect:
		return errReconnect
	case gateway.OpcodeInvalidSession:
		if string(f.D) != "true" {
			g.forget()
			g.held = time.Second + rand.N(4*time.Second) // as Discord asks for
		}
		return errInvalid
	default: // of a later version
	}
	return nil
}

// greet answers a hello: greet starts the heartbeats, and identifies or resumes.
func (g *link) greet(ctx context.Context, p *plug, wg *sync.WaitGroup, data json.RawMessage) error {
	var hello gateway.MessageDataHello
	if err := json.Unmarshal(data, &hello); err != nil || hello.HeartbeatInterval <= 0 {
		return fmt.Errorf("the gateway names no interval: %s", data)
	}
	interval := time.Duration(hello.HeartbeatInterval) * time.Millisecond
	wg.Go(func() { g.keepBeating(ctx, p, interval) })
	if g.resumable() {
		return p.send(gateway.OpcodeResume, gateway.MessageDataResume{Token: g.token, SessionID: g.session, Seq: int(g.seq.Load())})
	}
	g.identified = time.Now()
	return p.send(gateway.OpcodeIdentify, gateway.MessageDataIdentify{
		Token: g.token, Intents: intents,
		Properties: gateway.IdentifyCommandDataProperties{OS: runtime.GOOS, Browser: "Deskhand", Device: "Deskhand"},
	})
}

// keepBeating sends a heartbeat in each interval, the first at a random time, so that dropped clients do not beat all at once. A
// connection on which the last heartbeat was not answered is dead, whatever the network says.
func (g *link) keepBeating(ctx context.Context, p *plug, interval time.Duration) {
	for wait := rand.N(interval); ; wait = interval {
		if pause(ctx, wait) != nil {
			return
		}
		p.mu.Lock()
		acked := p.acked
		p.acked = false
		p.mu.Unlock()
		if !acked {
			p.fail(errZombie)
			return
		}
		if err := g.beat(p); err != nil {
			p.fail(err)
			return
		}
	}
}

func (g *link) beat(p *plug) error {
	return p.send(gateway.OpcodeHeartbeat, gateway.MessageDataHeartbeat(g.seq.Load()))
}

// ended returns the meaning of a connection's end: a refusal, or an error after which another connection helps.
func (g *link) ended(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return err
	}
	switch gateway.CloseEventCodeByCode(closed.Code) {
	case gateway.CloseEventCodeAuthenticationFailed:
		return refuse(refusedToken)
	case gateway.CloseEventCodeDisallowedIntent, gateway.CloseEventCodeInvalidIntent:
		return refuse(refusedIntents)
	case gateway.CloseEventCodeInvalidSeq, gateway.CloseEventCodeSessionTimed, gateway.CloseEventCodeNotAuthenticated:
		g.forget()
	}
	return refuse(refusedUnreachable, "detail", strings.TrimSpace(strconv.Itoa(closed.Code)+" "+closed.Text))
}
