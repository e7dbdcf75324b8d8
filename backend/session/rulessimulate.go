package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"deskhand/backend/rules"
)

// Simulated is what a rule would have decided of the permissions that were asked for.
type Simulated struct {
	Looked int             `json:"looked" doc:"How many permissions were looked at, the newest"`
	Open   bool            `json:"open,omitempty" doc:"The rule allows commands that may run any program: it has a * behind one of which too little is known"`
	Counts SimulatedCounts `json:"counts"`
	Items  []SimulatedItem `json:"items" doc:"Those that would be decided otherwise than by the rules that there are, the newest first"`
}

// SimulatedCounts counts what would be decided otherwise, by what it would be, and what would stay.
type SimulatedCounts struct {
	Allow     int `json:"allow"`
	Ask       int `json:"ask"`
	Deny      int `json:"deny"`
	Unchanged int `json:"unchanged"`
}

// SimulatedItem is one of these permissions.
type SimulatedItem struct {
	Request      string `json:"request"`
	Session      string `json:"session"`
	SessionTitle string `json:"sessionTitle"`
	Title        string `json:"title"`
	Command      string `json:"command,omitempty"`
	Path         string `json:"path,omitempty"`
	At           Time   `json:"at"`
	Was          string `json:"was" enum:"allow,ask,deny" doc:"By the rules that there are"`
	Would        string `json:"would" enum:"allow,ask,deny"`
	By           string `json:"by,omitempty" doc:"The rule that would decide; absent when it is the new one, or none"`
}

// asked is a stored permission with its session.
type askedBefore struct {
	request Request
	session Session
}

// Simulate tells what a rule would have decided. replaces is the rule that it is a change of; "" = it is a new one.
func (c *Client) Simulate(ctx context.Context, n NewRule, replaces string, limit int) (Simulated, error) {
	rule, err := c.newRule(ctx, n)
	if err != nil {
		return Simulated{}, err
	}
	if replaces != "" {
		if _, err := c.rule(ctx, replaces); err != nil {
			return Simulated{}, err
		}
	}
	list, err := c.permissions(ctx, limit)
	if err != nil {
		return Simulated{}, err
	}
	all, err := query(ctx, c.cfg.Store.Read(), scanRule, `SELECT `+ruleColumns+ruleFrom+ruleOrder, millis(time.Now()))
	if err != nil {
		return Simulated{}, err
	}
	out := Simulated{Looked: len(list), Open: opens(rule), Items: []SimulatedItem{}}
	for _, a := range list {
		if err := ctx.Err(); err != nil {
			return Simulated{}, err
		}
		out.look(a, all, rule, replaces)
	}
	return out, nil
}

// opens tells of a rule that allows commands which may run any program.
func opens(r Rule) bool {
	pattern, err := rules.ParsePattern(rules.Kind(r.Kind), r.Pattern)
	return err == nil && r.Effect == string(rules.Allow) && pattern.Open()
}

func (out *Simulated) look(a askedBefore, all []Rule, rule Rule, replaces string) {
	call, where := callOf(&a.request), whereIs(&a.session)
	where.Real = nil // what was there then may be another thing now
	now := inScope(all, &a.session)
	then := slices.DeleteFunc(slices.Clone(now), func(r Rule) bool { return r.ID == replaces })
	then = append(then, inScope([]Rule{rule}, &a.session)...)
	was, would := verdictOf(call, where, now), verdictOf(call, where, then)
	if was.Effect == would.Effect {
		out.Counts.Unchanged++
		return
	}
	switch would.Effect {
	case rules.Allow:
		out.Counts.Allow++
	case rules.Deny:
		out.Counts.Deny++
	default:
		out.Counts.Ask++
	}
	item := SimulatedItem{
		Request: a.request.ID, Session: a.session.ID, SessionTitle: a.session.Title, Title: a.request.Title, At: a.request.CreatedAt,
		Was: string(was.Effect), Would: string(would.Effect), By: would.Rule,
	}
	if item.By == rule.ID {
		item.By = ""
	}
	if len(call.Commands) > 0 {
		item.Command = call.Commands[0].Line
		if item.Command == "" {
			item.Command = strings.Join(call.Commands[0].Argv, " ")
		}
		item.Command = clipString(item.Command)
	} else if len(call.Paths) > 0 {
		item.Path = call.Paths[0]
	}
	out.Items = append(out.Items, item)
}

