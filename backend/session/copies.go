package session

import (
	"context"

	"deskhand/backend/attachment"
	"deskhand/backend/exclude"
)

// excludedCopies is what the line about copies in info/exclude is about.
const excludedCopies = "copies of attached files"

// hideCopies is an [attachment.Hide]: the repository of the directory, if there is one, has the copies among what it leaves out.
func (c *Client) hideCopies(ctx context.Context, cwd string) bool {
	place, err := exclude.Find(ctx, c.cfg.Proxy, c.cfg.Agents.Environ(ctx), cwd)
	if err == nil && place.File != "" {
		err = exclude.Add(place.File, excludedCopies, place.Pattern(attachment.Copies+"/"))
	}
	if err != nil {
		c.cfg.Logger.Warn("git was not told of the copies of attached files", "directory", cwd, "error", err)
	}
	return err == nil && place.File != ""
}

// hideOldCopies is hideCopies for the copies that are there already.
func (c *Client) hideOldCopies(ctx context.Context, cwd string) {
	if err := attachment.HideCopies(ctx, cwd, c.hideCopies); err != nil && ctx.Err() == nil {
		c.cfg.Logger.Warn("the copies of attached files stay where git and agents are told of them by a file", "directory", cwd, "error", err)
	}
}
