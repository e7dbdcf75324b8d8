// Package tools hides the MCP server by which agents reach the person: the tools attachment_add, attachment_download and ask_user.
//
// # Access
//
// [Server.Give] makes the server of a session, for a generation of its agent, and returns its description for session/new. An agent that
// supports HTTP gets an address on loopback and a bearer token: on the listener of the local API while there is one (see [Server.Mount]),
// else on a listener of the Server, opened when the first agent needs the listener. An agent that supports only programs gets `deskhand
// mcp` with a ticket, which relays lines between the agent and a socket that serves nothing but tools (see [Relay]). A secret opens the
// tools of its own session, over its own transport, until [Server.End], the next Give for the session, or Close. The secret opens nothing
// else, and nothing else opens the tools.
//
// # Calls
//
// A call that the client cancels ends, and so does a call whose client has gone, because nobody is left to answer. Calls that move files
// run one after the other in a session, so that an agent holds the bytes of a single call at a time. ask_user waits for as long as the
// person takes; meanwhile the client gets signs of life, as progress when the client gave a token for progress, and as empty lines of the
// stream over HTTP, where many clients give up on a silent body after minutes.
//
// Failures are results with isError, as MCP wants, and name the file and the rule: {"ok":false,"rule":…,"file":…,"message":…}. No result
// carries the bytes of a file.
package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"deskhand/backend/session"
)

// Name is the server's name to agents.
const Name = "deskhand"

// The transports of ACP that the server offers.
const (
	overHTTP  = "http"
	overStdio = "stdio"
)

// Config configures a Server.
type Config struct {
	Self    string   // Deskhand's own program, which an agent starts as `deskhand mcp`
	Version string   // told to agents
	Private []string // Deskhand's own directories, to which nothing is downloaded
	Logger  *slog.Logger

	// Serve serves a listener until the Closer is closed, which waits for the server's end.
	Serve func(net.Listener, http.Handler) io.Closer
	// Socket opens the socket for `deskhand mcp`; only the user who runs Deskhand may reach the socket.
	Socket func(context.Context) (net.Listener, error)

	Progress time.Duration // between two signs of life of a waiting call; 0 = 10 s
}

// Server serves the tools of all sessions.
type Server struct {
	cfg    Config
	log    *slog.Logger
	client chan struct{} // closed by Use
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup // grants that end, connections of the socket

	sessions *session.Client // set before client is closed
	outside  *http.Client    // fetches files

	opening sync.Mutex // held while a door is opened

	mu     sync.Mutex // protects the fields below
	closed bool
	grants map[string]*grant // by session
	mounts []string          // host:port of the mounted listeners; agents get the last
	own    *door             // the Server's own listener, once needed
	socket *door
}

// door is an open listener.
type door struct {
	addr string
	io.Closer
}

const signOfLife = 10 * time.Second

// Open makes a server that does not listen yet.
func Open(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Progress == 0 {
		cfg.Progress = signOfLife
	}
	s := &Server{cfg: cfg, log: cfg.Logger, client: make(chan struct{}), grants: map[string]*grant{}}
	s.outside = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Use sets the client for which the server works. Earlier calls wait for Use, because agents may be started while the client opens. Use
// must be called once.
func (s *Server) Use(c *session.Client) {
	s.sessions = c
	close(s.client)
}

// using waits for Use and returns the client.
func (s *Server) using(ctx context.Context) (*session.Client, error) {
	select {
	case <-s.client:
		return s.sessions, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// header is a name and a value, as ACP writes headers and variables.
type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// httpServer and stdioServer are elements of mcpServers. In ACP v1 the latter has no type.
type httpServer struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Headers []header `json:"headers"`
}

type stdioServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []header `json:"env"`
}

// Give makes the tools of a session for an agent that supports these transports, the best first, and returns their element for session/new.
// listed is closed when the agent has fetched the list of the tools. An earlier grant of the session ends. ok is false when the agent supports no
// transport of ours, or no listener can be opened.
func (s *Server) Give(session string, transports []string) (element json.RawMessage, listed <-chan struct{}, ok bool) {
	for _, transport := range transports {
		if transport != overHTTP && transport != overStdio {
			continue
		}
		shown, g, err := s.give(session, transport)
		if err == nil {
			element, err = json.Marshal(shown)
		}
		if err == nil {
			return element, g.listed, true
		}
		s.log.Error("an agent cannot be given the tools", "session", session, "transport", transport, "error", err)
	}
	return nil, nil, false
}

func (s *Server) give(session, transport string) (any, *grant, error) {
	secret := newSecret()
	if transport == overHTTP {
		base, err := s.base()
		if err != nil {
			return nil, nil, err
		}
		g, err := s.grant(session, transport, secret)
		return httpServer{overHTTP, Name, base + mcpPath(session), []header{{"Authorization", "Bearer " + secret}}}, g, err
	}
	socket, err := s.listenForPrograms()
	if err != nil {
		return nil, nil, err
	}
	env := []header{{TicketVariable, session + "." + secret}, {SocketVariable, socket}}
	g, err := s.grant(session, transport, secret)
	return stdioServer{Name, s.cfg.Self, []string{"mcp"}, env}, g, err
}

// grant replaces the grant of a session.
func (s *Server) grant(session, transport, secret string) (*grant, error) {
	g := newGrant(s, session, transport, secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		g.cancel()
		return nil, net.ErrClosed
	}
	s.endLocked(session)
	s.grants[session] = g
	return g, nil
}

// End ends the grant of a session, and cancels every running call without waiting for its end.
func (s *Server) End(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(session)
}

func (s *Server) endLocked(session string) {
	g := s.grants[session]
	if g == nil {
		return
	}
	delete(s.grants, session)
	g.cancel()
	if s.closed {
		return // Close has waited, or will
	}
	s.wg.Go(g.close)
}

// of returns the grant of a session, or nil.
func (s *Server) of(session string) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grants[session]
}

// Close ends the tools of all sessions and the Server's own listeners, and waits for their end.
func (s *Server) Close() error {
	s.mu.Lock()
	for session := range s.grants {
		s.endLocked(session)
	}
	s.closed = true
	doors := []*door{s.own, s.socket}
	s.own, s.socket = nil, nil
	s.mu.Unlock()
	s.stop()
	var err error
	for _, d := range doors {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	s.wg.Wait()
	return err
}

// newSecret returns 256 random bits.
func newSecret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails, as documented
	return hex.EncodeToString(raw[:])
}
