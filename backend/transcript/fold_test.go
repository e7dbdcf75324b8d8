package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// story is a journal that is written down: each line is a frame, noted (a note's JSON) or inward (the update of a session/update, or a
// whole message when it has a method).
type story struct {
	t    *testing.T
	fold *Fold
	n    int64

	frames []journal.Frame
}

func tell(t *testing.T) *story {
	t.Helper()
	return &story{t: t, fold: New("s", Facts{})}
}

func (s *story) frame(dir journal.Direction, data string) {
	s.n++
	f := journal.Frame{N: s.n, Generation: 1, At: time.UnixMilli(1_700_000_000_000 + s.n), Dir: dir, Data: []byte(data)}
	s.frames = append(s.frames, f)
	s.fold.Apply(f)
}

func (s *story) note(n Note) { s.frame(journal.Note, string(record.JSON(n))) }

func (s *story) begin(prompt string) {
	s.note(Note{Note: NoteTurnBegan, Turn: "t", Prompt: []json.RawMessage{record.JSON(map[string]string{"type": "text", "text": prompt})}})
}

func (s *story) update(format string, args ...any) {
	s.frame(journal.In, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x","update":`+fmt.Sprintf(format, args...)+`}}`)
}

func (s *story) chunk(kind, id, text string) {
	s.update(`{"sessionUpdate":%q,"messageId":%q,"content":{"type":"text","text":%q}}`, kind, id, text)
}

// entries is the transcript so far, in short: kind and what it says.
func (s *story) entries() []string {
	changes, _ := s.fold.Take()
	slices.SortFunc(changes, func(a, b Change) int { return int(a.Entry.Seq - b.Entry.Seq) })
	var list []string
	for _, c := range changes {
		e := c.Entry
		text := e.Text
		switch {
		case e.Tool != nil:
			text = e.Tool.ToolCallID + " " + e.Tool.Title + " " + e.Tool.Status
		case e.Divider != nil:
			text = e.Divider.Code
		case e.Notice != nil:
			text = e.Notice.Title
		case e.Kind == "raw":
			text = e.Reason
		case e.Kind == "plan":
			for _, p := range e.Plan {
				text += p.Content + " " + p.Status + ";"
			}
		case e.Kind == "request":
			text = e.Request
		}
		list = append(list, e.Kind+": "+text)
	}
	return list
}

func (s *story) want(want ...string) {
	s.t.Helper()
	if got := s.entries(); !slices.Equal(got, want) {
		s.t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestMessagesJoinByIDOrByNeighbourhood(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.chunk("agent_message_chunk", "", "a")
	s.chunk("agent_message_chunk", "", "b")
	s.chunk("agent_thought_chunk", "", "hm")
	s.chunk("agent_message_chunk", "", "c")
	s.chunk("agent_message_chunk", "m1", "d")
	s.chunk("agent_thought_chunk", "m2", "hm hm")
	s.chunk("agent_message_chunk", "m1", "e") // the id joins over the thought
	s.chunk("agent_message_chunk", "m3", "f") // a changed id is a new message
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"T"}`)
	s.chunk("agent_message_chunk", "m3", "g") // after a tool call it goes on below it
	s.want("user: go", "agent: ab", "thought: hm", "agent: c", "agent: de", "thought: hm hm", "agent: f", "tool: 1 T pending", "agent: g")
}

func TestEchoOfThePromptIsDropped(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("hello world")
	s.chunk("user_message_chunk", "", "hello ")
	s.chunk("user_message_chunk", "", "world")
	s.chunk("user_message_chunk", "", "typed elsewhere")
	s.chunk("agent_message_chunk", "", "hi")
	s.want("user: hello world", "user: typed elsewhere", "agent: hi")
}

// A stop is seen in the calls at once; what is heard of them until the turn ends counts all the same.
func TestAStopCancelsTheOpenCalls(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Done","status":"completed"}`)
	for n, title := range []string{"Ends", "Hangs", "Goes on"} {
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":%q,"status":"in_progress"}`, n+2, title)
	}
	s.frame(journal.Out, `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"text":"of session/cancel"}}`)
	s.want("user: go", "tool: 1 Done completed", "tool: 2 Ends in_progress", "tool: 3 Hangs in_progress", "tool: 4 Goes on in_progress")
	s.frame(journal.Out, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`)
	s.want("tool: 2 Ends cancelled", "tool: 3 Hangs cancelled", "tool: 4 Goes on cancelled")
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"completed"}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"4","status":"in_progress"}`)
	s.want("tool: 2 Ends completed", "tool: 4 Goes on in_progress")
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("tool: 4 Goes on cancelled")
}

func TestToolCallsAreUpserts(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`) // unknown: created
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Edit","content":[{"type":"diff","path":"/a","newText":"x"},{"no":"type"},7]}`)
	s.frame(journal.In, `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"x","toolCall":{"toolCallId":"2","title":"Only asked"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`)
	s.want("user: go", "tool: 1 Edit completed", "tool: 2 Only asked pending")
	if content := s.fold.tools["1"].Tool.Content; len(content) != 1 || !strings.Contains(string(content[0]), `"newText":"x"`) {
		t.Errorf("a bad item is dropped, a good one is kept as it came: %s", content)
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "t", Reason: "cancelled"})
	s.want("tool: 2 Only asked cancelled")
}

