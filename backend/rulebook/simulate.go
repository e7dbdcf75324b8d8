package rulebook

import (
	"context"
	"slices"
	"strings"

	"deskhand/backend/record"
	"deskhand/backend/rules"
)

// Permission is a stored request for permission, with its session.
type Permission struct {
	Request string
	Title   string
	At      record.Time
	Asked   Asked
	Subject Subject
}

// Simulated is the effect that a rule would have had on the permissions of the past.
type Simulated struct {
	Looked int             `json:"looked" doc:"Number of permissions that were simulated, the newest"`
	Open   bool            `json:"open,omitempty" doc:"The rule allows commands that may run any program: the rule has a * behind a program about which too little is known"`
	Counts SimulatedCounts `json:"counts"`
	Items  []SimulatedItem `json:"items" doc:"Permissions that the rule would decide otherwise than the stored rules, the newest first"`
}

// SimulatedCounts counts the permissions that would be decided otherwise by their new effect, and the rest.
type SimulatedCounts struct {
	Allow     int `json:"allow"`
	Ask       int `json:"ask"`
	Deny      int `json:"deny"`
	Unchanged int `json:"unchanged"`
}

// SimulatedItem is a permission that would be decided otherwise.
type SimulatedItem struct {
	Request      string      `json:"request"`
	Session      string      `json:"session"`
	SessionTitle string      `json:"sessionTitle"`
	Title        string      `json:"title"`
	Command      string      `json:"command,omitempty"`
	Path         string      `json:"path,omitempty"`
	At           record.Time `json:"at"`
	Was          string      `json:"was" enum:"allow,ask,deny" doc:"Effect by the stored rules"`
	Would        string      `json:"would" enum:"allow,ask,deny"`
	By           string      `json:"by,omitempty" doc:"Id of the rule that would decide; absent for the new rule, or when no rule decides"`
}

// Simulate returns the effect that a new rule would have had. replaces is the id of the rule that the new rule would replace, or "".
func (b *Book) Simulate(ctx context.Context, n NewRule, replaces string, limit int) (Simulated, error) {
	rule, err := b.check(ctx, n)
	if err != nil {
		return Simulated{}, err
	}
	if replaces != "" {
		if _, err := b.find(ctx, replaces); err != nil {
			return Simulated{}, err
		}
	}
	list, err := b.cfg.Newest(ctx, limit)
	if err != nil {
		return Simulated{}, err
	}
	all, err := b.query(ctx, "")
	if err != nil {
		return Simulated{}, err
	}
	out := Simulated{Looked: len(list), Open: opens(rule), Items: []SimulatedItem{}}
	for _, p := range list {
		if err := ctx.Err(); err != nil {
			return Simulated{}, err
		}
		b.simulate(&out, p, all, rule, replaces)
	}
	return out, nil
}

// opens reports whether a rule allows commands that may run any program.
func opens(r Rule) bool {
	pattern, err := rules.ParsePattern(rules.Kind(r.Kind), r.Pattern)
	return err == nil && r.Effect == string(rules.Allow) && pattern.Open()
}

func (b *Book) simulate(out *Simulated, p Permission, all []Rule, rule Rule, replaces string) {
	call, where := b.read(p.Asked), p.Subject.Where
	where.Real = nil // the files of then may be other files now
	now := inScope(all, p.Subject)
	then := slices.DeleteFunc(slices.Clone(now), func(r Rule) bool { return r.ID == replaces })
	then = append(then, inScope([]Rule{rule}, p.Subject)...)
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
		Request: p.Request, Session: p.Subject.Session, SessionTitle: p.Subject.Title, Title: p.Title, At: p.At,
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
		item.Command = b.cfg.Shorten(item.Command)
	} else if len(call.Paths) > 0 {
		item.Path = call.Paths[0]
	}
	out.Items = append(out.Items, item)
}

// inScope returns the rules of a list that apply to a subject.
func inScope(list []Rule, s Subject) []Rule {
	var out []Rule
	for _, r := range list {
		if r.Scope == Session && r.Session != s.Session || r.Scope == Directory && r.workspace != s.Workspace {
			continue
		}
		out = append(out, r)
	}
	return out
}

// RuleSuggestions is the rules that an answer to a permission may make.
type RuleSuggestions struct {
	Danger      []string         `json:"danger,omitempty" enum:"disaster,sudo,pipe_to_shell,secrets,outside_root,too_long" doc:"Dangers that a person must see before an approval. With any danger, no rule can allow the request everywhere"`
	Suggestions []RuleSuggestion `json:"suggestions" doc:"Suggested rules, the narrowest first; empty when a person must decide each time"`
}

// RuleSuggestion is a rule that would decide such a request.
type RuleSuggestion struct {
	Scope   string `json:"scope" enum:"session,directory,everywhere"`
	Pattern string `json:"pattern"`
	Kind    string `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Effect  string `json:"effect" enum:"allow,deny"`
	Text    string `json:"text"`
}

// Suggest returns the rules that an answer to a permission may make.
func (b *Book) Suggest(ctx context.Context, request string) (RuleSuggestions, error) {
	p, err := b.cfg.Find(ctx, request)
	if err != nil {
		return RuleSuggestions{}, err
	}
	out := RuleSuggestions{Suggestions: []RuleSuggestion{}}
	if !p.Asked.Told {
		return out, nil
	}
	list, err := b.applying(ctx, p.Subject)
	if err != nil {
		return out, err
	}
	compiled, _ := parsed(list)
	call, where := b.read(p.Asked), p.Subject.Where
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
	for _, scope := range []string{Session, Directory, Everywhere} {
		if scope != Everywhere || everywhere {
			out.Suggestions = append(out.Suggestions, RuleSuggestion{
				Scope: scope, Pattern: s.Pattern, Kind: string(s.Kind), Effect: effect, Text: textOf(string(s.Kind), s.Pattern),
			})
		}
	}
}
