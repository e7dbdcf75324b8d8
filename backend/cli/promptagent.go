package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend"
)

// authRequired is ACP's error code for a missing login.
const authRequired = -32000

// prepare finds the conversation that the turn goes on with, or the agent to ask, before the turn begins. A missing local agent is installed
// when the person agrees or --install is given.
func (t *terminalTurn) prepare(ctx context.Context) error {
	if err := t.goOn(ctx); err != nil {
		return err
	}
	id := t.session.Agent
	if t.old != nil {
		id = t.old.Agent
	}
	if t.session.Place != "" || t.old != nil && t.old.Place != localPlace {
		return nil // the remote runtime reports a missing agent
	}
	list, err := t.api.agents(ctx, true, false)
	if err != nil {
		return err
	}
	if id == "" {
		return t.chooseAgent(ctx, list)
	}
	a, err := list.one(id)
	if err != nil || a.IsFound() {
		return err
	}
	return t.fetch(ctx, a)
}

// chooseAgent takes the person's first ready agent and names the agent. When no agent is ready, a person at a terminal chooses an agent to
// install. Elsewhere the command fails: an answer of the demo agent would help nobody.
func (t *terminalTurn) chooseAgent(ctx context.Context, list agentList) error {
	own := func(a backend.Agent) bool { return a.IsReady() && !a.IsBuiltin() }
	if i := slices.IndexFunc(list.Items, own); i >= 0 {
		t.session.Agent = list.Items[i].ID
		t.aside("· asking %s; --agent names another", plain(list.Items[i].Name))
		return nil
	}
	if i := slices.IndexFunc(list.Items, backend.Agent.WantsLogin); i >= 0 {
		return needsLogin(list.Items[i], list.Items[i].Detail)
	}
	main, err := t.api.mainAgents(ctx)
	if err != nil {
		return err
	}
	main = slices.DeleteFunc(main, func(a backend.Agent) bool { return !canInstall(a) && !a.IsBuiltin() })
	switch {
	case isTerminal(t.p.Stdin):
		return t.offer(ctx, main)
	case t.install:
		return &failure{exitUsage, fmt.Errorf("--install needs --agent, for there are several: %s", names(main))}
	}
	return &failure{exitMissing, fmt.Errorf("no agent of your own is on this machine. `deskhand agents install ID` installs one of these: %s.\n`--agent ID --install` does it here, and --agent mock asks the demo agent, which knows no model", names(main))}
}

// mainAgents lists the popular agents and every installed agent.
func (a *api) mainAgents(ctx context.Context) ([]backend.Agent, error) {
	list, err := a.agents(ctx, false, false)
	return list.Items, err
}

// names lists the ids of the agents that can be installed.
func names(list []backend.Agent) string {
	var ids []string
	for _, a := range list {
		if canInstall(a) {
			ids = append(ids, a.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// offer lets the person at the terminal choose an agent to install, or the demo agent.
func (t *terminalTurn) offer(ctx context.Context, list []backend.Agent) error {
	t.p.say("No agent of your own is on this machine. Which one shall answer?\n")
	for n, a := range list {
		what := agentState(a)
		if a.IsBuiltin() {
			what = "is part of Deskhand, and knows no model"
		}
		t.p.say("  %d  %s, %s\n", n+1, plain(a.Name), what)
	}
	t.p.say("A number, or Enter for none of them: ")
	text, err := t.p.line(ctx)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(list) {
		return &failure{exitMissing, errors.New("no agent was chosen; `deskhand agents` lists them, and --agent names one")}
	}
	t.session.Agent = list[n-1].ID
	if list[n-1].IsBuiltin() {
		return nil
	}
	t.install = true // the person chose with the size in sight
	return t.fetch(ctx, list[n-1])
}

// fetch installs a missing agent, or says how to install the agent.
func (t *terminalTurn) fetch(ctx context.Context, a backend.Agent) error {
	switch {
	case !a.Installable:
		return &failure{exitMissing, fmt.Errorf("%s is not here: %s.\n`deskhand doctor %s` tells where it was looked for", a.ID, strings.TrimSuffix(a.Detail, "."), a.ID)}
	case !t.install && !isTerminal(t.p.Stdin):
		return &failure{exitMissing, fmt.Errorf("%s is not installed. `deskhand agents install %s` installs it, or --install does it here", plain(a.Name), a.ID)}
	}
	i := &installer{p: t.p, api: t.api}
	if !t.install {
		t.p.say("%s is not installed.\n", plain(a.Name))
		if err := i.plan(ctx, a, ""); err != nil {
			return err
		}
		if err := t.p.agrees(ctx, "Install it?", "nothing was installed"); err != nil {
			return err
		}
	}
	return i.get(ctx, a, "")
}

// needsLogin is the failure of a turn whose agent requires a login. why is the agent's own message.
func needsLogin(a backend.Agent, why string) error {
	text := plain(a.Name) + " needs a login"
	if why != "" {
		text += ": " + strings.TrimSuffix(why, ".")
	}
	return &failure{exitLogin, fmt.Errorf("%s.\nSign in with `deskhand login %s`, or in the Agents screen of the window", text, a.ID)}
}

// loginMissing is the failure of a turn that ended because of a missing login, or nil.
func (t *terminalTurn) loginMissing() error {
	why, missing := "", false
	if x := t.exit; x != nil && x.Problem == "agent.auth_required" {
		why, missing = x.Params["detail"], true
	}
	if e := t.outcome.Error; e != nil && e.Code == authRequired {
		why, missing = e.Message, true
	}
	if !missing {
		return nil
	}
	a := backend.Agent{ID: t.session.Agent, Name: t.agent}
	if t.old != nil {
		a.ID = t.old.Agent
	}
	if t.session.Place != "" {
		return &failure{exitLogin, fmt.Errorf("%s needs a login on the machine where it runs: %s", plain(a.Name), why)}
	}
	return needsLogin(a, why)
}
