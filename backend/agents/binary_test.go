package agents_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
)

// shellAgent is an agent that needs only a shell.
const shellAgent = `#!/bin/sh
BEFORE
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentInfo":{"name":"packed","version":"VERSION"}}}' ;;
  *'"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
  esac
done
`

func packedAgent(version, before string) string {
	return strings.NewReplacer("VERSION", version, "BEFORE", before).Replace(shellAgent)
}

// bzipped is an archive of packedAgent("1.0.0", "") as dist/agent: the standard library cannot write bzip2.
//
//go:embed testdata/agent.tar.bz2
var bzipped []byte

// item is an entry of an archive.
type item struct {
	name string
	text string
	kind byte   // type of tar; 0 = a file
	to   string // target of a link
}

func tarball(t *testing.T, items ...item) []byte {
	t.Helper()
	var buf bytes.Buffer
	packed := gzip.NewWriter(&buf)
	archive := tar.NewWriter(packed)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Mode: 0o755, Size: int64(len(i.text)), Typeflag: i.kind, Linkname: i.to}
		switch i.kind {
		case 0:
			h.Typeflag = tar.TypeReg
		case tar.TypeXGlobalHeader:
			h = &tar.Header{Typeflag: i.kind, PAXRecords: map[string]string{"comment": "of git"}}
		}
		if err := archive.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(i.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// zipped makes a zip archive without modes, as on Windows; links are written as zip has them.
func zipped(t *testing.T, items ...item) []byte {
	t.Helper()
	var buf bytes.Buffer
	archive := zip.NewWriter(&buf)
	for _, i := range items {
		h := &zip.FileHeader{Name: i.name, Method: zip.Deflate}
		if i.kind == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
			i.text = i.to
		}
		w, err := archive.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(i.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// archiveFixture is an installFixture whose agents.json has an agent that comes as an archive, with the server of the archives.
type archiveFixture struct {
	*installFixture
	srv *httptest.Server

	mu    sync.Mutex // protects the fields below
	files map[string][]byte
	asked int
	serve func(w http.ResponseWriter, r *http.Request) bool // answers instead of the files when it returns true
}

func openArchiveFixture(t *testing.T) *archiveFixture {
	t.Helper()
	y := &archiveFixture{files: map[string][]byte{}}
	y.srv = httptest.NewServer(http.HandlerFunc(y.answer))
	t.Cleanup(y.srv.Close)
	y.installFixture = openInstallFixture(t, func(c *agents.Config) { c.File = filepath.Join(t.TempDir(), "agents.json") })
	return y
}

func (y *archiveFixture) answer(w http.ResponseWriter, r *http.Request) {
	y.mu.Lock()
	data, there := y.files[strings.TrimPrefix(r.URL.Path, "/")]
	y.asked++
	serve := y.serve
	y.mu.Unlock()
	switch {
	case serve != nil && serve(w, r):
	case !there:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(data)
	}
}

// says installs f as the server's handler.
func (y *archiveFixture) says(f func(w http.ResponseWriter, r *http.Request) bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.serve = f
}

func (y *archiveFixture) requests() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.asked
}

func (y *archiveFixture) put(name string, data []byte) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.files[name] = data
}

// here returns the registry's name of this machine.
func here() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// lists writes agents.json with an agent that comes from the archive.
func (y *archiveFixture) lists(version, archive, cmd, sum string) {
	y.t.Helper()
	if !strings.Contains(archive, "://") {
		archive = y.srv.URL + "/" + archive
	}
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"id": "packed", "name": "Packed", "version": version, "env": map[string]string{"MORE": "2"},
		"distribution": map[string]any{"binary": map[string]any{here(): map[string]any{
			"archive": archive, "cmd": cmd, "sha256": sum, "args": []string{"acp"}, "env": map[string]string{"PACKED": "1"},
		}}},
	}}})
	if err == nil {
		err = os.WriteFile(y.cfg.File, data, 0o600)
	}
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *archiveFixture) packed() agents.Agent { return get(y.t, y.Catalogue, "packed") }

