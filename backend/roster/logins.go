package roster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/shells"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

// Login is one attempt to sign in to an agent.
type Login struct {
	ID        string       `json:"id"`
	Agent     string       `json:"agent"`
	Method    string       `json:"method"`
	Type      string       `json:"type" enum:"agent,terminal,env"`
	State     string       `json:"state" enum:"running,done,failed"`
	Proving   bool         `json:"proving,omitempty" doc:"The agent is signed in to, as it says itself, and is started once more to see that it can begin a conversation. It is done after that alone"`
	Terminal  string       `json:"terminal,omitempty" doc:"The terminal that the agent's program runs on"`
	URL       string       `json:"url,omitempty" doc:"A page that the agent asks a person to open; http or https"`
	Code      string       `json:"code,omitempty" doc:"Why it failed: login.cancelled, login.exit, login.timeout, login.failed; login.unproven where the agent cannot begin a conversation all the same; login.vault where it can, and its values cannot be kept"`
	Detail    string       `json:"detail,omitempty" doc:"Why it failed, in the agent's words where there are any"`
	Stderr    string       `json:"stderr,omitempty" doc:"The end of what the agent wrote there"`
	Warning   string       `json:"warning,omitempty" doc:"The values are kept in a file: where, and why"`
	StartedAt record.Time  `json:"startedAt"`
	EndedAt   *record.Time `json:"endedAt,omitempty"`
}

// The states of a login.
const (
	loginRunning = "running"
	loginDone    = "done"
	loginFailed  = "failed"
)

// Codes of refusals about logins, and of the failures of logins.
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

// keptLogins is how many ended logins can still be asked for, each with its terminal.
const keptLogins = 20

// Logins are the attempts to sign in of this run of the program, and the terminals that belong to some of them. One attempt at a time runs for
// an agent.
type Logins struct {
	agents *Agents

	mu   sync.Mutex // protects the fields below, and the attempts' records
	all  map[string]*attempt
	past []string // ids of the ended attempts, the oldest first
}

// Methods returns the ways to sign in to an agent, and may start the agent to ask.
func (l *Logins) Methods(ctx context.Context, agent string) (agents.LoginMethods, error) {
	if err := l.agents.sessions.Writable(); err != nil {
		return agents.LoginMethods{}, err
	}
	m, err := l.agents.catalogue.Logins().Methods(ctx, agent)
	return m, l.refused(agent, err)
}

// Begin begins to sign in. Events report the progress: the login is done when the agent has begun a conversation.
func (l *Logins) Begin(ctx context.Context, agent, method string, values map[string]string) (Login, error) {
	m, err := l.agents.catalogue.Logins().Method(ctx, agent, method)
	if err != nil {
		return Login{}, l.refused(agent, err)
	}
	return l.begin(ctx, Login{Agent: agent, Method: method, Type: m.Type}, func(ctx context.Context, a *attempt) (work, error) {
		return l.prepare(ctx, a, m, values)
	})
}

// SignedIn begins an attempt that has only the proof left. The caller has seen a person sign in to the agent by other means.
func (l *Logins) SignedIn(ctx context.Context, agent string) (Login, error) {
	if _, err := l.agents.get(agent); err != nil {
		return Login{}, err
	}
	return l.begin(ctx, Login{Agent: agent, Type: agents.LoginByTerminal}, func(_ context.Context, a *attempt) (work, error) {
		return func(ctx context.Context) error { return l.prove(ctx, a, nil) }, nil
	})
}

// Get returns an attempt of this run of the program.
func (l *Logins) Get(id string) (Login, error) {
	_, now, err := l.find(id)
	return now, err
}

// Cancel ends an attempt, and returns when nothing of the attempt is left. An attempt that has ended stays.
func (l *Logins) Cancel(ctx context.Context, id string) error {
	a, _, err := l.find(id)
	if err != nil {
		return err
	}
	return l.end(ctx, a)
}

