package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

type sessionsCommand struct {
	List     sessionsList     `cmd:"" default:"withargs" help:"Show the conversations, the most recent first (default)."`
	Show     sessionsShow     `cmd:"" help:"Print a conversation as Markdown."`
	Search   sessionsSearch   `cmd:"" help:"Look through every conversation."`
	Export   sessionsExport   `cmd:"" help:"Write a conversation to a file."`
	Import   sessionsImport   `cmd:"" help:"Take in conversations that an agent has, or list them."`
	Fork     sessionsFork     `cmd:"" help:"Make a second conversation that goes on from where this one is."`
	Summary  sessionsSummary  `cmd:"" help:"Print a summary of a conversation, for an agent that does not know it."`
	Steer    sessionsSteer    `cmd:"" help:"Tell an agent that is at work something, without stopping it."`
	End      sessionsEnd      `cmd:"" help:"End commands that still run though their turn was stopped."`
	Changes  sessionsChanges  `cmd:"" help:"Show which files a turn changed."`
	Undo     sessionsUndo     `cmd:"" help:"Take back what a turn changed."`
	Setup    sessionsSetup    `cmd:"" help:"Show how the worktree of a conversation was set up, run that again, or go on without it."`
	Worktree sessionsWorktree `cmd:"" help:"Show the worktree of a conversation, remove it or bring it back."`
	Land     sessionsLand     `cmd:"" help:"Compare the branch of a conversation with its base; commit, merge and push it."`
	Delete   sessionsDelete   `cmd:"" help:"Delete conversations for good."`
	Relink   sessionsRelink   `cmd:"" help:"Tell where a directory was moved to; its conversations follow."`
}

type sessionList struct {
	Items []backend.Session `json:"items"`
	Next  string            `json:"next"`
}

type sessionsList struct {
	common
	Archived bool `help:"Those that were put away."`
	Limit    int  `default:"30" help:"How many."`
	JSON     bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each conversation.
func (c *sessionsList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		v := url.Values{"archived": {strconv.FormatBool(c.Archived)}, "limit": {strconv.Itoa(c.Limit)}}
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "sessions?"+v.Encode(), nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list sessionList
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tWHEN\tSTATE\tAGENT\tDIRECTORY\tTITLE") // Flush reports failures of w
		for _, s := range list.Items {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, when(s.UpdatedAt.Time), state(s), plain(s.AgentName), directoryOf(s), plain(s.Title))
		}
		return w.Flush()
	})
}

// when formats a time: the clock for today, the date for other days.
func when(t time.Time) string {
	t = t.Local()
	if y, m, d := time.Now().Date(); t.After(time.Date(y, m, d, 0, 0, 0, 0, time.Local)) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02")
}

// state describes a session's activity in a word.
func state(s backend.Session) string {
	if s.Phase == "closed" {
		if s.Exit != nil {
			return "failed"
		}
		return "asleep"
	}
	return string(s.Phase)
}

// each passes every conversation to f, the most recent first and archived conversations last, until f returns enough.
func (a *api) each(ctx context.Context, f func(backend.Session) (enough bool)) error {
	const most = 1000
	for _, archived := range []string{"false", "true"} {
		v := url.Values{"archived": {archived}, "limit": {strconv.Itoa(cmp.Or(a.page, most))}}
		for more := true; more; more = v.Get("before") != "" {
			var list sessionList
			if err := a.call(ctx, "GET", "sessions?"+v.Encode(), nil, &list); err != nil {
				return unanswered(ctx, err)
			}
			if slices.ContainsFunc(list.Items, f) {
				return nil
			}
			v.Set("before", list.Next)
		}
	}
	return nil
}

// find returns the id that begins with id. find lists every conversation for that, since a conversation not yet listed may share the
// beginning.
func (a *api) find(ctx context.Context, id string) (string, error) {
	const whole = 36
	switch len(id) {
	case whole:
		return id, nil
	case 0: // it would begin every id; a script's variable was not set
		return "", noConversation(id)
	}
	var found []string
	err := a.each(ctx, func(s backend.Session) (enough bool) {
		last := id == "last" && s.ArchivedAt == nil
		if last || strings.HasPrefix(s.ID, id) {
			found = append(found, s.ID)
		}
		return last
	})
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", noConversation(id)
	case 1:
		return found[0], nil
	}
	return "", &failure{exitUsage, fmt.Errorf("%d conversations begin with %q", len(found), id)}
}

// noConversation is the failure of a command whose conversation does not exist.
func noConversation(name string) error {
	return &failure{exitUsage, fmt.Errorf("there is no conversation %q; deskhand sessions lists them", name)}
}

