package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"deskhand/backend"
)

type agentsCommand struct {
	List     agentsList     `cmd:"" default:"withargs" help:"Show the agents: which are here, which can be installed, and which have a newer version (default)."`
	Install  agentsInstall  `cmd:"" help:"Install an agent."`
	Update   agentsUpdate   `cmd:"" help:"Install newer versions of the agents that Deskhand installed."`
	Rollback agentsRollback `cmd:"" help:"Go back to the version of an agent that was there before."`
	Remove   agentsRemove   `cmd:"" help:"Remove what Deskhand installed of an agent."`
}

// agentList is the API's answer to GET /client/agents.
type agentList struct {
	Items   []backend.Agent `json:"items"`
	Problem string          `json:"problem,omitempty"` // why agents.json cannot be read
	Unasked string          `json:"unasked,omitempty"` // why the registry gave no answer
}

// agents lists the agents that the login shell shows or, with all, the whole catalogue. With newest, the registry is asked for newer versions
// first.
func (a *api) agents(ctx context.Context, all, newest bool) (list agentList, err error) {
	path := fmt.Sprintf("agents?settled=true&all=%t&newest=%t", all, newest)
	if err := a.call(ctx, "GET", path, nil, &list); err != nil {
		return list, ended(ctx, err)
	}
	return list, nil
}

// one finds an agent of the list by its id.
func (l agentList) one(id string) (backend.Agent, error) {
	i := slices.IndexFunc(l.Items, func(a backend.Agent) bool { return a.ID == id })
	if i < 0 {
		return backend.Agent{}, noAgent(id, l.Problem)
	}
	return l.Items[i], nil
}

// noAgent is the failure of a command whose agent is unknown. It names the problem of agents.json, since an agents.json that cannot be read
// may define the agent.
func noAgent(id, problem string) error {
	text := fmt.Sprintf("there is no agent %q; `deskhand agents --all` lists them", id)
	if problem != "" {
		text += "\n" + problem
	}
	return &failure{exitUsage, errors.New(text)}
}

type agentsList struct {
	common
	All  bool `help:"The whole catalogue, those too that few people use and that are not here."`
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each agent.
func (c *agentsList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.agents(ctx, c.All, true)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.Stdout, list)
		}
		p.sayOf(list)
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tNAME\tSTATE\tVERSION\tAVAILABLE\tLOGIN") // Flush reports failures of w
		for _, a := range list.Items {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", plain(a.ID), plain(a.Name), agentState(a), dash(plain(a.Version)), available(a), loginState(a))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		p.say("%s", hints(list.Items, c.All))
		return nil
	})
}

// sayOf warns when a list of agents is incomplete.
func (p *Program) sayOf(list agentList) {
	if list.Problem != "" {
		p.say("deskhand: %s\n", list.Problem)
	}
	if list.Unasked != "" {
		reason, _, _ := strings.Cut(list.Unasked, ":") // the log has the full reason
		p.say("Whether there are newer versions is not known: %s.\n", reason)
	}
}

// hints suggests the commands that install or update agents of a list.
func hints(list []backend.Agent, all bool) string {
	var b strings.Builder
	if slices.ContainsFunc(list, canInstall) {
		b.WriteString("`deskhand agents install ID` installs one that is not here.\n")
	}
	if slices.ContainsFunc(list, canUpdate) {
		b.WriteString("`deskhand agents update` installs the newer versions.\n")
	}
	if slices.ContainsFunc(list, backend.Agent.WantsLogin) {
		b.WriteString("`deskhand login ID` signs in to one that needs a login.\n")
	}
	if !all {
		b.WriteString("`deskhand agents --all` shows the whole catalogue.\n")
	}
	return b.String()
}

// canInstall reports whether an agent is missing on this machine and can be installed.
func canInstall(a backend.Agent) bool { return !a.IsFound() && a.Installable }

// canUpdate reports whether Deskhand installed the agent and a later version exists.
func canUpdate(a backend.Agent) bool { return a.IsInstalled() && a.Installable && a.HasUpdate() }

// agentState describes an agent's installation on this machine in a word or two.
func agentState(a backend.Agent) string {
	switch {
	case a.Installing != nil:
		return "being installed"
	case canInstall(a):
		return strings.TrimSpace("not installed " + sizeInBrackets(a))
	case !a.IsFound():
		return "not here"
	case !a.IsReady() && !a.WantsLogin():
		return "broken"
	case a.IsBuiltin():
		return "built in"
	case a.IsInstalled():
		return "installed"
	case a.Editable:
		return "of agents.json"
	}
	return "on PATH"
}

func sizeInBrackets(a backend.Agent) string {
	if a.Size == nil || a.Size.Unpacked == 0 {
		return ""
	}
	return "(" + megabytes(a.Size.Unpacked) + ")"
}

// available is the version that can be installed, or none when that version is installed already.
func available(a backend.Agent) string {
	if !canInstall(a) && !a.HasUpdate() {
		return none
	}
	return dash(plain(a.Pinned))
}

