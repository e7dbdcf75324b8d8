package session

import (
	"context"
	"errors"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
)

// ReplyQuestion answers a question by a list of option ids or texts; with the id of a request, all questions of the request, by one list
// each. The first answer wins, as with [Client.Answer].
func (c *Client) ReplyQuestion(ctx context.Context, session, question string, answers [][]string, surface string) error {
	return c.resolveQuestion(ctx, session, question, func(v *conversation, found requests.Request, part int) error {
		return v.inbox.reply(ctx, found, part, answers, surface)
	})
}

// RejectQuestion rejects the request of a question, and so every other question of the request.
func (c *Client) RejectQuestion(ctx context.Context, session, question, surface string) error {
	return c.resolveQuestion(ctx, session, question, func(v *conversation, found requests.Request, _ int) error {
		return v.inbox.answer(ctx, found, found.Rejection(), surface)
	})
}

// resolveQuestion calls f with a question's request and the number of the question in it, or 0 for the whole request.
func (c *Client) resolveQuestion(ctx context.Context, session, question string, f func(v *conversation, found requests.Request, part int) error) error {
	found, part, err := c.requests.FindQuestion(ctx, session, question)
	if err != nil {
		return err
	}
	return c.first(ctx, found, c.wish(ctx, session, func(v *conversation) error { return f(v, found, part) }))
}

// first completes the refusal of a late answer with the surface that answered. found was read before the conversation handled the answer,
// when the end of the request may not have been stored; by now it is.
func (c *Client) first(ctx context.Context, found requests.Request, err error) error {
	late, ok := errors.AsType[*RefusedError](err)
	if !ok || late.Code != lifecycle.RefusedNotOpen || found.Status != lifecycle.StatusRequested {
		return err
	}
	now, again := c.requests.Get(ctx, found.ID)
	if again != nil || late.Params["answeredBy"] != "" {
		return err
	}
	return requests.TooLate(now)
}
