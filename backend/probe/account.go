package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
)

// Time limits of waiting for an account.
const (
	// An agent that reports its account looks the account up in parallel, from initialize on: Claude allows its own program 5 s.
	accountLimit = 8 * time.Second
	// A session may know the account better than that lookup: an agent that reports no login gets this time to correct itself.
	accountGrace = time.Second
)

// accountUpdate is a notification, outside the protocol, by which some agents report the signed-in account unasked.
const accountUpdate = "_auth/status_update"

// Account is the account that an agent is signed in with.
type Account struct {
	Kind   string `json:"kind"` // none = signed out
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

// SignedOut reports whether nobody is signed in.
func (a Account) SignedOut() bool { return a.Kind == "none" }

// Words returns the account's text for a person.
func (a Account) Words() string {
	text := cmp.Or(a.Label, a.Kind)
	if a.Detail != "" {
		text += " (" + a.Detail + ")"
	}
	return text
}

// accounts holds the last account that an agent reported.
type accounts struct {
	last atomic.Pointer[Account]
	news chan struct{} // capacity 1
}

// take stores the account of a notification.
func (s *accounts) take(msg []byte) {
	var m struct {
		Params struct {
			Status *Account `json:"authStatus"`
		} `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil || m.Params.Status == nil || m.Params.Status.Kind == "" {
		return
	}
	s.last.Store(m.Params.Status)
	select {
	case s.news <- struct{}{}:
	default: // the waiter reads last anew
	}
}

// Account returns the account that an agent reports; told is false when the agent reports none. initialized, the answer to initialize, says
// whether the agent will report an account; since is when that answer came.
func (p *Probe) Account(ctx context.Context, initialized json.RawMessage, since time.Time) (a Account, told bool) {
	now := p.accounts.last.Load()
	if now == nil && tellsAccount(initialized) {
		now = p.nextAccount(ctx, max(time.Until(since.Add(accountLimit)), accountGrace), func(Account) bool { return true })
	}
	if now != nil && now.SignedOut() {
		now = p.nextAccount(ctx, accountGrace, func(a Account) bool { return !a.SignedOut() })
	}
	if now == nil {
		return Account{}, false
	}
	return *now, true
}

// nextAccount waits up to limit for an account that satisfies will, and returns the last reported account.
func (p *Probe) nextAccount(ctx context.Context, limit time.Duration, will func(Account) bool) *Account {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-p.accounts.news:
			if a := p.accounts.last.Load(); will(*a) {
				return a
			}
		case <-timer.C:
			return p.accounts.last.Load()
		case <-ctx.Done():
			return p.accounts.last.Load()
		}
	}
}

// tellsAccount reports whether the agent announces account notifications.
func tellsAccount(initialized json.RawMessage) bool {
	var r struct {
		Capabilities struct {
			Meta struct {
				Status *struct{} `json:"authStatus"`
			} `json:"_meta"`
		} `json:"agentCapabilities"`
	}
	return json.Unmarshal(initialized, &r) == nil && r.Capabilities.Meta.Status != nil
}