func verdictOf(call rules.Call, where rules.Where, list []Rule) rules.Verdict {
	compiled, _ := parsed(list)
	return rules.Judge(call, where, compiled)
}

// inScope are the rules that apply in a session.
func inScope(list []Rule, s *Session) []Rule {
	var out []Rule
	for _, r := range list {
		switch r.Scope {
		case scopeSession:
			if r.Session != s.ID {
				continue
			}
		case scopeDirectory:
			if r.workspace != s.Workspace.ID {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// permissions are the newest permissions that are stored, of sessions that are there.
func (c *Client) permissions(ctx context.Context, limit int) ([]askedBefore, error) {
	requests, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT r.data FROM request r JOIN session s ON s.id = r.session
		WHERE s.deleted_at = 0 AND `+storedKind+` = 'permission' ORDER BY r.created_at DESC, r.id DESC LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	known := map[string]*Session{}
	list := make([]askedBefore, 0, len(requests))
	for _, r := range requests {
		s := known[r.Session]
		if s == nil {
			rows, err := query(ctx, c.cfg.Store.Read(), scanSession, "SELECT "+sessionColumns+sessionFrom+"WHERE s.id = ?", r.Session)
			if err != nil {
				return nil, err
			}
			if len(rows) == 0 {
				continue
			}
			s = &rows[0].Session
			known[r.Session] = s
		}
		list = append(list, askedBefore{r, *s})
	}
	return list, nil
}

// RuleSuggestions is what may be remembered of an answer to a permission.
type RuleSuggestions struct {
	Danger      []string         `json:"danger,omitempty" enum:"disaster,sudo,pipe_to_shell,secrets,outside_root,too_long" doc:"What to show before it is allowed. With any, nothing is allowed everywhere"`
	Suggestions []RuleSuggestion `json:"suggestions" doc:"The narrowest first; empty where a person has to look each time"`
}

// RuleSuggestion is one rule that would decide such a request.
type RuleSuggestion struct {
	Scope   string `json:"scope" enum:"session,directory,everywhere"`
	Pattern string `json:"pattern"`
	Kind    string `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Effect  string `json:"effect" enum:"allow,deny"`
	Text    string `json:"text"`
}

// SuggestRules tells what may be remembered of an answer to a permission.
func (c *Client) SuggestRules(ctx context.Context, request string) (RuleSuggestions, error) {
	found, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, request)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("request %s: %w", request, ErrNotFound)
	}
	if err != nil {
		return RuleSuggestions{}, err
	}
	out := RuleSuggestions{Suggestions: []RuleSuggestion{}}
	r := found[0]
	if r.Kind != kindPermission || r.Tool == nil {
		return out, nil
	}
	s, err := c.Get(ctx, r.Session)
	if err != nil {
		return out, err
	}
	list, err := c.rulesOf(ctx, &s)
	if err != nil {
		return out, err
	}
	compiled, _ := parsed(list)
	call, where := c.wholeCall(ctx, r, nil), whereIs(&s)
	out.Danger = rules.Dangers(call, where)
	for _, suggestion := range rules.Suggest(call, where, rules.Allow, compiled) {
		out.offer("allow", suggestion, len(out.Danger) == 0)
	}
	for _, suggestion := range rules.Suggest(call, where, rules.Deny, compiled) {
		out.offer("deny", suggestion, true)
	}
	return out, nil
}

func (out *RuleSuggestions) offer(effect string, s rules.Suggestion, everywhere bool) {
	for _, scope := range []string{scopeSession, scopeDirectory, scopeEverywhere} {
		if scope != scopeEverywhere || everywhere {
			out.Suggestions = append(out.Suggestions, RuleSuggestion{
				Scope: scope, Pattern: s.Pattern, Kind: string(s.Kind), Effect: effect, Text: ruleText(string(s.Kind), s.Pattern),
			})
		}
	}
}