func TestUnknownAndBrokenUpdatesAreShown(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"brand_new","x":1}`)
	s.update(`{"nothing":1}`)
	s.update(`{"sessionUpdate":"agent_message_chunk","content":"text"}`)
	s.update(`{"sessionUpdate":"tool_call","title":"no id"}`)
	s.update(`{"sessionUpdate":"plan","entries":"none"}`)
	s.frame(journal.In, `[1,2]`)
	s.frame(journal.In, `{"jsonrpc":"2.0","method":"_adapter/invalid_stdout","params":{"error":"e","raw":"boo"}}`)
	s.chunk("agent_message_chunk", "", "still here")
	s.want("user: go", "raw: unknown_update", "raw: broken_update", "raw: broken_update", "raw: broken_update", "raw: broken_update",
		"raw: broken_update", "raw: invalid_stdout", "agent: still here")
}

// The journal of before may have what is no JSON, see redact.Redactor: its entry is a record like any other.
func TestAFrameThatIsNoJSONIsShownAsAText(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.frame(journal.In, `{"used":[redacted],"id":1}`)
	changes, _ := s.fold.Take()
	if text := string(record.JSON(changes[0].Entry)); !strings.Contains(text, `"raw":"{\"used\":[redacted],\"id\":1}"`) {
		t.Errorf("entry of a frame that is no JSON: got %s, want the frame as a text in raw", text)
	}
}

func TestOptionalFieldsOfTheWrongTypeTakeTheirDefault(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":7,"kind":["x"],"status":"completed","locations":[{"path":"/a","line":"3"},{"line":1},"x"]}`)
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"one","status":"pending"},{"status":"pending"},null,{"content":"two","priority":9}]}`)
	s.update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"a","input":null},{"name":"b","input":{"hint":"h"}},{"description":"no name"},3]}`)
	s.update(`{"sessionUpdate":"usage_update","used":5,"size":"big"}`)
	s.want("tool: 1  completed", "plan: one pending;two ;")
	if l := s.fold.tools["1"].Tool.Locations; len(l) != 1 || l[0].Path != "/a" {
		t.Errorf("locations: got %+v, want /a alone", l)
	}
	if c := s.fold.Facts.Commands; len(c) != 2 || c[1].Hint != "h" {
		t.Errorf("commands: got %+v, want 2, the second with the hint h", c)
	}
	if u := s.fold.Facts.Usage; u == nil || u.Used != 5 || u.Size != 0 {
		t.Errorf("usage: got %+v, want 5 used of an unknown size", u)
	}
}

// What an agent does in the background begins without a turn, goes on over turns, and ends with the agent at the latest.
func TestToolCallsOutliveTurns(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Build","status":"in_progress"}`)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"2","title":"Watch","status":"in_progress","_meta":{"terminal_info":{"terminal_id":"p","cwd":"/a"}}}`)
	s.want("tool: 1 Build in_progress", "tool: 2 Watch in_progress", "terminal: ")
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"3","title":"Test","status":"in_progress","_meta":{"terminal_info":{"terminal_id":"q"}}}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`)
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("tool: 1 Build completed", "user: go", "tool: 3 Test cancelled", "terminal: ")
	if !s.fold.running.displays["p"].Terminal.Running || s.fold.running.displays["q"].Terminal.Running {
		t.Error("a program ends with the turn that it was begun in, and no other")
	}
	s.note(Note{Note: NoteTurnBegan, Turn: "go on", Prompt: []json.RawMessage{json.RawMessage(`{"type":"text","text":"go on"}`)}})
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"3","status":"pending"}`)
	if tool := s.fold.tools["3"].Tool; tool.EndedAt != nil {
		t.Error("it goes on, and has ended")
	}
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"3","status":"failed","_meta":{"terminal_exit":{"terminal_id":"q","exit_code":3}}}`)
	if e := s.fold.running.displays["q"].Terminal; e.ExitCode == nil || *e.ExitCode != 3 {
		t.Errorf("terminal q: got %+v, want exit code 3", e)
	}
	s.want("tool: 3 Test failed", "terminal: ", "user: go on")
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.begin("once more")
	if len(s.fold.tools) != 1 || len(s.fold.running.displays) != 1 {
		t.Errorf("held are %d calls and %d programs, and one of each goes on", len(s.fold.tools), len(s.fold.running.displays))
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("user: once more")
	s.note(Note{Note: NoteClosed, Exit: &Exit{Problem: ProblemExited}})
	s.want("tool: 2 Watch cancelled", "terminal: ", "divider: agent.exited")

	s.note(Note{Note: NoteStarting})
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"4","title":"Lost","status":"pending"}`)
	s.want("tool: 4 Lost pending")
	s.note(Note{Note: NoteStarting}) // nobody was there to tell of the end of the one before
	s.want("tool: 4 Lost cancelled")
}