// export writes a conversation, and warns when the conversation is incomplete.
func (p *Program) export(ctx context.Context, api *api, id, format string, out io.Writer) error {
	id, err := api.find(ctx, id)
	if err != nil {
		return err
	}
	header, err := api.send(ctx, "GET", "sessions/"+url.PathEscape(id)+"/export?format="+format, nil, out)
	if err == nil && header.Get(backend.IncompleteHeader) != "" {
		p.say("Not all of this conversation can be read: this is what is left. deskhand verify tells what is damaged.\n")
	}
	if p, ok := errors.AsType[*problem](err); ok && p.Code == "not_found" {
		return noConversation(id)
	}
	return err
}

type sessionsShow struct {
	common
	ID  string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Raw bool   `help:"Into a file or a pipe: leave the characters that nobody sees, or that a terminal acts on, as they are."`
}

func (c *sessionsShow) Run(p *Program) error {
	p.raw = c.Raw
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		return p.show(ctx, api, c.ID, "md")
	})
}

// show prints a whole conversation with a single write.
func (p *Program) show(ctx context.Context, api *api, id, format string) error {
	var text strings.Builder
	if err := p.export(ctx, api, id, format, &text); err != nil {
		return err
	}
	if format == "json" {
		return p.print("%s", visibleJSON(text.String()))
	}
	return p.print("%s", text.String())
}

type sessionsExport struct {
	common
	ID     string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Format string `enum:"md,json,recording" default:"md" help:"md for people, json for programs, recording for the whole journal (a zip archive)."`
	Output string `short:"o" required:"" placeholder:"FILE" help:"Where to; - for standard output. A file that is there is not replaced."`
}

// Run writes a conversation to a file. The file appears whole or not at all.
func (c *sessionsExport) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		if c.Output == "-" {
			return c.print(ctx, p, api)
		}
		there := &failure{exitUsage, fmt.Errorf("%s is there already", c.Output)}
		if _, err := os.Lstat(c.Output); err == nil {
			return there
		}
		f, err := os.CreateTemp(filepath.Dir(c.Output), ".deskhand-export-*")
		if err != nil {
			return &failure{exitUsage, err}
		}
		err = errors.Join(p.export(ctx, api, c.ID, c.Format, f), f.Close())
		if err == nil {
			err = backend.NameFile(f.Name(), c.Output)
		}
		if errors.Is(err, fs.ErrExist) { // another process created the file meanwhile
			err = there
		}
		if err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
		p.say("written to %s\n", c.Output)
		return nil
	})
}

// print writes the export to standard output: at a terminal with control characters escaped, unless the format is an archive.
func (c *sessionsExport) print(ctx context.Context, p *Program, api *api) error {
	if isTerminal(p.Stdout) && c.Format != "recording" {
		return p.show(ctx, api, c.ID, c.Format)
	}
	return p.export(ctx, api, c.ID, c.Format, p.Stdout)
}

type sessionsSearch struct {
	common
	Query []string `arg:"" help:"Words, of which all must be there; \"a phrase\"; -without, behind --."`
	Agent string   `help:"Said in conversations with this agent."`
	Dir   string   `placeholder:"DIR" help:"Said in conversations of this directory."`
	From  day      `placeholder:"DATE" help:"Said on this day or later."`
	To    day      `placeholder:"DATE" help:"Said on this day or earlier."`
	Limit int      `default:"20" help:"How many."`
	JSON  bool     `name:"json" help:"Print the records as JSON."`
}

// day is the first moment of a calendar day in the person's time zone, in which the commands print times too.
type day time.Time

// UnmarshalText parses a day of the command line.
func (d *day) UnmarshalText(text []byte) error { return d.read(string(text), time.Local) }

func (d *day) read(text string, zone *time.Location) error {
	t, err := time.ParseInLocation("2006-01-02", text, zone)
	if err != nil {
		return fmt.Errorf("%q is no day: write it as 2006-01-02", text)
	}
	*d = day(t)
	return nil
}

// Run prints the places where the words were said.
func (c *sessionsSearch) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, b *backend.Backend, api *api) error {
		v := c.parameters()
		if c.Dir != "" {
			w, err := api.workspace(ctx, c.Dir)
			if err != nil {
				return err
			}
			v.Set("workspace", w.ID)
		}
		raw, found, err := c.ask(ctx, p, api, v, b.ReadOnly() == "")
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		return c.show(p, found)
	})
}

// ask repeats the search until the index is complete, as long as the index grows: a person may search for words said a moment ago.
func (c *sessionsSearch) ask(ctx context.Context, p *Program, api *api, v url.Values, grows bool) (json.RawMessage, backend.Found, error) {
	const pause, quiet, patience = 50 * time.Millisecond, time.Second, 3 * time.Second // limits without any progress
	least, at := 0, time.Now()
	for began, told := at, false; ; {
		raw, found, err := askOnce(ctx, api, v)
		if least == 0 || found.Pending < least {
			least, at = found.Pending, time.Now()
		}
		if err != nil || found.Pending == 0 || !grows || time.Since(at) > patience {
			return raw, found, err
		}
		if time.Since(began) > quiet && !told {
			told = true
			p.say("%d entries are put into the index first; Ctrl-C ends this.\n", found.Pending)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, found, ctx.Err()
		}
	}
}

