package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/files"
	"deskhand/backend/httpapi"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/storetest"
)

// forest is a client API with a session in its own directory.
type forest struct {
	*clinic
	id, work, private string
}

func openForest(t *testing.T, further ...string) *forest {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{work: filepath.Join(dir, "work"), private: filepath.Join(dir, "work", "deskhand")}
	for _, path := range []string{f.work, f.private, filepath.Join(f.work, "src")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.put(t, "deskhand/token", "the token")
	f.put(t, "src/main.go", "package main\n")
	f.put(t, "README.md", "# Read\n")
	db := storetest.Open(t, t.TempDir())
	set, err := proxy.Open(proxy.Config{Purpose: processes.ForSession})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue, Files: files.Within{Private: []string{f.private}}}))
	f.clinic = &clinic{t: t, client: &http.Client{Transport: &http.Transport{}}, url: server.URL}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		server.Close()
		for _, closing := range []func() error{sessions.Close, catalogue.Close, set.Close, db.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	})
	wish, err := json.Marshal(session.New{Agent: "mock", Cwd: f.work, Directories: further})
	if err != nil {
		t.Fatal(err)
	}
	var s session.Session
	f.call("POST", "sessions", string(wish), http.StatusCreated, &s)
	f.id = s.ID
	return f
}

func (f *forest) put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.work, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// at returns the API path of a route about a file.
func (f *forest) at(route, path string) string {
	return "sessions/" + f.id + "/" + route + "?path=" + url.QueryEscape(path)
}

// write writes a file as an editor does, and returns the status and the answer.
func (f *forest) write(path, content string, headers ...string) (status int, answer struct{ Code, Version, Path string }) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), "PUT", f.url+"/client/"+f.at("tree/file", path), strings.NewReader(content))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		f.t.Fatal(resp.StatusCode, err)
	}
	return resp.StatusCode, answer
}

type row struct {
	Name, Path, Kind, Leads string
	Size                    int64
	Missing, Unnamed        bool
}

type rows struct {
	Path  string
	Items []row
	More  bool
}

func (r rows) names() string {
	var names []string
	for _, item := range r.Items {
		names = append(names, item.Name+":"+item.Kind+":"+item.Leads)
	}
	return strings.Join(names, " ")
}

type preview struct {
	Path, Name, MimeType, Version, Kind, Text string
	Size                                      int64
	Whole                                     bool
}

func TestFilesOfSessionAreListed(t *testing.T) {
	further := t.TempDir()
	f := openForest(t, further)
	outside := filepath.Join(t.TempDir(), "outside")
	for link, to := range map[string]string{"down": filepath.Join(f.work, "src"), "file": "README.md", "out": outside, "nowhere": "gone"} {
		if err := os.Symlink(to, filepath.Join(f.work, link)); err != nil {
			t.Skip("links are needed: ", err)
		}
	}
	f.put(t, ".hidden", "")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	var list rows
	f.call("GET", "sessions/"+f.id+"/tree", "", http.StatusOK, &list)
	if len(list.Items) != 2 || list.Items[0].Path != f.work || list.Items[0].Name != "work" || list.Items[1].Path != further || list.Items[0].Missing || list.Items[1].Missing {
		t.Errorf("tree: got %+v, want %s and %s", list, f.work, further)
	}
	list = rows{}
	f.call("GET", f.at("tree", f.work), "", http.StatusOK, &list)
	const want = "deskhand:directory: src:directory: .hidden:file: README.md:file: down:symlink:directory file:symlink:file nowhere:symlink: out:symlink:"
	if list.names() != want || list.Path != f.work || list.Items[3].Size != 7 || list.Items[1].Path != filepath.Join(f.work, "src") {
		t.Errorf("tree of %s: got %s\n%+v\nwant %s", f.work, list.names(), list, want)
	}
	f.call("GET", f.at("tree", filepath.Join(f.work, "down")), "", http.StatusOK, &list)

	for path, code := range map[string]string{
		filepath.Dir(f.work): "tree.outside", f.private: "tree.outside", filepath.Join(f.work, "none"): "tree.missing",
		filepath.Join(f.work, "README.md"): "tree.invalid", f.work + "/../x": "tree.invalid",
	} {
		status := map[string]int{"tree.outside": http.StatusForbidden, "tree.missing": http.StatusNotFound, "tree.invalid": http.StatusBadRequest}[code]
		f.refused("GET", f.at("tree", path), "", status, code)
	}
	for _, path := range []string{outside, filepath.Join(f.work, "out"), filepath.Join(f.private, "token")} {
		f.refused("GET", f.at("tree/preview", path), "", http.StatusForbidden, "tree.outside")
		f.refused("GET", f.at("tree/file", path), "", http.StatusForbidden, "tree.outside")
		if status, answer := f.write(path, "mine", "If-Match", "*"); status != http.StatusForbidden || answer.Code != "tree.outside" {
			t.Errorf("write %s: got %d %+v, want 403, tree.outside", path, status, answer)
		}
	}
	f.refused("GET", "sessions/none/tree", "", http.StatusNotFound, "not_found")
	f.refused("GET", "sessions/"+f.id+"/tree/file", "", http.StatusBadRequest, "request.invalid")
	if err := os.RemoveAll(further); err != nil {
		t.Fatal(err)
	}
	list = rows{}
	f.call("GET", "sessions/"+f.id+"/tree", "", http.StatusOK, &list)
	if list.Items[0].Missing || !list.Items[1].Missing {
		t.Errorf("tree: got %+v, want the second directory missing", list)
	}
}