// Terminal returns the terminal of a login, by the terminal's id.
func (l *Logins) Terminal(id string) (shells.Login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		if a.tty != nil && a.record.Terminal == id {
			return shells.Login{Terminal: a.tty, End: func(ctx context.Context) error { return l.end(ctx, a) }}, nil
		}
	}
	return shells.Login{}, fmt.Errorf("terminal %s: %w", id, refusal.ErrNotFound)
}

// Logout signs out of an agent, and forgets the values that are kept for the agent. Processes of the agent that run have the values still.
func (l *Logins) Logout(ctx context.Context, agent string) error {
	if id, runs := l.running(agent); runs {
		return runsAlready(agent, id)
	}
	a := l.agents
	err := a.catalogue.Logins().Logout(ctx, agent)
	if err != nil && !errors.Is(err, vault.ErrLeft) {
		return l.refused(agent, err)
	}
	a.catalogue.Logins().SignedOut(agent)
	a.tell(agent)
	return l.refused(agent, err)
}

// running returns the running attempt of an agent.
func (l *Logins) running(agent string) (id string, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runningLocked(agent)
}

func (l *Logins) runningLocked(agent string) (id string, runs bool) {
	for id, a := range l.all {
		if a.record.Agent == agent && a.record.State == loginRunning {
			return id, true
		}
	}
	return "", false
}

func runsAlready(agent, login string) error {
	return &refusal.Error{Code: refusedLoginRuns, Params: map[string]string{"agent": agent, "login": login}}
}

func (l *Logins) find(id string) (*attempt, Login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[id]
	if a == nil {
		return nil, Login{}, fmt.Errorf("login %s: %w", id, refusal.ErrNotFound)
	}
	return a, a.record, nil
}

// add adds a new attempt, unless another attempt for the agent runs.
func (l *Logins) add(a *attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id, runs := l.runningLocked(a.record.Agent); runs {
		return runsAlready(a.record.Agent, id)
	}
	l.all[a.record.ID] = a
	return nil
}

// remove forgets an attempt that could not begin.
func (l *Logins) remove(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, a.record.ID)
}

// change changes the record of an attempt, and returns the record. The oldest ended attempts over the limit are forgotten.
func (l *Logins) change(a *attempt, f func(*Login)) Login {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&a.record)
	if a.record.State != loginRunning && a.record.EndedAt == nil {
		a.record.EndedAt = &record.Time{Time: time.Now()}
		l.past = append(l.past, a.record.ID)
	}
	for len(l.past) > keptLogins {
		delete(l.all, l.past[0])
		l.past = l.past[1:]
	}
	return a.record
}

// tell changes the record of an attempt, and publishes the record.
func (l *Logins) tell(a *attempt, f func(*Login)) Login {
	l.agents.telling.Lock()
	defer l.agents.telling.Unlock()
	now := l.change(a, f)
	l.agents.publish(eventLogin, now)
	return now
}

// refused returns the refusal of an error of a login; other errors stay.
func (l *Logins) refused(agent string, err error) error {
	text := l.agents.secret.Text
	for _, row := range []struct {
		err  error
		code string
		bad  bool
	}{
		{agents.ErrNoMethod, refusedLoginMethod, true},
		{agents.ErrValues, refusedLoginValues, true},
		{vault.ErrAccess, refusedLoginVault, false},
		{agents.ErrNoLogout, refusedNoLogout, false},
		{vault.ErrLeft, refusedLoginLeft, false},
		{agents.ErrNotInstalled, transcript.ProblemMissing, false},
		{agents.ErrFile, refusedFile, false},
		{proxy.ErrTerminal, shells.Unavailable, false},
	} {
		if errors.Is(err, row.err) && !errors.Is(err, agents.ErrUnknown) {
			return &refusal.Error{Code: row.code, Params: map[string]string{"agent": agent, "detail": text(err.Error())}, Bad: row.bad}
		}
	}
	if failed, ok := errors.AsType[*agents.LoginError](err); ok {
		params := map[string]string{"agent": agent, "detail": text(failed.Words()), "stderr": text(failed.Stderr)}
		return &refusal.Error{Code: refusedLoginFailed, Params: params}
	}
	return refused(agent, err)
}
