// Package httpapi serves the API over HTTP, and hides HTTP from the rest of the program: routes, guard, problem documents, framing of
// streams.
//
// One [API] is mounted twice. [API.Window] is for the window's own asset server, which nobody else can call, and guards nothing.
// [API.Loopback] is for a listener, which every page in the user's browser can call: see guard.go for the checks that keep those pages out.
// All errors are problem documents (RFC 9457), including those for unknown paths and methods; problem.go has the single table from errors
// to problems. The runtime's contract is that of the seed acp-simplified-server.md; the files client*.go and events*.go are the client API.
package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
	"deskhand/backend/files"
	"deskhand/backend/proxy"
)

// Config is the configuration of an API.
type Config struct {
	Version string
	Runtime *proxy.Set        // instances of /v1/acp
	Agents  *agents.Catalogue // the agents that ?agent= may name
	Client  http.Handler      // routes under /client/; nil means none
	Assets  fs.FS             // built frontend; nil means none

	RuntimeToken string // opens /v1
	ClientToken  string // opens /client; must be set with Client
	Tabs         *Tabs  // tabs that may call /client too; nil means none
	NoToken      bool   // /v1 needs no token; only on a loopback address

	Access *Access // named tokens and audit; nil means neither

	AllowHosts   []string // more values of Host, "name" or "name:port"
	AllowOrigins []string // more values of Origin, as browsers write them

	Roots          []string      // directories for files and agents; empty means the user's home
	Private        []string      // Deskhand's own directories, which no path may reach
	MaxUpload      int64         // bytes of an upload; 0 means 2 GiB
	RequestTimeout time.Duration // of requests to agents; 0 means none
	Logger         *slog.Logger
}

// API holds the routes. Its only state is the clients of /acp, whose WebSockets Close ends.
type API struct {
	cfg      Config
	files    *files.Tree
	log      *slog.Logger
	mux      router
	standard *standard              // clients of /acp
	document func() ([]byte, error) // OpenAPI document of /v1
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
	if cfg.MaxUpload == 0 {
		cfg.MaxUpload = defaultUpload
	}
	tree, err := files.Open(files.Config{Roots: cfg.Roots, Private: cfg.Private})
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	a := &API{cfg: cfg, files: tree, log: cfg.Logger}
	s := newSpec()
	all := a.endpoints(s)
	for _, e := range all {
		if e.serve != nil {
			a.mux.HandleFunc(e.pattern, e.serve)
		}
	}
	a.standard = newStandard(a)
	a.standard.routes(&a.mux)
	a.document = sync.OnceValues(func() ([]byte, error) { return s.document(all) })
	return a, nil
}

// Close ends the WebSockets, which no server waits for, and waits until they are closed.
func (a *API) Close() { a.standard.close() }

// endpoints returns all endpoints except those of the client API.
func (a *API) endpoints(s *spec) []endpoint {
	return slices.Concat(a.serverEndpoints(s), a.acpEndpoints(s), a.agentEndpoints(s), a.fileEndpoints(s), a.entryEndpoints(s))
}

// greeting is the answer of GET / for programs.
type greeting struct {
	Docs    string `json:"docs" doc:"Path of the OpenAPI document"`
	Name    string `json:"name"`
	Version string `json:"version" doc:"Version of the program"`
}

// healthy is the answer of GET /v1/health.
type healthy struct {
	Status string `json:"status" enum:"ok"`
}

// serverEndpoints returns the endpoints about the server itself.
func (a *API) serverEndpoints(s *spec) []endpoint {
	hello := record[greeting](s, "The program's name and version; the app when Accept prefers a page")
	hello.Content["text/html"] = bytesOf("The app", "text/html")["text/html"]
	return []endpoint{
		{
			pattern: "GET /", id: "hello", summary: "Get the program's name and version, or the app", // served beside the routes, with the app
			answers: map[int]*huma.Response{200: hello}, refuses: []string{"misdirected_request", "permission_denied"},
		},
		{
			pattern: "GET /openapi.json", serve: a.openAPI, id: "getDocument", summary: "Get this document",
			answers: map[int]*huma.Response{200: {Description: "OpenAPI 3.1", Content: map[string]*huma.MediaType{
				"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}},
			}}}, refuses: []string{"misdirected_request", "permission_denied"},
		},
		{
			pattern: "GET /v1/health", serve: a.health, id: "health", summary: "Check that the server answers",
			answers: map[int]*huma.Response{200: record[healthy](s, "The server answers")},
		},
	}
}

// Window returns the handler for /v1/ and /client/ in the window.
func (a *API) Window() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serve(w, r) })
}

// Loopback returns the handler for a listener that is bound to addr.
func (a *API) Loopback(addr net.Addr) http.Handler {
	open := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case under(r.URL.Path, "/v1"), under(r.URL.Path, "/acp"), under(r.URL.Path, "/client"), r.URL.Path == "/openapi.json":
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

// answer sends a record as JSON.
func (a *API) answer(w http.ResponseWriter, record any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(record) // fails only when the caller is gone
}

func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}
