package session_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// These tests cover ACP v1: every update, every request of an agent, every method of a client and every capability of the published schema
// has a case here, and an addition to the schema fails the test.

// shown returns an entry in the notation of the tables below.
func shown(e transcript.Entry) string {
	switch {
	case e.Tool != nil:
		text := fmt.Sprintf("tool %s %s %s %q", e.Tool.ToolCallID, e.Tool.Kind, e.Tool.Status, e.Tool.Title)
		for _, c := range e.Tool.Content {
			text += " " + string(c)
		}
		for _, l := range e.Tool.Locations {
			text += " at " + filepath.Base(l.Path)
		}
		if e.Tool.Parent != "" {
			text += " of " + e.Tool.Parent
		}
		return text
	case e.Terminal != nil:
		code := "-"
		if e.Terminal.ExitCode != nil {
			code = fmt.Sprint(*e.Terminal.ExitCode)
		}
		return fmt.Sprintf("terminal %s %q %v %s", e.Terminal.TerminalID, e.Text, e.Terminal.Running, code)
	case e.Compaction != nil:
		return fmt.Sprintf("compaction %s %s %q %s", e.Compaction.CompactionID, e.Compaction.Status, e.Text, e.Compaction.Error)
	case e.Notice != nil:
		return fmt.Sprintf("notice %s %q %q", e.Notice.Severity, e.Notice.Title, e.Notice.Description)
	case e.Kind == "plan":
		return fmt.Sprintf("plan %v%s", e.Plan, e.Text)
	case e.Kind == "raw":
		return "raw " + e.Reason
	}
	text := fmt.Sprintf("%s %q", e.Kind, e.Text)
	for _, b := range e.Blocks {
		text += " " + string(b)
	}
	return text
}

type updateCase struct {
	name    string
	updates []string
	want    []string                         // the entries that the updates make, in the notation of shown
	session func(session.Session) (any, any) // the session's values that the updates change: the actual ones and the expected ones
	wild    bool                             // deliberately not in the stable schema
}

func block(kind, messageID, text string) string {
	id := ""
	if messageID != "" {
		id = fmt.Sprintf(`,"messageId":%q`, messageID)
	}
	return fmt.Sprintf(`{"sessionUpdate":%q%s,"content":{"type":"text","text":%q}}`, kind, id, text)
}

