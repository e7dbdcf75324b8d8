package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/acp"
)

// asAgent makes the test binary the agent that its value names; asServer a process with a Set of its own.
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

// act does what a method asks for, and reports whether the method is one of those.
func act(out *bufio.Writer, word, arg string) bool {
	n, _ := strconv.Atoi(arg)
	switch word {
	case "mute": // a request that is never answered
	case "exit":
		fmt.Fprintln(os.Stderr, "leaving")
		os.Exit(n)
	case "print": // whatever follows, as it is
		io.WriteString(out, arg)
	case "flood":
		for i := range n {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"tick","params":{"n":%d,"pad":"%s"}}`+"\n", i+1, strings.Repeat("x", 140))
		}
	case "stderr":
		fmt.Fprint(os.Stderr, arg)
	case "stubborn": // deaf to EOF and SIGTERM
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"ready"}`)
		out.Flush()
		time.Sleep(time.Hour)
	case "spawn": // a grandchild; arg says what it escapes
		spawnSleeper(arg)
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"spawned"}`)
	default:
		return false
	}
	return true
}

// spawnSleeper starts a process that ignores SIGTERM and holds the agent's stdout open.
func spawnSleeper(how string) {
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=sleeper:"+how)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	switch how {
	case "group":
		cmd.SysProcAttr.Setpgid = true
	case "session", "daemon":
		cmd.SysProcAttr.Setsid = true
	case "unmarked":
		cmd.SysProcAttr.Setpgid = true
		cmd.Env = []string{roleVariable + "=sleeper:"}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(8)
	}
}

func fakeSleeper(how string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if how == "daemon" { // one generation more, whose parent is gone
		os.Setenv(roleVariable, "sleeper:")
		spawnSleeper("session")
		return
	}
	time.Sleep(time.Hour)
}

func fakeServer(string) {}
