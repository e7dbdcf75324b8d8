package session

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// loginRefusal is the refusal of a start or a prompt because a login is missing.
type loginRefusal struct {
	turn *Turn // the refused prompt, or the prompt that waited for the start; nil = none
	at   time.Time
}

// retryWithin is how long after its refusal a prompt is sent again: after that the person no longer waits for it.
const retryWithin = time.Hour

// barred records the current refusal, until another turn or start begins. A prompt that a person has cancelled is not recorded.
func (v *conversation) barred() {
	v.refusal = &loginRefusal{at: time.Now()}
	if v.state.Base != lifecycle.Cancelling {
		v.refusal.turn = v.turn
	}
}

// retry starts the agent again after the missing login, and sends the refused prompt again. A session with a running turn, or in the
// archive, stays as it is.
func (v *conversation) retry() {
	missed := v.refusal
	if missed == nil || v.turn != nil || v.row.ArchivedAt != nil {
		return
	}
	if err := v.restart(); err != nil {
		v.c.cfg.Logger.Warn("the agent is not started again", "session", v.id, "error", err)
		return
	}
	if missed.turn == nil || time.Since(missed.at) > retryWithin {
		return
	}
	if err := v.sayAgain(missed.turn); err != nil {
		v.c.cfg.Logger.Warn("the prompt is not sent again", "session", v.id, "error", err)
	}
}

// sayAgain sends a message again. A message that was given back to the draft or the queue is sent from there, if it is unchanged; a message
// that the person has changed, sent or deleted since is not sent.
func (v *conversation) sayAgain(t *Turn) error {
	text := transcript.PromptText(t.prompt)
	unchanged := func(now string, files []transcript.Attachment) bool {
		return now == text && slices.EqualFunc(files, t.attachments, func(a, b transcript.Attachment) bool { return a.ID == b.ID })
	}
	switch {
	case t.again != "":
		if q, waits := v.prompts.items[t.again]; waits && unchanged(q.Message, q.Attachments) {
			return v.wish(lifecycle.Send{Item: t.again})
		}
		return nil
	case t.back && !unchanged(v.row.Draft, v.row.Attachments):
		return nil
	case t.back:
		v.row.Draft = ""
		v.composer.setChips(nil)
	}
	v.turn = v.newTurn(uuid.Must(uuid.NewV7()).String(), t.prompt...)
	v.turn.attachments = v.composer.planned(t.attachments)
	err := v.wish(lifecycle.Prompt{Turn: v.turn.ID})
	if err != nil {
		v.turn = nil
	}
	return err
}
