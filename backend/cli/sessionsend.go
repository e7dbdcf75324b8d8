package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"deskhand/backend"
)

type sessionsEnd struct {
	common
	ID  string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	PID []int  `arg:"" optional:"" help:"The processes of those commands that are to end; all without."`
}

// Run ends the stragglers of stopped turns in the running app.
func (c *sessionsEnd) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		return c.end(ctx, p, api, "sessions/"+url.PathEscape(id)+"/stragglers")
	})
}

func (c *sessionsEnd) end(ctx context.Context, p *Program, api *api, path string) error {
	var list backend.StragglerList
	if err := api.call(ctx, "GET", path, nil, &list); err != nil {
		return unanswered(ctx, err)
	}
	chosen, err := c.choose(list.Items)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return p.print("No command of a stopped turn runs.\n")
	}
	for _, e := range chosen {
		if err := api.call(ctx, "POST", path+"/"+url.PathEscape(e.ID)+"/end", nil, nil); err != nil {
			return unanswered(ctx, err)
		}
		if err := p.print("Ended %d: %s\n", e.Straggler.PID, e.Straggler.Command); err != nil {
			return err
		}
	}
	return nil
}

// choose selects the entries whose processes are named.
func (c *sessionsEnd) choose(all []backend.Entry) ([]backend.Entry, error) {
	if len(c.PID) == 0 {
		return all, nil
	}
	var chosen []backend.Entry
	for _, pid := range c.PID {
		i := slices.IndexFunc(all, func(e backend.Entry) bool { return e.Straggler.PID == pid })
		if i < 0 {
			return nil, fmt.Errorf("no command of a stopped turn runs as process %d", pid)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
