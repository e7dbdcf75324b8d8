package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/feed"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
)

// clinic is the client API on a machine with node and npm, with a registry of the test.
type clinic struct {
	t      *testing.T
	url    string
	store  string // directory of installed agents
	file   string // path of agents.json
	gen    string
	after  int64
	client *http.Client
}

func openClinic(t *testing.T, registry string) *clinic {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"node", "npm"} {
		file, err := exec.LookPath(name)
		if err == nil {
			file, err = filepath.EvalSymlinks(file)
		}
		if err == nil {
			err = os.Symlink(file, filepath.Join(bin, name))
		}
		if err != nil {
			t.Skip("node and npm are needed: ", err)
		}
	}
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := &clinic{t: t, store: filepath.Join(dir, "agents"), file: filepath.Join(dir, "config", "agents.json"), client: &http.Client{Transport: &http.Transport{}}}
	catalogue := agents.Open(agents.Config{
		Dir: c.store, File: c.file, WriteFile: store.WriteFile, Registry: registry,
		Environ: []string{
			"HOME=" + dir, "PATH=" + bin, "npm_config_cache=" + filepath.Join(dir, "cache"), "npm_config_userconfig=" + filepath.Join(dir, "npmrc"),
			"npm_config_globalconfig=" + filepath.Join(dir, "npmrc.global"), "npm_config_fetch_retries=0",
		},
	})
	people := roster.New(roster.Deps{Catalogue: catalogue})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Roster: people})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue, Roster: people}))
	c.url, c.gen = server.URL, sessions.Feed().Gen()
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		server.Close()
		for _, closing := range []func() error{sessions.Close, catalogue.Close, set.Close, db.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// call makes a call and checks the status; out may be nil.
func (c *clinic) call(method, path, body string, status int, out any) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+"/client/"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		c.t.Fatalf("%s %s: got %d %s (%v), want %d", method, path, resp.StatusCode, data, err, status)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			c.t.Fatalf("%s %s: got %s (%v), want JSON", method, path, data, err)
		}
	}
}

func (c *clinic) refused(method, path, body string, status int, code string) {
	c.t.Helper()
	var problem struct{ Code string }
	c.call(method, path, body, status, &problem)
	if problem.Code != code {
		c.t.Errorf("%s %s: %s, want %s", method, path, problem.Code, code)
	}
}

// until reads events up to the wanted event, and returns the types of the earlier events.
func (c *clinic) until(wanted func(kind string, data []byte) bool) (before []string) {
	c.t.Helper()
	for deadline := time.Now().Add(testkit.Limit); time.Now().Before(deadline); {
		var batch feed.Batch
		c.call("GET", fmt.Sprintf("events?gen=%s&after=%d&wait=5", c.gen, c.after), "", http.StatusOK, &batch)
		c.after = batch.Seq
		for _, e := range batch.Events {
			if wanted(e.Type, e.Data) {
				return before
			}
			before = append(before, e.Type)
		}
	}
	c.t.Fatal("the event does not come; there were ", before)
	return nil
}

// upsert waits for an agent's record.
func (c *clinic) upsert() (a agents.Agent, before []string) {
	c.t.Helper()
	before = c.until(func(kind string, data []byte) bool {
		return kind == "agent.upsert" && json.Unmarshal(data, &a) == nil && a.ID == "claude"
	})
	return a, before
}

