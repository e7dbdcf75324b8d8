//go:build unix

package trust_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPipesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := project(t, tree{".claude/hooks/x": "", ".mcp.json": `{"a":{"command":"./pipe.sh"}}`})
	for _, name := range []string{".claude/settings.json", ".claude/hooks/run.sh", "pipe.sh"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	found := find(t, claude, dir)
	is(t, found, "agent_config .claude/hooks/run.sh", "agent_config .claude/settings.json", "agent_config .mcp.json")
	if !strings.Contains(found[0].Detail, "a pipe") {
		t.Errorf("detail of the pipe: got %s, want a pipe", found[0].Detail)
	}
}