// loginState is the agent's latest report of its login, since the Deskhand that answers was started.
func loginState(a backend.Agent) string {
	if a.WantsLogin() {
		return "needed"
	}
	return none
}

// none fills a cell that has no value.
const none = "-"

func dash(text string) string { return cmp.Or(text, none) }

// change holds the flags shared by the commands that change installed agents.
type change struct {
	common
	Yes  bool `short:"y" help:"Do it without asking."`
	JSON bool `name:"json" help:"Print the records of the agents as JSON when it is done."`
}

// agree asks the person at a terminal for consent. Without a terminal only --yes consents.
func (c *change) agree(ctx context.Context, p *Program, question, otherwise string) error {
	if c.Yes {
		return nil
	}
	if !isTerminal(p.Stdin) {
		return &failure{exitUsage, errors.New("this is no terminal to ask at; --yes does it without asking")}
	}
	err := p.agrees(ctx, question, otherwise)
	c.Yes = err == nil // a repeated attempt asks no second time
	return err
}

// agrees waits for a person's yes. Any other answer is a failure with the text otherwise.
func (p *Program) agrees(ctx context.Context, question, otherwise string) error {
	p.say("%s [y/N] ", question)
	text, err := p.line(ctx)
	if err != nil {
		return err
	}
	if text = strings.ToLower(text); text != "y" && text != "yes" {
		return &failure{exitCancel, errors.New(otherwise)}
	}
	return nil
}

// done prints the records of the changed agents when --json is given.
func (c *change) done(ctx context.Context, p *Program, api *api, ids []string) error {
	if !c.JSON {
		return nil
	}
	list, err := api.agents(ctx, true, false)
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(a backend.Agent) bool { return !slices.Contains(ids, a.ID) })
	return printJSON(p.Stdout, list)
}

type agentsInstall struct {
	change
	Agent     string `arg:"" help:"The agent, by its id."`
	Version   string `placeholder:"VERSION" help:"The exact version. Default: that of the catalogue."`
	Reinstall bool   `help:"Install it anew, where that version is installed already."`
}

func (c *agentsInstall) Run(p *Program) error {
	i := &installer{p: p}
	return p.insist(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		i.api = api
		list, err := api.agents(ctx, true, true)
		if err != nil {
			return err
		}
		if list.Unasked != "" && c.Version == "" {
			p.sayOf(agentList{Unasked: list.Unasked})
		}
		a, err := list.one(c.Agent)
		if err == nil {
			err = c.install(ctx, i, a)
		}
		if err != nil {
			return err
		}
		return c.done(ctx, p, api, []string{a.ID})
	})
}

// install installs the agent, unless the same version is installed already. A person at a terminal first sees the size and is asked.
func (c *agentsInstall) install(ctx context.Context, i *installer, a backend.Agent) error {
	version := cmp.Or(c.Version, a.Pinned)
	if a.IsInstalled() && a.IsFound() && a.Version == version && !c.Reinstall {
		if i.waited {
			return i.outcome(a, version)
		}
		i.p.say("%s %s is installed already; --reinstall installs it anew.\n", plain(a.Name), plain(version))
		return nil
	}
	if !c.Yes && isTerminal(i.p.Stdin) {
		if err := i.plan(ctx, a, c.Version); err != nil {
			return err
		}
	}
	if err := c.agree(ctx, i.p, "Install it?", "nothing was installed"); err != nil {
		return err
	}
	return i.get(ctx, a, c.Version)
}

type agentsUpdate struct {
	change
	Agents []string `arg:"" optional:"" name:"agent" help:"The agents, by their ids. Default: all that Deskhand installed and that have a newer version."`
}

func (c *agentsUpdate) Run(p *Program) error {
	return p.insist(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.agents(ctx, true, true)
		if err != nil {
			return err
		}
		p.sayOf(list)
		todo, err := c.chosen(list)
		if err != nil {
			return err
		}
		if len(todo) == 0 {
			p.say("No agent that Deskhand installed has a newer version.\n")
			return c.done(ctx, p, api, nil)
		}
		for _, a := range todo {
			p.say("%s %s: %s is newer %s\n", plain(a.Name), plain(a.Version), plain(a.Pinned), sizeInBrackets(a))
		}
		if err := c.agree(ctx, p, "Install the newer versions?", "nothing was installed"); err != nil {
			return err
		}
		ids, err := installEach(ctx, &installer{p: p, api: api}, todo)
		return errors.Join(err, c.done(ctx, p, api, ids))
	})
}

// installEach installs the newest version of each agent in turn. A failed installation does not stop those after it.
func installEach(ctx context.Context, i *installer, todo []backend.Agent) (ids []string, err error) {
	for _, a := range todo {
		if ctx.Err() != nil {
			break
		}
		ids = append(ids, a.ID)
		err = errors.Join(err, i.get(ctx, a, a.Pinned))
	}
	return ids, err
}