// Some agents count their calls anew in each turn.
func TestACallOfAnotherTurnIsAnotherCall(t *testing.T) {
	t.Parallel()
	s := tell(t)
	for _, title := range []string{"One", "Two"} {
		s.note(Note{Note: NoteTurnBegan, Turn: title})
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":%q,"status":"in_progress"}`, title)
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"read"}`)
		s.note(Note{Note: NoteTurnEnded, Turn: title})
		s.want("user: ", "tool: 1 "+title+" cancelled")
	}
}

// One that counts anew may ask before it tells of the call: what is asked for is not what a turn before was cut off at.
func TestAPermissionOfAnotherTurnIsForAnotherCall(t *testing.T) {
	t.Parallel()
	s := tell(t)
	ask := func(call string) {
		s.frame(journal.In, `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"x","toolCall":`+call+`,"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`)
	}
	s.note(Note{Note: NoteTurnBegan, Turn: "one"})
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Test","status":"in_progress","rawInput":{"command":"npm test"}}`)
	ask(`{"toolCallId":"1"}`)
	if string(s.fold.tools["1"].Tool.RawInput) != `{"command":"npm test"}` {
		t.Error("within a turn it is the same call")
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "one"})
	s.want("user: ", "tool: 1 Test cancelled")
	s.note(Note{Note: NoteTurnBegan, Turn: "two"})
	ask(`{"toolCallId":"1","title":"Remove"}`)
	s.want("user: ", "tool: 1 Remove pending")
	if got := s.fold.tools["1"].Tool.RawInput; got != nil {
		t.Errorf("input of a call without one: got %s, want none", got)
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "two"})
	s.want("tool: 1 Remove cancelled")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"b","title":"Build","status":"in_progress"}`)
	s.note(Note{Note: NoteTurnBegan, Turn: "three"})
	ask(`{"toolCallId":"b"}`)
	s.want("tool: b Build in_progress", "user: ") // which goes on, and is the same
}

// What a program writes is not put behind what one of a turn before has written, whose call had the same id.
func TestAProgramOfAnotherTurnIsAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal     string
		first, ended string // how the call is told of later, and how it ends
	}{
		"cut off":                {"", "tool_call", ""},
		"told anew":              {"", "tool_call", "completed"},
		"never told of as begun": {"", "tool_call_update", "completed"},
		"with ids of their own":  {"p", "tool_call", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			info := `{"terminal_info":{}}`
			if c.terminal != "" {
				info = `{"terminal_info":{"terminal_id":"` + c.terminal + `"}}`
			}
			for _, turn := range []string{"One", "Two"} {
				s.note(Note{Note: NoteTurnBegan, Turn: turn})
				s.update(`{"sessionUpdate":%q,"toolCallId":"1","title":%q,"status":"in_progress","_meta":%s}`, c.first, turn, info)
				s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","_meta":{"terminal_output":{"terminal_id":%q,"data":%q}}}`, c.terminal, turn)
				status := "cancelled"
				if c.ended != "" {
					status = c.ended
					s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":%q}`, c.ended)
				}
				s.note(Note{Note: NoteTurnEnded, Turn: turn})
				s.want("user: ", "tool: 1 "+turn+" "+status, "terminal: "+turn)
			}
		})
	}
}

// A program that was begun without a turn, and whose call is over, still runs as far as anybody knows: until another call has its id.
func TestAProgramInTheBackgroundGivesItsIDUp(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Watch","status":"in_progress","_meta":{"terminal_info":{}}}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","_meta":{"terminal_output":{"data":"old"}}}`)
	s.note(Note{Note: NoteTurnBegan, Turn: "one"})
	s.want("tool: 1 Watch completed", "terminal: old", "user: ")
	before := s.fold.running.displays["1"]
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Test","status":"in_progress","_meta":{"terminal_output":{"data":"new"}}}`)
	s.want("terminal: old", "tool: 1 Test in_progress", "terminal: new")
	if before.Terminal.Running {
		t.Error("nothing will ever end it")
	}
}

// An agent that never ends what it begins must not have all of that kept.
func TestWhatNeverEndsIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	s := tell(t)
	const many = 3 * mostGoingOn
	for i := range many {
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"b%d","title":"T","status":"in_progress"}`, i)
		s.note(Note{Note: NoteTurnBegan, Turn: fmt.Sprint(i)})
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":"T","status":"in_progress","_meta":{"terminal_info":{}}}`, i)
		s.note(Note{Note: NoteTurnEnded, Turn: fmt.Sprint(i)})
	}
	s.begin("go")
	if len(s.fold.tools) != mostGoingOn || len(s.fold.running.displays) != mostGoingOn {
		t.Errorf("held are %d calls and %d programs", len(s.fold.tools), len(s.fold.running.displays))
	}
	on := 0
	changes, _ := s.fold.Take()
	for _, c := range changes {
		if c.Entry.Tool != nil && c.Entry.goesOn() {
			on++
		}
	}
	if on != mostGoingOn/2 {
		t.Errorf("%d go on", on)
	}
}

