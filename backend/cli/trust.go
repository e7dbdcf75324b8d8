package cli

import (
	"context"
	"strings"

	"deskhand/backend"
)

// decideTrust answers a trust request without asking a person: the directory's executables start this once, or not at all. The turn goes on
// without them and then misses no approval; an agent that reads them by itself does not start, which counts as a missing approval.
func (t *terminalTurn) decideTrust(ctx context.Context, r backend.Request) error {
	wanted, said := "reject_once", "· started without what is not approved here: %s"
	if t.approve == approveOnce {
		wanted, said = "allow_once", "· allowed this once: %s"
	}
	for _, o := range r.Options {
		if o.Kind != wanted {
			continue
		}
		if o.ID == "decline" {
			said = "· not started, for the agent reads by itself what is not approved here: %s\n  deskhand trust shows it and approves it"
		}
		t.aside(said, executables(r))
		ours, err := t.answer(ctx, r, backend.Answer{OptionID: o.ID})
		if ours && o.ID == "decline" {
			t.missed()
		}
		return err
	}
	return t.api.call(ctx, "POST", "sessions/"+r.Session+"/cancel", nil, nil)
}

func executables(r backend.Request) string {
	var names []string
	for _, e := range r.Executables {
		names = append(names, e.Kind+" "+backend.Readable(e.Name))
	}
	return strings.Join(names, ", ")
}

// trust shows the executables that a directory would start beside the agent, with their earlier content.
func (d *prompter) trust(ctx context.Context, r backend.Request) (backend.Answer, bool) {
	d.t.aside("? %s brings what starts with %s:", backend.Readable(r.Detail), backend.Readable(r.Agent))
	d.brought(r)
	for i, o := range r.Options {
		d.t.aside("  %d  %s", i+1, barred(o.Name))
	}
	i, ok := d.number(ctx, len(r.Options))
	if !ok {
		return backend.Answer{}, false
	}
	return backend.Answer{OptionID: r.Options[i].ID}, true
}

// brought shows each executable in full.
func (d *prompter) brought(r backend.Request) {
	for _, e := range r.Executables {
		d.t.aside("  %s %s\n    %s", sortOf(e.Kind), nameOf(e), indented(shownExecutable(e)))
	}
}

// shownExecutable is an executable's content, as a line diff when other content was approved under the same name.
func shownExecutable(e backend.Executable) string {
	switch e.Before {
	case "":
		return e.Detail
	case e.Detail:
		return e.Detail + "\nhidden values of it have changed since it was approved"
	}
	return "changed since it was approved:\n" + strings.Join(lineDiff(e.Before, e.Detail), "\n")
}

func sortOf(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
