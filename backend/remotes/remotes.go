// Package remotes keeps the places elsewhere at which agents run: runtimes of other machines that a person has named, their tokens, and the
// agents that this program has left there.
//
// The package owns the tables place and stray. A token is never in the database: a vault keeps the token. [Sessions] has the functions by
// which the sessions work for a place, such as ending their agents.
package remotes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/remote"
	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// Place is where agents can run.
type Place struct {
	ID       string `json:"id" doc:"Id of the place; local is this machine"`
	Name     string `json:"name"`
	URL      string `json:"url" doc:"URL of the place's runtime; empty for local"`
	State    string `json:"state" enum:"unknown,ready,unreachable,refused" doc:"State at the last use or check; refused means that the runtime refused the token"`
	Detail   string `json:"detail,omitempty" doc:"Reason that the place is not ready, as the runtime or the network states it"`
	Version  string `json:"version,omitempty"`
	Software string `json:"software,omitempty" doc:"Software that the runtime reports"`
	Warning  string `json:"warning,omitempty" doc:"Reason that the token is not in the keyring; present only in answers to a change"`
}

// PlaceRemoved is the data of a place.removed event, and the answer to the removal of a place.
type PlaceRemoved struct {
	ID   string `json:"id"`
	Left int    `json:"left,omitempty" doc:"Number of agents that could not be ended at the place and may go on"`
}

// The types of the events about places.
const (
	eventPlace        = "place.upsert"
	eventPlaceRemoved = "place.removed"
)

// The states of a place.
const (
	stateUnknown     = "unknown"
	stateReady       = "ready"
	stateUnreachable = "unreachable"
	stateRefused     = "refused"
)

// The codes of refusals about places. The Exit of an agent has some of them too.
const (
	UnknownPlace   = "place.unknown"
	Gone           = "place.gone"    // the runtime has lost the agent
	Unended        = "place.unended" // the runtime could not end the agent
	localPlace     = "place.local"
	badURL         = "place.url"
	insecureURL    = "place.insecure"
	badName        = "place.name"
	placeInUse     = "place.used"
	badToken       = "place.token"
	noAnswer       = "place.unreachable"
	tokenRefused   = "place.refused"
	runtimeProblem = "place.problem"
	relativePath   = "directory.relative"
	unreadablePath = "directory.unreadable"
)

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Store   *store.DB
	Tokens  *vault.Vault // nil = places have no tokens
	Logger  *slog.Logger
	Version string        // of this program
	Stall   time.Duration // how long a runtime may be silent before the connection counts as broken; 0 = 40 s

	AgentName func(id string) string // an agent's display name when its runtime gives no name
}

// Sessions are the functions of the sessions that a Library calls.
type Sessions struct {
	Clean     func(text string) string                                        // takes secrets out of a text
	Publish   func(kind string, data json.RawMessage)                         // publishes an event
	InUse     func(ctx context.Context, q Querier, place string) (int, error) // counts the sessions of a place that are not archived
	EndAgents func(ctx context.Context, place string) (unended int, err error)
}

// Querier is a database, or a transaction.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Library is all places. A Library may be used by any goroutine once Use and Load have returned.
type Library struct {
	deps     Deps
	sessions Sessions

	damaged error // why Load has not read all places

	mu  sync.Mutex // protects all, and the fields of each Remote
	all map[string]*Remote
}

// Remote is a place elsewhere.
type Remote struct {
	l       *Library
	id      string
	place   Place
	runtime *remote.Runtime
	kept    *atomic.Pointer[string]       // the token of runtime after the place got another address: connections to the old address keep that token
	agents  map[*remote.Instance]struct{} // connected agents
}

// New returns a Library without places.
func New(deps Deps) *Library {
	return &Library{deps: deps, all: map[string]*Remote{}}
}

// Use sets the functions of the sessions. The sessions call Use once, before Load.
func (l *Library) Use(s Sessions) { l.sessions = s }

// Load reads the places from the database. Load reads no token: the sessions have read the tokens of the vault's file by then, and a
// connection that needs a token of the keyring asks for the token before anything is received.
func (l *Library) Load(ctx context.Context) error {
	list, err := record.Query(ctx, l.deps.Store.Read(), func(s record.Scanner) (Place, error) {
		p := Place{State: stateUnknown}
		return p, s.Scan(&p.ID, &p.Name, &p.URL)
	}, `SELECT id, name, url FROM place`)
	for _, p := range list {
		l.all[p.ID] = l.remote(p)
	}
	l.damaged = err
	return err
}

func owner(id string) string { return "place/" + id }

