package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

func runtimeThere(t *testing.T, name string) *there {
	t.Helper()
	th := &there{mux: http.NewServeMux()}
	json := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "application/json", body) }
	}
	th.mux.HandleFunc("GET /{$}", json(`{"name":"`+name+`"}`))
	th.mux.HandleFunc("GET /v1/health", json(`{"status":"ok"}`))
	th.mux.HandleFunc("GET /v1/acp", json(`{"servers":[{"serverId":"a"}]}`))
	server := httptest.NewServer(th.mux)
	t.Cleanup(server.Close)
	th.r = New(Config{URL: server.URL, Token: func(context.Context) (string, error) { return "", nil }, Backoff: 100 * time.Millisecond})
	t.Cleanup(th.r.Close)
	return th
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
		t.Fatalf("within 20s: got no %s, want it", what)
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
