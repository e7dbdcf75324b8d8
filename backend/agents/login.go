package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/background"
	"deskhand/backend/environ"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
	"deskhand/backend/vault"
)

// Errors of signing in and out.
var (
	ErrNoMethod = errors.New("the agent offers no such way to sign in")
	ErrNoLogout = errors.New("the agent offers no way to sign out, and Deskhand keeps nothing for it")
	ErrValues   = errors.New("a value is missing, or cannot be one")
)

// LoginError is the failure of an agent to sign in or out, with the end of its stderr.
type LoginError struct {
	Err      error
	Stderr   string
	Unproven bool // the agent reported a login, and still cannot begin a conversation
}

func (e *LoginError) Error() string { return e.Err.Error() }

func (e *LoginError) Unwrap() error { return e.Err }

// Words returns the text for a person: the agent's own, where the agent has answered.
func (e *LoginError) Words() string {
	if refused, ok := errors.AsType[*acp.Error](e.Err); ok {
		return refused.Sentence()
	}
	return e.Err.Error()
}

// LoginMethods lists how a person signs in to an agent.
type LoginMethods struct {
	Methods []LoginMethod `json:"methods"`
	Logout  bool          `json:"logout" doc:"The agent can sign out, or Deskhand keeps values for the agent, which signing out removes"`
	Keyring string        `json:"keyring,omitempty" enum:"system,file" doc:"Store of the values; absent when no login method needs values"`
	Warning string        `json:"warning,omitempty" doc:"Reason that values are kept in a file"`
}

// Time limits of logins. A person may have to find a password and a second device.
const (
	loginLimit  = 20 * time.Minute
	logoutLimit = time.Minute
)

// longestValue is the longest value of a variable on Windows. A longer value than the system accepts would keep the agent from ever
// starting.
const longestValue = 32<<10 - 1

// Logins signs people in to agents and out again. Its methods may be called concurrently.
type Logins struct {
	cfg         Config
	table       *table
	finder      *finder
	launcher    *launcher
	environment *environ.Environment
	vault       *vault.Vault
	background  *background.Group
	news        *announcer
	notes       *loginNotes
	offers      *offers

	mu      sync.Mutex        // protects signIns
	signIns map[string]signIn // ways to sign in that agents announced, by entry.key
}

// Methods returns the ways to sign in to an agent. Methods starts the agent when the agent has not been asked before.
func (l *Logins) Methods(ctx context.Context, id string) (LoginMethods, error) {
	s, err := l.signIn(ctx, id)
	if err != nil {
		return LoginMethods{}, err
	}
	kept, err := l.vault.Names(id)
	if err != nil {
		return LoginMethods{}, err
	}
	list := LoginMethods{Methods: []LoginMethod{}, Logout: s.logout || len(kept) > 0}
	for _, m := range s.methods {
		m.Vars = slices.Clone(m.Vars)
		for n := range m.Vars {
			m.Vars[n].Set = m.Type == LoginByValues && slices.Contains(kept, m.Vars[n].Name)
		}
		list.Methods = append(list.Methods, m)
		if m.Type == LoginByValues && list.Keyring == "" {
			list.Keyring, list.Warning = l.vault.Place(ctx)
		}
	}
	return list, nil
}

// Method returns a way of [Logins.Methods], or ErrNoMethod.
func (l *Logins) Method(ctx context.Context, id, method string) (LoginMethod, error) {
	s, err := l.signIn(ctx, id)
	if err != nil {
		return LoginMethod{}, err
	}
	for _, m := range s.methods {
		if m.ID == method {
			return m, nil
		}
	}
	return LoginMethod{}, fmt.Errorf("%w: %s", ErrNoMethod, method)
}

// ready finds an agent that can be started.
func (l *Logins) ready(ctx context.Context, id string) (entry, place, error) {
	l.environment.Settle(ctx, false)
	e, err := l.table.row(id)
	switch {
	case err != nil:
		return e, place{}, err
	case e.broken != "":
		return e, place{}, fmt.Errorf("%w: %s: %s: %s", ErrFile, l.cfg.File, id, e.broken)
	}
	at, err := l.finder.locate(e)
	if err != nil {
		return e, at, fmt.Errorf("%w: %s: %w", ErrNotInstalled, id, err)
	}
	return e, at, nil
}

