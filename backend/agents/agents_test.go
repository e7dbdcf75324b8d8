package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agents"
)

// machine returns the catalogue of a made-up machine: a bin directory on PATH with the given programs, and an agents.json ("" = none).
func machine(t *testing.T, file string, programs ...string) (*agents.Catalogue, string) {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cfg := agents.Config{
		Self:    filepath.Join(dir, "deskhand"),
		File:    filepath.Join(dir, "agents.json"),
		Environ: []string{"HOME=/h", "PATH=relative:" + dir, "DESKHAND_TOKEN=secret", "KEEP=1"},
	}
	if file != "" {
		if err := os.WriteFile(cfg.File, []byte(strings.ReplaceAll(file, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return agents.Open(cfg), dir
}

func get(t *testing.T, c *agents.Catalogue, id string) agents.Agent {
	t.Helper()
	list, _ := c.List()
	for _, a := range list {
		if a.ID == id {
			return a
		}
	}
	t.Fatalf("list: got %v, want an agent %s", list, id)
	return agents.Agent{}
}

func TestAgentsAreFoundOnPath(t *testing.T) {
	t.Parallel()
	c, dir := machine(t, "", "deskhand", "opencode")
	if a := get(t, c, "opencode"); a.State != agents.Ready || a.Path != filepath.Join(dir, "opencode") || a.Source != agents.OnPath {
		t.Errorf("opencode: got %+v, want it ready in %s on PATH", a, dir)
	}
	if a := get(t, c, "mock"); a.State != agents.Ready || a.Source != agents.Builtin {
		t.Errorf("mock: got %+v, want it ready and built in", a)
	}
	if a := get(t, c, "claude"); a.State != agents.NotFound || !slices.Equal(a.Searched, []string{dir + " (PATH of Deskhand)"}) || a.Detail == "" {
		t.Errorf("claude: got %+v, want it not found, searched on PATH", a)
	}
	cmd, err := c.Command(t.Context(), "opencode", "/work")
	if err != nil || cmd.Dir != "/work" || !slices.Equal(cmd.Args, []string{"acp"}) {
		t.Fatalf("Command(opencode): got %+v, %v, want dir /work, args [acp]", cmd, err)
	}
	if !slices.Contains(cmd.Env, "KEEP=1") || slices.ContainsFunc(cmd.Env, func(kv string) bool { return strings.Contains(kv, "secret") }) {
		t.Errorf("environment: got %v, want KEEP=1 and no secret", cmd.Env)
	}
	if _, err := c.Command(t.Context(), "claude", "/"); !errors.Is(err, agents.ErrNotInstalled) {
		t.Errorf("Command(claude): got %v, want ErrNotInstalled", err)
	}
	if _, err := c.Command(t.Context(), "nope", "/"); !errors.Is(err, agents.ErrUnknown) || c.Known("nope") {
		t.Errorf("Command(nope): got %v, want ErrUnknown", err)
	}
}

func TestCustomAgents(t *testing.T) {
	t.Parallel()
	c, dir := machine(t, `{"agents":[
		{"id":"mine","name":"Mine","command":"DIR/mine","args":["--acp"],"env":{"KEEP":"2","NEW":"3"},"cwd":"/srv"},
		{"id":"gone","command":"gone-agent"},
		{"id":"empty"},
		{"id":"rel","command":"./rel"},
		{"id":"opencode","override":true,"command":"mine"}]}`, "deskhand", "mine")
	cmd, err := c.Command(t.Context(), "mine", "/work")
	if err != nil || cmd.Path != filepath.Join(dir, "mine") || cmd.Dir != "/srv" {
		t.Fatalf("Command(mine): got %+v, %v, want %s in /srv", cmd, err, filepath.Join(dir, "mine"))
	}
	if slices.Contains(cmd.Env, "KEEP=1") || !slices.Contains(cmd.Env, "KEEP=2") || !slices.Contains(cmd.Env, "NEW=3") {
		t.Errorf("environment: got %v, want KEEP=2 and NEW=3", cmd.Env)
	}
	for id, want := range map[string]string{"mine": agents.Ready, "gone": agents.NotFound, "empty": agents.Broken, "rel": agents.Broken, "opencode": agents.Ready} {
		if a := get(t, c, id); a.State != want || a.Source != agents.Custom {
			t.Errorf("%s: %+v, want %s", id, a, want)
		}
	}
	if _, err := c.Command(t.Context(), "empty", "/"); !errors.Is(err, agents.ErrFile) {
		t.Errorf("Command(empty): got %v, want ErrFile", err)
	}
}

func TestBrokenFileIsToldAndLeavesTheOthers(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"not JSON":   {"{\"agents\":[\n{\"id\": }\n]}", "line 2"},
		"wrong type": {"{\"agents\":[\n\n{\"id\": 3}\n]}", "line 3"},
		"bad id":     {`{"agents":[{"id":"../x","command":"x"}]}`, "../x"},
		"the demo":   {`{"agents":[{"id":"mock","command":"x","override":true}]}`, "demo agent"},
		"known":      {`{"agents":[{"id":"claude","command":"x"}]}`, "override"},
		"twice":      {"{\"agents\":[\n{\"id\":\"a\",\"command\":\"x\"},\n{\"id\":\"a\",\"command\":\"y\"}]}", "agents.json, line 3: a stands in it twice"},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := machine(t, tc.file, "deskhand")
			list, err := c.List()
			if !errors.Is(err, agents.ErrFile) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want it to tell %q", err, tc.want)
			}
			if len(list) < 3 || !c.Known("mock") {
				t.Errorf("list: got %v, want the other agents", list)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, "agents.json")); string(data) != tc.file {
				t.Error("the file was changed")
			}
		})
	}
}
