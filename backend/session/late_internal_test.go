package session

import (
	"testing"

	"deskhand/backend/entries"
	"deskhand/backend/transcript"
)

func TestLateEntriesReplaceStoredText(t *testing.T) {
	t.Parallel()
	terminal := func(text string, skipped int64) transcript.Entry {
		return transcript.Entry{ID: "e", Kind: "terminal", Text: text, Terminal: &transcript.Terminal{TerminalID: "1", Running: true, Skipped: skipped}}
	}
	grown := terminal("one two", 0)
	for name, c := range map[string]struct {
		stored transcript.Entry
		want   string
	}{
		"it is stored shorter":                           {terminal("one", 0), "one two"},
		"what was stored since is more":                  {terminal("one two three", 0), "one two three"},
		"it was cut since":                               {terminal("two", 4), "two"},
		"it was emptied since":                           {terminal("", 7), ""},
		"it is another text":                             {terminal("six", 0), "six"},
		"of a message that has no room more is left out": {transcript.Entry{ID: "e", Kind: "agent", Text: "o", Clipped: 3}, "o"},
	} {
		got := late{"e": &grown}.over([]transcript.Entry{c.stored})
		if got[0].Text != c.want {
			t.Errorf("%s: got text %q, want %q", name, got[0].Text, c.want)
		}
	}
	stored, told := transcript.Entry{Kind: "agent", Text: "full", Clipped: 10}, transcript.Entry{Kind: "agent", Text: "full", Clipped: 15}
	if !transcript.IsPrefixOf(mustJSON(&stored), &told) {
		t.Error("what is left out of it may have become more")
	}
	if transcript.IsPrefixOf(mustJSON(&told), &stored) {
		t.Error("it cannot have become less")
	}
}

// A report of usage between two words stores the session's row, and does not store the streaming entry.
func TestLateEntryStaysLateWhenUsageIsTold(t *testing.T) {
	t.Parallel()
	grown := transcript.Change{Entry: &transcript.Entry{ID: "e", Kind: "agent", Text: "one two"}, Append: &transcript.Append{ID: "e", Text: " two", Offset: 3}}
	for name, c := range map[string]struct {
		alter func(v *conversation)
		late  bool
	}{
		"nothing else":        {func(*conversation) {}, true},
		"the record":          {func(v *conversation) { v.saveRow() }, true},
		"the end of the turn": {func(v *conversation) { v.turn = nil }, false},
		"the turn's state":    {func(v *conversation) { v.step.turns = map[string]*Turn{"t": v.turn} }, false},
		"it is due":           {func(v *conversation) { v.saveRow(); v.overdue = true }, false},
	} {
		v := &conversation{turn: &Turn{Turn: entries.Turn{ID: "t"}}}
		v.late.Store(&late{})
		c.alter(v)
		stored, now := v.spare([]transcript.Change{grown})
		if is := len(stored) == 0 && now["e"] == grown.Entry; is != c.late {
			t.Errorf("with %s: %d are stored, %d are late", name, len(stored), len(now))
		}
	}
}
