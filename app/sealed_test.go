package app

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
)

// locked is a response whose header must be sent while no process can be started.
type locked struct {
	*httptest.ResponseRecorder
	t    *testing.T
	done []string
}

func (l *locked) note(what string) {
	if syscall.ForkLock.TryLock() {
		syscall.ForkLock.Unlock()
		l.t.Errorf("a process could be started during the %s", what)
	}
	l.done = append(l.done, what)
}

func (l *locked) WriteHeader(code int) {
	l.note("header")
	l.ResponseRecorder.WriteHeader(code)
}

func (l *locked) Write(data []byte) (int, error) {
	if !syscall.ForkLock.TryLock() {
		l.t.Error("no process can be started while the body is written")
	} else {
		syscall.ForkLock.Unlock()
	}
	return l.ResponseRecorder.Write(data)
}

func TestNoProcessStartsBetweenAResponseAndItsSeal(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    int
		kind    string
		body    string
	}{
		"a body":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<p>text") }, 200, "text/html; charset=utf-8", "<p>text"},
		"a header": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, "", ""},
		"nothing":  {func(http.ResponseWriter, *http.Request) {}, 200, "", ""},
		"all, and a flush": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(201)
			w.WriteHeader(500) // too late
			_, _ = io.WriteString(w, "{")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "}")
		}, 201, "application/json", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &locked{ResponseRecorder: httptest.NewRecorder(), t: t}
			handler := mount(c.handler, func() { rec.note("seal") }, slog.New(slog.DiscardHandler))(nil)
			handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/client/x", nil))
			if !slices.Equal(rec.done, []string{"header", "seal"}) {
				t.Errorf("done: %q", rec.done)
			}
			if rec.Code != c.code || rec.Body.String() != c.body || rec.Header().Get("Content-Type") != c.kind {
				t.Errorf("got %d %q %q", rec.Code, rec.Header().Get("Content-Type"), rec.Body)
			}
		})
	}
}