func updateCases() []updateCase {
	return []updateCase{
		{name: "a message grows by its id", updates: []string{
			block("agent_message_chunk", "a", "one "), block("agent_message_chunk", "b", "other"), block("agent_message_chunk", "a", "two"),
		}, want: []string{`agent "one two"`, `agent "other"`}},
		{name: "chunks without an id join until something else comes", updates: []string{
			block("agent_message_chunk", "", "one "), block("agent_message_chunk", "", "two"), block("agent_thought_chunk", "", "hm"), block("agent_message_chunk", "", "three"),
		}, want: []string{`agent "one two"`, `thought "hm"`, `agent "three"`}},
		{name: "blocks that are no text", updates: []string{
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///a","name":"a"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///b","text":"b"}}}`,
		}, want: []string{`agent "" {"type":"resource_link","uri":"file:///a","name":"a"} {"type":"image","data":"AAAA","mimeType":"image/png"} ` +
			`{"type":"audio","data":"AAAA","mimeType":"audio/wav"} {"type":"resource","resource":{"uri":"file:///b","text":"b"}}`}},
		{name: "what somebody types into the agent elsewhere", updates: []string{block("user_message_chunk", "u", "typed elsewhere")}, want: []string{`user "typed elsewhere"`}},
		{name: "a tool call and its updates: what is left out stays, lists are replaced", updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","kind":"read","status":"pending","locations":[{"path":"/x/a","line":3}],"content":[{"type":"content","content":{"type":"text","text":"old"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","title":null,"content":[{"type":"diff","path":"/x/a","oldText":null,"newText":"n"}]}`,
		}, want: []string{`tool 1 read completed "Look" {"type":"diff","path":"/x/a","oldText":null,"newText":"n"} at a`}},
		{name: "an update of a tool call that nobody has heard of makes it", updates: []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"2","title":"Late","kind":"execute","status":"failed"}`,
		}, want: []string{`tool 2 execute failed "Late"`}},
		{name: "a tool call that is left open ends with the turn", updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":"3","title":"Open","status":"in_progress"}`,
		}, want: []string{`tool 3 other cancelled "Open"`}},
		{name: "a subagent's tool call names the one it belongs to", updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":"4","title":"Inner","status":"completed","_meta":{"claudeCode":{"parentToolUseId":"0"}}}`,
		}, want: []string{`tool 4 other completed "Inner" of 0`}},
		{name: "a program of the agent's own, in the extension for it", updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":"5","title":"ls","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"5"}],"_meta":{"terminal_info":{"terminal_id":"5","cwd":"/"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"5","_meta":{"terminal_output":{"terminal_id":"5","data":"a\n"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"5","_meta":{"terminal_output_delta":{"terminal_id":"5","data":"b\n"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"5","status":"completed","_meta":{"terminal_exit":{"terminal_id":"5","exit_code":2,"signal":null}}}`,
		}, want: []string{`tool 5 execute completed "ls" {"type":"terminal","terminalId":"5"}`, `terminal 5 "a\nb\n" false 2`}},
		{name: "ids and values that are numbers", wild: true, updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":7,"title":"Look","status":"pending"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"7","status":"completed"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[
				{"id":1,"name":"Depth","type":"select","currentValue":2,"options":[{"value":2,"name":"Deep"}]},{"id":3,"name":"Web","type":"boolean","currentValue":"true"}]}`,
		}, want: []string{`tool 7 other completed "Look"`}, session: func(s session.Session) (any, any) {
			return s.ConfigOptions, []transcript.ConfigOption{
				{ID: "1", Name: "Depth", Type: "select", Value: "2", Choices: []transcript.ConfigChoice{{Value: "2", Name: "Deep"}}}, {ID: "3", Name: "Web", Type: "boolean", Checked: true},
			}
		}},
		{name: "a plan is replaced as a whole", updates: []string{
			`{"sessionUpdate":"plan","entries":[{"content":"one","priority":"high","status":"pending"},{"content":"two","priority":"low","status":"pending"}]}`,
			`{"sessionUpdate":"plan","entries":[{"content":"one","priority":"high","status":"completed"}]}`,
		}, want: []string{"plan [{one high completed}]"}},
		{name: "commands, one of them with input null", updates: []string{
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"d","input":null},{"name":"ask","description":"","input":{"hint":"what"}}]}`,
		}, session: func(s session.Session) (any, any) {
			return s.Commands, []transcript.Command{{Name: "init", Description: "d"}, {Name: "ask", Hint: "what"}}
		}},
		{name: "options: grouped, boolean, and a category that nobody knows", updates: []string{
			`{"sessionUpdate":"config_option_update","configOptions":[
				{"id":"model","name":"Model","category":"model","type":"select","currentValue":"b","options":[{"group":"g1","name":"Fast","options":[{"value":"a","name":"A"}]},{"group":"g2","name":"Slow","options":[{"value":"b","name":"B","description":"big"}]}]},
				{"id":"web","name":"Web","category":"_of_mine","type":"boolean","currentValue":true},
				{"id":"flat","name":"Flat","type":"select","currentValue":"x","options":[{"value":"x","name":"X"}]}]}`,
		}, session: func(s session.Session) (any, any) {
			return s.ConfigOptions, []transcript.ConfigOption{
				{ID: "model", Name: "Model", Category: "model", Type: "select", Value: "b", Choices: []transcript.ConfigChoice{{Value: "a", Name: "A", Group: "Fast"}, {Value: "b", Name: "B", Description: "big", Group: "Slow"}}},
				{ID: "web", Name: "Web", Category: "_of_mine", Type: "boolean", Checked: true},
				{ID: "flat", Name: "Flat", Type: "select", Value: "x", Choices: []transcript.ConfigChoice{{Value: "x", Name: "X"}}},
			}
		}},
		{name: "an option of a type that nobody knows does not break the rest", wild: true, updates: []string{
			`{"sessionUpdate":"config_option_update","configOptions":[{"id":"dial","name":"Dial","type":"_slider","currentValue":7},{"id":"ok","name":"Ok","type":"boolean","currentValue":true},7]}`,
		}, session: func(s session.Session) (any, any) {
			ids := []string{}
			for _, o := range s.ConfigOptions {
				ids = append(ids, o.ID+" "+o.Type)
			}
			return ids, []string{"dial _slider", "ok boolean"}
		}},
		{name: "the older modes count for nothing beside options", updates: []string{`{"sessionUpdate":"current_mode_update","currentModeId":"m"}`}},
		{
			name: "a title", updates: []string{`{"sessionUpdate":"session_info_update","title":"Named by the agent"}`, `{"sessionUpdate":"session_info_update","updatedAt":"2026-01-01T00:00:00Z"}`},
			session: func(s session.Session) (any, any) { return s.Title, "Named by the agent" },
		},
		{
			name: "usage and cost", updates: []string{`{"sessionUpdate":"usage_update","used":7,"size":9,"cost":{"amount":0.5,"currency":"USD"}}`},
			session: func(s session.Session) (any, any) {
				return s.Usage, &transcript.Usage{Used: 7, Size: 9, Cost: &transcript.Cost{Amount: 0.5, Currency: "USD"}}
			},
		},
		{name: "a notice", updates: []string{`{"sessionUpdate":"notice","severity":"warning","title":"Careful","description":"very"}`}, want: []string{`notice warning "Careful" "very"`}},
		{name: "a compaction and its summary", updates: []string{
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"so "}}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"far"}}`,
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`,
		}, want: []string{`compaction c completed "so far" `}},
		{name: "a compaction: a chunk makes one, a summary replaces, null clears, omission keeps", updates: []string{
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"d","content":{"type":"text","text":"x"}}`,
			`{"sessionUpdate":"compaction_update","compactionId":"d","status":"failed","summary":[{"type":"text","text":"new"}],"error":"too long"}`,
			`{"sessionUpdate":"compaction_update","compactionId":"d","status":"failed"}`,
			`{"sessionUpdate":"compaction_update","compactionId":"e","status":"completed","summary":[{"type":"text","text":"gone"}],"error":"gone"}`,
			`{"sessionUpdate":"compaction_update","compactionId":"e","status":"_odd","summary":null,"error":null}`,
		}, want: []string{`compaction d failed "new" too long`, `compaction e _odd "" `}},
		{
			name: "a compaction that is left open ends with the turn", updates: []string{`{"sessionUpdate":"compaction_update","compactionId":"f","status":"in_progress"}`},
			want: []string{`compaction f cancelled "" `},
		},
		{name: "plans with ids are replaced one by one, and dismissed", wild: true, updates: []string{ // stable since the schema that is kept here
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"a","entries":[{"content":"one","priority":"high","status":"pending"}]}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"b","content":"# Why","path":"/w/plan.md"}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"a","entries":[{"content":"one","priority":"high","status":"completed"}]}}`,
			`{"sessionUpdate":"plan_removed","planId":"b"}`,
		}, want: []string{"plan [{one high completed}]", "plan []# Why"}},
		{name: "what nobody knows is shown as it came", wild: true, updates: []string{
			`{"sessionUpdate":"plan_folded","planId":"p"}`, `{"sessionUpdate":"tool_call"}`, `{"sessionUpdate":"_vendor","x":1}`, `{"x":1}`,
		}, want: []string{"raw unknown_update", "raw broken_update", "raw unknown_update", "raw broken_update"}},
	}
}

func TestUpdatesOfProtocolAreShown(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	fits := acpSchema(t)("session/update", "Notification")
	seen := map[string]bool{}
	for _, tc := range updateCases() {
		t.Run(tc.name, func(t *testing.T) {
			id := d.asking()
			var steps []step
			for _, u := range tc.updates {
				var value map[string]any
				if err := json.Unmarshal([]byte(u), &value); err != nil {
					t.Fatal(err)
				}
				kind, _ := value["sessionUpdate"].(string)
				if err := fits.Validate(map[string]any{"sessionId": "s", "update": value}); (err != nil) && !tc.wild {
					t.Errorf("the case itself does not fit the schema: %v", err)
				}
				seen[kind] = seen[kind] || !tc.wild
				steps = append(steps, step{Update: json.RawMessage(u)})
			}
			d.steps(id, steps...)
			tr := d.transcript(id).Items
			var have []string
			for _, e := range tr[1 : len(tr)-1] { // without the prompt and the agent's last message
				have = append(have, shown(e))
			}
			if !slices.Equal(have, tc.want) {
				t.Errorf("shown:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(tc.want, "\n"))
			}
			if tc.session != nil {
				if have, want := tc.session(d.get(id)); !reflect.DeepEqual(have, want) {
					t.Errorf("the session has\n%+v\nwant\n%+v", have, want)
				}
			}
			d.sameAsRebuilt(id)
		})
	}
	for _, variant := range acpDefinitions(t)["SessionUpdate"].(map[string]any)["oneOf"].([]any) {
		kind := variant.(map[string]any)["properties"].(map[string]any)["sessionUpdate"].(map[string]any)["const"].(string)
		if !seen[kind] {
			t.Errorf("no case for %s", kind)
		}
	}
}

// Each request of an agent gets its answer. Requests that people answer are tested beside requests.go, and the frames that Deskhand sends
// are checked in TestSentFramesFitSchema.
func TestRequestsOfProtocolAreAnswered(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	file := d.write("file", "one\ntwo\n")
	id := d.asking()
	steps := []step{
		read(file, "line", 2, "limit", 1), write(filepath.Join(d.work, "new", "file"), "text"),
		{Ask: "terminal/create", Params: map[string]any{"command": "echo", "args": []string{"hello"}, "env": []any{map[string]any{"name": "A", "value": "b"}}, "cwd": d.work, "outputByteLimit": 100}},
		of("output"), of("wait_for_exit"), of("kill"), of("release"),
		{Ask: "_vendor/unknown"},
		{Ask: "session/unheard_of", As: "u"},
		{Notify: "_vendor/unknown"},
		{Notify: "elicitation/complete", Params: map[string]any{"elicitationId": "e"}},
		{Cancel: "u"},
		{Await: "u"},
		{Ask: "elicitation/create", Params: map[string]any{"mode": "url", "elicitationId": "e", "url": "ftp://example.com", "message": "go there"}},
		{Ask: "session/request_permission", As: "p", Params: map[string]any{
			"toolCall": map[string]any{"toolCallId": "t"}, "options": []any{map[string]any{"optionId": "o", "name": "Yes", "kind": "allow_once"}},
		}},
		{Cancel: "p"},
		{Await: "p"},
		{Ask: "elicitation/create", As: "e", Params: map[string]any{"mode": "form", "message": "m", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}},
		{Cancel: "e"},
		{Await: "e"},
		{Ask: "elicitation/create", As: "w", Params: map[string]any{"mode": "url", "elicitationId": "w", "url": "https://example.com", "message": "go there"}},
		{Notify: "elicitation/complete", Params: map[string]any{"elicitationId": "w"}},
		{Await: "w"},
	}
	got := d.steps(id, steps...)
	code := map[int]int{7: -32601, 8: -32800, 9: -32602}
	for i, a := range got {
		if want, bad := code[i]; bad != (a.Error != nil) || bad && a.Error.Code != want {
			t.Errorf("answer %d: %s %+v", i, a.Result, a.Error)
		}
	}
	if string(got[12].Result) != `{"action":"accept"}` {
		t.Errorf("an address where all is done is answered with %s", got[12].Result)
	}
	if string(got[10].Result) != `{"outcome":{"outcome":"cancelled"}}` || string(got[11].Result) != `{"action":"cancel"}` {
		t.Errorf("withdrawn requests are answered with %s and %s", got[10].Result, got[11].Result)
	}
	seen := d.checkFrames(t, id)
	for method, side := range acpMethods(t) {
		if side == "client" && method != "session/update" && method != "elicitation/complete" && !seen[method+" Response"] {
			t.Errorf("no case for %s", method)
		}
	}
}

// The methods that a client sends, each with the test that sends it.
func TestMethodsOfOursAreTested(t *testing.T) {
	proof := map[string]string{
		"initialize": "TestCapabilitiesAreThoseOfTheProtocol", "authenticate": "TestLoginTriesAgainWhatWasRefused", "logout": "TestLoginTriesAgainWhatWasRefused",
		"session/new": "TestDirectoriesAreToldToAgent", "session/resume": "TestDirectoriesAreToldToAgent", "session/load": "TestDirectoriesAreToldToAgent",
		"session/list": "TestImportDependsOnCapabilities", "session/delete": "TestDeletionIsToldToAgent", "session/close": "TestDeletionIsToldToAgent",
		"session/prompt": "TestSentFramesFitSchema", "session/cancel": "TestSentFramesFitSchema",
		"session/set_config_option": "TestSentFramesFitSchema", "session/set_mode": "TestOlderModesAreSetByTheirMethod",
		"$/cancel_request": "TestCancelRequestFitsSchema",
	}
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(data)
	}
	for method, side := range acpMethods(t) {
		if side == "client" {
			continue
		}
		if !regexp.MustCompile(`\nfunc `+proof[method]+`\w*\(`).MatchString(tests.String()) || proof[method] == "" {
			t.Errorf("no test for %s: %q", method, proof[method])
		}
	}
}

// The declared capabilities are those of Deskhand, and none that the schema does not know, except extensions in _meta.
func TestCapabilitiesAreThoseOfTheProtocol(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.idle(id)
	var sent struct {
		Params struct {
			ProtocolVersion    int
			ClientInfo         map[string]string
			ClientCapabilities map[string]any
		}
	}
	d.frames(id, func(dir string, data []byte) {
		if dir == "out" && strings.Contains(string(data), `"initialize"`) {
			if err := json.Unmarshal(data, &sent); err != nil {
				t.Fatal(err)
			}
		}
	})
	d.checkFrames(t, id)
	const want = `{"_meta":{"sandboxagent.dev":{"extensions":{"sessionRequestQuestion":true}},"terminal-auth":true,"terminal_output":true},` +
		`"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"fs":{"readTextFile":true,"writeTextFile":true},"plan":{},` +
		`"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}},"subagents":{},"terminal":true}`
	if have, _ := json.Marshal(sent.Params.ClientCapabilities); string(have) != want {
		t.Errorf("capabilities: got %s\nwant %s", have, want)
	}
	if sent.Params.ProtocolVersion != 1 || sent.Params.ClientInfo["name"] != "deskhand" {
		t.Errorf("initialize: got %+v, want protocol version 1 of deskhand", sent)
	}
	known := acpDefinitions(t)["ClientCapabilities"].(map[string]any)["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, told := sent.Params.ClientCapabilities[name]; !told {
			t.Errorf("nothing is told of %s", name)
		}
	}
}