// What was shown of a tool call, and what is known of a session, outlives an update that cannot be read.
func TestBadFieldsWipeNothing(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.frame(journal.In, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"x","configOptions":[{"id":"quick","name":"Quick","type":"boolean","currentValue":true}]}}`)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/a","newText":"x"}],"locations":[{"path":"/a"}]}`)
	for _, bad := range []string{`"title":7`, `"kind":{}`, `"status":5`, `"content":"x"`, `"content":{}`, `"locations":{}`, `"title":null,"content":null,"locations":null`} {
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1",%s}`, bad)
		if tool := s.fold.tools["1"].Tool; tool.Title != "Edit" || tool.Kind != "edit" || tool.Status != "in_progress" || len(tool.Content) != 1 || len(tool.Locations) != 1 {
			t.Fatalf("after %s: %+v", bad, tool)
		}
	}
	s.frame(journal.In, `{"jsonrpc":"2.0","id":2,"result":{"configOptions":{"quick":true}}}`)
	if o := s.fold.Facts.Options; len(o) != 1 || !o[0].Checked {
		t.Errorf("options from an object: got %+v, want one that is checked", o)
	}
	s.update(`{"sessionUpdate":"usage_update","used":5,"size":10,"cost":"free"}`)
	if u := s.fold.Facts.Usage; u == nil || u.Used != 5 || u.Cost != nil {
		t.Errorf("usage with a cost that is a text: got %+v, want 5 used and no cost", u)
	}
	s.frame(journal.In, `{"jsonrpc":"2.0","id":3,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"fork":false,"list":{}}}}}`)
	if got := s.fold.Facts.Offers; !slices.Equal(got, []string{offerList}) {
		t.Errorf("offers: got %v, want list alone", got)
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("user: go", "tool: 1 Edit cancelled")
}

func TestPlanIsReplacedWithinATurn(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"one","status":"pending"}]}`)
	s.chunk("agent_message_chunk", "", "a")
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"one","status":"completed"},{"content":"two","status":"pending"}]}`)
	s.want("user: go", "plan: one completed;two pending;", "agent: a")
}

// Source: ACP version 1, Agent Plan, Plan Operations.
func TestPlansWithIDsStandForThemselves(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"steps","entries":[{"content":"one","status":"pending"}]}}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"why","content":"# Why\n","path":"/w/plan.md"}}`)
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"of old","status":"pending"}]}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"steps","entries":[{"content":"one","status":"completed"}]}}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"why","content":"# Why not\n"}}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"draft","uri":"file:///w/draft.md"}}`)
	s.update(`{"sessionUpdate":"plan_removed","planId":"steps"}`)
	s.update(`{"sessionUpdate":"plan_removed","planId":"nobody's"}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"steps","entries":[{"content":"again","status":"pending"}]}}`)
	s.note(Note{Note: NoteTurnEnded, Reason: "end_turn"})
	s.note(Note{Note: NoteTurnBegan, Turn: "next"})
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"why","content":"# Later\n"}}`)
	s.update(`{"sessionUpdate":"plan_removed","planId":"draft"}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"hologram","planId":"why"}}`)
	s.update(`{"sessionUpdate":"plan_update","plan":{"type":"markdown","content":"of nobody"}}`)
	var got []string
	changes, _ := s.fold.Take()
	slices.SortFunc(changes, func(a, b Change) int { return int(a.Entry.Seq - b.Entry.Seq) })
	for _, c := range changes {
		e := c.Entry
		if e.Kind == "plan" || e.Kind == "raw" {
			line := e.Kind + " " + e.PlanID + " " + strings.TrimSpace(e.Text) + e.Reason
			for _, step := range e.Plan {
				line += step.Content + " " + step.Status
			}
			if e.Removed {
				line += " (removed)"
			}
			got = append(got, line+" "+e.PlanPath)
		}
	}
	want := []string{
		"plan steps one completed (removed) ", "plan why # Why not ", "plan  of old pending ", "plan draft  (removed) /w/draft.md", "plan steps again pending ",
		"plan why # Later ", "raw  broken_update ", "raw  broken_update ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plans: got %q, want %q", got, want)
	}
}

func TestReplayedHistoryIsNotShownAgain(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.note(Note{Note: NoteStarting})
	s.note(Note{Note: NoteReplaying})
	s.chunk("user_message_chunk", "", "old prompt")
	s.chunk("agent_message_chunk", "", "old answer")
	s.update(`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`)
	s.update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"a"}]}`)
	s.note(Note{Note: NoteReady, Reason: "load"})
	s.begin("new")
	s.want("divider: session.loaded", "user: new")
	if len(s.fold.Facts.Commands) != 1 {
		t.Error("facts of the replay are lost")
	}
}

