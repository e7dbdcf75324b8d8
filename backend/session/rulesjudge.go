package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/permission"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
	"deskhand/backend/rules"
	"deskhand/backend/transcript"
)

// A permission is judged in the step in which the permission is asked for. A permission that a rule answers never waits: the answer, the entry
// that tells of the answer and the count of the rule are written in the same step. Permissions that wait are judged again when a rule is made
// or changed.

// answeredByRule is the surface of answers that a rule has given.
const answeredByRule = "rule"

// subjectOf returns a session as the rules see it.
func subjectOf(s *Session) rulebook.Subject {
	w := rules.Where{Directory: s.Cwd, Roots: s.Directories}
	if s.Place == host.Local {
		home, err := os.UserHomeDir()
		if err == nil {
			w.Home = home
		}
		w.Real, w.Windows = rules.Real, runtime.GOOS == "windows"
	}
	return rulebook.Subject{Session: s.ID, Title: s.Title, Workspace: s.Workspace.ID, Path: s.Workspace.Path, Place: s.Place, Where: w}
}

func (v *conversation) subject() rulebook.Subject { return subjectOf(&v.row.Session) }

// askedOf returns the tool call of a permission as far as the record of the permission holds the call.
func askedOf(r *requests.Request) rulebook.Asked {
	if r.Kind != requests.KindPermission || r.Tool == nil {
		return rulebook.Asked{}
	}
	return rulebook.Asked{Call: r.Call(), Name: r.Tool.Name, Told: true, Choice: r.IsChoice(), Clipped: r.Clipped}
}

// askedWhole returns the whole tool call of a permission. Where the rest of a long call cannot be read, the call counts as clipped, so that only a
// person allows the permission.
func (b *inbox) askedWhole(ctx context.Context, r *requests.Pending) rulebook.Asked {
	whole, _ := b.v.c.WholeRequest(ctx, r.Request, b.v.step.frames...) // with an error whole stays clipped
	return askedOf(&whole)
}

// decision is the answer of the rules to a request, and the option of the agent that gives this answer once.
type decision struct {
	*rulebook.Decision

	option string
	status string
}

// decided returns the answer of the rules to a request, or nil when a person is asked. A person is also asked when the agent offers no option
// for once.
func (b *inbox) decided(r *requests.Pending) *decision {
	if r.Kind != requests.KindPermission || r.AgentID == nil {
		return nil
	}
	ctx := b.v.c.lasting()
	judged := b.v.c.rules.Decide(ctx, b.v.subject(), b.askedWhole(ctx, r))
	if judged == nil {
		return nil
	}
	d := &decision{judged, r.Option(permission.AllowOnce), lifecycle.StatusAnswered}
	if !judged.Allows {
		d.option, d.status = r.Option(permission.RejectOnce), lifecycle.StatusRejected
	}
	if d.option == "" {
		return nil
	}
	return d
}

// denies returns the rule that denies a program which the agent has Deskhand run, or nil when no rule does.
func (b *inbox) denies(command string, args []string, dir *string) *rulebook.Rule {
	d := b.v.c.rules.Denies(b.v.c.lasting(), b.v.subject(), command, args, dir)
	if d == nil {
		return nil
	}
	b.v.ruled().Hit(d)
	b.v.note(transcript.Note{Note: transcript.NoteRuled, Rule: &transcript.RuleAnswer{
		ID: d.Rule.ID, Effect: d.Rule.Effect, Scope: d.Rule.Scope, Text: d.Rule.Text, Title: transcript.Clip(strings.Join(append([]string{command}, args...), " "), 1000), Builtin: d.Rule.Builtin,
	}})
	return &d.Rule
}

