package acp_test

import (
	"testing"

	"deskhand/backend/acp"
)

func TestSessionOfAMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ message, session, child string }{
		"an update of the session itself": {`{"method":"session/update","params":{"sessionId":"own","update":{"sessionUpdate":"plan"}}}`, "own", ""},
		"a response":                      {`{"id":1,"result":{}}`, "own", ""},
		"an update of a child":            {`{"method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":"plan"}}}`, "c", ""},
		"a child that names the session first": {
			`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","content":[{"type":"session","sessionId":"own"}]},"sessionId":"c"}}`, "c", "",
		},
		"a request of a child": {`{"id":"1","method":"session/request_permission","params":{"sessionId": "c"}}`, "c", ""},
		"an announcement":      {`{"method":"session/update","params":{"sessionId":"own","update":{"sessionUpdate":"subagent_update","sessionId":"c"}}}`, "own", "c"},
		"one below a child":    {`{"method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":"subagent_update","sessionId":7}}}`, "c", "7"},
		"words of an announcement": {
			`{"method":"session/update","params":{"sessionId":"own","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"subagent_update"}}}}`, "own", "",
		},
		"an announcement without a child": {`{"method":"session/update","params":{"sessionId":"own","update":{"sessionUpdate":"subagent_update"}}}`, "own", ""},
		"an answer with a session":        {`{"id":2,"result":{"sessionId":"new"}}`, "own", ""},
	} {
		if session, child := acp.SessionOf([]byte(c.message), "own"); session != c.session || child != c.child {
			t.Errorf("SessionOf of %s: got session %q, child %q; want %q, %q", name, session, child, c.session, c.child)
		}
	}
}

func TestSubagentUpdateIsAPatch(t *testing.T) {
	t.Parallel()
	parse := func(update string) acp.SubagentUpdate {
		u, ok := acp.SubagentUpdateOf([]byte(`{"method":"session/update","params":{"sessionId":"p","update":{"sessionUpdate":"subagent_update","sessionId":"c"` + update + `}}}`))
		if !ok {
			t.Errorf("SubagentUpdateOf with %s: got false, want an update", update)
		}
		return u
	}
	if u := parse(``); u.Title.Given || u.State.Given || u.Cancel.Given || u.Parent != "p" {
		t.Errorf("an update of nothing: got %+v, want no field given, and parent p", u)
	}
	if u := parse(`,"title":null,"state":null,"capabilities":null`); !u.Title.Given || u.Title.Value != "" || !u.State.Given || u.State.Value.State != "" || !u.Cancel.Given || u.Cancel.Value {
		t.Errorf("an update that clears: got %+v, want an empty title and state, and no cancel", u)
	}
	if u := parse(`,"title":5,"capabilities":{"cancel":null}`); u.Title.Given || !u.Cancel.Given || u.Cancel.Value {
		t.Errorf("an update with wrong types: got %+v, want no title, and no cancel", u)
	}
	u := parse(`,"title":"T","capabilities":{"cancel":{}},"state":{"state":"idle","stopReason":"error","error":{"code":-32603,"message":"no"},"usage":{"totalTokens":3}}`)
	if u.Title.Value != "T" || !u.Cancel.Value || u.State.Value.StopReason != "error" || u.State.Value.Failure().Message != "no" || string(u.State.Value.Usage) != `{"totalTokens":3}` {
		t.Errorf("a whole update: got %+v", u)
	}
}
