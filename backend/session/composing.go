package session

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/attachment"
	"deskhand/backend/host"
	"deskhand/backend/transcript"
)

// How the files of a prompt get to the agent. A prompt is accepted with its files: those that could travel inline have their bytes in the
// blob store from then on. How each travels depends on the agent, so that is decided when the prompt goes out, and the blocks are made
// beside the conversation's goroutine: reading, making smaller and copying takes its time. Until they are made the agent knows nothing of
// the turn, and a cancel sends nothing.

// accept makes records of files that are ready to travel whatever becomes of the files themselves.
func (c *Client) accept(ctx context.Context, v *conversation, given []PromptAttachment) ([]transcript.Attachment, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if err := c.ReadOnly(); err != nil {
		return nil, err
	}
	if err := refuseFile(limits().Count(len(given))); err != nil {
		return nil, err
	}
	x := &accepting{c: c, session: v.look(), at: v.host().Directories}
	defer x.release()
	list := make([]transcript.Attachment, 0, len(given))
	for _, p := range given {
		a, err := x.one(ctx, p)
		if err != nil {
			return nil, refuseFile(err)
		}
		list = append(list, a)
	}
	return list, c.keepAttachments(ctx, list)
}

// accepting is the acceptance of one prompt.
type accepting struct {
	c       *Client
	session Session
	at      *host.Directories // of the session's host
	held    []string          // blobs that nobody has written down yet
}

func (x *accepting) release() {
	for _, sha := range x.held {
		x.c.cfg.Store.Blobs.Release(sha)
	}
}

func (x *accepting) roots() []string {
	return x.at.Roots(x.session.Cwd, x.session.Directories)
}

func (x *accepting) one(ctx context.Context, p PromptAttachment) (transcript.Attachment, error) {
	if p.ID == "" {
		return x.byPath(ctx, p)
	}
	a, err := x.c.Attachment(ctx, p.ID)
	if errors.Is(err, ErrNotFound) {
		return a, bad(refusedUnknownFile, "id", p.ID)
	}
	if err != nil {
		return a, err
	}
	if a.SHA256 != "" {
		return a, x.reaches(a)
	}
	f, err := attachment.Inspect(ctx, a.Path, x.roots(), false, limits()) // a link that was agreed to is kept as what it led to: this one came later
	if err != nil {
		return a, err
	}
	f.MimeType, f.Filename, f.ID, f.Given = a.MimeType, a.Filename, a.ID, a.Given
	return x.snapshot(ctx, f, &a)
}

func (x *accepting) byPath(ctx context.Context, p PromptAttachment) (transcript.Attachment, error) {
	if p.Path == "" {
		return transcript.Attachment{}, bad(refusedUnknownFile, "id", "")
	}
	cwd := ""
	if x.at != nil {
		cwd = x.session.Cwd
	}
	f, err := attachment.Inspect(ctx, fileOf(p.Path, cwd), x.roots(), false, limits())
	if err != nil {
		return transcript.Attachment{}, err
	}
	f.MimeType, f.Filename = cmp.Or(p.Mime, f.MimeType), cmp.Or(p.Filename, f.Filename)
	if p.Path != f.Path {
		f.Given = p.Path
	}
	return x.snapshot(ctx, f, nil)
}

// snapshot keeps the bytes of what could travel inline. before is the record that the file had, which stays where nothing is different.
func (x *accepting) snapshot(ctx context.Context, f attachment.File, before *transcript.Attachment) (transcript.Attachment, error) {
	everything := attachment.Agent{Image: true, Embedded: true, PDF: true}
	how := attachment.Plan(everything, x.session.Cwd, x.roots(), []attachment.File{f})[0].Travels
	if how == attachment.Image || how == attachment.Embedded || x.at == nil && !f.Directory {
		kept, err := attachment.Snapshot(ctx, x.c.cfg.Store.Blobs, f, limits())
		if err != nil {
			return transcript.Attachment{}, notKept(ctx, err)
		}
		x.held = append(x.held, kept.SHA256)
		kept.MimeType, kept.Filename = f.MimeType, f.Filename
		f = kept
	}
	a := attachmentOf(f)
	if before == nil || a != *before {
		f.ID = ""
		a = attachmentOf(f) // another record: the one before is of what was there then
	}
	return a, x.reaches(a)
}

// reaches refuses what could only be a link to an agent that runs elsewhere: the file is not there.
func (x *accepting) reaches(a transcript.Attachment) error {
	if x.at != nil {
		return nil
	}
	agent := attachment.Agent{Image: true, Embedded: true, PDF: true}
	if how := attachment.Plan(agent, x.session.Cwd, nil, []attachment.File{a.File()})[0].Travels; how == attachment.Image || how == attachment.Embedded {
		return nil
	}
	return &RefusedError{Code: refusedElsewhere, Params: map[string]string{"name": a.Filename}}
}

