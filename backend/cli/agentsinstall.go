package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"deskhand/backend"
)

// installer installs agents in the process that has the data directory, ours or another, and shows how far it is.
type installer struct {
	p   *Program
	api *api

	line  string // the progress that was shown last
	drawn bool   // it stands in the terminal's last line, which the next one replaces
}

// plan finds out what an installation would get and how large that is, and tells the person. It fails where there is no room for it.
func (i *installer) plan(ctx context.Context, a backend.Agent, version string) error {
	i.p.say("Looking up what %s %s needs…\n", plain(a.Name), plain(cmp.Or(version, a.Pinned)))
	var plan backend.InstallPlan
	if err := i.api.call(ctx, "POST", "agents/"+url.PathEscape(a.ID)+"/plan", wishOf(version), &plan); err != nil {
		return installRefused(ctx, a, err)
	}
	i.p.say("%s %s (%s), %s\n", plain(a.Name), plain(plan.Version), barred(a.Package), planWords(plan))
	if !plan.Enough {
		return fmt.Errorf("there is too little room for it: %s are free", megabytes(plan.FreeBytes))
	}
	if a.IsFound() && !a.IsInstalled() {
		i.p.say("The one that is here already, %s, is then no longer used by Deskhand.\n", barred(a.Path))
	}
	return nil
}

// planWords tells how large an installation is.
func planWords(plan backend.InstallPlan) string {
	var parts []string
	if plan.Packages > 1 {
		parts = append(parts, fmt.Sprintf("%d packages", plan.Packages))
	}
	if plan.Download > 0 {
		parts = append(parts, megabytes(plan.Download)+" to download")
	}
	if plan.Unpacked > 0 {
		parts = append(parts, megabytes(plan.Unpacked)+" on the disk")
	}
	if plan.Download == 0 && plan.Unpacked == 0 {
		parts = append(parts, "of a size that nobody tells")
	}
	if plan.FreeBytes > 0 {
		parts = append(parts, megabytes(plan.FreeBytes)+" are free")
	}
	return strings.Join(parts, ", ")
}

func megabytes(n int64) string {
	const mega, giga, many = 1_000_000, 1_000_000_000, 10_000_000_000
	if n >= many {
		return fmt.Sprintf("%d GB", n/giga)
	}
	return fmt.Sprintf("%d MB", max(1, (n+mega/2)/mega))
}

// wishOf is what the API is asked to install.
func wishOf(version string) any {
	if version == "" {
		return nil
	}
	return map[string]string{"version": version}
}

// get installs an agent, and returns when it is there or nothing of the attempt is left. The end of ctx ends the installation, unless somebody else
// had begun it.
func (i *installer) get(ctx context.Context, a backend.Agent, version string) error {
	path := "agents/" + url.PathEscape(a.ID) + "/install"
	ours := false
	begin := func() (string, error) {
		err := i.api.call(ctx, "POST", path, wishOf(version), nil)
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "agent.installing" {
			i.p.say("%s is being installed already; waiting for that.\n", plain(a.Name))
			return "", nil
		}
		ours = err == nil
		return "", err
	}
	now, err := i.follow(ctx, a.ID, begin)
	i.clear()
	if ctx.Err() != nil && ours {
		const patience = 30 * time.Second // npm and all that it started have to end
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if err := i.api.call(ending, "DELETE", path, nil, nil); err != nil {
			return fmt.Errorf("the installation could not be ended: %w", err)
		}
		i.p.say("The installation was ended; nothing of it is left.\n")
		return ctx.Err()
	}
	if err != nil {
		return installRefused(ctx, a, err) // with errHostEnded, should the other have ended
	}
	return i.outcome(now, cmp.Or(version, a.Pinned))
}

// follow shows an installation until it has ended, and gives the agent as it is then.
func (i *installer) follow(ctx context.Context, id string, begin func() (string, error)) (now backend.Agent, err error) {
	for {
		err := i.api.follow(ctx, begin, func(e backend.Event) (bool, error) {
			if progress, ok := progressOf(e, id); ok {
				i.show(progress)
				return false, nil
			}
			if !isAgent(e, id) {
				return false, nil
			}
			return i.over(ctx, id, &now)
		})
		if !errors.Is(err, errAhead) {
			return now, err
		}
		begin = func() (string, error) { return "", nil } // what was said meanwhile is lost; the end is not
		if over, err := i.over(ctx, id, &now); over || err != nil {
			return now, err
		}
	}
}

// isAgent tells whether an event tells how an agent is now.
func isAgent(e backend.Event, id string) bool {
	var a struct{ ID string }
	return e.Type == "agent.upsert" && json.Unmarshal(e.Data, &a) == nil && a.ID == id
}

// over tells whether no installation of the agent runs any more: an event may tell of the moment before it began.
func (i *installer) over(ctx context.Context, id string, now *backend.Agent) (bool, error) {
	list, err := i.api.agents(ctx, true, false)
	if err == nil {
		*now, err = list.one(id)
	}
	return err == nil && now.Installing == nil, err
}

// outcome tells how an installation has ended.
func (i *installer) outcome(now backend.Agent, version string) error {
	switch f := now.Failure; {
	case f != nil:
		text := fmt.Sprintf("%s was not installed: %s", now.ID, f.Detail)
		if stderr := strings.TrimSpace(f.Stderr); stderr != "" && !strings.Contains(f.Detail, stderr) {
			text += "\n" + stderr
		}
		return errors.New(text)
	case !now.IsInstalled() || version != "" && now.Version != version:
		return &failure{exitCancel, fmt.Errorf("%s was not installed: somebody ended the installation", now.ID)}
	}
	i.p.say("%s %s is installed.\n", plain(now.Name), plain(now.Version))
	return nil
}

// show tells how far an installation is: at a terminal in one line that changes, elsewhere at each step, and at each quarter or 100 MB.
func (i *installer) show(now backend.InstallProgress) {
	terminal := isTerminal(i.p.Stderr)
	text := stepWords(now, terminal)
	if text == i.line {
		return
	}
	i.line = text
	if !terminal {
		i.p.say("· %s\n", text)
		return
	}
	const width = 78
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	_, _ = io.WriteString(i.p.Stderr, "\r\x1b[2K"+visible(text)) // nobody to tell if this fails
	i.drawn = true
}

// clear takes the line that changes off the terminal.
func (i *installer) clear() {
	if i.drawn {
		_, _ = io.WriteString(i.p.Stderr, "\r\x1b[2K")
		i.drawn = false
	}
}

// stepWords is a step for people; exact tells bytes, and what npm or uv says.
func stepWords(now backend.InstallProgress, exact bool) string {
	const hundred = 100_000_000
	text := map[string]string{
		"resolve": "looking up what is needed", "download": "downloading", "verify": "starting it once", "switch": "putting it into use",
	}[now.Step]
	if text == "" {
		text = now.Step
	}
	switch {
	case now.Step != "download":
	case now.Total > 0 && exact:
		text += fmt.Sprintf(", %s of %s", megabytes(now.Bytes), megabytes(now.Total))
	case now.Total > 0:
		const quarter = 25
		if part := min(now.Bytes*100/now.Total/quarter*quarter, 100); part > 0 {
			text += fmt.Sprintf(", %d %%", part)
		}
	case now.Bytes > 0 && exact:
		text += ", " + megabytes(now.Bytes)
	case now.Bytes >= hundred:
		text += ", " + megabytes(now.Bytes/hundred*hundred)
	}
	if log := printable(now.Log); log != "" && exact {
		text += "  " + log
	}
	return text
}
