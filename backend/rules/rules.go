// Package rules decides, from remembered answers, what may be done that an agent asks for. It hides how a command is taken apart and
// how a path is compared: who calls it says what is asked for, where, and which rules there are, and gets a verdict with its reason.
//
// What is asked for is made of parts: the commands of a line, the files that it writes to by a redirection, the paths of an edit. A
// rule is about one part. A rule that denies decides when it matches any part, also one within a wrapper such as sudo or sh -c; then
// one that asks; and it is allowed only when each part is proven to be what some rule allows. Deny goes before ask and ask before allow,
// wherever the rules come from. What cannot be proven (a variable, a substitution, an option that starts another program) is asked.
//
// The package reads no database and starts nothing. It looks at the file system only to follow links, and only through Where.Real.
// What it says is as true as what the agent says: an agent that runs something else than it has asked for is not held by it.
package rules

import (
	"slices"
	"strings"
)

// Effect is what a rule, or a verdict, comes to.
type Effect string

// The effects. Ask is also the verdict when no rule has anything to say.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// Kind is what is to be done, by the kinds of ACP's tool calls. Any is of rules alone.
type Kind string

// The kinds.
const (
	Execute Kind = "execute"
	Edit    Kind = "edit"
	Read    Kind = "read"
	Delete  Kind = "delete"
	Move    Kind = "move"
	Search  Kind = "search"
	Fetch   Kind = "fetch"
	Other   Kind = "other"
	Any     Kind = "any"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Execute, Edit, Read, Delete, Move, Search, Fetch, Other, Any}
}

// Rule is one remembered answer.
type Rule struct {
	ID      string
	Effect  Effect
	Pattern Pattern
}

// Command is what would be run: a line for a shell, or the arguments of a program.
type Command struct {
	Line string
	Argv []string // nil = Line
}

// Call is what an agent asks for. Everything that it names would be done: all of it has to be allowed.
type Call struct {
	Kind     Kind   // of Paths and Tool; commands are Execute, and hosts Fetch, whatever it says
	Tool     string // the tool's own name, as far as it is known
	Commands []Command
	Paths    []string // as they were told: relative ones are in Where.Directory
	Hosts    []string
	Dir      string // where the commands run, when the agent says so

	// Choice is a question that only looks like a permission: nothing answers it but a person.
	Choice bool
	// Doubt is why it cannot be allowed, whatever the rules say; "" = there is none.
	Doubt string
}

// Where is the place of a call. The directories are absolute.
type Where struct {
	Directory string
	Roots     []string // further directories in which it works
	Home      string   // "" = not known, as on another machine
	Windows   bool     // commands may be read by its shells, and names by its file systems

	// Real follows the links in a path of which not all need be there; nil = paths are taken as they are written.
	Real func(path string) string
}

// Why a verdict is what it is.
const (
	ByRule    = "rule"
	NoRule    = "no_rule"    // no rule says anything of a part of it
	NotProven = "not_proven" // Detail tells what could not be
	IsChoice  = "choice"     // it is a question
)

// Verdict is what the rules come to.
type Verdict struct {
	Effect Effect
	Why    string
	Detail string   // of not_proven: a code such as variable; of no_rule the part
	Rule   string   // the id of the rule that decided, where one did
	Used   []string // the ids of all rules that an allowance is made of
}

// Judge decides. Rules are tried in their order: the first that fits is named.
func Judge(call Call, where Where, list []Rule) Verdict {
	if call.Choice {
		return Verdict{Effect: Ask, Why: IsChoice}
	}
	r := read(call, where)
	if v, decided := r.forbidden(list); decided {
		return v
	}
	if len(r.doubts) > 0 {
		return Verdict{Effect: Ask, Why: NotProven, Detail: r.doubts[0]}
	}
	v := Verdict{Effect: Allow, Why: ByRule}
	for _, p := range r.parts {
		used, why := r.allowed(p, list)
		if why != "" {
			if why == NoRule {
				return Verdict{Effect: Ask, Why: NoRule, Detail: p.String()}
			}
			return Verdict{Effect: Ask, Why: NotProven, Detail: why}
		}
		v.Used = append(v.Used, used...)
	}
	if len(v.Used) == 0 { // nothing but what does nothing
		return Verdict{Effect: Ask, Why: NoRule}
	}
	v.Rule = v.Used[0]
	slices.Sort(v.Used)
	v.Used = slices.Compact(v.Used)
	return v
}