func TestOptionsGroupedAndModes(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.frame(journal.In, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"x","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}}`)
	if o := s.fold.Facts.Options; len(o) != 1 || o[0].ID != modesOption || o[0].Value != "a" || !s.fold.Facts.Modes {
		t.Fatalf("options of older modes: got %+v with modes %v, want one with the value a", o, s.fold.Facts.Modes)
	}
	s.update(`{"sessionUpdate":"current_mode_update","modeId":"b"}`) // the prose's name
	if s.fold.Facts.Options[0].Value != "b" {
		t.Error("the mode did not change")
	}
	s.frame(journal.In, `{"jsonrpc":"2.0","id":2,"result":{"modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]},"configOptions":[
		{"id":"model","name":"Model","category":"model","type":"select","currentValue":"m2","options":[{"group":"g","name":"Fast","options":[{"value":"m1","name":"M1"},{"value":"m2","name":"M2"}]}]},
		{"id":"quick","name":"Quick","type":"boolean","currentValue":true},
		{"id":"new","name":"New","type":"slider","currentValue":3}, {"name":"no id"}]}}`)
	o := s.fold.Facts.Options
	if len(o) != 3 || s.fold.Facts.Modes {
		t.Fatalf("config options win over modes: %+v", o)
	}
	if o[0].Value != "m2" || o[0].Choices[1].Group != "Fast" || !o[1].Checked || o[2].Type != "slider" {
		t.Errorf("options: got %+v, want m2 in a group Fast, a checked one and a slider", o)
	}
}

func TestOlderModelsStandInForAnOption(t *testing.T) {
	t.Parallel()
	const models = `"models":{"currentModelId":"b","availableModels":[{"modelId":"a","name":"A","description":"d"},{"modelId":"b"},{"name":"no id"}]}`
	const quick = `{"id":"quick","name":"Quick","type":"boolean","currentValue":true}`
	told := func(o []ConfigOption) string {
		list := make([]string, len(o))
		for i, o := range o {
			list[i] = o.ID + "=" + o.Value
		}
		return strings.Join(list, " ")
	}
	for name, c := range map[string]struct {
		frames []string // answers of the agent
		want   string
	}{
		"alone":                       {[]string{`{` + models + `}`}, "model=b"},
		"beside modes":                {[]string{`{"modes":{"currentModeId":"m","availableModes":[{"id":"m"}]},` + models + `}`}, "mode=m model=b"},
		"beside other options":        {[]string{`{"configOptions":[` + quick + `],` + models + `}`}, "quick= model=b"},
		"beside an option for models": {[]string{`{"configOptions":[{"id":"x","category":"model","type":"select","currentValue":"c"}],` + models + `}`}, "x=c"},
		"when the options change":     {[]string{`{"configOptions":[],` + models + `}`, `{"configOptions":[` + quick + `]}`}, "quick= model=b"},
		"until there is an option":    {[]string{`{"configOptions":[],` + models + `}`, `{"configOptions":[{"id":"model","type":"select","currentValue":"c"}]}`}, "model=c"},
		"told again":                  {[]string{`{"modes":{"currentModeId":"m","availableModes":[{"id":"m"}]},` + models + `}`, `{"models":{"currentModelId":"a","availableModels":[{"modelId":"a"}]}}`}, "mode=m model=a"},
		"one that is not offered":     {[]string{`{"models":{"currentModelId":"z","availableModels":[{"modelId":"a"}]}}`}, "model=z"},
		"none":                        {[]string{`{"models":{"currentModelId":"z","availableModels":[]}}`}, ""},
		"broken":                      {[]string{`{"models":[1]}`, `{"models":{"availableModels":3}}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			for _, result := range c.frames {
				s.frame(journal.In, `{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
			}
			o := s.fold.Facts.Options
			if got := told(o); got != c.want {
				t.Errorf("got %q, want %q of %s", got, c.want, c.frames)
			}
			if i := len(o) - 1; i >= 0 && o[i].Type == "select" && s.fold.Facts.Models && !o[i].Offers(o[i].Value) {
				t.Errorf("got the choices %+v, want %q among them", o[i].Choices, o[i].Value)
			}
		})
	}
}

func TestLongTextsAreClippedAtARune(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	piece := strings.Repeat("ü", 1000)
	for range 200 {
		s.chunk("agent_message_chunk", "", piece)
	}
	e := s.fold.open
	if len(e.Text) > MaxText || len(e.Text)+e.Clipped != 200*len(piece) || strings.ContainsRune(e.Text, '\uFFFD') {
		t.Errorf("%d shown, %d clipped", len(e.Text), e.Clipped)
	}
	long := strings.Repeat("x", 3*MaxItem)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"T","content":[{"type":"diff","path":"/a","newText":%q}],"rawOutput":{"n":1,"out":%q}}`, long, long)
	tool := s.fold.tools["1"].Tool
	for _, raw := range []json.RawMessage{tool.Content[0], tool.RawOutput} {
		if !json.Valid(raw) || len(raw) > MaxItem+1000 {
			t.Errorf("got %d bytes, want %d at most", len(raw), MaxItem+1000)
		}
	}
	if want := []Cut{{"/content/0/newText", MaxItem, 2 * MaxItem, 0}, {"/rawOutput/out", MaxItem / 4, 2 * MaxItem, 0}}; !slices.Equal(tool.Cut, want) {
		t.Errorf("got the cuts %v, want %v", tool.Cut, want)
	}
}

func TestUpdatesOfAnotherSessionAreNotOurs(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.chunk("agent_message_chunk", "", "before it has a name") // may come before the answer to session/new
	s.note(Note{Note: NoteReady, Reason: "new", Session: "ours"})
	s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"theirs"}}`) // of session x
	s.frame(journal.In, `{"method":"session/update","params":{"sessionId":"ours","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ours"}}}}`)
	s.want("agent: before it has a name", "raw: other_session", "agent: ours")
}

