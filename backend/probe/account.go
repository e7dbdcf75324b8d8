package probe

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
)

// Time limits of waiting for an account.
const (
	// An agent that reports its account looks the account up in parallel, from initialize on: Claude allows its own program 5 s.
	accountLimit = 8 * time.Second
	// A session may know the account better than that lookup: an agent that reports no login gets this time to correct itself.
	accountGrace = time.Second
)

// accounts holds the last account that an agent reported.
type accounts struct {
	last atomic.Pointer[acp.Account]
	news chan struct{} // capacity 1
}

// take stores the account of a notification. Other notifications change nothing.
func (s *accounts) take(method string, msg []byte) {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil {
		return
	}
	a, told := acp.ParseAccount(method, m.Params)
	if !told {
		return
	}
	s.last.Store(&a)
	select {
	case s.news <- struct{}{}:
	default: // the waiter reads last anew
	}
}

// Account returns the account that an agent reports; told is false when the agent reports none. initialized, the answer to initialize, says
// whether the agent will report an account, or can be asked for it by auth/status; since is when that answer came.
func (p *Probe) Account(ctx context.Context, initialized json.RawMessage, since time.Time) (a acp.Account, told bool) {
	now := p.accounts.last.Load()
	tells, answers := announced(initialized)
	if now == nil && answers {
		now = p.askAccount(ctx)
	}
	if now == nil && tells {
		now = p.nextAccount(ctx, max(time.Until(since.Add(accountLimit)), accountGrace), func(acp.Account) bool { return true })
	}
	if now != nil && now.SignedOut() {
		now = p.nextAccount(ctx, accountGrace, func(a acp.Account) bool { return !a.SignedOut() })
	}
	if now == nil {
		return acp.Account{}, false
	}
	return *now, true
}

// nextAccount waits up to limit for an account that satisfies will, and returns the last reported account.
func (p *Probe) nextAccount(ctx context.Context, limit time.Duration, will func(acp.Account) bool) *acp.Account {
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

// askAccount asks the agent for its account; nil when the agent tells none.
func (p *Probe) askAccount(ctx context.Context) *acp.Account {
	ctx, cancel := context.WithTimeout(ctx, accountLimit)
	defer cancel()
	result, err := p.Call(ctx, acp.MethodStatus, map[string]any{})
	if err != nil {
		return nil // as of an agent that announces nothing
	}
	if a, told := acp.ParseAuthStatus(result); told {
		return &a
	}
	return nil
}

// announced reports whether the agent announces account notifications, and whether the agent announces that it answers auth/status.
func announced(initialized json.RawMessage) (tells, answers bool) {
	var r struct {
		Capabilities struct {
			Auth struct {
				Status *struct{} `json:"status"`
			} `json:"auth"`
			Meta struct {
				Status *struct{} `json:"authStatus"`
			} `json:"_meta"`
		} `json:"agentCapabilities"`
	}
	if json.Unmarshal(initialized, &r) != nil {
		return false, false
	}
	return r.Capabilities.Meta.Status != nil, r.Capabilities.Auth.Status != nil
}