// forbidden looks for a rule that denies, then for one that asks.
func (r *reading) forbidden(list []Rule) (Verdict, bool) {
	var found Verdict
	ask := func(v Verdict) {
		if found.Effect == "" {
			found = v
		}
	}
	for p := range r.all {
		if code := r.disaster(p); code != "" {
			return Verdict{Effect: Deny, Why: ByRule, Rule: builtinPrefix + code}, true
		}
		for _, rule := range list {
			sure, maybe := r.concerns(p, rule.Pattern)
			switch {
			case rule.Effect == Deny && sure:
				return Verdict{Effect: Deny, Why: ByRule, Rule: rule.ID}, true
			case rule.Effect == Ask && sure:
				ask(Verdict{Effect: Ask, Why: ByRule, Rule: rule.ID})
			case rule.Effect != Allow && maybe:
				ask(Verdict{Effect: Ask, Why: NotProven, Detail: "maybe_" + string(rule.Effect), Rule: rule.ID})
			}
		}
		if code := r.delicate(p); code != "" {
			ask(Verdict{Effect: Ask, Why: ByRule, Rule: builtinPrefix + code})
		}
	}
	return found, found.Effect != ""
}

// allowed tells by which rules the part is allowed, else why it is not: a doubt, or that there is no rule.
func (r *reading) allowed(p *part, list []Rule) (used []string, why string) {
	if p.doubt != "" {
		return nil, p.doubt
	}
	if p.harmless {
		return nil, ""
	}
	why = NoRule
	for _, rule := range list {
		if rule.Effect != Allow {
			continue
		}
		fits, doubt := r.covers(p, rule.Pattern)
		if fits {
			return []string{rule.ID}, ""
		}
		if doubt != "" {
			why = doubt
		}
	}
	switch {
	case p.says:
		return nil, ""
	case !p.through || len(p.within) == 0:
		return nil, why
	}
	return r.allowedWithin(p, list)
}

// allowedWithin tells by which rules all that the part runs is allowed.
func (r *reading) allowedWithin(p *part, list []Rule) (used []string, why string) {
	for _, inner := range p.within {
		more, why := r.allowed(inner, list)
		if why != "" {
			return nil, why
		}
		used = append(used, more...)
	}
	return used, ""
}

// Matches tells whether a rule of this pattern is about any part of the call: for one that allows, that it covers it.
func Matches(call Call, where Where, effect Effect, pattern Pattern) bool {
	r := read(call, where)
	for p := range r.all {
		if effect == Allow {
			if fits, _ := r.covers(p, pattern); fits {
				return true
			}
			continue
		}
		if sure, _ := r.concerns(p, pattern); sure {
			return true
		}
	}
	return false
}

// Danger codes.
const (
	DangerOutside  = "outside_root"
	DangerSudo     = "sudo"
	DangerPipe     = "pipe_to_shell"
	DangerSecrets  = "secrets"
	DangerDisaster = "disaster"
	DangerLong     = "too_long" // it was not looked through for the others to its end
)

// Dangers are the codes of what a person should see before the call is allowed, and most of all before it is allowed for good.
func Dangers(call Call, where Where) []string {
	r := readWithin(call, where, limits{command: maxLooked, parts: maxLookedParts})
	found := map[string]bool{DangerLong: r.budget < 0 || slices.Contains(r.doubts, "too_long")}
	for p := range r.all {
		if r.disaster(p) != "" {
			found[DangerDisaster] = true
		}
		if p.privileged {
			found[DangerSudo] = true
		}
		if p.fed {
			found[DangerPipe] = true
		}
		if r.outsidePart(p) {
			found[DangerOutside] = true
		}
		if r.secretPart(p) {
			found[DangerSecrets] = true
		}
	}
	var codes []string
	for _, code := range []string{DangerDisaster, DangerSudo, DangerPipe, DangerSecrets, DangerOutside, DangerLong} {
		if found[code] {
			codes = append(codes, code)
		}
	}
	return codes
}

