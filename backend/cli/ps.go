package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

type psCommand struct {
	common
	JSON bool `name:"json" help:"Print everything as JSON, each single process too."`
	PSS  bool `name:"pss" help:"Count memory that processes share once, not once for each. It takes longer."`
}

// Run shows what runs in the running app.
func (c *psCommand) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		var list json.RawMessage
		if err := api.call(ctx, "GET", "processes?pss="+strconv.FormatBool(c.PSS), nil, &list); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, list)
		}
		var processes backend.ProcessList
		if err := json.Unmarshal(list, &processes); err != nil {
			return err
		}
		return c.table(p.Stdout, processes)
	})
}

// everOwned is false when no process says that it has the data directory: then there is none to wait for.
func everOwned(places datadir.Paths) bool {
	_, err := places.Owner()
	return !errors.Is(err, fs.ErrNotExist)
}

// nobodyRuns says so, and what the last one has left if it did not end well.
func nobodyRuns(places datadir.Paths) error {
	text := "no Deskhand runs on " + places.Data
	left, err := backend.Leftovers(places)
	if err != nil || len(left) == 0 {
		return errors.New(text + "; `deskhand` opens the window, and `deskhand server` works without one")
	}
	var b strings.Builder
	b.WriteString(text + ". The last one has left these processes, which the next one ends:")
	for _, m := range left {
		fmt.Fprintf(&b, "\n  %d %s, for %s", m.PID, plain(m.Name), span(time.Since(m.StartedAt)))
	}
	return errors.New(b.String())
}

// table is a row for each agent or other program that was started, and one for the program itself.
func (c *psCommand) table(out io.Writer, list backend.ProcessList) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // Flush tells of failures
	row("AGENT", "WHOSE", "PID", "AGE", "CPU", "MEMORY", "PROCESSES")
	for _, a := range list.Items {
		row(agentOf(a), whose(a), strconv.Itoa(a.PID), age(a.StartedAt.Time), cpu(a.CPUSeconds), c.memory(a.RSSBytes, a.PSSBytes), count(a))
	}
	row("-", "Deskhand itself", strconv.Itoa(list.Self.PID), age(list.Self.StartedAt.Time), cpu(list.Self.CPUSeconds), c.memory(list.Self.RSSBytes, list.Self.PSSBytes), "-")
	return w.Flush()
}

// agentOf is the agent that a program is, or is about.
func agentOf(a backend.AgentProcesses) string {
	if a.Agent == "" {
		return unknown
	}
	return plain(a.Agent)
}

// age is how long ago something began.
func age(began time.Time) string {
	if began.IsZero() {
		return unknown
	}
	return span(time.Since(began))
}

// whose tells what a program is for: a conversation by its title, a caller of the API, or something that Deskhand does.
func whose(a backend.AgentProcesses) string {
	switch a.Owner {
	case "session":
		if a.Title == "" {
			return "conversation without a title"
		}
		return plain(a.Title)
	case "api":
		return plain(a.ServerID) + " (API)"
	case "install":
		return "installation"
	case "test":
		return "test"
	case "login":
		return "login"
	case "shell":
		return "reads the login shell"
	case "skills":
		return "gets skills"
	case "terminal":
		return "runs for an agent"
	case "watchdog":
		return "watchdog of Deskhand"
	}
	return plain(a.Owner) // of a Deskhand that is newer than we are
}

// plain is a text of somebody else's in one cell: short, and without what a terminal would act on.
func plain(text string) string {
	const most = 40
	runes := []rune(printable(text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// unknown stands for what the system does not tell.
const unknown = "-"

func count(a backend.AgentProcesses) string {
	if len(a.Processes) == 0 {
		return unknown
	}
	return strconv.Itoa(len(a.Processes))
}

func cpu(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return span(time.Duration(*seconds * float64(time.Second)))
}

func (c *psCommand) memory(rss, pss *int64) string {
	size := rss
	if c.PSS {
		size = pss
	}
	if size == nil {
		return unknown
	}
	if mib := float64(*size) / (1 << 20); mib < 1<<10 {
		return fmt.Sprintf("%.0f MiB", mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(*size)/(1<<30))
}

// span is a time in two units at most.
func span(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
}
