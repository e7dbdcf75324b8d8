//go:build !windows

package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
)

// depot serves the archives of an agent, which is the demo agent of the tests.
type depot struct {
	*httptest.Server

	archive []byte
	mu      sync.Mutex    // protects held
	held    chan struct{} // while held is open, a download stops half-way
}

func openDepot(t *testing.T) *depot {
	t.Helper()
	self := agenttest.Program(t)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	script := fmt.Appendf(nil, "#!/bin/sh\nexec %q demo-agent\n", self)
	for _, file := range []struct {
		name string
		data []byte
	}{{"agent", script}, {"padding", bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}} {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o755, Size: int64(len(file.data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(file.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	d := &depot{archive: b.Bytes()}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(d.archive)))
		if r.Method == http.MethodHead {
			return
		}
		half := len(d.archive) / 2
		_, _ = w.Write(d.archive[:half])
		w.(http.Flusher).Flush()
		d.mu.Lock()
		held := d.held
		d.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = w.Write(d.archive[half:])
	}))
	t.Cleanup(d.Close)
	return d
}

// hold stops downloads half-way until release is called.
func (d *depot) hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := make(chan struct{})
	d.held = held
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held = nil
		close(held)
	}
}

// offer writes an agents.json with the agent packed in the given version.
func (d *depot) offer(t *testing.T, dir, version string) {
	t.Helper()
	binary := map[string]any{}
	for _, system := range []string{"linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64"} {
		binary[system] = map[string]any{"archive": d.URL + "/releases/agent-" + version + ".tar.gz", "cmd": "./agent"}
	}
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"id": "packed", "name": "Packed", "version": version, "distribution": map[string]any{"binary": binary},
	}}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "config"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config", "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// packed is the agent packed in the output of deskhand agents --json.
func packed(t *testing.T, dir string) agents.Agent {
	t.Helper()
	out, stderr, code := run(t, dir, "agents", "--json")
	var list struct{ Items []agents.Agent }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("deskhand agents --json: got exit %d, %v\n%s\n%s\nwant 0 and JSON", code, err, out, stderr)
	}
	for _, a := range list.Items {
		if a.ID == "packed" {
			return a
		}
	}
	t.Fatalf("deskhand agents --json: got\n%s\nwant an agent packed", out)
	return agents.Agent{}
}

// leftOver lists the version directories of an agent.
func leftOver(t *testing.T, dir string) (names []string) {
	t.Helper()
	items, err := os.ReadDir(filepath.Join(dir, "agents", "packed"))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if item.IsDir() {
			names = append(names, item.Name())
		}
	}
	return names
}

func TestAgentsAreInstalledUpdatedAndRemoved(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"by itself", "through the server"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir, d := t.TempDir(), openDepot(t)
			d.offer(t, dir, "1.0.0")
			if where == "through the server" {
				server(t, dir)
			}
			for _, tc := range []struct {
				args string
				code int
				want string // expected on either stream
			}{
				{"agents", 0, "packed    Packed       not installed"},
				{"agents install packed", 2, "--yes"},
				{"doctor packed", 1, "install it with `deskhand agents install packed`"},
				{"agents install nobody --yes", 2, `there is no agent "nobody"`},
				{"agents install mock --yes", 1, "part of Deskhand"},
				{"agents remove packed --yes", 2, "was not installed by Deskhand"},
				{"agents install packed --yes --version 7.0.0", 2, "7.0.0"},
				{"agents install packed --yes", 0, "Packed 1.0.0 is installed.\n"},
				{"agents install packed --yes", 0, "is installed already"},
				{"agents update --yes", 0, "No agent"},
				{"agents rollback packed --yes", 1, "no version from before"},
			} {
				if out, stderr, code := run(t, dir, strings.Fields(tc.args)...); code != tc.code || !strings.Contains(out+stderr, tc.want) {
					t.Errorf("deskhand %s: exit %d, want %d and %q\n%s\n%s", tc.args, code, tc.code, tc.want, out, stderr)
				}
			}
			if where == "by itself" { // a server's agent would still run when the version is removed
				if _, stderr, code := run(t, dir, "prompt", "--agent", "packed", "silent"); code != 0 {
					t.Errorf("prompt: exit %d, want 0\n%s", code, stderr)
				}
			}
			d.offer(t, dir, "1.1.0")
			if a := packed(t, dir); a.Version != "1.0.0" || a.Pinned != "1.1.0" || !a.HasUpdate() {
				t.Errorf("before the update: got version %q, pinned %q, want 1.0.0 and 1.1.0", a.Version, a.Pinned)
			}
			if out, stderr, code := run(t, dir, "agents", "update", "--yes", "--json"); code != 0 || !strings.Contains(out, `"version": "1.1.0"`) || !strings.Contains(stderr, "· downloading") {
				t.Errorf("deskhand agents update: got exit %d\n%s\n%s\nwant 0 and 1.1.0, its download told", code, out, stderr)
			}
			if _, stderr, code := run(t, dir, "agents", "rollback", "packed", "--yes"); code != 0 || packed(t, dir).Version != "1.0.0" {
				t.Errorf("agents rollback: exit %d, version %q, want 1.0.0\n%s", code, packed(t, dir).Version, stderr)
			}
			if _, stderr, code := run(t, dir, "agents", "remove", "packed", "--yes"); code != 0 || packed(t, dir).IsFound() || len(leftOver(t, dir)) > 0 {
				t.Errorf("deskhand agents remove: got exit %d, left %v\n%s\nwant 0 and nothing left", code, leftOver(t, dir), stderr)
			}
		})
	}
}

