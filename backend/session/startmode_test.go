package session_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/session"
	"deskhand/backend/startmode"
)

// moded is an agent with modes and models. It begins every life in the first mode, and says with each prompt in which mode and with which model
// it has got that.
type moded struct {
	Modes   []string `json:"modes"`
	Models  []string `json:"models,omitempty"`
	Old     bool     `json:"old,omitempty"`     // it tells of its modes as agents did before there were config options
	Late    bool     `json:"late,omitempty"`    // it tells of them after session/new, by an update
	Strays  bool     `json:"strays,omitempty"`  // it goes into its last mode once it was told of another
	Refuses bool     `json:"refuses,omitempty"` // it does not change its mode
	Lies    bool     `json:"lies,omitempty"`    // the same, and says that it has
	Forgets bool     `json:"forgets,omitempty"` // it cannot load
}

func (m moded) serve(in io.Reader, out io.Writer) error {
	mode, model := m.Modes[0], ""
	if len(m.Models) > 0 {
		model = m.Models[0]
	}
	send := func(message object) error {
		message["jsonrpc"] = "2.0"
		data, err := json.Marshal(message)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", data)
		}
		return err
	}
	update := func(u object) error {
		return send(object{"method": "session/update", "params": object{"sessionId": "s", "update": u}})
	}
	options := func() []any {
		list := []any{}
		for category, of := range map[string]struct {
			values []string
			now    string
		}{"mode": {m.Modes, mode}, "model": {m.Models, model}} {
			choices := []any{}
			for _, v := range of.values {
				choices = append(choices, object{"value": v, "name": strings.ToUpper(v)})
			}
			if len(choices) > 0 {
				list = append(list, object{"id": category, "name": category, "category": category, "type": "select", "currentValue": of.now, "options": choices})
			}
		}
		return list
	}
	told := func() object {
		switch {
		case m.Late:
			return object{}
		case !m.Old:
			return object{"configOptions": options()}
		}
		list := []any{}
		for _, v := range m.Modes {
			list = append(list, object{"id": v, "name": strings.ToUpper(v)})
		}
		return object{"modes": object{"currentModeId": mode, "availableModes": list}}
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct{ ModeID, ConfigID, Value string }
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		result, failure := object{}, object(nil)
		then := func() error { return nil }
		switch r.Method {
		case "initialize":
			result = object{"protocolVersion": 1, "agentCapabilities": object{"loadSession": true}}
		case "session/new":
			result = told()
			result["sessionId"] = "s"
			if m.Late {
				then = func() error {
					return update(object{"sessionUpdate": "config_option_update", "configOptions": options()})
				}
			}
		case "session/load":
			if result = told(); m.Forgets {
				failure = object{"code": -32603, "message": "no such session"}
			}
		case "session/set_mode", "session/set_config_option":
			value := r.Params.Value + r.Params.ModeID
			switch {
			case r.Params.ConfigID == "model":
				model = value
			case m.Refuses:
				failure = object{"code": -32603, "message": "not now"}
			case !m.Lies:
				mode = value
			}
			if r.Method == "session/set_config_option" {
				result = object{"configOptions": options()}
			}
			if m.Strays {
				mode = m.Modes[len(m.Modes)-1]
				then = func() error { return update(object{"sessionUpdate": "current_mode_update", "currentModeId": mode}) }
				m.Strays = false
			}
		case "session/prompt":
			if err := update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": mode + " " + model + "\n"}}); err != nil {
				return err
			}
			result = object{"stopReason": "end_turn"}
		default:
			continue
		}
		answer := object{"id": r.ID, "result": result}
		if failure != nil {
			answer = object{"id": r.ID, "error": failure}
		}
		if err := send(answer); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

func modedAgent(args []string, in io.Reader, out io.Writer) error {
	var m moded
	if err := json.Unmarshal([]byte(args[0]), &m); err != nil {
		return err
	}
	return m.serve(in, out)
}

