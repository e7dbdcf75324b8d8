package session

import (
	"context"

	"deskhand/backend/shells"
	"deskhand/backend/worktrees"
)

// openShells opens the terminals of the person and of logins.
func (c *Client) openShells() *shells.Library {
	return shells.New(c.ctx, shells.Deps{
		Proxy: c.cfg.Proxy, Logger: c.cfg.Logger, Files: c.cfg.Files, PersonShell: c.cfg.Agents.PersonShell,
		Find: func(ctx context.Context, id string) (shells.Session, error) {
			v, err := c.conversation(ctx, id)
			if err != nil {
				return shells.Session{}, err
			}
			s := v.look()
			return shells.Session{Cwd: s.Cwd, Directories: s.Directories, Local: v.host().Directories != nil}, nil
		},
		Refuse: func(dir string) error {
			if c.worktrees.Closed(dir) {
				return worktrees.ErrWorking()
			}
			return nil
		},
		Login: func(id string) (shells.Login, error) {
			a, err := c.logins.terminal(id)
			if err != nil {
				return shells.Login{}, err
			}
			return shells.Login{Terminal: a.tty, End: func(ctx context.Context) error { return c.cancelLogin(ctx, a) }}, nil
		},
	})
}

// Shells returns the terminals of the person and of logins.
func (c *Client) Shells() *shells.Library { return c.shells }