func TestCtrlCEndsAnInstallation(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"by itself", "through the server"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir, d := t.TempDir(), openDepot(t)
			d.offer(t, dir, "1.0.0")
			defer d.hold()()
			if where == "through the server" {
				server(t, dir)
			}
			p := start(t, dir, "agents", "install", "packed", "--yes")
			p.says("downloading")
			if err := p.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_, code := p.end()
			if stderr := p.stderr.String(); code != 4 || !strings.Contains(stderr, "nothing of it is left") {
				t.Errorf("deskhand agents install after Ctrl-C: got exit %d\n%s\nwant 4, and nothing left", code, stderr)
			}
			if left := leftOver(t, dir); len(left) > 0 {
				t.Errorf("left of the installation: got %v, want nothing", left)
			}
			if a := packed(t, dir); a.IsFound() || a.Installing != nil {
				t.Errorf("the agent is %s, installing %v, want not_found and none", a.State, a.Installing)
			}
		})
	}
}

// TestCommandsShareAnInstallation: the second command waits for the installation that the first command has begun in its own process.
func TestCommandsShareAnInstallation(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	release := d.hold()
	first := start(t, dir, "agents", "install", "packed", "--yes")
	first.says("downloading")
	second := start(t, dir, "agents", "install", "packed", "--yes")
	second.says("is being installed already")
	if err := second.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, code := second.end(); code != 4 {
		t.Errorf("the second that is interrupted: exit %d, want 4\n%s", code, second.stderr)
	}
	third := start(t, dir, "agents", "install", "packed", "--yes")
	third.says("is being installed already")
	release()
	for name, p := range map[string]*program{"first": first, "third": third} {
		if _, code := p.end(); code != 0 || !strings.Contains(p.stderr.String(), "Packed 1.0.0 is installed.") {
			t.Errorf("the %s: exit %d, want 0\n%s", name, code, p.stderr)
		}
	}
}

// TestInstallationOfAnotherIsReportedAfterItsProcessEnded: a command that waits for another command's installation reports it as installed,
// even when the process of that installation ends before the command has read the outcome.
func TestInstallationOfAnotherIsReportedAfterItsProcessEnded(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	release := d.hold()
	first := start(t, dir, "agents", "install", "packed", "--yes")
	first.says("downloading")
	waiting := start(t, dir, "agents", "install", "packed", "--yes")
	waiting.says("is being installed already")
	if err := waiting.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("SIGSTOP: got error %v, want none", err)
	}
	release()
	if _, code := first.end(); code != 0 {
		t.Errorf("the first: got exit %d, want 0\n%s", code, first.stderr)
	}
	if err := waiting.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatalf("SIGCONT: got error %v, want none", err)
	}
	if _, code := waiting.end(); code != 0 || !strings.Contains(waiting.stderr.String(), "Packed 1.0.0 is installed.") {
		t.Errorf("the waiting command: got exit %d, want 0 and %q\n%s", code, "Packed 1.0.0 is installed.", waiting.stderr)
	}
}

