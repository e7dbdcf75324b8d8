package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"text/tabwriter"

	"deskhand/backend"
)

type placesCommand struct {
	List   placesList   `cmd:"" default:"withargs" help:"Show where agents can run (default)."`
	Add    placesAdd    `cmd:"" help:"Add a runtime on another machine. Its token is asked for, or taken from standard input or DESKHAND_PLACE_TOKEN."`
	Check  placesCheck  `cmd:"" help:"Ask a runtime whether it is there, and whether it takes the token."`
	Token  placesToken  `cmd:"" help:"Enter another token for a runtime."`
	Remove placesRemove `cmd:"" help:"Forget a runtime that no conversation uses."`
}

// placeTokenVariable holds a place's token for unattended commands. The token is no argument, since every user can read a process's arguments.
const placeTokenVariable = "DESKHAND_PLACE_TOKEN"

type placesList struct {
	common
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each place.
func (c *placesList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "places", nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list struct{ Items []backend.Place }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "NAME\tSTATE\tSOFTWARE\tURL") // Flush reports failures of w
		for _, place := range list.Items {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plain(place.Name), place.State, plain(strings.TrimSpace(place.Software+" "+place.Version)), printable(place.URL))
		}
		return w.Flush()
	})
}

type placesAdd struct {
	common
	Name     string `arg:"" help:"What to call it."`
	URL      string `arg:"" name:"url" help:"Where it answers, such as https://sandbox.example.org."`
	Insecure bool   `help:"Take http to another machine, although everybody on the way can read the token."`
}

// Run adds a place and prints its state.
func (c *placesAdd) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		token, err := p.placeToken(ctx)
		if err != nil {
			return err
		}
		var place backend.Place
		wish := map[string]any{"name": c.Name, "url": c.URL, "token": token, "insecure": c.Insecure}
		if err := api.call(ctx, "POST", "places", wish, &place); err != nil {
			return usage(err)
		}
		return p.tellPlace(place)
	})
}

// placeToken reads a place's token from the environment, from the person at the terminal, or from standard input. The token may be empty.
func (p *Program) placeToken(ctx context.Context) (string, error) {
	if token, given := os.LookupEnv(placeTokenVariable); given {
		return token, nil
	}
	asked := &loginAtTerminal{p: p, in: bufio.NewReader(p.Stdin)}
	prompt := ""
	if isTerminal(p.Stdin) {
		prompt = "Token (it is not shown; empty for none): "
	}
	token, err := asked.line(ctx, prompt, true)
	if err != nil && ctx.Err() == nil {
		return "", nil // an empty standard input means no token
	}
	return token, err
}

func (p *Program) tellPlace(place backend.Place) error {
	if place.Warning != "" {
		p.say("The token is %s\n", place.Warning)
	}
	if place.State != "ready" {
		return fmt.Errorf("%s is %s: %s", plain(place.Name), place.State, printable(place.Detail))
	}
	return p.print("%s is ready: %s\n", plain(place.Name), plain(strings.TrimSpace(place.Software+" "+place.Version)))
}

// place finds a place by its name or id.
func (a *api) place(ctx context.Context, name string) (backend.Place, error) {
	var list struct{ Items []backend.Place }
	if err := a.call(ctx, "GET", "places", nil, &list); err != nil {
		return backend.Place{}, unanswered(ctx, err)
	}
	for _, p := range list.Items {
		if strings.EqualFold(p.Name, name) || p.ID == name {
			return p, nil
		}
	}
	return backend.Place{}, &failure{exitUsage, fmt.Errorf("there is no place %q; deskhand places lists them", name)}
}

type placesCheck struct {
	common
	Name string `arg:"" help:"The place."`
}

// Run asks a place's runtime for its software and version.
func (c *placesCheck) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		place, err := api.place(ctx, c.Name)
		if err != nil {
			return err
		}
		if err := api.call(ctx, "POST", "places/"+url.PathEscape(place.ID)+"/check", nil, &place); err != nil {
			return unanswered(ctx, err)
		}
		return p.tellPlace(place)
	})
}

type placesToken struct {
	common
	Name string `arg:"" help:"The place."`
}

func (c *placesToken) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		place, err := api.place(ctx, c.Name)
		if err != nil {
			return err
		}
		token, err := p.placeToken(ctx)
		if err != nil {
			return err
		}
		if err := api.call(ctx, "PATCH", "places/"+url.PathEscape(place.ID), map[string]any{"token": token}, &place); err != nil {
			return usage(err)
		}
		return p.tellPlace(place)
	})
}

type placesRemove struct {
	common
	Name string `arg:"" help:"The place."`
}

func (c *placesRemove) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		place, err := api.place(ctx, c.Name)
		if err != nil {
			return err
		}
		var gone struct{ Left int }
		if err := api.call(ctx, "DELETE", "places/"+url.PathEscape(place.ID), nil, &gone); err != nil {
			return usage(err)
		}
		if gone.Left > 0 {
			p.say("%s is removed. Agents there that could not be ended and may still be at work: %d.\n", plain(place.Name), gone.Left)
		}
		return nil
	})
}

// directoryThere checks a directory at a remote place. The directory has to be absolute, since this machine cannot complete a relative path
// there.
func directoryThere(dir string) (string, error) {
	if !path.IsAbs(dir) && !strings.Contains(dir, `:\`) {
		return "", &failure{exitUsage, errors.New("with --place, --dir names the directory there, as an absolute path")}
	}
	return dir, nil
}
