//go:build e2e

package agents

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// run runs the program with an input that ends.
func (p place) run(t *testing.T, input string, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), deskhand(), args...)
	cmd.Dir, cmd.Env = p.work, p.env
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	code = exitCode(t, err)
	t.Logf("deskhand %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	return string(out), code
}

func loginPlace(t *testing.T, id string) place {
	t.Helper()
	all := pinned(t)
	all[slices.IndexFunc(all, func(a realAgent) bool { return a.ID == id })].path(t)
	p := newPlace(t, openModel(t))
	p.useStore(t)
	p.set(map[string]string{"DESKHAND_KEYRING": "off"})
	return p
}

// TestKeyOfALoginLasts enters a key for the agents that take a key for their process alone: each later start is signed in, also after a
// restart of Deskhand. Without a key these agents are not signed in, whatever they answer to authenticate.
func TestKeyOfALoginLasts(t *testing.T) {
	for id, method := range map[string]string{"gemini": "gemini-api-key", "qwen-code": "openai"} {
		t.Run(id, func(t *testing.T) {
			p := loginPlace(t, id)
			if said, code := p.run(t, "", "doctor", id); code == 0 || !strings.Contains(said, "needs a login") {
				t.Errorf("got exit code %d before the login, want the need of one", code)
			}
			if said, code := p.run(t, "\n", "login", id, "--method", method); code == 0 || strings.Contains(said, "Signed in") {
				t.Errorf("got exit code %d without a key", code)
			}
			if said, code := p.run(t, "key-of-a-person\n", "login", id, "--method", method); code != 0 || !strings.Contains(said, "Signed in to "+id) {
				t.Fatalf("got exit code %d with a key, want it signed in", code)
			}
			for range 2 {
				if said, code := p.run(t, "", "doctor", id); code != 0 || !strings.Contains(said, "ready") {
					t.Errorf("got exit code %d at a start after the login, want it ready", code)
				}
			}
			p.run(t, "", "logout", id)
			if _, code := p.run(t, "", "doctor", id); code == 0 {
				t.Error("it is signed in after it was signed out")
			}
		})
	}
}

// TestNobodyIsSignedInToClaude: Claude begins a session all the same, and tells by a notification alone.
func TestNobodyIsSignedInToClaude(t *testing.T) {
	p := loginPlace(t, "claude")
	said, code := p.run(t, "", "doctor", "claude")
	if code == 0 || !strings.Contains(said, "needs a login") || !strings.Contains(said, "deskhand login claude") {
		t.Errorf("got exit code %d, want the need of a login", code)
	}
}

// TestCodexKeepsItsKey: Codex gets its key once, and has no second login method that reads the same variable.
func TestCodexKeepsItsKey(t *testing.T) {
	p := loginPlace(t, "codex")
	said, code := p.run(t, "", "login", "codex", "--method", "none")
	if code == 0 || strings.Contains(said, "deskhand.values") || !strings.Contains(said, "(api-key)") {
		t.Errorf("got exit code %d, want its own ways alone", code)
	}
	if said, code := p.run(t, "sk-of-a-person\n", "login", "codex", "--method", "api-key"); code != 0 || !strings.Contains(said, "Signed in to codex") {
		t.Errorf("got exit code %d with a key, want it signed in", code)
	}
	if said, code := p.run(t, "", "doctor", "codex"); code != 0 || !strings.Contains(said, "OpenAI API key") {
		t.Errorf("got exit code %d after the login, want it ready by its key", code)
	}
}

// TestNoAgentThatWorksNeedsALogin: with the scripted model nobody is signed in, and none is told to be.
func TestNoAgentThatWorksNeedsALogin(t *testing.T) {
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			p := loginPlace(t, agent.ID)
			p.set(environ(t, openModel(t), agent.ID, p))
			if said, code := p.run(t, "", "doctor", agent.ID); code != 0 || strings.Contains(said, "needs a login") {
				t.Errorf("got exit code %d, want it ready", code)
			}
		})
	}
}