// chosen lists the agents to update.
func (c *agentsUpdate) chosen(list agentList) (todo []backend.Agent, err error) {
	if len(c.Agents) == 0 {
		return slices.DeleteFunc(slices.Clone(list.Items), func(a backend.Agent) bool { return !canUpdate(a) }), nil
	}
	for _, id := range c.Agents {
		a, err := list.one(id)
		switch {
		case err != nil:
			return nil, err
		case !a.IsInstalled():
			return nil, &failure{exitUsage, fmt.Errorf("%s was not installed by Deskhand (%s); `deskhand agents install %s` does that", id, agentState(a), id)}
		case canUpdate(a):
			todo = append(todo, a)
		}
	}
	return todo, nil
}

type agentsRollback struct {
	change
	Agent string `arg:"" help:"The agent, by its id."`
}

// Run restores the version that was installed before the current version.
func (c *agentsRollback) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.agents(ctx, true, false)
		if err != nil {
			return err
		}
		a, err := list.one(c.Agent)
		if err != nil {
			return err
		}
		if a.Previous == "" {
			return fmt.Errorf("of %s no version from before is kept", a.ID)
		}
		question := fmt.Sprintf("Go back from %s %s to %s?", plain(a.Name), plain(a.Version), plain(a.Previous))
		if err := c.agree(ctx, p, question, "nothing was changed"); err != nil {
			return err
		}
		if err := api.call(ctx, "POST", "agents/"+url.PathEscape(a.ID)+"/rollback", nil, nil); err != nil {
			return installRefused(ctx, a, err)
		}
		p.say("%s is %s again, from its next start on.\n", plain(a.Name), plain(a.Previous))
		return c.done(ctx, p, api, []string{a.ID})
	})
}

type agentsRemove struct {
	change
	Agent string `arg:"" help:"The agent, by its id."`
}

// Run removes the files that Deskhand installed for an agent.
func (c *agentsRemove) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.agents(ctx, true, false)
		if err != nil {
			return err
		}
		a, err := list.one(c.Agent)
		if err != nil {
			return err
		}
		if !a.IsInstalled() {
			return &failure{exitUsage, fmt.Errorf("%s was not installed by Deskhand (%s)", a.ID, agentState(a))}
		}
		what := plain(a.Version)
		if a.Previous != "" {
			what += " and the version before, " + plain(a.Previous) + ","
		}
		if err := c.agree(ctx, p, fmt.Sprintf("Remove %s %s from this machine?", plain(a.Name), what), "nothing was removed"); err != nil {
			return err
		}
		if err := api.call(ctx, "DELETE", "agents/"+url.PathEscape(a.ID), nil, nil); err != nil {
			return installRefused(ctx, a, err)
		}
		p.say("%s is removed; its conversations stay.\n", plain(a.Name))
		return c.done(ctx, p, api, []string{a.ID})
	})
}

// installRefused translates the API's error codes of an installation into words.
func installRefused(ctx context.Context, a backend.Agent, err error) error {
	refused, ok := errors.AsType[*problem](err)
	if !ok {
		return ended(ctx, err)
	}
	detail := refused.Params["detail"]
	switch refused.Code {
	case "agent.unknown":
		return noAgent(a.ID, detail)
	case "agent.in_use":
		return fmt.Errorf("%s is in use: stop its conversations first, in the window or by ending the Deskhand that runs them (`deskhand ps` shows them)", a.ID)
	case "agent.installing":
		return fmt.Errorf("%s is being installed; wait until that is done", a.ID)
	case "agent.version":
		return &failure{exitUsage, errors.New(detail)}
	case "agent.plan_failed", "agent.not_installable", "agent.not_ours", "agent.no_previous":
		return errors.New(cmp.Or(detail, refused.Code))
	}
	return err
}

// ended returns errHostEnded when the Deskhand that was asked has ended, else err.
func ended(ctx context.Context, err error) error {
	if err = unanswered(ctx, err); errors.Is(err, errEnded) {
		return errHostEnded
	}
	return err
}

// errHostEnded is the failure of a change whose Deskhand ended before reporting the outcome.
var errHostEnded = errors.New("the Deskhand that was doing this has ended; run the command again")

// insist runs withAPI again when the Deskhand that was asked has ended: a command whose process installs for others ends as soon as its own
// work is done, and another Deskhand, or this command, can then repeat the change.
func (p *Program) insist(c common, f func(context.Context, *backend.Backend, *api) error) (err error) {
	const most = 3
	for range most {
		if err = p.withAPI(c, f); !errors.Is(err, errHostEnded) {
			break
		}
	}
	return err
}

// progressOf decodes an event. ok is false unless the event reports progress of this agent's installation.
func progressOf(e backend.Event, id string) (now backend.InstallProgress, ok bool) {
	if e.Type != "install.progress" || json.Unmarshal(e.Data, &now) != nil {
		return now, false
	}
	return now, now.Agent == id
}
