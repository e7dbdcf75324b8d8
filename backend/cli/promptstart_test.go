package cli_test

import (
	"strings"
	"testing"
)

// TestPromptInAMode: --mode and --model name the start mode, and a wrong name is answered with the known names. In a mode that decides by
// itself --approve has no effect: such a mode is refused unless the person named the mode, and gets a warning then.
func TestPromptInAMode(t *testing.T) {
	t.Parallel()
	// The agent begins in the mode auto, and would run every command.
	const agent = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"Auto"},{"id":"MODE","name":"Other"}]}}}'
		while read l; do
			id=${l#*'"id":'}; id=${id%%,*}
			case $l in
			*session/set_mode*) mode=$l; echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
			*session/prompt*)
				echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ran"}}}}'
				echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}' ;;
			esac
		done`
	for name, tc := range map[string]struct {
		other string // the second mode on offer
		args  []string
		code  int
		out   string
		told  string
	}{
		"nobody has chosen":          {"default", nil, 0, "ran", ""},
		"no mode asks":               {"yolo", nil, 2, "", "choose a mode: it offers auto, yolo"},
		"named":                      {"default", []string{"--mode", "auto"}, 0, "ran", "in the mode auto own decides by itself: nobody is asked"},
		"named, --approve never":     {"default", []string{"--mode", "auto", "--approve", "never"}, 0, "ran", "--approve never cannot hold back what it does not ask for"},
		"one that asks":              {"default", []string{"--mode", "default", "--approve", "never"}, 0, "ran", ""},
		"no such mode":               {"default", []string{"--mode", "nonsense"}, 2, "", "has no mode nonsense, and nothing was sent: it offers auto, default"},
		"no such model":              {"default", []string{"--model", "huge"}, 2, "", "has no model huge, and nothing was sent: it offers none"},
		"one that Deskhand knows of": {"fresh", []string{"--mode", "fresh"}, 0, "ran", "in the mode fresh, which Deskhand does not know, own may decide by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ownAgents(t, dir, map[string]string{"own": strings.ReplaceAll(agent, "MODE", tc.other)})
			out, stderr, code := run(t, dir, append([]string{"prompt", "--agent", "own", "--dir", t.TempDir(), "go"}, tc.args...)...)
			if code != tc.code || strings.TrimSpace(out) != tc.out {
				t.Errorf("prompt %q: got exit code %d and %q, want %d and %q\n%s", tc.args, code, out, tc.code, tc.out, stderr)
			}
			if !strings.Contains(stderr, tc.told) || tc.told == "" && strings.Contains(stderr, "by itself") {
				t.Errorf("prompt %q: got on stderr\n%s\nwant %q", tc.args, stderr, tc.told)
			}
		})
	}
}
