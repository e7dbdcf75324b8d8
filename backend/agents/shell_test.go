//go:build !windows

package agents_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/testkit"
)

// person is somebody with a home and a login shell, whose opencode is in a directory that Deskhand's PATH lacks.
type person struct {
	t     *testing.T
	home  string
	tools string // directory of the person's opencode
	cfg   agents.Config
}

const shellMark = "AGENTS_TEST_PERSON"

func newPerson(t *testing.T, shell string) *person {
	t.Helper()
	file, err := exec.LookPath(shell)
	if err != nil {
		t.Fatalf("shell %s: got %v, want it installed (build/setup.sh go installs it)", shell, err)
	}
	p := &person{t: t, home: t.TempDir()}
	p.tools = filepath.Join(p.home, "tools")
	p.program("tools/opencode")
	p.cfg = agents.Config{
		Self: os.Args[0], LoginShell: true, ShellPatience: time.Minute, Logger: slog.New(slog.DiscardHandler),
		Environ: []string{
			"HOME=" + p.home, "SHELL=" + file, "PATH=/usr/bin:/bin", "OWN=own", "BOTH=own", "DESKHAND_TOKEN=secret", "TOOLS=" + p.tools,
			shellMark + "=" + p.home,
		},
	}
	return p
}

// write creates files in the home.
func (p *person) write(files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		file := filepath.Join(p.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			p.t.Fatal(err)
		}
		if err := writeProgram(file, text); err != nil {
			p.t.Fatal(err)
		}
	}
}

// writeProgram writes a script while no other test forks: a forked child would hold the file open until its exec, and running the script
// would fail ("text file busy").
func writeProgram(file, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(script), 0o755)
}

func (p *person) program(name string) { p.write(map[string]string{name: "#!/bin/sh\n"}) }

// open opens the catalogue; the test fails if a process is left.
func (p *person) open() *agents.Catalogue {
	p.t.Helper()
	c := agents.Open(p.cfg)
	p.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			p.t.Error(err)
		}
		for deadline := time.Now().Add(testkit.Limit); ; time.Sleep(5 * time.Millisecond) { // killed processes take a moment to disappear
			left := p.processes()
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				p.t.Errorf("processes of the shell: got %q, want none left", left)
				return
			}
		}
	})
	return c
}

// processes returns the processes that the shell has started, except those marked as independent.
func (p *person) processes() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []string
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(env), shellMark+"="+p.home+"\x00") {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if len(command) > 0 && !strings.Contains(string(command), "independent") { // a zombie has no command line
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// agentEnviron returns the environment that the demo agent is started with.
func agentEnviron(t *testing.T, c *agents.Catalogue) []string {
	t.Helper()
	cmd, err := c.Command(t.Context(), agents.Demo, "/")
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Env
}

func value(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v
		}
	}
	return ""
}

func TestLoginShell(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]struct{ rc, set, path string }{ // the rc file, and how the file sets a variable and PATH
		"bash": {".bashrc", "export %s=%s\n", "export PATH=%s:$PATH\n"},
		"zsh":  {".zshrc", "export %s=%s\n", "export PATH=%s:$PATH\n"},
		"fish": {".config/fish/config.fish", "set -gx %s %s\n", "set -gx PATH %s $PATH\n"},
		"dash": {".profile", "export %s=%s\n", "export PATH=%s:$PATH\n"},
		"sh":   {".profile", "export %s=%s\n", "export PATH=%s:$PATH\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, name)
			p.write(map[string]string{".profile": "[ -n \"$BASH_VERSION\" ] && . ~/.bashrc\n"}) // as in Debian's default home
			text := "echo a banner\n" + fmt.Sprintf(sh.path, p.tools)
			for _, set := range [][]any{{"NEW", "shell"}, {"BOTH", "shell"}, {"LINES_OF", "'a\nb=c'"}, {"DESKHAND_TOKEN", "theirs"}, {"CLAUDECODE", "1"}} {
				text += fmt.Sprintf(sh.set, set...)
			}
			p.write(map[string]string{sh.rc: text})
			p.mustGet(t)
		})
	}
}