// give has an agent of agents.json be the one of that id: "claude" stands for one whose modes are in the catalogue.
func (m moded) give(t *testing.T, dir, id string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	how, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(object{"agents": []any{object{"id": id, "name": "Moded", "override": true, "command": self, "args": []string{"moded-agent", string(how)}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// claudes are modes and models as those of Claude.
func claudes() moded {
	return moded{Modes: []string{"auto", "default", "plan", "acceptEdits"}, Models: []string{"small", "large"}}
}

// with begins a conversation, and gives the words with which it got its first prompt, or the problem over which it did not.
func (d *desk) with(agent string, choice startmode.Choice) (id, words string) {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: d.work, Mode: choice.Mode, Model: choice.Model})
	if err != nil {
		d.t.Fatal(err)
	}
	return s.ID, d.words(s.ID)
}

// words sends a prompt, and gives what became of it.
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

// A conversation begins in the mode and with the model that were asked for, else in those that were chosen for the directory, else for the agent, and
// else in a mode that asks. Where that cannot be, nothing is sent.
func TestStartModeOfANewConversation(t *testing.T) {
	t.Parallel()
	choice := func(mode, model string) startmode.Choice { return startmode.Choice{Mode: mode, Model: model} }
	for name, tc := range map[string]struct {
		agent               moded
		id                  string
		ofAgent, ofDir, ask startmode.Choice
		want                string
	}{
		"nobody has chosen":            {agent: claudes(), want: "default small"},
		"asked for":                    {agent: claudes(), ask: choice("auto", "large"), want: "auto large"},
		"chosen for the agent":         {agent: claudes(), ofAgent: choice("plan", "large"), want: "plan large"},
		"chosen for the directory":     {agent: claudes(), ofAgent: choice("auto", "large"), ofDir: choice("plan", ""), want: "plan large"},
		"asked for over chosen":        {agent: claudes(), ofDir: choice("auto", "large"), ask: choice("default", ""), want: "default large"},
		"it asks by itself":            {agent: moded{Modes: []string{"plan", "default", "auto"}}, want: "plan"},
		"of older modes":               {agent: moded{Modes: claudes().Modes, Old: true}, want: "default"},
		"of older modes, asked for":    {agent: moded{Modes: claudes().Modes, Old: true}, ask: choice("acceptEdits", ""), want: "acceptEdits"},
		"no such mode":                 {agent: claudes(), ask: choice("nonsense", ""), want: "start.mode nonsense of auto, default, plan, acceptEdits"},
		"no such model":                {agent: claudes(), ask: choice("", "huge"), want: "start.model huge of small, large"},
		"no models":                    {agent: moded{Modes: claudes().Modes}, ask: choice("", "huge"), want: "start.model huge of "},
		"it refuses":                   {agent: moded{Modes: claudes().Modes, Refuses: true}, want: "start.refused DEFAULT of "},
		"it lies":                      {agent: moded{Modes: claudes().Modes, Lies: true}, want: "start.refused DEFAULT of "},
		"none that asks is left":       {agent: moded{Modes: []string{"auto", "manual"}}, want: "start.unasked auto of auto, manual"},
		"of one's own in its place":    {agent: moded{Modes: []string{"autonomous", "default"}}, want: "autonomous"}, // of a known agent: startmode.TestBegin
		"unmeasured, in a known mode":  {agent: claudes(), id: "own", want: "default small"},
		"unmeasured, in another":       {agent: moded{Modes: []string{"swift", "default"}}, id: "own", want: "swift"},
		"unmeasured, without an asker": {agent: moded{Modes: []string{"yolo", "swift"}}, id: "own", want: "start.unasked yolo of yolo, swift"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, id := t.TempDir(), tc.id
			if id == "" {
				id = "claude"
			}
			tc.agent.give(t, dir, id)
			d := open(t, dir)
			for of, chosen := range map[string]startmode.Choice{"": tc.ofAgent, d.work: tc.ofDir} {
				if _, err := d.ChooseStart(t.Context(), id, "", of, chosen); err != nil {
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

// An agent that changes its mode between its start and the first message, or tells of its modes only then, is told of the mode before it gets that
// message.
func TestStartModeHoldsUntilTheFirstMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		agent moded
		ask   string
		now   string // its mode when the message comes
		want  string
	}{
		"it tells of its modes late": {moded{Modes: claudes().Modes, Late: true}, "", "auto", "default"},
		"it goes astray":             {moded{Modes: []string{"default", "plan", "auto"}, Strays: true}, "plan", "auto", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tc.agent.give(t, dir, "claude")
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "claude", Cwd: d.work, Mode: tc.ask})
			if err != nil {
				t.Fatal(err)
			}
			d.until("the mode "+tc.now, func() bool {
				s := d.get(s.ID)
				return s.Phase == session.Ready && len(s.ConfigOptions) > 0 && s.ConfigOptions[0].Value == tc.now
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

// A conversation that could not begin does not begin otherwise at the next start. Who chooses a mode that is offered has it go on.
func TestStartModeIsChosenAfterARefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	moded{Modes: []string{"auto", "manual"}}.give(t, dir, "claude")
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

// The mode of a conversation holds over restarts of the agent and of Deskhand, also where the agent has forgotten the session, and where its new
// version has dropped the mode nothing is sent in a looser one.
func TestStartModeHoldsOverRestarts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later moded
		want  []string
	}{
		"the same version":    {claudes(), []string{"default small", "default small"}},
		"it forgets":          {moded{Modes: claudes().Modes, Models: claudes().Models, Forgets: true}, []string{"default small", "default small"}},
		"the mode is renamed": {moded{Modes: []string{"auto", "plan", "manual"}}, []string{"agent.mode_lost DEFAULT of ", "start.unasked auto of auto, plan, manual"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			claudes().give(t, dir, "claude")
			d := open(t, dir)
			id, got := d.with("claude", startmode.Choice{})
			if got != "default small" {
				t.Fatalf("got %q, want %q", got, "default small")
			}
			d.close()
			tc.later.give(t, dir, "claude")
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

// What else makes a conversation begins it in the same way.
func TestStartModeOfOtherBeginnings(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(d *desk) (session.Session, error){
		"continued from another agent": func(d *desk) (session.Session, error) { return d.Continue(d.t.Context(), d.create().ID, "claude") },
		"imported": func(d *desk) (session.Session, error) {
			return d.Import(d.t.Context(), session.Import{Agent: "claude", ACPSessionID: "s", Cwd: d.work})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			claudes().give(t, dir, "claude")
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

// What is offered is known from the conversation before, and marked.
func TestStartModeTellsWhatIsOffered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	moded{Modes: []string{"auto", "default", "fresh"}, Models: []string{"small"}}.give(t, dir, "claude")
	d := open(t, dir)
	id, _ := d.with("claude", startmode.Choice{})
	var now session.StartMode
	d.until("the offer", func() bool {
		var err error
		if now, err = d.StartMode(t.Context(), "claude", "", d.work, ""); err != nil {
			t.Fatal(err)
		}
		return len(now.Models) > 0
	})
	var got []string
	for _, m := range now.Modes {
		got = append(got, m.Value+" "+string(m.Asks))
	}
	if want := []string{"auto decides", "default asks", "fresh unknown"}; !slices.Equal(got, want) || now.Mode != "" || now.Asks != "unknown" { // it stands in agents.json: nobody knows where it begins
		t.Errorf("got modes %q, of which %s (%s); want %q, of which none (unknown)", got, now.Mode, now.Asks, want)
	}
	if got, want := fmt.Sprint(d.get(id).Modes), "[{auto decides} {fresh unknown}]"; got != want {
		t.Errorf("the conversation's marks: got %s, want %s", got, want)
	}
	if _, err := d.ChooseStart(t.Context(), "claude", "", "relative", startmode.Choice{Mode: "plan"}); err == nil {
		t.Error("a relative directory was taken, want directory.relative")
	}
	if _, err := d.StartMode(t.Context(), "nobody", "", "", ""); err == nil {
		t.Error("an unknown agent was taken, want agent.unknown")
	}
}
