package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// doctored decodes the fields of deskhand doctor --json that scripts rely on.
type doctored struct {
	Items []struct {
		Agent struct{ ID, State string }
		Steps []struct {
			Step string
			OK   bool
			Ms   *int64
		}
		Stderr   string
		ExitCode *int
		Advice   []struct{ Code string }
	}
}

// ownAgents writes an agents.json whose agents are shell scripts.
func ownAgents(t *testing.T, dir string, scripts map[string]string) {
	t.Helper()
	var list []map[string]any
	for id, script := range scripts {
		list = append(list, map[string]any{"id": id, "name": "Agent " + id, "command": "/bin/sh", "args": []string{"-c", script}})
	}
	data, err := json.Marshal(map[string]any{"agents": list})
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

// TestBrokenAgentsFileIsNamed: every command that reads a broken agents.json names the file and the line.
func TestBrokenAgentsFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config", "agents.json")
	if err := os.WriteFile(file, []byte("{\n \"agents\": [\n  {\"id\": \"x\", \"command\": \"true\",}\n ]\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"prompt", "hi", "--agent", "x"},
		{"prompt", "hi"},
		{"doctor"},
		{"doctor", "x"},
		{"doctor", "mock"},
		{"login", "x"},
		{"logout", "x"},
		{"agents"},
		{"agents", "install", "x"},
		{"agents", "update"},
	} {
		out, stderr, _ := run(t, dir, args...)
		if all := out + stderr; !strings.Contains(all, file+", line 3: ") {
			t.Errorf("deskhand %s: got %q, want %s and its line", strings.Join(args, " "), all, file)
		}
	}
	p, _ := server(t, dir)
	p.says(file + ", line 3: ")
}

func TestDoctorReportsAgents(t *testing.T) {
	t.Run("the demo agent, by itself", func(t *testing.T) {
		out, stderr, code := run(t, t.TempDir(), "doctor", "mock")
		for _, want := range []string{"Demo agent (mock): ready", "program", "initialize ok ", "session    ok "} {
			if !strings.Contains(out, want) {
				t.Errorf("deskhand doctor mock: got\n%s\nwant %q in it", out, want)
			}
		}
		if code != 0 || stderr != "" {
			t.Errorf("deskhand doctor mock: got exit %d, stderr %q; want 0 and nothing", code, stderr)
		}
	})
	t.Run("through the running server, as JSON", func(t *testing.T) {
		dir := t.TempDir()
		server(t, dir)
		out, stderr, code := run(t, dir, "doctor", "mock", "--json")
		var d doctored
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("Unmarshal: got error %v, stdout %s, want no error", err, out)
		}
		if code != 0 || stderr != "" || len(d.Items) != 1 || d.Items[0].Agent.ID != "mock" || len(d.Items[0].Steps) != 4 || d.Items[0].Steps[3].Ms == nil {
			t.Errorf("deskhand doctor mock --json: got exit %d, stderr %q, %s; want 0 and mock with 4 steps, the last one timed", code, stderr, out)
		}
	})
	t.Run("all that are found", func(t *testing.T) {
		dir := t.TempDir()
		ownAgents(t, dir, map[string]string{"dies": "echo no licence >&2; exit 7"})
		out, stderr, code := run(t, dir, "doctor")
		for _, want := range []string{"Demo agent (mock): ready", "Agent dies (dies): broken", "with code 7", "no licence", "to do      its process ended"} {
			if !strings.Contains(out, want) {
				t.Errorf("deskhand doctor: got\n%s\nwant %q in it", out, want)
			}
		}
		if strings.Contains(out, "(claude)") || code != 1 || !strings.Contains(stderr, "1 of 2: testing mock") || !strings.Contains(stderr, "2 of 2: testing dies") || strings.Contains(stderr, "deskhand:") {
			t.Errorf("deskhand doctor: got exit %d, stderr %q, %s; want 1, mock and dies tested, claude not", code, stderr, out)
		}
	})
	t.Run("one that needs a login", func(t *testing.T) {
		dir := t.TempDir()
		ownAgents(t, dir, map[string]string{
			"shy": `read a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'; read a; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"log in first"}}'; read a`,
		})
		out, _, code := run(t, dir, "doctor", "shy", "--json")
		var d doctored
		if err := json.Unmarshal([]byte(out), &d); err != nil || code != 1 || d.Items[0].Agent.State != "needs_login" || d.Items[0].Advice[0].Code != "login" {
			t.Errorf("deskhand doctor shy --json: got exit %d, %v: %s; want 1, needs_login and the advice to log in", code, err, out)
		}
	})
	t.Run("one that is not there", func(t *testing.T) {
		out, _, code := run(t, t.TempDir(), "doctor", "claude")
		if code != 1 || !strings.Contains(out, "(claude): not found") || !strings.Contains(out, "to do") {
			t.Errorf("deskhand doctor claude: got exit %d, %s; want 1, not found, and what to do", code, out)
		}
		_, stderr, code := run(t, t.TempDir(), "doctor", "nobody")
		if code != 2 || !strings.Contains(stderr, `there is no agent "nobody"; `) {
			t.Errorf("deskhand doctor nobody: got exit %d, stderr %q; want 2 and that there is none", code, stderr)
		}
	})
}

func TestCtrlCEndsTheDoctor(t *testing.T) {
	for _, where := range []string{"by itself", "through the server"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "pid")
			ownAgents(t, dir, map[string]string{"mute": fmt.Sprintf("echo $$ > %s; while read a; do :; done", file)})
			if where == "through the server" {
				server(t, dir)
			}
			p := start(t, dir, "doctor", "mute")
			var data []byte
			for deadline := time.Now().Add(testkit.Limit); len(data) == 0; time.Sleep(10 * time.Millisecond) {
				if data, _ = os.ReadFile(file); len(data) == 0 && time.Now().After(deadline) {
					t.Fatal("the agent does not start: ", p.stderr)
				}
			}
			if err := p.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			out, code := p.end()
			if code != 4 || out != "" || p.stderr.String() != "deskhand: interrupted\n" {
				t.Errorf("deskhand doctor after Ctrl-C: got exit %d, stdout %q, stderr %q; want 4, nothing, interrupted", code, out, p.stderr)
			}
			var pid int
			if _, err := fmt.Sscan(string(data), &pid); err != nil {
				t.Fatal(err)
			}
			gone(t, pid)
		})
	}
}
