package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/testkit"
)

// TestExportOfConversationAsTestCase converses, exports the conversation, and replays the recording as an agent of agents.json, with and without a
// fault.
func TestExportOfConversationAsTestCase(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	said, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "thought")
	if code != 0 {
		t.Fatal(code, stderr)
	}
	file := filepath.Join(work, "case.zip")
	if _, stderr, code := run(t, dir, "sessions", "export", "last", "--format", "recording", "-o", file); code != 0 {
		t.Fatal(code, stderr)
	}
	self := testkit.Deskhand(t)
	entry := func(id string, flags ...string) map[string]any {
		return map[string]any{"id": id, "command": self, "args": append([]string{"agent", "replay", file, "--speed", "0"}, flags...)}
	}
	again := t.TempDir() // a data directory that has never seen the conversation
	data, err := json.Marshal(map[string]any{"agents": []any{entry("again"), entry("crashes", "--fault", "stderr@12", "--fault", "exit@12=9")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(again, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(again, "config", "agents.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, stderr, code := run(t, again, "prompt", "--agent", "again", "--dir", work, "whatever"); code != 0 || text != said {
		t.Errorf("%d %s\n%s\nwant\n%s", code, stderr, text, said)
	}
	if _, stderr, code := run(t, again, "prompt", "--agent", "crashes", "--dir", work, "whatever"); code != 1 || !strings.Contains(stderr, "fault stderr@12") {
		t.Errorf(`deskhand AGAIN prompt --agent crashes --dir WORK whatever: got exit code %d, stderr %s, want exit code 1 and stderr with "fault stderr@12"`, code, stderr)
	}
}

func TestReplayByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "conversation.md")
	if err := os.WriteFile(text, []byte("# Hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no file given":  {nil, 2, "<file>"},
		"no such fault":  {[]string{text, "--fault", "boom@3"}, 2, "there are crash@N, exit@N=CODE"},
		"no such number": {[]string{text, "--fault", "slow@3"}, 2, "slow@N=5s"},
		"backwards":      {[]string{text, "--speed=-1"}, 2, "--speed"},
		"no file":        {[]string{filepath.Join(dir, "none.zip")}, 1, "none.zip"},
		"no recording":   {[]string{text}, 1, "no zip archive"},
	} {
		out, stderr, code := run(t, dir, append([]string{"agent", "replay"}, test.args...)...)
		if code != test.code || out != "" || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: want exit code %v, stdout \"\" and stderr with %v, got exit code %d\nstdout %s\nstderr %s", name, test.code, test.says, code, out, stderr)
		}
	}
}
