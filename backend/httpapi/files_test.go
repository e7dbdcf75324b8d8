package httpapi

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fileWorld returns an API over a directory, and the directory.
func fileWorld(t *testing.T, cfg Config) (http.Handler, string) {
	t.Helper()
	if len(cfg.Roots) == 0 {
		cfg.Roots = []string{t.TempDir()}
	}
	return direct(t, cfg).Loopback(memoryAddr{}), cfg.Roots[0]
}

func save(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A file may claim any time. A time that RFC 3339 cannot express is reported as the zero time, and the list is complete.
func TestTimesBeyondTheCalendar(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "deskhand-test-") //nolint:usetesting // in memory, where times have 64 bits
	if err != nil {
		t.Skip("there is no /dev/shm")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h, _ := fileWorld(t, Config{Roots: []string{dir}})
	for name, at := range map[string]string{"far": "@1099511627776", "before": "@-1099511627776", "now": "@1000000000"} {
		save(t, filepath.Join(dir, name), "x")
		if out, err := exec.CommandContext(t.Context(), "touch", "-d", at, filepath.Join(dir, name)).CombinedOutput(); err != nil { // os.Chtimes counts in ns
			t.Skipf("no such time can be set: %s, %v", out, err)
		}
	}
	w := knock(h, "GET", "/v1/fs/entries")
	var list []fsEntry
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list) != 3 {
		t.Errorf("entries: got %d %q: %v, want 3", w.Code, w.Body, err)
	}
	for name, want := range map[string]string{"far": "0001-01-01T00:00:00Z", "before": "0001-01-01T00:00:00Z", "now": "2001-09-09T01:46:40Z"} {
		w := knock(h, "GET", "/v1/fs/stat?path="+name)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"modified":"`+want+`"`) {
			t.Errorf("stat of %s: got %d %q, want modified %s", name, w.Code, w.Body, want)
		}
	}
}

// A failed precondition is a problem document like any other refusal.
func TestPreconditionsOfReading(t *testing.T) {
	h, dir := fileWorld(t, Config{})
	save(t, filepath.Join(dir, "f"), "0123456789")
	etag := knock(h, "GET", "/v1/fs/file?path=f").Header().Get("ETag")
	for _, c := range []struct {
		header, value string
		code          int
	}{
		{"If-Match", `"another"`, 412},
		{"If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT", 412},
		{"If-Match", etag, 200},
		{"If-Match", "*", 200},
		{"If-None-Match", etag, 304},
		{"If-None-Match", "W/" + etag, 304},
		{"If-None-Match", `"another"`, 200},
		{"Range", "bytes=20-", 416},
		{"Range", "bytes=5-2", 416},
		{"Range", "lines=1-2", 416},
		{"Range", "bytes=0-0,-1", 206},
	} {
		w := knock(h, "GET", "/v1/fs/file?path=f", c.header, c.value)
		if w.Code != c.code {
			t.Errorf("%s: %s: %d, want %d", c.header, c.value, w.Code, c.code)
		}
		isProblem := w.Header().Get("Content-Type") == "application/problem+json" && strings.Contains(w.Body.String(), `"status":41`)
		if isProblem != (c.code > 400) {
			t.Errorf("%s: %s: got %v %q, want a problem for status %d", c.header, c.value, w.Header(), w.Body, c.code)
		}
	}
}

// A part of a file never replaces the whole file (RFC 9110, 14.5).
func TestPartsAreNotWritten(t *testing.T) {
	h, dir := fileWorld(t, Config{})
	save(t, filepath.Join(dir, "f"), "0123456789")
	if w := knock(h, "PUT", "/v1/fs/file?path=f", "Content-Range", "bytes 2-3/10"); w.Code != 400 {
		t.Errorf("PUT with Content-Range: got %d %s, want 400", w.Code, w.Body)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "f")); string(data) != "0123456789" {
		t.Errorf("file: got %q, %v, want the text before", data, err)
	}
}

// Names that JSON cannot express are refused, and not silently changed.
func TestNamesThatAreNotUTF8(t *testing.T) {
	h, dir := fileWorld(t, Config{})
	save(t, filepath.Join(dir, "f"), "x")
	r := httptest.NewRequest("POST", "/v1/fs/move", strings.NewReader("{\"from\":\"f\",\"to\":\"\xff\"}"))
	r.Host = "127.0.0.1:2468"
	r.Header.Set("Authorization", "Bearer "+rightToken)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("move: got %d %s, want 400", w.Code, w.Body)
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
		t.Error(err)
	}
}

// The listed form of a name that is no UTF-8 opens the file, and so do the name's bytes percent-encoded.
func TestListedNamesThatAreNotUTF8CanBeOpened(t *testing.T) {
	h, dir := fileWorld(t, Config{})
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9.txt"), []byte("coffee"), 0o600); err != nil {
		t.Skip("such names cannot be here: " + err.Error())
	}
	var list []struct{ Path string }
	w := knock(h, "GET", "/v1/fs/entries?path=.")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Path, "base64:") {
		t.Fatalf("the list: got %s, %v; want one path in base64", w.Body, err)
	}
	for _, path := range []string{list[0].Path, filepath.Join(dir, "caf\xe9.txt")} {
		if w := knock(h, "GET", "/v1/fs/file?path="+url.QueryEscape(path)); w.Code != 200 || w.Body.String() != "coffee" {
			t.Errorf("GET of %q: got %d %s, want the file", path, w.Code, w.Body)
		}
	}
	if w := knock(h, "DELETE", "/v1/fs/entry?path="+url.QueryEscape(list[0].Path)); w.Code != 200 {
		t.Errorf("DELETE of %q: got %d %s, want 200", list[0].Path, w.Code, w.Body)
	}
}

func sendEntry(h http.Handler, method string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/v1/config/mcp?directory=.&mcpName=a", strings.NewReader(`{"type":"local","command":"new"}`))
	r.Host = "127.0.0.1:2468"
	r.Header.Set("Authorization", "Bearer "+rightToken)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The folder of a directory's entries may be a link, but not to private data.
func TestEntriesBehindLinks(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	save(t, filepath.Join(private, "settings.json"), `{"a":{"type":"local","command":"secret"}}`)
	save(t, filepath.Join(private, "mcp.json"), `{"a":{"type":"local","command":"secret"}}`)
	h, _ := fileWorld(t, Config{Roots: []string{dir}, Private: []string{private}})
	for name, links := range map[string][2]string{
		"folder": {"../private", ".sandbox-agent/config"},
		"file":   {"../../private/settings.json", ".sandbox-agent/config/mcp.json"},
		"above":  {"private", ".sandbox-agent"},
		"none":   {"", ""},
	} {
		_ = os.RemoveAll(filepath.Join(dir, ".sandbox-agent"))
		want := []int{404, 204, 204}
		if links[1] != "" {
			want = []int{403, 403, 403}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, links[1])), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(links[0], filepath.Join(dir, links[1])); err != nil {
				t.Fatal(err)
			}
		}
		for n, method := range []string{"GET", "PUT", "DELETE"} {
			w := sendEntry(h, method)
			if w.Code != want[n] {
				t.Errorf("%s, %s: got %d %s, want %d", name, method, w.Code, w.Body, want[n])
			}
		}
	}
	if left, err := os.ReadDir(private); len(left) != 2 {
		t.Errorf("private directory: got %v, %v, want 2 files", left, err)
	}
}

// PUT makes the directory of an entry, as the existing server does, but only inside the roots and for a valid entry.
func TestRuntimeConfigPutMakesDirectory(t *testing.T) {
	h, dir := fileWorld(t, Config{})
	put := func(kind, directory, entry string) int {
		r := httptest.NewRequest("PUT", "/v1/config/"+kind+"?"+url.Values{"directory": {directory}, kind + "Name": {"a"}, "skillName": {"a"}}.Encode(), strings.NewReader(entry))
		r.Host = "127.0.0.1:2468"
		r.Header.Set("Authorization", "Bearer "+rightToken)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	const server, source = `{"type":"local","command":"x"}`, `{"sources":[{"type":"local","source":"x"}]}`
	save(t, filepath.Join(dir, "file"), "x")
	outside := filepath.Join(t.TempDir(), "not", "there")
	for _, c := range []struct {
		kind, directory, entry string
		want                   int
	}{
		{"mcp", "new/deeper", server, 204},
		{"mcp", filepath.Join(dir, "absolute"), server, 204},
		{"skills", "other", source, 204},
		{"mcp", "broken", `{"type":"local"}`, 400},
		{"mcp", outside, server, 403},
		{"mcp", "../outside", server, 400},
		{"mcp", "file/below", server, 400},
	} {
		if got := put(c.kind, c.directory, c.entry); got != c.want {
			t.Errorf("PUT of %s into %s: got %d, want %d", c.kind, c.directory, got, c.want)
		}
	}
	for _, name := range []string{"new/deeper/.sandbox-agent/config/mcp.json", "absolute/.sandbox-agent/config/mcp.json", "other/.sandbox-agent/config/skills.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: got %v, want a file", name, err)
		}
	}
	for _, name := range []string{filepath.Join(dir, "broken"), outside} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// A caller that requests a file and reads nothing loses the connection; a slow reader does not.
func TestStalledDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const size = 4 << 20
		save(t, filepath.Join(dir, "f"), strings.Repeat("x", size))
		listener := &memory{make(chan net.Conn), make(chan struct{})}
		server := NewServer(direct(t, Config{Roots: []string{dir}}).Loopback(listener.Addr()))
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		defer func() { _ = server.Close(); <-served }()
		for _, c := range []struct {
			headers string
			pause   time.Duration
			whole   bool
		}{{"", time.Hour, false}, {"", downloadPause / 2, true}, {"Range: bytes=0-9,100-\r\n", time.Hour, false}} {
			conn, err := listener.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "GET /v1/fs/file?path=f HTTP/1.1\r\nHost: 127.0.0.1:2468\r\nConnection: close\r\n"+c.headers+bearerLine+"\r\n")
			buf, got := make([]byte, 256<<10), 0
			for {
				n, err := io.ReadFull(conn, buf)
				got += n
				if err != nil {
					break
				}
				time.Sleep(c.pause)
			}
			if (got > size) != c.whole {
				t.Errorf("after pauses of %v: %d bytes", c.pause, got)
			}
			_ = conn.Close()
		}
	})
}

const bearerLine = "Authorization: Bearer " + rightToken + "\r\n"
