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
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

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

// Close ends the WebSockets, which no server waits for, and waits until they are closed.
func (a *API) Close() { a.standard.close() }

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