func TestArchivesAreInstalled(t *testing.T) {
	y := openArchiveFixture(t)
	script := packedAgent("1.0.0", "")
	rest := item{name: "dist/share/read me.txt", text: "read me"}
	for n, tc := range []struct {
		name, cmd string
		data      []byte
		sum       bool
	}{
		{"agent.tar.gz", "./dist/agent", tarball(t, item{name: "pax", kind: tar.TypeXGlobalHeader}, item{name: "./", kind: tar.TypeDir}, item{name: "./dist/agent", text: script}, rest), true},
		{"agent.TGZ", `dist\agent`, tarball(t, item{name: "dist/", kind: tar.TypeDir}, item{name: "dist/agent", text: script}, rest), false},
		{"agent.zip", "dist/agent", zipped(t, item{name: "dist/"}, item{name: "dist/agent", text: script}, rest), true},
		{"agent.tar.bz2", "dist/agent", bzipped, true},
		{"My Agent.app.tar.gz", "My Agent.app/Contents/Mac OS/agent", tarball(t, item{name: "My Agent.app/Contents/Mac OS/agent", text: script}), true},
		{"agent-1.0.0-linux", "agent", []byte(script), true},
		{"v1/agent.exe", "./agent.exe", []byte(script), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			version := "1.0." + string(rune('0'+n))
			sum := ""
			if tc.sum {
				sum = strings.ToUpper(sumOf(tc.data))
			}
			y.put(tc.name, tc.data)
			y.lists(version, strings.ReplaceAll(tc.name, " ", "%20"), tc.cmd, sum)
			if a := y.packed(); !a.Installable || a.Distribution != "binary" || a.Pinned != version || !a.Editable || !strings.HasPrefix(a.Package, y.srv.URL) {
				t.Errorf("%s before: got %+v, want it installable as a binary in %s", tc.name, a, version)
			}
			var steps, logs []string
			var last agents.Progress
			if _, err := y.Installer().Install(t.Context(), "packed", agents.InstallRequest{Reinstall: true}, func(p agents.Progress) {
				if len(steps) == 0 || steps[len(steps)-1] != p.Step {
					steps = append(steps, p.Step)
				}
				if logs = append(logs, p.Log); p.Step == agents.StepDownload {
					last = p
				}
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(steps, []string{"resolve", "download", "verify", "switch"}) || last.Bytes != int64(len(tc.data)) || last.Total != last.Bytes {
				t.Errorf("%s: got steps %v, %+v; want all four and %d bytes", tc.name, steps, last, len(tc.data))
			}
			if told := strings.Contains(strings.Join(logs, "\n"), "no checksum"); told == tc.sum {
				t.Errorf("%s: got the missing checksum told %v, want %v", tc.name, told, !tc.sum)
			}
			a := y.packed()
			if a.State != agents.Ready || a.Source != agents.Own || a.Version != version || strings.Contains(a.Reason, "without a checksum") == tc.sum {
				t.Errorf("%s after: got %+v, want it ready in %s, the missing checksum told %v", tc.name, a, version, !tc.sum)
			}
			cmd, err := y.Command(t.Context(), "packed", "/work")
			if err != nil || cmd.Path != a.Path || !slices.Equal(cmd.Args, []string{"acp"}) || !slices.Contains(cmd.Env, "PACKED=1") || !slices.Contains(cmd.Env, "MORE=2") {
				t.Errorf("Command(packed): got %+v, %v, want %s acp with PACKED=1 MORE=2", cmd, err, a.Path)
			}
			if tc.name == "agent.tar.gz" {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(a.Path), "share", "read me.txt"))
				if err != nil || string(text) != "read me" {
					t.Errorf("read me.txt: got %q, %v, want \"read me\"", text, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(y.cfg.Dir, "packed", version, ".archive")); len(left) > 0 {
				t.Error("the archive is left")
			}
			if r, err := y.Test(t.Context(), "packed"); err != nil || !r.Healthy() {
				t.Errorf("Test(packed): got %+v, %v, want healthy", r.Steps, err)
			}
		})
	}
	if err := y.Installer().Rollback("packed"); err != nil || y.packed().Version != "1.0.5" {
		t.Errorf("Rollback: got %v, agent %+v, want version 1.0.5", err, y.packed())
	}
	if err := y.Installer().Uninstall("packed"); err != nil || y.packed().State != agents.NotFound {
		t.Errorf("Uninstall: got %v, agent %+v, want not_found", err, y.packed())
	}
}

func TestArchivesThatAreRefused(t *testing.T) {
	y := openArchiveFixture(t)
	script := packedAgent("1.0.0", "")
	agent := item{name: "agent", text: script}
	y.put("good.tar.gz", tarball(t, agent))
	y.lists("1.0.0", "good.tar.gz", "agent", "")
	y.install("packed", agents.InstallRequest{})
	outside := filepath.Join(filepath.Dir(y.cfg.Dir), "escaped")
	for n, tc := range []struct {
		name, archive string
		data          []byte
		sum           string
		step, err     string
	}{
		{"another checksum", "a.tar.gz", tarball(t, agent), strings.Repeat("0", 64), "download", "the checksum of the archive is wrong"},
		{"up", "a.tar.gz", tarball(t, agent, item{name: "../../../../escaped", text: "x"}), "", "download", "leads out"},
		{"up, inside", "a.tar.gz", tarball(t, agent, item{name: "a/../b", text: "x"}), "", "download", "leads out"},
		{"up in a zip", "a.zip", zipped(t, agent, item{name: "../../../../escaped", text: "x"}), "", "download", "leads out"},
		{"absolute", "a.tar.gz", tarball(t, agent, item{name: outside, text: "x"}), "", "download", "is no path"},
		{"of Windows", "a.zip", zipped(t, agent, item{name: `..\..\escaped`, text: "x"}), "", "download", "is no path"},
		{"of a drive", "a.tar.gz", tarball(t, agent, item{name: "C:/escaped", text: "x"}), "", "download", "is no path"},
		{"a link", "a.tar.gz", tarball(t, agent, item{name: "l", kind: tar.TypeSymlink, to: "/etc"}), "", "download", "is a link"},
		{"a hard link", "a.tar.gz", tarball(t, agent, item{name: "l", kind: tar.TypeLink, to: "agent"}), "", "download", "is a link"},
		{"a link in a zip", "a.zip", zipped(t, agent, item{name: "l", kind: tar.TypeSymlink, to: "/etc"}), "", "download", "is a link"},
		{"through a link", "a.tar.gz", tarball(t, item{name: "d", kind: tar.TypeSymlink, to: filepath.Dir(outside)}, item{name: "d/escaped", text: "x"}), "", "download", "is a link"},
		{"a pipe", "a.tar.gz", tarball(t, agent, item{name: "p", kind: tar.TypeFifo}), "", "download", "neither a file nor a directory"},
		{"twice", "a.tar.gz", tarball(t, agent, agent), "", "download", "comes twice"},
		{"half", "a.tar.gz", tarball(t, agent)[:60], "", "download", "unexpected EOF"},
		{"a page", "a.tar.gz", []byte("<html>Please sign in to the network</html>"), "", "download", "invalid header"},
		{"no zip", "a.zip", []byte("PK"), "", "download", "not a valid zip"},
		{"no program", "a.tar.gz", tarball(t, item{name: "other", text: script}), "", "verify", "there is no agent in the archive"},
		{"a directory for a program", "a.tar.gz", tarball(t, item{name: "agent/", kind: tar.TypeDir}), "", "verify", "there is no agent in the archive"},
		{"it ends", "a.tar.gz", tarball(t, item{name: "agent", text: packedAgent("1", "exit 7")}), "", "verify", "with code 7"},
		{"another protocol", "a.tar.gz", tarball(t, item{name: "agent", text: strings.ReplaceAll(script, `"protocolVersion":1`, `"protocolVersion":2`)}), "", "verify", "version 2 of the protocol"},
		{"it is not there", "nothing.tar.gz", nil, "", "resolve", "status 404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			version := "2.0." + string(rune('a'+n))
			if tc.data != nil {
				y.put(tc.archive, tc.data)
			}
			y.lists(version, tc.archive, "agent", tc.sum)
			_, err := y.Installer().Install(t.Context(), "packed", agents.InstallRequest{Reinstall: true}, nil)
			var failed *agents.InstallError
			if !errors.As(err, &failed) || failed.Step != tc.step || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("Install: got %v, want step %s and an error with %q", err, tc.step, tc.err)
			}
			if a := y.packed(); a.State != agents.Ready || a.Version != "1.0.0" {
				t.Errorf("after the failure: got %+v, want ready in 1.0.0", a)
			}
			y.mustBeOnly("packed", "1.0.0")
			if _, err := os.Lstat(outside); err == nil {
				t.Fatal("something was written outside")
			}
		})
	}
}

