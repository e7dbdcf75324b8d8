package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

// guests is a catalogue with agents that want a login: a demo agent for each way to sign in, and scripts.
type guests struct {
	*agents.Catalogue
	t    *testing.T
	dir  string
	logs *bytes.Buffer
}

func openGuests(t *testing.T, entries ...map[string]any) *guests {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := &guests{t: t, dir: t.TempDir(), logs: &bytes.Buffer{}}
	for _, ways := range []string{"agent", "terminal", "env"} {
		entries = append(entries, map[string]any{"id": "demo-" + ways, "command": self, "args": []string{"demo-agent"}, "env": map[string]string{
			"DESKHAND_DEMO_LOGIN": ways, "DESKHAND_DEMO_SIGNED_IN": filepath.Join(g.dir, "signed-in"), "DESKHAND_DEMO_STATE": filepath.Join(g.dir, "state"),
		}})
	}
	data, err := json.Marshal(map[string]any{"agents": entries})
	if err == nil {
		err = os.WriteFile(filepath.Join(g.dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(g.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g.Catalogue = agents.Open(agents.Config{
		Self: self, File: filepath.Join(g.dir, "agents.json"), Dir: filepath.Join(g.dir, "agents"), WriteFile: store.WriteFile, Logger: logger,
		Vault:   vault.Open(vault.Config{File: filepath.Join(g.dir, "logins.json"), WriteFile: store.WriteFile, Logger: logger}),
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + g.dir, shopVariable + "=" + g.dir, "BROWSER=their-browser", "TERM=dumb", "COLUMNS=7"},
	})
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		mustBeAlone(t, g.dir)
	})
	return g
}

// script returns an agent that answers each method by running the shell commands for the method's name; $id is the request's id.
func script(id string, cases ...string) map[string]any {
	var body strings.Builder
	for n := 0; n+1 < len(cases); n += 2 {
		fmt.Fprintf(&body, "*'\"%s\"'*) %s ;;\n", cases[n], cases[n+1])
	}
	text := `say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  ` + body.String() + `  esac
done`
	return map[string]any{"id": id, "command": "/bin/sh", "args": []string{"-c", text}}
}

func (g *guests) state(id string) string {
	g.t.Helper()
	r, err := g.Test(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return r.Agent.State
}

func (g *guests) method(id, method string) agents.LoginMethod {
	g.t.Helper()
	m, err := g.Logins().Method(g.t.Context(), id, method)
	if err != nil {
		g.t.Fatal(err)
	}
	return m
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell is needed")
	}
}

func TestLoginByTheAgent(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	if state := g.state("demo-agent"); state != agents.NeedsLogin {
		t.Fatalf("demo-agent: got state %s, want needs_login", state)
	}
	l, err := g.Logins().Methods(t.Context(), "demo-agent")
	if err != nil || !l.Logout || l.Keyring != "" || len(l.Methods) != 2 || l.Methods[0].ID != "demo" || l.Methods[0].Type != agents.LoginByAgent {
		t.Fatalf("Login(demo-agent): got %+v, %v, want two methods and logout", l, err)
	}
	if err := g.Logins().Authenticate(t.Context(), "demo-agent", l.Methods[0], nil, func(string) {}); err != nil {
		t.Fatal(err)
	}
	g.Logins().SignedIn("demo-agent")
	if a, err := g.Agent("demo-agent"); err != nil || a.State != agents.Ready {
		t.Errorf("demo-agent: got %+v, %v, want ready", a, err)
	}
	if state := g.state("demo-agent"); state != agents.Ready {
		t.Errorf("demo-agent: got state %s, want ready", state)
	}
	if err := g.Logins().Logout(t.Context(), "demo-agent"); err != nil {
		t.Fatal(err)
	}
	if state := g.state("demo-agent"); state != agents.NeedsLogin {
		t.Errorf("demo-agent: got state %s, want needs_login", state)
	}
	if _, err := g.Logins().Method(t.Context(), "demo-agent", "none"); !errors.Is(err, agents.ErrNoMethod) {
		t.Error(err)
	}
	if _, err := g.Logins().Methods(t.Context(), "nobody"); !errors.Is(err, agents.ErrUnknown) {
		t.Error(err)
	}
}

func TestLoginThatNobodyFinishesIsCancelled(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	m := g.method("demo-agent", "demo-never")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Logins().Authenticate(ctx, "demo-agent", m, nil, func(string) {}) }()
	if runtime.GOOS == "linux" {
		for deadline := time.Now().Add(testkit.Limit); len(processesOf(t, g.dir)) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the agent does not start")
			}
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(testkit.Limit):
		t.Fatal("it goes on")
	}
	mustBeAlone(t, g.dir)
}

