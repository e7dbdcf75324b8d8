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

	"deskhand/e2e/agents/llm"
)

// realAgent is one agent of others, pinned.
type realAgent struct {
	ID      string   `json:"id"` // as Deskhand's catalogue has it
	NPM     string   `json:"npm"`
	Version string   `json:"version"`
	Bin     string   `json:"bin"`
	Args    []string `json:"args"`
	SetUp   []string `json:"setUp"` // arguments of node, run once inside the package: what npm would run as an install script
}

//go:embed pins.json
var pins []byte

func realAgents(t *testing.T) []realAgent {
	t.Helper()
	var list []realAgent
	decode(t, pins, &list)
	return list
}

// path installs the agent unless it is there, and returns its program. The directory appears whole or not at all, so that an
// interrupted installation is simply repeated.
func (a realAgent) path(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(cache, "deskhand-e2e-agents", a.ID, a.Version)
	bin := filepath.Join(home, "node_modules", ".bin", a.Bin)
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(home), "installing-") //nolint:usetesting // it is renamed, so it must be on that disk
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	t.Logf("installing %s@%s into %s, once", a.NPM, a.Version, home)
	run(t, fresh, "npm", "install", "--prefix", fresh, "--ignore-scripts", "--save-exact", "--no-audit", "--no-fund", a.NPM+"@"+a.Version)
	if a.SetUp != nil {
		run(t, filepath.Join(fresh, "node_modules", filepath.FromSlash(a.NPM)), "node", a.SetUp...)
	}
	if err := os.Rename(fresh, home); err != nil {
		if _, there := os.Stat(bin); there != nil { // another test process may have been first
			t.Fatal(err)
		}
	}
	return bin
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// place is the private world of one test: directories, environment, and a mark on every process that comes of it.
type place struct {
	home string // HOME; XDG directories and TMPDIR are inside
	work string // the directory that the agent works in
	env  []string
	mark string
}

const markName = "DESKHAND_E2E_MARK"

func newPlace(t *testing.T, model *llm.Model) place {
	t.Helper()
	root := t.TempDir()
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
	p.set(model.Offline())
	return p
}

// set adds variables; what was set last counts.
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
