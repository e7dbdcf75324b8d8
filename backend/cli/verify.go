package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

type verifyCommand struct {
	common
	Agents bool `help:"Ask the agents, too, which conversations they know. That starts them."`
	Repair bool `help:"Put back what is missing and the journal holds, and the search index. Nothing that is shown is replaced, and no conversation is ever deleted."`

	TakeJournal    []string `placeholder:"ID" help:"Make the transcript of this conversation anew from its journal, although that replaces what is shown; repeatable."`
	KeepTranscript []string `placeholder:"ID" help:"Keep the transcript of this conversation as it is shown, although its journal says something else; repeatable."`

	Salvage string `placeholder:"NEWDIR" help:"Read all that can be read of a damaged database into a new directory, while no Deskhand runs. Nothing is changed where it is read."`

	JSON bool `name:"json" help:"Print what was found as JSON."`
}

// verifyEvery is the interval between requests for the progress.
const verifyEvery = 200 * time.Millisecond

// Run compares the stored data with the journal, through the running app or on the data directory itself when no app runs.
func (c *verifyCommand) Run(p *Program) error {
	if c.Salvage != "" {
		return c.salvage(p)
	}
	var v backend.Verification
	err := p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) (err error) {
		if v, err = c.run(ctx, p, api); err != nil {
			return err
		}
		return c.show(p.Stdout, v)
	})
	switch {
	case err != nil:
		return err
	case v.State != "done":
		return errors.New("the verification was ended before it was through")
	case len(v.Findings) > 0:
		return &failure{exitError, errors.New("")} // the report has shown the failure
	}
	return nil
}

// salvage copies the readable part of a damaged database into a new directory, without opening a backend on the database.
func (c *verifyCommand) salvage(p *Program) error {
	if c.Agents || c.Repair || len(c.TakeJournal)+len(c.KeepTranscript) > 0 {
		return &failure{exitUsage, errors.New("--salvage goes with nothing else: verify the new directory afterwards")}
	}
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	to, err := filepath.Abs(c.Salvage)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	r, err := backend.Salvage(ctx, places, to)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.Stdout, r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d conversations are in %s.\n", r.Sessions, printable(to))
	for _, t := range r.Tables {
		if t.Lost > 0 {
			fmt.Fprintf(&b, "lost      %s: %d rows were read, %d pages or rows could not be\n", printable(t.Name), t.Saved, t.Lost)
		}
	}
	if r.Recovered > 0 {
		fmt.Fprintf(&b, "lost      what %d of the conversations were called; they are \"Recovered conversation\" now\n", r.Recovered)
	}
	for _, id := range r.Gaps {
		fmt.Fprintf(&b, "lost      messages of the conversation %s\n", printable(id))
	}
	if r.Blobs != "" {
		fmt.Fprintf(&b, "lost      files of messages: %s\n", printable(r.Blobs))
	}
	if !r.Lost() {
		b.WriteString("Nothing that could be found was lost.\n")
	}
	fmt.Fprintf(&b, "`deskhand verify --data-dir %s` proves it. To go on with it, put its deskhand.db in the place of the damaged one, remove deskhand.db-wal there, and run `deskhand data accept`.\n", printable(to))
	_, err = io.WriteString(p.Stdout, b.String())
	return err
}

// run begins a verification and waits for its end. Interrupting the command cancels the verification.
func (c *verifyCommand) run(ctx context.Context, p *Program, api *api) (v backend.Verification, err error) {
	if err := api.call(ctx, "POST", "verify", backend.Verify{Agents: c.Agents, Repair: c.Repair, TakeJournal: c.TakeJournal, KeepTranscript: c.KeepTranscript}, nil); err != nil {
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "verify.running" {
			return v, errors.New("a verification is running already")
		}
		return v, unanswered(ctx, err)
	}
	told := time.Now()
	for {
		if v, err = c.look(ctx, api); err != nil || v.State != "running" {
			return v, err
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			p.say("%d of %d…\n", v.Done, v.Total)
		}
		select {
		case <-time.After(verifyEvery):
		case <-ctx.Done():
			c.cancel(ctx, api)
			return v, ctx.Err()
		}
	}
}

func (c *verifyCommand) look(ctx context.Context, api *api) (v backend.Verification, err error) {
	var raw json.RawMessage
	if err := api.call(ctx, "GET", "verify", nil, &raw); err != nil {
		if ctx.Err() != nil {
			c.cancel(ctx, api)
		}
		return v, unanswered(ctx, err)
	}
	return v, json.Unmarshal(raw, &v)
}

func (c *verifyCommand) cancel(ctx context.Context, api *api) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = api.call(ctx, "DELETE", "verify", nil, nil) // the verification ends by itself if this call fails
}

