package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

type inboxCommand struct {
	List   inboxList   `cmd:"" default:"withargs" help:"Show what waits for a person, the oldest first (default)."`
	Answer inboxAnswer `cmd:"" help:"Answer a request; without an answer, show it in full and what can be answered."`
}

type inboxPage struct {
	Items []backend.Request `json:"items"`
}

type inboxList struct {
	common
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each waiting request.
func (c *inboxList) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "inbox", nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var page inboxPage
		if err := json.Unmarshal(raw, &page); err != nil {
			return err
		}
		if len(page.Items) == 0 {
			p.say("Nothing waits.\n")
			return nil
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tAGE\tKIND\tAGENT\tSESSION\tREQUEST") // Flush reports failures of w
		for _, r := range page.Items {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, age(r.CreatedAt.Time), kindOf(r), plain(r.Agent), r.Session, plain(r.Title))
		}
		return w.Flush()
	})
}

// kindOf is the everyday name of a kind of request.
func kindOf(r backend.Request) string {
	switch r.Kind {
	case "permission":
		return "approval"
	case "url":
		return "address"
	case "raw":
		return "unknown"
	}
	return r.Kind
}

// waiting finds the waiting request whose id begins with id; "last" is the newest request.
func (a *api) waiting(ctx context.Context, id string) (backend.Request, error) {
	var page inboxPage
	if err := a.call(ctx, "GET", "inbox", nil, &page); err != nil {
		return backend.Request{}, unanswered(ctx, err)
	}
	var found []backend.Request
	for i, r := range page.Items {
		if id != "" && strings.HasPrefix(r.ID, id) || id == "last" && i == len(page.Items)-1 {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return backend.Request{}, a.noneWaits(ctx, id)
	case 1:
		return found[0], nil
	}
	return backend.Request{}, &failure{exitUsage, fmt.Errorf("%d requests begin with %q", len(found), id)}
}

// noneWaits is the failure of a command whose request does not wait. Its text names who answered first when the request has ended.
func (a *api) noneWaits(ctx context.Context, id string) error {
	none := &failure{exitUsage, fmt.Errorf("no request %q waits; deskhand inbox lists those that do", id)}
	const least = 4 // letters that the API call requires
	if len(id) < least || id == "last" {
		return none
	}
	var ended inboxPage
	if err := a.call(ctx, "GET", "requests?"+url.Values{"begins": {id}}.Encode(), nil, &ended); err != nil {
		return unanswered(ctx, err)
	}
	switch len(ended.Items) {
	case 0:
		return none
	case 1:
		r := ended.Items[0]
		params := map[string]string{"status": r.Status, "answeredBy": r.AnsweredBy}
		if r.ResolvedAt != nil {
			params["resolvedAt"] = r.ResolvedAt.UTC().Format(time.RFC3339Nano)
		}
		return &failure{exitRefused, errors.New(resolved(params))}
	}
	return &failure{exitRefused, fmt.Errorf("too late: several requests begin with %q, and none of them waits any more", id)}
}

type inboxAnswer struct {
	common
	ID string `arg:"" help:"The request: its id, the beginning of it, or last for the newest."`

	Option   string   `xor:"answer" placeholder:"N|ID" help:"Of an approval: the option, by its number in the list, else by its id or its name."`
	Choose   []string `sep:"none" placeholder:"A,B" help:"Of a question: the choices, by number, id or name; once for each question, in order. What is no choice is taken for words of your own, where those are accepted."`
	Text     string   `xor:"answer" placeholder:"WORDS" help:"Of one question: words of your own."`
	Form     []string `sep:"none" placeholder:"NAME=VALUE" help:"Of a form: a field; of several choices, with commas between. Repeatable."`
	JSON     string   `name:"json" xor:"answer" placeholder:"{…}" help:"Of a form: all fields at once, as JSON."`
	Accept   bool     `xor:"answer" help:"Of an address: agree to open it. It is printed, and not opened by this command."`
	Decline  bool     `xor:"answer" help:"Turn it down; the agent goes on without."`
	Cancel   bool     `xor:"answer" help:"Abort what the agent asked for; the one answer to a request of an unknown kind."`
	Remember string   `enum:",session,directory,everywhere" default:"" placeholder:"SCOPE" help:"Of an approval: let a rule answer the like of it from now on: session, directory or everywhere."`
}

// Run sends an answer. Run fails when another surface answered first, and names that surface.
func (c *inboxAnswer) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		r, err := api.waiting(ctx, c.ID)
		if err != nil {
			return err
		}
		if !c.given() {
			p.describe(ctx, api, r)
			return &failure{exitUsage, errors.New("it waits still: an answer is needed, such as " + hint(r))}
		}
		answer, err := c.answer(r)
		if err != nil {
			return err
		}
		if err := api.call(ctx, "POST", "requests/"+url.PathEscape(r.ID)+"/answer", answer, nil); err != nil {
			return notTaken(ctx, err)
		}
		if r.Kind == "url" && answer["action"] == "accept" {
			return p.print("%s\n", r.URL)
		}
		p.say("answered: %s%s\n", plain(r.Title), taken(r, answer))
		return nil
	})
}

