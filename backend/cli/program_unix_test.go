//go:build !windows

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/session"
)

func TestACommandOutlastsTheTurnsOfOthers(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	var list []any
	for _, id := range []string{"a", "b"} {
		gate := filepath.Join(dir, id)
		if err := syscall.Mkfifo(gate, 0o600); err != nil {
			t.Fatal(err)
		}
		script := `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
			read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
			read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"begun"}}}}'
			read open <` + gate + `; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null`
		list = append(list, map[string]any{"id": id, "command": "/bin/sh", "args": []string{"-c", script}})
	}
	file, _ := json.Marshal(map[string]any{"agents": list})
	if err := os.WriteFile(filepath.Join(dir, "config", "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(id string) *program {
		p := start(t, dir, "prompt", "--dir", work, "--agent", id, "go")
		if _, err := p.stdout.ReadByte(); err != nil {
			t.Fatalf("%v %s", err, p.stderr)
		}
		return p
	}
	open := func(id string) {
		if err := os.WriteFile(filepath.Join(dir, id), []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := begin("a")
	b := begin("b")
	open("a")
	if out, _ := a.stdout.ReadString('\n'); out != "egun\n" {
		t.Errorf("%q", out)
	}
	open("b")
	for id, p := range map[string]*program{"a": a, "b": b} {
		if _, code := p.end(); code != 0 {
			t.Errorf("%s: exit %d\n%s", id, code, p.stderr)
		}
	}
}

// Deskhand and its watchdog are killed, and an agent does not mind: ps names it, and the next start ends it.
func TestPsNamesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ownAgents(t, dir, map[string]string{"stays": "trap '' HUP TERM; while :; do /bin/sleep 1; done"})
	srv, _ := server(t, dir)
	onSocket(t, dir).post("/client/sessions", session.New{Agent: "stays", Cwd: dir}, nil)
	pid := 0
	for end := time.Now().Add(20 * time.Second); pid == 0; {
		for _, item := range listRunning(t, dir).Items {
			if item.Owner == "session" { // the watchdog may be there before the agent
				pid = item.PID
			}
		}
		if time.Now().After(end) {
			t.Fatal("the agent does not start")
		}
	}
	t.Cleanup(func() { // should the test fail, nobody else ends it
		if t.Failed() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	for _, dog := range processes(t, srv.Process.Pid, "watchdog") {
		if err := syscall.Kill(dog, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = srv.end()
	out, stderr, code := run(t, dir, "ps")
	if code != 1 || out != "" || !strings.HasPrefix(stderr, "deskhand: no Deskhand runs on "+dir+". The last one has left these processes") ||
		!strings.Contains(stderr, "\n  "+strconv.Itoa(pid)+" sh, for ") {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "agents.ledger")); err != nil {
		t.Error("the ledger is needed for the next start: ", err)
	}
	server(t, dir)
	gone(t, pid)
}
