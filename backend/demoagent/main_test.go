package demoagent

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// runVariable makes the test binary a process that the tests need.
const runVariable = "DEMOAGENT_TEST_RUN"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(runVariable) {
	case "agent":
		err = Run(context.Background(), os.Stdin, os.Stdout)
	case "mcp":
		err = toolServer().Run(context.Background(), &mcp.StdioTransport{})
	case "die":
		os.Exit(1)
	default:
		goleak.VerifyTestMain(m)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
