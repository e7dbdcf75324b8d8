package session

import (
	"context"
	"encoding/json"
	"time"

	"deskhand/backend/acp"
)

// Codes of a setting that the agent has not taken.
const (
	refusedOption = "config.refused"
	silentOption  = "config.unanswered"
)

// configurePatience is how long Configure waits for the agent: some answer within a turn only when the model pauses.
const configurePatience = 20 * time.Second

// Configure changes a config option as SetConfig does, and returns when the agent has answered: with the session that holds the new value.
// It fails with config.refused in the agent's words, and with config.unanswered when the agent says nothing for 20 seconds; an answer that
// comes later still counts.
func (c *Client) Configure(ctx context.Context, id, option string, value json.RawMessage) (Session, error) {
	answered := make(chan *acp.Error, 1)
	var gone <-chan struct{}
	waits := false
	err := c.wish(ctx, id, func(v *conversation) (err error) {
		waits, err = v.setConfig(option, value, func(failure *acp.Error) { answered <- failure })
		gone = v.gone
		return err
	})
	if err == nil && waits {
		err = c.configured(ctx, id, option, answered, gone)
	}
	if err != nil {
		return Session{}, err
	}
	return c.Get(ctx, id)
}

// configured waits for what the agent answers to the change of an option.
func (c *Client) configured(ctx context.Context, id, option string, answered <-chan *acp.Error, gone <-chan struct{}) error {
	limit := time.NewTimer(configurePatience)
	defer limit.Stop()
	select {
	case failure := <-answered:
		if failure != nil {
			return &RefusedError{Code: refusedOption, Params: map[string]string{"id": option, "detail": c.cfg.Roster.Secrets().Sentence(failure)}}
		}
		return c.wish(ctx, id, func(*conversation) error { return nil }) // the step that took the answer is over then, and shown
	case <-gone:
		return &RefusedError{Code: "session.not_ready"}
	case <-limit.C:
		return &RefusedError{Code: silentOption, Params: map[string]string{"id": option}}
	case <-ctx.Done():
		return ctx.Err()
	}
}
