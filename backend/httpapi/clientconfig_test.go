package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/files"
	"deskhand/backend/httpapi"
	"deskhand/backend/launch"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/storetest"
)

// openConfig returns the client API and a working directory.
func openConfig(t *testing.T) (c *clinic, work string) {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: filepath.Join(dir, "agents.json")})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Replace: files.Replace, Everywhere: filepath.Join(dir, "config")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue}))
	c = &clinic{t: t, url: server.URL, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		server.Close()
		for _, closing := range []func() error{sessions.Close, catalogue.Close, set.Close, db.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	})
	return c, work
}

func TestConfigPutMakesDirectory(t *testing.T) {
	c, work := openConfig(t)
	const entry = `{"type":"local","command":"true"}`
	into := func(name string) string {
		return "config/mcp?name=a&directory=" + url.QueryEscape(filepath.Join(work, name))
	}
	c.call("PUT", into("new/deeper"), entry, 200, nil)
	if _, err := os.Stat(filepath.Join(work, "new", "deeper", ".sandbox-agent", "config", "mcp.json")); err != nil {
		t.Errorf("after PUT into a directory that was not there: got %v, want a file", err)
	}
	c.refused("PUT", into("other"), `{"type":"local"}`, 400, "config.invalid")
	if _, err := os.Stat(filepath.Join(work, "other")); err == nil {
		t.Error("PUT of an entry that is refused has made the directory")
	}
	if err := os.WriteFile(filepath.Join(work, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.refused("PUT", into("file/below"), entry, 400, "directory.unreadable")
}

func TestMCPServersOverTheAPI(t *testing.T) {
	c, work := openConfig(t)
	at := func(more string) string { return "?directory=" + url.QueryEscape(work) + more }
	const secret = "value-that-is-secret"
	entry := `{"type":"local","command":["no-such-program-here","x"],"environment":{"KEY":"` + secret + `"},"enabled":false,"mine":{"b":1,"a":2}}`

	var list launch.MCPServers
	c.call("GET", "config/mcp"+at(""), "", 200, &list)
	if len(list.Items) != 0 || list.Items == nil || !strings.HasSuffix(filepath.ToSlash(list.Path), "/.sandbox-agent/config/mcp.json") {
		t.Errorf("config/mcp: got %+v, want an empty list with the path", list)
	}
	var item launch.MCPServer
	c.call("PUT", "config/mcp"+at("&name=a/b"), entry, 200, &item)
	const want = `{"type":"local","command":["no-such-program-here","x"],"args":[],"env":{"KEY":"••••"},"enabled":false,"mine":{"b":1,"a":2}}`
	if string(item.Entry) != want || !item.Approved || item.Enabled || item.Name != "a/b" || item.Executable == nil || item.Executable.Hash != item.Hash {
		t.Errorf("PUT: got %s, %+v, want %s, approved and disabled", item.Entry, item, want)
	}
	c.call("PUT", "config/mcp"+at("&name=a/b&seen="+item.Hash), strings.Replace(want, `"enabled":false`, `"enabled":true`, 1), 200, &item)
	file, err := os.ReadFile(list.Path)
	if err != nil || !strings.Contains(string(file), secret) || !item.Enabled {
		t.Errorf("the hidden value is lost: %s %v", file, err)
	}
	var trust struct{ Items []launch.Executable }
	c.call("GET", "trust"+at(""), "", 200, &trust)
	if len(trust.Items) != 1 || !trust.Items[0].Approved || strings.Contains(trust.Items[0].Detail, secret) {
		t.Errorf("trust: got %+v, want one approved server without the secret", trust)
	}
	hash := trust.Items[0].Hash
	c.call("DELETE", "trust"+at("&hash="+hash), "", 204, nil)
	c.call("DELETE", "trust"+at("&hash="+hash), "", 204, nil)
	c.refused("POST", "config/mcp/test"+at("&name=a/b"), "", 409, "config.unapproved")
	wish := func(hashes ...string) string {
		data, _ := json.Marshal(map[string]any{"directory": work, "hashes": hashes})
		return string(data)
	}
	c.refused("POST", "trust", wish(hash, strings.Repeat("0", 64)), 409, "trust.changed")
	c.refused("POST", "config/mcp/test"+at("&name=a/b"), "", 409, "config.unapproved") // all of them or none
	c.call("POST", "trust", wish(hash), 204, nil)
	var test launch.MCPTest
	c.call("POST", "config/mcp/test"+at("&name=a/b"), "", 200, &test)
	if test.OK || !strings.Contains(test.Detail, "was not found") || test.Tools == nil {
		t.Errorf("test: got %+v, want a missing program", test)
	}
	c.call("POST", "config/mcp/test"+at("&name=new"), `{"entry":{"type":"local","command":"neither"}}`, 200, &test)
	if test.OK || !strings.Contains(test.Detail, "neither") {
		t.Errorf("test: got %+v, want a failure that names neither", test)
	}
	c.refused("PUT", "config/mcp"+at("&name=x"), `{"type":"local"}`, 400, "config.invalid")
	c.refused("PUT", "config/mcp"+at("&name=x"), `{"type":"local","command":"c","env":{"A":"••••"}}`, 400, "config.invalid")
	c.refused("PUT", "config/mcp"+at("&name=x%0A"), entry, 400, "config.invalid")
	c.refused("GET", "config/mcp?directory=relative", "", 400, "directory.relative")
	c.refused("GET", "trust?directory="+url.QueryEscape(filepath.Join(work, "none")), "", 400, "directory.missing")
	c.refused("POST", "config/mcp/test"+at("&name=none"), "", 404, "not_found")
	c.call("DELETE", "config/mcp"+at("&name=a/b"), "", 204, nil)
	c.call("DELETE", "config/mcp"+at("&name=a/b"), "", 204, nil)
	if err := os.WriteFile(list.Path, []byte("{\n\n  \"a\": ]"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refused("PUT", "config/mcp"+at("&name=x"), entry, 409, "config.broken")
	c.call("GET", "config/mcp"+at(""), "", 200, &list)
	if !strings.Contains(list.Problem, "line 3") {
		t.Errorf("problem: got %q, want line 3", list.Problem)
	}
}

func TestConfigOfAllProjectsOverTheAPI(t *testing.T) {
	c, work := openConfig(t)
	const secret = "value-that-is-secret"
	var list launch.MCPServers
	c.call("GET", "config/mcp?scope=all", "", 200, &list)
	if len(list.Items) != 0 || filepath.Base(list.Path) != "mcp.json" || strings.Contains(list.Path, ".sandbox-agent") {
		t.Errorf("config/mcp: got %+v, want an empty list with the path", list)
	}
	var item launch.MCPServer
	c.call("PUT", "config/mcp?scope=all&name=srv", `{"type":"local","command":"no-such-program-here","env":{"KEY":"`+secret+`"}}`, 200, &item)
	if !item.Approved || strings.Contains(string(item.Entry), secret) || item.Executable.Scope != "all" {
		t.Errorf("PUT: got %+v, want it approved, without the secret", item)
	}
	var trust struct{ Items []launch.Executable }
	for _, query := range []string{"scope=all", "directory=" + url.QueryEscape(work)} {
		c.call("GET", "trust?"+query, "", 200, &trust)
		if len(trust.Items) != 1 || !trust.Items[0].Approved || trust.Items[0].Scope != "all" {
			t.Errorf("trust?%s: got %+v, want the server of all projects, approved", query, trust)
		}
	}
	var test launch.MCPTest
	c.call("POST", "config/mcp/test?scope=all&name=srv", "", 200, &test)
	if test.OK || !strings.Contains(test.Detail, "was not found") {
		t.Errorf("test: got %+v, want a missing program", test)
	}
	c.call("DELETE", "trust?scope=all&hash="+item.Hash, "", 204, nil)
	c.refused("POST", "config/mcp/test?scope=all&name=srv", "", 409, "config.unapproved")
	c.call("POST", "trust", `{"scope":"all","hashes":["`+item.Hash+`"]}`, 204, nil)
	var approvals struct{ Items []launch.Approval }
	c.call("GET", "trust/approvals?scope=all", "", 200, &approvals)
	if len(approvals.Items) != 1 || approvals.Items[0].Directory != "" || approvals.Items[0].Hash != item.Hash {
		t.Errorf("trust/approvals: got %+v, want the server", approvals)
	}
	c.call("DELETE", "trust/approvals?scope=all", "", 204, nil)
	c.call("DELETE", "config/mcp?scope=all&name=srv", "", 204, nil)
	for _, path := range []string{"config/mcp", "config/mcp?directory=", "config/skills", "trust"} {
		c.refused("GET", path, "", 400, "request.invalid")
	}
	c.refused("GET", "config/mcp?scope=some", "", 400, "request.invalid")
	c.refused("DELETE", "trust/approvals", "", 400, "request.invalid")
	c.refused("POST", "trust", `{"hashes":["x"]}`, 400, "request.invalid")
}

// A directory of the client may be anywhere, but no file in the directory leads out of it or blocks.
func TestConfigOfHostileDirectory(t *testing.T) {
	c, work := openConfig(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "mcp.json"), []byte(`{"stolen":{"type":"local","command":"c"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(work, ".sandbox-agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, ".sandbox-agent", "config")); err != nil {
		t.Skip(err)
	}
	at := "?directory=" + url.QueryEscape(work)
	var list launch.MCPServers
	c.call("GET", "config/mcp"+at, "", 200, &list)
	if len(list.Items) != 0 || list.Problem == "" {
		t.Errorf("config/mcp: got %+v, want no server and a problem", list)
	}
	c.refused("PUT", "config/mcp"+at+"&name=x", `{"type":"local","command":"c"}`, 409, "config.broken")
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: got %v, %v, want one file", entries, err)
	}
}
