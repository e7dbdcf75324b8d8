package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/session"
)

func TestPromptGoesOnWithAConversation(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"by itself", "through the server"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir, work, other := t.TempDir(), t.TempDir(), t.TempDir()
			if where == "through the server" {
				server(t, dir)
			}
			for _, tc := range []struct {
				args []string
				code int
				want string // expected on either stream
				not  string
			}{
				{[]string{"--last", "--dir", work, "echo none"}, 2, "there is no conversation in " + work, ""},
				{[]string{"--agent", "mock", "--dir", work, "echo first"}, 0, "echo first", ""},
				{[]string{"--agent", "mock", "--dir", other, "echo elsewhere"}, 0, "echo elsewhere", ""},
				{[]string{"--last", "--dir", work, "echo second"}, 0, "echo second", `"text": "echo first"`},
				{[]string{"--last", "--dir", work, "--agent", "mock", "echo third"}, 0, "echo third", ""},
				{[]string{"--last", "--dir", work, "--agent", "claude", "x"}, 2, "no conversation with claude", ""},
				{[]string{"--session", "last", "echo fourth"}, 0, "going on with echo first", "elsewhere"},
				{[]string{"--session", "last", "--last", "x"}, 2, "--session", ""},
				{[]string{"--session", "last", "--agent", "mock", "x"}, 2, "--agent is for a new conversation", ""},
				{[]string{"--session", "last", "--dir", work, "x"}, 2, "--dir is for a new conversation", ""},
				{[]string{"--last", "--worktree", "--dir", work, "x"}, 2, "--worktree is for a new conversation", ""},
				{[]string{"--session", "nothing", "x"}, 2, `there is no conversation "nothing"`, ""},
			} {
				stdout, stderr, code := run(t, dir, append([]string{"prompt"}, tc.args...)...)
				if all := stdout + stderr; code != tc.code || !strings.Contains(all, tc.want) || tc.not != "" && strings.Contains(stdout, tc.not) {
					t.Errorf("prompt %q: exit %d, want %d and %q\n%s\n%s", tc.args, code, tc.code, tc.want, stdout, stderr)
				}
			}
			if got := len(begun(t, dir)); got != 2 {
				t.Errorf("there are %d conversations, want 2", got)
			}
		})
	}
}

// TestPromptOfAConversationThatIsAtWork: the prompt is refused with advice.
func TestPromptOfAConversationThatIsAtWork(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "slow")
	c.watch("text", isText)
	_, stderr, code := run(t, dir, "prompt", "--last", "--dir", work, "and now?")
	if want := "deskhand sessions steer " + s.ID; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, want 1 and %q\n%s", code, want, stderr)
	}
}

// TestPromptFindsLastOfDirectoryByLink: the shell may name its directory by a symbolic link.
func TestPromptFindsLastOfDirectoryByLink(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(work, link); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"--agent", "mock", "--dir", work, "echo one"}, {"--last", "--dir", link, "echo two"}} {
		if _, stderr, code := run(t, dir, append([]string{"prompt"}, args...)...); code != 0 {
			t.Errorf("prompt %q: exit %d, want 0\n%s", args, code, stderr)
		}
	}
}

func TestDoctorTellsWhatCouldBeInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, _, code := run(t, dir, "doctor")
	for _, want := range []string{"Not installed:\n", "\n  claude     Claude Code (", "deskhand agents install ID"} {
		if !strings.Contains(out, want) {
			t.Errorf("deskhand doctor has no %q:\n%s", want, out)
		}
	}
	if code != 0 {
		t.Errorf("exit %d, want 0: what is not installed is not broken", code)
	}
	out, _, _ = run(t, dir, "doctor", "--json")
	var reports struct{ Missing []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports.Missing) == 0 {
		t.Errorf("doctor --json has no missing agents (%v):\n%s", err, out)
	}
	if out, _, _ = run(t, dir, "doctor", "mock"); strings.Contains(out, "Not installed:") {
		t.Errorf("deskhand doctor mock tells of others:\n%s", out)
	}
}

// TestSessionsShowFailedTurn: every format of a conversation shows a failed turn with its cause.
func TestSessionsShowFailedTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for word, want := range map[string]string{"error": "Demo agent failed: the prompt asked for an error (-32603)", "crash": "Demo agent ended, exit code 3"} {
		if _, _, code := run(t, dir, "prompt", "--agent", "mock", "--dir", t.TempDir(), word); code != 1 {
			t.Errorf("prompt %s: exit %d, want 1", word, code)
		}
		if out, _, _ := run(t, dir, "sessions", "show", "last"); !strings.Contains(out, "The turn failed:** "+want) {
			t.Errorf("sessions show after %s has no %q:\n%s", word, want, out)
		}
		out, _, _ := run(t, dir, "sessions", "export", "last", "--format", "json", "--output", "-")
		var x struct {
			Session session.Session
			Turns   []struct{ Cause string }
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || len(x.Turns) != 1 || x.Turns[0].Cause != want {
			t.Errorf("sessions export after %s gives the turns %+v (%v), want the cause %q", word, x.Turns, err, want)
		}
	}
}
