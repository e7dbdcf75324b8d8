package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deskhand/backend/rules"
)

// Remember makes a rule of an answer to a permission. What it does follows the option: one that allows makes a rule that allows, one that
// rejects a rule that denies.
type Remember struct {
	Scope     string `json:"scope" enum:"session,directory,everywhere"`
	Pattern   string `json:"pattern,omitempty" maxLength:"4096" doc:"What the rule is about; this very thing, when it is left out"`
	ExpiresAt *Time  `json:"expiresAt,omitempty"`
}

// beside checks what a person wants beside an answer, and gives what does it once the request has ended. With a rule the answer that goes
// to the agent is the option for once: it is to keep nothing that is not ours to take back.
func (v *conversation) beside(r *openRequest, a *Answer) (func() error, error) {
	after := func() error { return nil }
	if a.Remember == nil && a.Note == "" {
		return after, nil
	}
	if r.Kind != kindPermission {
		return nil, bad("answer.only_permission")
	}
	i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.ID == a.OptionID })
	if i < 0 {
		return after, nil // it is refused for that
	}
	rejects := strings.HasPrefix(r.Options[i].Kind, "reject")
	if a.Note = strings.TrimSpace(a.Note); a.Note != "" {
		if !rejects {
			return nil, bad("answer.note")
		}
		if len(v.state.queue) >= maxQueue {
			return nil, &RefusedError{Code: refusedFull}
		}
		after = func() error { return v.sayAbout(&r.Request, a.Note) }
	}
	if a.Remember == nil {
		return after, nil
	}
	rule, err := v.ruleOf(r, *a.Remember, rejects)
	if err != nil {
		return nil, err
	}
	once := "allow_once"
	if rejects {
		once = "reject_once"
	}
	if id := r.option(once); id != "" {
		a.OptionID = id
	}
	a.Remember = nil
	say := after
	return func() error {
		ruled := v.ruled()
		ruled.made = append(ruled.made, rule)
		return say()
	}, nil
}

// ruleOf is the rule that an answer makes. It has to be about the request: nobody makes another one by this door.
func (v *conversation) ruleOf(r *openRequest, wish Remember, rejects bool) (Rule, error) {
	ctx := context.WithoutCancel(v.c.ctx)
	call, where := v.c.wholeCall(ctx, r.Request, v.step.frames), whereIs(&v.row.Session)
	if call.Choice {
		return Rule{}, bad("rule.choice")
	}
	effect := rules.Allow
	if rejects {
		effect = rules.Deny
	}
	list, err := v.c.rulesOf(ctx, &v.row.Session)
	if err != nil {
		return Rule{}, err
	}
	compiled, _ := parsed(list)
	suggested := rules.Suggest(call, where, effect, compiled)
	kind := mainKind(call)
	if wish.Pattern == "" {
		if len(suggested) == 0 || !suggested[0].Exact {
			return Rule{}, bad("rule.no_pattern")
		}
		wish.Pattern, kind = suggested[0].Pattern, suggested[0].Kind
	} else if i := slices.IndexFunc(suggested, func(s rules.Suggestion) bool { return s.Pattern == wish.Pattern }); i >= 0 {
		kind = suggested[i].Kind
	}
	if dangers := rules.Dangers(call, where); len(dangers) > 0 && effect == rules.Allow && wish.Scope == scopeEverywhere {
		return Rule{}, bad("rule.danger", "danger", strings.Join(dangers, " "))
	}
	pattern, err := rules.ParsePattern(kind, wish.Pattern)
	if err == nil && !rules.Matches(call, where, effect, pattern) {
		return Rule{}, bad("rule.not_covering", "pattern", wish.Pattern)
	}
	n := NewRule{Effect: string(effect), Scope: wish.Scope, Kind: string(kind), Pattern: wish.Pattern, ExpiresAt: wish.ExpiresAt}
	switch wish.Scope {
	case scopeSession:
		n.Session = v.id
	case scopeDirectory:
		n.Directory, n.Place = v.row.Workspace.Path, v.row.Place
	}
	made, err := v.c.newRule(ctx, n)
	if err == nil {
		err = v.c.roomForRule(ctx)
	}
	return made, err
}

// mainKind is what a pattern for the call is of.
func mainKind(call rules.Call) rules.Kind {
	switch {
	case len(call.Commands) > 0:
		return rules.Execute
	case len(call.Hosts) > 0:
		return rules.Fetch
	}
	return call.Kind
}

// sayAbout sends a person's words about what was rejected: ACP has no place for them in the answer. An agent that takes messages within a
// turn gets them there; else they are the next prompt, before what waits already.
func (v *conversation) sayAbout(r *Request, words string) error {
	message := fmt.Sprintf("I rejected “%s”: %s", r.Title, words)
	draft := v.row.Draft // what stands in the composer is something else
	defer func() { v.row.Draft = draft }()
	if v.state.base == Working && slices.Contains(v.row.Offers, offerSteer) {
		_, err := v.steer(said{text: message})
		return err
	}
	sent, err := v.enqueue(said{text: message}, func(item string) command { return doQueue{item: item} })
	if err == nil && sent.QueueItem != nil {
		v.do(doMove{sent.QueueItem.ID, 0})
	}
	return err
}
