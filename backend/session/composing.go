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
func (v *conversation) accept(ctx context.Context, given []attachments.PromptAttachment) ([]transcript.Attachment, error) {
	s := v.look()
	return v.c.attachments.Accept(ctx, v.c.where(&s), given)
}

// planned returns attachments with the way in which each would travel to the agent of the session.
func (v *conversation) planned(list []transcript.Attachment) []transcript.Attachment {
	return v.c.attachments.Plan(v.row.Agent, v.row.facts.Takes, v.c.where(&v.row.Session), list)
}

// chips returns the files of the draft as people see them.
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

// freed saves the attachments that a list named before and names no more, so that the person can take the removal back.
func (v *conversation) freed(before, now []transcript.Attachment) {
	gone := slices.DeleteFunc(slices.Clone(before), func(a transcript.Attachment) bool {
		return slices.ContainsFunc(now, func(b transcript.Attachment) bool { return b.ID == a.ID })
	})
	if len(gone) > 0 {
		v.step.writes = append(v.step.writes, func(ctx context.Context, tx *sql.Tx) error { return attachments.Save(ctx, tx, gone) })
	}
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

// message returns a message with its files, for the agent that runs.
func (v *conversation) message(text string, files []transcript.Attachment) attachments.Message {
	return attachments.Message{
		Text: text, Files: files, Agent: v.row.Agent, At: v.c.where(&v.row.Session),
		Takes: transcript.Takes{Image: v.agent.can.Image, Embedded: v.agent.can.Embedded},
	}
}

// composePrompt makes the prompt of the turn, and sends it.
func (v *conversation) composePrompt(turn string) {
	a, work := v.agent, v.message(transcript.PromptText(v.turn.prompt), v.turn.attachments)
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		made, err := v.c.attachments.Compose(ctx, work)
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
				v.do(lifecycle.Stopped{Turn: turn, Reason: lifecycle.StopError})
				return
			}
			v.turn.attachments = made.Files
			v.note(transcript.Note{Note: transcript.NoteComposed, Turn: turn, Attachments: made.Files, Text: made.Text})
			params := map[string]any{"sessionId": v.row.ACPSessionID, "prompt": made.Prompt, "_meta": made.Meta(map[string]any{})}
			v.request(methodPrompt, params, v.promptReply(turn))
		})
	})
}

// composeSteering makes an item of the queue ready for the running turn. It is sent if the turn still runs by then.
func (v *conversation) composeSteering(item string, q QueueItem, send func(attachments.Composed), fail func(why string)) {
	a, work := v.agent, v.message(q.Message, q.Attachments)
	a.work.Go(func() {
		made, err := v.c.attachments.Compose(a.ctx, work)
		a.post(func() {
			switch {
			case !v.state.Steering(item) || v.state.Base == lifecycle.Cancelling: // nothing more goes into a turn that is being stopped
				fail("")
			case err != nil:
				fail(err.Error())
			default:
				q := v.prompts.items[item]
				q.Attachments = made.Files
				v.prompts.items[item] = q
				send(made)
			}
		})
	})
}

// letPromptGo sends the prompt of a turn, as soon as the snapshot before the turn allows.
func (v *conversation) letPromptGo(turn string) {
	if h := v.snapshots.Hold(undoSession(&v.row.Session)); h != nil {
		v.holdPrompt(turn, h)
		return
	}
	v.sendPrompt(turn)
}

// holdPrompt sends the prompt of a turn when h allows. The prompt counts as being composed until then: a cancel is not told to the agent.
func (v *conversation) holdPrompt(turn string, h *undo.Hold) {
	a := v.agent
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		if !h.Wait(ctx) {
			return
		}
		a.post(func() {
			if v.composing != now {
				return // the turn was stopped meanwhile
			}
			v.composing = nil
			if !h.Released() {
				v.holdPrompt(turn, h)
				return
			}
			v.sendPrompt(turn)
		})
	})
}
