package rules

import (
	"path"
	"slices"
	"strings"
)

// Suggestion is a rule that could answer calls like the given call.
type Suggestion struct {
	Kind    Kind
	Pattern string
	Exact   bool // the rule is about this very call
}

// Suggest returns patterns that cover the call, the narrowest first. Each pattern would decide the call alone, beside the rules in list.
// Suggest returns nil when a person has to look each time.
func Suggest(call Call, where Where, effect Effect, list []Rule) []Suggestion {
	if call.Choice {
		return nil
	}
	r := read(call, where)
	open := r.undecided(list)
	if open == nil {
		return nil
	}
	var found []Suggestion
	for _, s := range candidates(r, open, effect) {
		pattern, err := ParsePattern(s.Kind, s.Pattern)
		if err != nil || slices.ContainsFunc(found, func(f Suggestion) bool { return f.Pattern == s.Pattern }) {
			continue
		}
		if v := Judge(call, where, append(slices.Clone(list), Rule{ID: "suggested", Effect: effect, Pattern: pattern})); v.Effect == effect {
			found = append(found, s)
		}
	}
	return found
}

// undecided returns the only part that no rule allows; nil when there is no such part, or when a single rule would not be enough.
func (r *reading) undecided(list []Rule) (open *part) {
	for _, p := range r.parts {
		_, why := r.allowed(p, list)
		if why == "" {
			continue
		}
		if open != nil && open.String() != p.String() {
			return nil
		}
		open = p
	}
	for open != nil && open.through && len(open.within) == 1 { // for timeout 5 git status, suggest git status
		open = open.within[0]
	}
	return open
}

func candidates(r *reading, p *part, effect Effect) []Suggestion {
	switch p.kind {
	case Execute:
		return commandCandidates(p, effect)
	case Fetch, Other:
		if p.target == "" {
			return nil
		}
		return []Suggestion{{p.kind, p.target, true}}
	case Any:
		return nil
	default:
		return pathCandidates(r, p)
	}
}

func commandCandidates(p *part, effect Effect) []Suggestion {
	texts := make([]string, len(p.words))
	for i, w := range p.words {
		texts[i] = quote(w.text)
	}
	list := []Suggestion{{Execute, strings.Join(texts, " "), true}}
	if p.privileged || len(texts) == 1 {
		return list
	}
	args := argumentsOf(p.words, func(int) bool { return false })
	switch {
	case args.row != nil && args.row.offered && len(texts) > args.at:
		list = append(list, Suggestion{Execute, strings.Join(texts[:args.at], " ") + " *", false})
	case effect == Deny && !strings.HasPrefix(p.words[1].text, "-"):
		list = append(list, Suggestion{Execute, strings.Join(texts[:2], " ") + " *", false})
	}
	return list
}

func pathCandidates(r *reading, p *part) []Suggestion {
	at := r.where.real(r.where.absolute(r.dirs[0], p.target))
	dir := r.where.real(r.where.clean(r.where.Directory))
	if at == "" || dir == "" {
		return nil
	}
	if !below(at, dir) {
		return []Suggestion{{p.kind, escape(at), true}}
	}
	rel := strings.TrimPrefix(at[len(dir):], "/")
	if rel == "" {
		return []Suggestion{{p.kind, "**", false}}
	}
	list := []Suggestion{{p.kind, escape(rel), true}}
	if up := path.Dir(rel); up != "." {
		list = append(list, Suggestion{p.kind, escape(up) + "/**", false})
	}
	return append(list, Suggestion{p.kind, "**", false})
}
