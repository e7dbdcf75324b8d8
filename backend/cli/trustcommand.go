package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

type trustCommand struct {
	List    trustList    `cmd:"" default:"withargs" help:"Show what of a directory starts programs, and what of that is approved (default)."`
	Show    trustShow    `cmd:"" help:"Show it in full, and what has changed since it was approved."`
	Approve trustApprove `cmd:"" help:"Approve what is in a directory now."`
	Revoke  trustRevoke  `cmd:"" help:"Take approvals back. What runs goes on."`
}

// inTrusted holds the directory flag of the trust commands.
type inTrusted struct {
	common
	Dir         string `name:"dir" placeholder:"DIR" help:"The directory (default: this one)."`
	AllProjects bool   `name:"all-projects" help:"The MCP servers and skills of all projects, and not those of a directory."`
}

// scope is the part of a call that says what the call is about.
func (c inTrusted) scope() (url.Values, error) {
	if c.AllProjects {
		return url.Values{"scope": {"all"}}, nil
	}
	dir, err := filepath.Abs(c.Dir)
	return url.Values{"directory": {dir}}, err
}

func (c inTrusted) query() (string, error) {
	scope, err := c.scope()
	return "?" + scope.Encode(), err
}

// trusted lists the executables of the directory.
func (c inTrusted) trusted(ctx context.Context, api *api) (list []backend.Executable, err error) {
	query, err := c.query()
	if err != nil {
		return nil, err
	}
	var body struct{ Items []backend.Executable }
	if err := api.call(ctx, "GET", "trust"+query, nil, &body); err != nil {
		return nil, usage(err)
	}
	return body.Items, nil
}

type approvalRow struct {
	Directory, Kind, Name, Hash, Detail string
	ApprovedAt                          time.Time
	Older                               bool
}