func TestDirectoriesAreToldToAgent(t *testing.T) {
	takes := `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{%s"additionalDirectories":{}}}}`
	for method, options := range map[string]string{
		"session/resume": fmt.Sprintf(takes, `"resume":{},`), "session/load": fmt.Sprintf(takes, ""),
		"": `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":null}}}`,
	} {
		t.Run(method, func(t *testing.T) {
			d := askingDesk(t, t.TempDir(), options)
			one, two := filepath.Join(d.dir, "one"), filepath.Join(d.dir, "two")
			for _, dir := range []string{one, two} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := d.Create(t.Context(), session.New{Agent: "asking", Cwd: d.work, Directories: []string{"one"}})
			refused(t, err, "directory.relative")
			_, err = d.Create(t.Context(), session.New{Agent: "asking", Cwd: d.work, Directories: []string{filepath.Join(d.dir, "three")}})
			refused(t, err, "directory.missing")
			id := d.asking(one, one+"/")
			d.idle(id)
			if s := d.get(id); !slices.Equal(s.Directories, []string{one}) {
				t.Errorf("directories: got %q, want %q once", s.Directories, one)
			}
			d.steps(id)
			if s, err := d.Change(t.Context(), id, session.Patch{Directories: &[]string{two, one}}); err != nil || !slices.Equal(s.Directories, []string{two, one}) {
				t.Fatal(s.Directories, err)
			}
			got := d.steps(id, write(filepath.Join(two, "file"), "x"))
			if got[0].Error != nil {
				t.Errorf("a directory is open to the agent from its start on: %+v", got[0].Error)
			}
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
			told := map[string]any{}
			d.frames(id, func(dir string, data []byte) {
				var m struct {
					Method string
					Params map[string]any
				}
				if dir == "out" && json.Unmarshal(data, &m) == nil && m.Params["mcpServers"] != nil {
					told[m.Method] = m.Params["additionalDirectories"]
				}
			})
			want := map[string]any{"session/new": []any{one}, method: []any{two, one}}
			if method == "" {
				want = map[string]any{"session/new": nil}
			}
			if !reflect.DeepEqual(told, want) {
				t.Errorf("told %v, want %v", told, want)
			}
			d.checkFrames(t, id)
		})
	}
}

