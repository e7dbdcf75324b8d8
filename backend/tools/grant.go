package tools

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// grant is the tools of a session for a generation of its agent.
type grant struct {
	session   string
	transport string
	hash      [sha256.Size]byte // of the grant's secret
	server    *sdk.Server
	web       http.Handler  // of a grant for HTTP
	listed    chan struct{} // closed once the agent has been told which tools there are
	list      sync.Once
	ctx       context.Context
	cancel    context.CancelFunc
	moving    chan struct{} // held by a call that moves files

	mu    sync.Mutex // protects ended, and orders calls.Add before calls.Wait
	ended bool
	calls sync.WaitGroup // running requests and calls
}

// mostPeers bounds how many connections of an agent to its own tools may be open: each holds a little memory until closed.
const mostPeers = 64

func newGrant(s *Server, session, transport, secret string) *grant {
	g := &grant{session: session, transport: transport, hash: sha256.Sum256([]byte(secret)), listed: make(chan struct{}), moving: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(s.ctx)
	g.server = sdk.NewServer(&sdk.Implementation{Name: Name, Title: "Deskhand", Version: s.cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: s.log, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	g.server.AddReceivingMiddleware(naming, g.noting)
	c := &caller{Server: s, grant: g}
	c.addTools()
	if transport == overHTTP {
		g.web = sdk.NewStreamableHTTPHandler(g.peer, &sdk.StreamableHTTPOptions{Logger: s.log, MaxRequestBodyBytes: mostBody})
	}
	return g
}

const instructions = "Tools of the person's own client. attachment_add shows the person files that you made. attachment_download saves the files " +
	"that came with the person's message. ask_user asks the person a question and waits for the answer."

// peer returns the server for a request, and nil for a new peer when there are too many.
func (g *grant) peer(r *http.Request) *sdk.Server {
	if r.Header.Get("Mcp-Session-Id") == "" && len(slices.Collect(g.server.Sessions())) >= mostPeers {
		return nil
	}
	return g.server
}

// opens reports whether the secret is that of the grant. The comparison takes the same time for every secret, and for a nil grant.
func (g *grant) opens(transport, secret string) bool {
	given := sha256.Sum256([]byte(secret))
	want := sha256.Sum256(nil)
	if g != nil {
		want = g.hash
	}
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && g != nil && g.transport == transport
}

var errEnded = errors.New("the tools of this session have ended; its agent was started anew or has gone")

// enter counts a request or call as running; the caller calls leave at its end.
func (g *grant) enter() (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil, errEnded
	}
	g.calls.Add(1)
	return g.calls.Done, nil
}

// within returns a context that ends with ctx and with the grant.
func (g *grant) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// close cancels all running calls, waits for their end, and closes the connections that the SDK holds open.
func (g *grant) close() {
	g.cancel()
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.calls.Wait()
	for peer := range g.server.Sessions() {
		_ = peer.Close() // the client has gone, or learns of the end from this
	}
}

// renamed returns the listed name of a tool for its other names: names with a dot, as used elsewhere and refused by some agents in a
// list, and the name that Gemini gets in place of ask_user, which Gemini's policy denies to every server because of a tool of its own.
func renamed(name string) string {
	switch name {
	case "attachment.add":
		return toolAdd
	case "attachment.download":
		return toolDownload
	case toolAskGemini:
		return toolAsk
	}
	return name
}

// naming lists the tools under the names that the client can use, and accepts calls by all names.
func naming(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if call, ok := r.(*sdk.CallToolRequest); ok {
			call.Params.Name = renamed(call.Params.Name)
		}
		result, err := next(ctx, method, r)
		if list, ok := result.(*sdk.ListToolsResult); ok && isGemini(r.GetSession()) {
			for i, tool := range list.Tools {
				if tool.Name == toolAsk {
					other := *tool
					other.Name = toolAskGemini
					list.Tools[i] = &other
				}
			}
		}
		return result, err
	}
}

// noting takes note of the first list of tools that was answered.
func (g *grant) noting(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		if _, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			g.list.Do(func() { close(g.listed) })
		}
		return result, err
	}
}

func isGemini(s sdk.Session) bool {
	peer, ok := s.(*sdk.ServerSession)
	if !ok || peer.InitializeParams() == nil || peer.InitializeParams().ClientInfo == nil {
		return false
	}
	return strings.HasPrefix(peer.InitializeParams().ClientInfo.Name, "gemini-cli")
}

// lineKey is the key of a call's line in the values that the SDK passes on.
const lineKey = "line"

// identify makes the SDK pass on the line of an HTTP request. The SDK detaches a call's context from its request, so that a client could
// fetch the answer later, but the tools keep no answers.
func identify(session string, l *line, next http.Handler) http.Handler {
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: session, Extra: map[string]any{lineKey: l}}, nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}

// lineOf returns the line of a call, or nil over a socket, whose end the SDK passes on by itself.
func lineOf(r *sdk.CallToolRequest) *line {
	if r.Extra == nil || r.Extra.TokenInfo == nil {
		return nil
	}
	l, _ := r.Extra.TokenInfo.Extra[lineKey].(*line)
	return l
}
