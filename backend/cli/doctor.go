package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"deskhand/backend"
)

type doctorCommand struct {
	common
	JSON  bool   `name:"json" help:"Print the reports as JSON."`
	Agent string `arg:"" optional:"" help:"The agent to test, by its id. Default: all that are found, one after the other."`
}

// agentReports is the output of --json.
type agentReports struct {
	Items   []backend.Report `json:"items"`
	Problem string           `json:"problem,omitempty"` // why agents.json cannot be read
	Missing []backend.Agent  `json:"missing,omitempty"` // agents that can be installed; empty when a single agent is tested
}

// Run tests agents through the running app, or on the data directory itself when no app runs.
func (c *doctorCommand) Run(p *Program) error {
	var reports agentReports
	err := p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) (err error) {
		if reports, err = c.test(ctx, p, api); err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = c.show(p, reports)
		}
		return err
	})
	if err != nil {
		return err
	}
	if sick := slices.ContainsFunc(reports.Items, func(r backend.Report) bool { return !r.Healthy() }); sick || reports.Problem != "" {
		return &failure{exitError, errors.New("")} // the report has shown the failure
	}
	return nil
}

// test tests the agents in turn, and names the current agent on stderr.
func (c *doctorCommand) test(ctx context.Context, p *Program, api *api) (agentReports, error) {
	reports := agentReports{Items: []backend.Report{}}
	ids := []string{c.Agent}
	list, err := api.agents(ctx, false, false)
	if err != nil {
		return reports, err
	}
	if reports.Problem = list.Problem; c.Agent == "" {
		ids, reports.Missing = split(list.Items)
	}
	for n, id := range ids {
		if len(ids) > 1 {
			p.say("%d of %d: testing %s…\n", n+1, len(ids), id)
		}
		var r backend.Report
		err := api.call(ctx, "POST", "agents/"+url.PathEscape(id)+"/test", nil, &r)
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "agent.unknown" {
			return reports, noAgent(id, list.Problem)
		}
		if err != nil {
			return reports, unanswered(ctx, err)
		}
		reports.Items = append(reports.Items, r)
	}
	return reports, nil
}

// split separates the ids of installed agents from the agents that can be installed.
func split(list []backend.Agent) (ids []string, missing []backend.Agent) {
	for _, a := range list {
		switch {
		case a.IsFound():
			ids = append(ids, a.ID)
		case canInstall(a):
			missing = append(missing, a)
		}
	}
	return ids, missing
}

// missing lists the agents that can be installed, for people.
func missing(list []backend.Agent) string {
	var b strings.Builder
	b.WriteString("Not installed:\n")
	for _, a := range list {
		fmt.Fprintf(&b, "  %-10s %s\n", a.ID, strings.TrimSpace(a.Name+" "+sizeInBrackets(a)))
	}
	b.WriteString("`deskhand agents install ID` installs one, and `deskhand agents --all` lists the whole catalogue.\n")
	return b.String()
}

// show prints the reports.
func (c *doctorCommand) show(p *Program, reports agentReports) error {
	if c.JSON {
		return printJSON(p.Stdout, reports)
	}
	pages := make([]string, 0, len(reports.Items)+1)
	if reports.Problem != "" {
		pages = append(pages, reports.Problem+"\n")
	}
	for _, r := range reports.Items {
		pages = append(pages, page(r))
	}
	if len(reports.Missing) > 0 {
		pages = append(pages, missing(reports.Missing))
	}
	return p.print("%s", strings.Join(pages, "\n"))
}

// page formats a report for people.
func page(r backend.Report) string {
	var b strings.Builder
	a := r.Agent
	row := func(name, value string) {
		if value = strings.TrimSpace(strings.ReplaceAll(value, "\r\n", "\n")); value != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, strings.ReplaceAll(value, "\n", "\n             "))
		}
	}
	fmt.Fprintf(&b, "%s (%s): %s\n", a.Name, a.ID, verdict(r))
	row("program", a.Path)
	row("why", a.Reason)
	row("version", version(r))
	for _, s := range r.Steps {
		mark := "ok"
		if !s.OK {
			mark = "failed"
		}
		row(s.Step, fmt.Sprintf("%-6s %6d ms  %s", mark, s.Ms, s.Detail))
	}
	row("ended", ending(r))
	row("stderr", r.Stderr)
	for _, advice := range r.Advice {
		row("to do", say(advice))
	}
	return b.String()
}

func verdict(r backend.Report) string {
	switch {
	case r.Healthy():
		return "ready"
	case r.Agent.WantsLogin():
		return "needs a login"
	case r.Agent.IsFound():
		return "broken"
	}
	return "not found"
}

func version(r backend.Report) string {
	text := r.Agent.Version
	if r.AgentInfo != nil {
		text = r.AgentInfo.Version
	}
	if text != "" && r.Agent.Pinned != "" && r.Agent.Pinned != text {
		text += " (the catalogue has " + r.Agent.Pinned + ")"
	}
	return text
}

func ending(r backend.Report) string {
	switch {
	case r.Signal != "":
		return "by " + r.Signal
	case r.ExitCode != nil:
		return fmt.Sprintf("with code %d", *r.ExitCode)
	}
	return ""
}

// say translates an advice into words for the terminal. Other surfaces have their own words.
func say(a backend.Advice) string {
	detail := a.Params["detail"]
	switch a.Code {
	case "install":
		return "install it with `deskhand agents install " + a.Params["id"] + "`, or in the Agents screen (version " + a.Params["version"] + ")"
	case "get":
		return detail
	case "node":
		return "Node.js is missing: " + detail
	case "reinstall":
		return "install it again: " + detail
	case "file":
		return "correct its entry in agents.json: " + detail
	case "needs":
		return detail
	case "login":
		text := "sign in with `deskhand login " + a.Params["id"] + "`, or in the Agents screen, then test it again: " + detail
		if methods := a.Params["methods"]; methods != "" {
			text += " (ways to sign in: " + methods + ")"
		}
		return text
	case "protocol":
		return fmt.Sprintf("install another version: it speaks version %s of the protocol, and Deskhand %s", a.Params["theirs"], a.Params["ours"])
	case "silent":
		return "it did not answer within " + a.Params["seconds"] + " seconds; test it again when the machine has less to do"
	case "crash":
		return "its process ended; its stderr says why"
	case "spawn":
		return "the system refused to run its program: " + detail
	case "banner":
		return "it writes text between its messages, which some clients cannot read: " + a.Params["text"]
	case "refused":
		return "it refuses a session: " + detail
	case "cleanup":
		return "it deletes its conversations after " + a.Params["age"] + ", and what it takes for broken; to keep all of them, set " +
			a.Params["setting"] + " to false in " + a.Params["file"]
	}
	return strings.TrimSpace(a.Code + " " + detail)
}
