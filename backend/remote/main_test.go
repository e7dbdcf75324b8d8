package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`

// there is a runtime elsewhere that says what it is and nothing more; what is asked of its instance "a" the test answers.
type there struct {
	mux *http.ServeMux
	r   *Runtime
}

// runtimeThere is called in a bubble of synctest.
func runtimeThere(t *testing.T, name string) *there {
	t.Helper()
	th := &there{mux: http.NewServeMux()}
	json := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "application/json", body) }
	}
	th.mux.HandleFunc("GET /{$}", json(`{"name":"`+name+`"}`))
	th.mux.HandleFunc("GET /v1/health", json(`{"status":"ok"}`))
	th.mux.HandleFunc("GET /v1/acp", json(`{"servers":[{"serverId":"a"}]}`))
	network := newMemory()
	server := httptest.NewUnstartedServer(th.mux)
	server.Listener = network
	server.Start()
	t.Cleanup(server.Close)
	th.r = New(Config{URL: server.URL, Token: func(context.Context) (string, error) { return "", nil }, Backoff: 100 * time.Millisecond})
	network.carry(t, th.r)
	t.Cleanup(th.r.Close)
	return th
}

// memory is a listener whose connections are pipes in this process, so that time in a bubble of synctest goes on only when both ends wait.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newMemory() *memory {
	m := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	return m
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2468} }

func (m *memory) Close() error {
	m.close()
	return nil
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// carry has the connections of r go to m.
func (m *memory) carry(t *testing.T, r *Runtime) {
	t.Helper()
	transport, ok := r.http.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("transport: got %T, want *http.Transport", r.http.Transport)
	}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case m.conns <- there:
			return here, nil
		case <-m.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// on has the instance answer a method.
func (th *there) on(method string, h http.HandlerFunc) { th.mux.HandleFunc(method+" /v1/acp/a", h) }

// notYet is the stream of an instance that was not started.
func notYet(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusNotFound, "application/problem+json", `{"type":"urn:sandbox-agent:error:session_not_found"}`)
}

// silent is a stream on which nothing comes.
func silent(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, "text/event-stream", "")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func answer(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// within fails a test whose channel nothing comes from.
func within[T any](t *testing.T, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(testkit.Limit):
		t.Fatalf("wait: got no %s within %v, want it", what, testkit.Limit)
	}
	return got
}

// is fails a test whose error is another.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
