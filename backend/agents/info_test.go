package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/testkit"
)

// fakes returns a machine whose agents.json has the fake agents of the given kinds, each with its own directory.
func fakes(t *testing.T, kinds ...string) (*agents.Catalogue, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var list []map[string]any
	for _, kind := range kinds {
		own := filepath.Join(dir, kind)
		if err := os.MkdirAll(own, 0o700); err != nil {
			t.Fatal(err)
		}
		list = append(list, map[string]any{"id": kind, "command": self, "env": map[string]string{roleVariable: "agent:" + strings.TrimRight(kind, "0123456789") + ":" + own}})
	}
	data, err := json.Marshal(map[string]any{"agents": list})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "agents.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := agents.Open(agents.Config{Self: self, File: file, Environ: append(os.Environ(), "PATH="+dir, "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo"))})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, kind := range kinds {
			if n := living(filepath.Join(dir, kind, "live")); n > 0 {
				t.Errorf("processes of %s: got %d, want none left", kind, n)
			}
		}
	})
	return c, dir
}

func starts(t *testing.T, dir, kind string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, kind, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func TestDemoAgentOffersWhatTheSDKSets(t *testing.T) {
	t.Parallel()
	c, dir := fakes(t)
	info, err := c.Info(t.Context(), "mock", agents.InfoQuery{Config: true})
	if err != nil || info.ConfigError != "" || info.Version == "" || info.Path == "" || !info.Installed || !info.CredentialsAvailable {
		t.Fatalf("Info(mock): got %+v, %v, want installed, with credentials and a version", info, err)
	}
	categories := map[string]int{}
	for _, raw := range info.ConfigOptions {
		var o struct {
			Category, Type string
			CurrentValue   any
			Options        []json.RawMessage
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		if o.Type == "select" && len(o.Options) > 0 && o.CurrentValue != nil {
			categories[o.Category]++
		}
	}
	for _, want := range []string{"mode", "model", "thought_level"} {
		if categories[want] != 1 {
			t.Errorf("options of category %s: got %d, want 1 in %s", want, categories[want], info.ConfigOptions)
		}
	}
	if n := count(filepath.Join(dir, "demo")); n > 0 {
		t.Errorf("sessions left by asking: got %d, want 0", n)
	}
	if info.Capabilities != (agents.Capabilities{
		PlanMode: true, Permissions: true, Questions: true, ToolCalls: true, ToolResults: true, TextMessages: true, Images: true,
		FileAttachments: true, SessionLifecycle: true, ErrorEvents: true, Reasoning: true, Status: true, CommandExecution: true,
		FileChanges: true, MCPTools: true, StreamingDeltas: true, ItemStarted: true, SharedProcess: true,
	}) {
		t.Errorf("Info(mock): got capabilities %+v, want nearly all", info.Capabilities)
	}
}

func TestInfoTellsWhatAgentsSay(t *testing.T) {
	t.Parallel()
	c, dir := fakes(t, "good", "modes", "models", "plain", "login", "v", "crash")
	for id, want := range map[string]struct{ version, options, err string }{
		"good":   {"4.5.6", `[{"id":"m","name":"M","type":"select","category":"mode","currentValue":"x","options":[{"value":"x","name":"X"}],"_meta":{"kept":1.0}}]`, ""},
		"modes":  {"4.5.6", `[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"b","options":[{"value":"a","name":"A","description":"first"},{"value":"b","name":"B"}]}]`, ""},
		"models": {"4.5.6", `[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"b","options":[{"value":"a","name":"A"},{"value":"b","name":"b"}]}]`, ""},
		"plain":  {"4.5.6", "", ""},
		"login":  {"4.5.6", "", "Authentication required"},
		"crash":  {"", "", "with code 3"},
	} {
		info, err := c.Info(t.Context(), id, agents.InfoQuery{Config: true})
		if err != nil {
			t.Fatal(err)
		}
		options := ""
		if info.ConfigOptions != nil {
			data, _ := json.Marshal(info.ConfigOptions)
			options = string(data)
		}
		if info.Version != want.version || options != want.options || !strings.Contains(info.ConfigError, want.err) || (info.ConfigError != "") != (want.err != "") {
			t.Errorf("Info(%s): got version %q, options %s, error %q; want %+v", id, info.Version, options, info.ConfigError, want)
		}
	}
	cwd := starts(t, dir, "good")[0]
	if _, err := os.Stat(cwd); !errors.Is(err, os.ErrNotExist) || !strings.Contains(cwd, "deskhand-ask-") {
		t.Errorf("directory of asking: got %s, %v; want a temporary one that is gone", cwd, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "good", "deleted")); err != nil {
		t.Error("the session was not deleted: ", err)
	}
}

func TestInfoIsKept(t *testing.T) {
	t.Parallel()
	c, dir := fakes(t, "good", "login")
	ask := func(id string, fresh bool) agents.Info {
		info, err := c.Info(t.Context(), id, agents.InfoQuery{Config: true, Fresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	for n := range 3 {
		ask("good", false)
		if got := len(starts(t, dir, "good")); got != 1 {
			t.Errorf("starts after asking %d times: got %d, want 1", n+1, got)
		}
	}
	ask("good", true)
	if got := len(starts(t, dir, "good")); got != 2 {
		t.Errorf("starts with no_cache: got %d, want 2", got)
	}
	ask("login", false)
	ask("login", false) // a list that is drawn again must not restart an agent that keeps failing
	if got := len(starts(t, dir, "login")); got != 1 {
		t.Errorf("starts of an agent that failed: got %d, want 1", got)
	}

	if info, err := c.Info(t.Context(), "good", agents.InfoQuery{}); err != nil || info.Version != "" || info.Path != "" || info.ConfigOptions != nil {
		t.Errorf("Info without config: got %+v, %v; want no version, path or options", info, err)
	}
}

func TestInfoOfOtherProgramIsAskedAnew(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "agent")
	write := func(version string) {
		t.Helper()
		text := "#!/bin/sh\nread line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"version\":\"" + version + "\"}}}'\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "agents.json")
	if err := os.WriteFile(file, []byte(`{"agents":[{"id":"mine","command":"`+script+`"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := agents.Open(agents.Config{Self: os.Args[0], File: file})
	defer c.Close()
	for _, version := range []string{"9", "10"} {
		write(version)
		info, err := c.Info(t.Context(), "mine", agents.InfoQuery{Config: true})
		if err != nil || info.Version != version || !strings.HasPrefix(info.ConfigError, "session/new: ") {
			t.Errorf("Info(mine): got %+v, %v, want version %s and a failed session/new", info, err, version)
		}
	}
}

func TestInfoOfManyAgentsAtOnce(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		kinds = append(kinds, "crowd"+n)
	}
	c, dir := fakes(t, kinds...)
	// All share a directory, where each agent can count the others.
	crowd := filepath.Join(dir, "crowd")
	for _, kind := range kinds {
		if err := os.RemoveAll(filepath.Join(dir, kind)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(crowd, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(crowd, filepath.Join(dir, kind)); err != nil {
			t.Skip("links are needed: ", err)
		}
	}
	done := make(chan error)
	const askers = 3
	for range askers {
		go func() {
			_, err := c.Infos(t.Context(), agents.InfoQuery{Config: true})
			done <- err
		}()
	}
	for range askers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(starts(t, dir, "crowd1")); n != len(kinds) {
		t.Errorf("processes: got %d, want %d, one of each agent", n, len(kinds))
	}
	found, err := filepath.Glob(filepath.Join(crowd, "crowd-of-*"))
	if err != nil || !slices.Contains(found, filepath.Join(crowd, "crowd-of-2")) || len(found) > 2 ||
		slices.ContainsFunc(found, func(f string) bool { return f > filepath.Join(crowd, "crowd-of-2") }) {
		t.Errorf("agents at the same time: got %v, %v; want 2 at most", found, err)
	}
}

func TestInfoDoesNotWaitForSilentAgent(t *testing.T) {
	t.Parallel()
	c, dir := fakes(t, "silent", "good")
	ctx, cancel := context.WithCancel(t.Context())
	silent := make(chan error)
	go func() {
		_, err := c.Info(ctx, "silent", agents.InfoQuery{Config: true})
		silent <- err
	}()
	until(t, func() bool { return living(filepath.Join(dir, "silent", "live")) == 1 })
	if info, err := c.Info(t.Context(), "good", agents.InfoQuery{Config: true}); err != nil || info.ConfigError != "" {
		t.Errorf("Info(good): got %+v, %v, want no ConfigError", info, err)
	}
	cancel()
	if err := <-silent; !errors.Is(err, context.Canceled) {
		t.Errorf("Info(silent): got %v, want %v", err, context.Canceled)
	} // Close ends the silent agent too
}

// until waits for a condition.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come true")
		}
	}
}

func TestInfosOfAllAgents(t *testing.T) {
	t.Parallel()
	c, _ := machine(t, `{"agents":[{"id":"zebra","command":"zebra"},{"id":"mine","command":"mine"},{"id":"gemini","override":true,"command":"mine"}]}`, "deskhand", "mine", "opencode", "nova")
	list, err := c.Infos(t.Context(), agents.InfoQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	byID := map[string]agents.Info{}
	for _, i := range list {
		ids = append(ids, i.ID)
		byID[i.ID] = i
	}
	n := len(ids)
	if n < 26 || !slices.Equal(ids[:7], []string{"claude", "codex", "opencode", "gemini", "amp", "pi", "cursor"}) ||
		!slices.Equal(ids[n-3:], []string{"zebra", "mine", "mock"}) {
		t.Errorf("ids: got %v, want claude first, then the others, mock last", ids)
	}
	for id, installed := range map[string]bool{"opencode": true, "mine": true, "gemini": true, "mock": true, "zebra": false, "claude": false, "nova": false} {
		if byID[id].Installed != installed {
			t.Errorf("%s: got installed %v, want %v", id, byID[id].Installed, installed)
		}
	}
	for id, questions := range map[string]bool{"claude": true, "codex": true, "mock": true, "opencode": false, "amp": false} {
		if byID[id].Capabilities.Questions != questions {
			t.Errorf("%s: got questions %v, want %v", id, !questions, questions)
		}
	}
	data, err := json.Marshal(byID["claude"])
	if err != nil || !strings.HasPrefix(string(data), `{"id":"claude","name":"Claude Code","installed":false,"credentialsAvailable":false,"capabilities":{"planMode":true,"permissions":true,"questions":true,"toolCalls":true,"toolResults":true,"textMessages":true,"images":true,"fileAttachments":true,"sessionLifecycle":true,"errorEvents":true,"reasoning":true,"status":true,"commandExecution":true,"fileChanges":true,"mcpTools":true,"streamingDeltas":true,"itemStarted":true,"sharedProcess":true}`) {
		t.Errorf("claude as JSON: got %s, %v, want the keys of the runtime's API in their order", data, err)
	}
	if _, err := c.Info(t.Context(), "claude-acp", agents.InfoQuery{}); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("Info(claude-acp): got %v, want ErrUnknown", err)
	}
	claude, err := c.Info(t.Context(), "claude", agents.InfoQuery{Config: true})
	if err != nil || len(claude.ConfigOptions) != 2 || !strings.Contains(string(claude.ConfigOptions[0]), "bypassPermissions") || claude.ConfigError != "" {
		t.Errorf("Info(claude), not installed: got %+v, %v; want the options of the catalogue", claude, err)
	}
}

func TestListIsShort(t *testing.T) {
	t.Parallel()
	c, dir := machine(t, "", "deskhand", "qwen", "kilo")
	list, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(ids, []string{"mock", "qwen-code", "claude", "codex", "opencode", "gemini"}) {
		t.Errorf("ids: got %v, want mock, qwen-code, claude, codex, opencode, gemini", ids)
	}
	if err := os.WriteFile(filepath.Join(dir, "pi-acp"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if a := get(t, c, "pi"); a.State != agents.Broken || a.Path == "" || !strings.Contains(a.Detail, "npm install -g") {
		t.Errorf("pi with one half: got %+v, want it broken, and how to install the other", a)
	}
	// kilo is also the name of an editor: only npm's counts.
	package1 := filepath.Join(dir, "lib", "node_modules", "@kilocode", "cli", "bin")
	if err := os.MkdirAll(package1, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(package1, "kilo"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "kilo")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(package1, "kilo"), filepath.Join(dir, "kilo")); err != nil {
		t.Skip("links are needed: ", err)
	}
	if a := get(t, c, "kilo"); !a.IsReady() || a.Path != filepath.Join(dir, "kilo") || a.Reason == "" {
		t.Errorf("kilo: got %+v, want ready at %s", a, filepath.Join(dir, "kilo"))
	}
}
