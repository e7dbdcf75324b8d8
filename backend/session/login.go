package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agents"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/shells"
	"deskhand/backend/terminal"
	"deskhand/backend/transcript"
)

// Login is one attempt to sign in to an agent.
type Login struct {
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Method    string `json:"method"`
	Type      string `json:"type" enum:"agent,terminal,env"`
	State     string `json:"state" enum:"running,done,failed"`
	Proving   bool   `json:"proving,omitempty" doc:"The agent is signed in to, as it says itself, and is started once more to see that it can begin a conversation. It is done after that alone"`
	Terminal  string `json:"terminal,omitempty" doc:"The terminal that the agent's program runs on"`
	URL       string `json:"url,omitempty" doc:"A page that the agent asks a person to open; http or https"`
	Code      string `json:"code,omitempty" doc:"Why it failed: login.cancelled, login.exit, login.timeout, login.failed; login.unproven where the agent cannot begin a conversation all the same; login.vault where it can, and its values cannot be kept"`
	Detail    string `json:"detail,omitempty" doc:"Why it failed, in the agent's words where there are any"`
	Stderr    string `json:"stderr,omitempty" doc:"The end of what the agent wrote there"`
	Warning   string `json:"warning,omitempty" doc:"The values are kept in a file: where, and why"`
	StartedAt Time   `json:"startedAt"`
	EndedAt   *Time  `json:"endedAt,omitempty"`
}

// The states of a login.
const (
	loginRunning = "running"
	loginDone    = "done"
	loginFailed  = "failed"
)

// Codes of what cannot be done about a login, and of how one has failed.
const (
	refusedLoginRuns   = "login.running"
	refusedLoginMethod = "login.method"
	refusedLoginValues = "login.values"
	refusedLoginVault  = "login.vault"
	refusedNoLogout    = "login.no_logout"
	refusedLoginLeft   = "login.left"
	refusedLoginFailed = "login.failed"

	failedCancelled = "login.cancelled"
	failedExit      = "login.exit"
	failedTimeout   = "login.timeout"
	failedUnproven  = "login.unproven"
)

const (
	terminalLimit = 30 * time.Minute // how long a person may take at a terminal
	keptLogins    = 20               // how many that have ended can still be asked for, each with its terminal
)

// logins are the attempts of this run of the program, and the terminals that belong to some of them.
type logins struct {
	mu   sync.Mutex // protects the fields below
	all  map[string]*attempt
	past []string // those that have ended, the oldest first
}

// attempt is one login. logins.mu protects its record.
type attempt struct {
	login  Login
	cancel context.CancelFunc
	ended  chan struct{}
	tty    *terminal.Terminal // nil without one
	aside  bool               // somebody has ended it
}

// begin takes the agent's place for a new attempt; one at a time has it.
func (l *logins) begin(a *attempt) (other string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, b := range l.all {
		if b.login.Agent == a.login.Agent && b.login.State == loginRunning {
			return id, false
		}
	}
	if l.all == nil {
		l.all = map[string]*attempt{}
	}
	l.all[a.login.ID] = a
	return "", true
}

// change changes the record, and gives it as it is then.
func (l *logins) change(a *attempt, f func(*Login)) Login {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&a.login)
	if a.login.State != loginRunning && a.login.EndedAt == nil {
		a.login.EndedAt = &Time{Time: time.Now()}
		l.past = append(l.past, a.login.ID)
	}
	for len(l.past) > keptLogins {
		delete(l.all, l.past[0])
		l.past = l.past[1:]
	}
	return a.login
}

// drop forgets an attempt that has not begun.
func (l *logins) drop(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, a.login.ID)
}

func (l *logins) get(id string) (*attempt, Login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[id]
	if a == nil {
		return nil, Login{}, fmt.Errorf("login %s: %w", id, ErrNotFound)
	}
	return a, a.login, nil
}

func (l *logins) terminal(id string) (*attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		if a.tty != nil && a.login.Terminal == id {
			return a, nil
		}
	}
	return nil, fmt.Errorf("terminal %s: %w", id, ErrNotFound)
}

// LoginMethods tells how one signs in to an agent.
func (c *Client) LoginMethods(ctx context.Context, agent string) (agents.LoginMethods, error) {
	if err := c.ReadOnly(); err != nil {
		return agents.LoginMethods{}, err // it may start the agent
	}
	l, err := c.cfg.Agents.Login(ctx, agent)
	return l, c.refusedLogin(agent, err)
}

