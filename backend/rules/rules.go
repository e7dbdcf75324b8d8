// Package rules decides, from remembered answers, whether an agent may do what the agent asks for. The package hides how a command is
// taken apart and how a path is compared: the caller names the call, its place and the rules, and gets a verdict with its reason.
//
// A call is made of parts: the commands of a line, the files that the line writes by a redirection, the paths of an edit. A rule is about
// one part. A rule that denies decides when the rule matches any part, also a part within a wrapper such as sudo or sh -c; next comes a
// rule that asks. The call is allowed only when each part is proven to be covered by some rule that allows. Deny goes before ask and ask
// before allow, wherever the rules come from. A part that cannot be proven (a variable, a substitution, an option that starts another
// program) is asked about.
//
// The package reads no database and starts no process. The package looks at the file system only to follow links, and only through
// Where.Real. A verdict is as true as the agent's own description of the call: the package does not hold an agent that runs something
// else.
package rules

import (
	"slices"
	"strings"
)

// Effect is the effect of a rule, or of a verdict.
type Effect string

// The effects. Ask is also the verdict when no rule is about the call.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// Kind is the kind of a call, after the kinds of ACP's tool calls. Any occurs in rules alone.
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

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Execute, Edit, Read, Delete, Move, Search, Fetch, Other, Any}
}

// Rule is a remembered answer.
type Rule struct {
	ID      string
	Effect  Effect
	Pattern Pattern
}

// Command is a command to be run: a line for a shell, or the arguments of a program.
type Command struct {
	Line string
	Argv []string // nil = Line is used
}

// Call is the request of an agent. The agent would use everything that the call names, so all of the call has to be allowed.
type Call struct {
	Kind     Kind   // the kind of Paths and Tool; Commands are always Execute, and Hosts always Fetch
	Tool     string // the tool's own name, when known
	Commands []Command
	Paths    []string // as the agent wrote them: relative paths start at Where.Directory
	Hosts    []string
	Dir      string // where the commands run, when the agent says so

	// Choice marks a question that only looks like a permission: only a person answers such a call.
	Choice bool
	// Doubt is why the call cannot be allowed, whatever the rules say; "" = no doubt.
	Doubt string
}

// Where is the place of a call. All directories are absolute.
type Where struct {
	Directory string
	Roots     []string // further directories of the session
	Home      string   // "" = not known, as on another machine
	Windows   bool     // Windows shells may read the commands, and Windows file systems the names

	// Real resolves the links in a path that need not exist; nil = paths are taken as written.
	Real func(path string) string
}

// The reasons of a verdict.
const (
	ByRule    = "rule"
	NoRule    = "no_rule"    // no rule is about a part of the call
	NotProven = "not_proven" // Detail tells what could not be proven
	IsChoice  = "choice"     // the call is a question
)

// Verdict is the decision about a call.
type Verdict struct {
	Effect Effect
	Why    string
	Detail string   // of not_proven: a code such as variable; of no_rule: the part
	Rule   string   // the id of the deciding rule, if a rule decided
	Used   []string // the ids of all rules that together allow the call
}

// Judge decides about a call. Rules are tried in their order, and the verdict names the first rule that fits.
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
	if len(v.Used) == 0 { // every part is harmless by itself
		return Verdict{Effect: Ask, Why: NoRule}
	}
	v.Rule = v.Used[0]
	slices.Sort(v.Used)
	v.Used = slices.Compact(v.Used)
	return v
}

// forbidden looks for a rule that denies, then for a rule that asks.
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

// allowed returns the rules that allow the part. When the part is not allowed, why is the doubt, or NoRule.
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

// allowedWithin returns the rules that allow every command that the part runs.
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

// Matches reports whether a rule with the pattern is about any part of the call. A pattern that allows has to cover the part.
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

// The codes of dangers.
const (
	DangerOutside  = "outside_root"
	DangerSudo     = "sudo"
	DangerPipe     = "pipe_to_shell"
	DangerSecrets  = "secrets"
	DangerDisaster = "disaster"
	DangerLong     = "too_long" // the call was too long to be searched to its end
)

// Dangers returns the codes of dangers that a person should see before allowing the call, above all before allowing such calls for good.
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

// part is a single action of a call.
type part struct {
	kind   Kind
	words  []word // of a command
	target string // a path as the agent wrote it, a host, or a tool's name
	doubt  string // why the part cannot be allowed

	within     []*part // the commands that the part runs
	through    bool    // the part is allowed when all of within is allowed
	fixed      int     // how many words a pattern must spell to name the command within
	privileged bool    // the part runs as another user, as by sudo
	fed        bool    // the part is a shell, or another interpreter, that runs its input
	harmless   bool    // the part does nothing outside its shell
	says       bool    // the part only writes a text that stands beside the command
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
	dirs   []string // the directories from which a relative path may start
	parts  []*part
	doubts []string
	limits limits
	budget int    // how many more parts are allowed
	source string // the script that is being taken apart
}

const (
	maxParts   = 200
	maxDepth   = 6       // of commands in commands
	maxCommand = 8 << 10 // bytes; no rule allows a longer command, which nobody reads
	maxOpened  = 400     // brackets in a command: the parser is slow with deep nesting
	maxWords   = 300     // of one command
	maxPaths   = 1000
	maxDirs    = 8
)

// The limits of the search for dangers, which also reads commands too long for any rule, because a person decides about those.
const (
	maxLooked      = 128 << 10
	maxLookedParts = 10_000
)

// limits bound how much of a call is taken apart.
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
	if call.Tool != "" { // a rule of the kind any may deny the call by the tool's name
		r.parts = append(r.parts, &part{kind: Any, target: call.Tool, harmless: true})
	}
	return r
}

func (r *reading) doubt(code string) { r.doubts = append(r.doubts, code) }

// all yields every part, including the parts within others.
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

// file returns the part for one path.
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
