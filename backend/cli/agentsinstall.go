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

// installer installs agents through the process that holds the data directory, and shows the progress.
type installer struct {
	p   *Program
	api *api

	line  string // the progress shown last
	drawn bool   // line stands in the terminal's last row, which the next progress replaces

	waited bool // get has waited for an installation that another caller began
}

// plan looks up the downloads of an installation, and tells the person their size. plan fails where the disk has no room for them.
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

// planWords describes the size of an installation.
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

// wishOf is the body of an installation request.
func wishOf(version string) any {
	if version == "" {
		return nil
	}
	return map[string]string{"version": version}
}

// get installs an agent. get returns when the agent is installed, or when the attempt has ended and left nothing. Cancelling ctx cancels the
// installation, unless another caller began that installation.
func (i *installer) get(ctx context.Context, a backend.Agent, version string) error {
	path := "agents/" + url.PathEscape(a.ID) + "/install"
	ours := false
	begin := func() (string, error) {
		err := i.api.call(ctx, "POST", path, wishOf(version), nil)
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "agent.installing" {
			i.p.say("%s is being installed already; waiting for that.\n", plain(a.Name))
			i.waited = true
			return "", nil
		}
		ours = err == nil
		return "", err
	}
	now, err := i.follow(ctx, a.ID, begin)
	i.clear()
	if ctx.Err() != nil && ours {
		const patience = 30 * time.Second // npm and its child processes have to end
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if err := i.api.call(ending, "DELETE", path, nil, nil); err != nil {
			return fmt.Errorf("the installation could not be ended: %w", err)
		}
		i.p.say("The installation was ended; nothing of it is left.\n")
		return ctx.Err()
	}
	if err != nil {
		return installRefused(ctx, a, err) // errHostEnded if the other Deskhand has ended
	}
	return i.outcome(now, cmp.Or(version, a.Pinned))
}

// follow shows an installation until its end, and returns the agent as of then.
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
		begin = func() (string, error) { return "", nil } // progress meanwhile is lost; the end of the installation is not
		if over, err := i.over(ctx, id, &now); over || err != nil {
			return now, err
		}
	}
}

// isAgent reports whether an event carries the current state of the agent.
func isAgent(e backend.Event, id string) bool {
	var a struct{ ID string }
	return e.Type == "agent.upsert" && json.Unmarshal(e.Data, &a) == nil && a.ID == id
}

// over reports whether no installation of the agent runs. An event alone cannot say so, since the event may stem from the moment before the
// installation began.
func (i *installer) over(ctx context.Context, id string, now *backend.Agent) (bool, error) {
	list, err := i.api.agents(ctx, true, false)
	if err == nil {
		*now, err = list.one(id)
	}
	return err == nil && now.Installing == nil, err
}

// outcome reports how an installation has ended.
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

// show prints the progress of an installation: at a terminal in one line that changes, elsewhere at each step and at each quarter or 100 MB.
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
	_, _ = io.WriteString(i.p.Stderr, "\r\x1b[2K"+visible(text)) // a failed write to stderr can be reported nowhere
	i.drawn = true
}

// clear erases the progress line from the terminal.
func (i *installer) clear() {
	if i.drawn {
		_, _ = io.WriteString(i.p.Stderr, "\r\x1b[2K")
		i.drawn = false
	}
}

// stepWords describes a step for people. With exact, stepWords adds the bytes and the output of npm or uv.
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