// mustGet checks the resulting environment for the variables that the shell of TestLoginShell sets.
func (p *person) mustGet(t *testing.T) {
	t.Helper()
	for _, desktop := range []bool{false, true} {
		p.cfg.Desktop = desktop
		c := p.open()
		env := agentEnviron(t, c)
		want := map[string]string{"OWN": "own", "NEW": "shell", "BOTH": "own", "LINES_OF": "a\nb=c"}
		if desktop {
			want["BOTH"] = "shell"
		}
		for _, name := range []string{"DESKHAND_TOKEN", "CLAUDECODE", "SHLVL", "PWD", "OLDPWD", "_", "DESKHAND_READS_ENVIRONMENT"} {
			want[name] = ""
		}
		for name, want := range want {
			if got := value(env, name); got != want {
				t.Errorf("desktop %v: %s=%q, want %q", desktop, name, got, want)
			}
		}
		a, dirs := get(t, c, "opencode"), filepath.SplitList(value(env, "PATH"))
		if a.State != agents.Ready || a.Path != filepath.Join(p.tools, "opencode") || !strings.Contains(a.Reason, "PATH of the login shell /") {
			t.Errorf("opencode, desktop %v: got %+v, want it ready by the PATH of the login shell", desktop, a)
		}
		if first := dirs[0] == p.tools; first != desktop || !slices.Contains(dirs, p.tools) {
			t.Errorf("PATH, desktop %v: got %q, want %s in it, first on a desktop alone", desktop, dirs, p.tools)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(dirs)))); n != len(dirs) {
			t.Errorf("PATH: got %q, want each directory once", dirs)
		}
	}
}