// TestInstallationOutlastsTheCommandItRunsIn: the process of an ended turn finishes the installation that another command began there.
func TestInstallationOutlastsTheCommandItRunsIn(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	release := d.hold()
	host := start(t, dir, "prompt", "--agent", "mock", "slow")
	if _, err := host.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, host.stderr %s, want no error", err, host.stderr)
	}
	p := start(t, dir, "agents", "install", "packed", "--yes")
	p.says("downloading")
	if err := host.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	host.says("being installed here for another command")
	release()
	if _, code := p.end(); code != 0 {
		t.Errorf("the installation: exit %d, want 0\n%s", code, p.stderr)
	}
	if _, code := host.end(); code != 4 {
		t.Errorf("the turn: exit %d, want 4\n%s", code, host.stderr)
	}
}

func TestInstallIsAskedForAtATerminal(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	screen, code := atTerminal(t, dir, "[y/N]", "n\n", "agents", "install", "packed")
	if code != 4 || !strings.Contains(screen, "MB") || !strings.Contains(screen, "nothing was installed") {
		t.Errorf("exit %d, want 4, the size, and what became of it\n%s", code, screen)
	}
	if screen, code = atTerminal(t, dir, "[y/N]", "y\n", "agents", "install", "packed"); code != 0 || !strings.Contains(screen, "Packed 1.0.0 is installed.") {
		t.Errorf("exit %d, want 0\n%s", code, screen)
	}
}

func TestPromptInstallsWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	_, stderr, code := run(t, dir, "prompt", "--agent", "packed", "--dir", t.TempDir(), "silent")
	if code != 7 || !strings.Contains(stderr, "deskhand agents install packed") || len(begun(t, dir)) > 0 {
		t.Errorf("without --install: exit %d, want 7, the command, and no conversation\n%s", code, stderr)
	}
	screen, code := atTerminal(t, dir, "[y/N]", "n\n", "prompt", "--agent", "packed", "silent")
	if code != 4 || !strings.Contains(screen, "nothing was installed") {
		t.Errorf("at a terminal, with no: exit %d, want 4\n%s", code, screen)
	}
	if _, stderr, code = run(t, dir, "prompt", "--install", "--agent", "packed", "--dir", t.TempDir(), "silent"); code != 0 || !strings.Contains(stderr, "Packed 1.0.0 is installed.") {
		t.Errorf("with --install: exit %d, want 0\n%s", code, stderr)
	}
	if _, stderr, code = run(t, dir, "prompt", "--install", "--dir", t.TempDir(), "silent"); code != 0 || strings.Contains(stderr, "is installed") {
		t.Errorf("with --install, once it is installed: exit %d, want 0 and no installation\n%s", code, stderr)
	}
}

func TestPromptOffersAgentsInAFreshHome(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	screen, code := atTerminal(t, dir, "none of them", "\n", "prompt", "silent")
	if code != 7 || !strings.Contains(screen, "Claude Code, not installed (") || !strings.Contains(screen, "Packed, not installed") {
		t.Errorf("nothing chosen: exit %d, want 7 and the list\n%s", code, screen)
	}
	if screen, code = atTerminal(t, dir, "none of them", "1\n", "prompt", "silent"); code != 0 {
		t.Errorf("the demo agent chosen: exit %d, want 0\n%s", code, screen)
	}
	if _, stderr, code := run(t, dir, "prompt", "--install", "silent"); code != 2 || !strings.Contains(stderr, "claude") {
		t.Errorf("--install without an agent: exit %d, want 2 and their names\n%s", code, stderr)
	}
	number := 0
	for n, line := range strings.Split(screen, "\n") {
		if strings.Contains(line, "Packed, not installed") {
			number = n
		}
	}
	if screen, code = atTerminal(t, dir, "none of them", fmt.Sprint(number), "prompt", "silent"); code != 0 || !strings.Contains(screen, "Packed 1.0.0 is installed.") {
		t.Errorf("the agent chosen: exit %d, want 0\n%s", code, screen)
	}
}

func TestCtrlCEndsTheInstallationOfAPrompt(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), openDepot(t)
	d.offer(t, dir, "1.0.0")
	defer d.hold()()
	p := start(t, dir, "prompt", "--install", "--agent", "packed", "--dir", t.TempDir(), "silent")
	p.says("downloading")
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 4 || len(leftOver(t, dir)) > 0 || len(begun(t, dir)) > 0 {
		t.Errorf("exit %d, want 4; left %v, conversations %v\n%s", code, leftOver(t, dir), begun(t, dir), p.stderr)
	}
}
