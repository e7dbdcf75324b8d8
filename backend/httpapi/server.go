package httpapi

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/files"
)

// Time limits for callers. An agent's answer and an upload may take hours; a silent caller may not.
const (
	headerPause = 10 * time.Second // for the headers of a request
	idlePause   = 2 * time.Minute  // between two requests
	bodyPause   = 30 * time.Second // for each bodyStep of a body, and for the rest at its end
	bodyStep    = 16 << 10
	maxHeaders  = 64 << 10 // browsers send the cookies of every other server on this machine
)

// NewServer returns the server for h, with limits that belong to the guard. net/http itself refuses some requests (no HTTP/1, too many
// headers, two Hosts, an unknown transfer coding) with text instead of a problem, closes the connection, and does not call h.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerPause, IdleTimeout: idlePause, MaxHeaderBytes: maxHeaders,
		DisableGeneralOptionsHandler: true, // net/http would answer OPTIONS * for every Host
	}
}

// pace limits how long a body may take. http.Server.ReadTimeout would limit the whole request, and uploads may take long; without a limit a
// body of one byte a minute would hold the handler for ever, even for a refused request, because net/http reads the body before sending the
// answer. pace returns a copy of the request: net/http must find its own body in its own request, to know that a caller still waits for 100
// Continue; otherwise net/http would wait for that caller's body.
func pace(w http.ResponseWriter, r *http.Request) *http.Request {
	conn, ok := w.(readDeadline)
	if !ok || r.Body == nil || r.Body == http.NoBody {
		return r
	}
	body := &pacedBody{ReadCloser: r.Body, conn: conn, left: bodyPause}
	_ = conn.SetReadDeadline(time.Now().Add(bodyPause)) // for a body that nobody reads; fails only with the connection
	paced := r.WithContext(r.Context())
	paced.Body = body
	return paced
}

// readDeadline is the interface that http.ResponseController looks for, used directly to avoid an allocation per request.
type readDeadline interface{ SetReadDeadline(time.Time) error }

// pacedBody counts only the time spent waiting for the caller: a slow disk, or the start of an agent, costs the caller nothing.
type pacedBody struct {
	io.ReadCloser
	conn  readDeadline
	until time.Time     // current deadline; zero when perhaps lifted, as huma does before reading
	left  time.Duration // until the next bodyStep must be complete
	got   int           // bytes of the current step
}

func (b *pacedBody) Read(p []byte) (int, error) {
	before := time.Now()
	if until := before.Add(b.left); until.Sub(b.until) > time.Second { // a precision of one second is enough
		b.until = until
		_ = b.conn.SetReadDeadline(until)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= time.Since(before)
	if b.got += n; b.got >= bodyStep {
		b.got, b.left = 0, bodyPause
	}
	return n, err // at the end net/http lifts the deadline, and keeps reading to notice a caller that leaves (TestServerNoticesGoneCaller)
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

// endpoints returns all endpoints except those of the client API.
func (a *API) endpoints(s *spec) []endpoint {
	return slices.Concat(a.serverEndpoints(s), a.acpEndpoints(s), a.agentEndpoints(s), a.fileEndpoints(s), a.entryEndpoints(s))
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

// openAPI answers with the document.
func (a *API) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	body, err := a.document()
	if err != nil {
		a.log.Error("the OpenAPI document cannot be made", "error", err)
		WriteProblem(w, Problem{Type: "stream_error", Detail: internalDetail})
		return
	}
	_, _ = w.Write(body) // fails only when the caller is gone
}
