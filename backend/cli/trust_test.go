package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory that brings an MCP server: without a person it does not start, and the turn goes on.
func TestPromptStartsNothingThatNobodyApproved(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), filepath.Join(t.TempDir(), "work\u202e")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(work, ".sandbox-agent", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	// A server that is none will do: that it was started shows in what the agent says of it.
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
		if code != 0 || !strings.Contains(stdout, "no MCP servers") || !strings.Contains(stderr, `started without what is not approved here: mcp "srv\u202e"`) {
			t.Errorf("%v: exit %d\n%s\n%s", args, code, stdout, stderr)
		}
	}
	stdout, stderr, code := prompt("--approve", "once", "mcp")
	if code != 0 || !strings.Contains(stdout, "srv") || strings.Contains(stdout, "no MCP servers") || !strings.Contains(stderr, "allowed this once: mcp") {
		t.Errorf("once: exit %d\n%s\n%s", code, stdout, stderr)
	}
	if stdout, _, _ := prompt("mcp"); !strings.Contains(stdout, "no MCP servers") {
		t.Errorf("once was kept: %s", stdout)
	}
	answer := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(answer, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := startWith(t, dir, answer, "prompt", "--agent", "mock", "--dir", work, "--approve", "ask", "mcp")
	stdout, code = asked.end()
	if code != 0 || strings.Contains(stdout, "no MCP servers") || !strings.Contains(asked.stderr.String(), "--version") || !strings.Contains(asked.stderr.String(), `work\u202e" brings what starts`) || strings.Contains(asked.stderr.String(), "\u202e") {
		t.Errorf("asked: exit %d\n%s\n%s", code, stdout, asked.stderr)
	}
	if stdout, _, _ := prompt("mcp"); strings.Contains(stdout, "no MCP servers") {
		t.Errorf("the approval was not kept: %s", stdout)
	}
}