func TestAClippedMessageIsNotToldWithEveryChunk(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.chunk("agent_message_chunk", "", strings.Repeat("x", MaxText))
	s.fold.Take()
	told, last := 0, 0
	for range 1000 {
		s.chunk("agent_message_chunk", "", "0123456789")
		changes, _ := s.fold.Take()
		told += len(changes)
		if len(changes) > 0 {
			last = changes[0].Entry.Clipped
		}
	}
	if told == 0 || told > 15 {
		t.Errorf("told %d times in 1000 chunks", told)
	}
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	changes, _ := s.fold.Take()
	if len(changes) != 1 || changes[0].Entry.Clipped != 10_000 || last >= 10_000 {
		t.Errorf("at the end %+v, before that %d", changes, last)
	}
}

func TestAppendsTellTheirOffset(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.chunk("agent_message_chunk", "", "a𝄞") // three UTF-16 units
	if c, _ := s.fold.Take(); len(c) != 2 || c[1].Append != nil && c[1].Append.Offset != 0 {
		t.Fatalf("first chunk: got changes %+v, want 2, the text whole", c)
	}
	s.chunk("agent_message_chunk", "", "b")
	s.chunk("agent_message_chunk", "", "c")
	c, _ := s.fold.Take()
	if len(c) != 1 || c[0].Append == nil || c[0].Append.Text != "bc" || c[0].Append.Offset != 3 || c[0].Entry.Text != "a𝄞bc" {
		t.Errorf("later chunks: got %d changes, first append %+v, want bc at 3", len(c), c[0].Append)
	}
}

// FuzzFold feeds any message to the fold: it must neither panic nor lose what came before.
func FuzzFold(f *testing.F) {
	for _, seed := range []string{
		`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"1","content":[{"type":"x"}]}}}`,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","type":"select","options":[{"options":[{}]}]}]}}}`,
		`{"result":{"modes":{"availableModes":[{"id":"x"}]}}}`, `[]`, `null`, `{"method":"session/request_permission","params":{"toolCall":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := tell(t)
		s.begin("go")
		s.frame(journal.In, string(data))
		s.chunk("agent_message_chunk", "an id of its own", "after")
		s.note(Note{Note: NoteTurnEnded, Turn: "t"})
		got := s.entries()
		if len(got) < 2 || got[0] != "user: go" || !slices.Contains(got, "agent: after") {
			t.Errorf("%q led to %v", data, got)
		}
	})
}

func TestAValueOfAnyDepthCanBeReadAgain(t *testing.T) {
	t.Parallel()
	const most = 10_000 - 3 // what a message may hold at all, less the levels around it
	s := tell(t)
	s.update(`{"sessionUpdate":"odd","deep":%s%s}`, strings.Repeat("[", most), strings.Repeat("]", most))
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"t","rawInput":%s%s}`, strings.Repeat("[", most), strings.Repeat("]", most))
	changes, _ := s.fold.Take()
	if len(changes) != 2 {
		t.Fatalf("%d entries", len(changes))
	}
	for _, c := range changes {
		var e Entry
		if err := json.Unmarshal(record.JSON(c.Entry), &e); err != nil {
			t.Errorf("decoding a record of kind %s: got error %v, want none", c.Entry.Kind, err)
		}
	}
}

func TestAnotherProcessBeginsAnotherMessage(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.chunk("agent_message_chunk", "", "before")
	s.chunk("agent_message_chunk", "1", "named")
	s.note(Note{Note: NoteStarting})
	s.chunk("agent_message_chunk", "", "after")
	s.chunk("agent_message_chunk", "1", "named again")
	if got := s.entries(); len(got) != 4 {
		t.Errorf("entries: got %q, want 4", got)
	}
}

// A person need not wait for the end of an import. What is said meanwhile is no part of the history: it stays when that breaks off, and what the
// agent replays is not taken for its echo.
func TestAPromptDuringAnImport(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.note(Note{Note: NoteImporting})
	s.chunk("user_message_chunk", "", "go")
	s.chunk("agent_message_chunk", "", "then")
	s.begin("go on now")
	s.want("user: go on now")
	s.chunk("user_message_chunk", "", "go on")
	s.update(`{"sessionUpdate":"user_message_chunk","content":{"type":"image","mimeType":"image/png","data":"AAAA"}}`)
	s.chunk("agent_message_chunk", "", "once")
	s.want()
	s.note(Note{Note: NoteReady, Reason: RestoredImport, Session: "x"})
	s.want("user: go", "agent: then", "user: go on", "agent: once", "divider: session.imported")
	s.chunk("user_message_chunk", "", "go on now") // which it has been sent now
	s.chunk("agent_message_chunk", "", "I go on")
	s.want("agent: I go on")

	s = tell(t)
	s.note(Note{Note: NoteImporting})
	s.chunk("agent_message_chunk", "", "once")
	s.begin("go on now")
	s.note(Note{Note: NoteTurnEnded, Turn: "t", Reason: "error"})
	s.note(Note{Note: NoteClosed, Exit: &Exit{Problem: "session.import_failed"}})
	s.want("user: go on now", "divider: agent.start_failed")
}

