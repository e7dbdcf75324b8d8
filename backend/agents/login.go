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
	"time"

	"deskhand/backend/acp"
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

// Login returns the ways to sign in to an agent. Login starts the agent when the agent has not been asked before.
func (c *Catalogue) Login(ctx context.Context, id string) (LoginMethods, error) {
	s, err := c.signIn(ctx, id)
	if err != nil {
		return LoginMethods{}, err
	}
	kept, err := c.vault.Names(id)
	if err != nil {
		return LoginMethods{}, err
	}
	l := LoginMethods{Methods: []LoginMethod{}, Logout: s.logout || len(kept) > 0}
	for _, m := range s.methods {
		m.Vars = slices.Clone(m.Vars)
		for n := range m.Vars {
			m.Vars[n].Set = m.Type == LoginByValues && slices.Contains(kept, m.Vars[n].Name)
		}
		l.Methods = append(l.Methods, m)
		if m.Type == LoginByValues && l.Keyring == "" {
			l.Keyring, l.Warning = c.vault.Place(ctx)
		}
	}
	return l, nil
}

// LoginMethod returns a method of Login, or ErrNoMethod.
func (c *Catalogue) LoginMethod(ctx context.Context, id, method string) (LoginMethod, error) {
	s, err := c.signIn(ctx, id)
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
func (c *Catalogue) ready(ctx context.Context, id string) (entry, place, error) {
	c.environment.Settle(ctx, false)
	e, err := c.table.row(id)
	switch {
	case err != nil:
		return e, place{}, err
	case e.broken != "":
		return e, place{}, fmt.Errorf("%w: %s: %s: %s", ErrFile, c.cfg.File, id, e.broken)
	}
	at, err := c.finder.locate(e)
	if err != nil {
		return e, at, fmt.Errorf("%w: %s: %w", ErrNotInstalled, id, err)
	}
	return e, at, nil
}

func (c *Catalogue) signIn(ctx context.Context, id string) (signIn, error) {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return signIn{}, err
	}
	key := e.key(at)
	c.mu.Lock()
	s, known := c.signIns[key]
	c.mu.Unlock()
	if !known {
		bare := e
		bare.bare = true // neither a wrong value nor a locked keyring may keep anybody from giving another value
		err = c.speak(ctx, bare, at, LoginMethod{}, nil, func(_ context.Context, _ *probe.Probe, began json.RawMessage) error {
			s = signInOf(began)
			return nil
		})
		if err != nil {
			return s, err
		}
		c.mu.Lock()
		c.signIns[key] = s
		c.mu.Unlock()
	}
	s.methods = c.ways(e, s.methods)
	return s, nil
}

