package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
)

// shopVariable marks the processes of a shop: its value is the shop's store.
const shopVariable = "AGENTS_TEST_SHOP"

// installFixture is a made-up machine with node and npm, a registry, and a store of installed agents.
type installFixture struct {
	*agents.Catalogue
	t    *testing.T
	reg  *registry
	cfg  agents.Config
	home string
	bin  string // PATH
}

func openInstallFixture(t *testing.T, change ...func(*agents.Config)) *installFixture {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the made-up PATH is made of links")
	}
	if testing.Short() {
		t.Skip("npm takes seconds")
	}
	t.Parallel()
	s := &installFixture{t: t, reg: openRegistry(t), home: t.TempDir(), bin: nodeOnPath(t)}
	s.cfg = agents.Config{
		Self: os.Args[0], Dir: filepath.Join(t.TempDir(), "agents"), WriteFile: store.WriteFile, Registry: s.reg.URL,
		Environ: []string{
			"HOME=" + s.home, "PATH=" + s.bin, "TMPDIR=" + t.TempDir(), "npm_config_cache=" + filepath.Join(s.home, "cache"),
			"npm_config_userconfig=" + filepath.Join(s.home, "npmrc"), "npm_config_globalconfig=" + filepath.Join(s.home, "npmrc.global"),
			"npm_config_fetch_retries=0", "ANTHROPIC_API_KEY=x",
		},
	}
	s.cfg.Environ = append(s.cfg.Environ, shopVariable+"="+s.cfg.Dir)
	for _, f := range change {
		f(&s.cfg)
	}
	s.Catalogue = agents.Open(s.cfg)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.mustBeTidy()
	})
	return s
}

func (s *installFixture) install(id string, r agents.InstallRequest) agents.Installed {
	s.t.Helper()
	done, err := s.Installer().Install(s.t.Context(), id, r, nil)
	if err != nil {
		if failed, ok := errors.AsType[*agents.InstallError](err); ok {
			s.t.Log(failed.Stderr)
		}
		s.t.Fatal(err)
	}
	return done
}

// current is the content of Claude's current.json.
type current struct {
	Version, Directory, Bin, Integrity string
	Previous                           *current
}

func (s *installFixture) current() current {
	s.t.Helper()
	var now current
	data, err := os.ReadFile(filepath.Join(s.cfg.Dir, "claude", "current.json"))
	if err == nil {
		err = json.Unmarshal(data, &now)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return now
}

// versions returns the directories of Claude's adapter.
func (s *installFixture) versions() []string {
	var names []string
	items, _ := os.ReadDir(filepath.Join(s.cfg.Dir, "claude"))
	for _, item := range items {
		if item.IsDir() {
			names = append(names, item.Name())
		}
	}
	return names
}

// mustBeTidy checks that no installation has left files or processes.
func (s *installFixture) mustBeTidy() {
	s.t.Helper()
	for _, name := range s.versions() {
		if strings.HasPrefix(name, ".") {
			s.t.Errorf("versions: got %s, want nothing half made", name)
		}
	}
	if left := processesOf(s.t, s.cfg.Dir); len(left) > 0 {
		s.t.Errorf("processes after the installation: got %q, want none", left)
	}
}

// processesOf returns the processes whose environment names dir; npm overwrites its arguments.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ps", "axeww", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, shopVariable+"="+dir+" ") || strings.HasSuffix(line, shopVariable+"="+dir+"\n") {
			found = append(found, line)
		}
	}
	return found
}