// part is one thing that a call would do.
type part struct {
	kind   Kind
	words  []word // of a command
	target string // a path as it was told, a host, or a tool's name
	doubt  string // why it cannot be allowed

	within     []*part // of a command that runs others: these
	through    bool    // allowed where all that is within is
	fixed      int     // how many words a pattern must spell, so that it names what is run within
	privileged bool    // sudo and its like
	fed        bool    // a shell, or another interpreter, that runs what is written to it
	harmless   bool    // does nothing outside of its shell
	says       bool    // does no more than write a text that stands beside it
}

func (p *part) String() string {
	if p.kind != Execute {
		return p.target
	}
	list := make([]string, len(p.words))
	for i, w := range p.words {
		list[i] = quote(w.text)
	}
	return strings.Join(list, " ")
}

// reading is a call, taken apart.
type reading struct {
	where  Where
	dirs   []string // the directories that a relative path may be in
	parts  []*part
	doubts []string
	limits limits
	budget int    // how many parts there may still be
	source string // the script that is taken apart
}

const (
	maxParts   = 200
	maxDepth   = 6       // of commands in commands
	maxCommand = 8 << 10 // bytes; no rule allows a longer one, which nobody reads
	maxOpened  = 400     // brackets in it: the parser takes its time with what is nested
	maxWords   = 300     // of one command
	maxPaths   = 1000
	maxDirs    = 8
)

// What is looked through for dangers: a person decides about long commands too.
const (
	maxLooked      = 128 << 10
	maxLookedParts = 10_000
)

// limits are how much of a call is taken apart.
type limits struct {
	command int // bytes
	parts   int
}

func read(call Call, where Where) *reading {
	return readWithin(call, where, limits{command: maxCommand, parts: maxParts})
}

func readWithin(call Call, where Where, most limits) *reading {
	r := &reading{where: where, dirs: []string{where.clean(where.Directory)}, limits: most, budget: most.parts}
	if call.Doubt != "" {
		r.doubt(call.Doubt)
	}
	if call.Dir != "" {
		r.dirs = []string{where.absolute(where.Directory, call.Dir)}
		if climbs(call.Dir) {
			r.doubt("directory")
		}
	}
	for _, c := range call.Commands {
		r.parts = append(r.parts, r.command(c)...)
	}
	if len(call.Commands) > 0 && r.outside(r.dirs[0]) {
		r.doubt("outside_root")
	}
	if len(call.Paths) > maxPaths {
		r.doubt("too_long")
		call.Paths = call.Paths[:maxPaths]
	}
	for _, p := range call.Paths {
		r.parts = append(r.parts, r.file(call.Kind, p))
	}
	for _, h := range call.Hosts {
		r.parts = append(r.parts, &part{kind: Fetch, target: strings.ToLower(h)})
	}
	if len(r.parts) == 0 && call.Kind == Other {
		r.parts = append(r.parts, &part{kind: Other, target: call.Tool})
	}
	if len(r.parts) == 0 {
		r.doubt("nothing_told")
	}
	if call.Tool != "" { // by its name it may be denied, whatever it does
		r.parts = append(r.parts, &part{kind: Any, target: call.Tool, harmless: true})
	}
	return r
}

func (r *reading) doubt(code string) { r.doubts = append(r.doubts, code) }

// all yields every part, those within others too.
func (r *reading) all(yield func(*part) bool) {
	var each func(list []*part) bool
	each = func(list []*part) bool {
		for _, p := range list {
			if !yield(p) || !each(p.within) {
				return false
			}
		}
		return true
	}
	each(r.parts)
}

// file is what is done to one path.
func (r *reading) file(kind Kind, path string) *part {
	p := &part{kind: kind, target: path}
	switch {
	case path == "" || hidden(path):
		p.doubt = "hidden_characters"
	case climbs(path):
		p.doubt = "parent"
	case r.where.Windows && misread(path):
		p.doubt = "misread_name"
	}
	return p
}
