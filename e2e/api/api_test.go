// Package api holds the rules of the runtime's HTTP API as transcripts: testdata/*.txtar, one rule a file.
//
// A transcript has a comment that says the rule, and three parts. "agent" is a script that the fake agent follows; see play. "http"
// is requests, separated by blank lines: "METHOD path", headers, a body. "want" is as many answers: the status, headers that must
// be there, the body. In a body "..." stands for anything. A request that starts with "&" is sent in the background; its answer is
// compared where it stands in the order, at the end. One that starts with "N" and a number reads as many events of its stream.
package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
)

const scriptVariable = "API_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(play(script))
	}
	goleak.VerifyTestMain(m)
}

// play is the fake agent. Each line of its script is one step:
//
//	< text     reads a line, which must hold text; the end of stdin ends the agent with code 0
//	> text     writes a line
//	raw "text" writes what the quoted text says, without a line end
//	flood N    writes N times x
//	! text     writes a line to stderr
//	echo       answers each request with its own line as the result, for ever
//	cwd        answers the next line's request 1 with the working directory
//	exit N     ends
//	hang       does nothing more, whatever happens to stdin
func play(script string) int {
	in := bufio.NewReader(os.Stdin)
	for step := range strings.Lines(script) {
		verb, arg, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		line := ""
		if verb == "<" || verb == "cwd" {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				return 0
			}
		}
		switch verb {
		case "<":
			if !strings.Contains(line, arg) {
				fmt.Fprintf(os.Stderr, "the script wants %s, and got %s", arg, line)
				return 99
			}
		case ">":
			fmt.Println(arg)
		case "raw":
			text, _ := strconv.Unquote(arg)
			fmt.Print(text)
		case "flood":
			n, _ := strconv.Atoi(arg)
			fmt.Print(strings.Repeat("x", n))
		case "!":
			fmt.Fprintln(os.Stderr, arg)
		case "cwd":
			dir, _ := os.Getwd()
			fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":%q}`+"\n", dir)
		case "echo":
			echo(in)
		case "exit":
			code, _ := strconv.Atoi(arg)
			return code
		case "hang":
			time.Sleep(time.Hour)
		}
	}
	_, _ = io.Copy(io.Discard, in)
	return 0
}

var idToken = regexp.MustCompile(`"id":([^,}]+)`)

func echo(in *bufio.Reader) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			os.Exit(0)
		}
		if id := idToken.FindStringSubmatch(line); id != nil && strings.Contains(line, `"method"`) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id[1], strings.TrimSuffix(line, "\n"))
		}
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			run(t, split(string(data)))
		})
	}
}

// split takes the parts of a txtar archive apart.
func split(archive string) map[string]string {
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(archive) {
		if marker, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(marker, " --\n") {
			name = strings.TrimSuffix(marker, " --\n")
			continue
		}
		parts[name] += line
	}
	return parts
}

// run sends the requests of a transcript and compares the answers.
func run(t *testing.T, parts map[string]string) {
	t.Helper()
	requests, wants := paragraphs(parts["http"]), paragraphs(parts["want"])
	if len(requests) != len(wants) {
		t.Fatalf("%d requests, %d answers", len(requests), len(wants))
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	base, client := serve(t, root, parts["agent"])
	later := map[int]chan string{}
	for n, request := range requests {
		request = strings.ReplaceAll(request, "$ROOT", root)
		if rest, background := strings.CutPrefix(request, "& "); background {
			answered, started := make(chan string, 1), make(chan struct{})
			later[n] = answered
			go func() { answered <- send(t, client, base, rest, started) }()
			<-started
			continue
		}
		compare(t, n, send(t, client, base, request, nil), wants[n], root)
	}
	for n, answer := range later {
		compare(t, n, <-answer, wants[n], root)
	}
}

// paragraphs are what blank lines separate.
func paragraphs(text string) []string {
	var all []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.Trim(p, "\n"); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// serve serves the API with the fake agents "fake" and "other", both of which play the script, and "missing".
func serve(t *testing.T, root, script string) (string, *http.Client) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{scriptVariable: "\n" + script, "GORACE": "atexit_sleep_ms=0"}
	data, _ := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "fake", "name": "Fake", "command": self, "env": env},
		{"id": "other", "name": "Other", "command": self, "env": env},
		{"id": "missing", "name": "Missing", "command": "/nonexistent/agent"},
	}})
	file := filepath.Join(t.TempDir(), "agents.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{LogBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{
		Version: "1", Runtime: set, Agents: agents.Open(agents.Config{Self: self, File: file}), RuntimeToken: "secret", Roots: []string{root},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api.Loopback(listener.Addr())}
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return "http://" + listener.Addr().String(), &http.Client{Transport: transport}
}

var header = regexp.MustCompile(`^[A-Z][A-Za-z-]*: `)

// send makes one request of a transcript and returns the answer in the form of "want". sent is closed when the request
// is on its way, and a stream connected.
func send(t *testing.T, client *http.Client, base, text string, sent chan struct{}) string {
	t.Helper()
	first, rest, _ := strings.Cut(text, "\n")
	events := 0
	if n, _ := fmt.Sscanf(first, "N%d ", &events); n == 1 {
		_, first, _ = strings.Cut(first, " ")
	}
	method, path, _ := strings.Cut(first, " ")
	var headers []string
	for header.MatchString(rest) {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		headers = append(headers, line)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(rest))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Authorization", "Bearer secret")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, strings.ReplaceAll(value, "$HOST", strings.TrimPrefix(base, "http://")))
		if name == "Host" {
			r.Host = value
		}
	}
	if sent != nil && events == 0 {
		close(sent)
	}
	res, err := client.Do(r)
	if sent != nil && events > 0 {
		close(sent)
	}
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	return answer(res, events)
}

// answer writes an answer down: status, headers, and the body or as many events of it.
func answer(res *http.Response, events int) string {
	var body strings.Builder
	if events == 0 {
		_, _ = io.Copy(&body, res.Body)
	}
	for in := bufio.NewReader(res.Body); events > 0; {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Sprintf("%s\nthe stream ended: %v", body.String(), err)
		}
		if line == "\n" {
			events--
			continue
		}
		body.WriteString(line)
	}
	var headers strings.Builder
	_ = res.Header.WriteSubset(&headers, map[string]bool{"Date": true})
	return fmt.Sprintf("%d\n%s\n%s", res.StatusCode, strings.ReplaceAll(headers.String(), "\r", ""), strings.TrimSuffix(body.String(), "\n"))
}

// compare compares an answer with the paragraph of it in "want".
func compare(t *testing.T, n int, got, want, root string) {
	t.Helper()
	status, rest, _ := strings.Cut(got, "\n")
	headers, body, _ := strings.Cut(rest, "\n\n")
	wantStatus, wantRest, _ := strings.Cut(strings.ReplaceAll(want, "$ROOT", root), "\n")
	ok := status == wantStatus
	for header.MatchString(wantRest) {
		var line string
		line, wantRest, _ = strings.Cut(wantRest, "\n")
		ok = ok && strings.Contains("\n"+headers+"\n", "\n"+line+"\n")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(wantRest), regexp.QuoteMeta("..."), "(?s:.*)")
	if !ok || !regexp.MustCompile("^"+pattern+"$").MatchString(body) {
		t.Errorf("request %d: got\n%s\n\nwant\n%s", n+1, got, want)
	}
}
