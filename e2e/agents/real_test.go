//go:build e2e

package agents

import (
	_ "embed" // the versions of the agents
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/e2e/agents/llm"
)

// realAgent is a pinned agent of another project.
type realAgent struct {
	ID         string   `json:"id"` // the id in Deskhand's catalogue
	Name       string   `json:"name"`
	Version    string   `json:"version"` // of the program that speaks ACP
	Bin        string   `json:"bin"`
	Args       []string `json:"args"`
	Everywhere bool     `json:"everywhere"` // the agent is in the tests of crashes, of the command line and of the browser too
}

//go:embed pins.json
var pins []byte

// pinned are all of them.
func pinned(t *testing.T) []realAgent {
	t.Helper()
	var list []realAgent
	decode(t, pins, &list)
	return list
}

// realAgents are those that are tested in every way.
func realAgents(t *testing.T) []realAgent {
	t.Helper()
	return slices.DeleteFunc(pinned(t), func(a realAgent) bool { return !a.Everywhere })
}

// agentsDir keeps what Deskhand has installed, in the layout of its store, from one run to the next: a warm run downloads nothing.
func agentsDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "deskhand-e2e-agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// home returns the directory of the agent's pinned version; "" when the version is not installed.
func (a realAgent) home(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(agentsDir(t), a.ID)
	var now struct{ Version, Directory string }
	if data, err := os.ReadFile(filepath.Join(dir, "current.json")); err == nil {
		decode(t, data, &now)
	}
	if now.Version != a.Version {
		return ""
	}
	return filepath.Join(dir, now.Directory)
}

// path returns the agent's program, and has Deskhand install a missing agent.
func (a realAgent) path(t *testing.T) string {
	t.Helper()
	if a.home(t) == "" {
		a.install(t)
	}
	bin := filepath.Join(a.home(t), "node_modules", ".bin", a.Bin)
	if _, err := os.Stat(bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// reachNPM gives the place the variables and files by which npm reaches its registry on this machine, and the cache of the person.
func (p *place) reachNPM() {
	for _, kv := range os.Environ() {
		name := strings.ToLower(kv[:strings.IndexByte(kv, '=')])
		if strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_config_") || strings.Contains(name, "_cert") {
			p.env = append(p.env, kv)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		p.set(map[string]string{"npm_config_userconfig": filepath.Join(home, ".npmrc"), "npm_config_cache": filepath.Join(home, ".npm")})
	}
}

// install makes a separate Deskhand install the agent: npm needs the network, which the tests' own places block.
func (a realAgent) install(t *testing.T) {
	t.Helper()
	p := newPlace(t, nil)
	p.useStore(t)
	p.reachNPM()
	s := startServer(t, p)
	t.Logf("installing %s %s into %s, once", a.ID, a.Version, agentsDir(t))
	s.call("POST", "/client/agents/"+a.ID+"/install", map[string]string{"version": a.Version}, nil)
	type agent struct {
		ID, Version string
		Installing  any
		Failure     any
	}
	eventually(t, 15*time.Minute, "the installation", func() error {
		var list struct{ Items []agent }
		s.call("GET", "/client/agents?all=true", nil, &list)
		i := slices.IndexFunc(list.Items, func(one agent) bool { return one.ID == a.ID })
		switch {
		case i < 0:
			t.Fatalf("%s is not in the list", a.ID)
		case list.Items[i].Failure != nil:
			t.Fatalf("it failed: %+v", list.Items[i].Failure)
		case list.Items[i].Installing != nil || list.Items[i].Version != a.Version:
			return fmt.Errorf("agent %s: got %+v, want version %s installed", a.ID, list.Items[i], a.Version)
		}
		return nil
	})
	s.stop()
	p.mustBeGone(t, 2*time.Second)
}

// environ aims an agent at the model.
func environ(t *testing.T, model *llm.Model, agent string, p place) map[string]string {
	t.Helper()
	env, err := model.Environ(agent, p.home)
	if err != nil || env == nil {
		t.Fatalf("no environment for %s: %v", agent, err)
	}
	return env
}

// place is the private world of a test: directories, environment, and a mark on every process that the test causes.
type place struct {
	home string // HOME; XDG directories and TMPDIR are inside
	work string // the directory that the agent works in
	env  []string
	mark string
}

const markName = "DESKHAND_E2E_MARK"

func newPlace(t *testing.T, model *llm.Model) place {
	t.Helper()
	root, err := os.MkdirTemp("", "deskhand-agents-*") //nolint:usetesting // TempDir would be removed at once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the agents of a server that was killed have a moment, in which they still write
		for began := time.Now(); os.RemoveAll(root) != nil && time.Since(began) < 10*time.Second; {
			time.Sleep(50 * time.Millisecond)
		}
	})
	p := place{home: filepath.Join(root, "home"), work: filepath.Join(root, "work"), mark: fmt.Sprintf("%d-%s", os.Getpid(), t.Name())}
	inHome := func(name string) string { return filepath.Join(p.home, name) }
	for _, dir := range []string{p.work, p.home, inHome("data"), inHome("config"), inHome("cache"), inHome("state"), inHome("run"), inHome("tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("the agents need Node: ", err)
	}
	p.env = []string{
		"HOME=" + p.home, "XDG_DATA_HOME=" + inHome("data"), "XDG_CONFIG_HOME=" + inHome("config"), "XDG_CACHE_HOME=" + inHome("cache"),
		"XDG_STATE_HOME=" + inHome("state"), "XDG_RUNTIME_DIR=" + inHome("run"), "TMPDIR=" + inHome("tmp"),
		"PATH=" + filepath.Dir(node) + ":/usr/bin:/bin", "SHELL=/bin/sh", "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off",
		"LANG=C.UTF-8", markName + "=" + p.mark,
	}
	if model != nil {
		p.set(model.Offline())
	}
	return p
}

// useStore gives the place's Deskhand the agents that are installed already.
func (p place) useStore(t *testing.T) {
	t.Helper()
	data := filepath.Join(p.lookup("XDG_DATA_HOME"), "deskhand")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(agentsDir(t), filepath.Join(data, "agents")); err != nil {
		t.Fatal(err)
	}
}

// set adds variables; the last value counts.
func (p *place) set(variables map[string]string) {
	for name, value := range variables {
		p.env = append(p.env, name+"="+value)
	}
}

// lookup returns a variable of the place's environment.
func (p place) lookup(name string) string {
	for _, entry := range slices.Backward(p.env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