func TestLoginByTheAgentFails(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t,
		script("sulky", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}'`,
			"authenticate", `echo 'the network is gone' >&2; say '"error":{"code":-32603,"message":"No reply"}'`),
		script("dying", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}'`,
			"authenticate", `echo 'out of paper' >&2; exit 7`),
		script("stillborn", "initialize", `echo 'no licence' >&2; exit 3`))
	for id, want := range map[string][2]string{"sulky": {"No reply", "the network is gone"}, "dying": {"with code 7", "out of paper"}} {
		err := g.Logins().Authenticate(t.Context(), id, g.method(id, "a"), nil, func(string) {})
		failed, ok := errors.AsType[*agents.LoginError](err)
		if !ok || !strings.Contains(failed.Error(), want[0]) || !strings.Contains(failed.Stderr, want[1]) {
			t.Errorf("Authenticate(%s): got %v, %+v, want %q", id, err, failed, want)
		}
	}
	_, err := g.Logins().Methods(t.Context(), "stillborn")
	if failed, ok := errors.AsType[*agents.LoginError](err); !ok || !strings.Contains(failed.Stderr, "no licence") {
		t.Error(err)
	}
	if err := g.Logins().Logout(t.Context(), "sulky"); !errors.Is(err, agents.ErrNoLogout) {
		t.Error(err)
	}
}

func TestLoginShowsPage(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, script("page",
		"initialize", `case $line in *'"elicitation":{"url":{}}'*) say '"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}' ;; esac`,
		"authenticate", `asked=$id
			printf '{"jsonrpc":"2.0","id":98,"method":"elicitation/create","params":{"mode":"url","url":"file:///etc/passwd","message":"m","elicitationId":"e"}}\n'
			read -r answer; case $answer in *-32601*) ;; *) exit 1 ;; esac
			printf '{"jsonrpc":"2.0","id":99,"method":"elicitation/create","params":{"mode":"url","url":"https://example.test/device","message":"m","elicitationId":"e"}}\n'
			read -r answer; case $answer in *accept*) ;; *) exit 2 ;; esac
			id=$asked; say '"result":{}'`))
	var shown atomic.Value
	if err := g.Logins().Authenticate(t.Context(), "page", g.method("page", "a"), nil, func(url string) { shown.Store(url) }); err != nil {
		t.Fatal(err)
	}
	if shown.Load() != "https://example.test/device" {
		t.Errorf("shown page: got %v, want https://example.test/device", shown.Load())
	}
}

// Some agents take a key with authenticate and store the key themselves.
func TestLoginHandsKeyToAgent(t *testing.T) {
	t.Parallel()
	needShell(t)
	file := filepath.Join(t.TempDir(), "line")
	g := openGuests(t, script("keyed",
		"initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"api-key","name":"K","_meta":{"api-key":{"provider":"x"}}}]}'`,
		"authenticate", `printf %s "$line" >`+file+`; say '"result":{}'`))
	m := g.method("keyed", "api-key")
	if m.Type != agents.LoginByAgent || !slices.Equal(m.Vars, []agents.LoginVar{{Name: "api-key", Secret: true, Optional: true}}) {
		t.Errorf("method api-key: got %+v, want type agent with an optional secret", m)
	}
	if err := g.Logins().Authenticate(t.Context(), "keyed", m, map[string]string{"api-key": "very-secret-key"}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(line), `"params":{"_meta":{"api-key":{"apiKey":"very-secret-key"}},"methodId":"api-key"}`) {
		t.Errorf("authenticate: got %s, %v, want the key in _meta", line, err)
	}
	if !slices.Contains(g.Vault().Secrets(), "very-secret-key") {
		t.Error("it would be written into conversations")
	}
}