// TestFilesOfSessionAreFound: of many paths those are told that are files of the session's directories, and nothing of any other.
func TestFilesOfSessionAreFound(t *testing.T) {
	f := openForest(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"file": "README.md", "out": outside} {
		if err := os.Symlink(to, filepath.Join(f.work, link)); err != nil {
			t.Skip("links are needed: ", err)
		}
	}
	var asked []string
	for _, name := range []string{"src/main.go", "src", "none", "file", "out", "deskhand/token", "README.md"} {
		asked = append(asked, filepath.Join(f.work, name))
	}
	asked = append(asked, outside, "README.md", f.work+"/../x", "")
	look, err := json.Marshal(map[string][]string{"paths": asked})
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Paths []string }
	f.call("POST", "sessions/"+f.id+"/tree/files", string(look), http.StatusOK, &found)
	want := []string{filepath.Join(f.work, "src/main.go"), filepath.Join(f.work, "file"), filepath.Join(f.work, "README.md")}
	if !slices.Equal(found.Paths, want) {
		t.Errorf("files: got %q, want %q", found.Paths, want)
	}
	f.refused("POST", "sessions/none/tree/files", `{"paths": ["/a"]}`, http.StatusNotFound, "not_found")
	many, err := json.Marshal(map[string][]string{"paths": make([]string, 201)})
	if err != nil {
		t.Fatal(err)
	}
	f.refused("POST", "sessions/"+f.id+"/tree/files", string(many), http.StatusBadRequest, "request.invalid")
}

func TestFilesOfSessionArePreviewed(t *testing.T) {
	f := openForest(t)
	large := strings.Repeat("0123456789abcdé\n", 100_000) // the first part ends inside a character
	for name, content := range map[string]string{
		"a.ts": "let a = 1;\r\n", "empty": "", "large.log": large, "x.bin": "a\x00b", "latin.txt": "caf\xe9", "p.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 64),
		"page.html": "<script>alert(1)</script>", "pic.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
	} {
		f.put(t, name, content)
	}
	for name, want := range map[string]preview{
		"a.ts": {Kind: "text", Text: "let a = 1;\r\n", Whole: true}, "empty": {Kind: "text", Whole: true}, "x.bin": {Kind: "binary"},
		"latin.txt": {Kind: "binary"}, "p.png": {Kind: "image", MimeType: "image/png"}, "pic.svg": {Kind: "text", Whole: true},
	} {
		var p preview
		f.call("GET", f.at("tree/preview", filepath.Join(f.work, name)), "", http.StatusOK, &p)
		if p.Kind != want.Kind || p.Whole != want.Whole || want.Text != "" && p.Text != want.Text || want.MimeType != "" && p.MimeType != want.MimeType || p.Version == "" || p.Name != name {
			t.Errorf("preview of %s: got %+v, want %+v", name, p, want)
		}
	}
	var p preview
	f.call("GET", f.at("tree/preview", filepath.Join(f.work, "large.log")), "", http.StatusOK, &p)
	if p.Kind != "text" || p.Whole || p.Size != int64(len(large)) || !strings.HasPrefix(large, p.Text) || len(p.Text) < 250<<10 || len(p.Text) > 256<<10 {
		t.Errorf("%s, %d of %d", p.Kind, len(p.Text), p.Size)
	}
	// Types that a browser could run are sent as bytes; a range is a part.
	for name, media := range map[string]string{"page.html": "application/octet-stream", "pic.svg": "application/octet-stream", "p.png": "image/png", "a.ts": "application/octet-stream"} {
		status, header, _ := f.fetch(f.at("tree/file", filepath.Join(f.work, name)))
		if status != http.StatusOK || header.Get("Content-Type") != media || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("ETag") == "" ||
			header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" {
			t.Errorf("%s: got %d %v, want %s, guarded", name, status, header, media)
		}
	}
	if status, _, text := f.fetch(f.at("tree/file", filepath.Join(f.work, "a.ts")), "Range", "bytes=4-4"); status != http.StatusPartialContent || text != "a" {
		t.Errorf("range 4-4: got %d %q, want 206, \"a\"", status, text)
	}
}