// put installs fake versions of Claude's adapter; the last is in use.
func (c *clinic) put(versions ...string) {
	c.t.Helper()
	var record map[string]any
	for _, v := range versions {
		dir := filepath.Join(c.store, "claude", v)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			c.t.Fatal(err)
		}
		script := `require('readline').createInterface({input: process.stdin}).on('line', (line) => {
			const q = JSON.parse(line);
			const result = q.method === 'initialize' ? {protocolVersion: 1, agentInfo: {name: 'c', version: '` + v + `'}} : {sessionId: 's'};
			console.error('key sk-0123456789abcdef0123');
			console.log(JSON.stringify({jsonrpc: '2.0', id: q.id, result}));
		});`
		if err := os.WriteFile(filepath.Join(dir, "agent.js"), []byte(script), 0o600); err != nil {
			c.t.Fatal(err)
		}
		next := map[string]any{"version": v, "package": "p", "directory": v, "bin": "agent.js", "integrity": "", "installed": "2026-01-01T00:00:00Z"}
		if record != nil {
			next["previous"] = record
		}
		record = next
	}
	data, err := json.Marshal(record)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.store, "claude", "current.json"), data, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestAgentRoutes(t *testing.T) {
	c := openClinic(t, "http://127.0.0.1:1")
	var short, all struct{ Items []agents.Agent }
	c.call("GET", "agents", "", http.StatusOK, &short)
	c.call("GET", "agents?all=true", "", http.StatusOK, &all)
	if len(short.Items) < 2 || len(all.Items) <= len(short.Items)+5 {
		t.Errorf("agents: got %d, and %d in all; want 2 or more, and over 5 more in all", len(short.Items), len(all.Items))
	}
	c.refused("POST", "agents/claude/rollback", "", http.StatusConflict, "agent.no_previous")
	c.refused("DELETE", "agents/claude", "", http.StatusBadRequest, "agent.not_ours")
	c.refused("DELETE", "agents/mock", "", http.StatusBadRequest, "agent.not_ours")
	c.refused("POST", "agents/mock/install", "", http.StatusBadRequest, "agent.not_installable")
	c.refused("POST", "agents/mock/plan", "{}", http.StatusBadRequest, "agent.not_installable")
	c.refused("POST", "agents/claude/install", `{"version":"latest"}`, http.StatusBadRequest, "agent.version")
	c.refused("POST", "agents/nobody/test", "", http.StatusBadRequest, "agent.unknown")
	c.refused("DELETE", "agents/nobody/install", "", http.StatusBadRequest, "agent.unknown")
	c.call("DELETE", "agents/claude/install", "", http.StatusNoContent, nil)

	c.put("0.99.0", "0.101.0")
	var back agents.Agent
	c.call("POST", "agents/claude/rollback", "", http.StatusOK, &back)
	if back.Version != "0.99.0" || back.Previous != "0.101.0" || back.Pinned != "0.101.0" {
		t.Errorf("rollback: got %+v, want 0.99.0, before 0.101.0", back)
	}
	if a, _ := c.upsert(); a.Version != "0.99.0" {
		t.Errorf("agent.upsert: got %+v, want 0.99.0", a)
	}
	var report agents.Report
	c.call("POST", "agents/claude/test", "", http.StatusOK, &report)
	if !report.Healthy() || report.AgentInfo.Version != "0.99.0" || strings.Contains(report.Stderr, "0123") || !strings.Contains(report.Stderr, "[redacted]") {
		t.Errorf("test: got %+v, want healthy in 0.99.0 with a redacted stderr", report)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	running := exec.CommandContext(t.Context(), node, "-e", "process.stdin.resume()")
	running.Env = []string{"DESKHAND_AGENT_HOME=" + filepath.Join(c.store, "claude", "0.101.0")}
	in, err := running.StdinPipe()
	if err == nil {
		err = running.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.refused("DELETE", "agents/claude", "", http.StatusConflict, "agent.in_use")
	in.Close()
	_ = running.Wait()
	c.call("DELETE", "agents/claude", "", http.StatusNoContent, nil)
	if items, _ := os.ReadDir(filepath.Join(c.store, "claude")); len(items) != 1 { // only the lock file
		t.Errorf("files of a removed agent: got %v, want only the lock", items)
	}
}

func TestInstallationIsToldByEvents(t *testing.T) {
	c := openClinic(t, "http://127.0.0.1:1") // a port without a server
	var began agents.Agent
	c.call("POST", "agents/claude/install", "", http.StatusAccepted, &began)
	if began.Installing == nil || began.Installing.Step != "resolve" || began.Failure != nil {
		t.Errorf("install: got %+v, want step resolve without a failure", began)
	}
	a, before := c.upsert()
	if a.Installing != nil || a.Failure == nil || a.Failure.Code != "agent.install_failed" || a.Failure.Detail == "" || !strings.Contains(a.Failure.Stderr, "npm error") {
		t.Errorf("agent.upsert: got %+v, failure %+v, want agent.install_failed with npm's error", a, a.Failure)
	}
	if len(before) == 0 || before[0] != "install.progress" {
		t.Errorf("events before the end: got %v, want install.progress first", before)
	}

	listed := func(query string) *agents.Failure {
		t.Helper()
		var list struct{ Items []agents.Agent }
		c.call("GET", "agents"+query, "", http.StatusOK, &list)
		for _, a := range list.Items {
			if a.ID == "claude" {
				return a.Failure
			}
		}
		t.Fatal("it is not in the list")
		return nil
	}
	for _, query := range []string{"", "?all=true"} { // the queries of a reloaded page
		if f := listed(query); f == nil || *f != *a.Failure {
			t.Errorf("agents%s: got %+v, want the failure", query, f)
		}
	}
	c.call("POST", "agents/claude/install", "", http.StatusAccepted, &began)
	if began.Failure != nil {
		t.Errorf("install: got %+v, want no failure", began)
	}
	if a, _ := c.upsert(); a.Failure == nil {
		t.Errorf("agent.upsert: got %+v, want a failure", a)
	}
	if f := listed("?fresh=true"); f != nil {
		t.Errorf("agents?fresh=true: got %+v, want no failure", f)
	}
	if a, _ := c.upsert(); a.Failure != nil {
		t.Errorf("agent.upsert: got %+v, want it without a failure", a)
	}
	if f := listed(""); f != nil {
		t.Errorf("agents: got %+v, want no failure", f)
	}
}

func TestCancelOfAnInstallation(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a registry that accepts requests and answers none
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := openClinic(t, "http://"+ln.Addr().String())
	c.call("POST", "agents/claude/install", `{"version":"1.2.3"}`, http.StatusAccepted, nil)
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c.refused("POST", "agents/claude/install", "", http.StatusConflict, "agent.installing")
	c.refused("DELETE", "agents/claude", "", http.StatusConflict, "agent.installing")
	c.call("DELETE", "agents/claude/install", "", http.StatusNoContent, nil)
	items, _ := os.ReadDir(filepath.Join(c.store, "claude"))
	for _, item := range items {
		if item.Name() != "lock" {
			t.Errorf("files after a cancel: got %s, want only the lock", item.Name())
		}
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(filepath.Dir(c.store)+"/npmrc")) {
			t.Errorf("processes after a cancel: got %s, want none", file)
		}
	}
	if a, _ := c.upsert(); a.Installing != nil || a.Failure != nil {
		t.Errorf("agent.upsert: got %+v, want neither an installation nor a failure", a)
	}
}

// TestDefinitionRoutes: a person's own agent is stored, returned without its secrets, tested, and removed.
func TestDefinitionRoutes(t *testing.T) {
	c := openClinic(t, "http://127.0.0.1:1")
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
		t.Fatal(err)
	}
	const script = `while read -r l; do id=${l#*'"id":'}; id=${id%%[,\}]*}; echo "$KEY" >&2; echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"sessionId":"s"}}'; done`
	text, err := json.Marshal(map[string]any{"id": "ignored", "name": "Mine", "command": "/bin/sh", "args": []string{"-c", script}, "env": map[string]string{"KEY": "sk-0123456789abcdef0123"}})
	if err != nil {
		t.Fatal(err)
	}
	c.refused("GET", "agents/mine/definition", "", http.StatusBadRequest, "agent.no_definition")
	var report agents.Report
	c.call("POST", "agents/test", `{"definition":`+string(text)+`}`, http.StatusOK, &report)
	if !report.Healthy() || strings.Contains(report.Stderr, "0123") || !strings.Contains(report.Stderr, "[redacted]") {
		t.Errorf("test: got %+v, want healthy with a redacted stderr", report)
	}
	if _, err := os.Stat(c.file); err == nil {
		t.Error("a test has written the file")
	}
	var a agents.Agent
	c.call("PUT", "agents/mine/definition", string(text), http.StatusOK, &a)
	if a.ID != "mine" || a.Name != "Mine" || !a.Editable || a.State != agents.Ready || a.Source != agents.Custom {
		t.Errorf("definition: got %+v, want mine, editable, ready", a)
	}
	c.until(func(kind string, data []byte) bool {
		var told agents.Agent
		return kind == "agent.upsert" && json.Unmarshal(data, &told) == nil && told.ID == "mine" && told.Editable
	})
	var d agents.Definition
	c.call("GET", "agents/mine/definition", "", http.StatusOK, &d)
	if d.Env["KEY"] != agents.Masked || d.ID != "mine" || len(d.Args) != 2 {
		t.Errorf("definition: got %+v, want a masked KEY and 2 arguments", d)
	}
	back, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	c.call("PUT", "agents/mine/definition", string(back), http.StatusOK, nil)
	data, err := os.ReadFile(c.file)
	if err != nil || !bytes.Contains(data, []byte("sk-0123456789abcdef0123")) {
		t.Errorf("%s: got %s, %v; want the secret kept", c.file, data, err)
	}
	c.refused("PUT", "agents/other/definition", `{"command":"./x"}`, http.StatusBadRequest, "agent.definition")
	c.refused("PUT", "agents/claude/definition", `{"command":"/bin/sh"}`, http.StatusBadRequest, "agent.definition")
	c.call("DELETE", "agents/mine/definition", "", http.StatusNoContent, nil)
	c.refused("DELETE", "agents/mine/definition", "", http.StatusBadRequest, "agent.no_definition")
	if err := os.WriteFile(c.file, []byte(`{"agents":`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refused("PUT", "agents/mine/definition", string(text), http.StatusConflict, "agents.file_broken")
	if data, err := os.ReadFile(c.file); err != nil || string(data) != `{"agents":` {
		t.Errorf("agents.json: got %s, %v, want the broken file unchanged", data, err)
	}
	// A file that cannot be written.
	if err := errors.Join(os.Remove(c.file), os.RemoveAll(c.file+".lock"), os.Mkdir(c.file+".lock", 0o700)); err != nil {
		t.Fatal(err)
	}
	c.refused("PUT", "agents/mine/definition", string(text), http.StatusConflict, "config.unwritable")
}

func TestPlanRoute(t *testing.T) {
	archives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", "12345")
	}))
	defer archives.Close()
	c := openClinic(t, "http://127.0.0.1:1")
	lists := func(name string) {
		t.Helper()
		target := map[string]any{}
		for _, machine := range []string{"linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64", "windows-x86_64"} {
			target[machine] = map[string]any{"archive": archives.URL + "/" + name, "cmd": "agent"}
		}
		data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "packed", "version": "1.0.0", "distribution": map[string]any{"binary": target}}}})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(c.file), 0o700)
		}
		if err == nil {
			err = os.WriteFile(c.file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lists("agent")
	var plan agents.Plan
	c.call("POST", "agents/packed/plan", "", http.StatusOK, &plan)
	if plan.Version != "1.0.0" || plan.Download != 12345 || !plan.Enough || plan.FreeBytes == 0 {
		t.Errorf("plan: got %+v, want 1.0.0 with 12345 bytes and enough space", plan)
	}
	var told agents.Agent
	c.until(func(kind string, data []byte) bool {
		return kind == "agent.upsert" && json.Unmarshal(data, &told) == nil && told.ID == "packed"
	})
	if told.Size == nil || told.Size.Download != 12345 || told.Size.Source != "registry" || told.Distribution != "binary" {
		t.Errorf("agent.upsert: got %+v, want the registry's size of a binary", told)
	}
	c.refused("POST", "agents/packed/plan", `{"version":"2.0.0"}`, http.StatusBadRequest, "agent.version")
	lists("gone")
	c.refused("POST", "agents/packed/plan", "", http.StatusConflict, "agent.plan_failed")
	c.refused("POST", "agents/claude/plan", "", http.StatusConflict, "agent.plan_failed") // its registry is down
	c.refused("POST", "agents/nobody/plan", "", http.StatusBadRequest, "agent.unknown")
}
