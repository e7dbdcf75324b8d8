package session

import (
	"context"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
)

// AskUser asks a person for an agent that has no way of its own to ask, as a request like any other. answers holds a list of option ids or
// texts for each question; status is answered, rejected, cancelled (the turn was stopped or ended) or expired (the agent has ended).
// AskUser waits until ctx ends, and then cancels the request.
func (c *Client) AskUser(ctx context.Context, session string, questions []requests.Question) (answers [][]string, status string, err error) {
	if len(questions) == 0 {
		return nil, "", bad("question.empty")
	}
	v, err := c.conversation(ctx, session)
	if err != nil {
		return nil, "", err
	}
	ended := make(chan requests.Request, 1)
	id := uuid.Must(uuid.NewV7()).String()
	if err := v.call(ctx, func() error { return v.inbox.askUser(id, questions, ended) }); err != nil {
		return nil, "", err
	}
	select {
	case r := <-ended:
		return r.AnswerLists(), r.Status, nil
	case <-v.ended:
		return nil, lifecycle.StatusExpired, nil
	case <-ctx.Done():
		v.post(func() { v.do(lifecycle.Resolve{Request: id, Status: lifecycle.StatusCancelled}) })
		select {
		case r := <-ended: // the request may have been answered as ctx ended
			return r.AnswerLists(), r.Status, nil
		case <-v.ended:
			return nil, lifecycle.StatusExpired, nil
		}
	}
}

// askUser opens the request; ended receives the request once, when it has ended.
func (b *inbox) askUser(id string, questions []requests.Question, ended chan<- requests.Request) error {
	r := &requests.Pending{Ended: ended, Request: requests.Request{
		ID: id, Session: b.v.id, Generation: b.v.row.Generation, Agent: b.v.agentName, Kind: requests.KindQuestion, Title: b.v.c.secret.Text(questions[0].Prompt),
		Options: []requests.Option{}, Status: lifecycle.StatusRequested, CreatedAt: Time{Time: time.Now()},
	}}
	for _, q := range questions {
		shown := requests.Question{Prompt: b.v.c.secret.Text(q.Prompt), MultiSelect: q.MultiSelect, AllowFreeText: q.AllowFreeText || len(q.Options) == 0, Options: []form.QuestionOption{}}
		for _, o := range q.Options {
			shown.Options = append(shown.Options, form.QuestionOption{ID: o.ID, Label: b.v.c.secret.Text(o.Label), Description: b.v.c.secret.Text(o.Description)})
		}
		r.Questions = append(r.Questions, shown)
	}
	if b.v.turn != nil {
		r.Turn = b.v.turn.ID
	}
	if b.v.state.Decide(lifecycle.Open{Request: id})[0] != lifecycle.Event(lifecycle.RequestOpened{Request: id}) {
		return &RefusedError{Code: "session.not_ready"}
	}
	if len(b.open) >= mostOpen {
		return &RefusedError{Code: "question.too_many"}
	}
	b.opens(r)
	return nil
}
