package backend

import (
	"context"

	"deskhand/backend/agents"
	"deskhand/backend/session"
)

// The records of logins; packages agents and session tell what they hold.
type (
	// Login is one attempt to sign in to an agent.
	Login = session.Login
	// LoginMethods is how one signs in to an agent.
	LoginMethods = agents.LoginMethods
	// LoginMethod is one way to.
	LoginMethod = agents.LoginMethod
)

// The types of ways to sign in.
const (
	LoginByAgent    = agents.LoginByAgent
	LoginByTerminal = agents.LoginByTerminal
	LoginByValues   = agents.LoginByValues
)

// LoginCommand is a program to be run on a terminal.
type LoginCommand struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
}

// LoginCommand is the program by which a person signs in to an agent at their own terminal.
func (b *Backend) LoginCommand(ctx context.Context, agent, method string) (LoginCommand, error) {
	m, err := b.agents.LoginMethod(ctx, agent, method)
	if err != nil {
		return LoginCommand{}, err
	}
	cmd, err := b.agents.LoginCommand(ctx, agent, m)
	return LoginCommand{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir}, err
}