// A turn of hours is not kept whole in memory to be gone on with.
func TestWhatCannotGoOnIsNotHeld(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	for i := range 50 {
		s.chunk("agent_message_chunk", "", "a")
		s.chunk("agent_thought_chunk", fmt.Sprint(i), "hm")
		s.note(Note{Note: NoteTerminal, Terminal: &Terminal{TerminalID: fmt.Sprint(i), Running: true}, Text: "out"})
		s.note(Note{Note: NoteTerminal, Terminal: &Terminal{TerminalID: fmt.Sprint(i)}, Text: "put"})
	}
	if n := len(s.fold.texts.growing); n > 3 {
		t.Errorf("%d texts", n)
	}
}

// A state that the protocol does not know is not the end of a call: a stop still ends that.
func TestAnUnknownStateOfACallIsNone(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	for n, state := range []string{"running", "paused", ""} {
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"a%d","title":"Begins","status":%q}`, n, state)
		s.update(`{"sessionUpdate":"tool_call","toolCallId":"b%d","title":"Goes on","status":"in_progress"}`, n)
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"b%d","status":%q}`, n, state)
	}
	s.want("user: go", "tool: a0 Begins pending", "tool: b0 Goes on in_progress", "tool: a1 Begins pending", "tool: b1 Goes on in_progress",
		"tool: a2 Begins pending", "tool: b2 Goes on in_progress")
	s.frame(journal.Out, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`)
	if changes, _ := s.fold.Take(); len(changes) != 6 {
		t.Errorf("a stop ends %d of six", len(changes))
	}
}

// TestCallsOfOneTurnWithOneID: some agents call every call the same, or count anew with each answer of their model. What the first has said stays.
func TestCallsOfOneTurnWithOneID(t *testing.T) {
	t.Parallel()
	const ended = `{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","status":"completed","rawInput":{"a":1},"content":[{"type":"content","content":{"type":"text","text":"first"}}]}`
	for name, c := range map[string]struct {
		updates []string
		want    []string
	}{
		"each with updates": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two","status":"pending"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"failed"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Three"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","title":"Three still"}`,
		}, []string{"tool: 0 One completed", "tool: 0 Two failed", "tool: 0 Three still pending"}},
		"the same one twice":      {[]string{ended, `{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","status":"in_progress","rawInput":{"a":1}}`}, []string{"tool: 0 One completed", "tool: 0 One in_progress"}},
		"each told once":          {[]string{ended, strings.ReplaceAll(ended, "first", "second")}, []string{"tool: 0 One completed", "tool: 0 One completed"}},
		"with another title":      {[]string{ended, strings.ReplaceAll(ended, "One", "Two")}, []string{"tool: 0 One completed", "tool: 0 Two completed"}},
		"with another input":      {[]string{ended, strings.ReplaceAll(ended, `"a":1`, `"a":2`)}, []string{"tool: 0 One completed", "tool: 0 One completed"}},
		"an end that is repeated": {[]string{ended, ended}, []string{"tool: 0 One completed"}},
		"an end that says more":   {[]string{`{"sessionUpdate":"tool_call","toolCallId":"0","status":"completed"}`, ended}, []string{"tool: 0 One completed"}},
		"an update after the end": {[]string{ended, `{"sessionUpdate":"tool_call_update","toolCallId":"0","title":"Two","status":"completed"}`}, []string{"tool: 0 Two completed"}},
		"two that run at once": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"One"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"failed"}`,
		}, []string{"tool: 0 One completed", "tool: 0 Two failed"}},
		"three that run at once, by their inputs": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read","status":"in_progress","rawInput":{"path":"a"}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read","status":"in_progress","rawInput":{"path":"b"}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read c","status":"in_progress","rawInput":{"path":"c"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"failed","rawInput":{"path":"b"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed","title":"Read c"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed"}`,
		}, []string{"tool: 0 Read completed", "tool: 0 Read failed", "tool: 0 Read c completed"}},
		"one that is announced again": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read","rawInput":{}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read","rawInput":{}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Read a","rawInput":{"path":"a"}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Reading","status":"in_progress","rawInput":{"path":"/w/a","line":1}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Done","status":"completed"}`,
		}, []string{"tool: 0 Done completed"}},
		"two, one of which is announced again": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","rawInput":{"a":1}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two","rawInput":{"a":2}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","status":"in_progress","rawInput":{"a":1}}`,
		}, []string{"tool: 0 One in_progress", "tool: 0 Two pending"}},
		"a program of each":        {[]string{ended, `{"sessionUpdate":"tool_call_update","toolCallId":"0","_meta":{"terminal_output":{"data":"old"}}}`, `{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two","_meta":{"terminal_output":{"data":"new"}}}`}, []string{"tool: 0 One completed", "terminal: old", "tool: 0 Two pending", "terminal: new"}},
		"a program with an id too": {[]string{ended, `{"sessionUpdate":"tool_call_update","toolCallId":"0","_meta":{"terminal_output":{"terminal_id":"p","data":"old"},"terminal_exit":{"terminal_id":"p","exit_code":0}}}`, `{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two","_meta":{"terminal_output":{"terminal_id":"p","data":"new"}}}`}, []string{"tool: 0 One completed", "terminal: old", "tool: 0 Two pending", "terminal: new"}},
	} {
		for _, within := range []bool{true, false} {
			s := tell(t)
			if within {
				s.begin("go")
				s.want("user: go")
			}
			for _, u := range c.updates {
				s.update("%s", u)
			}
			t.Logf("%s, within a turn %t", name, within)
			s.want(c.want...)
		}
	}
}

