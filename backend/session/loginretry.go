package session

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// loginRefusal is what an agent has refused for want of a login: its start, or a prompt.
type loginRefusal struct {
	turn *Turn // the prompt, or what waited for the start; nil = none
	at   time.Time
}

// retryWithin is how long after its refusal a prompt is sent again: one of yesterday is no longer what its person waits for.
const retryWithin = time.Hour

// barred remembers what is refused at this moment, until something else is begun. A prompt that a person has stopped is not wanted again.
func (v *conversation) barred() {
	v.refusal = &loginRefusal{at: time.Now()}
	if v.state.Base != lifecycle.Cancelling {
		v.refusal.turn = v.turn
	}
}

// retry starts the agent again after a login that it has missed, and sends the prompt once more that it has refused. Who has begun
// something else meanwhile is left alone, and so is what was put away.
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

// sayAgain sends a message once more: out of where it waits if it was given back, and as long as it waits there as it was. One that its person has
// changed, sent or thrown away since is theirs.
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