func (l *Logins) signIn(ctx context.Context, id string) (signIn, error) {
	e, at, err := l.ready(ctx, id)
	if err != nil {
		return signIn{}, err
	}
	key := e.key(at)
	l.mu.Lock()
	s, known := l.signIns[key]
	l.mu.Unlock()
	if !known {
		bare := e
		bare.bare = true // neither a wrong value nor a locked keyring may keep anybody from giving another value
		err = l.speak(ctx, bare, at, LoginMethod{}, nil, func(_ context.Context, _ *probe.Probe, began json.RawMessage) error {
			s = signInOf(began)
			return nil
		})
		if err != nil {
			return s, err
		}
		l.mu.Lock()
		l.signIns[key] = s
		l.mu.Unlock()
	}
	s.methods = l.ways(e, s.methods)
	return s, nil
}

// speak starts an agent in an empty directory with the environment for a login, and calls f after initialize. When speak returns, every
// process of the agent is gone except a browser.
func (l *Logins) speak(ctx context.Context, e entry, at place, m LoginMethod, values map[string]string, f func(context.Context, *probe.Probe, json.RawMessage) error) error {
	ctx, release := l.background.Call(ctx)
	defer release()
	begun := false
	err := l.launcher.prober.Attend(ctx, e.id, func(dir string) (proxy.Command, error) {
		return l.loginCommand(ctx, e, at, dir, m.args, values), nil
	}, func(q *probe.Probe, _ string) error {
		begun = true
		starting, started := context.WithTimeout(ctx, cmp.Or(l.cfg.Patience, usualPatience))
		defer started()
		began, err := q.Call(starting, "initialize", loginParams())
		if err != nil {
			return err
		}
		return f(ctx, q, began)
	})
	failed, asked := errors.AsType[*probe.Error](err)
	switch {
	case asked:
		return &LoginError{Err: failed.Err, Stderr: failed.Stderr}
	case err != nil && !begun:
		return &LoginError{Err: err}
	}
	return err
}

// loginParams returns initializeParams of a client that can show a page.
func loginParams() map[string]any {
	params := probe.InitializeParams()
	if can, ok := params["clientCapabilities"].(map[string]any); ok {
		can["elicitation"] = map[string]any{"url": map[string]any{}}
	}
	return params
}

// loginCommand returns the command that starts an agent for a login: arguments appended and environment overlaid, as the protocol demands.
func (l *Logins) loginCommand(ctx context.Context, e entry, at place, dir string, args []string, env map[string]string) proxy.Command {
	cmd := l.launcher.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Args = slices.Concat(cmd.Args, args)
	cmd.Env = environ.With(cmd.Env, env)
	if at.home != "" {
		cmd.Env = append(cmd.Env, environ.AgentHome+"="+at.home) // filtered has removed the variable
	}
	browser, err := l.browser()
	if err != nil {
		l.cfg.Logger.Warn("a browser that an agent opens will end with it", "agent", e.id, "error", err)
	}
	if browser != "" {
		kept, _ := l.vault.Names(e.id) // a file that cannot be read gives the agent nothing
		cmd.Env = append(cmd.Env,
			theirBrowser+"="+environ.Lookup(cmd.Env, "BROWSER"), withoutVariable+"="+strings.Join(slices.Concat(kept, slices.Sorted(maps.Keys(env))), ","), browserVariable+"="+browser,
			"BROWSER="+filepath.Join(browser, browserPrograms()[0]), "PATH="+browser+string(filepath.ListSeparator)+environ.Lookup(cmd.Env, "PATH"))
	}
	return cmd
}

// Variables for the program that opens pages during a login: the original BROWSER, the variables to hide from a browser, and the directory
// of PATH that belongs to Deskhand.
const (
	theirBrowser    = "DESKHAND_BROWSER"
	withoutVariable = "DESKHAND_WITHOUT"
	browserVariable = "DESKHAND_BROWSER_DIR"
)

// browserPrograms returns the names under which agents look for a program that opens pages: BROWSER gets the first. BROWSER alone is not
// enough: node programs usually call xdg-open, which ignores BROWSER on most desktops.
func browserPrograms() []string { return []string{"open-url", "xdg-open"} }