func TestLoginMethodsAreReadLeniently(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, script("odd", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[
		7, {"name":"no id"}, {"id":"plain","name":"Plain","description":null}, {"id":"typed","type":"agent"},
		{"id":"later","name":"L","type":"hologram"},
		{"id":"tty","name":"T","type":"terminal","args":["--login"],"env":{"A":"b"}},
		{"id":"old","name":"O","_meta":{"terminal-auth":{"command":"sh","args":["-c","true"]}}},
		{"id":"keys","name":"E","type":"env_var","link":"javascript:alert(1)","vars":[{"name":"KEY","label":"Key"},{"name":"REGION","secret":false,"optional":true},{"name":"PATH"},{"name":"A=B"},{"name":"LD_PRELOAD"}]},
		{"id":"none","name":"N","type":"env_var","vars":[]}]}' | tr -d '\n\t'; echo`))
	l, err := g.Logins().Methods(t.Context(), "odd")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range l.Methods {
		got = append(got, m.ID+" "+m.Type)
	}
	if want := []string{"plain agent", "typed agent", "tty terminal", "old terminal", "keys env"}; !slices.Equal(got, want) {
		t.Errorf("methods: got %q, want %q", got, want)
	}
	keys := l.Methods[len(l.Methods)-1]
	if keys.Link != "" || !slices.Equal(keys.Vars, []agents.LoginVar{{Name: "KEY", Label: "Key", Secret: true}, {Name: "REGION", Optional: true}}) {
		t.Errorf("method keys: got %+v, want KEY and REGION without a link", keys)
	}
	if l.Keyring != "file" || !strings.Contains(l.Warning, filepath.Join(g.dir, "logins.json")) {
		t.Errorf("Login(odd): got %+v, want the vault's file and a warning", l)
	}
	cmd, err := g.Logins().Command(t.Context(), "odd", l.Methods[3])
	if err != nil || filepath.Base(cmd.Path) != "sh" || !slices.Equal(cmd.Args, []string{"-c", "true"}) {
		t.Errorf("Command(old): got %+v, %v, want sh -c true", cmd, err)
	}
}

func TestLoginProgramForTerminal(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	m := g.method("demo-terminal", "demo-terminal")
	cmd, err := g.Logins().Command(t.Context(), "demo-terminal", m)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	if cmd.Path != self || !slices.Equal(cmd.Args, []string{"demo-agent", "--login"}) {
		t.Errorf("command: got %s %q, want our program with demo-agent --login", cmd.Path, cmd.Args)
	}
	for _, want := range []string{"DESKHAND_DEMO_LOGIN=terminal", "DESKHAND_DEMO_SIGNING_IN=1", "TERM=xterm-256color", "HOME=" + g.dir} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("environment: got %q, want %s in it", cmd.Env, want)
		}
	}
	if slices.Contains(cmd.Env, "COLUMNS=7") || slices.Contains(cmd.Env, "TERM=dumb") {
		t.Error("it believes to be on the terminal that we were started from")
	}
	if runtime.GOOS == "linux" {
		dir := filepath.Join(g.dir, "agents", ".browser")
		browser := filepath.Join(dir, "open-url")
		if !slices.Contains(cmd.Env, "BROWSER="+browser) || !slices.Contains(cmd.Env, "DESKHAND_BROWSER=their-browser") ||
			!slices.Contains(cmd.Env, "PATH="+dir+":/usr/bin:/bin") {
			t.Errorf("environment: got %q, want Deskhand's browser in BROWSER and PATH", cmd.Env)
		}
		for _, name := range []string{"open-url", "xdg-open"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: got %v, %v, want mode 0700", name, info, err)
			}
		}
	}
}

// environOf returns the environment of an agent's command, as for a session.
func (g *guests) environOf(id string) []string {
	g.t.Helper()
	cmd, err := g.Command(g.t.Context(), id, g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	return cmd.Env
}

func TestLoginByValuesInAFile(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	const key = `top"secret\key`
	if state := g.state("demo-env"); state != agents.NeedsLogin {
		t.Fatalf("demo-env: got state %s, want needs_login", state)
	}
	m := g.method("demo-env", "demo-key")
	for _, bad := range []map[string]string{nil, {"DESKHAND_DEMO_KEY": ""}, {"OTHER": "x"}, {"DESKHAND_DEMO_KEY": "a\nb"}} {
		if _, _, err := g.Logins().Keep(t.Context(), "demo-env", m, bad); !errors.Is(err, agents.ErrValues) {
			t.Errorf("Keep(%q): got %v, want %v", bad, err, agents.ErrValues)
		}
	}
	place, warning, err := g.Logins().Keep(t.Context(), "demo-env", m, map[string]string{"DESKHAND_DEMO_KEY": key, "LD_PRELOAD": "/evil"})
	if err != nil || place != "file" || !strings.Contains(warning, "plain text") {
		t.Fatalf("Keep: got place %s, warning %q, %v, want a file and a warning", place, warning, err)
	}
	file := filepath.Join(g.dir, "logins.json")
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("logins.json: got %v, %v, want mode 0600", info, err)
	}
	if env := g.environOf("demo-env"); !slices.Contains(env, "DESKHAND_DEMO_KEY="+key) || strings.Contains(strings.Join(env, " "), "evil") {
		t.Errorf("environment: got %q, want the key, and no LD_PRELOAD", env)
	}
	for _, other := range []string{"demo-agent", "mock"} {
		if env := strings.Join(g.environOf(other), "\n"); strings.Contains(env, "DESKHAND_DEMO_KEY") {
			t.Errorf("environment of %s: got %s, want no DESKHAND_DEMO_KEY", other, env)
		}
	}
	g.Logins().SignedIn("demo-env")
	if state := g.state("demo-env"); state != agents.Ready {
		t.Errorf("demo-env: got state %s, want ready", state)
	}
	if _, err := g.Infos(t.Context(), agents.InfoQuery{Config: true}); err != nil {
		t.Error(err)
	}
	if got := g.Vault().Secrets(); !slices.Contains(got, key) || !slices.Contains(got, `top\"secret\\key`) {
		t.Errorf("Secrets: got %q, want the key, and as JSON writes it", got)
	}
	l, err := g.Logins().Methods(t.Context(), "demo-env")
	if err != nil || !l.Methods[0].Vars[0].Set || !l.Logout {
		t.Errorf("Login(demo-env): got %+v, %v, want a set value and logout", l, err)
	}
	// An empty value leaves the stored value.
	if _, _, err := g.Logins().Keep(t.Context(), "demo-env", m, map[string]string{"DESKHAND_DEMO_KEY": ""}); err != nil {
		t.Error(err)
	}
	if state := g.state("demo-env"); state != agents.Ready {
		t.Errorf("demo-env: got state %s, want ready", state)
	}
	if err := g.Logins().Logout(t.Context(), "demo-env"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "secret") {
		t.Errorf("logins.json: got %s, %v, want no secret", data, err)
	}
	if state := g.state("demo-env"); state != agents.NeedsLogin {
		t.Errorf("demo-env: got state %s, want needs_login", state)
	}
	if strings.Contains(g.logs.String(), "secret") {
		t.Errorf("log: got %s, want no secret in it", g.logs)
	}
}

