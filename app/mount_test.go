package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestMount(t *testing.T) {
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	h := mount(answer("ours"), func() {})(answer("assets"))
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
