package httpapi

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func asking(header string, values ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header[header] = values
	return r
}

func TestNegotiationByQuality(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   string
		q      int
	}{
		{nil, "text/html", 1000},
		{[]string{" "}, "text/html", 1000},
		{[]string{"*/*"}, "text/html", 1000},
		{[]string{"text/*;q=0.3, */*;q=0.1"}, "text/html", 300},
		{[]string{"text/*;q=0.3, */*;q=0.1"}, "application/json", 100},
		{[]string{"text/html;level=1;q=0.4"}, "text/html", 400},
		{[]string{"TEXT/HTML ; Q=0.25"}, "text/html", 250},
		{[]string{"application/json;q=0, */*"}, "application/json", 0},
		{[]string{"text/plain", "application/json"}, "application/json", 1000},
		{[]string{"application/json;q=2"}, "application/json", 0},
		{[]string{"application/json;q=x"}, "application/json", 0},
		{[]string{";;,,/,*"}, "application/json", 0},
	} {
		if q := quality(asking("Accept", c.accept...), c.want); q != c.q {
			t.Errorf("%q of %s: %d, want %d", c.accept, c.want, q, c.q)
		}
	}
}

func TestPreferHeaderIsRead(t *testing.T) {
	for text, want := range map[string]preference{
		"":                           {},
		"respond-async":              {async: true},
		"Respond-Async ; x=1":        {async: true},
		"wait=10":                    {wait: 10 * time.Second, waits: true},
		"return=minimal, wait=\"7\"": {wait: 7 * time.Second, waits: true},
		"wait=1, wait=2":             {wait: time.Second, waits: true},
		"wait=0":                     {waits: true},
		"wait=99999999":              {wait: longestWait, waits: true},
		"wait=-1":                    {},
		"wait=1.5":                   {},
		"wait=99999999999999999999":  {},
		"wait":                       {},
	} {
		if got := prefers(asking("Prefer", text)); got != want {
			t.Errorf("Prefer %q: got %+v, want %+v", text, got, want)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"", "1", "text/html;q=0.5, */*", "wait=10, respond-async", "-1", "18446744073709551615", "q=;=,;", "1e5"} {
		f.Add(seed)
	}
	number := regexp.MustCompile(`^[0-9]+$`)
	f.Fuzz(func(t *testing.T, text string) {
		if q := quality(asking("Accept", text), "application/json"); q < 0 || q > 1000 {
			t.Errorf("quality %d", q)
		}
		if p := prefers(asking("Prefer", text)); p.wait < 0 || p.wait > longestWait || p.wait > 0 && !p.waits {
			t.Errorf("Prefer %q: got %+v, want a wait within the limits", text, p)
		}
		if _, given, err := lastEventID(asking("Last-Event-Id", text)); given != (err == nil && text != "") || given && !number.MatchString(text) {
			t.Errorf("Last-Event-ID %q: %v %v", text, given, err)
		}
	})
}

// The routes under /v1 are the seed's inventory, GET /v1/agents/{agent}, and no others.
func TestOpenAPIInventory(t *testing.T) {
	inventory := []string{
		"POST /acp/{agent}", "GET /acp/{agent}", "DELETE /acp/{agent}", // the protocol's own transport
		"GET /openapi.json", // GET / is served beside the routes
		"GET /v1/health", "GET /v1/acp", "POST /v1/acp/{server_id}", "GET /v1/acp/{server_id}", "DELETE /v1/acp/{server_id}",
		"GET /v1/agents", "GET /v1/agents/{agent}", "POST /v1/agents/{agent}/install",
		"GET /v1/fs/entries", "GET /v1/fs/file", "PUT /v1/fs/file", "DELETE /v1/fs/entry", "POST /v1/fs/mkdir", "POST /v1/fs/move", "GET /v1/fs/stat",
		"POST /v1/fs/upload-batch",
		"GET /v1/config/mcp", "PUT /v1/config/mcp", "DELETE /v1/config/mcp", "GET /v1/config/skills", "PUT /v1/config/skills", "DELETE /v1/config/skills",
	}
	var found []string
	for _, route := range direct(t, Config{}).mux.routes {
		for method := range route.methods {
			found = append(found, method+" "+strings.Join(route.segments, "/"))
		}
	}
	slices.Sort(found)
	slices.Sort(inventory)
	if !slices.Equal(found, inventory) {
		t.Errorf("served:\n%s\ninventory:\n%s", strings.Join(found, "\n"), strings.Join(inventory, "\n"))
	}
}