func TestLoginLeavesBrokenFileOfValues(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	file := filepath.Join(g.dir, "logins.json")
	m := g.method("demo-env", "demo-key")
	if err := os.WriteFile(file, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Logins().Keep(t.Context(), "demo-env", m, map[string]string{"DESKHAND_DEMO_KEY": "long enough"}); !errors.Is(err, vault.ErrAccess) {
		t.Error(err)
	}
	if err := g.Logins().Logout(t.Context(), "demo-env"); !errors.Is(err, vault.ErrAccess) {
		t.Error(err)
	}
	if state := g.state("demo-env"); state != agents.NeedsLogin { // the agent still starts
		t.Errorf("demo-env: got state %s, want needs_login", state)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "{half" {
		t.Errorf("logins.json: got %s, %v, want the broken file unchanged", data, err)
	}
}

// The catalogue knows the variables of agents that read a key from their environment without saying so.
func TestLoginByKnownVariables(t *testing.T) {
	t.Parallel()
	needShell(t)
	silent := script("gemini", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}'`)
	silent["override"] = true
	g := openGuests(t, silent)
	l, err := g.Logins().Methods(t.Context(), "gemini")
	if err != nil || len(l.Methods) != 2 || l.Methods[1].Type != agents.LoginByValues || l.Methods[1].Vars[0].Name != "GEMINI_API_KEY" {
		t.Skipf("the catalogue has no variables for an agent of agents.json: %+v, %v", l, err)
	}
	m := l.Methods[1]
	if _, _, err := g.Logins().Keep(t.Context(), "gemini", m, map[string]string{}); !errors.Is(err, agents.ErrValues) {
		t.Error("nothing at all was entered: ", err)
	}
	if _, _, err := g.Logins().Keep(t.Context(), "gemini", m, map[string]string{"GEMINI_API_KEY": "the-key-of-gemini"}); err != nil {
		t.Error(err)
	}
	if env := g.environOf("gemini"); !slices.Contains(env, "GEMINI_API_KEY=the-key-of-gemini") {
		t.Errorf("environment: got %q, want GEMINI_API_KEY", env)
	}
	if i, err := g.Info(t.Context(), "gemini", agents.InfoQuery{}); err != nil || !i.CredentialsAvailable {
		t.Errorf("Info(gemini): got %+v, %v, want credentials", i, err)
	}
}

func TestLoginsAreListedAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	cmd, err := g.Logins().Command(t.Context(), "demo-terminal", g.method("demo-terminal", "demo-terminal"))
	if err != nil || cmd.Purpose != agents.ForLogin {
		t.Errorf("Command: got purpose %q, %v, want %q", cmd.Purpose, err, agents.ForLogin)
	}
	if _, err := g.Logins().Start(t.Context(), "demo-terminal", proxy.Command{Path: "/none/such"}, nil); !errors.Is(err, proxy.ErrSpawn) {
		t.Error(err)
	}
}
