package roster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"deskhand/backend/agents"
	"deskhand/backend/refusal"
)

// InstallProgress is how far an installation is.
type InstallProgress struct {
	Agent string `json:"agent"`
	agents.Progress
}

// follow publishes the news of an installation: its progress in order, and at the end the agent, with the reason when the installation failed.
func (a *Agents) follow(n agents.News) {
	switch {
	case n.Aside:
	case n.Ended:
		a.failures.set(n.Agent, a.failure(n.Err))
	default:
		a.failures.set(n.Agent, nil)
		n.Log = a.secret.Text(n.Log)
		a.publish(eventInstall, InstallProgress{n.Agent, n.Progress})
		return
	}
	a.tell(n.Agent)
}

// failures are why the last installations failed, by agent. The catalogue cannot keep the reasons, since it does not know the secrets.
type failures struct {
	mu  sync.Mutex // protects why
	why map[string]*agents.Failure
}

func (f *failures) set(id string, why *agents.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why == nil {
		f.why = map[string]*agents.Failure{}
	}
	delete(f.why, id)
	if why != nil {
		f.why[id] = why
	}
}

// addTo returns an agent with its failure, if the agent is not being installed again.
func (f *failures) addTo(a agents.Agent) agents.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Installing == nil {
		a.Failure = f.why[a.ID]
	}
	return a
}

// clear forgets all failures, and returns their agents.
func (f *failures) clear() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := slices.Sorted(maps.Keys(f.why))
	clear(f.why)
	return ids
}

// failure returns what people are told of a failed installation. An installation that somebody ended has not failed.
func (a *Agents) failure(err error) *agents.Failure {
	if err == nil || errors.Is(err, agents.ErrCancelled) || errors.Is(err, agents.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	f := &agents.Failure{Code: refusedInstallation, Detail: a.secret.Text(err.Error())}
	if failed, ok := errors.AsType[*agents.InstallError](err); ok {
		f.Detail, f.Stderr = a.secret.Text(failed.Err.Error()), a.secret.Text(failed.Stderr)
	}
	return f
}

// Plan returns what an installation would fetch, and whether there is room.
func (a *Agents) Plan(ctx context.Context, id, version string) (agents.Plan, error) {
	p, err := a.catalogue.Installer().Plan(ctx, id, version)
	if failed, ok := errors.AsType[*agents.InstallError](err); ok && ctx.Err() == nil {
		return p, &refusal.Error{Code: refusedPlan, Params: map[string]string{"agent": id, "detail": a.secret.Text(failed.Err.Error())}}
	}
	return p, refused(id, err)
}

// Install begins an installation, and returns the agent as of then. Events report the progress.
func (a *Agents) Install(id, version string) (agents.Agent, error) {
	if err := a.catalogue.Installer().Begin(id, version); err != nil {
		return agents.Agent{}, refused(id, err)
	}
	return a.get(id)
}

// CancelInstall ends an installation, and returns when nothing of the installation is left.
func (a *Agents) CancelInstall(ctx context.Context, id string) error {
	return refused(id, a.catalogue.Installer().Cancel(ctx, id))
}

// Rollback goes back to the previous version of an agent.
func (a *Agents) Rollback(id string) (agents.Agent, error) {
	if err := a.catalogue.Installer().Rollback(id); err != nil {
		return agents.Agent{}, refused(id, err)
	}
	a.failures.set(id, nil)
	a.tell(id)
	return a.get(id)
}

// Uninstall removes the versions of an agent that Deskhand installed.
func (a *Agents) Uninstall(id string) error {
	err := a.catalogue.Installer().Uninstall(id)
	if err == nil {
		a.failures.set(id, nil)
		a.tell(id)
	}
	return refused(id, err)
}
