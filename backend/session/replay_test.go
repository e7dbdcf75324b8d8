package session_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/export"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// replayOf makes an agent of a recording, and a conversation with it.
func (d *desk) replayOf(recording []byte, words ...string) session.Session {
	d.t.Helper()
	agent := agenttest.Program(d.t)
	dir := d.t.TempDir()
	file := filepath.Join(dir, "recording.zip")
	if err := os.WriteFile(file, recording, 0o600); err != nil {
		d.t.Fatal(err)
	}
	entry := map[string]any{"id": "replay", "command": agent, "args": append([]string{"replay-agent", file, filepath.Join(dir, "positions")}, words...)}
	data, err := json.Marshal(map[string]any{"agents": []any{entry}})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "agents.json"), data, 0o600); err != nil {
		d.t.Fatal(err)
	}
	s, err := d.Create(d.t.Context(), session.New{Agent: "replay", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// answers answers any request in the affirmative.
func (d *desk) answers(r requests.Request) {
	d.t.Helper()
	var a requests.Answer
	switch r.Kind {
	case "permission":
		a.OptionID = r.Options[0].ID
	case "question":
		for _, q := range r.Questions {
			a.Answers = append(a.Answers, []string{q.Options[0].ID})
		}
	case "form":
		a.Action, a.Content = "accept", json.RawMessage(`{"name":"lighthouse","size":"small","features":["api"]}`)
	default:
		a.Action = "cancel"
	}
	d.answer(r, a)
}

// says runs a turn like a person: it sends a prompt, answers all requests, and cancels once cancelAt accepts the agent's text.
func (d *desk) says(id, prompt string, cancelAt func(said string) bool) {
	d.t.Helper()
	before := d.transcript(id)
	d.prompt(id, prompt)
	cancelled := false
	d.until("end of "+prompt, func() bool {
		s := d.get(id)
		if s.Turn == nil && s.Phase != lifecycle.Starting && s.Phase != lifecycle.Replaying {
			return true
		}
		list, err := d.Requests().Waiting(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		for _, r := range list {
			if r.Session == id {
				d.answers(r)
			}
		}
		if cancelAt == nil || cancelled {
			return false
		}
		now := d.transcript(id)
		now.Items = slices.DeleteFunc(now.Items, func(e transcript.Entry) bool {
			return len(before.Items) > 0 && e.Seq <= before.Items[len(before.Items)-1].Seq
		})
		if cancelled = cancelAt(textOf(now, "agent")); cancelled {
			if err := d.Cancel(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
		}
		return false
	})
}

// seenAs returns a conversation without the values that differ each time: ids, times and the names of agents.
func (d *desk) seenAs(id string) string {
	d.t.Helper()
	_, data := d.export(id, export.JSON)
	var out struct {
		Session  session.Session
		Entries  []map[string]any
		Turns    []map[string]any
		Requests []map[string]any
	}
	if err := json.Unmarshal(data, &out); err != nil {
		d.t.Fatal(err)
	}
	unnamed := func(of map[string]any, key string) {
		if text, is := of[key].(string); is {
			of[key] = strings.ReplaceAll(text, d.get(id).AgentName, "AGENT")
		}
	}
	for _, turn := range out.Turns {
		unnamed(turn, "cause")
	}
	for _, entry := range out.Entries {
		if notice, is := entry["notice"].(map[string]any); is {
			unnamed(notice, "title")
			unnamed(notice, "description")
		}
	}
	var lines strings.Builder
	for _, list := range [][]map[string]any{out.Entries, out.Requests, out.Turns} {
		for _, item := range list {
			line, err := json.Marshal(same(item))
			if err != nil {
				d.t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%s\n", line)
		}
	}
	return uuids.ReplaceAllString(lines.String(), "ID")
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// same removes such values, and a SIGKILL, since a busy machine may report the kill after the wait for it.
func same(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if m["signal"] == "SIGKILL" {
		delete(m, "signal")
	}
	for k, x := range m {
		if slices.Contains([]string{"session", "seq", "at", "startedAt", "endedAt", "generation", "createdAt", "resolvedAt", "agent"}, k) {
			delete(m, k)
			continue
		}
		if k != "raw" {
			m[k] = same(x)
		}
	}
	return m
}

func wantSame(t *testing.T, have, want string) {
	t.Helper()
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(h), len(w)) {
		switch {
		case i >= len(h):
			t.Fatalf("line %d of %d is missing: %.600s", i, len(w), w[i])
		case i >= len(w):
			t.Fatalf("line %d is too many: %.600s", i, h[i])
		case h[i] != w[i]:
			t.Fatalf("line %d differs:\nhave %.900s\nwant %.900s", i, h[i], w[i])
		}
	}
}

// long reports whether the tests may take long; see make crash.
func long() bool { return os.Getenv("DESKHAND_LONG") != "" }

// wordsOfDemo returns all words of the demo agent, from its help.
func wordsOfDemo(t *testing.T, help string) []string {
	t.Helper()
	var words []string
	for _, line := range regexp.MustCompile("(?m)^- (.*`): ").FindAllStringSubmatch(help, -1) {
		for _, m := range regexp.MustCompile("`([a-z ]+)[^`]*`").FindAllStringSubmatch(line[1], -1) {
			words = append(words, strings.TrimSpace(m[1]))
		}
	}
	if len(words) < 30 || !slices.Contains(words, "stubborn") {
		t.Fatalf("words %q in %s", words, help)
	}
	return words
}

// TestReplayOfEveryWord: the recording of a conversation with any word of the demo agent, even one that ends the agent, replays to the same
// conversation.
func TestReplayOfEveryWord(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.says(s.ID, "help", nil)
	words := wordsOfDemo(t, textOf(d.transcript(s.ID), "agent"))
	cancels := map[string]func(string) bool{
		"slow":     func(said string) bool { return strings.Contains(said, "tick 5\n") },
		"hang":     func(said string) bool { return strings.Contains(said, "Cancel does not help.") },
		"stubborn": func(said string) bool { return regexp.MustCompile(`Its pid is \d+\.`).MatchString(said) },
	}
	if !long() { // these words take minutes with the race detector
		words = slices.DeleteFunc(words, func(word string) bool {
			return cancels[word] != nil || slices.Contains([]string{"burst", "huge", "stream"}, word)
		})
	}
	said, prompts := map[string]string{}, map[string]string{"stream": "stream 200/s 1s"}
	for _, word := range words {
		d.says(s.ID, cmp.Or(prompts[word], word), cancels[word])
		if cancels[word] != nil {
			tr := d.transcript(s.ID)
			for _, e := range tr.Items {
				if e.Kind == "agent" {
					said[word] = e.Text
				}
			}
		}
	}
	d.says(s.ID, "tidy up", nil)
	want := d.seenAs(s.ID)
	_, recording := d.export(s.ID, export.Recording)
	if err := os.Remove(filepath.Join(d.work, "deskhand-demo.md")); err != nil {
		t.Fatal(err)
	}

	r := d.replayOf(recording)
	d.says(r.ID, "help", nil)
	for _, word := range words {
		var whole func(string) bool
		if cancels[word] != nil {
			whole = func(now string) bool { return strings.TrimSpace(now) == strings.TrimSpace(said[word]) }
		}
		d.says(r.ID, cmp.Or(prompts[word], word), whole)
	}
	d.says(r.ID, "tidy up", nil)
	wantSame(t, d.seenAs(r.ID), want)
	if _, err := os.Stat(filepath.Join(d.work, "deskhand-demo.md")); err == nil {
		t.Error("a replay wrote a file")
	}
	d.says(r.ID, "and more", nil)
	tr := d.transcript(r.ID)
	if last := tr.Items[len(tr.Items)-1]; !strings.Contains(last.Text, "The recording has ended") || lastTurn(tr).StopReason != "end_turn" {
		t.Errorf("prompt after the recording: got entry %+v, turn %+v; want that it has ended, end_turn", last, lastTurn(tr))
	}
}

// TestReplayGoesOnAfterOtherAnswers: the replay goes on when the person answers otherwise than in the recording.
func TestReplayGoesOnAfterOtherAnswers(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.says(s.ID, "first please", nil)
	d.says(s.ID, "markdown", nil)
	d.says(s.ID, "thought", nil)
	_, recording := d.export(s.ID, export.Recording)
	original := d.transcript(s.ID)

	r := d.replayOf(recording, "speed=1")
	d.prompt(r.ID, "something else")
	q := d.request(r.ID)
	d.answer(q, requests.Answer{OptionID: optionOf(t, q, "reject_once")})
	tr := d.idle(r.ID)
	if text := textOf(tr, "agent"); !strings.Contains(text, "**Done.**") {
		t.Errorf("agent's text after another answer: got %q, want Done", text)
	}
	if e := find(tr, "user"); e.Text != "something else" {
		t.Errorf("user entry: got %+v, want something else", e)
	}

	// The recording has no cancel. A busy machine may read to the end before the cancel comes: then the test tries again.
	for range 5 {
		d.says(r.ID, "markdown", func(said string) bool { return said != "" })
		if tr = d.transcript(r.ID); lastTurn(tr).StopReason == "cancelled" {
			break
		}
	}
	if lastTurn(tr).StopReason != "cancelled" || len(textOf(tr, "agent")) >= len(textOf(original, "agent")) {
		t.Errorf("replayed turn: got %+v with %d bytes, want it cancelled, with less than %d bytes", lastTurn(tr), len(textOf(tr, "agent")), len(textOf(original, "agent")))
	}
	if err := d.Restart(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	d.says(r.ID, "thought", nil)
	tr = d.transcript(r.ID)
	if text := textOf(tr, "thought"); !strings.Contains(text, "first idea was the right one") {
		t.Errorf("after a restart it does not go on with the next turn: %q", text)
	}
}

func TestReplayInjectsFaults(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.says(s.ID, "thought", nil)
	_, recording := d.export(s.ID, export.Recording)
	whole := textOf(d.transcript(s.ID), "agent")
	for name, test := range map[string]struct {
		faults []string
		shown  func(t *testing.T, d *desk, s session.Session, tr session.Transcript)
	}{
		"crash": {[]string{"crash@6"}, func(t *testing.T, d *desk, s session.Session, tr session.Transcript) {
			t.Helper()
			if e := find(tr, "divider"); e == nil || e.Divider.Code != "agent.exited" || *e.Divider.Exit.Code != 3 || e.Divider.Exit.StderrTail != "" {
				t.Errorf("divider: got %+v, want agent.exited with code 3, nothing on stderr", e)
			}
			d.says(s.ID, "and now?", nil)
			if tr := d.transcript(s.ID); lastTurn(tr).StopReason != "end_turn" || !strings.Contains(textOf(tr, "agent"), "The recording has ended") {
				t.Errorf("after the crash: %+v", lastTurn(tr))
			}
		}},
		"exit": {[]string{"stderr@6", "exit@6=7"}, func(t *testing.T, _ *desk, _ session.Session, tr session.Transcript) {
			t.Helper()
			if e := find(tr, "divider"); e == nil || *e.Divider.Exit.Code != 7 || !strings.Contains(e.Divider.Exit.StderrTail, "fault stderr@6") {
				t.Errorf("divider: got %+v, want code 7 with its fault on stderr", e)
			}
		}},
		"start": {[]string{"crash@0"}, func(t *testing.T, _ *desk, s session.Session, tr session.Transcript) {
			t.Helper()
			if e := find(tr, "divider"); e == nil || e.Divider.Code != "agent.start_failed" {
				t.Errorf("divider: got %+v, want agent.start_failed", e)
			}
		}},
		"garbage": {[]string{"garbage@6"}, func(t *testing.T, _ *desk, _ session.Session, tr session.Transcript) {
			t.Helper()
			if e := find(tr, "raw"); e == nil || e.Reason != "invalid_stdout" || !strings.Contains(string(e.Raw), "garbage@6") {
				t.Errorf("raw entry: got %+v, want invalid_stdout of garbage@6", e)
			}
			if textOf(tr, "agent") != whole {
				t.Error("the rest is not whole")
			}
		}},
		"duplicate": {[]string{"duplicate@16"}, func(t *testing.T, _ *desk, _ session.Session, tr session.Transcript) {
			t.Helper()
			if len(textOf(tr, "agent"))+len(textOf(tr, "thought")) <= len(whole)+len(textOf(d.transcript(s.ID), "thought")) {
				t.Error("nothing is there twice")
			}
		}},
		"drop": {[]string{"drop@16"}, func(t *testing.T, _ *desk, _ session.Session, tr session.Transcript) {
			t.Helper()
			if len(textOf(tr, "agent"))+len(textOf(tr, "thought")) >= len(whole)+len(textOf(d.transcript(s.ID), "thought")) {
				t.Error("nothing is missing")
			}
		}},
		"slow": {[]string{"slow@6=700ms"}, func(t *testing.T, _ *desk, _ session.Session, tr session.Transcript) {
			t.Helper()
			if took := lastTurn(tr).EndedAt.Sub(lastTurn(tr).StartedAt.Time); took < 700*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if textOf(tr, "agent") != whole {
				t.Error("the rest is not whole")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, t.TempDir())
			r := d.replayOf(recording, test.faults...)
			d.prompt(r.ID, "thought")
			test.shown(t, d, r, d.idle(r.ID))
		})
	}
	t.Run("hang", func(t *testing.T) {
		d := open(t, t.TempDir())
		r := d.replayOf(recording, "hang@6")
		d.says(r.ID, "thought", func(string) bool { return find(d.transcript(r.ID), "thought") != nil })
		if tr := d.transcript(r.ID); find(tr, "divider") == nil || find(tr, "divider").Divider.Code != "turn.interrupt_sent" {
			t.Errorf("divider: got %+v, turn %+v; want turn.interrupt_sent", find(tr, "divider"), lastTurn(tr))
		}
	})
}
