package cli

import (
	"context"
	"os"

	"deskhand/backend"
)

type mcpCommand struct{}

// Run relays a session's tools to an agent that only takes MCP servers as programs. Deskhand has passed this command and its environment to
// the agent.
func (mcpCommand) Run(p *Program) error {
	return backend.ToolRelay(context.Background(), os.Getenv(backend.ToolSocket), os.Getenv(backend.ToolTicket), p.Stdin, p.Stdout)
}