func TestInstallFromNPM(t *testing.T) {
	s := openInstallFixture(t)
	p := s.reg.publishClaude("0.101.0", "")
	dep := s.reg.packages["fake-dep"]["1.0.0"]
	var steps []string
	var last agents.Progress
	logged := false
	done, err := s.Installer().Install(t.Context(), "claude", agents.InstallRequest{}, func(p agents.Progress) {
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
		if p.Step == agents.StepDownload {
			last = p
		}
		logged = logged || strings.Contains(p.Log, "http fetch GET 200")
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, []string{"resolve", "download", "verify", "switch"}) || !logged {
		t.Errorf("installation: got steps %v, log lines of npm %v; want resolve, download, verify, switch, and log lines", steps, logged)
	}
	if last.Total != p.size+dep.size || last.Bytes < last.Total {
		t.Errorf("%d of %d bytes, want at least %d of that", last.Bytes, last.Total, p.size+dep.size)
	}
	script := filepath.Join(s.cfg.Dir, "claude", "0.101.0", "node_modules", claudePackage, "dist", "index.js")
	want := agents.Artifact{Kind: "agent_process", Path: script, Source: "registry", Version: "0.101.0"}
	if done.AlreadyInstalled || !slices.Equal(done.Artifacts, []agents.Artifact{want}) {
		t.Errorf("Install(claude): got %+v, want %+v", done, want)
	}
	if now := s.current(); now.Previous != nil || now.Integrity != p.manifest["dist"].(map[string]any)["integrity"] {
		t.Errorf("current.json: got %+v, want the registry's integrity", now)
	}
	for _, name := range []string{"script-claude", "script-dependency"} {
		if _, err := os.Stat(filepath.Join(s.home, name)); err == nil {
			t.Errorf("scripts: got %s run, want none", name)
		}
	}

	cmd, err := s.Command(t.Context(), "claude", "/work")
	if err != nil || cmd.Path != filepath.Join(s.bin, "node") || !slices.Equal(cmd.Args, []string{script}) || cmd.Dir != "/work" {
		t.Errorf("Command(claude): got %+v, %v, want node %s in /work", cmd, err, script)
	}
	if a := get(t, s.Catalogue, "claude"); a.State != agents.Ready || a.Source != agents.Own || a.Path != script || !strings.Contains(a.Reason, "0.101.0") {
		t.Errorf("claude: got %+v, want ready, installed, 0.101.0", a)
	}
	info, err := s.Info(t.Context(), "claude", agents.InfoQuery{Config: true})
	if err != nil || !info.Installed || !info.CredentialsAvailable || info.Version != "0.101.0" || info.Path != script || info.ConfigError != "" {
		t.Errorf("Info(claude): got %+v, %v, want installed, with credentials, 0.101.0", info, err)
	}

	before, _ := s.reg.served()
	again := s.install("claude", agents.InstallRequest{})
	again2 := s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.101.0"})
	if after, _ := s.reg.served(); !again.AlreadyInstalled || !again2.AlreadyInstalled || !slices.Equal(again.Artifacts, done.Artifacts) || before != after {
		t.Errorf("installed already: got %+v, %+v, %d tarballs more; want both told so, and none", again, again2, after-before)
	}
}

func TestInstallKeepsAndRemovesVersions(t *testing.T) {
	s := openInstallFixture(t)
	for _, v := range []string{"0.101.0", "0.102.0", "0.103.0-rc.1", "0.104.0"} {
		s.reg.publishClaude(v, "")
	}
	s.install("claude", agents.InstallRequest{})
	s.install("claude", agents.InstallRequest{Reinstall: true})
	if now := s.current(); now.Directory != "0.101.0-2" || now.Previous != nil || !slices.Equal(s.versions(), []string{"0.101.0-2"}) {
		t.Errorf("reinstalled: got %+v, versions %v; want 0.101.0-2 alone", now, s.versions())
	}
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"})
	if now := s.current(); now.Version != "0.102.0" || now.Previous.Version != "0.101.0" || len(s.versions()) != 2 {
		t.Errorf("updated: got %+v, versions %v; want 0.102.0 beside 0.101.0", now, s.versions())
	}

	cmd, err := s.Command(t.Context(), "claude", s.home) // an agent of 0.102.0, which runs on while two other versions come
	if err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	running, err := set.Start(t.Context(), "running", "claude", cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.103.0-rc.1"})
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.104.0"})
	if got := s.versions(); !slices.Equal(got, []string{"0.102.0", "0.103.0-rc.1", "0.104.0"}) {
		t.Errorf("versions while 0.102.0 runs: got %v, want 0.102.0 kept", got)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.cfg.Dir, "claude", ".new-of-a-killed-one"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.install("claude", agents.InstallRequest{Reinstall: true, AgentProcessVersion: "0.104.0"})
	if got := s.versions(); !slices.Equal(got, []string{"0.103.0-rc.1", "0.104.0-2"}) {
		t.Errorf("versions after 0.102.0 has ended: got %v, want 0.103.0-rc.1 and 0.104.0-2", got)
	}
}

func TestInstallRunsOnlyNeededScripts(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishDependencies()
	s.reg.publish(openCodePackage, "1.18.33", map[string]any{
		"bin": map[string]any{"opencode": "./bin/opencode.exe"}, "dependencies": map[string]any{"fake-dep": "1.0.0"},
		"scripts": map[string]any{"postinstall": "node post.js && " + marking("opencode")},
	}, map[string]string{
		"bin/opencode.exe": "echo the script has not run >&2; exit 1", "agent.js": agentScript("1.18.33", ""),
		"post.js": `const fs = require('fs'); fs.writeFileSync('bin/opencode.exe', '#!/bin/sh\nexec node "$(dirname "$0")/../agent.js" "$@"\n')`,
	})
	if err := os.Symlink("/usr/bin/dirname", filepath.Join(s.bin, "dirname")); err != nil {
		t.Fatal(err)
	}
	done := s.install("opencode", agents.InstallRequest{AgentVersion: "1.18.33"})
	kinds := []string{}
	for _, a := range done.Artifacts {
		kinds = append(kinds, a.Kind)
	}
	if !slices.Equal(kinds, []string{"agent_process", "native_agent"}) {
		t.Errorf("Install(opencode): got %+v, want agent_process and native_agent", done)
	}
	cmd, err := s.Command(t.Context(), "opencode", "/")
	if err != nil || !strings.HasSuffix(cmd.Path, "/bin/opencode.exe") || !slices.Equal(cmd.Args, []string{"acp"}) {
		t.Errorf("Command(opencode): got %+v, %v, want bin/opencode.exe acp", cmd, err)
	}
	if _, err := os.Stat(filepath.Join(s.home, "script-opencode")); err != nil {
		t.Error("the package's own script has not run: ", err)
	}
	if _, err := os.Stat(filepath.Join(s.home, "script-dependency")); err == nil {
		t.Error("the dependency's script ran")
	}
}

func TestInstallThatFailsChangesNothing(t *testing.T) { //nolint:tparallel // the subtests share a shop, in sequence
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	s.install("claude", agents.InstallRequest{})
	before := s.current()
	full := func(string, []byte, os.FileMode) error { return errors.New("disk full") }
	for n, tc := range []struct {
		name   string
		make   func(version string)
		write  func(string, []byte, os.FileMode) error
		step   string
		err    string
		stderr string
	}{
		{
			"the agent ends",
			func(v string) { s.reg.publishClaude(v, "console.error('no licence found'); process.exit(7);") },
			store.WriteFile, "verify", "with code 7", "no licence found",
		},
		{
			"another protocol",
			func(v string) {
				s.reg.publishClaude(v, `process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}\n');`)
			},
			store.WriteFile, "verify", "version 2 of the protocol", "",
		},
		{
			"no program", func(v string) { s.reg.publish(claudePackage, v, nil, nil) },
			store.WriteFile, "verify", "no program claude-agent-acp", "",
		},
		{
			"a program outside",
			func(v string) {
				s.reg.publish(claudePackage, v, map[string]any{"bin": "../../../../../../../../bin/sh"}, nil)
			},
			store.WriteFile, "verify", "is not there", "",
		},
		{
			"another tarball", func(v string) { s.reg.publishClaude(v, "").tarball = s.reg.packages[claudePackage]["0.101.0"].tarball },
			store.WriteFile, "download", "integrity checksum failed", "EINTEGRITY",
		},
		{
			"the download breaks off", func(v string) { s.reg.publishClaude(v, "").cut = true },
			store.WriteFile, "download", "npm failed", "npm error",
		},
		{
			"it never answers", func(v string) {
				s.reg.publishClaude(v, "console.error('thinking'); process.stdin.resume(); setInterval(() => {}, 1000); return;")
			},
			store.WriteFile, "verify", "not answered in time", "thinking",
		},
		{
			"its program is missing", func(v string) {
				s.reg.publish(claudePackage, v, map[string]any{"bin": map[string]any{"claude-agent-acp": "dist/index.js"}}, nil)
			},
			store.WriteFile, "verify", "is not there", "",
		},
		{"no such version", func(string) {}, store.WriteFile, "resolve", "No matching version found", "ETARGET"},
		{
			"a dependency is missing",
			func(v string) {
				s.reg.publish(claudePackage, v, map[string]any{"dependencies": map[string]any{"nowhere": "1.0.0"}}, nil)
			},
			store.WriteFile, "resolve", "404 Not Found", "E404",
		},
		{
			"too large", func(v string) { s.reg.publishClaude(v, "").told = 1 << 55 },
			store.WriteFile, "resolve", "not enough space", "",
		},
		{"the file cannot be written", func(v string) { s.reg.publishClaude(v, "") }, full, "switch", "disk full", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			version := fmt.Sprintf("1.0.%d", n)
			tc.make(version)
			cfg := s.cfg
			cfg.WriteFile = tc.write
			if tc.name == "it never answers" {
				cfg.Patience = 10 * time.Second // npm must have started by then
			}
			c := agents.Open(cfg)
			defer c.Close()
			_, err := c.Installer().Install(t.Context(), "claude", agents.InstallRequest{AgentProcessVersion: version}, nil)
			var failed *agents.InstallError
			if !errors.Is(err, agents.ErrInstall) || !errors.As(err, &failed) {
				t.Fatalf("Install(%s): got %v, want an *InstallError", version, err)
			}
			if failed.Step != tc.step || !strings.Contains(err.Error(), tc.err) || !strings.Contains(failed.Stderr, tc.stderr) {
				t.Errorf("Install(%s): got %v at step %s, stderr %q; want %q at %s, %q", version, err, failed.Step, failed.Stderr, tc.err, tc.step, tc.stderr)
			}
			if now := s.current(); now != before || !slices.Equal(s.versions(), []string{"0.101.0"}) {
				t.Errorf("after the failure: got %+v, versions %v; want them as before: %+v", now, s.versions(), before)
			}
			if _, err := c.Command(t.Context(), "claude", "/"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInstallWhileRegistryIsDown(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.Close()
	_, err := s.Installer().Install(t.Context(), "claude", agents.InstallRequest{}, nil)
	var failed *agents.InstallError
	if !errors.As(err, &failed) || failed.Step != agents.StepResolve || !strings.Contains(failed.Stderr, "ECONNREFUSED") {
		t.Errorf("Install: got %v, want step resolve and ECONNREFUSED", err)
	}
}

func TestInstallCancelledLeavesNothing(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-held
		if len(processesOf(t, s.cfg.Dir)) == 0 {
			t.Error("npm is not seen: this test proves nothing")
		}
		cancel()
	}()
	_, err := s.Installer().Install(ctx, "claude", agents.InstallRequest{}, nil) // without the cancel the download hangs for ever
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Install: got %v, want %v", err, context.Canceled)
	}
	s.mustBeTidy()
	if s.Known("claude") && get(t, s.Catalogue, "claude").IsReady() {
		t.Error("it is installed")
	}
	s.reg.release()
	s.install("claude", agents.InstallRequest{})
}

func TestCloseEndsInstallations(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	go func() {
		<-held
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, err := s.Installer().Install(t.Context(), "claude", agents.InstallRequest{}, nil)
	if !errors.Is(err, agents.ErrClosed) {
		t.Errorf("Install: got %v, want %v", err, agents.ErrClosed)
	}
	s.mustBeTidy()
	if _, err := s.Installer().Install(t.Context(), "claude", agents.InstallRequest{}, nil); !errors.Is(err, agents.ErrClosed) {
		t.Errorf("Install after Close: got %v, want ErrClosed", err)
	}
	if info, err := s.Info(t.Context(), "mock", agents.InfoQuery{Config: true}); err != nil || info.ConfigError == "" {
		t.Errorf("Info after Close: got %+v, %v; want a config error", info, err)
	}
}

func TestInstallIsJoined(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	ctx, cancel := context.WithCancel(t.Context())
	type outcome struct {
		done agents.Installed
		err  error
	}
	first, others, another := make(chan outcome), make(chan outcome), make(chan outcome)
	begin := func(ctx context.Context, to chan outcome, r agents.InstallRequest, progress func(agents.Progress)) {
		go func() {
			done, err := s.Installer().Install(ctx, "claude", r, progress)
			to <- outcome{done, err}
		}()
	}
	begin(ctx, first, agents.InstallRequest{}, nil)
	<-held
	joined := make(chan struct{}, 3)
	for range 3 {
		joins := sync.OnceFunc(func() { joined <- struct{}{} })
		begin(t.Context(), others, agents.InstallRequest{}, func(agents.Progress) { joins() })
	}
	for range 3 {
		<-joined // each got the current state at once
	}
	s.reg.publishClaude("0.102.0", "")
	begin(t.Context(), another, agents.InstallRequest{AgentProcessVersion: "0.102.0"}, nil)
	cancel()
	if o := <-first; !errors.Is(o.err, context.Canceled) {
		t.Errorf("Install of the caller that went away: got %+v, want context.Canceled", o)
	}
	// The download still hangs for the others: its connection is closed, and npm does not retry.
	s.reg.release()
	s.reg.CloseClientConnections()
	for range 3 {
		o := <-others
		var failed *agents.InstallError
		if !errors.As(o.err, &failed) || failed.Step != agents.StepDownload {
			t.Errorf("Install of a caller that stayed: got %+v, want a failure of the download", o)
		}
	}
	if o := <-another; o.err != nil || s.current().Version != "0.102.0" {
		t.Errorf("who wanted another: %+v", o)
	}
}

func TestJoinedInstallationHappensOnce(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	errs := make(chan error)
	for range 4 {
		go func() {
			_, err := s.Installer().Install(t.Context(), "claude", agents.InstallRequest{}, nil)
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if tarballs, _ := s.reg.served(); tarballs != 2 {
		t.Errorf("%d tarballs were served, want the package and its dependency", tarballs)
	}
}

func TestTwoProcessesInstallOnce(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	type outcome struct {
		done agents.Installed
		err  error
	}
	outcomes := make(chan outcome)
	for range 2 {
		go func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(slices.Clone(s.cfg.Environ), roleVariable+"=installer:"+s.cfg.Dir, "AGENTS_TEST_REGISTRY="+s.reg.URL)
			var o outcome
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &o.done)
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = fmt.Errorf("the other process: %w: %s", err, exit.Stderr)
			}
			o.err = err
			outcomes <- o
		}()
	}
	one, two := <-outcomes, <-outcomes
	if one.err != nil || two.err != nil || one.done.AlreadyInstalled == two.done.AlreadyInstalled {
		t.Errorf("got %+v, %+v, want one installation and one AlreadyInstalled", one, two)
	}
	if !slices.Equal(s.versions(), []string{"0.101.0"}) {
		t.Errorf("versions: got %v, want 0.101.0", s.versions())
	}
}

func TestInstallRefusesWrongVersions(t *testing.T) {
	s := openInstallFixture(t, func(c *agents.Config) {
		c.File = filepath.Join(t.TempDir(), "agents.json")
		if err := os.WriteFile(c.File, []byte(`{"agents":[{"id":"own","command":"/bin/sh"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	for _, v := range []string{
		"latest", "^1.2.3", "1.2", "1.x", "v1.2.3", "--global", "-g", "1.2.3 --global", "1.2.3\n", "npm:left-pad@1.3.0", "../../x", "file:///etc/passwd",
		"https://example.com/x.tgz", "git+ssh://git@example.com/x", "user/repo", "1.2.3 || 2.0.0", "1.2.3;id", "$(id)", "01.2.3", "1.2.3-", "1.2.3/..", "é",
	} {
		for _, r := range []agents.InstallRequest{{AgentProcessVersion: v}, {AgentVersion: v}} {
			if _, err := s.Installer().Install(t.Context(), "opencode", r, nil); !errors.Is(err, agents.ErrVersion) {
				t.Errorf("Install(opencode, %+v): got %v, want %v", r, err, agents.ErrVersion)
			}
		}
	}
	for _, tc := range []struct {
		id   string
		r    agents.InstallRequest
		want string
	}{
		{"claude", agents.InstallRequest{AgentVersion: "1.0.0"}, "choose agentProcessVersion"},
		{"pi", agents.InstallRequest{AgentVersion: "1.0.0"}, "the pi on PATH"},
		{"opencode", agents.InstallRequest{AgentVersion: "1.0.0", AgentProcessVersion: "2.0.0"}, "cannot be 1.0.0 and 2.0.0"},
		{"mock", agents.InstallRequest{AgentVersion: "1.0.0"}, "part of Deskhand"},
		{"mock", agents.InstallRequest{AgentProcessVersion: "1.0.0"}, "part of Deskhand"},
		{"own", agents.InstallRequest{AgentProcessVersion: "1.0.0"}, "agents.json"},
		{"own", agents.InstallRequest{AgentVersion: "1.0.0"}, "agents.json"},
	} {
		if _, err := s.Installer().Install(t.Context(), tc.id, tc.r, nil); !errors.Is(err, agents.ErrVersion) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Install(%s, %+v): got %v, want ErrVersion with %q", tc.id, tc.r, err, tc.want)
		}
	}
	if _, requests := s.reg.served(); requests != 0 {
		t.Errorf("requests to the registry: got %d, want none", requests)
	}
}

func TestEnsureInstallsWhatIsMissing(t *testing.T) {
	s := openInstallFixture(t, func(c *agents.Config) {
		c.File = filepath.Join(t.TempDir(), "agents.json")
		if err := os.WriteFile(c.File, []byte(`{"agents":[{"id":"gone","command":"gone-agent"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	s.reg.publishClaude("0.101.0", "")
	cmd, err := s.Ensure(t.Context(), "claude", "/work")
	if err != nil || len(cmd.Args) != 1 || !strings.HasPrefix(cmd.Args[0], s.cfg.Dir) || cmd.Dir != "/work" {
		t.Fatalf("Ensure(claude): got %+v, %v, want a script in %s", cmd, err, s.cfg.Dir)
	}
	var failed *agents.InstallError
	if _, err := s.Ensure(t.Context(), "codex", "/"); !errors.As(err, &failed) || failed.Step != agents.StepResolve {
		t.Errorf("Ensure(codex), which the registry does not have: got %v, want a failure of resolve", err)
	}
	if _, err := s.Ensure(t.Context(), "nope", "/"); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("Ensure(nope): got %v, want %v", err, agents.ErrUnknown)
	}
	if _, err := s.Ensure(t.Context(), "gone", "/"); !errors.Is(err, agents.ErrNotInstalled) || !errors.Is(err, agents.ErrCommand) {
		t.Errorf("Ensure(gone), which nobody can install: got %v, want ErrNotInstalled and ErrCommand", err)
	}
	script := agentScript("1.0.0", "")
	s.reg.publish("pi-acp", "0.0.34", map[string]any{"bin": "i.js", "dependencies": map[string]any{"fake-dep": "1.0.0"}}, map[string]string{"i.js": script})
	if _, err := s.Ensure(t.Context(), "pi", "/"); !errors.Is(err, agents.ErrNotInstalled) || !strings.Contains(err.Error(), "starts pi, which is not on PATH") ||
		!strings.Contains(err.Error(), "npm install -g @earendil-works/pi-coding-agent") {
		t.Errorf("Ensure(pi) without pi: got %v, want ErrNotInstalled and how to install it", err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(s.bin, "pi")); err != nil {
		t.Fatal(err)
	}
	if cmd, err := s.Ensure(t.Context(), "pi", "/"); err != nil || !strings.HasPrefix(cmd.Args[0], s.cfg.Dir) {
		t.Errorf("Ensure(pi) with both halves: got %+v, %v; want a script in %s", cmd, err, s.cfg.Dir)
	}
}

func TestEnsureInstallsNothingWhenPreinstalled(t *testing.T) {
	s := openInstallFixture(t, func(c *agents.Config) { c.Preinstalled = true })
	s.reg.publishClaude("0.101.0", "")
	if _, err := s.Ensure(t.Context(), "claude", "/"); !errors.Is(err, agents.ErrNotInstalled) {
		t.Errorf("Ensure(claude): got %v, want %v", err, agents.ErrNotInstalled)
	}
	if _, requests := s.reg.served(); requests != 0 {
		t.Errorf("requests to the registry: got %d, want none", requests)
	}
	s.install("claude", agents.InstallRequest{}) // an explicit request
	if _, err := s.Ensure(t.Context(), "claude", "/"); err != nil {
		t.Errorf("Ensure(claude): got %v, want no error", err)
	}
}

func TestInstallWithoutNodeOrNPM(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	s.install("claude", agents.InstallRequest{})
	for _, name := range []string{"npm", "node"} {
		if err := os.Remove(filepath.Join(s.bin, name)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Ensure(t.Context(), "codex", "/")
		if !errors.Is(err, agents.ErrInstall) || !strings.Contains(err.Error(), name+" is not on PATH: install Node.js") {
			t.Errorf("Ensure(codex) without %s: got %v, want ErrInstall and Node.js named", name, err)
		}
	}
	if a := get(t, s.Catalogue, "claude"); a.State != agents.Broken || a.Source != agents.Own {
		t.Errorf("claude: got %+v, want broken and installed", a)
	}
	if _, err := s.Command(t.Context(), "claude", "/"); !errors.Is(err, agents.ErrNotInstalled) || !strings.Contains(err.Error(), "needs node") {
		t.Errorf("Command(claude): got %v, want ErrNotInstalled, needs node", err)
	}
}

func TestInstalledAgentGoesBeforePath(t *testing.T) {
	s := openInstallFixture(t)
	onPath := filepath.Join(s.bin, "claude-agent-acp")
	if err := os.WriteFile(onPath, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	done := s.install("claude", agents.InstallRequest{})
	if !done.AlreadyInstalled || done.Artifacts[0].Source != "local_path" || done.Artifacts[0].Path != onPath {
		t.Errorf("Install(claude): got %+v, want the local path %s", done, onPath)
	}
	s.reg.publishClaude("0.101.0", "")
	if done = s.install("claude", agents.InstallRequest{Reinstall: true}); done.AlreadyInstalled || done.Artifacts[0].Source != "registry" {
		t.Errorf("Install(claude, Reinstall): got %+v, want an installation from the registry", done)
	}
	if a := get(t, s.Catalogue, "claude"); a.Source != agents.Own || !strings.Contains(a.Reason, "before "+onPath) {
		t.Errorf("claude: got %+v, want the installed version before %s", a, onPath)
	}
	file := filepath.Join(s.cfg.Dir, "claude", "current.json")
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.cfg.Dir), "x"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"broken": "{", "outside": `{"version":"1.0.0","directory":"../..","bin":"x"}`, "gone": `{"version":"1.0.0","directory":"1.0.0","bin":"x"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := get(t, s.Catalogue, "claude"); a.Source != agents.OnPath || a.Path != onPath || !strings.Contains(a.Reason, "cannot be used") {
			t.Errorf("%s: claude: got %+v, want the one on PATH at %s", name, a, onPath)
		}
	}
	s.install("claude", agents.InstallRequest{Reinstall: true})
	if a := get(t, s.Catalogue, "claude"); a.Source != agents.Own {
		t.Errorf("claude: got %+v, want the installed version", a)
	}
}

func TestInstallOfAgentThatIsNotInstallable(t *testing.T) {
	t.Parallel()
	c, dir := machine(t, `{"agents":[{"id":"gone","command":"gone-agent"},{"id":"mine","command":"DIR/mine"}]}`, "deskhand", "mine")
	for id, want := range map[string]string{
		"gone": "agents.json", "cursor": "no directory", "claude": "no directory",
	} {
		_, err := c.Installer().Install(t.Context(), id, agents.InstallRequest{}, nil)
		if !errors.Is(err, agents.ErrNotInstallable) || !strings.Contains(err.Error(), want) {
			t.Errorf("Install(%s): got %v, want ErrNotInstallable with %q", id, err, want)
		}
	}
	for id, want := range map[string]agents.Artifact{
		"mock": {Kind: "agent_process", Path: filepath.Join(dir, "deskhand"), Source: "builtin"},
		"mine": {Kind: "agent_process", Path: filepath.Join(dir, "mine"), Source: "local_path"},
	} {
		done, err := c.Installer().Install(t.Context(), id, agents.InstallRequest{Reinstall: true}, nil)
		if err != nil || !done.AlreadyInstalled || !slices.Equal(done.Artifacts, []agents.Artifact{want}) {
			t.Errorf("Install(%s): got %+v, %v, want %+v", id, done, err, want)
		}
	}
	if _, err := c.Installer().Install(t.Context(), "nope", agents.InstallRequest{}, nil); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("Install(nope): got %v, want %v", err, agents.ErrUnknown)
	}
}

// A person has begun to install an agent; a session that needs the agent waits for that installation.
func TestInstallAfterAnotherProcess(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	if err := s.Installer().Begin("claude", ""); err != nil {
		t.Fatal(err)
	}
	done := s.install("claude", agents.InstallRequest{})
	if !done.AlreadyInstalled || !slices.Equal(s.versions(), []string{"0.101.0"}) {
		t.Errorf("installed by another meanwhile: got %+v, versions %v; want it installed once", done, s.versions())
	}
}
