package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

// These tests use processes, whose memory the system reports.

const hasty = 20 * time.Millisecond

func withBudget(t *testing.T, dir, words string, budget int, cfg session.Config) *desk {
	t.Helper()
	if !proxy.Measures {
		t.Skip("this system does not tell how much memory agents take")
	}
	forgetfulAgent(t, dir, words)
	file := filepath.Join(dir, "settings.json")
	cfg.Settings = settings.New(file)
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"memoryBudgetMiB":%d}`, budget), 0o600); err != nil {
		t.Fatal(err)
	}
	return openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, cfg)
}

func (d *desk) forgetful() string {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	d.until("ready", func() bool { // the session may be hibernated by then
		now := d.get(s.ID)
		return now.Phase == lifecycle.Ready || now.Hibernated
	})
	return s.ID
}

func (d *desk) sleeps(id string) {
	d.t.Helper()
	d.until("sleep", func() bool { return d.get(id).Hibernated })
}

func dividers(tr session.Transcript) string {
	var codes []string
	for _, e := range tr.Items {
		if e.Divider != nil {
			codes = append(codes, e.Divider.Code)
		}
	}
	return strings.Join(codes, " ")
}

// process returns the pid of a session's agent; 0 when there is none.
func (d *desk) process(id string) int {
	d.t.Helper()
	list, err := d.Processes().List(false)
	if err != nil {
		d.t.Fatal(err)
	}
	n := slices.IndexFunc(list.Items, func(a processes.AgentProcesses) bool { return a.Session == id })
	if n < 0 {
		return 0
	}
	return list.Items[n].PID
}

// When two sessions of one agent are together above the budget, the session that has been idle longer loses its process. The next prompt
// starts it again, and then the other session loses its process.
func TestHibernationEndsIdleAgentAndPromptResumesIt(t *testing.T) {
	t.Parallel()
	d := withBudget(t, t.TempDir(), "resume large", 0, session.Config{SamplePace: hasty, LeastIdle: hasty})
	a := d.forgetful()
	d.prompt(a, "one")
	d.idle(a)
	pid := d.process(a)
	list, err := d.Processes().List(true)
	if err != nil || len(list.Items) != 1 || *list.Items[0].PSSBytes < 64<<20 {
		t.Fatalf("Processes: got %+v, %v; want one of 64 MiB or more", list, err)
	}
	one := int(*list.Items[0].PSSBytes >> 20)
	if _, err := d.Settings().Change(settings.SettingsPatch{MemoryBudgetMiB: new(one * 3 / 2)}); err != nil { // enough for one agent, and not for two
		t.Fatal(err)
	}
	b := d.forgetful()
	d.prompt(b, "one")
	d.idle(b)
	d.sleeps(a)
	d.until("end of the process", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/stat", pid))
		return d.process(a) == 0 && (err != nil || pid == 0)
	})
	if s := d.get(b); s.Hibernated || s.Phase != lifecycle.Ready || d.process(b) == 0 {
		t.Errorf("other session: got %+v, want it ready with its process", s)
	}
	d.prompt(a, "two")
	tr := d.idle(a)
	if got := dividers(tr); !strings.HasPrefix(got, "session.hibernated session.resumed") {
		t.Error(got)
	}
	if text := textOf(tr, "agent"); text != "initialize session/new session/prompt\ninitialize session/resume session/prompt\n" {
		t.Errorf("the agent said %q", text)
	}
	d.sleeps(b)
	d.sameAsRebuilt(a)
	d.sameAsRebuilt(b)
}

// The asking mode that a person chose is set again before the prompt, when the agent has forgotten it in the hibernation.
func TestChosenModeOutlivesHibernation(t *testing.T) {
	for _, words := range []string{"resume modes", "load modes", "resume modes mute", "modes"} {
		t.Run(words, func(t *testing.T) {
			d := withBudget(t, t.TempDir(), words, 0, session.Config{})
			id := d.forgetful()
			if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"ask"`)); err != nil {
				t.Fatal(err)
			}
			d.until("the mode", func() bool { return d.get(id).ConfigOptions[0].Value == "ask" })
			d.prompt(id, "one")
			d.idle(id)
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.ready(id)
			d.prompt(id, "two")
			tr := d.idle(id)
			if text := textOf(tr, "agent"); !strings.HasSuffix(text, "session/set_mode session/prompt in ask\n") || strings.Contains(text, "in swift") {
				t.Errorf("the agent said %q", text)
			}
			if now := d.get(id); now.ConfigOptions[0].Value != "ask" {
				t.Errorf("options after sleep: got %+v, want mode ask", now.ConfigOptions)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// rememberedInAsk leaves a stored conversation whose forgetful agent was in the mode "ask" and got the prompt "one".
func rememberedInAsk(t *testing.T, dir, words string) (id string) {
	t.Helper()
	forgetfulAgent(t, dir, words)
	d := open(t, dir)
	id = d.createOf("forgetful").ID
	d.ready(id)
	if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"ask"`)); err != nil {
		t.Fatal(err)
	}
	d.until("the mode", func() bool { return d.get(id).ConfigOptions[0].Value == "ask" })
	d.prompt(id, "one")
	d.idle(id)
	d.close()
	return id
}

// An agent that opens a session again and does not return to the chosen mode gets no prompt. The session shows the problem, and the next
// start takes the agent's own mode.
func TestLostModeStopsPrompt(t *testing.T) {
	t.Parallel()
	for words, then := range map[string]string{
		"resume modes stubborn": "swift", "load modes stubborn": "swift", "resume modes mute stubborn": "", "resume modes fewer": "swift", "resume modes faints": "swift",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			id := rememberedInAsk(t, dir, words)
			d := open(t, dir)
			d.prompt(id, "two")
			d.until("end of the turn", func() bool { s := d.get(id); return s.Turn == nil && s.Phase == lifecycle.Closed })
			s := d.get(id)
			if s.Exit == nil || s.Exit.Problem != "agent.mode_lost" || s.Exit.Params["option"] != "Mode" || s.Exit.Params["value"] != "Ask" || s.Draft != "two" {
				t.Errorf("exit: got %+v, draft %q; want agent.mode_lost of Mode Ask, draft two", s.Exit, s.Draft)
			}
			if s.ConfigOptions[0].Value != then {
				t.Errorf("options: got %+v, want mode %s", s.ConfigOptions, then)
			}
			if n := d.wrote(id, `"session/prompt"`); n != 1 {
				t.Errorf("%d prompts were sent", n)
			}
			d.prompt(id, "two")
			if text := textOf(d.idle(id), "agent"); !strings.HasSuffix(text, " session/prompt in swift\n") {
				t.Errorf("the agent said %q", text)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// A mode that only one model offers is set after the model.
func TestModelIsSetBeforeItsMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume depends")
	d := open(t, dir)
	id := d.createOf("forgetful").ID
	d.ready(id)
	for i, set := range [][2]string{{"model", "large"}, {"mode", "ask"}} {
		if err := d.SetConfig(t.Context(), id, set[0], json.RawMessage(strconv.Quote(set[1]))); err != nil {
			t.Fatal(err)
		}
		d.until(set[0], func() bool { return d.get(id).ConfigOptions[1-i].Value == set[1] })
	}
	d.prompt(id, "one")
	d.idle(id)
	d.close()

	d = open(t, dir)
	d.prompt(id, "two")
	if text := textOf(d.idle(id), "agent"); strings.Count(text, " session/prompt in ask\n") != 2 {
		t.Errorf("the agent said %q, and %+v", text, d.get(id).Exit)
	}
}

// A prompt that a failed start did not send waits in the queue, once, when its author has begun another draft.
func TestRecalledPromptIsQueuedBesideNewDraft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := rememberedInAsk(t, dir, "resume modes dumb")
	d := open(t, dir)
	d.prompt(id, "two")
	d.until("set_mode", func() bool { return d.wrote(id, `"session/set_mode"`) == 2 })
	next := "three"
	if _, err := d.Change(t.Context(), id, session.Patch{Draft: &next}); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(t.Context(), id); err != nil { // the agent ignores the cancel, so that it is ended
		t.Fatal(err)
	}
	d.until("end of the start", func() bool { return d.get(id).Phase == lifecycle.Closed })
	rows, err := d.Queue(t.Context(), id)
	if s := d.get(id); err != nil || s.Draft != next || len(rows) != 1 || rows[0].Message != "two" || rows[0].Held == "" {
		t.Errorf("%+v %v, draft %q", rows, err, s.Draft)
	}
}

// A start that is cancelled, or cut off by the end of the program, while the agent is asked for the mode keeps the chosen mode.
func TestModeOutlivesStartThatIsCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := rememberedInAsk(t, dir, "resume modes dumb")
	d := open(t, dir)
	begins := func(nth int) {
		t.Helper()
		d.prompt(id, "two")
		d.until("set_mode", func() bool { return d.wrote(id, `"session/set_mode"`) == nth })
	}
	begins(2)
	if err := d.Cancel(t.Context(), id); err != nil { // the agent ignores the cancel
		t.Fatal(err)
	}
	d.until("end of the start", func() bool { return d.get(id).Phase == lifecycle.Closed })
	if s := d.get(id); s.Exit != nil || s.Draft != "two" || s.ConfigOptions[0].Value != "ask" {
		t.Errorf("%+v, draft %q, %+v", s.Exit, s.Draft, s.ConfigOptions)
	}
	begins(3)
	later := t.TempDir()
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // the directory as after a crash
		t.Fatal(err)
	}
	d.close()
	forgetfulAgent(t, later, "resume modes")
	d = open(t, later)
	if s := d.get(id); s.Draft != "two" || s.ConfigOptions[0].Value != "ask" {
		t.Errorf("draft %q, %+v", s.Draft, s.ConfigOptions)
	}
	d.prompt(id, "two")
	tr := d.idle(id)
	if text := textOf(tr, "agent"); !strings.HasSuffix(text, "session/set_mode session/prompt in ask\n") || d.wrote(id, `"session/prompt"`) != 2 {
		t.Errorf("the agent said %q", text)
	}
	d.sameAsRebuilt(id)
}

// The chosen mode survives a crash of the program in a turn of an agent that does not report its mode.
func TestModeOutlivesCrash(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir(), "", "session/load", "modes")
	id := d.asking()
	d.ready(id)
	if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"code"`)); err != nil {
		t.Fatal(err)
	}
	d.until("the mode", func() bool { return d.get(id).ConfigOptions[0].Value == "code" })
	d.prompt(id, `[{"ask":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}]`)
	d.request(id)
	later := t.TempDir()
	if err := os.CopyFS(later, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	if s := open(t, later).get(id); s.Phase != lifecycle.Closed || s.ConfigOptions[0].Value != "code" {
		t.Errorf("session after a crash: got %s, options %+v; want it closed in mode code", s.Phase, s.ConfigOptions)
	}
}

