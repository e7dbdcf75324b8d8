package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/redact"
	"deskhand/backend/transcript"
)

// A person may stop what waits on the agent while no turn runs: a start that hangs, a change of an option that is not answered. Our
// request is withdrawn with $/cancel_request, and its answer is still waited for: the agent may have done it. One that does not come
// counts as cancelled.

// canBeWithdrawn are the methods of which something can be withdrawn. A prompt has session/cancel, and initialize nothing.
func canBeWithdrawn(method string) bool {
	return slices.Contains([]string{
		"session/new", "session/load", "session/resume", "session/list", "session/set_config_option", "session/set_mode", "session/set_model",
	}, method)
}

// withdrawnSteps is how long an answer is waited for, in steps of a cancel.
const withdrawnSteps = 2

// begin stops the turn, and where none runs what else the agent is at. In a start that is the start, and a turn that waits for it ends
// too: what can be withdrawn is, and else, or asked once more, the agent is ended.
func (s *cancellation) begin() error {
	if s.v.composer.now != nil {
		s.restoreDraft()
	}
	if s.v.state.Base != lifecycle.Starting && s.v.state.Base != lifecycle.Replaying || s.v.agent == nil {
		if s.v.state.Turn == "" && s.v.agent != nil && s.v.agent.withdrawOurs() {
			return nil
		}
		return s.v.wish(lifecycle.Cancel{})
	}
	s.restoreDraft()
	withdrawn := s.v.agent.withdrawOurs()
	if withdrawn && s.v.state.Turn == "" {
		return nil
	}
	return s.v.wish(lifecycle.Cancel{Unstarted: !withdrawn})
}

// longestTakenBack is the longest message that is taken back, in bytes: a draft travels with every change of its session.
const longestTakenBack = 1 << 20

// restoreDraft makes a message that the agent has not got the draft again, with its files: whoever stops a start, or whose agent does not
// start, may want to send it after the next. Where another was begun meanwhile, if only with a file, or it is too long for that, it waits in the queue.
func (s *cancellation) restoreDraft() {
	if !s.unheard() || s.v.turn.back {
		return
	}
	s.v.turn.back = true
	another := slices.ContainsFunc(s.v.row.Attachments, func(a transcript.Attachment) bool {
		return !slices.ContainsFunc(s.v.turn.attachments, func(b transcript.Attachment) bool { return b.ID == a.ID })
	})
	if another || !s.draftAgain(s.v.turn) { // beside the files of another it would go with them, or, after a login, not at all
		s.waitAgain(s.v.turn)
	}
}

// unheard tells that a turn runs of which the agent knows nothing.
func (s *cancellation) unheard() bool {
	return s.v.turn != nil && (!s.v.state.Sent || s.v.composer.now != nil)
}

// draftAgain is false where another draft was begun, or the message is too long for one.
func (s *cancellation) draftAgain(t *Turn) bool {
	message := transcript.PromptText(t.prompt)
	if s.v.row.Draft != "" || len(message) > longestTakenBack {
		return false
	}
	s.v.row.Draft = message
	mine := slices.DeleteFunc(slices.Clone(t.attachments), func(a transcript.Attachment) bool {
		return slices.ContainsFunc(s.v.row.Attachments, func(b transcript.Attachment) bool { return b.ID == a.ID })
	})
	s.v.composer.setChips(append(mine, s.v.row.Attachments...))
	return true
}

// waitAgain makes a message that the agent has not got the first of the queue, held: another was sent in its place, or stands in the draft. It is
// not made that, which whoever sends the other may be writing in, but where the queue has no room.
func (s *cancellation) waitAgain(t *Turn) {
	item := s.v.prompts.newItem(said{text: transcript.PromptText(t.prompt), files: t.attachments})
	s.v.prompts.items[item.ID] = item
	t.again = item.ID
	if s.v.wish(lifecycle.Restore{Queued: lifecycle.Queued{Item: item.ID, Held: lifecycle.HeldStopped}, To: 0}) != nil { // there is no room
		t.again = ""
		delete(s.v.prompts.items, item.ID)
		if !s.draftAgain(t) {
			s.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{
				Severity: "warning", Title: "Your message was not sent",
				Description: s.v.agentName + " has not got it, and there is no room for it: a draft was begun, or it is too long for one, and the queue is full. It stands above, to be copied.",
			}})
		}
	}
	s.v.step.sync = true
}

// begunTurn is how the newest turn of a journal began, and whether the agent was sent it.
type begunTurn struct {
	said transcript.Note
	sent bool
}

// take is true where a turn begins.
func (b *begunTurn) take(f journal.Frame) bool {
	switch {
	case f.Dir == journal.Note && bytes.Contains(f.Data, []byte(transcript.NoteTurnBegan)):
		var n transcript.Note
		if json.Unmarshal(f.Data, &n) == nil && n.Note == transcript.NoteTurnBegan {
			b.said, b.sent = n, false
			return true
		}
	case f.Dir == journal.Out && !b.sent && bytes.Contains(f.Data, []byte(methodPrompt)):
		env, err := acp.Peek(f.Data)
		b.sent = err == nil && env.Method() == methodPrompt
	}
	return false
}

