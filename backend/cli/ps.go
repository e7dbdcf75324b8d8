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

// Run lists the processes of the running app.
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

// everOwned reports whether any process has recorded itself as the owner of the data directory.
func everOwned(places datadir.Paths) bool {
	_, err := places.Owner()
	return !errors.Is(err, fs.ErrNotExist)
}

// nobodyRuns is the failure of a command that needs a running Deskhand. Its text lists the processes that a crashed Deskhand has left.
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

// table prints a row for each agent or other child process, and a row for the program itself.
func (c *psCommand) table(out io.Writer, list backend.ProcessList) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // Flush reports failures of w
	row("AGENT", "WHOSE", "PID", "AGE", "CPU", "MEMORY", "PROCESSES")
	for _, a := range list.Items {
		row(agentOf(a), whose(a), strconv.Itoa(a.PID), age(a.StartedAt.Time), cpu(a.CPUSeconds), c.memory(a.RSSBytes, a.PSSBytes), count(a))
	}
	row("-", "Deskhand itself", strconv.Itoa(list.Self.PID), age(list.Self.StartedAt.Time), cpu(list.Self.CPUSeconds), c.memory(list.Self.RSSBytes, list.Self.PSSBytes), "-")
	return w.Flush()
}

// agentOf names the agent that a process runs or serves.
func agentOf(a backend.AgentProcesses) string {
	if a.Agent == "" {
		return unknown
	}
	return plain(a.Agent)
}

// age formats the time since began.
func age(began time.Time) string {
	if began.IsZero() {
		return unknown
	}
	return span(time.Since(began))
}

// whose names the owner of a process: a conversation's title, a caller of the API, or a task of Deskhand.
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
	return plain(a.Owner) // an owner that only a newer Deskhand knows
}

// plain fits foreign text into a cell: short, on a single line, and without control characters.
func plain(text string) string {
	const most = 40
	runes := []rune(printable(text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// unknown fills a cell that the system gives no value for.
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

// span formats a duration in at most two units.
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
