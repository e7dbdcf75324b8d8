// Command program runs the agent of package agenttest that its first argument names.
package main

import (
	"os"

	"deskhand/backend/agenttest"
)

func main() { os.Exit(agenttest.Main(os.Args[1:])) }
