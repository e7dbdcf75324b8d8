package agents

import (
	"context"
	"path/filepath"

	"deskhand/backend/environ"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
	"deskhand/backend/vault"
)

// launcher starts agents.
type launcher struct {
	environment *environ.Environment
	vault       *vault.Vault // has the values that people have entered for logins
	prober      *probe.Prober
}

// command returns the command that starts an agent in cwd.
func (l *launcher) command(ctx context.Context, e entry, at place, cwd string) proxy.Command {
	if e.cwd != "" {
		cwd = e.cwd
	}
	if at.start != nil && !e.inFile {
		e.args, e.env = at.start.Args, at.start.Env
	}
	path, args := at.argv(e.args)
	env := l.environment.With(e.environ())
	if !e.bare {
		env = append(env, l.vault.Environ(ctx, e.id)...)
	}
	if at.home != "" {
		env = append(env, environ.AgentHome+"="+at.home)
	}
	return proxy.Command{Path: path, Args: args, Env: environ.ExceptLoopback(env), Dir: cwd, Keeps: at.home}
}

// ask starts an agent in an empty directory, and returns its offer; without session, only the version.
func (l *launcher) ask(ctx context.Context, e entry, cmd proxy.Command, session bool) (probe.Offer, error) {
	return l.prober.Ask(ctx, e.id, func(dir string) (proxy.Command, error) {
		cmd.Dir = dir
		return forgetful(e, cmd, dir), nil
	}, session)
}

// forgetful returns the command of an agent whose state, if the agent is the demo agent, is in dir: the demo agent would keep a message for
// its next start.
func forgetful(e entry, cmd proxy.Command, dir string) proxy.Command {
	if e.id == Demo {
		cmd.Env = append(cmd.Env, "DESKHAND_DEMO_STATE="+filepath.Join(dir, ".state"))
	}
	return cmd
}