// takesOf is what an agent takes, as far as it has said, and as somebody has measured it.
func (c *Client) takesOf(agent string, t *transcript.Takes) attachment.Agent {
	q := c.cfg.Agents.Quirks(agent)
	return attachment.Agent{
		Image: t.Image, Embedded: t.Embedded, PDF: q.PDF, TextOnly: q.TextOnly, LinkType: q.LinkType,
		NamesLinks: q.NamesLinks, PlainLinks: q.PlainLinks, Joins: q.JoinsBlocks, ImageBytes: q.ImageBytes,
	}
}

// planned are records with how each would travel; of an agent that was never asked nothing is known.
func (c *Client) planned(s *Session, t *transcript.Takes, list []transcript.Attachment) []transcript.Attachment {
	out := make([]transcript.Attachment, len(list))
	if t == nil || len(list) == 0 {
		copy(out, list)
		return out
	}
	roots := c.hosts.At(s.Place).Directories.Roots(s.Cwd, s.Directories)
	for i, p := range attachment.Plan(c.takesOf(s.Agent, t), s.Cwd, roots, filesOf(list)) {
		out[i] = travelling(list[i], p)
	}
	return out
}

func filesOf(list []transcript.Attachment) []attachment.File {
	files := make([]attachment.File, len(list))
	for i, a := range list {
		files[i] = a.File()
	}
	return files
}

func (v *conversation) planned(list []transcript.Attachment) []transcript.Attachment {
	return v.c.planned(&v.row.Session, v.row.facts.Takes, list)
}

// chips are the files of the draft as they are shown.
func (v *conversation) chips() []transcript.Attachment {
	list := v.planned(v.row.Attachments)
	for i := range list {
		list[i].Missing = v.lost[list[i].ID]
	}
	return list
}

func (v *conversation) setChips(list []transcript.Attachment) {
	now := make([]transcript.Attachment, len(list))
	for i, a := range list {
		now[i] = a.Plain()
	}
	v.freed(v.row.Attachments, now)
	v.row.Attachments = now
}

// freed notes records that are named no more where they were: they are kept for a while from now on, so that it can be taken back.
func (v *conversation) freed(before, now []transcript.Attachment) {
	for _, a := range before {
		if !slices.ContainsFunc(now, func(b transcript.Attachment) bool { return b.ID == a.ID }) {
			v.step.freed = append(v.step.freed, a)
		}
	}
}

// saveAttachments writes down what the journal names from now on, and what is named no more elsewhere.
func (s *step) saveAttachments(ctx context.Context, tx *sql.Tx, session string) error {
	return errors.Join(useAttachments(ctx, tx, session, s.attached), saveAttachments(ctx, tx, s.freed))
}

// spoken takes out of the draft what was said, and the files that went with it. What stands there and is something else stays: comments on
// changes, a terminal and editors send, too, while somebody writes in the composer.
func (v *conversation) spoken(m said) {
	if m.elsewhere {
		return
	}
	if strings.HasPrefix(m.text, v.row.Draft) { // it may have been saved a few words earlier
		v.row.Draft = ""
	}
	if len(m.chips) > 0 {
		v.setChips(slices.DeleteFunc(slices.Clone(v.row.Attachments), func(a transcript.Attachment) bool { return slices.Contains(m.chips, a.ID) }))
	}
}

// title is what a session is called after this message.
func (m said) title() string {
	if text := attachment.WithoutSentinel(m.text); strings.TrimSpace(text) != "" {
		return text
	}
	names := make([]string, len(m.files))
	for i, a := range m.files {
		names[i] = a.Filename
	}
	return strings.Join(names, ", ")
}

// lookForChips looks whether the files of the draft are where they were.
func (c *Client) lookForChips(ctx context.Context, v *conversation) {
	s := v.look()
	lost := c.lacking(s.Attachments)
	shown := map[string]bool{}
	for _, a := range s.Attachments {
		if a.Missing {
			shown[a.ID] = true
		}
	}
	if maps.Equal(lost, shown) || c.ReadOnly() != nil {
		return
	}
	_ = v.call(ctx, func() error { v.lost = lost; v.saveRow(); return nil }) // at worst it is told at the next look
}

// composing is a prompt that is being made.
type composing struct{ cancel context.CancelFunc }

