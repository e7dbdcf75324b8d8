package acp

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestIDsAreReadAsNumbers reads every message that names something by an id, with the id as a number.
func TestIDsAreReadAsNumbers(t *testing.T) {
	t.Parallel()
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	for name, tc := range map[string]struct {
		got  func() (any, error)
		want string
	}{
		"an update": {func() (any, error) {
			u, err := ParseUpdate(raw(`{"sessionId":7,"update":{"sessionUpdate":"x"}}`))
			return u.SessionID, err
		}, "7"},
		"a chunk": {func() (any, error) {
			c, err := ParseChunk(raw(`{"messageId":7,"content":{"type":"text","text":"a"}}`))
			return c.MessageID, err
		}, "7"},
		"a tool call": {func() (any, error) { p, err := ParseToolCall(raw(`{"toolCallId":7.0}`)); return p.ToolCallID, err }, "7"},
		"call zero":   {func() (any, error) { p, err := ParseToolCall(raw(`{"toolCallId":0}`)); return p.ToolCallID, err }, "0"},
		"a call's parent": {func() (any, error) {
			p, err := ParseToolCall(raw(`{"toolCallId":7,"_meta":{"claudeCode":{"parentToolUseId":6}}}`))
			return p.Parent, err
		}, "6"},
		"a program": {func() (any, error) {
			p, err := ParseToolCall(raw(`{"toolCallId":7,"_meta":{"terminal_output":{"terminal_id":5,"data":"a"}}}`))
			return p.Display.ID, err
		}, "5"},
		"a compaction": {func() (any, error) { p, err := ParseCompaction(raw(`{"compactionId":7}`)); return p.ID, err }, "7"},
		"a summary": {func() (any, error) {
			p, err := ParseCompactionChunk(raw(`{"compactionId":7,"content":{"type":"text","text":"a"}}`))
			return p.ID, err
		}, "7"},
		"a permission": {func() (any, error) {
			p, err := ParsePermission(raw(`{"options":[{"optionId":1e0,"name":2,"kind":"x"},{"optionId":"b"}]}`))
			return p.Options, err
		}, "[{1 true 2 x} {b false  }]"},
		"an elicitation": {func() (any, error) {
			p, err := ParseElicitation(raw(`{"mode":"url","elicitationId":7}`))
			return p.ID, err
		}, "7"},
		"its end":       {func() (any, error) { return CompletedElicitation([]byte(`{"params":{"elicitationId":7}}`)), nil }, "7"},
		"a new session": {func() (any, error) { return ParseNewSession(raw(`{"sessionId":7}`)) }, "7"},
		"sessions": {func() (any, error) {
			l, next, err := ParseSessionList(raw(`{"sessions":[{"sessionId":7}],"nextCursor":2}`))
			return []any{l[0].SessionID, next}, err
		}, "[7 2]"},
		"an option": {func() (any, error) {
			l, _ := ParseConfigOptions(raw(`{"configOptions":[{"id":1,"type":"select","options":[{"value":2,"name":3}]}]}`))
			return l, nil
		}, "[{1    select [] [{2 3  }]}]"},
		"modes": {func() (any, error) {
			m, _ := ParseModes(raw(`{"modes":{"currentModeId":1,"availableModes":[{"id":1,"name":"A"}]}}`))
			return m, nil
		}, "{1 [{1 A  }]}"},
		"models": {func() (any, error) {
			m, _ := ParseModels(raw(`{"models":{"currentModelId":1,"availableModels":[{"modelId":1}]}}`))
			return m, nil
		}, "{1 [{1 1  }]}"},
		"a mode": {func() (any, error) { return ParseCurrentMode(raw(`{"currentModeId":1}`)) }, "1"},
		"a way to sign in": {func() (any, error) {
			i, err := ParseInitialized(raw(`{"authMethods":[{"id":1}]}`))
			return i.AuthMethods, err
		}, "[1]"},
	} {
		if got, err := tc.got(); err != nil || fmt.Sprint(got) != tc.want {
			t.Errorf("%s: got %v, error %v, want %s", name, got, err, tc.want)
		}
	}
	for _, id := range []string{`true`, `[1]`, `{"a":1}`, `null`, `""`} {
		if p, err := ParseToolCall(raw(`{"toolCallId":` + id + `}`)); err == nil {
			t.Errorf("ParseToolCall with the id %s: got the call %q, want an error", id, p.ToolCallID)
		}
	}
}