// dropUnsentPrompt has a turn that the program died in be one that the agent knows nothing of, if its prompt never went out. The journal has that without
// its secrets.
func (s *cancellation) dropUnsentPrompt(b begunTurn) {
	if s.v.turn == nil || s.v.turn.ID != b.said.Turn || b.sent {
		return
	}
	s.v.state.Sent, s.v.turn.prompt, s.v.turn.attachments = false, b.said.Prompt, b.said.Attachments
	if strings.Contains(transcript.PromptText(s.v.turn.prompt), redact.Mark) {
		s.v.remote.tellLost("Your message was not sent", putSecretIn)
	}
}

// withdrawOurs withdraws every request of ours that waits and can be; false = there is none.
func (a *agentProcess) withdrawOurs() bool {
	found := false
	for key, method := range a.methods {
		if !canBeWithdrawn(method) || a.withdrawn[key] {
			continue
		}
		found = true
		a.withdrawn[key] = true
		a.v.notify("$/cancel_request", map[string]any{"requestId": json.RawMessage(key)})
		time.AfterFunc(withdrawnSteps*a.v.c.cfg.Patience, func() {
			a.post(func() { a.unanswered(key) })
		})
	}
	return found
}

// unanswered takes a request that was withdrawn for cancelled, unless its answer has come.
func (a *agentProcess) unanswered(key acp.Key) {
	then, waits := a.pending[key]
	if !waits {
		return
	}
	delete(a.pending, key)
	delete(a.methods, key)
	a.cancelled = true
	then(nil, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled; the agent did not answer"})
}

// stopped tells whether a step of the start has failed because a person has stopped it, and then ends the agent: it is as if it had not
// been started. What was sent since then is not what was stopped: it has a start of its own.
func (a *agentProcess) stopped(failure *acp.Error) bool {
	if failure == nil || failure.Code != acp.CodeRequestCancelled || !a.cancelled {
		return false
	}
	v, since := a.v, a.v.turn // one of before ended with the stop
	if since == nil {
		v.do(lifecycle.Exited{Code: transcript.ProblemQuit})
		return true
	}
	err := v.restart()
	if err == nil {
		err = v.sayAgain(since)
	}
	if err != nil {
		v.c.cfg.Logger.Warn("what was sent after a stop waits", "session", v.id, "error", err)
	}
	return true
}

// cancellation stops the turn of a conversation, by stronger means from step to step.
type cancellation struct {
	v      *conversation
	timer  *time.Timer // until the next step
	stopBy time.Time   // when the turn is over at the latest
}

// effect is what is done so that a turn stops: each means when the one before was not heeded in time.
func (s *cancellation) effect(e lifecycle.Event) {
	switch e.(type) {
	case lifecycle.CancelSent:
		if s.v.composer.stop() { // the agent knows nothing of the turn
			s.v.do(lifecycle.Stopped{Turn: s.v.turn.ID, Reason: lifecycle.StopCancelled})
			return
		}
		s.v.notify("session/cancel", map[string]any{"sessionId": s.v.row.ACPSessionID})
		s.v.saveRow() // so that everybody sees it being stopped
		s.stopBy = time.Now().Add(stopLimit)
		s.arm()
	case lifecycle.InterruptSent:
		reason := s.v.agent.interrupt()
		s.v.note(transcript.Note{Note: transcript.NoteInterrupted, Reason: reason})
		s.v.remote.armAgain(reason)
	case lifecycle.Killed:
		s.v.note(transcript.Note{Note: transcript.NoteKilled})
		s.v.agent.kill()
		s.armLast()
	}
}

// arm waits for the cancel to be heeded before the next means is tried.
func (s *cancellation) arm() { s.armFor(s.v.c.cfg.Patience, s.escalate) }

func (s *cancellation) escalate() { s.v.do(lifecycle.Escalate{}) }

// armLast waits for the end of an agent that was killed, which has no next means. One whose end takes too long, since something that it has
// started does not die, is as good as gone: it is seen off in the background, and the next start waits for that (begin). What it has said by
// then and nobody has read is lost, and told as such; unless it was we who could not take it, for as long as a disk is full.
func (s *cancellation) armLast() {
	a, wait := s.v.agent, max(time.Until(s.stopBy), lastGrace)
	due := time.Now().Add(wait)
	s.armFor(wait, func() {
		switch unread := a.unread(); {
		case unread && time.Since(due) > lastGrace:
			s.armLast()
			return
		case unread:
			s.v.note(transcript.Note{Note: transcript.NoteMissing})
		}
		s.v.exited()
	})
}

func (s *cancellation) armFor(d time.Duration, next func()) {
	s.disarm()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.v.post(func() {
			if s.timer == timer { // else it was stopped too late: its cancel is over
				next()
			}
		})
	})
	s.timer = timer
}

func (s *cancellation) disarm() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