// mustBeOnly checks which directories an agent has in the store.
func (s *installFixture) mustBeOnly(id string, names ...string) {
	s.t.Helper()
	var found []string
	items, _ := os.ReadDir(filepath.Join(s.cfg.Dir, id))
	for _, item := range items {
		if item.IsDir() {
			found = append(found, item.Name())
		}
	}
	if !slices.Equal(found, names) {
		s.t.Errorf("there are %v, want %v", found, names)
	}
}

// TestArchivesAreNotFetchedWithoutHTTPS: an archive without https is not even requested.
func TestArchivesAreNotFetchedWithoutHTTPS(t *testing.T) {
	y := openArchiveFixture(t)
	for _, archive := range []string{
		"http://archives.example/a.tar.gz", "ftp://127.0.0.1/a.tar.gz", "file:///etc/passwd", "https://user:secret@archives.example/a.tar.gz", "https:///a.tar.gz",
		"https://archives.example/a.tar.xz", "https://archives.example/a.dmg",
	} {
		y.lists("1.0.0", archive, "agent", "")
		a := y.packed()
		if a.State != agents.Broken || a.Installable || !strings.Contains(a.Detail, "its distribution") {
			t.Errorf("archive %s: got %+v, want broken and not installable", archive, a)
		}
	}
	for _, cmd := range []string{"", ".", "../agent", "/bin/sh", `..\agent`, `C:\agent.exe`, "a/../../b"} {
		y.lists("1.0.0", "a.tar.gz", cmd, "")
		if a := y.packed(); a.State != agents.Broken || a.Installable {
			t.Errorf("cmd %q: got %+v, want broken and not installable", cmd, a)
		}
	}
	for _, version := range []string{"", "..", "../1", "v1", "1/2", "latest", strings.Repeat("1", 100)} {
		y.lists(version, "a.tar.gz", "agent", "")
		if a := y.packed(); a.State != agents.Broken || a.Installable {
			t.Errorf("version %q: got %+v, want broken and not installable", version, a)
		}
	}
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	if err := y.Installer().Begin("packed", "1.0.1"); !errors.Is(err, agents.ErrVersion) {
		t.Errorf("Begin(1.0.1), whose archive nobody knows: got %v, want ErrVersion", err)
	}
	y.says(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://archives.example/a.tar.gz", http.StatusFound)
		return true
	})
	if _, err := y.Installer().Install(t.Context(), "packed", agents.InstallRequest{}, nil); err == nil || !strings.Contains(err.Error(), "leads elsewhere") {
		t.Errorf("Install: got %v, want an error with \"leads elsewhere\"", err)
	}
}

