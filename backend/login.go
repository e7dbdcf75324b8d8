package backend

import (
	"context"

	"deskhand/backend/agents"
	"deskhand/backend/roster"
)

// Records of logins; packages agents and roster document them.
type (
	// Login is an attempt to sign in to an agent.
	Login = roster.Login
	// LoginMethods are an agent's login methods.
	LoginMethods = agents.LoginMethods
	// LoginMethod is a login method.
	LoginMethod = agents.LoginMethod
)

// The types of login methods.
const (
	LoginByAgent    = agents.LoginByAgent
	LoginByTerminal = agents.LoginByTerminal
	LoginByValues   = agents.LoginByValues
)

// LoginCommand is a program to run on a terminal.
type LoginCommand struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
}

// LoginCommand is the program by which a person signs in to an agent at a terminal.
func (b *Backend) LoginCommand(ctx context.Context, agent, method string) (LoginCommand, error) {
	m, err := b.agents.Logins().Method(ctx, agent, method)
	if err != nil {
		return LoginCommand{}, err
	}
	cmd, err := b.agents.Logins().Command(ctx, agent, m)
	return LoginCommand{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir}, err
}
