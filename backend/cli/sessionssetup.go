package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"deskhand/backend"
)

type sessionsSetup struct {
	common
	ID      string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Again   bool   `xor:"do" help:"Run the set-up once more; its commands must be approved."`
	Stop    bool   `xor:"do" help:"End its commands."`
	Release bool   `xor:"do" help:"Have the agent start without it, or while it runs."`
	JSON    bool   `name:"json" help:"Print the record as JSON."`
}

// setUpReport decodes the printed part of a set-up.
type setUpReport struct {
	Setup *struct {
		State    string
		Waiting  bool
		Commands []string
		At       int
		Problem  string
		Notes    []string
		Port     int
	}
	Problem    string
	Open       string
	Head, Tail string
	Cut        int64
}

// Run shows the set-up of a conversation's worktree, runs it, ends it, or has the agent start.
func (c *sessionsSetup) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.sessions(ctx, []string{c.ID})
		if err != nil {
			return err
		}
		path := "sessions/" + url.PathEscape(list[0].ID) + "/setup"
		var raw json.RawMessage
		do := map[bool]string{c.Again: "again", c.Stop: "stop", c.Release: "release"}[true]
		if do == "" {
			err = api.call(ctx, "GET", path, nil, &raw)
		} else {
			err = api.call(ctx, "POST", path, map[string]string{"do": do}, &raw)
		}
		if err != nil {
			return refusedSetUp(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var r setUpReport
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		return p.print("%s", r.words())
	})
}

// words describes a set-up, with what it has written.
func (r setUpReport) words() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(printable(strings.Join(parts, "")) + "\n") }
	if s := r.Setup; s == nil {
		line("nothing was set up")
	} else {
		line(s.State, r.command())
		if s.Problem != "" {
			line(s.Problem)
		}
		for _, note := range s.Notes {
			line(note)
		}
		if s.Waiting {
			line("the agent waits: --again runs the set-up once more, --release has the agent start")
		}
	}
	if r.Problem != "" {
		line(r.Problem)
	}
	if r.Open != "" {
		line("the app is at ", r.Open)
	}
	for _, text := range []string{r.Head, r.Tail} {
		for one := range strings.Lines(text) {
			line(strings.TrimSuffix(one, "\n"))
		}
	}
	return b.String()
}

// command returns the command that runs, or with which a set-up has ended before its end, after a colon.
func (r setUpReport) command() string {
	s := r.Setup
	if s.At < 1 || s.At > len(s.Commands) || s.State == "done" {
		return ""
	}
	return ": " + s.Commands[s.At-1]
}

// refusedSetUp explains why a set-up does not do as it was told.
func refusedSetUp(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	text := map[string]string{
		"setup.none":        "this conversation has no worktree of its own",
		"setup.nothing":     "nothing says how to set the worktree up",
		"setup.broken":      printable(p.Params["detail"]),
		"setup.unapproved":  "the commands are not approved: deskhand trust, or the window, shows and approves them",
		"setup.running":     "the set-up runs already",
		"setup.not_running": "no set-up runs",
	}[p.Code]
	if text == "" {
		return unanswered(ctx, err)
	}
	return &failure{exitUsage, errors.New(text)}
}
