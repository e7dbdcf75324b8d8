package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// Errors of signing in and out.
var (
	ErrNoMethod = errors.New("the agent offers no such way to sign in")
	ErrLeft     = errors.New("the keyring of the system does not give up a value")
	ErrNoLogout = errors.New("the agent offers no way to sign out, and Deskhand keeps nothing for it")
	ErrValues   = errors.New("a value is missing, or cannot be one")
	ErrVault    = errors.New("what is kept for logins cannot be read or written")
)

// LoginError is an agent that has failed to sign in or out, with the end of what it wrote to stderr.
type LoginError struct {
	Err      error
	Stderr   string
	Unproven bool // the agent was signed in to, as it said itself, and cannot begin a conversation all the same
}

func (e *LoginError) Error() string { return e.Err.Error() }

func (e *LoginError) Unwrap() error { return e.Err }

// Words are what a person reads: the agent's own, where it has answered.
func (e *LoginError) Words() string {
	if refused, ok := errors.AsType[*acp.Error](e.Err); ok {
		return refused.Sentence()
	}
	return e.Err.Error()
}

// The ways to sign in.
const (
	LoginByAgent    = "agent"    // the agent does it all by itself: in a browser, more often than not
	LoginByTerminal = "terminal" // the agent's own program, in a terminal
	LoginByValues   = "env"      // values that the agent finds in its environment
)

// LoginMethods is how a person signs in to an agent.
type LoginMethods struct {
	Methods []LoginMethod `json:"methods"`
	Logout  bool          `json:"logout" doc:"The agent can sign out, or Deskhand keeps values for it, which signing out removes"`
	Keyring string        `json:"keyring,omitempty" enum:"system,file" doc:"Where values are kept; absent where no way to sign in needs any"`
	Warning string        `json:"warning,omitempty" doc:"Where values are kept in a file: why"`
}

// LoginMethod is one way to sign in.
type LoginMethod struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Type        string     `json:"type" enum:"agent,terminal,env"`
	Link        string     `json:"link,omitempty" doc:"A page that gives the values; http or https"`
	Vars        []LoginVar `json:"vars,omitempty" doc:"The values that are asked for; of type agent, what the agent is handed once and keeps by itself"`

	program  string            // of type terminal: "" is the agent's own, and args are appended to its own
	args     []string          // of type terminal, and of those that are told to the agent: appended for the login alone
	env      map[string]string // of type terminal
	anyOne   bool              // one of the values is enough, and there must be one
	confirms bool              // of type env: the agent is told that it has them
}

// Authenticates tells whether the agent itself signs in by the method: [Catalogue.Authenticate].
func (m LoginMethod) Authenticates() bool { return m.Type == LoginByAgent || m.confirms }

// LoginVar is one value.
type LoginVar struct {
	Name     string `json:"name"`
	Label    string `json:"label,omitempty"`
	Secret   bool   `json:"secret"`
	Optional bool   `json:"optional"`
	Set      bool   `json:"set" doc:"There is one already; an empty value keeps it"`

	around bool // it stands in the environment that agents are started in
}

// signIn is what an agent said of logins.
type signIn struct {
	methods []LoginMethod
	logout  bool
}

// Time limits of logins. A person has to find a password and a second device.
const (
	loginLimit  = 20 * time.Minute
	logoutLimit = time.Minute
)

// longestValue is what a variable may hold on Windows. A longer one than the system takes would keep the agent from ever starting again.
const longestValue = 32<<10 - 1

// apiKey is the name of the value that an agent is handed with authenticate, under that name in _meta, where it takes one.
const apiKey = "api-key"

// Login tells how one signs in to an agent. It starts the agent when that has not been asked yet.
func (c *Catalogue) Login(ctx context.Context, id string) (LoginMethods, error) {
	s, err := c.signIn(ctx, id)
	if err != nil {
		return LoginMethods{}, err
	}
	kept, err := c.vault.names(id)
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
			l.Keyring, l.Warning = c.vault.place(ctx)
		}
	}
	return l, nil
}

