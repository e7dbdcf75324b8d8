package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/mcp"
	"deskhand/backend/proxy"
	"deskhand/backend/testkit"
)

// place returns a place for checks, and verifies at the end of the test that no process is left there.
func place(t *testing.T, variables ...string) mcp.Place {
	t.Helper()
	set, err := proxy.Open(proxy.Config{LogBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := set.List(); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return mcp.Place{Processes: set, Directory: t.TempDir(), Environ: append(os.Environ(), variables...)}
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// local returns an entry for a fake server.
func local(t *testing.T, what string, millis int, args ...string) mcp.Server {
	t.Helper()
	command, _ := json.Marshal(append([]string{self(t), asServer, what}, args...))
	return parse(t, fmt.Sprintf(`{"type":"local","command":%s,"args":[],"env":{"FIXTURE_SECRET":"s3cret-value"},"timeoutMs":%d}`, command, millis))
}

func parse(t *testing.T, entry string) mcp.Server {
	t.Helper()
	s, err := mcp.Parse("srv", json.RawMessage(entry))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCheckOfALocalServer(t *testing.T) {
	for _, what := range []string{"honest", "banner"} {
		r, err := mcp.Check(t.Context(), local(t, what, 30_000), place(t))
		if err != nil {
			t.Fatalf("Check(%s): got %v, want no error", what, err)
		}
		if r.Server == nil || r.Server.Name != "honest" || r.Server.Version != "1.2.3" || len(r.Tools) != 2 {
			t.Fatalf("Check(%s): got %+v, want honest 1.2.3 with 2 tools", what, r)
		}
	}
	r, err := mcp.Check(t.Context(), local(t, "honest", 30_000), place(t))
	if err != nil || r.Tools[1].Name != "greet" || r.Tools[1].Description != "Says hellos3cret-value" {
		t.Errorf("the entry's env does not reach the server: %+v %v", r, err)
	}
}

func TestCheckIsNotHeldUp(t *testing.T) {
	for what, tc := range map[string]struct {
		millis int
		want   error
		says   string
	}{
		"silent": {400, mcp.ErrSilent, "400ms"},
		"deaf":   {400, mcp.ErrSilent, ""},
		"flood":  {60_000, mcp.ErrFlood, ""},
		"babble": {60_000, mcp.ErrFlood, "not JSON"},
		"many":   {60_000, mcp.ErrFlood, ""},
		"dies":   {60_000, nil, "with code 3"},
		"prose":  {60_000, nil, "what do you want"},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := mcp.Check(t.Context(), local(t, what, tc.millis), place(t))
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Check(%s): got %v, want %v with %q", what, err, tc.want, tc.says)
			}
			if what == "dies" && !strings.Contains(r.Stderr, "no licence") {
				t.Errorf("stderr %q", r.Stderr)
			}
			if what == "many" && (len(r.Tools) != 1000 || len(r.Tools[0].Description) > 4200) {
				t.Errorf("%d tools, %d bytes", len(r.Tools), len(r.Tools[0].Description))
			}
		})
	}
}

func TestCheckEndsWhatTheServerStarted(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	at := place(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // cancels once there is a grandchild
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(note); len(data) > 0 {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := mcp.Check(ctx, local(t, "parent", 60_000, note), at)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Check: got %v, want %v", err, context.Canceled)
	}
	data, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(data))
	for end := time.Now().Add(testkit.Limit); lives(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the grandchild %d lives", pid)
		}
	}
}

func TestCheckOfWhatCannotBeStarted(t *testing.T) {
	for _, entry := range []string{
		`{"type":"local","command":"no-such-program-anywhere","args":[]}`,
		`{"type":"local","command":"./none","args":[]}`,
		`{"type":"local","command":"` + filepath.ToSlash(t.TempDir()) + `","args":[]}`,
	} {
		if _, err := mcp.Check(t.Context(), parse(t, entry), place(t)); !errors.Is(err, mcp.ErrNot) {
			t.Errorf("Check(%s): got %v, want %v", entry, err, mcp.ErrNot)
		}
	}
}

func TestCheckOfARemoteServer(t *testing.T) {
	asked := map[string]string{}
	honest := func(next http.Handler) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Authorization", "X-Team"} {
				asked[name] = r.Header.Get(name)
			}
			if r.Header.Get("Authorization") == "" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		return s
	}
	get := func(*http.Request) *sdk.Server { return server("") }
	for transport, s := range map[string]*httptest.Server{
		"http": honest(sdk.NewStreamableHTTPHandler(get, nil)), "sse": honest(sdk.NewSSEHandler(get, nil)),
	} {
		entry := `{"type":"remote","url":"` + s.URL + `","headers":{"X-Team":"blue"},"bearerTokenEnvVar":"MCP_TOKEN","timeoutMs":20000,"transport":"` + transport + `"}`
		r, err := mcp.Check(t.Context(), parse(t, entry), place(t, "MCP_TOKEN=tok"))
		if err != nil || len(r.Tools) != 2 {
			t.Errorf("Check over %s: got %+v, %v, want 2 tools", transport, r, err)
		}
		if asked["Authorization"] != "Bearer tok" || asked["X-Team"] != "blue" {
			t.Errorf("%s: headers %v", transport, asked)
		}
		if _, err := mcp.Check(t.Context(), parse(t, `{"type":"remote","url":"`+s.URL+`","timeoutMs":20000,"transport":"`+transport+`"}`), place(t)); err == nil {
			t.Errorf("%s: no token is fine", transport)
		}
	}
}

func TestCheckOfAHostileRemoteServer(t *testing.T) {
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("X-Key") }))
	defer thief.Close()
	release := make(chan struct{})
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		case "/silent":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/flood":
			w.Header().Set("Content-Type", "text/event-stream")
			line := []byte(": " + strings.Repeat("x", 8000) + "\n")
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		case "/prose":
			fmt.Fprint(w, "<html>")
		}
	}))
	defer hostile.Close()
	defer close(release)
	for _, transport := range []string{"http", "sse"} {
		for path, want := range map[string]error{"/elsewhere": nil, "/round": nil, "/silent": mcp.ErrSilent, "/flood": mcp.ErrFlood, "/prose": nil, "/none": nil} {
			millis := 30_000
			if path == "/silent" || path == "/prose" || path == "/none" {
				millis = 500 // with SSE both are streams that end, or stay silent
			}
			entry := fmt.Sprintf(`{"type":"remote","url":"%s%s","headers":{"X-Key":"key"},"timeoutMs":%d,"transport":%q}`, hostile.URL, path, millis, transport)
			_, err := mcp.Check(t.Context(), parse(t, entry), place(t))
			if err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("Check over %s of %s: got %v, want %v", transport, path, err, want)
			}
		}
	}
	if len(stolen) > 0 {
		t.Errorf("a redirect took a header along: %q", <-stolen)
	}
}