// answerBy answers a request that waits by a decision, unless the decision is nil; unread is the session's mark from before the request.
func (b *inbox) answerBy(r *requests.Pending, d *decision, unread bool) {
	if d == nil || b.open[r.ID] != r {
		return
	}
	rule := d.Rule
	r.Rule = &requests.Rule{ID: rule.ID, Effect: rule.Effect, Text: rule.Text}
	r.Answer, r.AnsweredBy = b.v.c.secret.Message(mustJSON(requests.Answer{OptionID: d.option})), answeredByRule
	b.v.ruled().Hit(d.Decision)
	b.v.out(acp.NewResponse(r.AgentID, r.Selected(d.option)))
	b.v.note(transcript.Note{Note: transcript.NoteRuled, Rule: &transcript.RuleAnswer{
		ID: rule.ID, Effect: rule.Effect, Scope: rule.Scope, Text: rule.Text, Request: r.ID, Title: r.Title, OptionID: d.option, Builtin: rule.Builtin,
	}})
	b.v.do(lifecycle.Resolve{Request: r.ID, Status: d.status})
	b.v.row.Unread = unread
}

// judgeWaiting judges all waiting permissions again, the oldest first.
func (b *inbox) judgeWaiting() {
	list := b.waiting()
	slices.SortFunc(list, func(a, b *requests.Pending) int { return strings.Compare(a.ID, b.ID) })
	for _, r := range list {
		b.answerBy(r, b.decided(r), b.v.row.Unread)
	}
}

// ruled returns the rules that the step makes and uses, which are stored with the step.
func (v *conversation) ruled() *rulebook.Uses {
	if v.step.ruled == nil {
		uses := v.c.rules.Uses()
		v.step.ruled = uses
		v.step.writes = append(v.step.writes, uses.Write)
		v.step.after = append(v.step.after, func() { uses.Publish(v.c.ctx) })
	}
	return v.step.ruled
}

// beside checks the rule and the note of an answer, and returns a function that applies them once the request has ended. With a rule the
// answer that goes to the agent is the option for once, because the agent is to keep nothing that a person cannot take back here.
func (b *inbox) beside(ctx context.Context, r *requests.Pending, a *requests.Answer) (func() error, error) {
	after := func() error { return nil }
	if a.Remember == nil && a.Note == "" {
		return after, nil
	}
	if r.Kind != requests.KindPermission {
		return nil, bad("answer.only_permission")
	}
	i := slices.IndexFunc(r.Options, func(o requests.Option) bool { return o.ID == a.OptionID })
	if i < 0 {
		return after, nil // respond refuses the unknown option
	}
	rejects := strings.HasPrefix(r.Options[i].Kind, "reject")
	if a.Note = strings.TrimSpace(a.Note); a.Note != "" {
		if !rejects {
			return nil, bad("answer.note")
		}
		if len(b.v.state.Queue) >= lifecycle.MaxQueue {
			return nil, &RefusedError{Code: lifecycle.RefusedFull}
		}
		after = func() error { return b.sayAbout(&r.Request, a.Note) }
	}
	if a.Remember == nil {
		return after, nil
	}
	ctx = context.WithoutCancel(ctx)
	rule, err := b.v.c.rules.Make(ctx, b.v.subject(), b.askedWhole(ctx, r), *a.Remember, rejects)
	if err != nil {
		return nil, err
	}
	once := "allow_once"
	if rejects {
		once = "reject_once"
	}
	if id := r.Option(once); id != "" {
		a.OptionID = id
	}
	a.Remember = nil
	say := after
	return func() error {
		b.v.ruled().Add(rule)
		return say()
	}, nil
}

// sayAbout sends a person's words about a rejected request: ACP has no place for words in the answer. An agent that takes messages within a
// turn gets the words there; else the words are the next prompt, before the prompts that wait already.
func (b *inbox) sayAbout(r *requests.Request, words string) error {
	message := fmt.Sprintf("I rejected “%s”: %s", r.Title, words)
	draft := b.v.row.Draft // the text in the composer stays
	defer func() { b.v.row.Draft = draft }()
	if b.v.state.Base == lifecycle.Working && slices.Contains(b.v.row.Offers, transcript.OfferSteer) {
		_, err := b.v.prompts.steer(said{text: message})
		return err
	}
	sent, err := b.v.prompts.enqueue(said{text: message}, func(item string) lifecycle.Command { return lifecycle.Queue{Item: item} })
	if err == nil && sent.QueueItem != nil {
		b.v.do(lifecycle.Move{Item: sent.QueueItem.ID, To: 0})
	}
	return err
}
