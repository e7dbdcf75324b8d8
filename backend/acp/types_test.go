package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// An update changes what it names and nothing else: a field that is null, or of a type that it cannot have, is not named.
func TestInvalidFieldsOfToolCallAreLeftOut(t *testing.T) {
	t.Parallel()
	bad := []string{`null`, `7`, `"x"`, `{}`, `true`, `[]`, `["x"]`}
	for field, good := range map[string][]string{
		"title": {`"x"`}, "name": {`"x"`}, "kind": {`"x"`}, "status": {},
		"content": {`[]`, `["x"]`}, "locations": {`[]`, `["x"]`},
	} {
		for _, value := range bad {
			p, err := ParseToolCall(fmt.Appendf(nil, `{"toolCallId":"1",%q:%s}`, field, value))
			if err != nil {
				t.Errorf("ParseToolCall with %s %s: got error %v, want none", field, value, err)
			}
			named := !reflect.DeepEqual(p, ToolCallPatch{ToolCallID: "1"})
			if named != slices.Contains(good, value) {
				t.Errorf("ParseToolCall with %s %s: got it named %v, want %v", field, value, named, !named)
			}
		}
	}
	for status, known := range map[string]bool{
		"pending": true, "in_progress": true, "completed": true, "failed": true, "cancelled": true,
		"": false, "running": false, "paused": false, "Completed": false,
	} {
		p, err := ParseToolCall(fmt.Appendf(nil, `{"toolCallId":"1","status":%q}`, status))
		if err != nil || (p.Status != nil) != known || known && *p.Status != status {
			t.Errorf("ParseToolCall with the status %q: got %+v, error %v, want known %v", status, p, err, known)
		}
	}
	p, err := ParseToolCall(json.RawMessage(`{"toolCallId":"1","title":"x","title":7,"locations":[{"path":"/a","line":"x"},{"path":"/b","line":4},{"line":1}],
		"_meta":{"terminal_info":7,"terminal_output":"x","terminal_exit":{"exit_code":"x"}}}`))
	if err != nil || p.Title != nil || p.Locations == nil {
		t.Fatalf("ParseToolCall: got %+v, error %v, want no title, but locations", p, err)
	}
	if l := *p.Locations; len(l) != 2 || l[0].Line != nil || l[1].Line == nil || *l[1].Line != 4 {
		t.Errorf("locations: got %+v, want 2, the second in line 4", l)
	}
	if p.Display == nil || !p.Display.Exited || p.Display.ExitCode != nil {
		t.Errorf("display: got %+v, want an exit without a code", p.Display)
	}
	if p, err := ParseToolCall(json.RawMessage(`{"toolCallId":"1","_meta":{"terminal_output":"x","terminal_exit":true}}`)); err != nil || p.Display != nil {
		t.Errorf("display of an invalid _meta: got %+v, error %v, want none", p.Display, err)
	}
}

func TestInvalidOptionsAndCostsAreLeftOut(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{}`: false, `{"configOptions":null}`: false, `{"configOptions":{}}`: false, `{"configOptions":"x"}`: false, `{"configOptions":[]}`: true, `{"configOptions":[7]}`: true,
	} {
		if list, present := ParseConfigOptions(json.RawMessage(body)); present != want || len(list) != 0 {
			t.Errorf("ParseConfigOptions(%s): got %v, present %v, want an empty list, present %v", body, list, present, want)
		}
	}
	for cost, want := range map[string]*Cost{
		`{"amount":1.5,"currency":"EUR"}`: {Amount: 1.5, Currency: "EUR"},
		`null`:                            nil, `7`: nil, `"x"`: nil, `{}`: nil, `{"amount":"x","currency":"EUR"}`: nil, `{"amount":1.5}`: nil,
	} {
		u, err := ParseUsage(json.RawMessage(`{"used":5,"size":10,"cost":` + cost + `}`))
		if err != nil || u.Used != 5 || u.Size != 10 || !reflect.DeepEqual(u.Cost, want) {
			t.Errorf("ParseUsage with the cost %s: got %+v, error %v, want 5 of 10, cost %+v", cost, u, err, want)
		}
	}
}

func TestParseSessionListKeepsValidSessions(t *testing.T) {
	t.Parallel()
	list, next, err := ParseSessionList(json.RawMessage(`{"nextCursor":"n","sessions":[
		{"sessionId":"1","cwd":"/a","additionalDirectories":["/b",7,null,"","/c"]},{"sessionId":"2","cwd":"/a","additionalDirectories":"/b"},{"cwd":"/a"}]}`))
	if err != nil || next != "n" || len(list) != 2 {
		t.Fatalf("ParseSessionList: got %+v, next %q, error %v, want 2 sessions, next n", list, next, err)
	}
	if !slices.Equal(list[0].Directories, []string{"/b", "/c"}) || len(list[1].Directories) != 0 {
		t.Errorf("directories: got %q and %q, want /b and /c, and none", list[0].Directories, list[1].Directories)
	}
}

func TestParseChunkRefusesTextOfOtherType(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`7`, `null`, `{}`} {
		if _, err := ParseChunk(json.RawMessage(`{"content":{"type":"text","text":` + text + `}}`)); !errors.Is(err, ErrShape) {
			t.Errorf("ParseChunk with the text %s: got error %v, want ErrShape", text, err)
		}
	}
}

// A marker of what an agent can do is an object; all else says that it cannot.
func TestParseInitializedAcceptsOnlyObjectsAsMarkers(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{`{}`: true, `{"more":1}`: true, `null`: false, `false`: false, `true`: false, `[]`: false, `"yes"`: false, `1`: false} {
		i, err := ParseInitialized(json.RawMessage(fmt.Sprintf(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"auth":{"logout":%[1]s},
			"sessionCapabilities":{"fork":%[1]s,"resume":%[1]s,"list":{},"delete":%[1]s,"systemPrompt":{"mode":{"override":%[1]s}}}}}`, value)))
		if err != nil || i.ProtocolVersion != 1 || !i.LoadSession || !i.List || !i.SystemPrompt || i.Close {
			t.Errorf("ParseInitialized with markers %s: got %+v, error %v, want loadSession, list and systemPrompt alone", value, i, err)
		}
		for name, got := range map[string]bool{"fork": i.Fork, "resume": i.Resume, "delete": i.Delete, "logout": i.Logout, "override": i.Override} {
			if got != want {
				t.Errorf("marker %s of %s: got %v, want %v", name, value, got, want)
			}
		}
	}
}
