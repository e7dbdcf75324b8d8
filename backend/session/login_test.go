package session_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/roster"
	"deskhand/backend/session"
)

// locked is a desk with demo agents that need a login: by-agent, by-terminal and by-env, which share one account.
func locked(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	var list []map[string]any
	for _, way := range []string{"agent", "terminal", "env"} {
		list = append(list, map[string]any{"id": "by-" + way, "command": agent, "args": []string{"demo-agent"}, "env": map[string]string{
			"DESKHAND_DEMO_LOGIN": way, "DESKHAND_DEMO_SIGNED_IN": filepath.Join(dir, "signed-in"),
		}})
	}
	data, err := json.Marshal(map[string]any{"agents": list})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func (d *desk) createOf(agent string) session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// refused waits until an agent's start was refused for a missing login.
func (d *desk) refused(id string) {
	d.t.Helper()
	d.until("refusal", func() bool {
		s := d.get(id)
		return s.Phase == lifecycle.Closed && s.Exit != nil && s.Exit.Problem == "agent.auth_required"
	})
}

func (d *desk) login(agent, method string, values map[string]string) roster.Login {
	d.t.Helper()
	l, err := d.roster.Logins().Begin(d.t.Context(), agent, method, values)
	if err != nil {
		d.t.Fatal(err)
	}
	return l
}

func (d *desk) signedIn(agent string) roster.Login {
	d.t.Helper()
	l, err := d.roster.Logins().SignedIn(d.t.Context(), agent)
	if err != nil {
		d.t.Fatal(err)
	}
	return l
}

func (d *desk) ended(l roster.Login) roster.Login {
	d.t.Helper()
	d.until("end of the login", func() bool {
		now, err := d.roster.Logins().Get(l.ID)
		if err != nil {
			d.t.Fatal(err)
		}
		l = now
		return l.State != "running"
	})
	return l
}

func TestLoginTriesAgainWhatWasRefused(t *testing.T) {
	ways := map[string]func(*desk) roster.Login{
		"by-agent": func(d *desk) roster.Login { return d.login("by-agent", "demo", nil) },
		"by-env": func(d *desk) roster.Login {
			return d.login("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": "open sesame"})
		},
	}
	if runtime.GOOS != "windows" {
		ways["by-terminal"] = func(d *desk) roster.Login {
			l := d.login("by-terminal", "demo-terminal", nil)
			if err := d.Shells().Type(l.Terminal, []byte("yes\r")); err != nil {
				d.t.Error(err)
			}
			return l
		}
	}
	for agent, way := range ways {
		t.Run(agent, func(t *testing.T) {
			d := locked(t)
			silent, spoken, other := d.createOf(agent), d.createOf(agent), d.create()
			d.refused(silent.ID)
			d.refused(spoken.ID)
			d.prompt(spoken.ID, "echo first words")
			d.refused(spoken.ID)
			d.until("want of a login", func() bool { return d.wantsLogin(agent) })
			d.until("other session", func() bool { return d.get(other.ID).Phase == lifecycle.Ready })
			generation := d.get(other.ID).Generation

			l := d.ended(way(d))
			if l.State != "done" || l.EndedAt == nil || l.Code != "" {
				t.Fatalf("login: got %+v, want it done with a time and no code", l)
			}
			d.until("session", func() bool { return d.get(silent.ID).Phase == lifecycle.Ready })
			d.until("answer", func() bool { return strings.Contains(textOf(d.transcript(spoken.ID), "agent"), "first words") })
			d.idle(spoken.ID)
			if s := d.get(silent.ID); s.Exit != nil || s.Generation != 2 {
				t.Errorf("silent session: got %+v, want generation 2 without an exit", s)
			}
			if s := d.get(other.ID); s.Generation != generation {
				t.Errorf("an agent was started again that had not been refused: %+v", s)
			}
			// A second login is not needed.
			if again := d.ended(d.signedIn(agent)); again.State != "done" {
				t.Errorf("got %+v for %s, which is signed in to, want it done", again, agent)
			}
			if s := d.get(spoken.ID); s.Turn != nil || s.Phase != lifecycle.Ready {
				t.Errorf("spoken session: got %+v, want it ready without a turn", s)
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A prompt that an agent refuses for a missing login is sent again after the login.
func TestLoginSendsRefusedPromptAgain(t *testing.T) {
	t.Parallel()
	d := locked(t)
	d.ended(d.login("by-agent", "demo", nil))
	s := d.createOf("by-agent")
	d.prompt(s.ID, "echo before")
	d.idle(s.ID)
	if err := d.roster.Logins().Logout(t.Context(), "by-agent"); err != nil {
		t.Fatal(err)
	}
	turn := d.prompt(s.ID, "echo after")
	d.idle(s.ID)
	if done := d.transcript(s.ID).Turns; done[len(done)-1].ID != turn.ID || done[len(done)-1].Error == nil || done[len(done)-1].Error.Code != -32000 {
		t.Fatalf("turns after Logout: got %+v, want %s last, with error -32000", done, turn.ID)
	}
	d.ended(d.login("by-agent", "demo", nil))
	d.until("answer", func() bool { return strings.Contains(textOf(d.transcript(s.ID), "agent"), "after") })
	d.idle(s.ID)
	if now := d.get(s.ID); now.ACPSessionID == "" || now.Generation != 2 {
		t.Errorf("session after the login: got %+v, want generation 2 with an ACP session", now)
	}
}

// A prompt that is sent again after a login carries its files again.
func TestLoginSendsAttachmentsOfRefusedPromptAgain(t *testing.T) {
	t.Parallel()
	d := locked(t)
	d.ended(d.login("by-agent", "demo", nil))
	s := d.createOf("by-agent")
	d.isReady(s.ID)
	if err := d.roster.Logins().Logout(t.Context(), "by-agent"); err != nil {
		t.Fatal(err)
	}
	shot := d.upload("shot.png", picture(t, 7, 7))
	d.sendFiles(s.ID, "echo after", session.Now, byID(shot)...)
	d.idle(s.ID)
	d.ended(d.login("by-agent", "demo", nil))
	d.until("answer", func() bool { return strings.Contains(textOf(d.transcript(s.ID), "agent"), "after") })
	said := kinds(d.idle(s.ID), "user")
	if len(said) != 2 || len(said[1].Attachments) != 1 || said[1].Attachments[0].ID != shot.ID {
		t.Errorf("user entries: got %+v, want 2, the second with attachment %s", said, shot.ID)
	}
	sent := d.promptFrames(s.ID)
	if len(sent) != 2 || len(sent[0].Params.Prompt) != 2 || len(sent[1].Params.Prompt) != 2 {
		t.Errorf("prompts sent: got %+v, want 2 with both blocks", sent)
	}
}

// A login sends no prompt again when the person has begun another turn since, whether the prompt was refused at a start or in a turn.
func TestLoginDoesNotSendOlderPrompt(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		d := locked(t)
		account := filepath.Join(d.dir, "signed-in")
		signIn := func() {
			t.Helper()
			if err := os.WriteFile(account, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if running {
			signIn()
		}
		s := d.createOf("by-agent")
		if running {
			d.until("session", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
			if err := os.Remove(account); err != nil {
				t.Fatal(err)
			}
			d.prompt(s.ID, "echo old words")
			d.idle(s.ID)
		} else {
			d.refused(s.ID)
			d.prompt(s.ID, "echo old words")
			d.refused(s.ID)
		}
		younger := d.createOf("by-agent") // retried after the older session
		d.refused(younger.ID)
		signIn()
		d.prompt(s.ID, "echo new words")
		d.idle(s.ID)
		generation := d.get(s.ID).Generation
		d.ended(d.signedIn("by-agent"))
		d.until("session", func() bool { return d.get(younger.ID).Phase == lifecycle.Ready })
		d.idle(s.ID)
		text := textOf(d.transcript(s.ID), "agent")
		if !strings.Contains(text, "new words") || strings.Contains(text, "old words") || d.get(s.ID).Generation != generation {
			t.Errorf("running %v: %q", running, text)
		}
	}
}

// A value that a person enters for an agent is in one file, and in no other that Deskhand writes.
func TestLoginValuesAreWrittenNowhereElse(t *testing.T) {
	t.Parallel()
	d := locked(t)
	const key = `open "sesame" 42`
	s := d.createOf("by-env")
	d.refused(s.ID)
	d.login("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": key})
	d.until("session", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	d.prompt(s.ID, "echo my key is "+key)
	d.idle(s.ID)
	if text := textOf(d.transcript(s.ID), "agent"); !strings.Contains(text, "my key is [redacted]") {
		t.Errorf("agent's text: got %q, want the key redacted", text)
	}
	l, err := d.roster.Logins().Methods(t.Context(), "by-env")
	if err != nil || bytes.Contains(mustJSON(t, l), []byte("sesame")) || !l.Methods[0].Vars[0].Set || l.Methods[0].Type != agents.LoginByValues {
		t.Errorf("LoginMethods: got %+v, %v; want the value told as set, and not shown", l, err)
	}
	batch, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen()})
	if err != nil || bytes.Contains(mustJSON(t, batch), []byte("sesame")) {
		t.Error("it is in the events: ", err)
	}
	d.close()
	err = filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if strings.HasPrefix(path, filepath.Join(d.dir, "demo")) { // the demo agent's own files, which hold the value
			return nil
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("sesame")) != (filepath.Base(path) == "logins.json") {
			t.Errorf("%s: it is there, or it is not", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