// TestAPermissionForTheIDOfACallThatHasEnded is for another call: what is asked for is not shown, nor judged, as what is done already.
func TestAPermissionForTheIDOfACallThatHasEnded(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Test","status":"completed","rawInput":{"command":"npm test"}}`)
	s.frame(journal.In, `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"x","toolCall":{"toolCallId":"0"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`)
	if got := s.fold.tools["0"].Tool.RawInput; got != nil {
		t.Errorf("the permission is shown with %s, of the call before it", got)
	}
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Remove","status":"in_progress"}`)
	s.want("user: go", "tool: 0 Test completed", "tool: 0 Remove in_progress")
}

// TestAPermissionForTheIDOfCallsThatRun is judged by nothing but what it says itself: nobody knows for which of the calls it asks.
func TestAPermissionForTheIDOfCallsThatRun(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"0","title":"One","rawInput":{"command":"a"}}`)
	if e := s.fold.CallOfTurn("0"); e == nil || e.Tool.Title != "One" {
		t.Errorf("CallOfTurn(0) of one call: got %+v, want One", e)
	}
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Two","rawInput":{"command":"b"}}`)
	if e := s.fold.CallOfTurn("0"); e != nil {
		t.Errorf("CallOfTurn(0) of two calls: got %+v, want none", e)
	}
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed"}`)
	if e := s.fold.CallOfTurn("0"); e == nil || e.Tool.Title != "Two" {
		t.Errorf("CallOfTurn(0) of the call that runs on: got %+v, want Two", e)
	}
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"0","title":"Three","rawInput":{"command":"c"}}`)
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("user: go", "tool: 0 One completed", "tool: 0 Two cancelled", "tool: 0 Three cancelled")
}

// TestACharacterThatIsCutBetweenChunks is put together, also around what else the agent prints; what has no second half is told as such.
func TestACharacterThatIsCutBetweenChunks(t *testing.T) {
	t.Parallel()
	chunk := func(s *story, text string) {
		s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}`, text)
	}
	s := tell(t)
	s.begin("go")
	chunk(s, `a \ud83d`)
	s.want("user: go", "agent: a ")
	chunk(s, `\ude00 b`)
	s.want("agent: a 😀 b")
	chunk(s, `\ud83d`)
	s.frame(journal.In, `{"jsonrpc":"2.0","method":"_adapter/invalid_stdout","params":{"error":"text around a message","raw":"x"}}`)
	chunk(s, `\ude01`)
	s.want("agent: a 😀 b😁", "raw: invalid_stdout")
	chunk(s, `c\ud83d`)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"completed"}`)
	s.want("agent: a 😀 b😁c�", "tool: 1 T completed")
	chunk(s, `\ude00d\ud83d`)
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("agent: �d�")
}

// TestACharacterThatIsCutElsewhere is put together in a compaction's summary, and in the output of a program beside the conversation.
func TestACharacterThatIsCutElsewhere(t *testing.T) {
	t.Parallel()
	summary := func(s *story, text string) {
		s.update(`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"%s"}}`, text)
	}
	output := func(s *story, member, text string) {
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","_meta":{"%s":{"data":"%s"}}}`, member, text)
	}
	s := tell(t)
	s.begin("go")
	summary(s, `a \ud83d`)
	summary(s, `\ude00 b`)
	s.want("user: go", "compaction: a 😀 b")
	summary(s, `\udcf0\udc9f`)
	summary(s, `\udc98\udc80`)
	s.want("compaction: a 😀 b😀")

	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"in_progress"}`)
	output(s, "terminal_output", `x \ud83d`)
	s.chunk("agent_message_chunk", "", "meanwhile")
	output(s, "terminal_output", `\ude00`)
	output(s, "terminal_output_delta", `\udce4\udcbd`)
	output(s, "terminal_output_delta", `\udca0 y\ud83d`)
	s.note(Note{Note: NoteTurnEnded, Turn: "t"})
	s.want("compaction: a 😀 b😀", "tool: 1 T cancelled", "terminal: x 😀你 y�", "agent: meanwhile")
}
