package httpapi

import (
	"io"
	"net/http"
	"time"
)

// What a caller may take its time for. An agent's answer and an upload may take hours; a caller that says nothing may not.
const (
	headerPause = 10 * time.Second // for the headers of a request
	idlePause   = 2 * time.Minute  // between two requests
	bodyPause   = 30 * time.Second // for each bodyStep of a body, and for what is left of it at the end
	bodyStep    = 16 << 10
	maxHeaders  = 64 << 10 // browsers send along the cookies of every other server on this machine
)

// NewServer is the server that h is to be served by: its limits are a part of the guard. What net/http refuses by itself (no
// HTTP/1 request, headers that are too many, two Hosts, a transfer coding that it does not know) it answers as text and not as a
// problem; then it closes, and h is not asked.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerPause, IdleTimeout: idlePause, MaxHeaderBytes: maxHeaders,
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * to every Host
	}
}

// pace bounds how long a body may take. http.Server.ReadTimeout is for the whole of a request, which an upload must be free to
// exceed; without it a body of one byte a minute would hold us for ever, even one that is refused: net/http reads on before it sends
// the answer. What it returns is a copy: net/http has to find its own body in its own request, by which it knows that a caller still
// waits for 100 Continue; else it would wait for that caller's body.
func pace(w http.ResponseWriter, r *http.Request) *http.Request {
	conn, ok := w.(readDeadline)
	if !ok || r.Body == nil || r.Body == http.NoBody {
		return r
	}
	body := &pacedBody{ReadCloser: r.Body, conn: conn, left: bodyPause}
	_ = conn.SetReadDeadline(time.Now().Add(bodyPause)) // of a body that nobody reads; it fails with the connection only
	paced := r.WithContext(r.Context())
	paced.Body = body
	return paced
}

// readDeadline is what http.ResponseController looks for, found without making one for each request.
type readDeadline interface{ SetReadDeadline(time.Time) error }

// pacedBody counts only the time that it waits for the caller: a disk that is slow, or an agent that starts, costs the caller
// nothing.
type pacedBody struct {
	io.ReadCloser
	conn  readDeadline
	until time.Time     // what the deadline is; zero where it may have been lifted, as huma does before it reads
	left  time.Duration // until there must be another bodyStep
	got   int           // of it
}

func (b *pacedBody) Read(p []byte) (int, error) {
	before := time.Now()
	if until := before.Add(b.left); until.Sub(b.until) > time.Second { // to the second will do
		b.until = until
		_ = b.conn.SetReadDeadline(until)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= time.Since(before)
	if b.got += n; b.got >= bodyStep {
		b.got, b.left = 0, bodyPause
	}
	return n, err // at the end net/http lifts the deadline, and reads on to see whether the caller goes (TestGoneCallerIsNoticed)
}