// A directory that was added since the agent's start is not sent with a fork, which is made in the running process, since nobody has
// checked the directory.
func TestForkIsToldDirectoriesOfItsAgent(t *testing.T) {
	d := askingDesk(t, t.TempDir(), `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"fork":{},"resume":{},"additionalDirectories":{}}}}`)
	one, two := filepath.Join(d.dir, "one"), filepath.Join(d.dir, "two")
	for _, dir := range []string{one, two} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	id := d.asking(one)
	d.steps(id)
	if _, err := d.Change(t.Context(), id, session.Patch{Directories: &[]string{one, two}}); err != nil {
		t.Fatal(err)
	}
	_, err := d.Fork(t.Context(), id)
	refused(t, err, "fork.failed") // the agent declares forks and makes none
	var told []string
	d.frames(id, func(dir string, data []byte) {
		var m struct {
			Method string
			Params struct{ AdditionalDirectories []string }
		}
		if dir == "out" && json.Unmarshal(data, &m) == nil && m.Method == "session/fork" {
			told = m.Params.AdditionalDirectories
		}
	})
	if !slices.Equal(told, []string{one}) {
		t.Errorf("told %v", told)
	}
}

// An agent with modes of the protocol before config options changes them by session/set_mode.
func TestOlderModesAreSetByTheirMethod(t *testing.T) {
	d := askingDesk(t, t.TempDir(), "", "none", "modes")
	id := d.asking()
	d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
	if err := d.SetConfig(t.Context(), id, "mode", json.RawMessage(`"code"`)); err != nil {
		t.Fatal(err)
	}
	d.until("mode", func() bool { return d.get(id).ConfigOptions[0].Value == "code" })
	d.steps(id, step{Update: json.RawMessage(`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`)})
	if s := d.get(id); s.ConfigOptions[0].Value != "ask" {
		t.Errorf("options after current_mode_update: got %+v, want mode ask", s.ConfigOptions)
	}
	if !d.checkFrames(t, id)["session/set_mode Request"] {
		t.Error("session/set_mode was not sent")
	}
}

