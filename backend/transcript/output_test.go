package transcript

import (
	"testing"

	"deskhand/backend/record"
)

// What a program of the agent's own writes changes nothing of the call that it belongs to: told anew with each word, that had the whole output
// stored with each word.
func TestOutputIsNoChangeOfItsCall(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Test","status":"in_progress","_meta":{"terminal_info":{"terminal_id":"p","cwd":"/w"}}}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","_meta":{"terminal_output_delta":{"terminal_id":"p","data":"one"}}}`)
	s.fold.Take()
	for _, meta := range []string{`"terminal_output_delta":{"terminal_id":"p","data":" two"}`, `"terminal_output":{"data":" three","terminal_id":"p"}`} {
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","_meta":{%s}}`, meta)
		if changes, _ := s.fold.Take(); len(changes) != 1 || changes[0].Entry.Kind != "terminal" || !changes[0].Grew() {
			t.Errorf("%s changes %d entries: %s", meta, len(changes), record.JSON(changes))
		}
	}
	for _, field := range []string{
		`"title":"T"`, `"status":"completed"`, `"content":[]`, `"rawInput":{}`, `"rawOutput":{}`, `"locations":[]`, `"kind":"read"`, `"name":"n"`,
		`"_meta":{"claudeCode":{"parentToolUseId":"0"}}`,
	} {
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1",%s}`, field)
		if changes, _ := s.fold.Take(); len(changes) != 1 || changes[0].Entry.Kind != "tool" {
			t.Errorf("%s changes %d entries", field, len(changes))
		}
	}
}
