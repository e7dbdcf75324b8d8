package session

import (
	"context"
	"fmt"

	"deskhand/backend/host"
	"deskhand/backend/launch"
	"deskhand/backend/redact"
)

// Redactor returns a Redactor that also knows the secrets of the MCP servers of a session's directory: the run of the program that gave
// these secrets to the agent may have ended. The error names the secrets that cannot be read. The Redactor is only for texts that leave the
// program, since the author of the directory's file need not be trusted to decide which words are hidden elsewhere. The zero Session has no
// directory.
func (c *Client) Redactor(ctx context.Context, s Session) (redact.Redactor, error) {
	secrets, err := c.serverSecrets(ctx, s)
	return c.secret.With(secrets), err
}

// serverSecrets returns the secrets of the MCP servers of a session's directory on this machine, and of all projects.
func (c *Client) serverSecrets(ctx context.Context, s Session) (list []string, err error) {
	if s.Cwd == "" || c.hosts.At(s.Place).Directories == nil {
		return nil, nil // a remote agent gets no secrets from Deskhand
	}
	if !c.hosts.Local.Directories.InTime(s.Cwd, host.PatientMany) {
		return nil, fmt.Errorf("the MCP servers of %s: its disk does not answer", s.Cwd)
	}
	if c.hosts.Local.Directories.Missing(s.Cwd) {
		return c.launch.ServerSecrets(ctx, launch.AllProjects)
	}
	return c.launch.ServerSecrets(ctx, s.Cwd)
}
