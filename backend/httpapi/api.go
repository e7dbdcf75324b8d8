// Package httpapi hides that we speak HTTP: routes, guard, problem documents, framing of streams.
//
// There is one [API] and two mounts of it. [API.Window] is for the window's own asset server, where nobody else can call; it guards
// nothing. [API.Loopback] is for a listener, where every page that the user's browser shows can call: see guard.go for what keeps
// those out. Errors are problem documents (RFC 9457) everywhere, unknown paths and methods included; problem.go holds the one table
// of which error is which. The runtime's contract is that of the seed acp-simplified-server.md; files client*.go and events*.go are
// the client API.
package httpapi

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// Config is what the API serves and whom.
type Config struct {
	Version string
	Runtime *proxy.Set        // the instances of /v1/acp
	Agents  *agents.Catalogue // what ?agent= may name
	Client  http.Handler      // the routes under /client/; nil means none
	Assets  fs.FS             // the built frontend; nil means none

	RuntimeToken string // opens /v1
	ClientToken  string // opens /client; must be set with Client
	NoToken      bool   // /v1 is open; on a loopback address only

	AllowHosts   []string // further values of Host, "name" or "name:port"
	AllowOrigins []string // further values of Origin, as browsers write them

	Roots          []string      // where agents may be started; none means the user's home
	RequestTimeout time.Duration // of requests to agents; 0 means none
	Logger         *slog.Logger
}

// API is the routes. It holds no connection and no goroutine of its own.
type API struct {
	cfg   Config
	roots roots
	log   *slog.Logger
	mux   router
}

// New makes the API.
func New(cfg Config) (*API, error) {
	if cfg.RuntimeToken == "" && !cfg.NoToken {
		return nil, errors.New("httpapi: no token for the runtime, and none is not allowed")
	}
	if cfg.ClientToken == "" && cfg.Client != nil {
		return nil, errors.New("httpapi: no token for the client API")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	found, err := openRoots(cfg.Roots)
	if err != nil {
		return nil, err
	}
	a := &API{cfg: cfg, roots: found, log: cfg.Logger}
	a.mux.HandleFunc("GET /v1/health", a.health)
	a.mux.HandleFunc("GET /v1/acp", a.listInstances)
	a.mux.HandleFunc("POST /v1/acp/{server_id}", a.postMessage)
	a.mux.HandleFunc("GET /v1/acp/{server_id}", a.streamMessages)
	a.mux.HandleFunc("DELETE /v1/acp/{server_id}", a.deleteInstance)
	return a, nil
}

// Window serves /v1/ and /client/ to the window.
func (a *API) Window() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serve(w, r) })
}

// Loopback serves everything to whoever can connect to addr, which is what the listener is bound to.
func (a *API) Loopback(addr net.Addr) http.Handler {
	open := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case under(r.URL.Path, "/v1"), under(r.URL.Path, "/client"):
			a.serve(w, r)
		case r.URL.Path == "/":
			a.front(w, r)
		default:
			a.asset(w, r)
		}
	})
	return newGate(a.cfg, addr, open)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Client != nil && under(r.URL.Path, "/client") {
		a.cfg.Client.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	a.mux.ServeHTTP(w, r)
}

// under reports whether a path is dir or below it.
func under(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}