func TestArchiveThatBreaksOff(t *testing.T) {
	y := openArchiveFixture(t)
	data := tarball(t, item{name: "agent", text: packedAgent("1.0.0", "")})
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	y.says(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(data)
		return true // net/http closes the connection
	})
	_, err := y.Installer().Install(t.Context(), "packed", agents.InstallRequest{}, nil)
	if err == nil || !strings.Contains(err.Error(), "broke off") || y.requests() != 2 {
		t.Errorf("archive that breaks off: got %v after %d requests, want that told after 2", err, y.requests())
	}
	y.mustBeOnly("packed")
	y.says(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "100000000000")
		return true
	})
	if _, err := y.Installer().Install(t.Context(), "packed", agents.InstallRequest{}, nil); err == nil || !strings.Contains(err.Error(), "are not taken") {
		t.Errorf("Install: got %v, want an error with \"are not taken\"", err)
	}
}

func TestArchiveDownloadIsCancelled(t *testing.T) {
	y := openArchiveFixture(t)
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	half := make(chan struct{}, 8)
	y.says(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(make([]byte, 50_000))
		_ = http.NewResponseController(w).Flush()
		half <- struct{}{}
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := y.Installer().Install(ctx, "packed", agents.InstallRequest{}, func(p agents.Progress) {
		if p.Step == agents.StepDownload && p.Bytes > 0 {
			if p.Bytes > 50_000 || p.Total != 100_000 {
				t.Errorf("progress: got %+v, want at most 50000 of 100000 bytes", p)
			}
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Install after cancel: got error %v, want %v", err, context.Canceled)
	}
	y.mustBeOnly("packed")
}

// TestRegistryBringsArchives: agents that only the registry knows are installed from the registry, and never looked up on PATH.
func TestRegistryBringsArchives(t *testing.T) {
	y := openArchiveFixture(t)
	data := tarball(t, item{name: "agent", text: packedAgent("1.0.0", "")})
	y.put("agent.tgz", data)
	const url = "https://r.example/registry.json"
	entry, err := json.Marshal(map[string]any{
		"id": "crate", "name": "Crate", "version": "1.0.0", "icon": y.srv.URL + "/crate.svg",
		"distribution": map[string]any{"binary": map[string]any{here(): map[string]any{"archive": y.srv.URL + "/agent.tgz", "cmd": "./agent", "sha256": sumOf(data)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := y.cfg
	cfg.CatalogueURL, cfg.WriteFile = url, store.WriteFile
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := `{"url":"` + url + `","document":` + document(string(entry)) + `}`
	if err := os.WriteFile(filepath.Join(cfg.Dir, "registry.json"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	c := agents.Open(cfg)
	defer closing(t, c)
	if a := all(t, c)["crate"]; a.State != agents.NotFound || a.Distribution != "binary" || a.Editable || a.Pinned != "1.0.0" {
		t.Errorf("crate: got %+v, want not_found, binary, not editable, pinned to 1.0.0", a)
	}
	if n := y.requests(); n != 0 {
		t.Errorf("%d requests before anybody wanted anything: icons are not fetched", n)
	}
	if _, err := c.Installer().Install(t.Context(), "crate", agents.InstallRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	if a := get(t, c, "crate"); a.State != agents.Ready || a.Version != "1.0.0" || y.requests() != 2 {
		t.Errorf("crate: got %+v after %d requests, want 1.0.0 ready after 2", a, y.requests())
	}
}

// TestInstallIgnoresBannerOfAgent: lines on stdout that are no messages are ignored, before and after the answer.
func TestInstallIgnoresBannerOfAgent(t *testing.T) {
	y := openArchiveFixture(t)
	y.put("a.tar.gz", tarball(t, item{name: "agent", text: packedAgent("1.0.0", "echo 'Welcome to the agent!'; echo '{\"not\": \"a message\"}'; echo")}))
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	y.install("packed", agents.InstallRequest{})
	r, err := y.Test(t.Context(), "packed")
	if err != nil || !r.Healthy() || !slices.Equal(codesOf(r), []string{"banner"}) || r.Advice[0].Params["text"] != "Welcome to the agent!" {
		t.Errorf("Test(packed): got %+v, %v, want healthy with the advice banner", r, err)
	}
}

// The server accepts the connection and never sends a byte, not even its certificate.
func TestArchiveFromAServerThatIsSilent(t *testing.T) {
	y := openArchiveFixture(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := y.cfg
	cfg.Patience = 200 * time.Millisecond
	c := agents.Open(cfg)
	defer closing(t, c)
	y.lists("1.0.0", "https://"+silent.Addr().String()+"/agent.tar.gz", "agent", "")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	_, err = c.Installer().Install(ctx, "packed", agents.InstallRequest{}, nil)
	failed, ok := errors.AsType[*agents.InstallError](err)
	if !ok || failed.Step != agents.StepResolve || !strings.Contains(failed.Error(), "no answer") {
		t.Errorf("Install: got %v, want step resolve and \"no answer\"", err)
	}
}

// Two agents may use the same id in turn: an installation of the first is never started as the second.
func TestInstallOfOtherAgentUnderSameID(t *testing.T) {
	y := openArchiveFixture(t)
	y.reg.publishClaude("0.101.0", "")
	y.install("claude", agents.InstallRequest{})
	y.put("fork", []byte(packedAgent("7.0.0", "")))
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"id": "claude", "override": true, "version": "7.0.0", "distribution": map[string]any{"binary": map[string]any{
			here(): map[string]any{"archive": y.srv.URL + "/fork", "cmd": "fork"},
		}},
	}}})
	if err == nil {
		err = os.WriteFile(y.cfg.File, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := get(t, y.Catalogue, "claude"); a.State != agents.NotFound || a.Previous != "" {
		t.Errorf("before: got %+v, want it not found", a)
	}
	done := y.install("claude", agents.InstallRequest{})
	if done.AlreadyInstalled || !strings.HasSuffix(done.Artifacts[0].Path, "fork") {
		t.Errorf("Install(claude): got %+v, want a new installation of fork", done)
	}
	if a := get(t, y.Catalogue, "claude"); a.State != agents.Ready || a.Version != "7.0.0" || a.Previous != "" {
		t.Errorf("installed: got %+v, want 7.0.0 ready, nothing to go back to", a)
	}
	if err := y.Installer().Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("Rollback: got %v, want ErrNoPrevious", err)
	}
	if err := os.Remove(y.cfg.File); err != nil {
		t.Fatal(err)
	}
	if a := get(t, y.Catalogue, "claude"); a.State != agents.NotFound {
		t.Errorf("after its definition is gone: got %+v, want it not found", a)
	}
	if done := y.install("claude", agents.InstallRequest{}); done.AlreadyInstalled || y.current().Version != "0.101.0" {
		t.Errorf("Install(claude): got %+v, want a new installation of 0.101.0", done)
	}
}

// Proxy variables of a person's shell count for archives as for npm.
func TestArchiveThroughTheProxyOfTheShell(t *testing.T) {
	asked := make(chan string, 8)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	y := openArchiveFixture(t)
	cfg := y.cfg
	cfg.Environ = append(slices.Clone(cfg.Environ), "https_proxy="+proxy.URL, "NO_PROXY=other.invalid")
	c := agents.Open(cfg)
	defer closing(t, c)
	for host, want := range map[string]string{"archives.invalid": "CONNECT archives.invalid:443", "other.invalid": ""} {
		y.lists("1.0.0", "https://"+host+"/agent.tar.gz", "agent", "")
		if _, err := c.Installer().Install(t.Context(), "packed", agents.InstallRequest{}, nil); !errors.Is(err, agents.ErrInstall) {
			t.Fatal(err)
		}
		got := ""
		select {
		case got = <-asked:
		default:
		}
		if got != want {
			t.Errorf("%s: got %q at the proxy, want %q", host, got, want)
		}
	}
}