// stopComposing ends it; true = there was one, and nothing of it has been sent.
func (v *conversation) stopComposing() bool {
	if v.composing == nil {
		return false
	}
	v.composing.cancel()
	v.composing = nil
	return true
}

// composition is what a prompt is made of.
type composition struct {
	message string
	files   []transcript.Attachment
	agent   attachment.Agent
	cwd     string
	roots   []string
	at      *host.Directories // nil where the agent cannot be given a copy
}

// composed is a prompt that is ready to go out.
type composed struct {
	prompt []json.RawMessage
	seeds  json.RawMessage         // the list for agents that read it
	files  []transcript.Attachment // with how they travel
	text   string                  // of the prompt, where it is another one than was written
}

const metaKey = "sandboxagent.dev"

// meta is the _meta of a prompt; with is what else stands there.
func (c composed) meta(with map[string]any) map[string]any {
	if c.seeds != nil {
		with[metaKey] = map[string]any{"attachments": c.seeds}
	}
	return with
}

func (v *conversation) composition(message string, files []transcript.Attachment) composition {
	at := v.host().Directories
	return composition{
		message: message, files: files, cwd: v.row.Cwd, at: at, roots: at.Roots(v.row.Cwd, v.row.Directories),
		agent: v.c.takesOf(v.row.Agent, &transcript.Takes{Image: v.agent.can.Image, Embedded: v.agent.can.Embedded}),
	}
}

// composePrompt makes the prompt of the turn, and sends it.
func (v *conversation) composePrompt(turn string) {
	a, work := v.agent, v.composition(textOfPrompt(v.turn.prompt), v.turn.attachments)
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		made, err := v.c.compose(ctx, work)
		a.post(func() {
			if v.composing != now {
				return // it was stopped meanwhile
			}
			if err != nil {
				v.restoreDraft()
			}
			v.composing = nil
			if err != nil {
				v.failure = &transcript.TurnError{Code: acp.CodeInternalError, Message: v.c.secret.Text(err.Error())}
				v.do(doStopped{turn, stopError})
				return
			}
			v.turn.attachments = made.files
			v.note(transcript.Note{Note: transcript.NoteComposed, Turn: turn, Attachments: made.files, Text: made.text})
			params := map[string]any{"sessionId": v.row.ACPSessionID, "prompt": made.prompt, "_meta": made.meta(map[string]any{})}
			v.request(methodPrompt, params, v.promptReply(turn))
		})
	})
}

// composeSteering makes an item of the queue ready for the running turn. It is sent if the turn still runs by then.
func (v *conversation) composeSteering(item string, q QueueItem, send func(composed), fail func(why string)) {
	a, work := v.agent, v.composition(q.Message, q.Attachments)
	a.work.Go(func() {
		made, err := v.c.compose(a.ctx, work)
		a.post(func() {
			switch {
			case !v.state.steering(item) || v.state.base == Cancelling: // nothing more goes into a turn that is being stopped
				fail("")
			case err != nil:
				fail(err.Error())
			default:
				q := v.prompts.items[item]
				q.Attachments = made.files
				v.prompts.items[item] = q
				send(made)
			}
		})
	})
}

func textOfPrompt(prompt []json.RawMessage) string {
	var text strings.Builder
	for _, part := range prompt {
		var block struct{ Text string }
		_ = json.Unmarshal(part, &block) // we have written it ourselves
		text.WriteString(block.Text)
	}
	return text.String()
}

// compose reads, converts and copies. It ends when its context does.
func (c *Client) compose(ctx context.Context, j composition) (composed, error) {
	plan := attachment.Plan(j.agent, j.cwd, j.roots, filesOf(j.files))
	read := func(ctx context.Context, f attachment.File) ([]byte, error) { return c.bytesOf(ctx, f) }
	place := attachment.CopiesBelow(j.cwd, read, c.hideCopies)
	if j.at != nil && len(plan) > 0 {
		c.hideOldCopies(ctx, j.cwd)
	}
	if j.at == nil {
		place = func(_ context.Context, f attachment.File, _ string) (string, error) {
			return "", fmt.Errorf("%q cannot be given to an agent that runs elsewhere", f.Filename)
		}
	}
	prompt, seeds, final, err := attachment.Compose(ctx, j.message, plan, read, place)
	if err != nil {
		return composed{}, err
	}
	made := composed{prompt: prompt, seeds: seeds, files: make([]transcript.Attachment, len(final))}
	for i, p := range final {
		made.files[i] = travelling(j.files[i], p)
	}
	if text := textOfPrompt(prompt[:min(1, len(prompt))]); text != j.message && text != j.message+"\n" {
		made.text = text
	}
	return made, ctx.Err()
}
