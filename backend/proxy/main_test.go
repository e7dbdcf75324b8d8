package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/acp"
)

// roleVariable selects the role of the test binary: an agent, or a process with its own Set.
const roleVariable = "PROXY_TEST_ROLE"

func TestMain(m *testing.M) {
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":")
	switch role {
	case "":
		goleak.VerifyTestMain(m)
	case "agent":
		fakeAgent()
	case "watchdog":
		if err := Watchdog(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "server":
		fakeServer(arg)
	case "sleeper":
		fakeSleeper(arg)
	}
	os.Exit(0)
}

// fakeAgent answers every request with its own line as the result, unless the method is one of those below.
func fakeAgent() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
		e, err := acp.Peek(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "not JSON:", err)
			os.Exit(9)
		}
		word, arg, _ := strings.Cut(e.Method(), ":")
		if act(out, word, arg) {
			out.Flush()
			continue
		}
		if e.Kind == acp.Request {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", e.ID, text)
		}
		out.Flush()
	}
}

// act executes a method, and reports whether the method is known.
func act(out *bufio.Writer, word, arg string) bool {
	n, _ := strconv.Atoi(arg)
	switch word {
	case "mute": // a request that is never answered
	case "exit":
		fmt.Fprintln(os.Stderr, "leaving")
		os.Exit(n)
	case "print": // prints arg unchanged
		io.WriteString(out, arg)
	case "flood":
		for i := range n {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"tick","params":{"n":%d,"pad":"%s"}}`+"\n", i+1, strings.Repeat("x", 140))
		}
	case "long": // a message of arg bytes
		head, tail := `{"method":"long","params":"`, `"}`
		io.WriteString(out, head)
		for left := n - len(head) - len(tail); left > 0; left -= 1 << 20 {
			io.WriteString(out, strings.Repeat("x", min(left, 1<<20)))
		}
		io.WriteString(out, tail+"\n")
	case "stderr":
		fmt.Fprint(os.Stderr, arg)
	case "stubborn": // ignores EOF and SIGTERM
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"ready"}`)
		out.Flush()
		time.Sleep(time.Hour)
	case "deaf": // stdin is closed, stdout is not
		os.Stdin.Close()
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"ready"}`)
		out.Flush()
		time.Sleep(time.Hour)
	case "spawn": // a descendant; arg says how the descendant escapes
		fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"spawned","params":{"pid":%d}}`+"\n", spawnSleeper(arg))
	case "run": // a descendant that ends, and is waited for
		fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"ran","params":{"cpu":%v}}`+"\n", runSleeper(arg).Seconds())
	case "wait": // until a spawned descendant ends, unless orphaned
		time.Sleep(time.Hour)
	default:
		return false
	}
	return true
}

// spawnSleeper starts a process that ignores signals and holds the agent's stdout open.
func spawnSleeper(how string) int {
	cmd := sleeperCommand(how)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(8)
	}
	return cmd.Process.Pid
}

// runSleeper runs a descendant to its end and returns the processor time that the system reports.
func runSleeper(how string) time.Duration {
	cmd := sleeperCommand(how)
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(8)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func sleeperCommand(how string) *exec.Cmd {
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=sleeper:"+how)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	escape(cmd, how)
	return cmd
}

func fakeSleeper(how string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	switch how {
	case "daemon": // another generation, whose parent is gone
		os.Setenv(roleVariable, "sleeper:")
		spawnSleeper("session")
		return
	case "burn":
		burn()
		return
	case "busy": // uses CPU and memory, and reports that on the agent's stdout
		held := occupy(64 << 20)
		fmt.Printf(`{"jsonrpc":"2.0","method":"busy","params":{"pid":%d,"cpu":%v}}`+"\n", os.Getpid(), burn().Seconds())
		time.Sleep(time.Hour)
		runtime.KeepAlive(held)
	}
	time.Sleep(time.Hour)
}

// burn works until some processor time is used, and returns the time.
func burn() time.Duration {
	for {
		for n := range 1 << 16 {
			_ = strconv.Itoa(n)
		}
		if used := ownCPU(); used > 300*time.Millisecond {
			return used
		}
	}
}

// occupy allocates size bytes and writes to every page.
func occupy(size int) []byte {
	held := make([]byte, size)
	for n := 0; n < size; n += 4 << 10 {
		held[n] = 1
	}
	return held
}

// fakeServer owns a Set with a watchdog and a ledger, starts one agent, and lives until killed. Its stdin goes to the agent, the agent's
// messages to its stdout.
func fakeServer(ledger string) {
	self, _ := os.Executable()
	os.Setenv(roleVariable, "watchdog")
	c := Config{Watchdog: []string{self}, Ledger: ledger}
	if os.Getenv("PROXY_TEST_NO_WATCHDOG") != "" {
		c.Watchdog = nil
	}
	s, err := Open(c)
	var i *Instance
	if err == nil {
		i, err = s.Start(context.Background(), "a", "fake", agentCommand())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(7)
	}
	fmt.Printf(`{"method":"agent","params":{"pid":%d}}`+"\n", i.Status().PID)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			if err := i.Send(context.Background(), in.Bytes()); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		s.Close()
		os.Exit(0)
	}()
	r := i.After(0)
	for {
		batch, err := r.Next(context.Background())
		if err != nil {
			return
		}
		for _, m := range batch {
			fmt.Println(string(m.Data))
		}
	}
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
