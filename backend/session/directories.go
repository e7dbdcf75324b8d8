package session

import (
	"context"
	"slices"

	"deskhand/backend/host"
	"deskhand/backend/remotes"
	"deskhand/backend/workspace"
)

// whereabouts returns the place, the workspace and the further directories of a new session.
func (c *Client) whereabouts(ctx context.Context, n New) (place string, w workspace.Workspace, further []string, err error) {
	if c.hosts.At(n.Place).Directories == nil {
		if _, err := c.remotes.Get(n.Place); err != nil {
			return "", w, nil, err
		}
		directory, err := remotes.CleanPath(n.Cwd)
		if err == nil {
			w, err = c.workspaces.OpenAt(ctx, n.Place, directory)
		}
		return n.Place, w, slices.Compact(n.Directories), err
	}
	if err := c.hosts.At(n.Place).Startable(n.Agent); err != nil {
		return "", w, nil, err
	}
	if w, err = c.workspaces.Open(ctx, n.Cwd); err == nil {
		further, err = workspace.Directories(n.Directories)
	}
	return host.Local, w, further, err
}

// refound publishes the sessions of a directory that is missing now, or is found again.
func (c *Client) refound(path string) {
	if c.ReadOnly() != nil {
		return
	}
	c.background.Start(func() {
		c.mu.Lock()
		var list []*conversation
		for _, v := range c.live {
			if s := v.look(); s.Cwd == path && c.hosts.At(s.Place).Directories != nil {
				list = append(list, v)
			}
		}
		c.mu.Unlock()
		for _, v := range list {
			v.post(v.saveRow)
		}
	})
}

// Roots returns the directories of a session, its own first. Roots refuses a session whose files are elsewhere.
func (c *Client) Roots(ctx context.Context, id string) ([]string, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	s, at := v.look(), v.host().Directories
	if at == nil {
		return nil, &RefusedError{Code: "paths.elsewhere"}
	}
	return at.Roots(s.Cwd, s.Directories), nil
}