// LoginMethod is one of Login: ErrNoMethod when there is none of that id.
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
	c.Settle(ctx, false)
	e, err := c.row(id)
	switch {
	case err != nil:
		return e, place{}, err
	case e.broken != "":
		return e, place{}, fmt.Errorf("%w: %s: %s: %s", ErrFile, c.cfg.File, id, e.broken)
	}
	at, err := c.locate(e)
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
		bare.bare = true // a wrong value must not keep anybody from giving another, nor a keyring that nobody unlocks
		err = c.speak(ctx, bare, at, LoginMethod{}, nil, func(_ context.Context, _ *question, began json.RawMessage) error {
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

// speak starts an agent, in an empty directory and with what a login needs in its environment, and has f ask it something after
// initialize. When it returns, nothing is left of the agent but a browser.
func (c *Catalogue) speak(ctx context.Context, e entry, at place, m LoginMethod, values map[string]string, f func(context.Context, *question, json.RawMessage) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // Close ends it as well as the caller
	begun := false
	err := c.attend(ctx, e.id, func(dir string) (proxy.Command, error) {
		return c.loginCommand(ctx, e, at, dir, m.args, values), nil
	}, func(q *question, _ string) error {
		begun = true
		starting, started := context.WithTimeout(ctx, cmp.Or(c.cfg.Patience, usualPatience))
		defer started()
		began, err := q.call(starting, "initialize", loginParams())
		if err != nil {
			return err
		}
		return f(ctx, q, began)
	})
	failed, asked := errors.AsType[*askError](err)
	switch {
	case asked:
		return &LoginError{Err: failed.err, Stderr: failed.stderr}
	case err != nil && !begun:
		return &LoginError{Err: err}
	}
	return err
}

// loginParams are initializeParams of a client that shows a page when it is asked to.
func loginParams() map[string]any {
	params := initializeParams()
	if can, ok := params["clientCapabilities"].(map[string]any); ok {
		can["elicitation"] = map[string]any{"url": map[string]any{}}
	}
	return params
}

// loginCommand is how an agent is started to sign in: its arguments appended and its environment overlaid, as the protocol wants it.
func (c *Catalogue) loginCommand(ctx context.Context, e entry, at place, dir string, args []string, env map[string]string) proxy.Command {
	cmd := c.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Args = slices.Concat(cmd.Args, args)
	cmd.Env = filtered(cmd.Env, env)
	if at.home != "" {
		cmd.Env = append(cmd.Env, homeVariable+"="+at.home) // which filtered has taken out
	}
	browser, err := c.browser()
	if err != nil {
		c.cfg.Logger.Warn("a browser that an agent opens will end with it", "agent", e.id, "error", err)
	}
	if browser != "" {
		cmd.Env = append(cmd.Env,
			theirBrowser+"="+lookup(cmd.Env, "BROWSER"), withoutVariable+"="+strings.Join(slices.Concat(c.vault.peek(e.id), slices.Sorted(maps.Keys(env))), ","), browserVariable+"="+browser,
			"BROWSER="+filepath.Join(browser, browserPrograms()[0]), "PATH="+browser+string(filepath.ListSeparator)+lookup(cmd.Env, "PATH"))
	}
	return cmd
}

// Variables for the program that opens pages during a login: what BROWSER was before, which variables are not for a browser, and which
// directory of PATH is ours.
const (
	theirBrowser    = "DESKHAND_BROWSER"
	withoutVariable = "DESKHAND_WITHOUT"
	browserVariable = "DESKHAND_BROWSER_DIR"
)

// browserPrograms are the names under which agents look for a program that opens pages: the first stands in BROWSER. That alone would not
// do: node's usual way asks xdg-open, which on most desktops does not heed it.
func browserPrograms() []string { return []string{"open-url", "xdg-open"} }

// browser is a directory with programs that open a page in a browser which outlives the agent. Each is one file, and not a command line:
// what agents do with blanks in BROWSER differs. Where the system itself starts browsers (macOS) there is none,
// nor on Windows, where nothing that agents open pages by asks for a program of a name.
func (c *Catalogue) browser() (string, error) {
	if c.cfg.Dir == "" || c.cfg.WriteFile == nil || runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return "", nil
	}
	dir := filepath.Join(c.cfg.Dir, ".browser")
	// An agent may hand on PATH and not this variable: we would be found in place of the system's program then, again and again.
	script := "#!/bin/sh\nexport " + browserVariable + "=" + quote(dir) + "\nexec " + quote(c.cfg.Self) + " open-url \"$1\"\n"
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

// Authenticate signs in by a method of type agent, and returns when the agent says how that went. opened is told of a page that the agent
// wants a person to see, if it cannot open one itself. The end of ctx ends the agent.
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
	err = c.speak(ctx, e, at, m, given, func(ctx context.Context, q *question, _ json.RawMessage) error {
		q.page.Store(&opened)
		_, err := q.call(ctx, "authenticate", params)
		return err
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &LoginError{Err: fmt.Errorf("nobody has signed in within %v", loginLimit)}
	}
	return err
}

// Given are the values that were entered for a method. The secrets among them are kept out of what is written from now on.
func (c *Catalogue) Given(m LoginMethod, values map[string]string) map[string]string {
	given := map[string]string{}
	for _, v := range m.Vars {
		if value := values[v.Name]; value != "" {
			given[v.Name] = value
			if v.Secret {
				c.vault.hide(value)
			}
		}
	}
	return given
}

// LoginCommand is the program of a method of type terminal, to be run on a terminal by [Catalogue.StartLogin], or by a person.
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
	cmd.Env = onTerminal(cmd.Env, runtime.GOOS)
	return cmd, nil
}

// older is the command line of a terminal that an agent has written into _meta, where it is the whole of it. Its program is the agent's
// own more often than not, under a name that need not be on PATH.
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
	if file := c.program(m.program); file != "" {
		return file, m.args, nil
	}
	return "", nil, &LoginError{Err: c.notFound(m.program)}
}