func askOnce(ctx context.Context, api *api, v url.Values) (raw json.RawMessage, found backend.Found, err error) {
	if err := api.call(ctx, "GET", "search?"+v.Encode(), nil, &raw); err != nil {
		if p, ok := errors.AsType[*problem](err); ok && p.Code == "search.empty" {
			return nil, found, &failure{exitUsage, errors.New("there is nothing to look for in that")}
		}
		return nil, found, unanswered(ctx, err)
	}
	return raw, found, json.Unmarshal(raw, &found)
}

// parameters is the query of the API call. The API takes moments, so that the search ends where the day after To begins.
func (c *sessionsSearch) parameters() url.Values {
	v := url.Values{"q": {query(c.Query)}, "limit": {strconv.Itoa(c.Limit)}}
	if c.Agent != "" {
		v.Set("agent", c.Agent)
	}
	if from := time.Time(c.From); !from.IsZero() {
		v.Set("from", from.Format(time.RFC3339))
	}
	if to := time.Time(c.To); !to.IsZero() {
		v.Set("to", to.AddDate(0, 0, 1).Format(time.RFC3339))
	}
	return v
}

// query restores the query that the shell split: an argument with spaces was quoted, and so is a phrase.
func query(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	for i, a := range args {
		if strings.Contains(a, " ") && !strings.Contains(a, `"`) {
			args[i] = `"` + a + `"`
		}
	}
	return strings.Join(args, " ")
}

func (c *sessionsSearch) show(p *Program, found backend.Found) error {
	last := ""
	for _, h := range found.Items {
		if h.Session != last {
			last = h.Session
			if err := p.print("%s  %s  %s\n", h.Session, plain(h.AgentName), plain(h.Title)); err != nil {
				return err
			}
		}
		var line strings.Builder
		for _, part := range h.Excerpt {
			line.WriteString(part.Text)
		}
		if err := p.print("  %s %s: %s\n", when(h.At.Time), h.Kind, printable(line.String())); err != nil {
			return err
		}
	}
	switch {
	case found.Pending > 0:
		p.say("%d entries are not in the index yet.\n", found.Pending)
	case len(found.Items) == 0:
		p.say("Nothing was found.\n")
	case found.Next != "":
		p.say("There is more: --limit.\n")
	}
	return nil
}

type tailCommand struct {
	common
	ID string `arg:"" default:"last" help:"The conversation: its id, the beginning of it, or last."`
}

// Run prints a conversation from now on, until a signal ends the command.
func (c *tailCommand) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		t := &terminalTurn{p: p, api: api, shown: map[string]int{}, said: map[string]bool{}}
		err = api.follow(ctx, func() (string, error) {
			var s backend.Session
			if err := api.call(ctx, "GET", "sessions/"+url.PathEscape(id), nil, &s); err != nil {
				return "", err
			}
			t.agent = s.AgentName
			t.aside("· %s, %s in %s; Ctrl-C ends this", plain(s.Title), plain(s.AgentName), plain(s.Cwd))
			return id, nil
		}, t.overhear)
		if ctx.Err() != nil {
			return t.newLine()
		}
		if p, ok := errors.AsType[*problem](err); ok && p.Code == "not_found" {
			return errors.Join(t.newLine(), noConversation(id))
		}
		return err
	})
}

// because appends a reason, if there is a reason.
func because(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}

// overhear prints an event and answers no request.
func (t *terminalTurn) overhear(e backend.Event) (bool, error) {
	switch e.Type {
	case "session.removed":
		t.aside("· the conversation was deleted")
		return true, nil
	case "request.upsert":
		var r backend.Request
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return false, err
		}
		if key := r.ID + r.Status; !t.said[key] {
			t.said[key] = true
			t.aside("? %s asks: %s (%s)", r.Agent, r.Title, r.Status)
		}
		return false, nil
	case "turn.upsert":
		var turn backend.Turn
		if err := json.Unmarshal(e.Data, &turn); err != nil {
			return false, err
		}
		if turn.State == "done" {
			t.aside("· the turn ended%s", because(turn.Words(t.agent, t.exit)))
		}
		return false, nil
	case "entry.upsert":
		var entry backend.Entry
		if err := json.Unmarshal(e.Data, &entry); err != nil {
			return false, err
		}
		if entry.Kind == "user" && !t.said[entry.ID] {
			t.said[entry.ID] = true
			t.aside("> %s", entry.Text)
			return false, nil
		}
	}
	return t.show(context.Background(), e)
}