// TestLoginShellThatIsHostile: rc files that prevent or delay the environment. found says whether the person's opencode is found.
func TestLoginShellThatIsHostile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shell    string
		files    map[string]string
		patience time.Duration
		found    bool
		problem  string
	}{
		"a banner":        {"bash", map[string]string{".profile": "seq 100000; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"a prompt":        {"bash", map[string]string{".profile": "read -p 'Password: ' x; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"a prompt, zsh":   {"zsh", map[string]string{".zshrc": "read x; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"a prompt, fish":  {"fish", map[string]string{".config/fish/config.fish": "read x; set -gx PATH $TOOLS $PATH\n"}, 0, true, ""},
		"of the terminal": {"bash", map[string]string{".profile": "read x </dev/tty; stty sane; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"hangs":           {"bash", map[string]string{".profile": "sleep 3600\n"}, 300 * time.Millisecond, false, "was not ready after 300ms"},
		"hangs, zsh":      {"zsh", map[string]string{".zshrc": "sleep 3600\n"}, 300 * time.Millisecond, false, "was not ready after 300ms"},
		"hangs, fish":     {"fish", map[string]string{".config/fish/config.fish": "sleep 3600\n"}, 300 * time.Millisecond, false, "was not ready after 300ms"},
		"hangs, ignoring": {"bash", map[string]string{".profile": "trap '' TERM HUP INT; while :; do sleep 3600; done\n"}, 300 * time.Millisecond, false, "was not ready after"},
		"writes for ever": {"bash", map[string]string{".profile": "yes\n"}, 300 * time.Millisecond, false, "was not ready after 300ms"},
		"exits":           {"bash", map[string]string{".profile": "export PATH=$TOOLS:$PATH; exit 3\n"}, 0, false, "ended before it could be asked"},
		"exits when interactive": {
			"bash", map[string]string{".profile": "export PATH=$TOOLS:$PATH; case $- in *i*) exit 3;; esac\n"}, 0, true, "",
		},
		"execs fish":         {"bash", map[string]string{".profile": "export PATH=$TOOLS:$PATH; . ~/.bashrc\n", ".bashrc": "case $- in *i*) exec fish;; esac\n"}, 0, true, ""},
		"exits, pipe held":   {"bash", map[string]string{".profile": "sleep 3600 & exit 3\n"}, 0, false, "ended before it could be asked"},
		"a daemon holds on":  {"bash", map[string]string{".profile": "sleep 3600 & export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"the same, fish":     {"fish", map[string]string{".config/fish/config.fish": "sleep 3600 & ; set -gx PATH $TOOLS $PATH\n"}, 0, true, ""},
		"closes its stdout":  {"bash", map[string]string{".profile": "exec >/dev/null 2>&1\n"}, 0, false, "ended before it could be asked"},
		"prints its command": {"bash", map[string]string{".profile": "echo \"$BASH_EXECUTION_STRING\"; set -xv; exec 2>&1; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"aliases":            {"bash", map[string]string{".profile": "shopt -s expand_aliases; alias printf=false env=false; printf() { :; }; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"no PATH":            {"bash", map[string]string{".profile": "unset PATH\n"}, 0, false, ""},
		"strict":             {"bash", map[string]string{".profile": "set -eu; export PATH=$TOOLS:$PATH\n"}, 0, true, ""},
		"a broken rc":        {"bash", map[string]string{".profile": "export PATH=$TOOLS:$PATH\nif then fi (\n"}, 0, true, ""},
		"unsets all":         {"bash", map[string]string{".profile": "for name in $(compgen -e); do unset $name; done\n"}, 0, false, "gave no variable"},
		"too much": {
			"bash", map[string]string{".profile": "for i in $(seq 12); do export V$i=$(head -c 100000 /dev/zero | tr '\\0' x); done\n"}, 0, false, "longer than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, tc.shell)
			p.write(tc.files)
			p.cfg.ShellPatience = cmp.Or(tc.patience, time.Hour) // an hour holds the test up until its limit
			c := p.open()
			env := agentEnviron(t, c)
			a, s := get(t, c, "opencode"), c.Environment().Surroundings()
			if found := a.State == agents.Ready; found != tc.found {
				t.Errorf("opencode: got %+v, surroundings %+v, want found %v", a, s, tc.found)
			}
			if (s.Problem == "") != (tc.problem == "") || !strings.Contains(s.Problem, tc.problem) {
				t.Errorf("%q, want %q", s.Problem, tc.problem)
			}
			if !tc.found && !strings.Contains(a.Detail, s.Problem) {
				t.Errorf("agent: got %+v, want the problem %q in its detail", a, s.Problem)
			}
			if value(env, "OWN") != "own" || !strings.Contains(value(env, "PATH"), "/usr/bin") {
				t.Errorf("environment: got %q, want its own kept", env)
			}
		})
	}
}

func TestLoginShellLeavesIndependentProcesses(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.write(map[string]string{".profile": "setsid sh -c 'echo >~/up; sleep 3600; : independent' & until [ -e ~/up ]; do sleep 0.01; done; export PATH=$TOOLS:$PATH\n"})
	c := p.open()
	if agentEnviron(t, c); get(t, c, "opencode").State != agents.Ready {
		t.Errorf("opencode: got surroundings %+v, want opencode ready", c.Environment().Surroundings())
	}
	// A key agent behaves like this. The test itself must end the process, by its id.
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	ended := 0
	for _, file := range files {
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		command, _ := os.ReadFile(file)
		var pid int
		fmt.Sscanf(filepath.Base(filepath.Dir(file)), "%d", &pid)
		if strings.Contains(string(env), shellMark+"="+p.home+"\x00") && strings.Contains(string(command), "independent") {
			// Only the group's leader: its sleep has the same command line for a moment after the fork.
			if group, err := syscall.Getpgid(pid); err != nil || group != pid {
				continue
			}
			ended++
			if err := exec.Command("/bin/kill", "-KILL", "--", fmt.Sprintf("-%d", pid)).Run(); err != nil {
				t.Error(err)
			}
		}
	}
	if ended == 0 {
		t.Error("it was ended")
	}
}

func TestDebiansBashrcReturnsUnlessInteractive(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.write(map[string]string{
		".profile": "if [ -n \"$BASH_VERSION\" ]; then . \"$HOME/.bashrc\"; fi\n",
		".bashrc":  "case $- in\n    *i*) ;;\n      *) return;;\nesac\nexport PATH=$TOOLS:$PATH\n",
	})
	if a := get(t, settled(t, p), "opencode"); a.State != agents.Ready {
		t.Errorf("opencode: got %+v, want ready", a)
	}
}

func settled(t *testing.T, p *person) *agents.Catalogue {
	t.Helper()
	c := p.open()
	c.Environment().Settle(t.Context(), false)
	return c
}

// A desktop's own environment names neither the person's editor nor the editor's directory.
func TestLoginShellFindsProgramsOfPerson(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.cfg.Desktop = true
	p.program("tools/code")
	p.write(map[string]string{".profile": "export PATH=$TOOLS:$PATH VISUAL='code --wait'\n"})
	env, find := p.open().Environment().Programs(t.Context())
	if got := env("VISUAL"); got != "code --wait" {
		t.Errorf("VISUAL: got %q, want code --wait", got)
	}
	if got := env("DESKHAND_TOKEN"); got != "" {
		t.Errorf("DESKHAND_TOKEN: got %q, want none", got)
	}
	code := filepath.Join(p.tools, "code")
	for name, want := range map[string]string{"code": code, code: code, "tools/code": "", "../code": "", "gone": "", filepath.Join(p.tools, "gone"): "", p.tools: "", "": ""} {
		if got, err := find(name); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("find(%q): got %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestLoginShellFindsVersionTools: a shell sets version tools up as their manuals say, or not at all; in both cases the agent is found, with the right
// source.
func TestLoginShellFindsVersionTools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files   map[string]string
		rc      string
		program string // where opencode is
		tool    string
	}{
		"nvm": {map[string]string{
			".nvm/nvm.sh":        "PATH=\"$NVM_DIR/versions/node/v20.11.0/bin:$PATH\"; nvm() { :; }\n",
			".nvm/alias/default": "lts/iron\n", ".nvm/alias/lts/iron": "v20.11.0\n", ".nvm/versions/node/v22.9.0/bin/node": "",
		}, "export NVM_DIR=\"$HOME/.nvm\"\n[ -s \"$NVM_DIR/nvm.sh\" ] && . \"$NVM_DIR/nvm.sh\"\n", ".nvm/versions/node/v20.11.0/bin/opencode", ""},
		"nvm, not set up":   {nil, "", ".nvm/versions/node/v20.11.0/bin/opencode", "nvm"},
		"asdf, not set up":  {nil, "", ".asdf/shims/opencode", "asdf"},
		"volta, not set up": {nil, "", ".volta/bin/opencode", "volta"},
		"nvm, a major":      {map[string]string{".nvm/alias/default": "20", ".nvm/versions/node/v22.9.0/bin/node": ""}, "", ".nvm/versions/node/v20.1.0/bin/opencode", "nvm"},
		"nvm, newest":       {map[string]string{".nvm/versions/node/v9.9.0/bin/node": ""}, "", ".nvm/versions/node/v20.1.0/bin/opencode", "nvm"},
		"nvm, node":         {map[string]string{".nvm/alias/default": "node", ".nvm/versions/node/v9.9.0/bin/node": ""}, "", ".nvm/versions/node/v10.1.0/bin/opencode", "nvm"},
		"nvm, a circle":     {map[string]string{".nvm/alias/default": "a", ".nvm/alias/a": "default"}, "", ".nvm/versions/node/v10.1.0/bin/opencode", "nvm"},
		"nvm, outside":      {map[string]string{".nvm/alias/default": "../../x", "x": "v8.0.0"}, "", ".nvm/versions/node/v10.1.0/bin/opencode", "nvm"},
		"fnm": {map[string]string{
			".local/share/fnm/fnm": "#!/bin/sh\necho \"export PATH=\\\"$HOME/multishell/bin\\\":\\\"\\$PATH\\\"\"\n",
		}, "export PATH=\"$HOME/.local/share/fnm:$PATH\"\neval \"$(fnm env)\"\n", "multishell/bin/opencode", ""},
		"fnm, default": {nil, "", ".local/share/fnm/aliases/default/bin/opencode", "fnm"},
		"fnm, newest":  {map[string]string{".local/share/fnm/node-versions/v9.0.0/installation/bin/node": ""}, "", ".local/share/fnm/node-versions/v20.0.0/installation/bin/opencode", "fnm"},
		"volta":        {nil, "export VOLTA_HOME=\"$HOME/.volta\"\nexport PATH=\"$VOLTA_HOME/bin:$PATH\"\n", ".volta/bin/opencode", ""},
		"volta, moved": {nil, "export VOLTA_HOME=\"$HOME/v\"\n", "v/bin/opencode", "volta"},
		"asdf":         {map[string]string{".asdf/asdf.sh": "PATH=\"$HOME/.asdf/bin:$HOME/.asdf/shims:$PATH\"\n"}, ". \"$HOME/.asdf/asdf.sh\"\n", ".asdf/shims/opencode", ""},
		"mise": {map[string]string{
			".local/bin/mise": "#!/bin/sh\necho 'export PATH=\"$HOME/.local/share/mise/installs/node/22/bin:$PATH\"'\n",
		}, "eval \"$(~/.local/bin/mise activate bash)\"\n", ".local/share/mise/installs/node/22/bin/opencode", ""},
		"mise, shims":  {nil, "", ".local/share/mise/shims/opencode", "mise"},
		"mise, moved":  {nil, "export XDG_DATA_HOME=$HOME/d\n", "d/mise/shims/opencode", "mise"},
		"~/.local/bin": {nil, "", ".local/bin/opencode", "~/.local"},
		"npm":          {nil, "", ".npm-global/bin/opencode", "npm"},
		"bun":          {nil, "", ".bun/bin/opencode", "bun"},
		"opencode":     {nil, "", ".opencode/bin/opencode", "OpenCode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, "bash")
			p.write(tc.files)
			p.write(map[string]string{".bashrc": tc.rc, ".profile": ". ~/.bashrc\n"})
			p.program(tc.program)
			p.cfg.Desktop = true
			c := settled(t, p)
			a := get(t, c, "opencode")
			want := "known place of " + tc.tool
			if tc.tool == "" {
				want = "PATH of the login shell"
			}
			if a.Path != filepath.Join(p.home, tc.program) || !strings.Contains(a.Reason, want) {
				t.Errorf("%+v, want it by %s", a, want)
			}
			if dirs := value(agentEnviron(t, c), "PATH"); !strings.Contains(dirs, filepath.Dir(a.Path)) {
				t.Errorf("PATH: got %s, want %s in it", dirs, filepath.Dir(a.Path))
			}
		})
	}
}

func TestLoginShellThatCannotBeAsked(t *testing.T) {
	for name, tc := range map[string]struct{ shell, want string }{
		"another kind": {"HOME/nu", "it is no shell that Deskhand knows"},
		"nologin":      {"/usr/sbin/nologin", "/usr/sbin/nologin"},
		"gone":         {"/nowhere/bash", "does not exist"},
		"relative":     {"bash", "no absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, "bash")
			p.program("nu")
			p.cfg.Environ = append(p.cfg.Environ, "SHELL="+strings.ReplaceAll(tc.shell, "HOME", p.home))
			c := settled(t, p)
			a := get(t, c, "claude")
			if a.State != agents.NotFound || !strings.Contains(a.Detail, "is not on PATH") || !strings.Contains(a.Detail, tc.want) {
				t.Errorf("claude: got %+v, want not_found with %q", a, tc.want)
			}
			if len(a.Searched) < 2 || a.Searched[0] != "/usr/bin (PATH of Deskhand)" {
				t.Errorf("searched: got %q, want /usr/bin first", a.Searched)
			}
		})
	}
}

func TestLoginShellIsReadOnceAndAgainWhenAsked(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.write(map[string]string{".profile": "echo x >>~/reads\n"})
	reads := func() int {
		data, _ := os.ReadFile(filepath.Join(p.home, "reads"))
		return strings.Count(string(data), "x")
	}
	c := p.open()
	if _, err := c.List(); err != nil || reads() != 0 {
		t.Errorf("List: got %v after %d reads of the profile, want no wait for the shell", err, reads())
	}
	c.Environment().Look()
	agentEnviron(t, c)
	agentEnviron(t, c)
	if _, err := c.Info(t.Context(), "claude", agents.InfoQuery{}); err != nil || reads() != 1 {
		t.Errorf("Info: got %v after %d reads of the profile, want 1", err, reads())
	}
	p.write(map[string]string{".profile": "echo x >>~/reads; export PATH=$TOOLS:$PATH\n"})
	if a := get(t, c, "opencode"); a.State != agents.NotFound {
		t.Errorf("opencode: got %+v, want not_found", a)
	}
	if info, err := c.Info(t.Context(), "opencode", agents.InfoQuery{Fresh: true}); err != nil || !info.Installed || reads() != 2 {
		t.Errorf("Info(fresh): got %+v, %v after %d reads; want it installed after 2", info, err, reads())
	}
	// A shell that breaks later removes nothing.
	p.write(map[string]string{".profile": "exit\n"})
	c.Environment().Settle(t.Context(), true)
	if a := get(t, c, "opencode"); a.State != agents.Ready {
		t.Errorf("opencode: got %+v, want ready", a)
	}
}

func TestLoginShellChangesAreTold(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.write(map[string]string{".profile": "export PATH=$TOOLS:$PATH\n"})
	c := p.open()
	told := make(chan agents.News, 10)
	c.Watch(func(n agents.News) { told <- n })
	if a := get(t, c, "opencode"); a.State != agents.NotFound {
		t.Fatalf("opencode: got %+v, want not_found", a)
	}
	c.Environment().Look()
	for {
		select {
		case n := <-told:
			if !n.Ended || !n.Aside || n.Err != nil {
				t.Errorf("news: got %+v, want an end, aside, without an error", n)
			}
			if n.Agent == agents.Demo {
				t.Error("the demo agent has not changed")
			}
			if n.Agent != "opencode" {
				continue
			}
			if a := get(t, c, "opencode"); a.State != agents.Ready {
				t.Errorf("opencode: got %+v, want ready", a)
			}
			return
		case <-time.After(testkit.Limit):
			t.Fatal("nobody tells")
		}
	}
}

func TestCloseEndsLoginShell(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.write(map[string]string{".profile": "echo >~/here; sleep 3600\n"})
	c := p.open()
	c.Environment().Look()
	mustAppear(t, filepath.Join(p.home, "here"))
	if err := c.Close(); err != nil {
		t.Errorf("Close: got error %v, want none", err)
	}
}

// TestLoginShellIsOff: e2e tests rely on the unchanged environment.
func TestLoginShellIsOff(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.program(".local/bin/opencode")
	p.write(map[string]string{".profile": "echo x >~/reads\n"})
	p.cfg.LoginShell = false
	c := p.open()
	c.Environment().Look()
	c.Environment().Settle(t.Context(), true)
	if _, err := os.Stat(filepath.Join(p.home, "reads")); err == nil {
		t.Error("the shell was started")
	}
	if a := get(t, c, "opencode"); a.State != agents.NotFound || value(agentEnviron(t, c), "PATH") != "/usr/bin:/bin" {
		t.Errorf("opencode: got %+v, want not_found and PATH unchanged", a)
	}
}

func TestRelativeDirectoriesStayForTheAgent(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "bash")
	p.cfg.Environ = append(p.cfg.Environ, "PATH=/usr/bin:node_modules/.bin:/bin::/usr/bin")
	env := agentEnviron(t, settled(t, p))
	if path := value(env, "PATH"); !strings.HasPrefix(path+":", "/usr/bin:node_modules/.bin:/bin:") || strings.Contains(path, "::") {
		t.Errorf("PATH: got %s, want the relative directory kept, and no empty or double one", path)
	}
}

// mustAppear waits until a process has made the file.
func mustAppear(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Limit); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got no such file for 20 s, want the process to make it", file)
		}
	}
}
