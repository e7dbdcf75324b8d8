package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpproxy"

	"deskhand/backend/proxy"
)

const (
	usual   = time.Minute // npx first downloads a server from the registry
	longest = 5 * time.Minute

	mostBytes   = 16 << 20 // of a server's output in a check
	mostTools   = 1000
	longestName = 200
	longestText = 4 << 10
)

// protocol is the last version of the protocol that begins with initialize.
const protocol = "2025-11-25"

// Reasons of a failed check, besides those of the system and the SDK.
var (
	ErrSilent = errors.New("it has not answered in time")
	ErrFlood  = errors.New("it says more than can be an answer")
	ErrNot    = errors.New("it cannot be started")
	errEnded  = errors.New("it has ended")
	errMoved  = errors.New("it sends elsewhere, where its headers are not for")
)

// Place is the environment of a check.
type Place struct {
	Processes *proxy.Set // starts the server
	Directory string     // of the session that would use the server
	Environ   []string   // of the agents
}

// Report is the result of a check. Together with an error it holds the findings up to the error.
type Report struct {
	Server *Identity
	Tools  []Tool
	Stderr string // end of its stderr
}

// Identity is a server's own name and version.
type Identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Tool is a tool of a server. Long texts are cut.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Lookup returns a function that finds a variable in an environment; the last definition counts, as for a process.
func Lookup(environ []string) func(string) (string, bool) {
	return func(name string) (value string, ok bool) {
		for _, kv := range environ {
			if n, v, is := strings.Cut(kv, "="); is && sameVariable(n, name) {
				value, ok = v, true
			}
		}
		return value, ok
	}
}

// Check starts or calls the server, and lists its tools. The end of ctx ends the server, with every process that the server started.
func Check(ctx context.Context, s Server, at Place) (Report, error) {
	limit := s.timeout
	if limit <= 0 {
		limit = usual
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w (%s)", ErrSilent, limit))
	defer cancel()
	var r Report
	f := s.fill(Lookup(at.Environ), at.Directory)
	s = f.Server
	err := f.problem()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNot, err)
	} else if s.Local() {
		err = s.checkLocal(ctx, at, &r)
	} else {
		err = s.checkRemote(ctx, at, &r)
	}
	if r.Tools == nil {
		r.Tools = []Tool{}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

func (s Server) checkLocal(ctx context.Context, at Place, r *Report) (err error) {
	lookup := Lookup(at.Environ)
	dir := s.directory(at.Directory)
	program, err := find(s.program, dir, lookup)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNot, err)
	}
	env := append([]string{}, at.Environ...)
	for name, value := range s.env {
		env = append(env, name+"="+value)
	}
	id := "mcp." + rand.Text()
	inst, err := at.Processes.Start(ctx, id, "mcp", proxy.Command{Path: program, Args: s.args, Env: env, Dir: dir})
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrNot, err), at.Processes.Remove(id))
	}
	w := &wire{inst: inst, log: inst.After(0)}
	w.life, w.end = context.WithCancel(ctx)
	err = ask(ctx, w, r)
	_ = w.Close() // closed by the SDK already, unless the SDK was never reached
	closed := inst.Close()
	r.Stderr = inst.Status().StderrTail
	if cause := w.cause(); err != nil && cause != nil {
		err = cause
	}
	return errors.Join(err, closed)
}

func (s Server) checkRemote(ctx context.Context, at Place, r *Report) error {
	address, headers, err := s.request(Lookup(at.Environ))
	if err != nil {
		return err
	}
	base := &http.Transport{Proxy: proxied(at.Environ), ForceAttemptHTTP2: true}
	defer base.CloseIdleConnections()
	life, end := context.WithCancel(ctx)
	defer end()
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	trip := &trip{scheme: to.Scheme, host: to.Host, headers: headers, next: base, life: life, left: mostBytes}
	client := &http.Client{Transport: trip, CheckRedirect: stay}
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}
	if s.Transport == SSE {
		transport = &sdk.SSEClientTransport{Endpoint: address, HTTPClient: client}
	}
	err = ask(ctx, transport, r)
	if err != nil && trip.flooded() {
		return ErrFlood
	}
	return err
}

// proxied returns the proxying of an environment, which never sends requests for this machine to a proxy. The environment of this process
// would not do: started from a desktop, it lacks the variables that the person's shell sets.
func proxied(environ []string) func(*http.Request) (*url.URL, error) {
	lookup := Lookup(environ)
	either := func(name string) string {
		capital, _ := lookup(name)
		small, _ := lookup(strings.ToLower(name))
		return cmp.Or(capital, small)
	}
	p := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	choose := p.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// stay refuses redirects to another host, which would get the headers too.
func stay(r *http.Request, via []*http.Request) error {
	const most = 5
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return fmt.Errorf("%w: %s", errMoved, r.URL.Host)
	}
	if len(via) > most {
		return errMoved
	}
	return nil
}

// ask lists the server's tools. The client offers nothing in return: no roots, no sampling, no questions to people.
func ask(ctx context.Context, transport sdk.Transport, r *Report) error {
	us := &sdk.Implementation{Name: "deskhand", Title: "Deskhand", Version: "1"}
	client := sdk.NewClient(us, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	peer, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return err
	}
	defer func() { _ = peer.Close() }() // the tools are known; the server's owner sees how the server ends
	if info := peer.InitializeResult().ServerInfo; info != nil {
		r.Server = &Identity{Name: clip(info.Name, longestName), Version: clip(info.Version, longestName)}
	}
	if caps := peer.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil // a server without tools need not know the call
	}
	for tool, err := range peer.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if len(r.Tools) == mostTools {
			return ErrFlood
		}
		r.Tools = append(r.Tools, Tool{Name: clip(tool.Name, longestName), Description: clip(tool.Description, longestText)})
	}
	return nil
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
