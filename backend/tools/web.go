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
	mostBody  = 1 << 20          // of a request: names and questions, and never files
	bodyPause = 30 * time.Second // for all of it
)

func mcpPath(session string) string { return "/mcp/" + url.PathEscape(session) }

// base is where agents reach us: at a listener of others if there is one, else at our own.
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

// keep holds a door until Close, which may have been before; what then serves it is begun before Close can wait for it.
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

// Mount serves the tools on a listener of others, in front of what it serves. Only where programs of this machine alone can reach it are
// agents told of it, until unmount is called.
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

// web serves /mcp/{session} to who names us as host and has that session's bearer. Programs that agents start send no Origin: what has one
// is a page, and none is let in, ours neither.
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

// line is the answer to one HTTP request.
type line struct {
	http.ResponseWriter

	ctx context.Context // ends when nobody waits for the answer any more

	mu   sync.Mutex // one writes at a time
	over bool
}

// Write is the SDK's: whole events, one at a time.
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController looks for.
func (l *line) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return http.NewResponseController(l.ResponseWriter).Flush()
}

// live writes an empty line of the stream. Only a call that is answered by a stream, and waits, may use it.
func (l *line) live() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if _, err := l.ResponseWriter.Write([]byte(":\n\n")); err == nil {
		_ = http.NewResponseController(l.ResponseWriter).Flush() // who has gone ends ctx
	}
}

func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// pace bounds how long a body may take, also one that is refused: net/http reads on before it sends the answer.
func pace(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyPause)) // it fails with the connection only
	return &pacedBody{r.Body, conn}
}

// pacedBody lifts the limit with the end of the body: what is read after that is whether the client has gone.
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
