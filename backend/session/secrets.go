package session

import (
	"context"
	"errors"
	"slices"

	"deskhand/backend/agents"
	"deskhand/backend/mcp"
)

// rememberSecrets has the secrets that agents.json gives an agent redacted. It is called before the agent is started.
func (c *Client) rememberSecrets(agent string) {
	c.secret.Remember(mcp.CertainIn(c.cfg.Agents.Env(agent)))
}

// loadSecrets has the secrets redact.Mark that agents were given by earlier runs of the program: those of agents.json, and those of the
// vaults as far as reach allows. The error names the secrets that could not be read.
func (c *Client) loadSecrets(ctx context.Context, reach agents.Reach) error {
	for _, env := range c.cfg.Agents.Envs() {
		c.secret.Remember(mcp.CertainIn(env))
	}
	err := c.cfg.Agents.Recall(ctx, reach)
	for _, v := range c.cfg.Vaults {
		if err != nil {
			reach = min(reach, agents.IfUnlocked) // the person who was asked for a password has not given one
		}
		err = errors.Join(err, v.Recall(ctx, reach))
	}
	return err
}

// loadSecretsLogged is loadSecrets in the background: the error is logged.
func (c *Client) loadSecretsLogged(ctx context.Context, reach agents.Reach) {
	if err := c.loadSecrets(ctx, reach); err != nil && ctx.Err() == nil {
		c.cfg.Logger.Warn("secrets that are kept cannot be read, so that they are not taken out of what is written", "error", err)
	}
}

// enteredSecrets returns the secrets that people have entered for agents and in vaults.
func (cfg Config) enteredSecrets() []string {
	list := slices.Clone(cfg.Agents.Secrets())
	for _, v := range cfg.Vaults {
		list = append(list, v.Secrets()...)
	}
	return slices.DeleteFunc(list, mcp.Usual)
}