func TestFilesOfSessionAreEdited(t *testing.T) {
	f := openForest(t)
	path := filepath.Join(f.work, "src", "main.go")
	var p preview
	f.call("GET", f.at("tree/preview", path), "", http.StatusOK, &p)
	status, answer := f.write(path, "package mine\n", "If-Match", strconv.Quote(p.Version))
	if status != http.StatusOK || answer.Version == p.Version || answer.Path != path {
		t.Fatalf("write: got %d %+v, want 200 and a new version", status, answer)
	}
	if status, _ := f.write(path, "package mine // again\n", "If-Match", strconv.Quote(answer.Version)); status != http.StatusOK {
		t.Fatalf("second write: got status %d, want 200", status)
	}
	// An agent has written meanwhile: its work stays until a person has seen the new content.
	f.put(t, "src/main.go", "package theirs\n")
	if status, answer := f.write(path, "package mine\n", "If-Match", strconv.Quote(answer.Version)); status != http.StatusPreconditionFailed || answer.Code != "tree.changed" {
		t.Errorf("write with an old version: got %d %+v, want 412, tree.changed", status, answer)
	}
	if data, _ := os.ReadFile(path); string(data) != "package theirs\n" {
		t.Errorf("file: got %q, want the agent's text", data)
	}
	if status, _ := f.write(path, "package whatever\n", "If-Match", "*"); status != http.StatusOK {
		t.Errorf("write over any version: got status %d, want 200", status)
	}
	fresh := filepath.Join(f.work, "new", "file.txt")
	if status, _ := f.write(fresh, "new", "If-None-Match", "*"); status != http.StatusOK {
		t.Errorf("write of a new file: got status %d, want 200", status)
	}
	if status, answer := f.write(fresh, "newer", "If-None-Match", "*"); status != http.StatusConflict || answer.Code != "tree.exists" {
		t.Errorf("write of a new file that exists: got %d %+v, want 409, tree.exists", status, answer)
	}
	for _, headers := range [][]string{
		nil, {"If-Match", "unquoted"}, {"If-Match", `""`}, {"If-Match", "*", "If-None-Match", "*"}, {"If-Match", "*", "Content-Range", "bytes 0-1/2"}, {"If-Match", "*", "Content-Type", "text/plain"},
	} {
		if status, answer := f.write(fresh, "x", headers...); status < 400 || status >= 500 || answer.Code != "request.invalid" {
			t.Errorf("write with %v: got %d %+v, want request.invalid", headers, status, answer)
		}
	}
	if data, _ := os.ReadFile(fresh); string(data) != "new" {
		t.Errorf("file: got %q, want \"new\"", data)
	}
	if err := os.Chmod(fresh, 0o400); err != nil {
		t.Fatal(err)
	}
	if status, answer := f.write(fresh, "x", "If-Match", "*"); os.Getuid() != 0 && (status != http.StatusForbidden || answer.Code != "tree.forbidden") {
		t.Errorf("write without permission: got %d %+v, want 403, tree.forbidden", status, answer)
	}
}

func TestFilesAreCopiedIntoSession(t *testing.T) {
	f := openForest(t)
	from := t.TempDir()
	for _, name := range []string{"one.txt", "README.md"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte("dropped "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	wish := func(replace bool, to string, paths ...string) string {
		data, err := json.Marshal(map[string]any{"paths": paths, "to": to, "replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	type copied struct {
		Items    []struct{ Path string }
		Problems []struct{ Path, Code string }
	}
	route := "sessions/" + f.id + "/tree/copy"
	all := []string{filepath.Join(from, "one.txt"), filepath.Join(from, "README.md"), filepath.Join(from, "directory"), filepath.Join(from, "none"), "relative", filepath.Join(f.private, "token")}
	var out copied
	f.call("POST", route, wish(false, f.work, all...), http.StatusOK, &out)
	var codes []string
	for _, p := range out.Problems {
		codes = append(codes, p.Code)
	}
	if len(out.Items) != 1 || out.Items[0].Path != filepath.Join(f.work, "one.txt") || strings.Join(codes, " ") != "tree.exists tree.directory tree.missing tree.invalid tree.outside" {
		t.Errorf("copy: got %+v, want one.txt and five problems", out)
	}
	if data, _ := os.ReadFile(filepath.Join(f.work, "README.md")); string(data) != "# Read\n" {
		t.Errorf("README.md: got %q, want the text before", data)
	}
	f.call("POST", route, wish(true, f.work, all[1]), http.StatusOK, &out)
	if data, _ := os.ReadFile(filepath.Join(f.work, "README.md")); string(data) != "dropped README.md" {
		t.Errorf("README.md: got %q, want the dropped text", data)
	}
	f.refused("POST", route, wish(false, from, all[0]), http.StatusForbidden, "tree.outside")
	f.refused("POST", route, wish(false, filepath.Join(f.work, "README.md"), all[0]), http.StatusBadRequest, "tree.invalid")
	f.refused("POST", route, wish(false, f.work), http.StatusBadRequest, "request.invalid")
}