// BeginLogin begins to sign in. How it goes on is told by events: it is done when the agent has begun a conversation.
func (c *Client) BeginLogin(ctx context.Context, agent, method string, values map[string]string) (Login, error) {
	m, err := c.cfg.Agents.LoginMethod(ctx, agent, method)
	if err != nil {
		return Login{}, c.refusedLogin(agent, err)
	}
	return c.beginLogin(ctx, Login{Agent: agent, Method: method, Type: m.Type}, func(ctx context.Context, a *attempt) (func(context.Context) error, error) {
		return c.prepareLogin(ctx, a, m, values)
	})
}

// beginLogin begins an attempt: prepare does what can be refused at once, and gives what takes a person's time, or the agent's.
func (c *Client) beginLogin(ctx context.Context, l Login, prepare func(context.Context, *attempt) (func(context.Context) error, error)) (Login, error) {
	agent := l.Agent
	l.ID, l.State, l.StartedAt = uuid.Must(uuid.NewV7()).String(), loginRunning, Time{Time: time.Now()}
	a := &attempt{ended: make(chan struct{}), login: l}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a login outlives the call
	context.AfterFunc(c.ctx, cancel)                               //nolint:contextcheck // and not us
	a.cancel = cancel
	if other, ok := c.logins.begin(a); !ok {
		cancel()
		return Login{}, &RefusedError{Code: refusedLoginRuns, Params: map[string]string{"agent": agent, "login": other}}
	}
	preparing, prepared := context.WithCancel(ctx)
	defer prepared()
	defer context.AfterFunc(life, prepared)() // somebody else may cancel it: that another has begun tells its id
	work, err := prepare(preparing, a)
	if err != nil {
		defer close(a.ended)
		c.logins.drop(a)
		cancel()
		return Login{}, c.refusedLogin(agent, err)
	}
	begun := c.showLogin(a, func(*Login) {})
	ok := c.background(func() {
		defer close(a.ended)
		defer cancel()
		c.endLogin(a, work(life))
	})
	if !ok {
		defer close(a.ended)
		cancel()
		return begun, errors.Join(ErrClosed, a.endTerminal())
	}
	return begun, nil
}

// prepareLogin refuses what can be refused at once, and gives the rest of a login by a method.
func (c *Client) prepareLogin(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) (func(context.Context) error, error) {
	agent := a.login.Agent
	switch m.Type {
	case agents.LoginByValues:
		if err := c.cfg.Agents.CheckValues(agent, m, values); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return c.loginByValues(ctx, a, m, values) }, nil
	case agents.LoginByTerminal:
		cmd, err := c.cfg.Agents.LoginCommand(ctx, agent, m)
		if err != nil {
			return nil, err
		}
		tty, err := terminal.Open(ctx, terminal.Size{}, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
			return c.cfg.Agents.StartLogin(ctx, agent, cmd, tty)
		})
		if err != nil {
			return nil, err
		}
		c.logins.change(a, func(l *Login) { a.tty, l.Terminal = tty, uuid.Must(uuid.NewV7()).String() })
		return func(ctx context.Context) error {
			if err := a.waitForTerminal(ctx); err != nil {
				return err
			}
			return c.proveLogin(ctx, a, nil)
		}, nil
	}
	return func(ctx context.Context) error {
		if err := c.authenticate(ctx, a, m, values); err != nil {
			return err
		}
		return c.proveLogin(ctx, a, nil)
	}, nil
}

func (c *Client) authenticate(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) error {
	return c.cfg.Agents.Authenticate(ctx, a.login.Agent, m, values, func(url string) {
		c.showLogin(a, func(l *Login) { l.URL = url })
	})
}

// loginByValues keeps the values when the agent has begun a conversation with them: those of before stay until then.
func (c *Client) loginByValues(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) error {
	if m.Authenticates() {
		if err := c.authenticate(ctx, a, m, values); err != nil {
			return err
		}
	}
	if err := c.proveLogin(ctx, a, c.cfg.Agents.Given(m, values)); err != nil {
		return err
	}
	_, warning, err := c.cfg.Agents.Keep(ctx, a.login.Agent, m, values)
	if err == nil {
		c.showLogin(a, func(l *Login) { l.Warning = warning })
	}
	return err
}

// proveLogin has the agent begin a conversation, and tells of that.
func (c *Client) proveLogin(ctx context.Context, a *attempt, values map[string]string) error {
	c.showLogin(a, func(l *Login) { l.Proving, l.URL = true, "" })
	return c.cfg.Agents.Prove(ctx, a.login.Agent, values)
}

