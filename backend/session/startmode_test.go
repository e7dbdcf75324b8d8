package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/startmode"
)

// give writes an agent with this id into agents.json: "claude" is one whose modes the catalogue knows.
func give(t *testing.T, m agenttest.Moded, dir, id string) {
	t.Helper()
	agent := agenttest.Program(t)
	how, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(object{"agents": []any{object{"id": id, "name": "Moded", "override": true, "command": agent, "args": []string{"moded-agent", string(how)}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// claudes is an agent with the modes and models of Claude.
func claudes() agenttest.Moded {
	return agenttest.Moded{Modes: []string{"auto", "default", "plan", "acceptEdits"}, Models: []string{"small", "large"}}
}

// with creates a conversation, and returns the agent's answer to its first prompt, or the problem that kept the prompt from the agent.
func (d *desk) with(agent string, choice startmode.Choice) (id, words string) {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: d.work, Mode: choice.Mode, Model: choice.Model})
	if err != nil {
		d.t.Fatal(err)
	}
	return s.ID, d.words(s.ID)
}

// words sends a prompt, and returns its answer or problem.
func (d *desk) words(id string) string {
	d.t.Helper()
	sent := d.wrote(id, `"session/prompt"`)
	if _, err := d.Prompt(d.t.Context(), id, "go"); err != nil {
		d.t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(textOf(d.idle(id), "agent")), "\n")
	s := d.get(id)
	if s.Exit == nil {
		return said[len(said)-1]
	}
	if now := d.wrote(id, `"session/prompt"`); now != sent {
		d.t.Errorf("%d prompts went to an agent that was to get none", now-sent)
	}
	return s.Exit.Problem + " " + s.Exit.Params["value"] + " of " + s.Exit.Params["offers"]
}

// A conversation begins in the mode and with the model that were requested, else in those chosen for the directory, else for the agent,
// else in a mode that asks. When that is not possible, no prompt is sent.
func TestStartModeOfANewConversation(t *testing.T) {
	t.Parallel()
	choice := func(mode, model string) startmode.Choice { return startmode.Choice{Mode: mode, Model: model} }
	for name, tc := range map[string]struct {
		agent               agenttest.Moded
		id                  string
		ofAgent, ofDir, ask startmode.Choice
		want                string
	}{
		"nobody has chosen":            {agent: claudes(), want: "default small"},
		"asked for":                    {agent: claudes(), ask: choice("auto", "large"), want: "auto large"},
		"chosen for the agent":         {agent: claudes(), ofAgent: choice("plan", "large"), want: "plan large"},
		"chosen for the directory":     {agent: claudes(), ofAgent: choice("auto", "large"), ofDir: choice("plan", ""), want: "plan large"},
		"asked for over chosen":        {agent: claudes(), ofDir: choice("auto", "large"), ask: choice("default", ""), want: "default large"},
		"it asks by itself":            {agent: agenttest.Moded{Modes: []string{"plan", "default", "auto"}}, want: "plan"},
		"of older modes":               {agent: agenttest.Moded{Modes: claudes().Modes, Old: true}, want: "default"},
		"of older modes, asked for":    {agent: agenttest.Moded{Modes: claudes().Modes, Old: true}, ask: choice("acceptEdits", ""), want: "acceptEdits"},
		"no such mode":                 {agent: claudes(), ask: choice("nonsense", ""), want: "start.mode nonsense of auto, default, plan, acceptEdits"},
		"no such model":                {agent: claudes(), ask: choice("", "huge"), want: "start.model huge of small, large"},
		"no models":                    {agent: agenttest.Moded{Modes: claudes().Modes}, ask: choice("", "huge"), want: "start.model huge of "},
		"it refuses":                   {agent: agenttest.Moded{Modes: claudes().Modes, Refuses: true}, want: "start.refused DEFAULT of "},
		"it lies":                      {agent: agenttest.Moded{Modes: claudes().Modes, Lies: true}, want: "start.refused DEFAULT of "},
		"none that asks is left":       {agent: agenttest.Moded{Modes: []string{"auto", "manual"}}, want: "start.unasked auto of auto, manual"},
		"of one's own in its place":    {agent: agenttest.Moded{Modes: []string{"autonomous", "default"}}, want: "autonomous"}, // for a known agent see startmode.TestBegin
		"unmeasured, in a known mode":  {agent: claudes(), id: "own", want: "default small"},
		"unmeasured, in another":       {agent: agenttest.Moded{Modes: []string{"swift", "default"}}, id: "own", want: "swift"},
		"unmeasured, without an asker": {agent: agenttest.Moded{Modes: []string{"yolo", "swift"}}, id: "own", want: "start.unasked yolo of yolo, swift"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, id := t.TempDir(), tc.id
			if id == "" {
				id = "claude"
			}
			give(t, tc.agent, dir, id)
			d := open(t, dir)
			for of, chosen := range map[string]startmode.Choice{"": tc.ofAgent, d.work: tc.ofDir} {
				if _, err := d.Starts().Choose(t.Context(), id, "", of, chosen); err != nil {
					t.Fatal(err)
				}
			}
			session, got := d.with(id, tc.ask)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			d.sameAsRebuilt(session)
		})
	}
}

// An agent that changes its mode between its start and the first prompt, or reports its modes only then, is asked for the mode before it
// gets that prompt.
func TestStartModeHoldsUntilTheFirstMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		agent agenttest.Moded
		ask   string
		now   string // the agent's mode when the prompt comes
		want  string
	}{
		"it tells of its modes late": {agenttest.Moded{Modes: claudes().Modes, Late: true}, "", "auto", "default"},
		"it goes astray":             {agenttest.Moded{Modes: []string{"default", "plan", "auto"}, Strays: true}, "plan", "auto", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			give(t, tc.agent, dir, "claude")
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "claude", Cwd: d.work, Mode: tc.ask})
			if err != nil {
				t.Fatal(err)
			}
			d.until("the mode "+tc.now, func() bool {
				s := d.get(s.ID)
				return s.Phase == lifecycle.Ready && len(s.ConfigOptions) > 0 && s.ConfigOptions[0].Value == tc.now
			})
			for range 2 {
				if got := d.words(s.ID); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// A conversation that could not begin in its mode does not begin in another at the next start. It goes on when a person chooses a mode that
// is offered.
func TestStartModeIsChosenAfterARefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	give(t, agenttest.Moded{Modes: []string{"auto", "manual"}}, dir, "claude")
	d := open(t, dir)
	id, _ := d.with("claude", startmode.Choice{})
	for range 2 {
		if got, want := d.words(id), "start.unasked auto of auto, manual"; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	d.close()
	d = open(t, dir)
	if got, want := d.words(id), "start.unasked auto of auto, manual"; got != want {
		t.Fatalf("after a restart of Deskhand: got %q, want %q", got, want)
	}
	if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"auto"`)); err != nil {
		t.Fatal(err)
	}
	d.ready(id)
	if got := d.words(id); got != "auto" {
		t.Errorf("got %q, want %q", got, "auto")
	}
}

// The mode of a conversation survives restarts of the agent and of Deskhand, also when the agent has forgotten the session. When a new
// version of the agent has dropped the mode, no prompt is sent in a looser one.
func TestStartModeHoldsOverRestarts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later agenttest.Moded
		want  []string
	}{
		"the same version":    {claudes(), []string{"default small", "default small"}},
		"it forgets":          {agenttest.Moded{Modes: claudes().Modes, Models: claudes().Models, Forgets: true}, []string{"default small", "default small"}},
		"the mode is renamed": {agenttest.Moded{Modes: []string{"auto", "plan", "manual"}}, []string{"agent.mode_lost DEFAULT of ", "start.unasked auto of auto, plan, manual"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			give(t, claudes(), dir, "claude")
			d := open(t, dir)
			id, got := d.with("claude", startmode.Choice{})
			if got != "default small" {
				t.Fatalf("got %q, want %q", got, "default small")
			}
			d.close()
			give(t, tc.later, dir, "claude")
			for _, want := range tc.want {
				d = open(t, dir)
				if got := d.words(id); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				d.sameAsRebuilt(id)
				d.close()
			}
		})
	}
}

// Imports and continuations begin in the same way.
func TestStartModeOfOtherBeginnings(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(d *desk) (session.Session, error){
		"continued from another agent": func(d *desk) (session.Session, error) {
			return d.Continuations().Begin(d.t.Context(), d.create().ID, "claude")
		},
		"imported": func(d *desk) (session.Session, error) {
			return d.Imports().Take(d.t.Context(), session.Import{Agent: "claude", ACPSessionID: "s", Cwd: d.work})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			give(t, claudes(), dir, "claude")
			d := open(t, dir)
			s, err := begin(d)
			if err != nil {
				t.Fatal(err)
			}
			d.ready(s.ID)
			if got, want := d.words(s.ID), "default small"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The offered modes are known from the conversation before, and judged.
func TestStartModeTellsWhatIsOffered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	give(t, agenttest.Moded{Modes: []string{"auto", "default", "fresh"}, Models: []string{"small"}}, dir, "claude")
	d := open(t, dir)
	id, _ := d.with("claude", startmode.Choice{})
	var now startmode.StartMode
	d.until("the offer", func() bool {
		var err error
		if now, err = d.Starts().For(t.Context(), "claude", "", d.work, ""); err != nil {
			t.Fatal(err)
		}
		return len(now.Models) > 0
	})
	var got []string
	for _, m := range now.Modes {
		got = append(got, m.Value+" "+string(m.Asks))
	}
	if want := []string{"auto decides", "default asks", "fresh unknown"}; !slices.Equal(got, want) || now.Mode != "" || now.Asks != "unknown" { // the agent stands in agents.json, so its first mode is not known
		t.Errorf("got modes %q, of which %s (%s); want %q, of which none (unknown)", got, now.Mode, now.Asks, want)
	}
	if got, want := fmt.Sprint(d.get(id).Modes), "[{auto decides} {fresh unknown}]"; got != want {
		t.Errorf("the conversation's marks: got %s, want %s", got, want)
	}
	if _, err := d.Starts().Choose(t.Context(), "claude", "", "relative", startmode.Choice{Mode: "plan"}); err == nil {
		t.Error("a relative directory was taken, want directory.relative")
	}
	if _, err := d.Starts().For(t.Context(), "nobody", "", "", ""); err == nil {
		t.Error("an unknown agent was taken, want agent.unknown")
	}
}
