package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/entries"
	"deskhand/backend/export"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// TestExportTellsWhyATurnFailed: an export tells of each turn that did not end well why it ended.
func TestExportTellsWhyATurnFailed(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"error":  "Demo agent failed: the prompt asked for an error (-32603)",
		"refuse": "Demo agent refused to go on",
		"limit":  "ended at the token limit: the answer is not whole",
		"crash":  "Demo agent ended, exit code 3",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			d := open(t, t.TempDir())
			s := d.create()
			d.prompt(s.ID, word)
			d.idle(s.ID)
			_, text := d.export(s.ID, export.Markdown)
			if got := strings.Count(string(text), "\n> **The turn failed:** "+want+"\n"); got != 1 {
				t.Errorf("Markdown tells %d times of %q, want 1:\n%s", got, want, text)
			}
			if stderr := "demo-agent: fatal: the prompt asked for a crash"; word == "crash" && !strings.Contains(string(text), stderr) {
				t.Errorf("Markdown has no %q:\n%s", stderr, text)
			}
			_, data := d.export(s.ID, export.JSON)
			var out struct {
				Turns []struct{ StopReason, Cause string }
			}
			if err := json.Unmarshal(data, &out); err != nil || len(out.Turns) != 1 || out.Turns[0].Cause != want {
				t.Errorf("JSON gives %+v (%v), want the cause %q", out.Turns, err, want)
			}
		})
	}
}

// TestExportTellsOfAnAgentThatDidNotStart: the turn that waited for the start tells why the agent did not start.
func TestExportTellsOfAnAgentThatDidNotStart(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.createOf("claude")
	d.prompt(s.ID, "hello")
	d.idle(s.ID)
	_, text := d.export(s.ID, export.Markdown)
	if want := "\n> **The turn failed:** Claude Code could not be started: "; !strings.Contains(string(text), want) {
		t.Errorf("Markdown has no %q:\n%s", want, text)
	}
}

// TestExportOfATurnThatEndedWell: an export does not mention the end of such a turn.
func TestExportOfATurnThatEndedWell(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "silent")
	d.idle(s.ID)
	_, text := d.export(s.ID, export.Markdown)
	_, data := d.export(s.ID, export.JSON)
	if strings.Contains(string(text), "The turn") || strings.Contains(string(data), `"cause"`) {
		t.Errorf("the export tells of an end:\n%s\n%s", text, data)
	}
}

func TestTurnEndWords(t *testing.T) {
	t.Parallel()
	code := 3
	died, lost := &transcript.Exit{Problem: "agent.exited", Code: &code}, &transcript.Exit{Problem: "agent.no_answer"}
	for want, tc := range map[string]struct {
		turn session.Turn
		exit *transcript.Exit
	}{
		"":                                           {session.Turn{Turn: entries.Turn{StopReason: "end_turn"}}, nil},
		"stopped before it was done":                 {session.Turn{Turn: entries.Turn{StopReason: "cancelled"}}, nil},
		"Bot ended, exit code 3":                     {session.Turn{Turn: entries.Turn{StopReason: "agent_exited"}}, died},
		"Bot ended before it had answered":           {session.Turn{Turn: entries.Turn{StopReason: "agent_exited"}}, nil},
		"Bot could not be started: no answer":        {session.Turn{Turn: entries.Turn{StopReason: "agent_exited"}}, lost},
		"Bot failed: no (-1)":                        {session.Turn{Turn: entries.Turn{StopReason: "error", Error: &transcript.TurnError{Code: -1, Message: "no"}}}, nil},
		"interrupted: Deskhand ended while this ran": {session.Turn{Turn: entries.Turn{StopReason: "interrupted"}}, nil},
		"ended early: tired":                         {session.Turn{Turn: entries.Turn{StopReason: "tired"}}, nil},
	} {
		if got := tc.turn.Words("Bot", tc.exit); got != want {
			t.Errorf("Words of a turn that ended by %s: got %q, want %q", tc.turn.StopReason, got, want)
		}
	}
}
