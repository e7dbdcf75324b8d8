package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

type usageCommand struct {
	common
	From string `name:"from" placeholder:"DAY" help:"First day, such as 2026-11-01. Without it, 29 days before the last."`
	To   string `name:"to" placeholder:"DAY" help:"Last day. Without it, today."`
	By   string `name:"by" default:"day" enum:"day,agent,model,account,session" help:"What is summed up: day, agent, model, account or session."`
	Zone string `name:"zone" placeholder:"ZONE" help:"Where the days begin: a time zone such as Europe/Berlin or +05:30. Without it, that of this machine."`
	CSV  bool   `name:"csv" xor:"form" help:"Print a table for spreadsheets."`
	JSON bool   `name:"json" xor:"form" help:"Print everything as JSON."`
}

// Run prints what turns took.
func (c *usageCommand) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		query := url.Values{"from": {c.From}, "to": {c.To}, "by": {c.By}, "zone": {c.Zone}}.Encode()
		if c.CSV {
			_, err := api.send(ctx, "GET", "usage.csv?"+query, nil, p.Stdout)
			return c.refused(err)
		}
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "usage?"+query, nil, &raw); err != nil {
			return c.refused(err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var r backend.TallyReport
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		return printUsage(p.Stdout, r)
	})
}

// refused returns an error in the words of the command's flags.
func (c *usageCommand) refused(err error) error {
	refusal, is := err.(*problem) //nolint:errorlint // send and call return it as it is
	if !is {
		return err
	}
	switch refusal.Code {
	case "usage.day":
		return &failure{exitUsage, fmt.Errorf("--%s: %q is no day such as 2026-11-01", refusal.Params["name"], refusal.Params["value"])}
	case "usage.span":
		return &failure{exitUsage, fmt.Errorf("%s to %s: the first day is after the last, or they are more than ten years apart", refusal.Params["from"], refusal.Params["to"])}
	case "usage.zone":
		return &failure{exitUsage, fmt.Errorf("--zone: %q is no time zone such as Europe/Berlin or +05:30", refusal.Params["value"])}
	}
	return err
}

// printUsage prints a row for each group, and the sum of all.
func printUsage(out io.Writer, r backend.TallyReport) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // Flush reports failures of w
	row(strings.ToUpper(r.By), "TURNS", "TIME", "TOKENS", "INPUT", "OUTPUT", "COST")
	for i := range r.Rows {
		g := &r.Rows[i]
		name := g.Name
		switch {
		case g.Deleted > 0:
			name = "deleted conversations"
		case name == "" && g.Key == "":
			name = "not told"
		case name == "":
			name = g.Key
		}
		row(append([]string{plain(name)}, sumCells(&g.Sum)...)...)
	}
	row(append([]string{"all"}, sumCells(&r.Total)...)...)
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Pending > 0 {
		_, err := fmt.Fprintf(out, "%d older conversations are still being counted\n", r.Pending)
		return err
	}
	return nil
}

func sumCells(s *backend.TurnSum) []string {
	tokens := func(n int64) string {
		if s.Untold == s.Turns && n == 0 {
			return unknown
		}
		return strconv.FormatInt(n, 10)
	}
	costs := make([]string, 0, len(s.Costs))
	for _, c := range s.Costs {
		costs = append(costs, strconv.FormatFloat(c.Amount, 'f', 2, 64)+" "+plain(c.Currency))
	}
	if len(costs) == 0 {
		costs = []string{unknown}
	}
	return []string{
		strconv.Itoa(s.Turns), span(time.Duration(s.TookMs) * time.Millisecond), tokens(s.Tokens.Total), tokens(s.Tokens.Input), tokens(s.Tokens.Output), strings.Join(costs, ", "),
	}
}
