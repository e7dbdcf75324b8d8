package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

type queuePath struct {
	ID   string `path:"id" maxLength:"64"`
	Item string `path:"item" maxLength:"64"`
}

// queueRoutes adds the routes for the prompts that wait in a session; the prompt route adds to them.
func (c *Client) queueRoutes() {
	s := c.cfg.Sessions
	register(c, op("listQueue", http.MethodGet, "sessions/{id}/queue", "List the queued prompts, in their order", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Page[session.QueueItem]], error) {
			items, err := s.Queue(ctx, in.ID)
			return answer(session.Page[session.QueueItem]{Items: items}, err)
		})
	change := op("changeQueued", http.MethodPatch, "sessions/{id}/queue/{item}", "Edit, move, hold, release or send a queued prompt", http.StatusOK)
	change.MaxBodyBytes = maxPrompt
	register(c, change,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Item string `path:"item" maxLength:"64"`
			Body session.QueuePatch
		},
		) (*body[session.Sent], error) {
			return answer(s.ChangeQueued(ctx, in.ID, in.Item, in.Body))
		})
	huma.Register(c.api, op("removeQueued", http.MethodDelete, "sessions/{id}/queue/{item}", "Delete a queued prompt", http.StatusNoContent),
		func(ctx context.Context, in *queuePath) (*none, error) {
			return done(s.RemoveQueued(ctx, in.ID, in.Item))
		})
	register(c, op("restoreQueued", http.MethodPost, "sessions/{id}/queue/{item}/restore", "Restore a deleted prompt to the queue", http.StatusOK),
		func(ctx context.Context, in *queuePath) (*body[session.QueueItem], error) {
			return answer(s.RestoreQueued(ctx, in.ID, in.Item))
		})
}