type trustList struct {
	common
	Dir         string `arg:"" optional:"" help:"The directory (default: this one)."`
	AllProjects bool   `name:"all-projects" help:"The MCP servers and skills of all projects, and not those of a directory."`
	All         bool   `help:"List what was approved, in all directories, also what is not there any more."`
	JSON        bool   `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each executable.
func (c *trustList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		in := inTrusted{Dir: c.Dir, AllProjects: c.AllProjects}
		query, err := in.query()
		if err != nil {
			return err
		}
		path := "trust" + query
		if c.All {
			if path = "trust/approvals"; c.Dir != "" || c.AllProjects {
				path += query
			}
		}
		var raw json.RawMessage
		if err := api.call(ctx, "GET", path, nil, &raw); err != nil {
			return usage(err)
		}
		switch {
		case c.JSON:
			return printJSON(p.Stdout, raw)
		case c.All:
			return p.printApprovals(raw)
		}
		return p.printTrusted(raw)
	})
}

func (p *Program) printTrusted(raw json.RawMessage) error {
	var list struct{ Items []backend.Executable }
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "STATE\tKIND\tHASH\tNAME") // Flush reports failures of w
	for _, e := range list.Items {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\n", trustState(e), sortOf(e.Kind), e.Hash, nameOf(e))
	}
	return w.Flush()
}

// nameOf is an executable's name, with its scope where that is not the directory.
func nameOf(e backend.Executable) string {
	if e.Scope != "" {
		return backend.Readable(e.Name) + " (all projects)"
	}
	return backend.Readable(e.Name)
}

func trustState(e backend.Executable) string {
	switch {
	case e.Approved:
		return "approved"
	case e.Before != "":
		return "changed"
	}
	return "new"
}

func (p *Program) printApprovals(raw json.RawMessage) error {
	var list struct{ Items []approvalRow }
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "APPROVED\tKIND\tHASH\tNAME\tDIRECTORY") // Flush reports failures of w
	for _, a := range list.Items {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\t%s\n", a.ApprovedAt.Local().Format("2006-01-02 15:04"), sortOf(a.Kind), a.Hash, backend.Readable(a.Name), backend.Readable(cmp.Or(a.Directory, "(all projects)")))
	}
	return w.Flush()
}

type trustShow struct {
	inTrusted
	What []string `arg:"" optional:"" help:"Names, or beginnings of hashes (default: all that is not approved)."`
}

// Run prints executables in full.
func (c *trustShow) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := c.trusted(ctx, api)
		if err != nil {
			return err
		}
		chosen, err := choose(list, c.What, func(e backend.Executable) bool { return !e.Approved })
		if err != nil {
			return err
		}
		for _, e := range chosen {
			if err := p.print("%s %s\n  %s, SHA-256 %s\n    %s\n", sortOf(e.Kind), nameOf(e), trustState(e), e.Hash, backend.Reveal(indented(shownExecutable(e)))); err != nil {
				return err
			}
		}
		return nil
	})
}

// choose selects executables by name or by the beginning of their hash. Without any names, choose selects the executables that others accepts.
func choose(list []backend.Executable, what []string, others func(backend.Executable) bool) (chosen []backend.Executable, err error) {
	if len(what) == 0 {
		return slices.DeleteFunc(slices.Clone(list), func(e backend.Executable) bool { return !others(e) }), nil
	}
	for _, w := range what {
		found := slices.DeleteFunc(slices.Clone(list), func(e backend.Executable) bool { return !matchesHash(e.Hash, w) && e.Name != w })
		if len(found) == 0 {
			return nil, &failure{exitUsage, fmt.Errorf("nothing here has the name or the hash %q", w)}
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// matchesHash reports whether beginning begins hash, with enough letters that no name matches by chance.
func matchesHash(hash, beginning string) bool {
	return len(beginning) >= 8 && strings.HasPrefix(hash, strings.ToLower(beginning))
}

// somethingOrAll rejects a command that names neither executables nor --all, or both.
func somethingOrAll(what []string, all bool, verb string) error {
	if len(what) == 0 == all {
		return nil
	}
	return &failure{exitUsage, fmt.Errorf("say what to %s, by names or hashes, or --all", verb)}
}

type trustApprove struct {
	inTrusted
	What []string `arg:"" optional:"" help:"Names, or beginnings of hashes, as the list shows them."`
	All  bool     `help:"All that is there now."`
}

// Run approves executables by their current hashes.
func (c *trustApprove) Run(p *Program) error {
	if err := somethingOrAll(c.What, c.All, "approve"); err != nil {
		return err
	}
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := c.trusted(ctx, api)
		if err != nil {
			return err
		}
		chosen, err := choose(list, c.What, func(e backend.Executable) bool { return !e.Approved })
		if err != nil || len(chosen) == 0 {
			return err
		}
		wish, err := c.wish(chosen)
		if err != nil {
			return err
		}
		if err := api.call(ctx, "POST", "trust", wish, nil); err != nil {
			return usage(err)
		}
		for _, e := range chosen {
			p.say("approved: %s %s\n", sortOf(e.Kind), backend.Readable(e.Name))
		}
		return nil
	})
}

// wish is the body of the call that approves the executables.
func (c *trustApprove) wish(chosen []backend.Executable) (map[string]any, error) {
	scope, err := c.scope()
	if err != nil {
		return nil, err
	}
	var hashes []string
	for _, e := range chosen {
		hashes = append(hashes, e.Hash)
	}
	wish := map[string]any{"hashes": hashes}
	for name := range scope {
		wish[name] = scope.Get(name)
	}
	return wish, nil
}

type trustRevoke struct {
	inTrusted
	What []string `arg:"" optional:"" help:"Names, or beginnings of hashes, as the list shows them."`
	All  bool     `help:"All approvals of the directory."`
}

// Run revokes approvals, including those of executables that are gone.
func (c *trustRevoke) Run(p *Program) error {
	if err := somethingOrAll(c.What, c.All, "revoke"); err != nil {
		return err
	}
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		query, err := c.query()
		if err != nil {
			return err
		}
		if c.All {
			return usage(api.call(ctx, "DELETE", "trust/approvals"+query, nil, nil))
		}
		return p.revoke(ctx, api, query, c.What)
	})
}

// revoke revokes the approvals that match a name or the beginning of a hash.
func (p *Program) revoke(ctx context.Context, api *api, query string, what []string) error {
	var list struct{ Items []approvalRow }
	if err := api.call(ctx, "GET", "trust/approvals"+query, nil, &list); err != nil {
		return usage(err)
	}
	for _, w := range what {
		found := slices.DeleteFunc(slices.Clone(list.Items), func(a approvalRow) bool { return !matchesHash(a.Hash, w) && a.Name != w })
		if len(found) == 0 {
			return &failure{exitUsage, fmt.Errorf("nothing with the name or the hash %q is approved here", w)}
		}
		for _, a := range found {
			if err := api.call(ctx, "DELETE", "trust"+query+"&hash="+url.QueryEscape(a.Hash), nil, nil); err != nil {
				return usage(err)
			}
			p.say("revoked: %s %s\n", sortOf(a.Kind), backend.Readable(a.Name))
		}
	}
	return nil
}