// A mode that is chosen while the agent of a new conversation is hibernated counts for the first prompt; also in a later hibernation.
func TestModeIsChosenWhileHibernated(t *testing.T) {
	t.Parallel()
	d := withBudget(t, t.TempDir(), "resume modes", 1, session.Config{SamplePace: hasty, LeastIdle: hasty})
	id := d.forgetful()
	d.sleeps(id)
	refused(t, d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"nonsense"`)), "config.value")
	refused(t, d.SetConfig(t.Context(), id, "nonsense", json.RawMessage(`"ask"`)), "config.unknown")
	if !d.get(id).Hibernated {
		t.Error("what cannot be chosen has woken it")
	}
	for _, mode := range []string{"ask", "swift", "ask"} {
		if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"`+mode+`"`)); err != nil {
			t.Fatal(err)
		}
		d.until("the mode", func() bool {
			now := d.get(id)
			return now.ConfigOptions[0].Value == mode && (now.Phase == lifecycle.Ready || now.Hibernated)
		})
		d.sleeps(id)
		if now := d.get(id); now.ConfigOptions[0].Value != mode {
			t.Errorf("options after sleep: got %+v, want mode %s", now.ConfigOptions, mode)
		}
		d.prompt(id, "go")
		if text := textOf(d.idle(id), "agent"); !strings.HasSuffix(text, "session/prompt in "+mode+"\n") {
			t.Errorf("the agent said %q", text)
		}
		d.sleeps(id)
	}
	d.sameAsRebuilt(id)
}

