package agents

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/environ"
	"deskhand/backend/probe"
)

// The ways to sign in.
const (
	LoginByAgent    = "agent"    // the agent signs in by itself, usually in a browser
	LoginByTerminal = "terminal" // the agent's own program, in a terminal
	LoginByValues   = "env"      // values for the agent's environment
)

// LoginMethod is a way to sign in.
type LoginMethod struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Type        string     `json:"type" enum:"agent,terminal,env"`
	Link        string     `json:"link,omitempty" doc:"Page that gives the values; http or https"`
	Vars        []LoginVar `json:"vars,omitempty" doc:"Values that the method asks for. A method of type agent hands the values to the agent once, and the agent keeps them"`

	program  string            // of type terminal: "" is the agent's own program, which then gets args after its own
	args     []string          // of type terminal, and of methods that the agent performs: appended for the login only
	env      map[string]string // of type terminal
	anyOne   bool              // a single value is needed, and enough
	confirms bool              // of type env: authenticate tells the agent that the values are there
}

// Authenticates reports whether the agent itself signs in by the method, with [Logins.Authenticate].
func (m LoginMethod) Authenticates() bool { return m.Type == LoginByAgent || m.confirms }

// LoginVar is a value of a login method.
type LoginVar struct {
	Name     string `json:"name"`
	Label    string `json:"label,omitempty"`
	Secret   bool   `json:"secret"`
	Optional bool   `json:"optional"`
	Set      bool   `json:"set" doc:"A value is stored; an empty value keeps the stored value"`

	around bool // set in the environment that agents are started in
}

// apiKey is the name of the value that authenticate hands to an agent in _meta, under the same name, where the agent accepts a key.
const apiKey = "api-key"

// signIn holds the ways to sign in that an agent announced.
type signIn struct {
	methods []LoginMethod
	logout  bool
}

// signInOf reads the ways to sign in from an agent's answer to initialize. Unreadable ways are left out.
func signInOf(began json.RawMessage) signIn {
	var r struct {
		Methods []json.RawMessage `json:"authMethods"`
	}
	_ = json.Unmarshal(began, &r)
	can, _ := acp.ParseInitialized(began)
	s := signIn{logout: can.Logout}
	for _, raw := range r.Methods {
		var m wireMethod
		if err := json.Unmarshal(raw, &m); err == nil || m.ID != "" {
			if method, ok := m.method(); ok {
				s.methods = append(s.methods, method)
			}
		}
	}
	return s
}

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
	if probe.IsPage(w.Link) {
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
