package transcript

import (
	"fmt"
	"strings"
	"testing"

	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// An entry is stored and told whole with each block that is added to it. However many an agent sends as one message, what is written of each is
// not much more than the block, and all are there.
func TestBlocksOfAMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, id    string
		blocks      int
		bytes       int // of each
		atMost      int // bytes of one change
		least, most int // entries
	}{
		"few small ones stay together":    {"agent_message_chunk", "m", 5, 1 << 10, 10 << 10, 1, 1},
		"large ones are apart":            {"agent_message_chunk", "m", 12, 2 << 20, 3 << 20, 12, 12},
		"without an id":                   {"agent_message_chunk", "", 12, 2 << 20, 3 << 20, 12, 12},
		"so are thoughts":                 {"agent_thought_chunk", "m", 12, 2 << 20, 3 << 20, 12, 12},
		"many small ones are some a time": {"agent_message_chunk", "m", 400, 100, 20 << 10, 6, 8},
	} {
		s := tell(t)
		s.begin("draw")
		s.fold.Take()
		data := strings.Repeat("A", c.bytes)
		seen := map[string]*Entry{}
		look := func(n int) {
			changes, _ := s.fold.Take()
			for _, ch := range changes {
				seen[ch.Entry.ID] = ch.Entry
				if size := len(record.JSON(ch.Entry)); size > c.atMost {
					t.Fatalf("%s: with block %d %d bytes are stored", name, n, size)
				}
			}
		}
		for n := range c.blocks {
			s.update(`{"sessionUpdate":%q,"messageId":%q,"content":{"type":"image","mimeType":"image/png","data":%q}}`, c.kind, c.id, data)
			look(n)
		}
		s.chunk(c.kind, c.id, "That is all.")
		look(c.blocks)
		blocks := 0
		for _, e := range seen {
			blocks += len(e.Blocks)
		}
		if len(seen) < c.least || len(seen) > c.most || blocks != c.blocks {
			t.Errorf("%s: %d entries with %d blocks", name, len(seen), blocks)
		}
	}
}

// A message of a history that goes on in another entry is one message of a person, not the next turn.
func TestAnImportedMessageOfManyBlocksIsOne(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.note(Note{Note: NoteImporting})
	image := func() {
		s.update(`{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"image","mimeType":"image/png","data":%q}}`, strings.Repeat("A", 2<<20))
	}
	image()
	first := s.fold.open
	s.fold.plans[""] = &Entry{} // as of this turn
	image()
	if s.fold.open == first || s.fold.plans[""] == nil {
		t.Errorf("one entry: %v; another turn: %v", s.fold.open == first, s.fold.plans[""] == nil)
	}
}

// The summary of a compaction is one entry: what has no room is told in it.
func TestBlocksOfACompaction(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	var e *Entry
	for range 12 {
		s.update(`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"image","mimeType":"image/png","data":%q}}`, strings.Repeat("A", 2<<20))
		e = s.fold.running.compactions["c"]
		if size := len(record.JSON(e)); size > 3<<20 {
			t.Fatalf("%d bytes are stored", size)
		}
	}
	if len(e.Blocks) != 1 || strings.Count(e.Text, "more bytes, kept in the journal") != 11 {
		t.Errorf("%d blocks, %q", len(e.Blocks), e.Text)
	}
}

