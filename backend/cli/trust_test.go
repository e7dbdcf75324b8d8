package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/testkit"
)

// TestPromptStartsNothingThatNobodyApproved: a directory's MCP server does not start without a person's approval, and the turn goes on.
func TestPromptStartsNothingThatNobodyApproved(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), filepath.Join(t.TempDir(), "work\u202e")
	self := testkit.Deskhand(t)
	folder := filepath.Join(work, ".sandbox-agent", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	// The server need not speak MCP: the agent's report shows that the program was started.
	file, _ := json.Marshal(map[string]any{"srv\u202e": map[string]any{"type": "local", "command": []string{self, "--version"}}})
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	prompt := func(more ...string) (string, string, int) {
		t.Helper()
		return run(t, dir, append([]string{"prompt", "--agent", "mock", "--dir", work}, more...)...)
	}
	for _, args := range [][]string{{"mcp"}, {"--approve", "never", "mcp"}, {"--approve", "ask", "mcp"}} { // standard input is at its end
		stdout, stderr, code := prompt(args...)
		if code != 0 || strings.Contains(stdout, "srv") || !strings.Contains(stderr, `started without what is not approved here: mcp "srv\u202e"`) {
			t.Errorf("deskhand prompt %v: got exit %d\n%s\n%s\nwant 0, started without the server", args, code, stdout, stderr)
		}
	}
	stdout, stderr, code := prompt("--approve", "once", "mcp")
	if code != 0 || !strings.Contains(stdout, "srv") || !strings.Contains(stderr, "allowed this once: mcp") {
		t.Errorf("deskhand prompt --approve once: got exit %d\n%s\n%s\nwant 0 and the server's tool", code, stdout, stderr)
	}
	if stdout, _, _ := prompt("mcp"); strings.Contains(stdout, "srv") {
		t.Errorf("deskhand prompt after once: got %s, want no tool of the server", stdout)
	}
	answer := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(answer, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := startWith(t, dir, answer, "prompt", "--agent", "mock", "--dir", work, "--approve", "ask", "mcp")
	stdout, code = asked.end()
	if code != 0 || !strings.Contains(stdout, "srv") || !strings.Contains(asked.stderr.String(), "--version") || !strings.Contains(asked.stderr.String(), `work\u202e" brings what starts`) || strings.Contains(asked.stderr.String(), "\u202e") {
		t.Errorf("deskhand prompt --approve ask: got exit %d\n%s\n%s\nwant 0, the server's tool, and its command shown harmlessly", code, stdout, asked.stderr)
	}
	if stdout, _, _ := prompt("mcp"); !strings.Contains(stdout, "srv") {
		t.Errorf("deskhand prompt after an approval: got %s, want the server's tool", stdout)
	}
}

// TestTrustOfFilesThatAgentReads: an agent that reads a directory's executables by itself does not start without an approval, and deskhand trust
// shows the changes.
func TestTrustOfFilesThatAgentReads(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	self := agenttest.Program(t)
	write := func(at, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, _ := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "mine", "command": self, "args": []string{"demo-agent"}}}})
	write(filepath.Join(dir, "config", "agents.json"), string(file))
	write(filepath.Join(work, ".git", "HEAD"), "ref: refs/heads/main\n")
	script := filepath.Join(work, ".claude", "hooks", "x\u202e.sh")
	write(script, "echo one\necho two\n")
	says := func(args ...string) (text string, code int) {
		t.Helper()
		stdout, stderr, code := run(t, dir, args...)
		if text = stdout + stderr; strings.Contains(text, "\u202e") {
			t.Errorf("%v: got %q, want without \"\\u202e\"", args, text)
		}
		return text, code
	}
	step := func(code int, want string, args ...string) {
		t.Helper()
		if text, got := says(args...); got != code || !strings.Contains(text, want) {
			t.Errorf("deskhand prompt %v: got exit %d\n%s\nwant %d and %q", args, got, text, code, want)
		}
	}
	prompt := []string{"prompt", "--agent", "mine", "--dir", work, "mcp"}
	step(5, `not started, for the agent reads by itself what is not approved here: script ".claude/hooks/x\u202e.sh"`, prompt...)
	step(0, "allowed this once: script", append(prompt, "--approve", "once")...)
	step(5, "not started", prompt...)
	step(0, "new    script  ", "trust", work)
	step(0, "    echo one\n    echo two", "trust", "show", "--dir", work)
	step(2, "say what to approve", "trust", "approve", "--dir", work)
	step(2, "nothing here has the name", "trust", "approve", "--dir", work, "0000")
	step(0, "approved: script", "trust", "approve", "--dir", work, "--all")
	step(0, "Tools of", prompt...)
	write(script, "echo one\necho three\n")
	step(0, "changed  script", "trust", work)
	step(0, "      echo one\n    - echo two\n    + echo three\n", "trust", "show", "--dir", work)
	step(5, "not started", prompt...)
	step(0, work, "trust", "list", "--all")
	step(2, "nothing with the name", "trust", "revoke", "--dir", work, "none")
	step(2, "say what to revoke", "trust", "revoke", "--dir", work, "--all", "x")
	step(0, "revoked: script", "trust", "revoke", "--dir", work, ".claude/hooks/x\u202e.sh")
	step(0, "", "trust", "revoke", "--dir", work, "--all")
	if text, _ := says("trust", "list", "--all"); strings.Contains(text, work) {
		t.Errorf(`says("trust", "list", "--all"): got %s, want without %v`, text, work)
	}
	step(2, "does not exist", "trust", filepath.Join(work, "none"))
}

// An MCP server of all projects that was written into the file is approved once, and comes with the conversations of every directory.
func TestTrustOfAllProjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, _ := json.Marshal(map[string]any{"srv": map[string]any{"type": "local", "command": []string{testkit.Deskhand(t), "--version"}}})
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "mcp.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", t.TempDir(), "mcp")
	if code != 0 || strings.Contains(stdout, "srv") || !strings.Contains(stderr, "started without what is not approved here: mcp srv") {
		t.Errorf("deskhand prompt: got exit %d\n%s\n%s\nwant 0, started without the server", code, stdout, stderr)
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"trust", "list", "--all-projects"}, "srv (all projects)"},
		{[]string{"trust", "show", "--all-projects"}, "--version"},
		{[]string{"trust", "approve", "--all-projects", "srv"}, "approved: mcp srv"},
		{[]string{"trust", "list", "--all"}, "(all projects)"},
	} {
		if stdout, stderr, code := run(t, dir, step.args...); code != 0 || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("deskhand %v: got exit %d\n%s\n%s\nwant 0 and %q", step.args, code, stdout, stderr, step.want)
		}
	}
	for range 2 {
		if stdout, _, code := run(t, dir, "prompt", "--agent", "mock", "--dir", t.TempDir(), "mcp"); code != 0 || !strings.Contains(stdout, "srv") {
			t.Errorf("deskhand prompt after the approval: got exit %d\n%s\nwant the server's tool", code, stdout)
		}
	}
	if stdout, stderr, code := run(t, dir, "trust", "revoke", "--all-projects", "srv"); code != 0 || !strings.Contains(stderr, "revoked: mcp srv") {
		t.Errorf("deskhand trust revoke: got exit %d\n%s\n%s\nwant 0, revoked", code, stdout, stderr)
	}
}
