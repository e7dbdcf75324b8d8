package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/history"
)

// update is "user text", "agent text", "thought text", "tool id" or "facts".
func update(t *testing.T, line string) acp.Update {
	t.Helper()
	kind, text, _ := strings.Cut(line, " ")
	body := map[string]any{"sessionUpdate": kind + "_message_chunk", "content": map[string]string{"type": "text", "text": text}}
	switch kind {
	case "thought":
		body["sessionUpdate"] = "agent_thought_chunk"
	case "tool":
		body = map[string]any{"sessionUpdate": "tool_call", "toolCallId": text, "title": "x", "status": "completed"}
	case "facts":
		body = map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{}}
	}
	params, err := json.Marshal(map[string]any{"sessionId": "s", "update": body})
	if err != nil {
		t.Fatal(err)
	}
	u, err := acp.ParseUpdate(params)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func stored(lines ...string) []history.Said {
	var list []history.Said
	for _, line := range lines {
		kind, text, _ := strings.Cut(line, " ")
		s := history.Said{Kind: kind, Text: text}
		if kind == history.Tool {
			s = history.Said{Kind: kind, ID: text}
		}
		list = append(list, s)
	}
	return list
}

func TestReplayIsWholeAtTheEndOfTheHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored []history.Said
		came   []string // the replay is whole after the last of them, and not before
		whole  bool
	}{
		"one turn":                    {stored("user hello", "agent Hi there."), []string{"user hello", "agent Hi there."}, true},
		"an answer in pieces":         {stored("user hello", "agent Hi there."), []string{"user hello", "agent Hi", "agent  there."}, true},
		"other white space":           {stored("user a  b", "agent x\n\ny\n"), []string{"user a b\n", "agent x y"}, true},
		"the agent's own words first": {stored("user hello", "agent Hi."), []string{"user <context>", "agent ok", "user hello", "agent Hi."}, true},
		"words around a message":      {stored("user look", "agent Seen."), []string{"user look @a.png", "thought hm", "agent Seen."}, true},
		"the same words before":       {stored("user a", "agent Done.", "user b", "agent Done."), []string{"user a", "agent Done.", "user b", "agent Done."}, true},
		"the same message again":      {stored("user go on", "agent Done.", "user go on", "agent Done."), []string{"user go on", "agent Done.", "user go on", "agent Done."}, true},
		"a call at the end":           {stored("user a", "tool 1", "tool 2"), []string{"user a", "tool 1", "tool 2"}, true},
		"a message without an answer": {stored("user a", "agent b", "user c"), []string{"user a", "agent b", "user c"}, true},
		"cut off":                     {stored("user a", "agent b", "user c", "agent d"), []string{"user a", "agent b", "user c"}, false},
		"another answer":              {stored("user a", "agent b"), []string{"user a", "agent something else"}, false},
		"less than is stored":         {stored("user z", "agent y", "user a", "agent b"), []string{"user a", "agent b"}, false},
		"nothing stored":              {nil, []string{"user a", "agent b"}, false},
		"facts alone":                 {stored("user a"), []string{"facts"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := history.Expect(c.stored)
			for i, line := range c.came {
				if got := r.Whole(); got {
					t.Errorf("whole after %q, want not before %q", c.came[:i], c.came[i])
				}
				if got, want := r.Take(update(t, line)), line != "facts"; got != want {
					t.Errorf("Take(%q): got %v, want %v", line, got, want)
				}
			}
			if got := r.Whole(); got != c.whole {
				t.Errorf("whole: got %v, want %v of %q", got, c.whole, c.came)
			}
		})
	}
}

// A long conversation is known by its newest messages.
func TestReplayOfALongConversation(t *testing.T) {
	t.Parallel()
	var lines []string
	for range 200 {
		lines = append(lines, "user go on", "agent Done.")
	}
	lines = append(lines, "user the last", "agent That was all.")
	r := history.Expect(stored(lines...))
	for i, line := range lines {
		if r.Whole() {
			t.Fatalf("whole after %d of %d updates", i, len(lines))
		}
		r.Take(update(t, line))
	}
	if !r.Whole() {
		t.Error("not whole at the end")
	}
}
