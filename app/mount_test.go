package app

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

func TestMount(t *testing.T) {
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	h := mount(answer("ours"), func() {}, slog.New(slog.DiscardHandler))(answer("assets"))
	for path, want := range map[string]string{
		"/":                  "assets",
		"/assets/index.js":   "assets",
		"/v1":                "assets",
		"/v1/health":         "ours",
		"/v1/acp/a":          "ours",
		"/client/events":     "ours",
		"/clientele":         "assets",
		"/assets/v1/health":  "assets",
		"/assets/../v1/acp":  "assets", // as it came: nothing here resolves paths
		"/index.html?/v1/x/": "assets",
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		if got := rec.Body.String(); got != want {
			t.Errorf("%s went to %s, want %s", path, got, want)
		}
	}
}

// A page that is reloaded no longer reads its answers; who writes them panics then, in a goroutine in which nobody recovers.
func TestAPanicEndsItsOwnAnswerAlone(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    int
		logged  string
	}{
		"nobody reads": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "[1,")
			panic(fmt.Errorf("marshaling: %w", syscall.EPIPE))
		}, 200, ""},
		"given up":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 500, ""},
		"a fault of ours": {func(http.ResponseWriter, *http.Request) { panic("a fault") }, 500, "a fault"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			rec := httptest.NewRecorder()
			handler := mount(c.handler, func() {}, slog.New(slog.NewTextHandler(&log, nil)))(nil)
			handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/client/sessions", nil))
			if rec.Code != c.code {
				t.Errorf("answered with %d, want %d", rec.Code, c.code)
			}
			if got := log.String(); (got == "") != (c.logged == "") || !strings.Contains(got, c.logged) {
				t.Errorf("logged %q, want %q", got, c.logged)
			}
		})
	}
}
