package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/terminal"
	"deskhand/backend/vault"
)

// terminalLimit is how long a person may take at a terminal.
const terminalLimit = 30 * time.Minute

// attempt is one login.
type attempt struct {
	record    Login // protected by Logins.mu
	cancel    context.CancelFunc
	ended     chan struct{}
	tty       *terminal.Terminal // nil without a terminal
	cancelled bool               // protected by Logins.mu: somebody has cancelled the attempt
}

// work is the part of an attempt that takes a person's or the agent's time.
type work func(ctx context.Context) error

// begin begins an attempt. prepare refuses an attempt that cannot succeed, and returns the rest of the work.
func (l *Logins) begin(ctx context.Context, r Login, prepare func(context.Context, *attempt) (work, error)) (Login, error) {
	r.ID, r.State, r.StartedAt = uuid.Must(uuid.NewV7()).String(), loginRunning, record.Time{Time: time.Now()}
	life, cancel := l.agents.background.Call(context.WithoutCancel(ctx)) // a login outlives the call, and not the program
	a := &attempt{record: r, cancel: cancel, ended: make(chan struct{})}
	if err := l.add(a); err != nil {
		cancel()
		return Login{}, err
	}
	preparing, prepared := context.WithCancel(ctx)
	defer prepared()
	defer context.AfterFunc(life, prepared)() // others can cancel the attempt already: the refusal of a second attempt names the attempt
	rest, err := prepare(preparing, a)
	if err != nil {
		defer close(a.ended)
		l.remove(a)
		cancel()
		return Login{}, l.refused(r.Agent, err)
	}
	begun := l.tell(a, func(*Login) {})
	ok := l.agents.background.Start(func() {
		defer close(a.ended)
		defer cancel()
		l.over(a, rest(life))
	})
	if !ok {
		defer close(a.ended)
		cancel()
		return begun, errors.Join(refusal.ErrClosed, a.endTerminal())
	}
	return begun, nil
}

// end cancels an attempt, and waits until nothing of the attempt is left.
func (l *Logins) end(ctx context.Context, a *attempt) error {
	l.change(a, func(*Login) { a.cancelled = true })
	a.cancel()
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// prepare refuses values and programs that cannot work, and returns the rest of a login by a method.
func (l *Logins) prepare(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) (work, error) {
	agent, catalogue := a.record.Agent, l.agents.catalogue
	switch m.Type {
	case agents.LoginByValues:
		if err := catalogue.Logins().CheckValues(agent, m, values); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return l.enter(ctx, a, m, values) }, nil
	case agents.LoginByTerminal:
		cmd, err := catalogue.Logins().Command(ctx, agent, m)
		if err != nil {
			return nil, err
		}
		tty, err := terminal.Open(ctx, terminal.Size{}, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
			return catalogue.Logins().Start(ctx, agent, cmd, tty)
		})
		if err != nil {
			return nil, err
		}
		l.change(a, func(r *Login) { a.tty, r.Terminal = tty, uuid.Must(uuid.NewV7()).String() })
		return func(ctx context.Context) error {
			if err := a.waitForTerminal(ctx); err != nil {
				return err
			}
			return l.prove(ctx, a, nil)
		}, nil
	}
	return func(ctx context.Context) error {
		if err := l.authenticate(ctx, a, m, values); err != nil {
			return err
		}
		return l.prove(ctx, a, nil)
	}, nil
}

// authenticate has the agent sign in by one of its methods.
func (l *Logins) authenticate(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) error {
	return l.agents.catalogue.Logins().Authenticate(ctx, a.record.Agent, m, values, func(url string) {
		l.tell(a, func(r *Login) { r.URL = url })
	})
}

// enter stores values once the agent has begun a conversation with them. Until then the earlier values stay.
func (l *Logins) enter(ctx context.Context, a *attempt, m agents.LoginMethod, values map[string]string) error {
	catalogue := l.agents.catalogue
	if m.Authenticates() {
		if err := l.authenticate(ctx, a, m, values); err != nil {
			return err
		}
	}
	if err := l.prove(ctx, a, catalogue.Logins().Given(m, values)); err != nil {
		return err
	}
	_, warning, err := catalogue.Logins().Keep(ctx, a.record.Agent, m, values)
	if err == nil {
		l.tell(a, func(r *Login) { r.Warning = warning })
	}
	return err
}

// prove has the agent begin a conversation.
func (l *Logins) prove(ctx context.Context, a *attempt, values map[string]string) error {
	l.tell(a, func(r *Login) { r.Proving, r.URL = true, "" })
	return l.agents.catalogue.Logins().Prove(ctx, a.record.Agent, values)
}

// over ends the record of an attempt. After a success the agent no longer wants a login, and the conversations try again what the agent has
// refused for want of a login.
func (l *Logins) over(a *attempt, err error) {
	if err == nil {
		now := l.tell(a, func(r *Login) { r.State, r.Proving = loginDone, false })
		l.agents.NoteLogin(now.Agent, nil)              // in place of a refusal that the catalogue does not know yet
		l.agents.catalogue.Logins().SignedIn(now.Agent) // follow publishes the agent, if its state has changed
		l.agents.sessions.SignedIn(now.Agent)
		return
	}
	l.tell(a, func(r *Login) {
		text := l.agents.secret.Text
		r.State, r.Proving, r.Code, r.Detail = loginFailed, false, refusedLoginFailed, text(err.Error())
		if failed, ok := errors.AsType[*agents.LoginError](err); ok {
			r.Detail, r.Stderr = text(failed.Words()), text(failed.Stderr)
			if failed.Unproven {
				r.Code = failedUnproven
			}
		}
		_, exited := errors.AsType[*exitError](err)
		switch {
		case a.cancelled || errors.Is(err, context.Canceled):
			r.Code, r.Detail = failedCancelled, ""
		case errors.Is(err, context.DeadlineExceeded):
			r.Code, r.Detail = failedTimeout, ""
		case exited:
			r.Code = failedExit
		case errors.Is(err, vault.ErrAccess):
			r.Code = refusedLoginVault
		}
	})
}

// exitError is a program on a terminal that did not exit with 0.
type exitError struct{ status proxy.Status }

func (e *exitError) Error() string {
	if e.status.ExitCode != nil {
		return fmt.Sprintf("the program ended with code %d", *e.status.ExitCode)
	}
	return "the program was ended by " + cmp.Or(e.status.Signal, "a signal")
}

// waitForTerminal waits until a person is done at the terminal. An exit code of 0 is a success, as the protocol says.
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
