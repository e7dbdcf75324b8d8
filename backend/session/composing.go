package session

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
)

// A prompt with files is made beside the conversation's goroutine, since reading, converting and copying files takes its time. Until the prompt
// is made, the agent knows nothing of the turn, and a cancel sends nothing.

// accept makes attachments of the files of a prompt. Any goroutine may call accept.
func (d *composer) accept(ctx context.Context, given []attachments.PromptAttachment) ([]transcript.Attachment, error) {
	s := d.v.look()
	return d.v.c.attachments.Accept(ctx, d.v.c.where(&s), given)
}

// planned returns attachments with the way in which each would travel to the agent of the session.
func (d *composer) planned(list []transcript.Attachment) []transcript.Attachment {
	return d.v.c.attachments.Plan(d.v.row.Agent, d.v.row.facts.Takes, d.v.c.where(&d.v.row.Session), list)
}

// chips returns the attachments of the draft in the form that people see, with missing files marked.
func (d *composer) chips() []transcript.Attachment {
	list := d.planned(d.v.row.Attachments)
	for i := range list {
		list[i].Missing = d.lost[list[i].ID]
	}
	return list
}

// setChips makes list the attachments of the draft.
func (d *composer) setChips(list []transcript.Attachment) {
	now := make([]transcript.Attachment, len(list))
	for i, a := range list {
		now[i] = a.Plain()
	}
	d.freed(d.v.row.Attachments, now)
	d.v.row.Attachments = now
}

// freed saves the attachments that a list named before and names no more, so that the person can take the removal back.
func (d *composer) freed(before, now []transcript.Attachment) {
	gone := slices.DeleteFunc(slices.Clone(before), func(a transcript.Attachment) bool {
		return slices.ContainsFunc(now, func(b transcript.Attachment) bool { return b.ID == a.ID })
	})
	if len(gone) > 0 {
		d.v.step.writes = append(d.v.step.writes, func(ctx context.Context, tx *sql.Tx) error { return attachments.Save(ctx, tx, gone) })
	}
}

// spoken removes a sent message and its files from the draft. Other text in the draft stays: comments on changes, a terminal and editors
// send messages too, while a person writes in the composer.
func (d *composer) spoken(m said) {
	if m.elsewhere {
		return
	}
	if strings.HasPrefix(m.text, d.v.row.Draft) { // the draft may have been saved a few words before the message was sent
		d.v.row.Draft = ""
	}
	if len(m.chips) > 0 {
		d.setChips(slices.DeleteFunc(slices.Clone(d.v.row.Attachments), func(a transcript.Attachment) bool { return slices.Contains(m.chips, a.ID) }))
	}
}

// title returns the title of a session whose first message is m.
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

// composing is a prompt that is being made, or waits for the snapshot before the turn.
type composing struct{ cancel context.CancelFunc }

// stop stops the composing of a prompt, and reports whether a prompt was being composed; nothing of that prompt has been sent.
func (d *composer) stop() bool {
	if d.now == nil {
		return false
	}
	d.now.cancel()
	d.now = nil
	return true
}

// message returns a message with its files, for the agent that runs.
func (d *composer) message(text string, files []transcript.Attachment) attachments.Message {
	return attachments.Message{
		Text: text, Files: files, Agent: d.v.row.Agent, At: d.v.c.where(&d.v.row.Session),
		Takes: transcript.Takes{Image: d.v.agent.can.Image, Embedded: d.v.agent.can.Embedded},
	}
}

// compose makes the prompt of the turn in a goroutine of the agent's process, and sends the prompt.
func (d *composer) compose(ctx context.Context, turn string) {
	a, work := d.v.agent, d.message(transcript.PromptText(d.v.turn.prompt), d.v.turn.attachments)
	ctx, cancel := context.WithCancel(ctx)
	now := &composing{cancel}
	d.now = now
	a.work.Go(func() {
		defer cancel()
		made, err := d.v.c.attachments.Compose(ctx, work)
		a.post(func() {
			if d.now != now {
				return // the prompt was stopped meanwhile
			}
			if err != nil {
				d.v.stopping.restoreDraft()
			}
			d.now = nil
			if err != nil {
				d.v.failure = &transcript.TurnError{Code: acp.CodeInternalError, Message: d.v.c.secret.Text(err.Error())}
				d.v.do(lifecycle.Stopped{Turn: turn, Reason: lifecycle.StopError})
				return
			}
			d.v.turn.attachments = made.Files
			d.v.note(transcript.Note{Note: transcript.NoteComposed, Turn: turn, Attachments: made.Files, Text: made.Text})
			params := map[string]any{"sessionId": d.v.row.ACPSessionID, "prompt": made.Prompt, "_meta": made.Meta(map[string]any{})}
			d.v.request(methodPrompt, params, d.v.promptReply(turn))
		})
	})
}

// composeSteering makes the prompt of an item of the queue, and calls send if the turn still runs then, or else fail with the reason.
func (d *composer) composeSteering(item string, q QueueItem, send func(attachments.Composed), fail func(why string)) {
	a, work := d.v.agent, d.message(q.Message, q.Attachments)
	a.work.Go(func() {
		made, err := d.v.c.attachments.Compose(a.ctx, work)
		a.post(func() {
			switch {
			case !d.v.state.Steering(item) || d.v.state.Base == lifecycle.Cancelling: // nothing more is sent into a turn that is being stopped
				fail("")
			case err != nil:
				fail(err.Error())
			default:
				q := d.v.prompts.items[item]
				q.Attachments = made.Files
				d.v.prompts.items[item] = q
				send(made)
			}
		})
	})
}

// letGo sends the prompt of a turn, as soon as the snapshot before the turn allows.
func (d *composer) letGo(turn string) {
	if h := d.v.snapshots.Hold(undoSession(&d.v.row.Session)); h != nil {
		d.hold(d.v.agent.ctx, turn, h)
		return
	}
	d.v.sendPrompt(turn)
}

// hold sends the prompt of a turn when h allows. The prompt counts as being composed until then: a cancel is not told to the agent. The
// agent's process owns the goroutine, which ends with ctx.
func (d *composer) hold(ctx context.Context, turn string, h *undo.Hold) {
	a := d.v.agent
	ctx, cancel := context.WithCancel(ctx)
	now := &composing{cancel}
	d.now = now
	a.work.Go(func() {
		defer cancel()
		held := make(chan bool, 1)
		for h.Wait(ctx) {
			a.post(func() { held <- d.holds(turn, now, h) })
			select {
			case again := <-held:
				if !again {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// holds sends the prompt of a turn once h is released, and reports whether h must be waited for again.
func (d *composer) holds(turn string, now *composing, h *undo.Hold) bool {
	if d.now != now {
		return false // the turn was stopped meanwhile
	}
	if !h.Released() {
		return true
	}
	d.now = nil
	d.v.sendPrompt(turn)
	return false
}

// composer makes the prompts of a conversation from texts and files. Except for accept, the methods of composer are called in the
// conversation's goroutine.
type composer struct {
	v    *conversation
	now  *composing      // the prompt of the turn, until the agent can be sent the prompt
	lost map[string]bool // the draft's files that are not where they were, by id
}
