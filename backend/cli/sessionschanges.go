package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"deskhand/backend"
)

// changedFiles decodes the printed part of a turn's changes.
type changedFiles struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
	Turn   string `json:"turn"`
	Mixed  bool   `json:"mixed"`
	Files  []struct {
		Path    string `json:"path"`
		Was     string `json:"was"`
		Kind    string `json:"kind"`
		Added   int    `json:"added"`
		Removed int    `json:"removed"`
		Between bool   `json:"between"`
	} `json:"files"`
}

type restoredFiles struct {
	ID     string `json:"id"`
	Mixed  bool   `json:"mixed"`
	Reason string `json:"reason"`
	Files  []struct {
		Path    string `json:"path"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	} `json:"files"`
}

type sessionsChanges struct {
	common
	ID   string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Turn string `help:"One turn, by its id; the newest without it."`
	All  bool   `help:"All since the conversation began."`
	JSON bool   `name:"json" help:"Print the record as JSON."`
}

func (c *sessionsChanges) query() string {
	v := url.Values{}
	if c.All {
		v.Set("since", "start")
	} else if c.Turn != "" {
		v.Set("turn", c.Turn)
	}
	return v.Encode()
}

func (c *sessionsChanges) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "sessions/"+url.PathEscape(id)+"/changes?"+c.query(), nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list changedFiles
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		switch {
		case list.State == "taking":
			return p.print("the turn is not over\n")
		case list.State == "off":
			return p.print("nobody looked at the directory: %s\n", unlooked(list.Reason))
		case len(list.Files) == 0:
			return p.print("nothing was changed\n")
		}
		return list.print(p)
	})
}

// print prints a row for each file.
func (l *changedFiles) print(p *Program) error {
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range l.Files {
		name := plain(f.Path)
		if f.Was != "" {
			name += " (was " + plain(f.Was) + ")"
		}
		if f.Between {
			name += " (also changed between turns)"
		}
		_, _ = fmt.Fprintf(w, "%s\t+%d\t-%d\t%s\n", f.Kind, f.Added, f.Removed, name) // Flush reports failures of w
	}
	if l.Mixed {
		p.say("%s\n", mixed(l.Reason))
	}
	return w.Flush()
}

// mixed explains why the changes may include somebody else's work.
func mixed(reason string) string {
	if reason == "changes.late" {
		return "Deskhand ended in the middle of the turn: what was done in the directory until its next start may be in this."
	}
	return "Another conversation worked in the directory at the same time: some of this may be its work."
}

// unlooked explains why no snapshot was taken.
func unlooked(reason string) string {
	if text := map[string]string{
		"changes.no_git": "git is not on this computer", "changes.too_large": "it holds too much", "changes.slow": "reading it took too long", "changes.elsewhere": "it is elsewhere",
		"changes.missing": "it is not there", "changes.wide": "it is a home directory, a whole disk, or holds Deskhand's data", "changes.off": "the settings turn it off",
		"changes.pruned": "that was too long ago", "changes.failed": "git failed; the log tells more",
	}[reason]; text != "" {
		return text
	}
	return reason
}

type sessionsUndo struct {
	common
	ID    string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Turn  string `help:"One turn, by its id; the newest without it."`
	Force bool   `help:"Files that were changed since, too."`
	Yes   bool   `short:"y" help:"Do not ask."`
}

// Run undoes a turn's changes after the person has seen and confirmed the effect.
func (c *sessionsUndo) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		path := "sessions/" + url.PathEscape(id) + "/changes"
		if c.Turn == "" {
			var newest changedFiles
			if err := api.call(ctx, "GET", path, nil, &newest); err != nil {
				return unanswered(ctx, err)
			}
			c.Turn = newest.Turn
		}
		if c.Turn == "" {
			return p.print("nothing was changed\n")
		}
		return c.undo(ctx, p, api, path+"/restore")
	})
}

// undo shows the effect of an undo, asks, and undoes.
func (c *sessionsUndo) undo(ctx context.Context, p *Program, api *api, path string) error {
	wish := map[string]any{"turn": c.Turn, "preview": true, "force": c.Force}
	var would, done restoredFiles
	if err := api.call(ctx, "POST", path, wish, &would); err != nil {
		return unanswered(ctx, err)
	}
	if !c.Yes {
		if !isTerminal(p.Stdin) {
			return &failure{exitUsage, errors.New("this is no terminal to ask at; --yes undoes it without asking")}
		}
		if would.Mixed {
			p.say("%s\n", mixed(would.Reason))
		}
		p.say("%sPut these files back? Type yes to do it: ", would.rows())
		if err := p.yes(ctx, "nothing was put back"); err != nil {
			return err
		}
	}
	wish["preview"] = false
	if err := api.call(ctx, "POST", path, wish, &done); err != nil {
		return unanswered(ctx, err)
	}
	return p.print("%s", done.rows())
}

func (r restoredFiles) rows() string {
	var text strings.Builder
	for _, f := range r.Files {
		reason := map[string]string{
			"changes.edited": "it was changed since", "changes.in_the_way": "something stands in its way", "changes.not_kept": "its content was not kept", "changes.unwritable": "it cannot be written",
		}[f.Reason]
		if reason != "" {
			reason = ": " + reason
		}
		fmt.Fprintf(&text, "%s  %s%s\n", f.Outcome, plain(f.Path), reason)
	}
	return text.String()
}