// exitError is a program on a terminal that did not end with 0.
type exitError struct{ status proxy.Status }

func (e *exitError) Error() string {
	if e.status.ExitCode != nil {
		return fmt.Sprintf("the program ended with code %d", *e.status.ExitCode)
	}
	return "the program was ended by " + cmp.Or(e.status.Signal, "a signal")
}

// waitForTerminal waits for a person to be done at the terminal. An exit code of 0 is success, as the protocol has it.
func (a *attempt) waitForTerminal(ctx context.Context) error {
	limit := time.NewTimer(terminalLimit)
	defer limit.Stop()
	var why error
	select {
	case <-a.tty.Ended():
		if status := a.tty.Status(); status.ExitCode == nil || *status.ExitCode != 0 {
			why = &exitError{status}
		}
	case <-limit.C:
		why = context.DeadlineExceeded
	case <-ctx.Done():
		why = ctx.Err()
	}
	return errors.Join(why, a.endTerminal())
}

func (a *attempt) endTerminal() error {
	if a.tty == nil {
		return nil
	}
	return a.tty.Close()
}

// showLogin changes a login and tells the feed.
func (c *Client) showLogin(a *attempt, f func(*Login)) Login {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	l := c.logins.change(a, f)
	c.feed.publish(Event{Type: eventLogin, Data: mustJSON(l)})
	return l
}

// endLogin ends an attempt. After one that went well, the agent no longer wants a login, and what it has refused for want of one is
// tried again.
func (c *Client) endLogin(a *attempt, err error) Login {
	if err == nil {
		l := c.showLogin(a, func(l *Login) { l.State, l.Proving = loginDone, false })
		c.signedIn(l.Agent)
		return l
	}
	return c.showLogin(a, func(l *Login) {
		l.State, l.Proving, l.Code, l.Detail = loginFailed, false, refusedLoginFailed, c.secret.Text(err.Error())
		if failed, ok := errors.AsType[*agents.LoginError](err); ok {
			l.Detail, l.Stderr = c.secret.Text(failed.Words()), c.secret.Text(failed.Stderr)
			if failed.Unproven {
				l.Code = failedUnproven
			}
		}
		_, exited := errors.AsType[*exitError](err)
		switch {
		case a.aside || errors.Is(err, context.Canceled):
			l.Code, l.Detail = failedCancelled, ""
		case errors.Is(err, context.DeadlineExceeded):
			l.Code, l.Detail = failedTimeout, ""
		case exited:
			l.Code = failedExit
		case errors.Is(err, agents.ErrVault):
			l.Code = refusedLoginVault
		}
	})
}

// GetLogin gives one attempt of this run of the program.
func (c *Client) GetLogin(id string) (Login, error) {
	_, l, err := c.logins.get(id)
	return l, err
}

// CancelLogin ends an attempt, and returns when nothing of it is left. One that has ended stays as it is.
func (c *Client) CancelLogin(ctx context.Context, id string) error {
	a, _, err := c.logins.get(id)
	if err != nil {
		return err
	}
	return c.cancelLogin(ctx, a)
}

func (c *Client) cancelLogin(ctx context.Context, a *attempt) error {
	c.logins.change(a, func(*Login) { a.aside = true })
	a.cancel()
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Logout signs out of an agent, and forgets the values that are kept for it. Agents that run have them still.
func (c *Client) Logout(ctx context.Context, agent string) error {
	c.logins.mu.Lock()
	for id, a := range c.logins.all {
		if a.login.Agent == agent && a.login.State == loginRunning {
			c.logins.mu.Unlock()
			return &RefusedError{Code: refusedLoginRuns, Params: map[string]string{"agent": agent, "login": id}}
		}
	}
	c.logins.mu.Unlock()
	err := c.cfg.Agents.Logout(ctx, agent)
	if err != nil && !errors.Is(err, agents.ErrLeft) {
		return c.refusedLogin(agent, err)
	}
	c.cfg.Agents.SignedOut(agent)
	c.announceAgent(agent)
	if err != nil {
		return c.refusedLogin(agent, err)
	}
	return nil
}

// SignedIn is told by who has signed in to an agent by other means. It begins an attempt that has only the proof left.
func (c *Client) SignedIn(ctx context.Context, agent string) (Login, error) {
	if _, err := c.agent(agent); err != nil {
		return Login{}, err
	}
	return c.beginLogin(ctx, Login{Agent: agent, Type: agents.LoginByTerminal}, func(_ context.Context, a *attempt) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return c.proveLogin(ctx, a, nil) }, nil
	})
}

