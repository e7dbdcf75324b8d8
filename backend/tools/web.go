package tools

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	mostBody  = 1 << 20          // of a request: names and questions, never files
	bodyPause = 30 * time.Second // for the whole body
)

func mcpPath(session string) string { return "/mcp/" + url.PathEscape(session) }

// base returns the URL for agents: of a mounted listener if there is one, else of the Server's own.
func (s *Server) base() (string, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	addr, own, err := s.addresses()
	switch {
	case err != nil:
		return "", err
	case addr != "":
		return "http://" + addr, nil
	case own != nil:
		return "http://" + own.addr, nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = ln.Addr().String()
	d := &door{addr, s.cfg.Serve(ln, s.web(addr, http.NotFoundHandler()))}
	return "http://" + addr, s.keep(&s.own, d, func() {})
}

func (s *Server) addresses() (mounted string, own *door, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, net.ErrClosed
	}
	if n := len(s.mounts); n > 0 {
		mounted = s.mounts[n-1]
	}
	return mounted, s.own, nil
}

// keep holds a door until Close, and closes the door at once after Close. begin starts the goroutines of the door before Close can wait
// for them.
func (s *Server) keep(place **door, d *door, begin func()) error {
	s.mu.Lock()
	if !s.closed {
		*place = d
		begin()
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return errors.Join(net.ErrClosed, d.Close())
}

// Mount returns a handler that serves the tools on a listener of the caller, in front of next. Agents learn of the listener, until
// unmount is called, only when no other machine can reach the listener.
func (s *Server) Mount(addr net.Addr, next http.Handler) (h http.Handler, unmount func()) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next, func() {}
	}
	host := addr.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mounts = append(s.mounts, host)
	return s.web(host, next), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mounts = slices.DeleteFunc(s.mounts, func(m string) bool { return m == host })
	}
}

// web serves /mcp/{session} to a client that names this host and has the session's bearer token. Programs that agents start send no
// Origin: a request with an Origin comes from a page, and no page is let in, not even Deskhand's.
func (s *Server) web(host string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, ours := strings.CutPrefix(r.URL.EscapedPath(), "/mcp")
		if !ours || session != "" && session[0] != '/' {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		body := pace(w, r)
		switch {
		case r.URL.Host != "" || r.Host != host:
			http.Error(w, "this server has another name", http.StatusMisdirectedRequest)
		case len(r.Header.Values("Origin")) > 0 || len(r.Header.Values("Sec-Fetch-Site")) > 0:
			http.Error(w, "no page may call this", http.StatusForbidden)
		default:
			s.serve(w, r, session, body)
		}
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, path string, body io.ReadCloser) {
	session, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	g := s.of(session)
	if fits := g.opens(overHTTP, secret); err != nil || !fits || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="deskhand tools"`)
		http.Error(w, "the bearer of this session is required", http.StatusUnauthorized)
		return
	}
	leave, err := g.enter()
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	defer leave()
	ctx, cancel := g.within(r.Context())
	defer cancel()
	l := &line{ResponseWriter: w, ctx: ctx}
	defer l.end()
	r = r.WithContext(ctx)
	r.Body = body
	identify(session, l, g.web).ServeHTTP(l, r)
}

// line is the answer to an HTTP request.
type line struct {
	http.ResponseWriter

	ctx context.Context // ends when nobody waits for the answer any more

	mu   sync.Mutex // held during a write
	over bool
}

// Write writes whole events for the SDK, one at a time.
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ResponseWriter.Write(p)
}

// FlushError implements the method that http.ResponseController looks for.
func (l *line) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return http.NewResponseController(l.ResponseWriter).Flush()
}

// live writes an empty line to the stream. Only a waiting call whose answer is a stream may use live.
func (l *line) live() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if _, err := l.ResponseWriter.Write([]byte(":\n\n")); err == nil {
		_ = http.NewResponseController(l.ResponseWriter).Flush() // a client that has gone ends ctx
	}
}

func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// pace bounds how long a body may take, also a body that is refused, because net/http reads a body to its end before the answer is sent.
func pace(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyPause)) // fails only when the connection does
	return &pacedBody{r.Body, conn}
}

// pacedBody lifts the limit at the end of the body, because later reads only notice that the client has gone.
type pacedBody struct {
	io.ReadCloser

	conn *http.ResponseController
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.conn.SetReadDeadline(time.Time{}) // as above
	}
	return n, err
}
