package api

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const scriptVariable = "API_TEST_SCRIPT"

// play is the fake agent. Each line of its script is one step:
//
//	< text      reads a line, which must hold text; the end of stdin ends the agent with code 0
//	is text     reads a line, which must be text
//	> text      writes a line
//	raw "text"  writes what the quoted text says, without a line end
//	! text      writes a line to stderr
//	say N       writes the messages {"n":1} to {"n":N}
//	tick N      does so, one every millisecond
//	sum         answers the next line's request 1 with its SHA-256
//	big N       answers the next line's request 1 with a line of N bytes
//	echo        answers each request with its own line as the result, for ever
//	cwd         answers the next line's request 1 with the working directory
//	exit N      ends
//	die         is killed by a signal
//	hang        does nothing more, whatever happens to stdin
//	deaf        no longer has a stdin, and then as hang
func play(script string) int {
	in := bufio.NewReader(os.Stdin)
	for step := range strings.Lines(script) {
		verb, arg, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		line := ""
		if slices.Contains([]string{"<", "is", "cwd", "sum", "big"}, verb) {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				return 0
			}
		}
		if verb == "<" && !strings.Contains(line, arg) || verb == "is" && line != arg+"\n" {
			fmt.Fprintf(os.Stderr, "the script wants %s, and got %s", arg, line)
			return 99
		}
		if code, ended := act(in, line, verb, arg); ended {
			return code
		}
	}
	_, _ = io.Copy(io.Discard, in)
	return 0
}

// act does what a step says, and reports whether it was the last.
func act(in *bufio.Reader, line, verb, arg string) (code int, ended bool) {
	number, _ := strconv.Atoi(arg)
	switch verb {
	case ">":
		fmt.Println(arg)
	case "raw":
		text, _ := strconv.Unquote(arg)
		fmt.Print(text)
	case "!":
		fmt.Fprintln(os.Stderr, arg)
	case "cwd":
		dir, _ := os.Getwd()
		fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":%q}`+"\n", dir)
	case "say", "tick":
		for n := range number {
			if fmt.Printf(`{"n":%d}`+"\n", n+1); verb == "tick" {
				time.Sleep(time.Millisecond)
			}
		}
	case "sum":
		fmt.Printf(`{"id":1,"result":"%x"}`+"\n", sha256.Sum256([]byte(line)))
	case "big":
		_, _ = os.Stdout.Write(append(bigAnswer(number), '\n'))
	case "echo":
		echo(in)
		return 0, true
	case "exit":
		return number, true
	case "die":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(time.Hour)
	case "deaf":
		_ = os.Stdin.Close()
		fmt.Println(`{"method":"deaf"}`)
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	}
	return 0, false
}

// bigAnswer is an answer to request 1 of so many bytes, in which no part is like another: escapes, UTF-8, white space and long numbers.
func bigAnswer(size int) []byte {
	msg := []byte(`{"id":1, "result": [`)
	for n := 0; len(msg) < size-200; n++ {
		msg = fmt.Appendf(msg, `"%x \u%04x é\n",  1%d%d.%d0e-%d ,`, sha256.Sum256([]byte{byte(n), byte(n >> 8), byte(n >> 16)}), n%0xd800, n, 1<<53, n, n%400)
	}
	msg = append(msg, '"')
	msg = append(msg, strings.Repeat("x", size-len(msg)-len(`"]}`))...)
	return append(msg, `"]}`...)
}

var idToken = regexp.MustCompile(`"id":([^,}]+)`)

func echo(in *bufio.Reader) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if id := idToken.FindStringSubmatch(line); id != nil && strings.Contains(line, `"method"`) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id[1], strings.TrimSuffix(line, "\n"))
		}
	}
}
