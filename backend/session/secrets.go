package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"deskhand/backend/agents"
	"deskhand/backend/host"
	"deskhand/backend/mcp"
	"deskhand/backend/redact"
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

// Redactor returns a Redactor that also knows the secrets of the MCP servers of a session's directory: the program that gave the secrets to
// the agent may have ended since. The error names the secrets that cannot be read. The Redactor is for a text that leaves the program only,
// since the author of the directory's file need not be trusted to say which words are hidden elsewhere. The zero Session has no directory.
func (c *Client) Redactor(ctx context.Context, s Session) (redact.Redactor, error) {
	secrets, err := c.serverSecrets(ctx, s)
	return c.secret.With(secrets), err
}

// LoadSecrets reads the secrets that earlier runs of the program have stored, and may ask a person for the password of the keyring. The
// error names the secrets that cannot be read.
func (c *Client) LoadSecrets(ctx context.Context) error { return c.loadSecrets(ctx, agents.Asking) }

func (c *Client) serverSecrets(ctx context.Context, s Session) (list []string, err error) {
	if s.Cwd == "" || c.hosts.At(s.Place).Directories == nil {
		return nil, nil // an agent there gets nothing of ours
	}
	if !c.hosts.Local.Directories.InTime(s.Cwd, host.PatientMany) {
		return nil, fmt.Errorf("the MCP servers of %s: its disk does not answer", s.Cwd)
	}
	if c.hosts.Local.Directories.Missing(s.Cwd) {
		return nil, nil
	}
	return c.launch.ServerSecrets(ctx, s.Cwd)
}
