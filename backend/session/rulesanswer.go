package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deskhand/backend/transcript"
)

// beside checks the rule and the note of an answer, and returns a function that applies them once the request has ended. With a rule the
// answer that goes to the agent is the option for once, because the agent is to keep nothing that a person cannot take back here.
func (v *conversation) beside(r *openRequest, a *Answer) (func() error, error) {
	after := func() error { return nil }
	if a.Remember == nil && a.Note == "" {
		return after, nil
	}
	if r.Kind != kindPermission {
		return nil, bad("answer.only_permission")
	}
	i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.ID == a.OptionID })
	if i < 0 {
		return after, nil // the answer is refused for that
	}
	rejects := strings.HasPrefix(r.Options[i].Kind, "reject")
	if a.Note = strings.TrimSpace(a.Note); a.Note != "" {
		if !rejects {
			return nil, bad("answer.note")
		}
		if len(v.state.queue) >= maxQueue {
			return nil, &RefusedError{Code: refusedFull}
		}
		after = func() error { return v.sayAbout(&r.Request, a.Note) }
	}
	if a.Remember == nil {
		return after, nil
	}
	rule, err := v.c.rules.Make(context.WithoutCancel(v.c.ctx), v.subject(), v.askedWhole(r), *a.Remember, rejects)
	if err != nil {
		return nil, err
	}
	once := "allow_once"
	if rejects {
		once = "reject_once"
	}
	if id := r.option(once); id != "" {
		a.OptionID = id
	}
	a.Remember = nil
	say := after
	return func() error {
		v.ruled().Add(rule)
		return say()
	}, nil
}

// sayAbout sends a person's words about a rejected request: ACP has no place for words in the answer. An agent that takes messages within a
// turn gets the words there; else the words are the next prompt, before the prompts that wait already.
func (v *conversation) sayAbout(r *Request, words string) error {
	message := fmt.Sprintf("I rejected “%s”: %s", r.Title, words)
	draft := v.row.Draft // the text in the composer stays
	defer func() { v.row.Draft = draft }()
	if v.state.base == Working && slices.Contains(v.row.Offers, transcript.OfferSteer) {
		_, err := v.steer(said{text: message})
		return err
	}
	sent, err := v.enqueue(said{text: message}, func(item string) command { return doQueue{item: item} })
	if err == nil && sent.QueueItem != nil {
		v.do(doMove{sent.QueueItem.ID, 0})
	}
	return err
}
