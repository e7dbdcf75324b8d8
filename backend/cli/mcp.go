package cli

import (
	"context"
	"os"

	"deskhand/backend"
)

type mcpCommand struct{}

// Run carries the tools of one session to an agent that takes programs only. Deskhand has told the agent to start it, and with what.
func (mcpCommand) Run(p *Program) error {
	return backend.ToolRelay(context.Background(), os.Getenv(backend.ToolSocket), os.Getenv(backend.ToolTicket), p.Stdin, p.Stdout)
}
