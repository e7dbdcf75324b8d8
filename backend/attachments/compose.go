package attachments

import (
	"context"
	"encoding/json"
	"fmt"

	"deskhand/backend/attachment"
	"deskhand/backend/exclude"
	"deskhand/backend/transcript"
)

// Plan returns attachments with the way in which each would travel to an agent of a session. takes is the content that the agent announced;
// nil = the agent never started, and the ways are unknown.
func (l *Library) Plan(agent string, takes *transcript.Takes, w Where, list []transcript.Attachment) []transcript.Attachment {
	out := make([]transcript.Attachment, len(list))
	if takes == nil || len(list) == 0 {
		copy(out, list)
		return out
	}
	for i, p := range attachment.Plan(l.agent(agent, *takes), w.Cwd, w.roots(), filesOf(list)) {
		out[i] = travelling(list[i], p)
	}
	return out
}

// agent describes the content that an agent takes: as announced, and as measured in the catalogue.
func (l *Library) agent(id string, takes transcript.Takes) attachment.Agent {
	q := l.deps.Agents.Quirks(id)
	return attachment.Agent{
		Image: takes.Image, Embedded: takes.Embedded, PDF: q.PDF, TextOnly: q.TextOnly, LinkType: q.LinkType,
		NamesLinks: q.NamesLinks, PlainLinks: q.PlainLinks, Joins: q.JoinsBlocks, ImageBytes: q.ImageBytes,
	}
}

// travelling returns a record with the way in which the file travels.
func travelling(a transcript.Attachment, p attachment.Planned) transcript.Attachment {
	a = a.Plain()
	a.Travels, a.Warning, a.Copied = p.Travels, p.Warning, p.CopyTo != ""
	return a
}

// Message is a message of a person with its files, for an agent.
type Message struct {
	Text  string
	Files []transcript.Attachment
	Agent string
	Takes transcript.Takes
	At    Where
}

// Composed is a prompt that is ready to go out.
type Composed struct {
	Prompt []json.RawMessage
	Files  []transcript.Attachment // with the way in which each travels
	Text   string                  // the text of the prompt, when that is not the message's text

	seeds json.RawMessage // the list of the files in the form of the seed
}

const metaKey = "sandboxagent.dev"

// Meta adds the list of the files to the _meta of a request, for agents that read the list.
func (c Composed) Meta(meta map[string]any) map[string]any {
	if c.seeds != nil {
		meta[metaKey] = map[string]any{"attachments": c.seeds}
	}
	return meta
}

// Compose reads, converts and copies the files of a message, and makes the prompt. Compose takes its time, and ends when its context does.
func (l *Library) Compose(ctx context.Context, m Message) (Composed, error) {
	plan := attachment.Plan(l.agent(m.Agent, m.Takes), m.At.Cwd, m.At.roots(), filesOf(m.Files))
	place := attachment.CopiesBelow(m.At.Cwd, l.Read, l.hideCopies)
	switch {
	case m.At.Host.Directories == nil:
		place = func(_ context.Context, f attachment.File, _ string) (string, error) {
			return "", fmt.Errorf("%q cannot be given to an agent that runs elsewhere", f.Filename)
		}
	case len(plan) > 0:
		l.hideOldCopies(ctx, m.At.Cwd)
	}
	prompt, seeds, final, err := attachment.Compose(ctx, m.Text, plan, l.Read, place)
	if err != nil {
		return Composed{}, err
	}
	c := Composed{Prompt: prompt, Files: make([]transcript.Attachment, len(final)), seeds: seeds}
	for i, p := range final {
		c.Files[i] = travelling(m.Files[i], p)
	}
	if text := transcript.PromptText(prompt[:min(1, len(prompt))]); text != m.Text && text != m.Text+"\n" {
		c.Text = text
	}
	return c, ctx.Err()
}

// excludedCopies is the title of our line in info/exclude.
const excludedCopies = "copies of attached files"

// hideCopies is an [attachment.Hide]: if the directory is in a repository, info/exclude of the repository names the copies.
func (l *Library) hideCopies(ctx context.Context, cwd string) bool {
	place, err := exclude.Find(ctx, l.deps.Proxy, l.deps.Agents.Environment().Environ(ctx), cwd)
	if err == nil && place.File != "" {
		err = exclude.Add(place.File, excludedCopies, place.Pattern(attachment.Copies+"/"))
	}
	if err != nil {
		l.deps.Logger.Warn("git was not told of the copies of attached files", "directory", cwd, "error", err)
	}
	return err == nil && place.File != ""
}

// hideOldCopies is hideCopies for the copies that earlier versions have made.
func (l *Library) hideOldCopies(ctx context.Context, cwd string) {
	if err := attachment.HideCopies(ctx, cwd, l.hideCopies); err != nil && ctx.Err() == nil {
		l.deps.Logger.Warn("the copies of attached files stay where git and agents are told of them by a file", "directory", cwd, "error", err)
	}
}