// taken names the option that an approval was answered with, since the number may have meant another option.
func taken(r backend.Request, answer map[string]any) string {
	for _, o := range r.Options {
		if o.ID == answer["optionId"] {
			shown, does := plain(o.Shown()), " ("+effect(o.Kind)+")"
			return " – " + strings.TrimSuffix(shown, does) + does // the label may name the effect already
		}
	}
	return ""
}

// notTaken explains why an answer was refused.
func notTaken(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	switch {
	case !ok:
		return unanswered(ctx, err)
	case p.Code == "request.resolved":
		return &failure{exitRefused, errors.New(resolved(p.Params))}
	case p.Status == 404:
		return &failure{exitRefused, errors.New("it no longer waits")}
	case p.Status == 400:
		return &failure{exitUsage, err}
	}
	return err
}

// resolved says who answered first and when, or how else the request ended.
func resolved(params map[string]string) string {
	when := ""
	if at, err := time.Parse(time.RFC3339, params["resolvedAt"]); err == nil {
		when = ", at " + at.Local().Format(time.DateTime)
	}
	switch params["status"] {
	case "cancelled":
		return "too late: the agent took it back" + when
	case "expired":
		return "too late: its agent has ended" + when
	}
	who := map[string]string{
		"window": " in the window", "native": " in a dialog of the system", "browser": " in a browser", "cli": " from a terminal", "editor": " in an editor", "discord": " in Discord", "api": " over the API",
		"agent": " by the agent itself", "rule": " by a rule",
	}[params["answeredBy"]]
	return "too late: it was " + params["status"] + who + when
}

// hint is an example of an answer to a request.
func hint(r backend.Request) string {
	switch r.Kind {
	case "permission", "trust":
		return "--option 1"
	case "question":
		return "--choose 1, or --decline"
	case "form":
		return "--form NAME=VALUE, --decline or --cancel"
	case "url":
		return "--accept, --decline or --cancel"
	}
	return "--cancel"
}

// describe shows a request in full, since nobody should answer a request unseen.
func (p *Program) describe(ctx context.Context, api *api, r backend.Request) {
	t := &terminalTurn{p: p, api: api}
	d := &prompter{t: t}
	t.aside("? %s asks: %s", backend.Readable(r.Agent), barred(r.Title))
	if r.Detail != "" {
		t.aside("  %s", barred(r.Detail))
	}
	switch r.Kind {
	case "permission":
		d.detail(ctx, r)
	case "trust":
		d.brought(r)
	case "question":
		d.asked(r)
	case "form":
		t.aside("%s", pretty(r.Schema))
	case "url":
		d.address(r)
	default:
		t.aside("%s", pretty(r.Raw))
	}
	for i, row := range optionRows(r.Options) {
		t.aside("  %s, id %s", row, barred(r.Options[i].ID))
	}
}

// pretty indents JSON. Text that is no JSON stays unchanged.
func pretty(raw json.RawMessage) string {
	text, err := json.MarshalIndent(raw, "  ", "  ")
	if err != nil {
		return string(raw)
	}
	return "  " + string(text)
}