// browser returns a directory with programs that open a page in a browser which outlives the agent. Each program is a single file and no command
// line: agents differ in how they treat blanks in BROWSER. On macOS, where the system itself starts browsers, browser returns "", and
// likewise on Windows, where agents open pages without a program on PATH.
func (l *Logins) browser() (string, error) {
	if l.cfg.Dir == "" || l.cfg.WriteFile == nil || runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return "", nil
	}
	dir := filepath.Join(l.cfg.Dir, ".browser")
	// An agent may hand on PATH without this variable: then the program would find itself in place of the system's, again and again.
	script := "#!/bin/sh\nexport " + browserVariable + "=" + environ.Quote(dir) + "\nexec " + environ.Quote(l.cfg.Self) + " open-url \"$1\"\n"
	for _, name := range browserPrograms() {
		file := filepath.Join(dir, name)
		if old, err := os.ReadFile(file); err == nil && string(old) == script {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if err := l.cfg.WriteFile(file, []byte(script), 0o700); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Authenticate signs in by a method of type agent, and returns when the agent reports the result. opened is called with a page that the
// agent wants a person to see and cannot open itself. The end of ctx ends the agent.
func (l *Logins) Authenticate(ctx context.Context, id string, m LoginMethod, values map[string]string, opened func(url string)) error {
	e, at, err := l.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	params := map[string]any{"methodId": m.ID}
	given := l.Given(m, values)
	if key := given[apiKey]; key != "" {
		params["_meta"] = map[string]any{apiKey: map[string]any{"apiKey": key}}
		given = nil
	}
	err = l.speak(ctx, e, at, m, given, func(ctx context.Context, q *probe.Probe, _ json.RawMessage) error {
		q.ShowPages(opened)
		_, err := q.Call(ctx, "authenticate", params)
		return err
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &LoginError{Err: fmt.Errorf("nobody has signed in within %v", loginLimit)}
	}
	return err
}

// Given returns the values that were entered for a method. From now on their secrets are redacted from everything that is written.
func (l *Logins) Given(m LoginMethod, values map[string]string) map[string]string {
	given := map[string]string{}
	for _, v := range m.Vars {
		if value := values[v.Name]; value != "" {
			given[v.Name] = value
			if v.Secret {
				l.vault.Hide(value)
			}
		}
	}
	return given
}

// Command returns the command of a method of type terminal, to be run on a terminal by [Logins.Start], or by a person.
func (l *Logins) Command(ctx context.Context, id string, m LoginMethod) (proxy.Command, error) {
	e, at, err := l.ready(ctx, id)
	if err != nil {
		return proxy.Command{}, err
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "/"
	}
	cmd := l.loginCommand(ctx, e, at, dir, m.args, m.env)
	if m.program != "" {
		if cmd.Path, cmd.Args, err = l.older(e, at, m); err != nil {
			return proxy.Command{}, err
		}
	}
	cmd.Env = environ.OnTerminal(cmd.Env)
	return cmd, nil
}

// older returns the command line of a terminal that an agent wrote into _meta, which is the whole command line. Its program is usually the
// agent's own, under a name that need not be on PATH.
func (l *Logins) older(e entry, at place, m LoginMethod) (string, []string, error) {
	plain := func(file string) string {
		base := filepath.Base(file)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	name := plain(m.program)
	switch {
	case filepath.IsAbs(m.program):
		return m.program, m.args, nil
	case name == e.known.Bin || name == plain(e.command) || name == plain(at.program):
		path, args := at.argv(m.args)
		return path, args, nil
	}
	if file := l.environment.Program(m.program); file != "" {
		return file, m.args, nil
	}
	return "", nil, &LoginError{Err: l.environment.NotFound(m.program)}
}

// Start starts a command of [Logins.Command] on a terminal.
func (l *Logins) Start(ctx context.Context, id string, cmd proxy.Command, tty *os.File) (*proxy.Instance, error) {
	cmd.Terminal = tty
	return l.launcher.prober.Start(ctx, id, cmd)
}

// CheckValues returns ErrValues when a value of a method of type env is missing, or is none that a variable can have. An empty value stands
// for the stored value.
func (l *Logins) CheckValues(id string, m LoginMethod, values map[string]string) error {
	kept, err := l.vault.Names(id)
	if err != nil {
		return err
	}
	there := 0
	for _, v := range m.Vars {
		value := values[v.Name]
		switch {
		case strings.ContainsAny(value, "\x00\r\n"):
			return fmt.Errorf("%w: %s holds a line break", ErrValues, v.Name)
		case len(value) > longestValue:
			return fmt.Errorf("%w: %s is longer than %d bytes", ErrValues, v.Name, longestValue)
		case value != "" || slices.Contains(kept, v.Name) || v.around:
			there++
		case !v.Optional:
			return fmt.Errorf("%w: %s", ErrValues, v.Name)
		}
	}
	if m.anyOne && there == 0 {
		return fmt.Errorf("%w: one of %s", ErrValues, strings.Join(namesOf(m.Vars), ", "))
	}
	return nil
}

// Keep stores the values of a method of type env for the next start of the agent. An empty value leaves the stored value. Like Methods, Keep
// returns where the values are, and fails as CheckValues does.
func (l *Logins) Keep(ctx context.Context, id string, m LoginMethod, values map[string]string) (keyring, warning string, err error) {
	if err := l.CheckValues(id, m, values); err != nil {
		return "", "", err
	}
	given := make([]vault.Value, 0, len(m.Vars))
	for _, v := range m.Vars {
		given = append(given, vault.Value{Name: v.Name, Text: values[v.Name], Secret: v.Secret})
	}
	return l.vault.Keep(ctx, id, given...)
}

func namesOf(vars []LoginVar) []string {
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
	}
	return names
}

// Logout has an agent sign out, and removes the stored values for the agent, even if the agent cannot sign out or is gone. After
// vault.ErrLeft the agent no longer gets the values either.
func (l *Logins) Logout(ctx context.Context, id string) error {
	defer l.notes.forgetAccount(id)
	kept, err := l.vault.Names(id)
	if err != nil {
		return err
	}
	s, err := l.signIn(ctx, id)
	switch {
	case err != nil:
	case s.logout:
		err = l.signOut(ctx, id)
	case len(kept) == 0:
		return ErrNoLogout
	}
	if len(kept) == 0 || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrNotInstalled) {
		err = nil // the values were all there was to sign out of
	}
	return errors.Join(err, l.vault.Forget(ctx, id))
}

func (l *Logins) signOut(ctx context.Context, id string) error {
	e, at, err := l.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logoutLimit)
	defer cancel()
	return l.speak(ctx, e, at, LoginMethod{}, nil, func(ctx context.Context, q *probe.Probe, _ json.RawMessage) error {
		_, err := q.Call(ctx, "logout", map[string]any{})
		return err
	})
}

// SignedIn forgets that an agent wants a login, and the agent's earlier answers. A change calls the callback of Watch.
func (l *Logins) SignedIn(id string) {
	l.forget(id)
	l.Note(id, nil)
}

// SignedOut forgets an agent's earlier answers.
func (l *Logins) SignedOut(id string) { l.forget(id) }

func (l *Logins) forget(id string) {
	l.offers.forget(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.signIns, func(key string, _ signIn) bool { return strings.HasPrefix(key, id+"\x00") })
}

// ways returns the ways to sign in to an agent that people choose from: those that the agent offers, with stored values where the catalogue
// says so, and Deskhand's own. No two share an id or a display text.
func (l *Logins) ways(e entry, theirs []LoginMethod) []LoginMethod {
	env := l.environment.With(e.environ())
	var list []LoginMethod
	for _, m := range theirs {
		if slices.ContainsFunc(list, func(other LoginMethod) bool { return other.ID == m.ID }) {
			continue // nobody could choose the second
		}
		if w, ok := e.known.Credentials.Methods[m.ID]; ok && m.Type == LoginByAgent {
			m = w.asked(m, env)
		}
		list = append(list, m)
	}
	if m, ok := valuesOf(e, list); ok {
		list = append(list, m)
	}
	names := distinct(list, func(m LoginMethod) (string, string, string) { return m.ID, m.Name, m.Description })
	for i := range list {
		list[i].Name = names[i]
	}
	return list
}
