//go:build e2e

package agents

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// command runs a command of Deskhand's in a place, with nobody at a terminal.
func command(t *testing.T, p place, args ...string) (out, log string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), deskhand(), args...)
	cmd.Env, cmd.Dir = p.env, p.work
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code = exitCode(t, cmd.Run())
	return stdout.String(), stderr.String(), code
}

// TestTerminalInAFreshHome installs an agent from npm by the first prompt, continues the conversation twice, each time in a new process,
// and removes the agent again.
func TestTerminalInAFreshHome(t *testing.T) {
	model := openModel(t)
	p := newPlace(t, nil)
	p.set(environ(t, model, "opencode", p))
	p.reachNPM()
	for _, step := range []struct {
		args []string
		code int
		want string // on either of the two streams
	}{
		{[]string{"prompt", "Please write the proof."}, 7, "deskhand agents install ID"},
		{[]string{"prompt", "--agent", "opencode", "Please write the proof."}, 7, "deskhand agents install opencode"},
		{[]string{"prompt", "--agent", "opencode", "--install", "--approve", "once", "Please write the proof."}, 0, lastWords},
		{[]string{"prompt", "--last", "--approve", "once", "Please write the proof."}, 0, lastWords},
		{[]string{"prompt", "--session", "last", "--approve", "once", "Please write the proof."}, 0, lastWords},
		{[]string{"agents"}, 0, "opencode  OpenCode     installed"},
		{[]string{"agents", "remove", "opencode", "--yes"}, 0, "removed"},
		{[]string{"prompt", "--last", "Please write the proof."}, 7, "deskhand agents install opencode"},
	} {
		began := time.Now()
		out, log, code := command(t, p, step.args...)
		t.Logf("%v: %v, exit code %d\n%s\n%s", step.args, time.Since(began).Round(time.Millisecond), code, out, log)
		if code != step.code || !strings.Contains(out+log, step.want) {
			t.Fatalf("deskhand %v: exit code %d, want %d and %q", step.args, code, step.code, step.want)
		}
	}
	p.mustBeGone(t, 2*time.Second)
}

// TestTerminalWithoutALogin: an agent without a login ends the turn with an exit code of its own, and the conversation has the reason.
func TestTerminalWithoutALogin(t *testing.T) {
	model := openModel(t) // to check that the agent reaches no other address
	p := newPlace(t, model)
	p.useStore(t)
	out, log, code := command(t, p, "prompt", "--agent", "claude", "--approve", "never", "Please write the proof.")
	if code != 6 || !strings.Contains(log, "deskhand login claude") {
		t.Errorf("exit code %d, want 6 and the login\n%s\n%s", code, out, log)
	}
	if out, log, code = command(t, p, "sessions", "show", "last"); code != 0 || !strings.Contains(out, "**The turn failed:** Claude Code ") {
		t.Errorf("sessions show: exit code %d, want the failed turn\n%s\n%s", code, out, log)
	}
	p.mustBeGone(t, 2*time.Second)
}