// StartLogin starts the program of LoginCommand on a terminal.
func (c *Catalogue) StartLogin(ctx context.Context, id string, cmd proxy.Command, tty *os.File) (*proxy.Instance, error) {
	cmd.Terminal = tty
	return c.start(ctx, id, cmd)
}

// CheckValues tells what is wrong with the values of a method of type env: ErrValues when one is missing that the agent needs, or cannot be
// one. An empty one stands for the one that is kept.
func (c *Catalogue) CheckValues(id string, m LoginMethod, values map[string]string) error {
	kept, err := c.vault.names(id)
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

// Keep keeps the values of a method of type env, for the next start of the agent. An empty one keeps what there is. It tells where they
// are, as Login does, and fails as CheckValues does.
func (c *Catalogue) Keep(ctx context.Context, id string, m LoginMethod, values map[string]string) (keyring, warning string, err error) {
	if err := c.CheckValues(id, m, values); err != nil {
		return "", "", err
	}
	return c.vault.keep(ctx, id, m.Vars, values)
}

func namesOf(vars []LoginVar) []string {
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
	}
	return names
}

// Logout has an agent sign out, and removes the values that are kept for it, even if the agent cannot sign out, or is there no longer.
// With ErrLeft the agent gets them no longer all the same.
func (c *Catalogue) Logout(ctx context.Context, id string) error {
	kept, err := c.vault.names(id)
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
		err = nil // there is nothing else to sign out of
	}
	return errors.Join(err, c.vault.forget(ctx, id))
}

func (c *Catalogue) signOut(ctx context.Context, id string) error {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logoutLimit)
	defer cancel()
	return c.speak(ctx, e, at, LoginMethod{}, nil, func(ctx context.Context, q *question, _ json.RawMessage) error {
		_, err := q.call(ctx, "logout", map[string]any{})
		return err
	})
}

// SignedIn forgets that an agent wants a login, and what it has answered before. Watch is called when that is news.
func (c *Catalogue) SignedIn(id string) {
	c.forgetAnswers(id)
	c.NoteLogin(id, nil)
}

// SignedOut forgets what an agent has answered before.
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
		default: // it is as new as can be
		}
	}
}

// Recall adds the values to Secrets that runs before this one have kept for agents, as far as it reaches. The error tells which could not
// be read.
func (c *Catalogue) Recall(ctx context.Context, reach Reach) error { return c.vault.recall(ctx, reach) }

// UsesKeyring tells whether a value of an agent is kept in the keyring.
func (c *Catalogue) UsesKeyring(agent string) bool {
	f, err := c.vault.read()
	return err == nil && slices.ContainsFunc(slices.Collect(maps.Values(f.Agents[agent])), func(k kept) bool { return k.Place == keptInKeyring })
}

// Secrets are the values that were given to agents since we were started, or recalled, and must not be written anywhere else.
func (c *Catalogue) Secrets() []string { return c.vault.secrets() }

// signInOf reads what an agent says of logins in its answer to initialize. What cannot be read is left out.
func signInOf(began json.RawMessage) signIn {
	var r struct {
		Methods []json.RawMessage `json:"authMethods"`
	}
	_ = json.Unmarshal(began, &r)
	can, _ := acp.ParseInitialized(began)
	s := signIn{logout: can.Logout}
	for _, raw := range r.Methods {
		var m wireMethod
		if err := json.Unmarshal(raw, &m); err == nil || m.ID != "" {
			if method, ok := m.method(); ok {
				s.methods = append(s.methods, method)
			}
		}
	}
	return s
}

// shown tells of an elicitation by URL, which is all that an agent that signs in asks of us.
func shown(params json.RawMessage) (url string, ok bool) {
	var p struct {
		Mode string `json:"mode"`
		URL  string `json:"url"`
	}
	_ = json.Unmarshal(params, &p)
	return p.URL, p.Mode == "url" && isPage(p.URL)
}

// isPage tells whether a text is the URL of a page, that can be shown: no other schemes, no control characters, no megabytes.
func isPage(text string) bool {
	const longest = 8 << 10
	u, err := url.Parse(text)
	return err == nil && len(text) <= longest && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// elicited answers an elicitation by URL. The page is for a person to see, so it is accepted before anybody has.
func (q *question) elicited(ctx context.Context, e acp.Envelope, msg []byte) bool {
	opened := q.page.Load()
	if opened == nil || e.Method() != "elicitation/create" {
		return false
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(msg, &m) // it was peeked at
	url, ok := shown(m.Params)
	if !ok {
		return false
	}
	(*opened)(url)
	if yes, err := acp.NewResponse(e.ID, map[string]any{"action": "accept"}); err == nil {
		_ = q.inst.Send(ctx, yes) // one that has ended needs no answer
	}
	return true
}