// With a budget smaller than any agent and constant measurements, each prompt meets its agent awake, hibernated, or as it is being
// hibernated. All prompts are answered, in order, and two processes never have one conversation.
func TestPromptsAtMomentOfHibernationAreAnswered(t *testing.T) {
	t.Parallel()
	const prompts = 25
	d := withBudget(t, t.TempDir(), "resume alone dawdles", 1, session.Config{SamplePace: time.Millisecond, LeastIdle: time.Nanosecond})
	id := d.forgetful()
	want := ""
	for n := range prompts {
		text := fmt.Sprintf("prompt %d", n)
		want += text + "\n"
		d.prompt(id, text)
		d.idle(id)
		for end := time.Now().Add(time.Duration(n) * 3 * time.Millisecond); time.Now().Before(end) && !d.get(id).Hibernated; {
			<-time.After(time.Millisecond)
		}
	}
	d.sleeps(id) // nothing happens to the session while it is read
	tr := d.transcript(id)
	if got := textOf(tr, "user"); got != want {
		t.Errorf("user entries: got %q, want %q", got, want)
	}
	for _, turn := range tr.Turns {
		if turn.StopReason != "end_turn" {
			t.Errorf("turn: got %+v, want end_turn", turn)
		}
	}
	said := textOf(tr, "agent")
	if n := strings.Count(said, "session/prompt\n"); n != prompts {
		t.Errorf("%d answers: %s", n, said)
	}
	if strings.Contains(said, "twice") {
		t.Errorf("two processes had the conversation at once: %s", said)
	}
	slept := strings.Count(dividers(tr), "session.hibernated")
	if resumed := strings.Count(dividers(tr), "session.resumed"); slept == 0 || resumed < slept-2 || resumed > slept { // before the first prompt the session begins anew
		t.Errorf("it slept %d times and was resumed %d times", slept, resumed)
	}
	d.sameAsRebuilt(id)
}

