//go:build e2e

package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/session"
	"deskhand/backend/startmode"
	"deskhand/e2e/agents/llm"
)

// TestModesOfAgentsAreKnown reads every agent's offer directly: the test notices a version that renames or adds a mode, which until then
// counts as a deciding mode.
func TestModesOfAgentsAreKnown(t *testing.T) {
	table := agents.Open(agents.Config{})
	defer table.Close()
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			a := startStdio(t, p, agent, model)
			a.call("initialize", map[string]any{
				"protocolVersion":    1,
				"clientInfo":         map[string]string{"name": "deskhand-e2e", "version": "1"},
				"clientCapabilities": map[string]any{},
			})
			var offer struct {
				Modes struct {
					CurrentModeID  string
					AvailableModes []struct{ ID, Description string }
				}
				ConfigOptions []struct {
					Category     string
					CurrentValue json.RawMessage
					Options      []struct{ Value, Description string }
				}
			}
			decode(t, a.call("session/new", map[string]any{"cwd": p.work, "mcpServers": []any{}}), &offer)
			a.end()
			modes := startmode.Of(table.Modes(agent.ID))
			said := map[string]string{}
			for _, m := range offer.Modes.AvailableModes {
				said[m.ID] = m.Description
			}
			for _, o := range offer.ConfigOptions {
				for _, one := range o.Options {
					if o.Category == "mode" {
						said[one.Value] = one.Description
					}
				}
			}
			for mode, description := range said {
				judgement := modes.Judge(mode)
				t.Logf("%s: %s (%s)", mode, judgement, description)
				if judgement == startmode.Unknown {
					t.Errorf("the mode %s (%s) is not in the catalogue", mode, description)
				}
			}
			if len(said) == 0 {
				t.Errorf("it offers no mode: %+v", offer)
			}
			if begin := modes.Default(); said[begin] == "" {
				t.Errorf("conversations are to begin in %q, which it does not offer", begin)
			}
		})
	}
}

// decidingAgents begin in a mode in which they decide by themselves, as people have them.
func decidingAgents(t *testing.T) []realAgent {
	t.Helper()
	return slices.DeleteFunc(pinned(t), func(a realAgent) bool { return !slices.Contains([]string{"claude", "codex", "qwen-code"}, a.ID) })
}

// asPeopleHaveIt is onPath without the tests' settings that make an agent ask.
func asPeopleHaveIt(t *testing.T, p *place, agent realAgent, model *llm.Model) {
	t.Helper()
	env := environ(t, model, agent.ID, *p)
	delete(env, "IS_SANDBOX")
	delete(env, "INITIAL_AGENT_MODE")
	env["PATH"] = filepath.Dir(agent.path(t)) + ":" + p.lookup("PATH")
	p.set(env)
}

// promptOnce runs one turn from the command line.
func promptOnce(t *testing.T, p place, args ...string) (code int, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), deskhand(), append([]string{"prompt", "--dir", p.work}, args...)...)
	cmd.Env = p.env
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	code = exitCode(t, cmd.Run())
	t.Logf("prompt %q: exit code %d\nstdout:\n%s\nstderr:\n%s", args, code, out.Bytes(), log.Bytes())
	return code, log.String()
}

// TestNobodyHasChosenAMode runs the command line with agents that begin in a mode that decides by itself: with --approve never nothing is done
// unless that mode is named.
func TestNobodyHasChosenAMode(t *testing.T) {
	for _, agent := range decidingAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			asPeopleHaveIt(t, &p, agent, model)
			proof := filepath.Join(p.work, "proof.txt")
			if code, _ := promptOnce(t, p, "--agent", agent.ID, "--approve", "never", "Please write the proof."); code != 5 {
				t.Errorf("exit code %d, want 5", code)
			}
			if _, err := os.Stat(proof); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the file that nobody approved is there: %v", err)
			}
			code, words := promptOnce(t, p, "--agent", agent.ID, "--mode", "nonsense", "Please write the proof.")
			if want := "no mode nonsense, and nothing was sent: it offers "; code != 2 || !strings.Contains(words, want) || !strings.Contains(words, asking(agent.ID)) {
				t.Errorf("exit code %d, want 2 and %q in:\n%s", code, want, words)
			}
			code, words = promptOnce(t, p, "--agent", agent.ID, "--mode", loosest(agent.ID), "--approve", "never", "Please write the proof.")
			if code != 0 || !strings.Contains(words, "decides by itself") {
				t.Errorf("exit code %d, want 0 and a warning in:\n%s", code, words)
			}
			if agent.ID != "codex" { // the script asks to leave the sandbox, which Codex does not have in that mode
				mustHold(t, proof, "scripted-proof\n")
			}
			p.mustBeGone(t, 2*time.Second)
		})
	}
}

