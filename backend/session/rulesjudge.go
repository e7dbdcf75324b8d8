package session

import (
	"context"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/rules"
)

// A permission is judged in the step in which it is asked for: one that a rule answers never waits, and its answer, the line that tells
// of it and the count of the rule are written with it. One that waits already is judged again when a rule is made or changed.

// answeredByRule stands where else a surface does.
const answeredByRule = "rule"

// RequestRule is the rule that has answered a request.
type RequestRule struct {
	ID     string `json:"id"`
	Effect string `json:"effect" enum:"allow,deny"`
	Text   string `json:"text"`
}

// RuleAnswer is the data of an entry of kind rule: an answer that nobody was asked for.
type RuleAnswer struct {
	ID       string `json:"id" doc:"The rule; it may be gone. Taking the answer's reason back is removing it"`
	Effect   string `json:"effect" enum:"allow,deny"`
	Scope    string `json:"scope" enum:"session,directory,everywhere"`
	Text     string `json:"text"`
	Request  string `json:"request" doc:"Empty where nothing was asked: the agent wanted a program to be run that a rule denies"`
	Title    string `json:"title" doc:"Of the request, or the command"`
	OptionID string `json:"optionId" doc:"The agent's option that was answered; empty without a request"`
	Builtin  bool   `json:"builtin,omitempty" doc:"The rule cannot be removed"`
}

// whereIs is where a session works, for its rules.
func whereIs(s *Session) rules.Where {
	w := rules.Where{Directory: s.Cwd, Roots: s.Directories}
	if s.Place == LocalPlace {
		home, err := os.UserHomeDir()
		if err == nil {
			w.Home = home
		}
		w.Real, w.Windows = rules.Real, runtime.GOOS == "windows"
	}
	return w
}

// rulesOf are the rules that apply in a session now, the narrowest first.
func (c *Client) rulesOf(ctx context.Context, s *Session) ([]Rule, error) {
	return query(ctx, c.cfg.Store.Read(), scanRule, `SELECT `+ruleColumns+ruleFrom+
		` AND (r.scope = 'everywhere' OR r.session = ? OR r.workspace = ?)`+ruleOrder, millis(time.Now()), s.ID, s.Workspace.ID)
}

// parsed are the rules as package rules wants them. One that cannot be read any more is as good as none, unless it denies or asks: then
// nothing is allowed.
func parsed(list []Rule) (out []rules.Rule, broken bool) {
	for _, r := range list {
		p, err := rules.ParsePattern(rules.Kind(r.Kind), r.Pattern)
		if err != nil {
			broken = broken || r.Effect != string(rules.Allow)
			continue
		}
		out = append(out, rules.Rule{ID: r.ID, Effect: rules.Effect(r.Effect), Pattern: p})
	}
	return out, broken
}

// decision is a rule and how it answers a request.
type decision struct {
	rule   Rule
	used   []string // the rules that count as hit
	option string   // the agent's
	status string
}

// decided is what the rules have for a request; nil = a person is asked. It is for once: where the agent has no such option, a person is.
func (v *conversation) decided(r *openRequest) *decision {
	if r.Kind != kindPermission || r.id == nil {
		return nil
	}
	ctx := context.WithoutCancel(v.c.ctx)
	list, err := v.c.rulesOf(ctx, &v.row.Session)
	if err != nil {
		v.c.cfg.Logger.Error("rules cannot be read", "session", v.id, "error", err)
		return nil
	}
	compiled, broken := parsed(list)
	verdict := rules.Judge(v.c.wholeCall(ctx, r.Request, v.step.frames), whereIs(&v.row.Session), compiled)
	if verdict.Why != rules.ByRule || verdict.Effect == rules.Ask || verdict.Effect == rules.Allow && broken {
		return nil
	}
	d := &decision{used: verdict.Used, option: r.option("allow_once"), status: statusAnswered}
	if verdict.Effect == rules.Deny {
		d.option, d.status = r.option("reject_once"), statusRejected
		d.used = append([]string{verdict.Rule}, verdict.Used...)
	}
	all := append(slices.Clone(list), builtinRules()...)
	i := slices.IndexFunc(all, func(rule Rule) bool { return rule.ID == verdict.Rule })
	if d.option == "" || i < 0 {
		return nil
	}
	d.rule = all[i]
	return d
}

