package demoagent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// guarded starts an agent that requires a login by the given methods.
func guarded(t *testing.T, ways string) (p *peer, account string) {
	t.Helper()
	account = filepath.Join(t.TempDir(), "somewhere", "signed-in")
	t.Setenv("DESKHAND_DEMO_LOGIN", ways)
	t.Setenv("DESKHAND_DEMO_SIGNED_IN", account)
	return start(t), account
}

// methods are the login methods that the agent offers a client.
func (p *peer) methods(capabilities string) string {
	p.t.Helper()
	e := p.mustCall("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": json.RawMessage(capabilities)})
	var r struct {
		AgentCapabilities struct{ Auth *struct{ Logout *struct{} } }
		AuthMethods       []struct{ ID, Type string }
	}
	p.decode(e.result, &r)
	if (r.AgentCapabilities.Auth == nil || r.AgentCapabilities.Auth.Logout == nil) != (os.Getenv("DESKHAND_DEMO_LOGIN") == "") {
		p.t.Errorf("logout: %s", e.result)
	}
	var ids []string
	for _, m := range r.AuthMethods {
		ids = append(ids, m.ID+":"+m.Type)
	}
	return strings.Join(ids, " ")
}

func (p *peer) newSession() *agentio.Error {
	p.t.Helper()
	return p.until(p.request("session/new", map[string]any{"cwd": p.t.TempDir(), "mcpServers": []any{}})).err
}

func TestLoginIsAskedFor(t *testing.T) {
	p, account := guarded(t, "agent,terminal,env")
	if got := p.methods(`{}`); got != "demo: demo-never: demo-key:env_var" {
		t.Errorf("a client without terminals: %s", got)
	}
	if got := p.methods(`{"auth":{"terminal":true}}`); got != "demo: demo-never: demo-terminal:terminal demo-key:env_var" {
		t.Error(got)
	}
	if err := p.newSession(); err == nil || err.Code != acp.CodeAuthRequired {
		t.Fatalf("newSession: got error %+v, want an error and err.Code %v", err, acp.CodeAuthRequired)
	}
	if e := p.until(p.request("authenticate", map[string]any{"methodId": "other"})); e.err == nil || e.err.Code != acp.CodeInvalidParams {
		t.Errorf("until: got err %+v, want err not nil and e.err.Code %v", e.err, acp.CodeInvalidParams)
	}
	p.mustCall("authenticate", map[string]any{"methodId": "demo"})
	if _, err := os.Stat(account); err != nil {
		t.Error(err)
	}
	if err := p.newSession(); err != nil {
		t.Errorf("newSession: got error %+v, want no error", err)
	}
	p.mustCall("logout", map[string]any{})
	p.mustCall("logout", map[string]any{}) // nobody is signed in
	if err := p.newSession(); err == nil || err.Code != acp.CodeAuthRequired {
		t.Errorf("newSession: got error %+v, want an error and err.Code %v", err, acp.CodeAuthRequired)
	}
	t.Setenv("DESKHAND_DEMO_KEY", "any")
	if err := p.newSession(); err != nil {
		t.Errorf("newSession: got error %+v, want no error", err)
	}
}

func TestNoLoginUnlessItIsAskedFor(t *testing.T) {
	p, _ := guarded(t, "")
	if got := p.methods(`{"auth":{"terminal":true}}`); got != "" {
		t.Error(got)
	}
	if err := p.newSession(); err != nil {
		t.Errorf("newSession: got error %+v, want no error", err)
	}
	for _, method := range []string{"authenticate", "logout"} {
		if e := p.until(p.request(method, map[string]any{"methodId": "demo"})); e.err == nil || e.err.Code != acp.CodeMethodNotFound {
			t.Errorf("%s: got err %+v, want err not nil and e.err.Code %v", method, e.err, acp.CodeMethodNotFound)
		}
	}
}
