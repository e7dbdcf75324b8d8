package agents

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/environ"
)

// wireMethod is an AuthMethod of ACP. env_var exists only in drafts of ACP; older agents describe a terminal in _meta.
type wireMethod struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	Link        string            `json:"link"`
	Vars        []struct {
		Name     string `json:"name"`
		Label    string `json:"label"`
		Secret   *bool  `json:"secret"`
		Optional bool   `json:"optional"`
	} `json:"vars"`
	Meta map[string]json.RawMessage `json:"_meta"`
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// method converts the wire's method; an unknown type gives false.
func (w wireMethod) method() (LoginMethod, bool) {
	m := LoginMethod{ID: w.ID, Name: cmp.Or(w.Name, w.ID), Description: w.Description}
	if w.ID == "" {
		return m, false
	}
	if isPage(w.Link) {
		m.Link = w.Link
	}
	if _, gateway := w.Meta["gateway"]; gateway {
		return m, false // a gateway needs an address, and choosing a gateway without an address undoes the earlier login
	}
	_, takesKey := w.Meta[apiKey]
	switch w.Type {
	case "", LoginByAgent:
		m.Type = LoginByAgent
		if m.older(w.Meta["terminal-auth"]) {
			return m, true
		}
		m.args = w.startArguments()
		if takesKey {
			m.Vars = []LoginVar{{Name: apiKey, Secret: true, Optional: true}}
		}
	case LoginByTerminal:
		m.Type, m.args, m.env = LoginByTerminal, w.Args, w.Env
	case "env_var":
		m.Type = LoginByValues
		for _, v := range w.Vars {
			if variableName.MatchString(v.Name) && !reserved(v.Name) {
				m.Vars = append(m.Vars, LoginVar{Name: v.Name, Label: v.Label, Secret: v.Secret == nil || *v.Secret, Optional: v.Optional})
			}
		}
		return m, len(m.Vars) > 0
	default:
		return m, false
	}
	return m, true
}

// startArguments returns the arguments with which the agent wants to be started for the login, which some agents put into _meta: Qwen
// accepts authenticate only when started with --auth-type.
func (w wireMethod) startArguments() []string {
	var args []string
	_ = json.Unmarshal(w.Meta["args"], &args) // a value that is no list of texts counts as none
	return args
}

// older reads a terminal that an agent describes in the way that predates the protocol's.
func (m *LoginMethod) older(meta json.RawMessage) bool {
	var t struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	if json.Unmarshal(meta, &t) != nil || t.Command == "" {
		return false
	}
	m.Type, m.program, m.args, m.env = LoginByTerminal, t.Command, t.Args, t.Env
	return true
}

// reserved reports whether a variable is Deskhand's to set: an agent's request must not change where its programs come from.
func reserved(name string) bool {
	return environ.Private(name) || slices.Contains([]string{"PATH", "HOME", "BROWSER", "LD_PRELOAD", "NODE_OPTIONS"}, strings.ToUpper(name)) ||
		strings.HasPrefix(name, "DESKHAND_TREE")
}

// wayValues describes the values of a way to sign in that the catalogue knows: the agent reads them from its environment, and authenticate
// tells the agent that the values are there.
type wayValues struct {
	Vars   []wayValue `json:"vars"`
	AnyOne bool       `json:"anyOne"` // a single value is enough
}

type wayValue struct {
	Name     string `json:"name"`
	Plain    bool   `json:"plain"` // not a secret
	Optional bool   `json:"optional"`
}

// ways returns the ways to sign in to an agent that people choose from: those that the agent offers, with stored values where the catalogue
// says so, and Deskhand's own. No two share an id or a display text.
func (c *Catalogue) ways(e entry, theirs []LoginMethod) []LoginMethod {
	env := c.environment.With(e.environ())
	var list []LoginMethod
	for _, m := range theirs {
		if slices.ContainsFunc(list, func(other LoginMethod) bool { return other.ID == m.ID }) {
			continue // nobody could choose the second
		}
		if w, ok := e.known.Credentials.Methods[m.ID]; ok && m.Type == LoginByAgent {
			m = w.asked(m, env)
		}
		list = append(list, m)
	}
	if m, ok := valuesOf(e, list); ok {
		list = append(list, m)
	}
	names := distinct(list, func(m LoginMethod) (string, string, string) { return m.ID, m.Name, m.Description })
	for i := range list {
		list[i].Name = names[i]
	}
	return list
}

// asked returns the agent's method with the values that the method needs.
func (w wayValues) asked(m LoginMethod, env []string) LoginMethod {
	m.Type, m.confirms, m.anyOne, m.Vars = LoginByValues, true, w.AnyOne, nil
	for _, v := range w.Vars {
		around := environ.Lookup(env, v.Name) != ""
		m.Vars = append(m.Vars, LoginVar{Name: v.Name, Secret: !v.Plain, Optional: v.Optional || w.AnyOne || around, around: around})
	}
	return m
}

// distinct returns display names for things that people choose from. Things with the same name get their description appended, or their id
// where the descriptions do not differ.
func distinct[T any](list []T, words func(T) (id, name, description string)) []string {
	const longest = 60
	alike := func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
	names := make([]string, len(list))
	for i := range list {
		id, name, about := words(list[i])
		name = strings.TrimSpace(name)
		same, tells := 0, about != "" && len(about) <= longest
		for n := range list {
			_, other, otherAbout := words(list[n])
			if n != i && alike(name, other) {
				same++
				tells = tells && !alike(about, otherAbout)
			}
		}
		switch {
		case same == 0:
			names[i] = name
		case tells:
			names[i] = name + ": " + about
		default:
			names[i] = name + " (" + id + ")"
		}
	}
	return names
}

// distinctWays gives the ways to sign in of a report distinct names.
func distinctWays(list []AuthMethod) []AuthMethod {
	names := distinct(list, func(m AuthMethod) (string, string, string) { return m.ID, cmp.Or(m.Name, m.ID), m.Description })
	for i := range list {
		list[i].Name = names[i]
	}
	return list
}

// keptValues is the id of Deskhand's own way to sign in.
const keptValues = "deskhand.values"

// valuesOf returns a way to sign in for agents that read a key from their environment without saying so: the catalogue knows the variable.
func valuesOf(e entry, theirs []LoginMethod) (LoginMethod, bool) {
	if slices.ContainsFunc(theirs, func(m LoginMethod) bool { return len(m.Vars) > 0 }) {
		return LoginMethod{}, false // Codex takes its key only so, and reads none from its environment
	}
	names := slices.Clone(e.known.Credentials.Environment)
	for _, p := range e.known.Credentials.Providers {
		if vars := variablesOf(p); len(vars) > 0 && !slices.Contains(names, vars[0]) {
			names = append(names, vars[0]) // the others are aliases
		}
	}
	m := LoginMethod{ID: keptValues, Name: "API key", Type: LoginByValues, anyOne: true}
	for _, name := range names {
		m.Vars = append(m.Vars, LoginVar{Name: name, Secret: true, Optional: true})
	}
	m.Description = "Kept by Deskhand, and given to the agent as " + strings.Join(names, " or ")
	return m, len(names) > 0
}
