//go:build !windows

package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/shells"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

// porch is an agent with three ways to sign in: at a terminal by yes, by a value, and by itself. Appended arguments are $0 here.
const porch = `if [ "$0" = --login ]; then stty size; printf 'Sure? '; read -r answer; stty size; [ "$answer" = yes ] || exit 5; exit 0; fi
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{"auth":{"logout":{}}},"authMethods":[{"type":"terminal","id":"tty","name":"At a terminal","args":["--login"]},{"type":"env_var","id":"key","name":"Key","link":"https://example.test/","vars":[{"name":"PORCH_KEY"}]},{"id":"never","name":"Never"}]}}' ;;
  *'"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
  *'"logout"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done`

func openPorch(t *testing.T) *clinic {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "porch", "command": "/bin/sh", "args": []string{"-c", porch}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile})
	people := roster.New(roster.Deps{Catalogue: catalogue})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Roster: people})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue, Roster: people}))
	c := &clinic{t: t, url: server.URL, gen: sessions.Feed().Gen(), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		server.Close()
		if err := errors.Join(sessions.Close(), catalogue.Close(), set.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// typing posts text that a person types, with a media type.
func (c *clinic) typing(terminal, text, kind string) int {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/client/terminals/"+terminal+"/input", strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestLoginOverHTTP(t *testing.T) {
	c := openPorch(t)
	var offered struct {
		Methods []struct {
			ID, Type, Link string
			Vars           []struct {
				Name          string
				Secret, Set   bool
				Optional, Own *bool
			}
		}
		Logout           bool
		Keyring, Warning string
	}
	c.call("GET", "agents/porch/login", "", 200, &offered)
	if m := offered.Methods; len(m) != 3 || m[0].Type != "terminal" || m[1].Type != "env" || m[1].Link != "https://example.test/" || !m[1].Vars[0].Secret ||
		m[1].Vars[0].Set || m[2].Type != "agent" || !offered.Logout || offered.Keyring != "file" || !strings.Contains(offered.Warning, "logins.json") {
		t.Errorf("login methods: got %+v, want terminal, env and agent", offered)
	}

	var login roster.Login
	c.call("POST", "agents/porch/login", `{"method":"tty"}`, 202, &login)
	if login.State != "running" || login.Terminal == "" || login.Type != "terminal" || login.Agent != "porch" {
		t.Fatalf("login: got %+v, want running in a terminal", login)
	}
	c.refused("POST", "agents/porch/login", `{"method":"key","values":{"PORCH_KEY":"x"}}`, 409, "login.running")
	c.refused("POST", "agents/porch/logout", "", 409, "login.running")
	screen, after := "", int64(0)
	read := func(until func(shells.TerminalOutput) bool) {
		t.Helper()
		for deadline := time.Now().Add(testkit.Limit); ; {
			var out shells.TerminalOutput
			c.call("GET", "terminals/"+login.Terminal+"?wait=2&after="+jsonOf(after), "", 200, &out)
			if after, screen = out.Next, screen+string(out.Data); until(out) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("terminal: got %s, want the expected output", screen)
			}
		}
	}
	read(func(shells.TerminalOutput) bool { return strings.Contains(screen, "Sure? ") })
	c.call("POST", "terminals/"+login.Terminal+"/size", `{"cols":99,"rows":17}`, 204, nil)
	c.refused("POST", "terminals/"+login.Terminal+"/size", `{"cols":0,"rows":17}`, 400, "request.invalid")
	if status := c.typing(login.Terminal, "no\r", "text/plain"); status != 415 {
		t.Errorf("a form's media type: %d", status)
	}
	if status := c.typing(login.Terminal, strings.Repeat("x", 70<<10), "application/octet-stream"); status != 413 {
		t.Errorf("too much: %d", status)
	}
	if status := c.typing(login.Terminal, "yes\r", "application/octet-stream"); status != 204 {
		t.Errorf("typed: %d", status)
	}
	read(func(out shells.TerminalOutput) bool { return out.Exited && out.ExitCode != nil && *out.ExitCode == 0 })
	if !strings.Contains(screen, "24 80\r\n") || !strings.Contains(screen, "17 99\r\n") {
		t.Errorf("terminal: got %q, want the sizes 24 80 and 17 99", screen)
	}
	id := login.ID
	c.until(func(kind string, data []byte) bool {
		return kind == "login.upsert" && json.Unmarshal(data, &login) == nil && login.ID == id && login.State == "done"
	})
	c.call("GET", "logins/"+id, "", 200, &login)
	if login.State != "done" || login.EndedAt == nil {
		t.Errorf("login: got %+v, want done", login)
	}
	if status := c.typing(login.Terminal, "x", "application/octet-stream"); status != 409 {
		t.Errorf("typed into nothing: %d", status)
	}

	c.call("POST", "agents/porch/login", `{"method":"tty"}`, 202, &login)
	c.call("DELETE", "terminals/"+login.Terminal, "", 204, nil)
	c.call("GET", "logins/"+login.ID, "", 200, &login)
	if login.State != "failed" || login.Code != "login.cancelled" {
		t.Errorf("login: got %+v, want login.cancelled", login)
	}
	c.call("POST", "agents/porch/login", `{"method":"never"}`, 202, &login)
	c.call("DELETE", "logins/"+login.ID, "", 204, nil)

	c.refused("POST", "agents/porch/login", `{"method":"key"}`, 400, "login.values")
	c.call("POST", "agents/porch/login", `{"method":"key","values":{"PORCH_KEY":"a value of mine"}}`, 202, &login)
	ended := func() roster.Login {
		t.Helper()
		id := login.ID
		c.until(func(kind string, data []byte) bool {
			return kind == "login.upsert" && json.Unmarshal(data, &login) == nil && login.ID == id && login.State != "running"
		})
		return login
	}
	if login := ended(); login.State != "done" || !strings.Contains(login.Warning, "plain text") || strings.Contains(login.Warning, "a value of mine") {
		t.Errorf("got %+v after a key that the agent takes, want it done", login)
	}
	c.call("GET", "agents/porch/login", "", 200, &offered)
	if !offered.Methods[1].Vars[0].Set {
		t.Errorf("login methods: got %+v, want a set value", offered)
	}
	c.call("POST", "agents/porch/logout", "", 204, nil)
	c.call("GET", "agents/porch/login", "", 200, &offered)
	if offered.Methods[1].Vars[0].Set {
		t.Errorf("login methods: got %+v, want no set value", offered)
	}
	c.call("POST", "agents/porch/signed-in", "", 202, &login)
	if login := ended(); login.State != "done" || login.Agent != "porch" {
		t.Errorf("got %+v after somebody has signed in by other means, want it done", login)
	}

	c.refused("POST", "agents/porch/login", `{"method":"none"}`, 400, "login.method")
	c.refused("POST", "agents/nobody/signed-in", "", 400, "agent.unknown")
	c.refused("GET", "agents/nobody/login", "", 400, "agent.unknown")
	c.refused("GET", "agents/gemini/login", "", 409, "agent.not_installed")
	c.refused("GET", "logins/none", "", 404, "not_found")
	c.refused("GET", "terminals/none", "", 404, "not_found")
}

func jsonOf(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