func (c *Client) signedIn(agent string) {
	c.noteLogin(agent, nil)      // in the place of a refusal that is yet to be told, and after one that is being told
	c.cfg.Agents.SignedIn(agent) // which has announce called when that is news
	c.mu.Lock()
	live := slices.SortedFunc(maps.Values(c.live), func(a, b *conversation) int { return cmp.Compare(a.id, b.id) }) // the oldest first
	c.mu.Unlock()
	c.background(func() {
		for _, v := range live {
			if v.look().Agent != agent {
				continue
			}
			v.post(func() {
				if !v.state.Deleted {
					v.retry()
				}
			})
		}
	})
}

// refusedLogin gives the errors of logins their codes.
func (c *Client) refusedLogin(agent string, err error) error {
	for _, row := range []struct {
		err  error
		code string
		bad  bool
	}{
		{agents.ErrNoMethod, refusedLoginMethod, true},
		{agents.ErrValues, refusedLoginValues, true},
		{agents.ErrVault, refusedLoginVault, false},
		{agents.ErrNoLogout, refusedNoLogout, false},
		{agents.ErrLeft, refusedLoginLeft, false},
		{agents.ErrNotInstalled, transcript.ProblemMissing, false},
		{agents.ErrFile, refusedFile, false},
		{proxy.ErrTerminal, shells.Unavailable, false},
	} {
		if errors.Is(err, row.err) && !errors.Is(err, agents.ErrUnknown) {
			params := map[string]string{"agent": agent, "detail": c.secret.Text(err.Error())}
			return &RefusedError{Code: row.code, Params: params, Bad: row.bad}
		}
	}
	if failed, ok := errors.AsType[*agents.LoginError](err); ok {
		params := map[string]string{"agent": agent, "detail": c.secret.Text(failed.Words()), "stderr": c.secret.Text(failed.Stderr)}
		return &RefusedError{Code: refusedLoginFailed, Params: params}
	}
	return refusedAgent(agent, err)
}

// loginRefusal is what an agent has refused for want of a login: its start, or a prompt.
type loginRefusal struct {
	turn *Turn // the prompt, or what waited for the start; nil = none
	at   time.Time
}

// retryWithin is how long after its refusal a prompt is sent again: one of yesterday is no longer what its person waits for.
const retryWithin = time.Hour

// barred remembers what is refused at this moment, until something else is begun. A prompt that a person has stopped is not wanted again.
func (v *conversation) barred() {
	v.refusal = &loginRefusal{at: time.Now()}
	if v.state.Base != lifecycle.Cancelling {
		v.refusal.turn = v.turn
	}
}

// retry starts the agent again after a login that it has missed, and sends the prompt once more that it has refused. Who has begun
// something else meanwhile is left alone, and so is what was put away.
func (v *conversation) retry() {
	missed := v.refusal
	if missed == nil || v.turn != nil || v.row.ArchivedAt != nil {
		return
	}
	if err := v.restart(); err != nil {
		v.c.cfg.Logger.Warn("the agent is not started again", "session", v.id, "error", err)
		return
	}
	if missed.turn == nil || time.Since(missed.at) > retryWithin {
		return
	}
	if err := v.sayAgain(missed.turn); err != nil {
		v.c.cfg.Logger.Warn("the prompt is not sent again", "session", v.id, "error", err)
	}
}

// sayAgain sends a message once more: out of where it waits if it was given back, and as long as it waits there as it was. One that its person has
// changed, sent or thrown away since is theirs.
func (v *conversation) sayAgain(t *Turn) error {
	text := transcript.PromptText(t.prompt)
	unchanged := func(now string, files []transcript.Attachment) bool {
		return now == text && slices.EqualFunc(files, t.attachments, func(a, b transcript.Attachment) bool { return a.ID == b.ID })
	}
	switch {
	case t.again != "":
		if q, waits := v.prompts.items[t.again]; waits && unchanged(q.Message, q.Attachments) {
			return v.wish(lifecycle.Send{Item: t.again})
		}
		return nil
	case t.back && !unchanged(v.row.Draft, v.row.Attachments):
		return nil
	case t.back:
		v.row.Draft = ""
		v.setChips(nil)
	}
	v.turn = v.newTurn(uuid.Must(uuid.NewV7()).String(), t.prompt...)
	v.turn.attachments = v.planned(t.attachments)
	err := v.wish(lifecycle.Prompt{Turn: v.turn.ID})
	if err != nil {
		v.turn = nil
	}
	return err
}
