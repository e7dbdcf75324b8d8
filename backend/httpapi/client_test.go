package httpapi_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"deskhand/backend/httpapi"
)

var update = flag.Bool("update", false, "write the OpenAPI document anew") //nolint:gochecknoglobals // a flag of the test binary

// The document is committed, because the frontend's types are generated from it; see frontend/package.json, script schema.
func TestClientDocumentIsCurrent(t *testing.T) {
	const file = "client.openapi.json"
	have, err := httpapi.NewClient(httpapi.ClientConfig{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	have = append(have, '\n')
	if *update {
		if err := os.WriteFile(file, have, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Errorf("%s is old: go test ./backend/httpapi -run Document -update, then npm run schema in frontend/", file)
	}
}

func TestClientRoutesThatAreNone(t *testing.T) {
	c := httpapi.NewClient(httpapi.ClientConfig{})
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/client/nothing", http.StatusNotFound, ""},
		{"GET", "/client/", http.StatusNotFound, ""},
		{"PUT", "/client/hello", http.StatusMethodNotAllowed, "GET"},
		{"DELETE", "/client/sessions", http.StatusMethodNotAllowed, "GET, POST"},
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil))
		if w.Code != tc.status || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Allow") != tc.allow {
			t.Errorf("%s %s: got %d %v, want %d and Allow %q", tc.method, tc.path, w.Code, w.Header(), tc.status, tc.allow)
		}
	}
}

func TestClientRefusesWrongBodies(t *testing.T) {
	c := httpapi.NewClient(httpapi.ClientConfig{Login: func(string) bool { return false }, Tabs: httpapi.NewTabs("client")})
	for name, tc := range map[string]struct {
		path, kind, body string
		status           int
	}{
		"no JSON":       {"/client/login", "application/json", "{", http.StatusBadRequest},
		"missing field": {"/client/login", "application/json", "{}", http.StatusBadRequest},
		"unknown field": {"/client/login", "application/json", `{"code":"x","more":1}`, http.StatusBadRequest},
		"wrong code":    {"/client/login", "application/json", `{"code":"x"}`, http.StatusUnauthorized},
		"media type":    {"/client/login", "text/plain", `{"code":"x"}`, http.StatusUnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "POST", tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			if w.Code != tc.status || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), `"code":`) {
				t.Errorf("got %d %v %s, want %d and a problem with a code", w.Code, w.Header(), w.Body, tc.status)
			}
		})
	}
}
