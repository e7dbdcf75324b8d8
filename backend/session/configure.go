package session

import (
	"context"
	"encoding/json"
	"time"

	"deskhand/backend/acp"
)

// Codes of a change of an option that the agent has not made.
const (
	refusedOption = "config.refused"
	silentOption  = "config.unanswered"
)

// configurePatience is how long Configure waits for the agent: within a turn some agents answer only when the model pauses.
const configurePatience = 20 * time.Second

// Configure changes a config option as SetConfig does, waits for the agent's answer, and returns the session with the new value. Configure
// fails with config.refused and the agent's message, and with config.unanswered after 20 seconds without an answer; an answer that comes
// later still counts.
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

// configured waits for the agent's answer to the change of an option.
func (c *Client) configured(ctx context.Context, id, option string, answered <-chan *acp.Error, gone <-chan struct{}) error {
	limit := time.NewTimer(configurePatience)
	defer limit.Stop()
	select {
	case failure := <-answered:
		if failure != nil {
			return &RefusedError{Code: refusedOption, Params: map[string]string{"id": option, "detail": c.cfg.Roster.Secrets().Sentence(failure)}}
		}
		return c.wish(ctx, id, func(*conversation) error { return nil }) // an empty step waits until the step with the answer is published
	case <-gone:
		return &RefusedError{Code: "session.not_ready"}
	case <-limit.C:
		return &RefusedError{Code: silentOption, Params: map[string]string{"id": option}}
	case <-ctx.Done():
		return ctx.Err()
	}
}
