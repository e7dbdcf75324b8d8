package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// asServer is the first argument that makes the test binary a server: the second argument names which.
const asServer = "mcp-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asServer {
		fakeServer(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func fakeServer(what string, args []string) {
	switch what {
	case "honest":
		run(server(os.Getenv("FIXTURE_SECRET")))
	case "banner":
		fmt.Println("Welcome to the server!")
		run(server(""))
	case "many":
		s := sdk.NewServer(&sdk.Implementation{Name: "many", Version: "1"}, nil)
		for i := range 1200 {
			addTool(s, "tool"+strconv.Itoa(i), strings.Repeat("ä", 4000))
		}
		run(s)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // never even reads
		time.Sleep(time.Hour)
	case "dies":
		fmt.Fprintln(os.Stderr, "no licence for", os.Getenv("FIXTURE_SECRET"))
		os.Exit(3)
	case "prose":
		fmt.Println("error: what do you want?")
		os.Exit(0)
	case "flood":
		out := bufio.NewWriter(os.Stdout)
		for {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%q}}`+"\n", strings.Repeat("x", 1000))
		}
	case "babble":
		out := bufio.NewWriter(os.Stdout)
		for {
			fmt.Fprintln(out, strings.Repeat("not JSON ", 100))
		}
	case "parent": // parent of a process in a session of its own, which holds stdout
		child := exec.Command(os.Args[0], asServer, "deaf")
		child.Stdout, child.SysProcAttr = os.Stdout, apart()
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := os.WriteFile(args[0], []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func server(secret string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "honest", Version: "1.2.3"}, nil)
	addTool(s, "greet", "Says hello"+secret)
	addTool(s, "add", "")
	return s
}

func addTool(s *sdk.Server, name, description string) {
	type nothing struct{}
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: description}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
}

func run(s *sdk.Server) {
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
