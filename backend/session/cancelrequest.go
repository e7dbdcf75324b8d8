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

// While no turn runs, a person may cancel a request that the agent has not answered: the opening of a session that hangs, or the change of
// an option. The request is withdrawn with $/cancel_request. The answer is still waited for, since the agent may have done the work
// already; without an answer in time the request counts as cancelled.

// canBeWithdrawn reports whether $/cancel_request may withdraw a request of a method. A prompt has session/cancel instead, and initialize
// cannot be withdrawn.
func canBeWithdrawn(method string) bool {
	return slices.Contains([]string{
		"session/new", "session/load", "session/resume", "session/list", "session/set_config_option", "session/set_mode", "session/set_model",
	}, method)
}

// withdrawnSteps is how long the answer to a withdrawn request is waited for, in units of Config.Patience.
const withdrawnSteps = 2

// begin cancels the running turn. Without a turn it withdraws the requests that the agent has not answered. During a start it cancels the
// start, and ends a turn that waits for the start: requests that can be withdrawn are withdrawn; if there is none, or begin is called
// again, the agent is ended.
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

// longestTakenBack is the longest message that restoreDraft makes the draft, in bytes: the draft is part of every event of its session.
const longestTakenBack = 1 << 20

// restoreDraft makes a message that was not sent to the agent the draft again, with its files, since the person may want to send the
// message after the next start. When another draft was begun meanwhile, even one with a file only, or the message is too long, the message
// goes to the queue instead.
func (s *cancellation) restoreDraft() {
	if !s.unheard() || s.v.turn.back {
		return
	}
	s.v.turn.back = true
	another := slices.ContainsFunc(s.v.row.Attachments, func(a transcript.Attachment) bool {
		return !slices.ContainsFunc(s.v.turn.attachments, func(b transcript.Attachment) bool { return b.ID == a.ID })
	})
	if another || !s.draftAgain(s.v.turn) { // in a draft with other files the message would be sent with those files, or not be retried after a login
		s.waitAgain(s.v.turn)
	}
}

// unheard reports whether a turn runs whose prompt was not sent to the agent.
func (s *cancellation) unheard() bool {
	return s.v.turn != nil && (!s.v.state.Sent || s.v.composer.now != nil)
}

// draftAgain makes the message of a turn the draft. draftAgain returns false when the draft has text already, or the message is too long.
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

// waitAgain puts a message that was not sent to the agent at the head of the queue, held, because another message was sent in its place, or
// stands in the draft. Only when the queue is full does waitAgain use the draft, in which the person may be writing.
func (s *cancellation) waitAgain(t *Turn) {
	item := s.v.prompts.newItem(said{text: transcript.PromptText(t.prompt), files: t.attachments})
	s.v.prompts.items[item.ID] = item
	t.again = item.ID
	if s.v.wish(lifecycle.Restore{Queued: lifecycle.Queued{Item: item.ID, Held: lifecycle.HeldStopped}, To: 0}) != nil { // the queue is full
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

// begunTurn is how the newest turn of a journal began, and whether its prompt was sent to the agent.
type begunTurn struct {
	said transcript.Note
	sent bool
}

// take takes the next frame of the journal, and reports whether a turn begins with the frame.
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

// dropUnsentPrompt marks the turn that the end of the program interrupted as not sent, if the journal holds no prompt of the turn. The
// journal has the message with its secrets replaced, so a notice tells of them.
func (s *cancellation) dropUnsentPrompt(b begunTurn) {
	if s.v.turn == nil || s.v.turn.ID != b.said.Turn || b.sent {
		return
	}
	s.v.state.Sent, s.v.turn.prompt, s.v.turn.attachments = false, b.said.Prompt, b.said.Attachments
	if strings.Contains(transcript.PromptText(s.v.turn.prompt), redact.Mark) {
		s.v.remote.tellLost("Your message was not sent", putSecretIn)
	}
}

// withdrawOurs withdraws every request that the agent has not answered and that can be withdrawn. withdrawOurs returns false when there is
// none.
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

// unanswered handles a withdrawn request as cancelled, unless its answer has come.
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

// stopped reports whether a step of the start has failed because a person has cancelled the request of the step. stopped then ends the
// agent, as if the agent had not been started. A message that was sent after the cancel gets a start of its own.
func (a *agentProcess) stopped(failure *acp.Error) bool {
	if failure == nil || failure.Code != acp.CodeRequestCancelled || !a.cancelled {
		return false
	}
	v, since := a.v, a.v.turn // a turn of before the cancel has ended with it
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

// cancellation stops the running turn of a conversation: first by session/cancel, then by SIGINT, then by a kill.
type cancellation struct {
	v      *conversation
	timer  *time.Timer // fires when the next means is due
	stopBy time.Time   // when the turn must have ended
}

// effect runs the means that an event of the state machine names. Each means comes when the agent has not ended the turn within
// Config.Patience of the means before.
func (s *cancellation) effect(e lifecycle.Event) {
	switch e.(type) {
	case lifecycle.CancelSent:
		if s.v.composer.stop() { // the agent was not sent the prompt
			s.v.do(lifecycle.Stopped{Turn: s.v.turn.ID, Reason: lifecycle.StopCancelled})
			return
		}
		s.v.notify("session/cancel", map[string]any{"sessionId": s.v.row.ACPSessionID})
		s.v.saveRow()                // so that surfaces show that the turn is being stopped
		if s.v.row.Subagent == nil { // stronger means would end the whole process
			s.stopBy = time.Now().Add(stopLimit)
			s.arm()
		}
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

// arm starts the timer for the next means.
func (s *cancellation) arm() { s.armFor(s.v.c.cfg.Patience, s.escalate) }

func (s *cancellation) escalate() { s.v.do(lifecycle.Escalate{}) }

// armLast waits for the end of a killed agent; no means is left after a kill. When the end takes too long, because a process that the agent
// has started does not die, the conversation goes on as if the agent had ended; the end is awaited in the background, and the next start
// waits for it (begin). Messages that the agent wrote and that are not read by then are lost, which the transcript tells; but a
// conversation that could not take them, as with a full disk, waits longer.
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

// armFor has next called in the conversation's goroutine after d, unless disarm is called before.
func (s *cancellation) armFor(d time.Duration, next func()) {
	s.disarm()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.v.post(func() {
			if s.timer == timer { // otherwise the timer was stopped while it fired
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
