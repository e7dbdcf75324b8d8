// Command bench measures Deskhand's runtime as its users meet it: three processes, which are a client (this process), the server and an
// agent. The server is the program itself, started as anybody starts it. The same rounds measure floors, so that a disturbance of the
// machine disturbs all: the same agent over a bare pipe, and the smallest relay that net/http allows (floor.go), with the agent and
// without. The existing server of this API is measured too when it is installed; that server runs our agent instead of the launcher of its
// own `mock`. Servers take turns at being first.
//
// Round trips are measured twice: with the cores as the machine leaves them, and with cores kept awake when permitted (as root, on Linux).
// Each of a call's four changes of process wakes a sleeping core, whose cost depends on the machine and is the same for all servers; with
// cores kept awake, the rest is the servers' own cost.
//
// Every figure is the median of the rounds, with the least and the greatest. The client has one goroutine for each connection and
// net/http's parser: http.Client, with three goroutines, costs as much as the measured servers.
//
// A run fails when the server under test does: when the server loses a message, or answers wrongly. People judge whether the server is
// slow.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
)

// roleVariable makes this program one of the processes that it starts.
const roleVariable = "DESKHAND_BENCH_ROLE"

func main() {
	var err error
	switch os.Getenv(roleVariable) {
	case "agent":
		err = runAgent(os.Stdin, os.Stdout)
	case "floor":
		err = runFloor(os.Stdin, os.Stdout)
	default:
		err = run(os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options of a run.
type options struct {
	program, peer, json        string
	only                       *regexp.Regexp
	times, messages, instances int
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.program, "program", filepath.Join("build", "bin", "deskhand"), "the program under test")
	flags.StringVar(&o.peer, "peer", findPeer(), "the existing server, sandbox-agent")
	flags.StringVar(&o.json, "json", filepath.Join("build", "bin", "bench.json"), "where the figures go")
	flags.IntVar(&o.times, "rounds", 5, "how often everything is measured")
	flags.IntVar(&o.messages, "messages", 600_000, "length of a stream")
	flags.IntVar(&o.instances, "instances", 200, "greatest number of idle instances; 0 leaves them out")
	only := flags.String("only", ".", "a regular expression: measure what fits it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}

// findPeer is where the SDK's suite installs the existing server.
func findPeer() string {
	system, cpu := runtime.GOOS, runtime.GOARCH
	if cpu == "amd64" {
		cpu = "x64"
	}
	return filepath.Join("build", "bench", "peer", "node_modules", "@sandbox-agent", "cli-"+system+"-"+cpu, "bin", "sandbox-agent")
}

func run(args []string, out, progress io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "deskhand-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, report: newReport()}
	defer b.stop()
	if err := b.rounds(ctx, progress); err != nil {
		return err
	}
	if err := b.memory(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	rows := metrics(o.instances)
	b.report.table(out, rows)
	return b.report.write(o.json, o, rows)
}