// What an agent tells of itself stands in the record of its session, which is stored and told whole whenever anything changes.
func TestFactsHaveABound(t *testing.T) {
	t.Parallel()
	const most = 5 << 20
	list := func(n int, format string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	long := strings.Repeat("x", 100<<10)
	s := tell(t)
	s.update(`{"sessionUpdate":"available_commands_update","availableCommands":%s}`, list(100, `{"name":"c#","description":"`+long+`","input":{"hint":"`+long+`"}}`))
	if n := len(s.fold.Facts.Commands); n != 100 {
		t.Errorf("%d commands that are described at length", n)
	}
	s.update(`{"sessionUpdate":"session_info_update","title":%q}`, long)
	s.update(`{"sessionUpdate":"config_option_update","configOptions":[
		{"id":"model","name":"Model","category":"model","type":"select","currentValue":"m59999","options":%s},
		{"id":"mode","name":%q,"category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"},{"value":"go","name":"Go"}]}]}`,
		list(60_000, `{"value":"m#","name":"Model #","description":"`+long[:100]+`"}`), long)
	s.update(`{"sessionUpdate":"available_commands_update","availableCommands":%s}`, list(60_000, `{"name":"c#","description":"`+long[:100]+`"}`))
	if size := len(record.JSON(s.fold.Facts)); size > most {
		t.Errorf("%d bytes", size)
	}
	f := s.fold.Facts
	if len(f.Commands) < 1000 || f.Commands[0].Name != "c0" || f.Commands[999].Name != "c999" {
		t.Errorf("%d commands", len(f.Commands))
	}
	if len(f.Options) != 2 || len(f.Options[0].Choices) < 1000 || !f.Options[0].Offers("m0") || !f.Options[0].Offers("m59999") || len(f.Options[1].Choices) != 2 {
		t.Errorf("%d options, %d choices", len(f.Options), len(f.Options[0].Choices))
	}
	s.frame(journal.In, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"modes":{"currentModeId":"m59999","availableModes":%s}}}`,
		list(60_000, `{"id":"m#","name":"Mode #","description":"`+long[:100]+`"}`)))
	if f = s.fold.Facts; len(record.JSON(f)) > most || !f.Modes || !f.Options[0].Offers("m59999") {
		t.Errorf("%d bytes of modes", len(record.JSON(f)))
	}
	for name, told := range map[string]string{
		"one choice again and again": `[{"id":"model","name":"Model","type":"select","currentValue":"m","options":` + list(60_000, `{"value":"m","name":"#","description":"`+long[:100]+`"}`) + `}]`,
		"options of one choice each": list(5000, `{"id":"o#","name":"O","type":"select","currentValue":"m","options":[{"value":"m","name":"#","description":"`+long[:4000]+`"}]}`),
	} {
		s.update(`{"sessionUpdate":"config_option_update","configOptions":%s}`, told)
		if f = s.fold.Facts; len(record.JSON(f)) > most || !f.Options[0].Offers("m") {
			t.Errorf("%d bytes of %s", len(record.JSON(f)), name)
		}
	}
	s.frame(journal.In, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"result":{"modes":{"currentModeId":%q,"availableModes":[{"id":"m","name":"M"}]}}}`, strings.Repeat("x", most)))
	if f = s.fold.Facts; len(record.JSON(f)) > most || len(f.Options) != 0 {
		t.Errorf("%d bytes of the mode's id", len(record.JSON(f)))
	}
}

func TestPlansNoticesAndTitlesHaveABound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	steps := strings.Repeat(`{"content":"Step","priority":"high","status":"pending"},`, 50_000)
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"plan","entries":[%s{"content":"Last"}]}`, steps)
	plan := s.fold.plans[""].Plan
	told := 0
	if _, err := fmt.Sscanf(plan[len(plan)-1].Content, "… %d more steps", &told); err != nil || told+len(plan)-1 != 50_001 {
		t.Errorf("%d steps, and at the end %q", len(plan), plan[len(plan)-1].Content)
	}
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"One","priority":%q,"status":%q},{"content":%q}]}`, long, long, long)
	s.update(`{"sessionUpdate":"notice","severity":%q,"title":%q,"description":%q}`, long, long, long)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":%q,"name":%q,"kind":%q}`, long, long, long)
	if n := len(s.fold.plans[""].Plan); n != 2 {
		t.Errorf("the plan without an id: got %d steps, want 2", n)
	}
	for n := range 2 * mostPlans {
		s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"%d","content":"short"}}`, n)
	}
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":%q,"content":%q,"path":%q}}`, long, long, long)
	if got := len(s.fold.plans); got > mostPlans {
		t.Errorf("plans that are remembered: got %d, want at most %d", got, mostPlans)
	}
	changes, _ := s.fold.Take()
	for _, c := range changes {
		if size := len(record.JSON(c.Entry)); size > 300<<10 {
			t.Errorf("%s: %d bytes", c.Entry.Kind, size)
		}
	}
}