// denies is the rule that denies a program which the agent has us run, nil where none does. Whether a command without arguments is a program
// or a line for a shell is seen only when it starts, so it is judged as both. Nobody is asked here: an agent asks before it comes with this.
func (v *conversation) denies(command string, args []string, dir *string) *Rule {
	list, err := v.c.rulesOf(context.WithoutCancel(v.c.ctx), &v.row.Session)
	if err != nil {
		v.c.cfg.Logger.Error("rules cannot be read", "session", v.id, "error", err)
	}
	call := rules.Call{Kind: rules.Execute, Commands: []rules.Command{{Argv: append([]string{command}, args...)}}}
	if len(args) == 0 {
		call.Commands = append(call.Commands, rules.Command{Line: command})
	}
	if dir != nil {
		call.Dir = *dir
	}
	compiled, _ := parsed(list)
	verdict := rules.Judge(call, whereIs(&v.row.Session), compiled)
	all := append(list, builtinRules()...)
	i := slices.IndexFunc(all, func(rule Rule) bool { return rule.ID == verdict.Rule })
	if verdict.Effect != rules.Deny || i < 0 {
		return nil
	}
	rule := all[i]
	v.ruled().hits = append(v.ruled().hits, rule.ID)
	v.note(note{Note: noteRuled, Rule: &RuleAnswer{
		ID: rule.ID, Effect: rule.Effect, Scope: rule.Scope, Text: rule.Text, Title: clipTo(strings.Join(append([]string{command}, args...), " "), 1000), Builtin: rule.Builtin,
	}})
	return &rule
}

// answerBy answers a request that waits as it was decided, if it was; unread is what the session was before it.
func (v *conversation) answerBy(r *openRequest, d *decision, unread bool) {
	if d == nil || v.requests[r.ID] != r {
		return
	}
	rule := d.rule
	r.Rule = &RequestRule{ID: rule.ID, Effect: rule.Effect, Text: rule.Text}
	r.Answer, r.AnsweredBy = v.c.secret.redact(mustJSON(Answer{OptionID: d.option})), answeredByRule
	v.ruled().hits = append(v.ruled().hits, d.used...)
	v.out(acp.NewResponse(r.id, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": d.option}}))
	v.note(note{Note: noteRuled, Rule: &RuleAnswer{
		ID: rule.ID, Effect: rule.Effect, Scope: rule.Scope, Text: rule.Text, Request: r.ID, Title: r.Title, OptionID: d.option, Builtin: rule.Builtin,
	}})
	v.do(doResolve{r.ID, d.status})
	v.row.Unread = unread
}

// option is the id of the first option of a kind, "" where there is none.
func (r *Request) option(kind string) string {
	i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.Kind == kind })
	if i < 0 {
		return ""
	}
	return r.Options[i].ID
}

// judgeAgain has every conversation that waits look at its requests by the rules that there are now.
func (c *Client) judgeAgain() {
	c.mu.Lock()
	live := slices.Collect(maps.Values(c.live))
	c.mu.Unlock()
	for _, v := range live { // whether it waits is shown after it is stored, so that is no reason to pass one over
		c.background(func() { v.post(v.judgeWaiting) })
	}
}

func (v *conversation) judgeWaiting() {
	list := v.waiting()
	slices.SortFunc(list, func(a, b *openRequest) int { return strings.Compare(a.ID, b.ID) })
	for _, r := range list {
		v.answerBy(r, v.decided(r), v.row.Unread)
	}
}

// ruled is what a step has to do with rules.
type ruled struct {
	made []Rule   // of answers
	hits []string // the ids of the rules that have answered
}

// ruled returns what the step has to do with rules, which it writes and tells of.
func (v *conversation) ruled() *ruled {
	if v.step.ruled == nil {
		r := &ruled{}
		v.step.ruled = r
		v.step.writes = append(v.step.writes, r.write)
		v.step.after = append(v.step.after, func() { v.c.tellRuled(r) })
	}
	return v.step.ruled
}

// write stores the rules, and counts the answers.
func (s *ruled) write(ctx context.Context, tx *sql.Tx) error {
	for _, r := range s.made {
		if err := saveRule(ctx, tx, r); err != nil {
			return err
		}
	}
	now := millis(time.Now())
	for _, id := range s.hits {
		if _, err := tx.ExecContext(ctx, `UPDATE rule SET hits = hits + 1, last_hit_at = ? WHERE id = ?`, now, id); err != nil {
			return err
		}
	}
	return nil
}

// tellRuled tells of the rules of a step that was written.
func (c *Client) tellRuled(s *ruled) {
	ids := slices.Clone(s.hits)
	for _, r := range s.made {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	ctx := context.WithoutCancel(c.ctx)
	list, err := query(ctx, c.cfg.Store.Read(), scanRule, `SELECT `+ruleColumns+ruleFrom+` AND r.id IN (SELECT value FROM json_each(?))`,
		millis(time.Now()), string(mustJSON(slices.Compact(ids))))
	if err != nil {
		c.cfg.Logger.Error("rules cannot be read", "error", err)
	}
	for _, r := range list {
		c.feed.publish(Event{Type: eventRule, Data: mustJSON(r)})
	}
	if len(s.made) > 0 {
		c.judgeAgain()
	}
}

// sameDirectory is for what agents name beside a command: where it runs.
func sameDirectory(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