// An agent that offers models beside its modes changes them by session/set_model, which the schema no longer has; they are shown as an
// option.
func TestOlderModelsAreSetByTheirMethod(t *testing.T) {
	t.Parallel()
	for words, value := range map[string]string{"load modes models": "ask", "load models": ""} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			forgetfulAgent(t, dir, words)
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
			if err != nil {
				t.Fatal(err)
			}
			d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
			model := d.get(s.ID).ConfigOptions[len(d.get(s.ID).ConfigOptions)-1]
			if model.ID != "model" || model.Category != "model" || model.Type != "select" || model.Value != "small" || len(model.Choices) != 2 {
				t.Fatalf("got the option %+v, want the model's with two choices", model)
			}
			if err := d.SetConfig(t.Context(), s.ID, "model", json.RawMessage(`"huge"`)); err == nil {
				t.Error("a model that the agent does not offer was taken")
			}
			d.choose(s.ID, "model", "large")
			if value != "" {
				d.choose(s.ID, "mode", value)
			}
			d.prompt(s.ID, "one")
			if text := textOf(d.idle(s.ID), "agent"); !strings.HasSuffix(text, "by large\n") {
				t.Errorf("got %q, want the large model", text)
			}
			d.close()
			for range 2 { // the agent begins with the small model each time
				d = open(t, dir)
				d.prompt(s.ID, "again")
				tr := d.idle(s.ID)
				if text := textOf(tr, "agent"); !strings.HasSuffix(text, "by large\n") || !strings.Contains(text, "session/set_model") {
					t.Errorf("got %q, want the large model after the restart", text)
				}
				if o := d.get(s.ID).ConfigOptions; o[len(o)-1].Value != "large" || value != "" && o[0].Value != value {
					t.Errorf("got the options %+v, want the large model and mode %q", o, value)
				}
				d.sameAsRebuilt(s.ID)
				d.close()
			}
		})
	}
}

// choose changes an option, and waits for the agent's answer.
func (d *desk) choose(id, option, value string) {
	d.t.Helper()
	if err := d.SetConfig(d.t.Context(), id, option, json.RawMessage(strconv.Quote(value))); err != nil {
		d.t.Fatal(err)
	}
	d.until(option, func() bool {
		return slices.ContainsFunc(d.get(id).ConfigOptions, func(o transcript.ConfigOption) bool { return o.ID == option && o.Value == value })
	})
}
