// Package roster administers the agents of this machine for people and surfaces: listing, installing, defining and testing agents, signing in to
// agents and out, and the secrets that people have entered.
//
// The package hides the attempts to sign in and their terminals, the order in which changes of agents are told, why installations have failed,
// and which codes the errors of package agents have. Nothing that the package tells holds a secret. Processes of agents belong to package agents.
package roster

import (
	"encoding/json"
	"log/slog"
	"sync"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/background"
	"deskhand/backend/record"
	"deskhand/backend/redact"
)

// The types of events, with a record of [agents.Agent], [InstallProgress] and [Login].
const (
	eventAgent   = "agent.upsert"
	eventInstall = "install.progress"
	eventLogin   = "login.upsert"
)

// Deps are the parts of the program that Agents use.
type Deps struct {
	Catalogue *agents.Catalogue
	Secrets   *Secrets // nil = those of the catalogue
}

// Sessions are what the conversations do for Agents.
type Sessions struct {
	Publish  func(kind string, data json.RawMessage) // publishes an event
	SignedIn func(agent string)                      // tries again what an agent has refused for want of a login; must not block
	Writable func() error                            // why nothing may be changed, and no agent started
}

// Agents are the agents of this machine, as a person administers them. Any number of goroutines may use Agents.
type Agents struct {
	catalogue *agents.Catalogue
	secrets   *Secrets
	secret    redact.Redactor
	sessions  Sessions
	logins    *Logins

	background *background.Group // logins, which outlive every call

	telling  sync.Mutex // an agent or a login is read and published in one go, so that the last event holds
	failures failures
	refusals refusals
}

// New returns Agents, which need Use before any other call.
func New(deps Deps) *Agents {
	if deps.Secrets == nil {
		deps.Secrets = NewSecrets(deps.Catalogue, nil, nil, slog.New(slog.DiscardHandler))
	}
	a := &Agents{
		catalogue: deps.Catalogue, secrets: deps.Secrets, secret: deps.Secrets.Redactor(), background: background.New(),
	}
	a.logins = &Logins{agents: a, all: map[string]*attempt{}}
	return a
}

// Use connects the conversations, and begins to follow the catalogue.
func (a *Agents) Use(s Sessions) {
	a.sessions = s
	a.catalogue.Watch(a.follow)
}

// Secrets returns the texts that must never be written.
func (a *Agents) Secrets() *Secrets { return a.secrets }

// Logins returns the attempts to sign in.
func (a *Agents) Logins() *Logins { return a.logins }

// Close ends all logins, and waits for them. The catalogue stays open.
func (a *Agents) Close() {
	a.background.Stop()
	a.background.Wait()
}

func (a *Agents) publish(kind string, data any) { a.sessions.Publish(kind, record.JSON(data)) }

// tell publishes an agent as of now.
func (a *Agents) tell(id string) {
	a.telling.Lock()
	defer a.telling.Unlock()
	now, err := a.get(id)
	if err != nil {
		return // somebody has just taken the agent out of agents.json
	}
	a.publish(eventAgent, now)
}

// get returns an agent for people.
func (a *Agents) get(id string) (agents.Agent, error) {
	now, err := a.catalogue.Agent(id)
	return a.shown(now), refused(id, err)
}

// shown returns an agent without secrets, with the failure of the agent's last installation. The detail is in the agent's own words, which may
// quote a key that the agent refused.
func (a *Agents) shown(now agents.Agent) agents.Agent {
	now.Detail = a.secret.Text(now.Detail)
	return a.failures.addTo(now)
}

// refusals are the last answers of agents about logins, until the catalogue knows the answers.
type refusals struct {
	mu      sync.Mutex // protects the fields below
	of      map[string]*acp.Error
	running bool // a goroutine tells the catalogue
}

// NoteLogin tells the catalogue that an agent has refused for want of a login, or, with nil, that the agent has not. NoteLogin does not wait: the
// catalogue looks for the agent on a disk that may never answer.
func (a *Agents) NoteLogin(id string, refused *acp.Error) {
	if refused != nil {
		refused = &acp.Error{Code: refused.Code, Message: a.secrets.Sentence(refused)}
	}
	r := &a.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*acp.Error{}
	}
	r.of[id] = refused
	if !r.running {
		r.running = a.background.Start(a.noteLogins)
	}
}

// noteLogins tells the catalogue the last answer of each agent, one agent after the other.
func (a *Agents) noteLogins() {
	for {
		id, refused, ok := a.refusals.next()
		if !ok {
			return
		}
		a.catalogue.Logins().Note(id, refused)
	}
}

// next takes the answer of an agent. Without any, the goroutine that tells the catalogue has ended.
func (r *refusals) next() (id string, refused *acp.Error, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, refused = range r.of {
		delete(r.of, id)
		return id, refused, true
	}
	r.running = false
	return "", nil, false
}

// NoteAccount tells the catalogue the account that an agent works with. NoteAccount does not wait, as NoteLogin does not.
func (a *Agents) NoteAccount(id string, account acp.Account) {
	if a.catalogue.Logins().NoteAccount(id, account) {
		a.background.Start(func() { a.tell(id) })
	}
}
