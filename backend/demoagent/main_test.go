package demoagent_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"deskhand/backend/agenttest"
	"deskhand/backend/demoagent"
)

// TestMain gives the tests the additions of agenttest, whose words are tested here: each message is checked by the schema of ACP. A variable
// makes the test binary a process that the tests need.
func TestMain(m *testing.M) {
	demoagent.Additions, demoagent.JunkLines, demoagent.HugeText = agenttest.Demo, agenttest.JunkLines, agenttest.HugeText
	switch os.Getenv(demoagent.RunVariable) {
	case "agent":
		os.Exit(agenttest.Main([]string{"demo-agent"}))
	case "mcp":
		if err := demoagent.ToolServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "die":
		os.Exit(1)
	default:
		goleak.VerifyTestMain(m)
	}
}