func (l *Library) remote(p Place) *Remote {
	kept := &atomic.Pointer[string]{}
	return &Remote{l: l, id: p.ID, place: p, kept: kept, agents: map[*remote.Instance]struct{}{}, runtime: remote.New(remote.Config{
		URL: p.URL, Logger: l.deps.Logger, Stall: l.deps.Stall,
		Token: func(ctx context.Context) (string, error) {
			if old := kept.Load(); old != nil {
				return *old, nil
			}
			if l.deps.Tokens == nil {
				return "", nil
			}
			return l.deps.Tokens.Token(ctx, owner(p.ID))
		},
	})}
}

// local is this machine as a place.
func (l *Library) local() Place {
	return Place{ID: host.Local, Name: "This computer", State: stateReady, Version: l.deps.Version, Software: "Deskhand"}
}

// List returns this machine, then the other places by name.
func (l *Library) List() []Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Place, 0, len(l.all)+1)
	for _, r := range l.all {
		list = append(list, r.place)
	}
	slices.SortFunc(list, func(a, b Place) int {
		return strings.Compare(strings.ToLower(a.Name)+a.ID, strings.ToLower(b.Name)+b.ID)
	})
	return slices.Insert(list, 0, l.local())
}

// IDs returns the ids of all places, this machine first.
func (l *Library) IDs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{host.Local}, slices.Sorted(maps.Keys(l.all))...)
}

// Get returns a place elsewhere. Get refuses this machine, and an id that no place has.
func (l *Library) Get(id string) (*Remote, error) {
	if id == host.Local {
		return nil, refusal.Bad(localPlace)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r := l.all[id]; {
	case r != nil:
		return r, nil
	case l.damaged != nil:
		return nil, l.damaged
	}
	return nil, refusal.Bad(UnknownPlace, "place", id)
}

// Place returns the record of a place.
func (r *Remote) Place() Place {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.place
}

// Runtime returns the runtime of a place, which is another one after a change of the address.
func (r *Remote) Runtime() *remote.Runtime {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.runtime
}

// Connect begins the connection to an agent of the place.
func (r *Remote) Connect(start remote.Start) *remote.Instance {
	i := r.Runtime().Instance(start)
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.agents[i] = struct{}{}
	return i
}

// Disconnected notes that the connection to an agent is no longer used.
func (r *Remote) Disconnected(i *remote.Instance) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	delete(r.agents, i)
}

// retry makes the broken connections of the place try again at once.
func (r *Remote) retry() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	for i := range r.agents {
		i.Retry()
	}
}

// Saw notes the state of a place after a call, and publishes a new state. err is the call's error; info is empty when the call does not tell
// the runtime's version.
func (r *Remote) Saw(info remote.Info, err error) {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	before := r.place
	switch {
	case err == nil:
		r.place.State, r.place.Detail = stateReady, ""
		if info.Software != "" {
			r.place.Software, r.place.Version = info.Software, info.Version
		}
	case errors.Is(err, remote.ErrRefused):
		r.place.State, r.place.Detail = stateRefused, l.sessions.Clean(err.Error())
	default:
		r.place.State, r.place.Detail = stateUnreachable, l.sessions.Clean(err.Error())
	}
	if r.place == before || l.all[r.id] != r {
		return
	}
	l.sessions.Publish(eventPlace, record.JSON(r.place))
}

// Refusal returns the refusal for an error of the place's runtime.
func (r *Remote) Refusal(err error) *refusal.Error {
	code := runtimeProblem
	switch {
	case errors.Is(err, remote.ErrRefused):
		code = tokenRefused
	case errors.Is(err, remote.ErrUnreachable):
		code = noAnswer
	}
	return &refusal.Error{Code: code, Params: map[string]string{"name": r.Place().Name, "detail": r.l.sessions.Clean(err.Error())}}
}

// heard notes the state of a place after a call whose answer may be a refusal of the runtime itself.
func (r *Remote) heard(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, remote.ErrProblem) {
		r.Saw(remote.Info{}, err)
	}
}

// Check asks the runtime of a place for its software. An unreachable runtime is an answer too, not an error.
func (l *Library) Check(ctx context.Context, id string) (Place, error) {
	if id == host.Local {
		return l.local(), nil
	}
	r, err := l.Get(id)
	if err != nil {
		return Place{}, err
	}
	info, err := r.Runtime().Check(ctx)
	if err != nil && ctx.Err() != nil {
		return Place{}, ctx.Err()
	}
	r.Saw(info, err)
	return r.Place(), nil
}

// notStored is the error of a failed write.
func notStored(err error) error { return fmt.Errorf("%w: %w", refusal.ErrStorage, err) }
