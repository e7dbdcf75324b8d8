package backend_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend"
	"deskhand/backend/datadir"
	"deskhand/backend/httpapi"
	"deskhand/backend/settings"
)

// bySocket calls the client API as the command line does.
func bySocket(t *testing.T, dir, method, path, body string, into any) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	var owner datadir.Owner
	if err := json.Unmarshal(data, &owner); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", owner.Socket)
	}}
	defer transport.CloseIdleConnections()
	return called(t, &http.Client{Transport: transport}, method, "http://deskhand/client/"+path, "", body, into)
}

func called(t *testing.T, client *http.Client, method, url, token, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil && res.StatusCode < http.StatusBadRequest {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	return res.StatusCode
}

// TestLocalAPIIsSwitched: the API of a program with a window goes on and off while the program runs, also by a call over the API, and the next
// start restores the state.
func TestLocalAPIIsSwitched(t *testing.T) {
	dir := t.TempDir()
	t.Run("a start", func(t *testing.T) {
		b := opened(t, dir, func(c *backend.Config) { c.Kind = "window" })
		b.OpenLocal(t.Context(), 0)
		var now httpapi.LocalAPI
		if code := bySocket(t, dir, "GET", "local-api", "", &now); code != 200 || !now.On || now.Fixed || now.URL == "" {
			t.Fatalf(`bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200, now.On, not now.Fixed and now.URL other than ""`, code, now)
		}
		token, err := os.ReadFile(filepath.Join(dir, "client-token"))
		if err != nil {
			t.Fatal(err)
		}
		own := strings.TrimSpace(string(token))
		first := now.URL
		now = httpapi.LocalAPI{}
		// A call over the API that switches the API off is still answered.
		if code := called(t, http.DefaultClient, "PUT", first+"/client/local-api", own, `{"on":false}`, &now); code != 200 || now.On || now.URL != "" {
			t.Fatalf("called(\"PUT\", \"{\\\"on\\\":false}\"): got code %d, now %+v, want code 200, not now.On and now.URL \"\"", code, now)
		}
		if code := bySocket(t, dir, "PUT", "local-api", `{"on":true}`, &now); code != 200 || !now.On { // waits for the end of the first listener
			t.Fatalf("bySocket(\"PUT\", \"local-api\", \"{\\\"on\\\":true}\"): got code %d, now %+v, want code 200 and now.On", code, now)
		}
		if code := called(t, http.DefaultClient, "GET", now.URL+"/client/hello", own, "", nil); code != 200 {
			t.Error(code)
		}
		if code := called(t, http.DefaultClient, "GET", first+"/client/hello", own, "", nil); code != 0 && first != now.URL {
			t.Errorf("what was switched off answers %d", code)
		}
		if code := bySocket(t, dir, "PUT", "local-api", `{"on":false}`, &now); code != 200 || now.On {
			t.Fatalf("bySocket(\"PUT\", \"local-api\", \"{\\\"on\\\":false}\"): got code %d, now %+v, want code 200 and not now.On", code, now)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "owner.json")); err != nil || strings.Contains(string(data), "http:") {
			t.Errorf(`ReadFile: got data %s, error %v, want no error and data without "http:"`, data, err)
		}
		if _, err := b.Link(); err == nil {
			t.Error("there is a link to what is not served")
		}
	})
	b := opened(t, dir, func(c *backend.Config) { c.Kind = "window" })
	b.OpenLocal(t.Context(), 0)
	var now httpapi.LocalAPI
	if code := bySocket(t, dir, "GET", "local-api", "", &now); code != 200 || now.On || now.Fixed {
		t.Errorf(`bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200, not now.On and not now.Fixed`, code, now)
	}
	if code := bySocket(t, dir, "POST", "tokens", `{"name":"script","scopes":["runtime"]}`, nil); code != 201 {
		t.Error(code)
	}
}

// TestLocalAPIIsOffByBrokenSettings: unreadable settings switch the API off at the next start, with a message. Switching the API off works
// though the state cannot be stored.
func TestLocalAPIIsOffByBrokenSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	window := func(t *testing.T, settings string) *backend.Backend {
		t.Helper()
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		b := opened(t, dir, func(c *backend.Config) { c.Kind, c.Logger = "window", slog.New(slog.DiscardHandler) })
		b.OpenLocal(t.Context(), 0)
		return b
	}
	for _, content := range []string{`{"localApi": false`, `{"localApi": "off"}`} {
		t.Run(content, func(t *testing.T) {
			window(t, content)
			var now httpapi.LocalAPI
			if code := bySocket(t, dir, "GET", "local-api", "", &now); code != 200 || now.On || now.Fixed {
				t.Errorf(`bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200, not now.On and not now.Fixed`, code, now)
			}
			var told settings.Settings
			if code := bySocket(t, dir, "GET", "settings", "", &told); code != 200 || told.LocalAPI || told.Problem == "" {
				t.Errorf(`bySocket("GET", "settings", ""): got code %d, told %+v, want code 200, not told.LocalAPI and told.Problem other than ""`, code, told)
			}
		})
	}
	t.Run("switched", func(t *testing.T) {
		window(t, `{}`)
		var before, now httpapi.LocalAPI
		if code := bySocket(t, dir, "GET", "local-api", "", &before); code != 200 || !before.On {
			t.Fatalf(`bySocket("GET", "local-api", ""): got code %d, before %+v, want code 200 and before.On`, code, before)
		}
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{`{"on":false}`, `{"on":true}`} {
			if code := bySocket(t, dir, "PUT", "local-api", body, nil); code != http.StatusConflict {
				t.Errorf(`%s: bySocket("PUT", "local-api"): got %d, want http.StatusConflict`, body, code)
			}
			if code := bySocket(t, dir, "GET", "local-api", "", &now); code != 200 || now.On {
				t.Fatalf(`%s: bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200 and not now.On`, body, code, now)
			}
		}
		for called(t, http.DefaultClient, "GET", before.URL+"/v1/health", "", "", nil) != 0 && t.Context().Err() == nil { // the listener ends after its answer
			runtime.Gosched()
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "{" {
			t.Errorf(`ReadFile: got text %q, error %v, want no error and text "{"`, text, err)
		}
	})
}

// TestLocalAPIStays: a program that was started to serve the API cannot switch the API off, and a taken port moves the API to another port.
func TestLocalAPIStays(t *testing.T) {
	dir := t.TempDir()
	b := opened(t, dir, nil)
	l, err := b.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var now httpapi.LocalAPI
	if code := bySocket(t, dir, "GET", "local-api", "", &now); code != 200 || !now.On || !now.Fixed || now.URL != l.URL {
		t.Errorf(`bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200, now.On, now.Fixed and now.URL %v`, code, now, l.URL)
	}
	if code := bySocket(t, dir, "PUT", "local-api", `{"on":false}`, nil); code != http.StatusConflict {
		t.Error(code)
	}
	other := t.TempDir()
	w := opened(t, other, func(c *backend.Config) { c.Kind = "window" })
	w.OpenLocal(t.Context(), l.Addr.(*net.TCPAddr).Port)
	if code := bySocket(t, other, "GET", "local-api", "", &now); code != 200 || !now.On || now.URL == l.URL {
		t.Errorf(`bySocket("GET", "local-api", ""): got code %d, now %+v, want code 200, now.On and now.URL other than %v`, code, now, l.URL)
	}
}
