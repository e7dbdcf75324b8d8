// Package agenttest gives tests agents that run as a program of their own: the demo agent, a player of recordings, and scripted agents that
// misbehave. The program has no race detector and nothing of the client in it, and starts with a tenth of the work of a test program that runs
// itself again as its agent.
package agenttest

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"deskhand/backend/demoagent"
	"deskhand/backend/testkit"
)

// Mute names the environment variable that has the demo agent read its input and never answer.
const Mute = "DESKHAND_TEST_MUTE"

// UseInCommands has the Deskhand that this process starts use the agent of the tests as the demo agent. A TestMain calls UseInCommands.
func UseInCommands() error {
	path, err := program()
	if err != nil {
		return err
	}
	return os.Setenv("DESKHAND_DEMO_AGENT", path)
}

// Program returns the path of the program with the agents. Its first argument names the agent: demo-agent, replay-agent, forgetful-agent,
// asking-agent, leaving-agent, delegating-agent or moded-agent; the further arguments are those of the agent. The first call in a process builds the program into
// build/bin of the module, which is quick where the program is up to date.
func Program(tb testing.TB) string {
	tb.Helper()
	path, err := program()
	if err != nil {
		tb.Fatalf("agenttest.Program: got error %v, want the built program", err)
	}
	return path
}

//nolint:gochecknoglobals // the program is built once in a process
var program = sync.OnceValues(func() (string, error) {
	return testkit.Build("agents-of-tests", "deskhand/backend/agenttest/program")
})

// Main runs the agent that args[0] names, with stdin and stdout of the process, and returns the exit code.
func Main(args []string) int {
	var err error
	switch name, words := args[0], args[1:]; name {
	case "demo-agent":
		err = demo(os.Stdin, os.Stdout)
	case "replay-agent":
		return replayAgent(words)
	case "forgetful-agent":
		err = forgetful(words, os.Stdin, os.Stdout)
	case "asking-agent":
		err = askingAgent(words, os.Stdin, os.Stdout)
	case "leaving-agent":
		err = leavingAgent(os.Stdin, os.Stdout)
	case "delegating-agent":
		err = delegatingAgent(os.Stdin, os.Stdout)
	case "moded-agent":
		err = modedAgent(words, os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("there is no agent %q", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// demo runs the demo agent with the additions of tests, or what the environment makes of the process instead.
func demo(in io.Reader, out io.Writer) error {
	switch {
	case os.Getenv(Mute) != "":
		_, err := io.Copy(io.Discard, in)
		return err
	case os.Getenv(grandchildVariable) != "":
		outlive()
		return nil
	case os.Getenv(signingVariable) != "":
		return signInHere(in, out)
	}
	return demoagent.Run(context.Background(), Demo(), in, out)
}
