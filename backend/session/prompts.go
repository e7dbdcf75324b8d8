package session

import (
	"context"
	"strings"

	"deskhand/backend/attachments"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// Prompt sends a message without attachments: at once to an agent that is ready, or else after the agent's start.
func (c *Client) Prompt(ctx context.Context, id, message string) (Turn, error) {
	sent, err := c.Send(ctx, id, Prompt{Message: message, When: Now})
	if err != nil {
		return Turn{}, err
	}
	return *sent.Turn, nil
}

// Send takes a message with its files. While a turn runs, p.When says what becomes of the message; otherwise the message begins a turn,
// which is sent at once to an agent that is ready, or else after the agent's start. Inline attachments are copied when Send returns, so
// later changes of their files do not reach the agent.
func (c *Client) Send(ctx context.Context, id string, p Prompt) (sent Sent, err error) {
	if strings.TrimSpace(p.Message) == "" && len(p.Attachments) == 0 {
		return Sent{}, bad("prompt.empty")
	}
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	now := p.When == "" || p.When == Now
	if now && len(p.Attachments) > 0 && v.look().Turn != nil {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedRunning} // refused before the files are read
	}
	m := said{text: p.Message, elsewhere: p.Elsewhere}
	if m.files, err = v.composer.accept(ctx, p.Attachments); err != nil {
		return Sent{}, err
	}
	for _, a := range p.Attachments {
		m.chips = append(m.chips, a.ID)
	}
	err = v.call(ctx, func() error {
		switch {
		case now:
			turn, err := v.prompt(m)
			sent = Sent{Turn: &turn}
			return err
		case p.When == Steer:
			sent, err = v.prompts.steer(m)
			return err
		}
		sent, err = v.prompts.enqueue(m, func(item string) lifecycle.Command {
			return lifecycle.Queue{Item: item, Interrupt: p.When == Interrupt}
		})
		return err
	})
	return sent, err
}

// Queue returns the queue of a session, in order.
func (c *Client) Queue(ctx context.Context, id string) (list []QueueItem, err error) {
	if c.ReadOnly() != nil { // a read-only conversation runs no step
		r, _, err := c.load(ctx, id, false)
		return r.queue, err
	}
	err = c.wish(ctx, id, func(v *conversation) error {
		list = v.prompts.list()
		return nil
	})
	return list, err
}

// ChangeQueued applies a patch to an item, and returns the item or the turn that it became.
func (c *Client) ChangeQueued(ctx context.Context, id, item string, p QueuePatch) (sent Sent, err error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	var files []transcript.Attachment
	if p.Attachments != nil {
		list := make([]attachments.PromptAttachment, len(*p.Attachments))
		for i, id := range *p.Attachments {
			list[i].ID = id
		}
		if files, err = v.composer.accept(ctx, list); err != nil {
			return Sent{}, err
		}
	}
	err = v.call(ctx, func() error {
		sent, err = v.prompts.change(item, p, files)
		return err
	})
	return sent, err
}

// RemoveQueued deletes an item. RestoreQueued restores one of the last deleted items.
func (c *Client) RemoveQueued(ctx context.Context, id, item string) error {
	return c.wish(ctx, id, func(v *conversation) error { return v.prompts.remove(item) })
}

// RestoreQueued puts a deleted item back at its position. While no turn runs the item is held: restoring sends nothing.
func (c *Client) RestoreQueued(ctx context.Context, id, item string) (q QueueItem, err error) {
	err = c.wish(ctx, id, func(v *conversation) error {
		q, err = v.prompts.restore(item)
		return err
	})
	return q, err
}

// Cancel stops the running turn, by stronger means from step to step until the turn has ended.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.wish(ctx, id, func(v *conversation) error { return v.stopping.begin() })
}
