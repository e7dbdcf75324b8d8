package rules

import (
	"path"
	"slices"
	"strings"
)

// Suggestion is a rule that could answer calls like this one.
type Suggestion struct {
	Kind    Kind
	Pattern string
	Exact   bool // it is about this very thing
}

// Suggest gives patterns that cover the call, the narrowest first; only such as would decide it by themselves, beside the rules that there
// are. None, where a person has to look each time.
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
	for _, s := range candidates(r, open) {
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

// undecided is the one part that no rule allows; nil when there is none, or when one rule would not be enough.
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
	for open != nil && open.through && len(open.within) == 1 { // of timeout 5 git status it is git status that counts
		open = open.within[0]
	}
	return open
}

func candidates(r *reading, p *part) []Suggestion {
	switch p.kind {
	case Execute:
		return commandCandidates(p)
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

func commandCandidates(p *part) []Suggestion {
	texts := make([]string, len(p.words))
	for i, w := range p.words {
		texts[i] = quote(w.text)
	}
	list := []Suggestion{{Execute, strings.Join(texts, " "), true}}
	if p.privileged || len(texts) == 1 {
		return list
	}
	for n := len(texts) - 1; n > 0; n-- {
		if n <= 2 && !strings.HasPrefix(p.words[n-1].text, "-") && (n > 1 || !subcommands(p.words[0].text)) {
			list = append(list, Suggestion{Execute, strings.Join(texts[:n], " ") + " *", false})
		}
	}
	return list
}

// subcommands tells of programs whose first word says what they do: all of them together are nothing that is allowed at once.
func subcommands(program string) bool {
	return slices.Contains([]string{
		"git", "npm", "pnpm", "yarn", "bun", "go", "cargo", "docker", "podman", "kubectl", "gh", "pip", "pip3", "uv", "poetry", "dotnet", "mvn", "gradle",
		"terraform", "aws", "gcloud", "az", "systemctl", "brew", "apt", "apt-get", "dnf", "pacman", "python", "python3", "node", "ruby", "perl", "npx", "deno", "make",
	}, program)
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
