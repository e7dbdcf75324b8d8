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

// agentReports is what --json prints.
type agentReports struct {
	Items   []backend.Report `json:"items"`
	Problem string           `json:"problem,omitempty"` // what is wrong with agents.json
}

// Run tests agents: by the running app if there is one, else on the data directory itself.
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
		return &failure{exitError, errors.New("")} // the page has said it
	}
	return nil
}

// test has the agents tested, and tells on stderr which one it is at.
func (c *doctorCommand) test(ctx context.Context, p *Program, api *api) (agentReports, error) {
	reports := agentReports{Items: []backend.Report{}}
	ids := []string{c.Agent}
	here, fault, err := found(ctx, api)
	if err != nil {
		return reports, unanswered(ctx, err)
	}
	if reports.Problem = fault; c.Agent == "" {
		ids = here
	}
	for n, id := range ids {
		if len(ids) > 1 {
			p.say("%d of %d: testing %s…\n", n+1, len(ids), id)
		}
		var r backend.Report
		err := api.call(ctx, "POST", "agents/"+url.PathEscape(id)+"/test", nil, &r)
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "agent.unknown" {
			if fault != "" {
				return reports, fmt.Errorf("there is no agent %q\n%s", id, fault)
			}
			return reports, fmt.Errorf("there is no agent %q", id)
		}
		if err != nil {
			return reports, unanswered(ctx, err)
		}
		reports.Items = append(reports.Items, r)
	}
	return reports, nil
}

// found are the ids of the agents that are here, and what is wrong with agents.json.
func found(ctx context.Context, api *api) (ids []string, fault string, err error) {
	var list struct {
		Items   []backend.Agent `json:"items"`
		Problem string          `json:"problem"`
	}
	err = api.call(ctx, "GET", "agents", nil, &list)
	for _, a := range list.Items {
		if a.IsFound() {
			ids = append(ids, a.ID)
		}
	}
	return ids, list.Problem, err
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
	return p.print("%s", strings.Join(pages, "\n"))
}

// page is one report for people.
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

// say puts advice into words; those of other surfaces are their own.
func say(a backend.Advice) string {
	detail := a.Params["detail"]
	switch a.Code {
	case "install":
		return "install it in the Agents screen of Deskhand (version " + a.Params["version"] + ")"
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
