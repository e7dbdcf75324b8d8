package rulebook

import (
	"deskhand/backend/record"
	"deskhand/backend/rules"
)

// Rule is an answer that is remembered.
type Rule struct {
	ID        string       `json:"id"`
	Effect    string       `json:"effect" enum:"allow,ask,deny" doc:"Effect of the rule: deny precedes ask, and ask precedes allow, whatever the scopes"`
	Scope     string       `json:"scope" enum:"session,directory,everywhere"`
	Session   string       `json:"session,omitempty" doc:"Session of a rule of scope session"`
	Directory string       `json:"directory,omitempty" doc:"Directory of a rule of scope directory; the rule follows a directory that moves"`
	Place     string       `json:"place,omitempty" doc:"Place of the directory, of a rule of scope directory; absent = local"`
	Kind      string       `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   string       `json:"pattern" doc:"Pattern of the requests that the rule covers; the form depends on the kind. Empty for built-in rules, whose patterns are code"`
	ExpiresAt *record.Time `json:"expiresAt,omitempty"`
	CreatedAt *record.Time `json:"createdAt,omitempty" doc:"Absent for built-in rules"`
	Note      string       `json:"note,omitempty" doc:"A person's note about the rule"`
	Hits      int64        `json:"hits" doc:"Number of requests that the rule has answered; not counted for built-in rules"`
	LastHitAt *record.Time `json:"lastHitAt,omitempty"`
	Builtin   bool         `json:"builtin,omitempty" doc:"The rule always exists and cannot be changed"`
	Text      string       `json:"text" doc:"Description of the covered requests in words"`

	workspace string
}

// NewRule is the content of a rule that a person makes.
type NewRule struct {
	Effect    string       `json:"effect" enum:"allow,ask,deny"`
	Scope     string       `json:"scope" enum:"session,directory,everywhere"`
	Session   string       `json:"session,omitempty" maxLength:"64" doc:"Session of a rule of scope session"`
	Directory string       `json:"directory,omitempty" maxLength:"4096" doc:"Directory of a rule of scope directory: an absolute path that is a working or additional directory of a session"`
	Place     string       `json:"place,omitempty" maxLength:"64" doc:"Place of the directory, of a rule of scope directory; local when absent"`
	Kind      string       `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   string       `json:"pattern" minLength:"1" maxLength:"4096"`
	ExpiresAt *record.Time `json:"expiresAt,omitempty"`
	Note      string       `json:"note,omitempty" maxLength:"1000"`
}

// RulePatch is a change of a rule; a nil field stays.
type RulePatch struct {
	Effect    *string `json:"effect,omitempty" enum:"allow,ask,deny"`
	Scope     *string `json:"scope,omitempty" enum:"session,directory,everywhere"`
	Session   *string `json:"session,omitempty" maxLength:"64"`
	Directory *string `json:"directory,omitempty" maxLength:"4096"`
	Place     *string `json:"place,omitempty" maxLength:"64"`
	Kind      *string `json:"kind,omitempty" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   *string `json:"pattern,omitempty" minLength:"1" maxLength:"4096"`
	ExpiresAt *string `json:"expiresAt,omitempty" maxLength:"40" doc:"RFC 3339; empty = the rule never expires"`
	Note      *string `json:"note,omitempty" maxLength:"1000"`
}

// RuleRemoved is the data of the event that tells of a removed rule.
type RuleRemoved struct {
	ID string `json:"id"`
}

// Remember makes a rule of an answer to a permission. An option that allows makes a rule that allows, an option that rejects a rule that
// denies.
type Remember struct {
	Scope     string       `json:"scope" enum:"session,directory,everywhere"`
	Pattern   string       `json:"pattern,omitempty" maxLength:"4096" doc:"Pattern of the rule; the exact request when absent"`
	ExpiresAt *record.Time `json:"expiresAt,omitempty"`
}

// Filter chooses the rules that apply in a session or a directory; the empty filter chooses all.
type Filter struct{ Session, Directory, Place string }

// The scopes of a rule.
const (
	Session    = "session"
	Directory  = "directory"
	Everywhere = "everywhere"
)

// The types of the events that Config.Publish gets.
const (
	EventUpsert  = "rule.upsert"
	EventRemoved = "rule.removed"
)

// textOf returns the words for a kind and a pattern.
func textOf(kind, pattern string) string {
	verb := map[string]string{
		"execute": "Run", "edit": "Edit", "read": "Read", "delete": "Delete", "move": "Move", "search": "Search", "fetch": "Fetch from", "other": "Use", "any": "Anything by",
	}[kind]
	if pattern == "*" && (kind == "other" || kind == "any") {
		pattern = "any tool"
	}
	return verb + " " + pattern
}

// builtins returns the rules that are always there.
func builtins() []Rule {
	var list []Rule
	for _, b := range rules.Builtins() {
		list = append(list, Rule{ID: b.ID, Effect: string(b.Effect), Scope: Everywhere, Kind: string(b.Kind), Builtin: true, Text: b.Text})
	}
	return list
}

// parsed returns stored rules in the form that package rules judges by. A rule that cannot be read any more is left out. When such a rule
// denies or asks, broken is true, and nothing may be allowed.
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
