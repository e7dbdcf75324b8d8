package httpapi

import (
	"io"
	"net/http"
	"time"
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