// speak starts an agent in an empty directory with the environment for a login, and calls f after initialize. When speak returns, every
// process of the agent is gone except a browser.
func (c *Catalogue) speak(ctx context.Context, e entry, at place, m LoginMethod, values map[string]string, f func(context.Context, *probe.Probe, json.RawMessage) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.background.life, cancel)() //nolint:contextcheck // both Close and the caller end it
	begun := false
	err := c.prober.Attend(ctx, e.id, func(dir string) (proxy.Command, error) {
		return c.loginCommand(ctx, e, at, dir, m.args, values), nil
	}, func(q *probe.Probe, _ string) error {
		begun = true
		starting, started := context.WithTimeout(ctx, cmp.Or(c.cfg.Patience, usualPatience))
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
func (c *Catalogue) loginCommand(ctx context.Context, e entry, at place, dir string, args []string, env map[string]string) proxy.Command {
	cmd := c.launcher.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Args = slices.Concat(cmd.Args, args)
	cmd.Env = environ.With(cmd.Env, env)
	if at.home != "" {
		cmd.Env = append(cmd.Env, environ.AgentHome+"="+at.home) // filtered has removed the variable
	}
	browser, err := c.browser()
	if err != nil {
		c.cfg.Logger.Warn("a browser that an agent opens will end with it", "agent", e.id, "error", err)
	}
	if browser != "" {
		kept, _ := c.vault.Names(e.id) // a file that cannot be read gives the agent nothing
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
func (c *Catalogue) browser() (string, error) {
	if c.cfg.Dir == "" || c.cfg.WriteFile == nil || runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return "", nil
	}
	dir := filepath.Join(c.cfg.Dir, ".browser")
	// An agent may hand on PATH without this variable: then the program would find itself in place of the system's, again and again.
	script := "#!/bin/sh\nexport " + browserVariable + "=" + environ.Quote(dir) + "\nexec " + environ.Quote(c.cfg.Self) + " open-url \"$1\"\n"
	for _, name := range browserPrograms() {
		file := filepath.Join(dir, name)
		if old, err := os.ReadFile(file); err == nil && string(old) == script {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if err := c.cfg.WriteFile(file, []byte(script), 0o700); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Authenticate signs in by a method of type agent, and returns when the agent reports the result. opened is called with a page that the
// agent wants a person to see and cannot open itself. The end of ctx ends the agent.
func (c *Catalogue) Authenticate(ctx context.Context, id string, m LoginMethod, values map[string]string, opened func(url string)) error {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	params := map[string]any{"methodId": m.ID}
	given := c.Given(m, values)
	if key := given[apiKey]; key != "" {
		params["_meta"] = map[string]any{apiKey: map[string]any{"apiKey": key}}
		given = nil
	}
	err = c.speak(ctx, e, at, m, given, func(ctx context.Context, q *probe.Probe, _ json.RawMessage) error {
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
func (c *Catalogue) Given(m LoginMethod, values map[string]string) map[string]string {
	given := map[string]string{}
	for _, v := range m.Vars {
		if value := values[v.Name]; value != "" {
			given[v.Name] = value
			if v.Secret {
				c.vault.Hide(value)
			}
		}
	}
	return given
}

// LoginCommand returns the command of a method of type terminal, to be run on a terminal by [Catalogue.StartLogin], or by a person.
func (c *Catalogue) LoginCommand(ctx context.Context, id string, m LoginMethod) (proxy.Command, error) {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return proxy.Command{}, err
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "/"
	}
	cmd := c.loginCommand(ctx, e, at, dir, m.args, m.env)
	if m.program != "" {
		if cmd.Path, cmd.Args, err = c.older(e, at, m); err != nil {
			return proxy.Command{}, err
		}
	}
	cmd.Env = environ.OnTerminal(cmd.Env)
	return cmd, nil
}

// older returns the command line of a terminal that an agent wrote into _meta, which is the whole command line. Its program is usually the
// agent's own, under a name that need not be on PATH.
func (c *Catalogue) older(e entry, at place, m LoginMethod) (string, []string, error) {
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
	if file := c.environment.Program(m.program); file != "" {
		return file, m.args, nil
	}
	return "", nil, &LoginError{Err: c.environment.NotFound(m.program)}
}

// StartLogin starts the command of LoginCommand on a terminal.
func (c *Catalogue) StartLogin(ctx context.Context, id string, cmd proxy.Command, tty *os.File) (*proxy.Instance, error) {
	cmd.Terminal = tty
	return c.prober.Start(ctx, id, cmd)
}

// CheckValues returns ErrValues when a value of a method of type env is missing, or is none that a variable can have. An empty value stands
// for the stored value.
func (c *Catalogue) CheckValues(id string, m LoginMethod, values map[string]string) error {
	kept, err := c.vault.Names(id)
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

// Keep stores the values of a method of type env for the next start of the agent. An empty value leaves the stored value. Like Login, Keep
// returns where the values are, and fails as CheckValues does.
func (c *Catalogue) Keep(ctx context.Context, id string, m LoginMethod, values map[string]string) (keyring, warning string, err error) {
	if err := c.CheckValues(id, m, values); err != nil {
		return "", "", err
	}
	given := make([]vault.Value, 0, len(m.Vars))
	for _, v := range m.Vars {
		given = append(given, vault.Value{Name: v.Name, Text: values[v.Name], Secret: v.Secret})
	}
	return c.vault.Keep(ctx, id, given...)
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
func (c *Catalogue) Logout(ctx context.Context, id string) error {
	kept, err := c.vault.Names(id)
	if err != nil {
		return err
	}
	s, err := c.signIn(ctx, id)
	switch {
	case err != nil:
	case s.logout:
		err = c.signOut(ctx, id)
	case len(kept) == 0:
		return ErrNoLogout
	}
	if len(kept) == 0 || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrNotInstalled) {
		err = nil // the values were all there was to sign out of
	}
	return errors.Join(err, c.vault.Forget(ctx, id))
}

func (c *Catalogue) signOut(ctx context.Context, id string) error {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logoutLimit)
	defer cancel()
	return c.speak(ctx, e, at, LoginMethod{}, nil, func(ctx context.Context, q *probe.Probe, _ json.RawMessage) error {
		_, err := q.Call(ctx, "logout", map[string]any{})
		return err
	})
}

// SignedIn forgets that an agent wants a login, and the agent's earlier answers. A change calls the callback of Watch.
func (c *Catalogue) SignedIn(id string) {
	c.forgetAnswers(id)
	c.NoteLogin(id, nil)
}

// SignedOut forgets an agent's earlier answers.
func (c *Catalogue) SignedOut(id string) { c.forgetAnswers(id) }

func (c *Catalogue) forgetAnswers(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.signIns, func(key string, _ signIn) bool { return strings.HasPrefix(key, id+"\x00") })
	for key, a := range c.answers {
		select {
		case <-a.done:
			if strings.HasPrefix(key, id+"\x00") {
				delete(c.answers, key)
			}
		default: // an awaited answer is fresh
		}
	}
}

// Vault returns the vault of the values that people have entered for logins.
func (c *Catalogue) Vault() *vault.Vault { return c.vault }

// ways returns the ways to sign in to an agent that people choose from: those that the agent offers, with stored values where the catalogue
// says so, and Deskhand's own. No two share an id or a display text.
func (c *Catalogue) ways(e entry, theirs []LoginMethod) []LoginMethod {
	env := c.environment.With(e.environ())
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
