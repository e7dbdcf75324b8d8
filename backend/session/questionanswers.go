package session

import (
	"context"
	"errors"
	"strings"

	"deskhand/backend/lifecycle"
)

// ReplyQuestion answers a question by a list of option ids or texts; with the id of a request, all questions of the request, by one list
// each. The first answer wins, as with [Client.Answer].
func (c *Client) ReplyQuestion(ctx context.Context, session, question string, answers [][]string, surface string) error {
	return c.resolveQuestion(ctx, session, question, func(v *conversation, found Request, part int) error {
		return v.inbox.reply(ctx, found, part, answers, surface)
	})
}

// RejectQuestion rejects the request of a question, and so every other question of the request.
func (c *Client) RejectQuestion(ctx context.Context, session, question, surface string) error {
	return c.resolveQuestion(ctx, session, question, func(v *conversation, found Request, _ int) error {
		return v.inbox.answer(ctx, found, found.rejection(), surface)
	})
}

// resolveQuestion calls f with a question's request and the number of the question in it, or 0 for the whole request.
func (c *Client) resolveQuestion(ctx context.Context, session, question string, f func(v *conversation, found Request, part int) error) error {
	found, part, err := c.findQuestion(ctx, session, question)
	if err != nil {
		return err
	}
	return c.first(ctx, found, c.wish(ctx, session, func(v *conversation) error { return f(v, found, part) }))
}

// findQuestion finds the request that an id names. Deskhand's own id comes first; of requests with that id of the agent, the waiting one
// comes before the last.
func (c *Client) findQuestion(ctx context.Context, session, question string) (found Request, part int, err error) {
	id, _, _ := strings.Cut(question, ".")
	list, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ? AND session = ?`, id, session)
	if err != nil {
		return found, 0, err
	}
	if len(list) == 0 {
		list, err = query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request
			WHERE session = ? AND json_extract(data, '$.kind') = ? ORDER BY created_at, rowid`, session, kindQuestion)
		if err != nil {
			return found, 0, err
		}
	}
	waiting, known := 0, false
	for _, r := range list {
		n, ok := r.part(question)
		if !ok {
			continue
		}
		if r.Status == lifecycle.StatusRequested {
			waiting++
		}
		if !known || r.Status == lifecycle.StatusRequested || found.Status != lifecycle.StatusRequested {
			found, part, known = r, n, true
		}
	}
	switch {
	case !known:
		return found, 0, unknownQuestion(question)
	case waiting > 1:
		return found, 0, &RefusedError{Code: "question.ambiguous", Params: map[string]string{"question": question}}
	}
	return found, part, nil
}

// first completes the refusal of a late answer with the surface that answered. found was read before the conversation handled the answer,
// when the end of the request may not have been stored; by now it is.
func (c *Client) first(ctx context.Context, found Request, err error) error {
	late, ok := errors.AsType[*RefusedError](err)
	if !ok || late.Code != lifecycle.RefusedNotOpen || found.Status != lifecycle.StatusRequested {
		return err
	}
	now, again := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, found.ID)
	if again != nil || len(now) == 0 || late.Params["answeredBy"] != "" {
		return err
	}
	return tooLate(now[0])
}
