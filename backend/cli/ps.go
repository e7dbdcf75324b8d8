package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
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