// loosest is the mode of an agent in which nobody is asked about anything.
func loosest(agent string) string {
	return map[string]string{"claude": "bypassPermissions", "codex": "agent-full-access", "qwen-code": "yolo"}[agent]
}

// asking is the mode that an agent's conversations begin in; "" for an agent that does not decide by itself in any mode.
func asking(agent string) string {
	return map[string]string{"claude": "default", "codex": "read-only", "qwen-code": "default"}[agent]
}

// TestModeHoldsOverRestarts begins a conversation, and stops and starts Deskhand twice: the agent asks each time.
func TestModeHoldsOverRestarts(t *testing.T) {
	for _, agent := range decidingAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			asPeopleHaveIt(t, &p, agent, model)
			s := startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			refuse := func(life string) {
				t.Helper()
				turn := f.prompt("Now write the forbidden.")
				f.answer("reject_once")
				f.done(turn)
				if _, err := os.Stat(filepath.Join(p.work, "forbidden.txt")); !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("in the %s life the refused command ran: %v", life, err)
				}
				if got := modeIn(f.session); got != asking(agent.ID) {
					t.Errorf("in the %s life it is in the mode %q, want %q", life, got, asking(agent.ID))
				}
			}
			refuse("first")
			for _, life := range []string{"second", "third"} {
				s.stop()
				p.mustBeGone(t, 2*time.Second)
				s = startServer(t, p)
				id := f.session.ID
				f = follow(s)
				f.only = id
				s.call("GET", "/client/sessions/"+id, nil, &f.session)
				refuse(life)
			}
			s.stop()
			p.mustBeGone(t, 2*time.Second)
		})
	}
}

// TestChosenModeIsWhatConversationsBeginIn chooses a mode for one directory, and begins conversations in two.
func TestChosenModeIsWhatConversationsBeginIn(t *testing.T) {
	for _, agent := range decidingAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			asPeopleHaveIt(t, &p, agent, model)
			s := startServer(t, p)
			s.call("PUT", "/client/agents/"+agent.ID+"/start?cwd="+p.work, map[string]string{"mode": loosest(agent.ID)}, nil)
			s.stop()
			s = startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			if got := modeIn(f.session); got != loosest(agent.ID) {
				t.Errorf("the conversation is in the mode %q, want %q", got, loosest(agent.ID))
			}
			if marks := fmt.Sprint(f.session.Modes); !strings.Contains(marks, loosest(agent.ID)) {
				t.Errorf("the mode %s is not marked: %s", loosest(agent.ID), marks)
			}
			f.done(f.prompt("Please write the proof."))
			if agent.ID != "codex" {
				mustHold(t, filepath.Join(p.work, "proof.txt"), "scripted-proof\n")
			}
			other := p
			other.work = filepath.Join(p.home, "other")
			if err := os.Mkdir(other.work, 0o700); err != nil {
				t.Fatal(err)
			}
			f.only = ""
			f.open(agent.ID, other)
			if got := modeIn(f.session); got != asking(agent.ID) {
				t.Errorf("in another directory the conversation is in the mode %q, want %q", got, asking(agent.ID))
			}
			s.stop()
			if code, words := promptOnce(t, p, "--agent", agent.ID, "--approve", "never", "Please write the proof."); code != 2 || !strings.Contains(words, "decides by itself") {
				t.Errorf("exit code %d, want 2 and the reason in:\n%s", code, words)
			}
			p.mustBeGone(t, 2*time.Second)
		})
	}
}

func modeIn(s session.Session) string {
	for _, o := range s.ConfigOptions {
		if o.Category == "mode" {
			return o.Value
		}
	}
	return ""
}
