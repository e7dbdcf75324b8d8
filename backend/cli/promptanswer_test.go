package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asking is an agent that asks for one permission with the given options, stores the answer in the file kept, and ends its turn.
func asking(kept, toolCall, options string) string {
	return `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":` + toolCall + `,"options":` + options + `}}'
		read -r l; printf '%s' "$l" >` + kept + `
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`
}

func TestPromptApprovalWithoutAPerson(t *testing.T) {
	t.Parallel()
	const (
		command = `{"toolCallId":"c","title":"rm -r build","kind":"execute"}`
		asks    = `{"toolCallId":"q","title":"Which database?","kind":"other","status":"pending"}`
		plan    = `{"toolCallId":"p","title":"Ready to code?","kind":"switch_mode"}`
		usual   = `[{"optionId":"ever","name":"Always","kind":"allow_always"},{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`
		forever = `[{"optionId":"ever","name":"Always allow rm","kind":"allow_always"},{"optionId":"no","name":"Reject","kind":"reject_once"}]`
		noRight = `[{"optionId":"ever","name":"Always allow rm","kind":"allow_always"},{"optionId":"never","name":"Reject always","kind":"reject_always"},{"optionId":"no","name":"Reject","kind":"reject_once"}]`
		four    = `[{"optionId":"o0","name":"Alpha","kind":"allow_once"},{"optionId":"o1","name":"Bravo","kind":"allow_once"},{"optionId":"o2","name":"Charlie","kind":"allow_once"},{"optionId":"o3","name":"Delta","kind":"allow_once"}]`
	)
	for name, tc := range map[string]struct {
		call, options string
		approve       string
		answer        string // the answer that the agent receives
		code          int
		told          string
	}{
		"once, offered":                    {command, usual, "once", `"yes"`, 0, "allowed once: rm -r build (Yes)"},
		"once, where only always is":       {command, forever, "once", `"no"`, 5, "allows nothing for ever"},
		"once, where two refusals are":     {command, noRight, "once", `"no"`, 5, "allows nothing for ever"},
		"once, for a choice of four":       {asks, four, "once", `"session/cancel"`, 5, "it is a choice"},
		"once, for a plan":                 {plan, usual, "once", `"no"`, 5, "it is a choice"},
		"never":                            {command, usual, "never", `"no"`, 5, "as --approve never says"},
		"no flag":                          {command, usual, "", `"no"`, 5, "--approve once would have allowed it"},
		"no flag, where only always is":    {command, forever, "", `"no"`, 5, "--approve ask, at a terminal, asks you"},
		"ask, and the input has ended":     {command, usual, "ask", `"no"`, 5, "nobody is here to answer"},
		"ask, a choice, no input any more": {asks, four, "ask", `"session/cancel"`, 5, "nobody is here to answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kept := filepath.Join(dir, "answer")
			ownAgents(t, dir, map[string]string{"asks": asking(kept, tc.call, tc.options)})
			args := []string{"prompt", "--agent", "asks", "--dir", t.TempDir(), "go"}
			if tc.approve != "" {
				args = append(args, "--approve", tc.approve)
			}
			_, stderr, code := run(t, dir, args...)
			heard, err := os.ReadFile(kept)
			if err != nil || !strings.Contains(string(heard), tc.answer) {
				t.Errorf("the agent heard %s (%v), want %s\n%s", heard, err, tc.answer, stderr)
			}
			if code != tc.code || !strings.Contains(stderr, tc.told) {
				t.Errorf("exit code %d, want %d; stderr is to say %q:\n%s", code, tc.code, tc.told, stderr)
			}
			if never := "nobody"; tc.approve == "never" && strings.Contains(stderr, never) {
				t.Errorf("--approve never is told as if %s were there:\n%s", never, stderr)
			}
		})
	}
}

// TestPromptWritesEscapesOut: an agent's control characters reach neither a terminal nor a pipe, unless --raw is given.
func TestPromptWritesEscapesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const said = `red \u001b[31m, turned \u202e, hidden \u200b, title \u009d0;x\u0007, family 👨\u200d👩`
	ownAgents(t, dir, map[string]string{"paints": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l
		printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + said + `"}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`})
	const out, raw = "red [U+001B][31m, turned [U+202E], hidden [U+200B], title [U+009D]0;x[U+0007], family 👨\u200d👩", "red \u001b[31m, turned \u202e, hidden \u200b, title \u009d0;x\u0007, family 👨\u200d👩"
	got, stderr, code := run(t, dir, "prompt", "--agent", "paints", "--dir", t.TempDir(), "go")
	if code != 0 || strings.TrimSpace(got) != out {
		t.Errorf("prompt prints %q, want %q (exit code %d)\n%s", got, out, code, stderr)
	}
	if got, stderr, code := run(t, dir, "prompt", "--raw", "--agent", "paints", "--dir", t.TempDir(), "go"); code != 0 || strings.TrimSpace(got) != raw {
		t.Errorf("prompt --raw prints %q, want %q (exit code %d)\n%s", got, raw, code, stderr)
	}
	if got, stderr, code := run(t, dir, "sessions", "show", "last"); code != 0 || strings.Contains(got, "\u001b") || strings.Contains(got, "\u202e") || !strings.Contains(got, "[U+001B]") {
		t.Errorf("sessions show prints %q (exit code %d)\n%s", got, code, stderr)
	}
	if got, _, code := run(t, dir, "sessions", "show", "--raw", "last"); code != 0 || !strings.Contains(got, "\u202e") {
		t.Errorf("sessions show --raw prints %q (exit code %d)", got, code)
	}
}