func TestHibernatedAgentThatCannotResumeStartsFresh(t *testing.T) {
	t.Parallel()
	d := withBudget(t, t.TempDir(), "resume load refuses", 1, session.Config{SamplePace: hasty, LeastIdle: hasty})
	id := d.forgetful()
	d.prompt(id, "one")
	d.idle(id)
	d.sleeps(id)
	d.prompt(id, "two")
	tr := d.idle(id)
	if got := dividers(tr); !strings.Contains(got, "session.hibernated session.fresh") {
		t.Errorf("dividers: got %q, want session.hibernated session.fresh", got)
	}
	if got := textOf(tr, "user"); got != "one\ntwo\n" || lastTurn(tr).StopReason != "end_turn" {
		t.Errorf("after the fresh start: got user entries %q, turn %+v; want one, two and end_turn", got, lastTurn(tr))
	}
	d.sleeps(id) // nothing happens to the session while it is read
	d.sameAsRebuilt(id)
}

// An agent that got no prompt may be hibernated, whatever it offers. Its next start makes a new session, without a divider; a person's
// choices are kept.
func TestHibernatedAgentWithoutPromptStartsAnew(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"modes", "modes resume load refuses"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			d := withBudget(t, t.TempDir(), words, 0, session.Config{SamplePace: hasty, LeastIdle: hasty})
			id := d.forgetful()
			if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"ask"`)); err != nil {
				t.Fatal(err)
			}
			d.until("the mode", func() bool { return d.get(id).ConfigOptions[0].Value == "ask" })
			if _, err := d.Settings().Change(settings.SettingsPatch{MemoryBudgetMiB: new(1)}); err != nil {
				t.Fatal(err)
			}
			d.sleeps(id)
			if _, err := d.Settings().Change(settings.SettingsPatch{MemoryBudgetMiB: new(0)}); err != nil {
				t.Fatal(err)
			}
			d.prompt(id, "one")
			tr := d.idle(id)
			if got := dividers(tr); got != "session.hibernated" {
				t.Error(got)
			}
			if text := textOf(tr, "agent"); text != "initialize session/new session/set_mode session/prompt in ask\n" {
				t.Errorf("the agent said %q", text)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// Archiving a session without messages ends its agent, whatever the agent offers and however far its start is.
func TestArchivingEndsAgentOfUnusedSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "")
	d := openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, session.Config{})
	for _, ready := range []bool{true, false} {
		s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		if ready {
			d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
		}
		if _, err := d.Change(t.Context(), s.ID, session.Patch{Archived: new(true)}); err != nil {
			t.Fatal(err)
		}
		if now := d.get(s.ID); now.Phase != lifecycle.Closed || now.Exit != nil {
			t.Errorf("archived session: got %s, exit %+v; want it closed without an exit", now.Phase, now.Exit)
		}
		d.prompt(s.ID, "one")
		if text := textOf(d.idle(s.ID), "agent"); text != "initialize session/new session/prompt\n" {
			t.Errorf("the agent said %q", text)
		}
	}
}

// Archiving a session whose agent works or starts ends the agent once it is done.
func TestArchivingEndsAgentAfterItsTurn(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir(), `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{},"close":{}}}}`)
	id := d.asking()
	d.begin(id, permit(map[string]any{"kind": "other"}))
	r := d.request(id)
	if _, err := d.Change(t.Context(), id, session.Patch{Archived: new(true)}); err != nil {
		t.Fatal(err)
	}
	if n, _ := d.set.Running(); n != 1 || d.get(id).Phase != lifecycle.Waiting {
		t.Error("it was ended at work")
	}
	d.answer(r, requests.Answer{OptionID: r.Options[0].ID})
	d.sleeps(id)
	d.until("end of the process", func() bool { n, _ := d.set.Running(); return n == 0 })
	wantStop(t, d.transcript(id), "end_turn")
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.sleeps(id) // the session got no prompt
	if got := dividers(d.transcript(id)); got != "session.hibernated session.resumed session.hibernated" {
		t.Error(got)
	}
	d.sameAsRebuilt(id)
}

// An agent that cannot open its session again keeps its process, and so does one that computes.
func TestAgentsThatAreNotHibernated(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"", "resume spins"} {
		t.Run("agent "+words, func(t *testing.T) {
			t.Parallel()
			// As outside of tests, an agent must be idle for a whole measurement: a part of one does not show whether the agent computes,
			// least of all on a busy machine, where half a second was once too short for an agent that computes to get the processor.
			d := withBudget(t, t.TempDir(), words, 1, session.Config{SamplePace: 2 * time.Second, LeastIdle: 4500 * time.Millisecond})
			id := d.forgetful()
			d.prompt(id, "one")
			d.idle(id)
			// An agent that can be hibernated shows that the sampler has measured.
			forgetfulAgent(t, d.dir, "resume")
			for range 2 {
				other := d.forgetful()
				d.prompt(other, "one")
				d.idle(other)
				d.sleeps(other)
			}
			if s := d.get(id); s.Phase != lifecycle.Ready || s.Hibernated || d.process(id) == 0 {
				t.Errorf("session: got %+v, want it ready with its process", s)
			}
		})
	}
}

// sleepingDesk runs a program that is killed while it hibernates an agent.
func sleepingDesk(dir string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, dir)
	if err != nil {
		return err
	}
	set, err := proxy.Open(proxy.Config{Purpose: processes.ForSession, Ledger: filepath.Join(dir, "ledger")})
	if err != nil {
		return err
	}
	c, err := session.Open(ctx, session.Config{
		Store: db, Agents: agents.Open(agents.Config{File: filepath.Join(dir, "agents.json")}), Proxy: set,
		Settings: settings.New(filepath.Join(dir, "settings.json")), SamplePace: hasty, LeastIdle: hasty,
	})
	if err != nil {
		return err
	}
	s, err := c.Create(ctx, session.New{Agent: "forgetful", Cwd: dir})
	if err != nil {
		return err
	}
	if _, err := c.Prompt(ctx, s.ID, "one"); err != nil {
		return err
	}
	for q := (feed.Query{Gen: c.Feed().Gen(), Wait: time.Second}); ; {
		batch, err := c.Feed().After(ctx, q)
		if err != nil {
			return err
		}
		q.After = batch.Seq
		if now, err := c.Get(ctx, s.ID); err != nil || now.Hibernated {
			fmt.Fprintln(os.Stdout, s.ID)
			<-time.After(testkit.Limit)
			return errors.Join(err, errors.New("nobody has killed it"))
		}
	}
}

func TestKillDuringHibernationLeavesSessionAsleep(t *testing.T) {
	t.Parallel()
	if !proxy.Measures {
		t.Skip("this system does not tell how much memory agents take")
	}
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume alone lingers")
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"memoryBudgetMiB":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "sleeping-desk", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	id := strings.TrimSpace(line)
	if err != nil || id == "" {
		t.Fatalf("id of the session: got %q, %v; want one line", line, err)
	}
	ledger := filepath.Join(dir, "ledger")
	if left, err := proxy.Leftovers(ledger); err != nil || len(left) > 1 { // none on a busy machine
		t.Errorf("processes left: got %v, %v; want at most 1", left, err)
	}

	d := openAs(t, dir, proxy.Config{Purpose: processes.ForSession, Ledger: ledger}, session.Config{})
	if s := d.get(id); s.Phase != lifecycle.Closed || s.Exit != nil || s.Turn != nil {
		t.Errorf("session after the kill: got %+v, want it closed, without an exit or a turn", s)
	}
	tr := d.transcript(id)
	if got := dividers(tr); got != "session.hibernated" || lastTurn(tr).StopReason != "end_turn" {
		t.Errorf("after the kill: got dividers %q, turn %+v; want session.hibernated and end_turn", got, lastTurn(tr))
	}
	d.prompt(id, "two")
	tr = d.idle(id)
	if got := dividers(tr); got != "session.hibernated session.resumed" {
		t.Error(got)
	}
	if said := textOf(tr, "agent"); strings.Contains(said, "twice") || !strings.HasSuffix(said, "initialize session/resume session/prompt\n") {
		t.Error(said)
	}
	d.sameAsRebuilt(id)
}

// Conversations that are used one after the other share equal options in memory.
func TestSessionsAtRestHoldEqualOptionsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "close resume modes")
	d := openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, session.Config{})
	a, b, other := d.forgetful(), d.forgetful(), d.forgetful()
	if err := d.SetConfig(t.Context(), other, "mode", json.RawMessage(`"ask"`)); err != nil {
		t.Fatal(err)
	}
	d.until("the mode", func() bool { return d.get(other).ConfigOptions[0].Value == "ask" })
	if d.get(a).ConfigOptions[0].Value == "ask" {
		t.Fatal("the mode of another is its own")
	}
	for _, id := range []string{a, b, other} {
		if _, err := d.Change(t.Context(), id, session.Patch{Archived: new(true)}); err != nil {
			t.Fatal(err)
		}
		d.sleeps(id)
	}
	first := func(id string) *transcript.ConfigOption { return &d.get(id).ConfigOptions[0] }
	if first(a) != first(b) {
		t.Error("equal options are held twice")
	}
	if err := d.SetConfig(t.Context(), a, "mode", json.RawMessage(`"ask"`)); err != nil {
		t.Fatal(err)
	}
	d.until("the mode", func() bool { return first(a).Value == "ask" })
	if first(b).Value == "ask" || first(other).Value != "ask" {
		t.Errorf("what one was told changed another: %q, %q", first(b).Value, first(other).Value)
	}
}