func (c *verifyCommand) show(out io.Writer, v backend.Verification) error {
	if c.JSON {
		return printJSON(out, v)
	}
	var b strings.Builder
	open, choices := 0, 0
	for _, f := range v.Findings {
		mark := "found"
		if f.Repaired {
			mark = "repaired"
		} else {
			open++
		}
		of := ""
		if f.Session != "" {
			of = "conversation " + f.Session + ": "
		}
		fmt.Fprintf(&b, "%-9s %s%s\n", mark, of, printable(foundText(f)))
		if contradicts(f) {
			choices++
			b.WriteString(sidesOf(f))
		}
	}
	switch {
	case len(v.Findings) == 0:
		fmt.Fprintf(&b, "All is well: %d parts were looked at.\n", v.Done)
	case open == 0:
		fmt.Fprintf(&b, "All %d were repaired.\n", len(v.Findings))
	case choices == len(v.Findings):
	case c.Repair:
		fmt.Fprintf(&b, "%d of %d are left.\n", open, len(v.Findings))
	default:
		fmt.Fprintf(&b, "%d found. --repair puts back what is missing and the journal holds.\n", len(v.Findings))
	}
	if choices > 0 {
		b.WriteString("Where a transcript and its journal contradict each other nobody knows which of them was damaged, and nothing is replaced:\n" +
			"  deskhand verify --take-journal ID     makes the transcript anew from the journal; what is shown now is gone\n" +
			"  deskhand verify --keep-transcript ID  keeps what is shown, with later versions too; it is not compared any more\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// contradicts reports whether a transcript and its journal differ in a way that only a person can decide.
func contradicts(f backend.Finding) bool {
	of := func(param string) bool { return f.Params[param] != "" && f.Params[param] != "0" }
	return (f.Code == "entries.differ" || f.Code == "turns.differ") && !f.Repaired && (of("different") || of("extra"))
}

// sidesOf shows the transcript's version and the journal's version.
func sidesOf(f backend.Finding) string {
	var b strings.Builder
	if f.Code == "entries.differ" {
		for _, side := range []struct{ name, text string }{{"shown", f.Params["shown"]}, {"journal", f.Params["made"]}} {
			if side.text == "" {
				side.text = "(nothing)"
			}
			fmt.Fprintf(&b, "          %-8s %s\n", side.name, printable(strings.Join(strings.Fields(side.text), " ")))
		}
	}
	if n := f.Params["unchecked"]; n != "0" {
		fmt.Fprintf(&b, "          %s messages of the journal are from an older version, and have no checksum\n", n)
	} else {
		b.WriteString("          every message of the journal fits its checksum\n")
	}
	return b.String()
}

// foundText translates a finding into words for the terminal. Other surfaces have their own words.
func foundText(f backend.Finding) string {
	text, known := map[string]string{
		"verify.failed":         "something could not be looked at: {detail}",
		"verify.more":           "{count} more",
		"database.damaged":      "the database is damaged: {detail}. Restore it from a backup, or read what can be read with `deskhand verify --salvage NEWDIR`",
		"database.record":       "a part of its row in the table {table} is damaged, and is not shown",
		"database.references":   "{rows} rows of the table {table} belong to nothing",
		"journal.gap":           "its journal lacks the messages from {frame} up to {next}; what was shown of them is kept",
		"journal.damaged":       "message {frame} of its journal is damaged ({detail}); what was shown of it is kept",
		"blob.missing":          "the file of message {frame} of its journal is not there: {sha256}",
		"blob.damaged":          "the file of message {frame} of its journal is damaged: {sha256}",
		"attachment.lost":       "the file {name} of a conversation is not there: {sha256}",
		"attachment.damaged":    "the file {name} of a conversation is damaged: {sha256}",
		"attachments.differ":    "its files are not what its journal says: {missing} missing, {different} different, {extra} too many",
		"blob.unused":           "{count} files of messages belong to no conversation ({bytes} bytes)",
		"entries.differ":        "what is shown is not what its journal says: {missing} missing, {different} different, {extra} too many",
		"turns.differ":          "its turns are not what its journal says: {missing} missing, {different} different, {extra} too many",
		"requests.differ":       "its requests are not what its journal says: {missing} missing, {different} wait for an agent that has ended, {extra} too many",
		"search.missing":        "{count} entries are not found by any search",
		"search.extra":          "the search index has {count} entries that are gone",
		"search.damaged":        "the search index is damaged: {detail}",
		"workspace.missing":     "the directory {path} is not there",
		"session.agent_unknown": "its agent {agent} is not known here",
		"agent.forgot":          "{agent} no longer knows it; what was said is kept here",
		"agent.offers":          "{agent} has a conversation that is not here: {title}, in {cwd}. `deskhand sessions import` takes it in",
		"agent.unlisted":        "{agent} does not tell which conversations it has: {detail}",
	}[f.Code]
	if !known {
		text = f.Code // a code that only a newer Deskhand knows
	}
	for name, value := range f.Params {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	if to := f.Params["movedTo"]; to != "" {
		text += "; it is now " + to
	}
	return text
}
