package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

// TestMain refuses to run the tests where somebody takes this program for Deskhand: the tests would start themselves without an end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		fmt.Fprintln(os.Stderr, "this is the program of the tests; testkit.Deskhand gives Deskhand")
		os.Exit(97)
	}
	if err := agenttest.UseInCommands(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// program is a command of the real program in a process of its own.
type program struct {
	*exec.Cmd
	t      *testing.T
	pipe   io.Closer // the reading end of stdout
	stdout *bufio.Reader
	stderr *lockedBuffer
}

// lockedBuffer can be read while the process still writes.
type lockedBuffer struct {
	ch  chan struct{}
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.ch <- struct{}{}
	defer func() { <-b.ch }()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.ch <- struct{}{}
	defer func() { <-b.ch }()
	return b.buf.String()
}

func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return startWith(t, dir, "", args...)
}

// startWith is start with a file as standard input.
func startWith(t *testing.T, dir, input string, args ...string) *program {
	t.Helper()
	self := testkit.Deskhand(t)
	p := &program{Cmd: exec.CommandContext(t.Context(), self, args...), t: t, stderr: &lockedBuffer{ch: make(chan struct{}, 1)}}
	// A killed server would leave an agent that still writes into the test's directory during its removal.
	p.Cancel, p.WaitDelay = func() error { return p.Process.Signal(os.Interrupt) }, 5*time.Second
	p.Env = append([]string{"DESKHAND_LOGIN_SHELL=off"}, os.Environ()...) // a test's own variable wins
	p.Env = append(p.Env, "DESKHAND_CATALOGUE_URL=off")
	p.Env = append(p.Env, "DESKHAND_DATA_DIR="+dir, "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo"), "DISPLAY=", "WAYLAND_DISPLAY=", "PATH=/none")
	p.Stderr = p.stderr
	if input != "" {
		file, err := os.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		p.Stdin = file
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.pipe, p.stdout = out, bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Wait() })
	return p
}

// server starts `deskhand server` and returns the URL that the server prints.
func server(t *testing.T, dir string) (*program, string) {
	t.Helper()
	p := start(t, dir, "server", "--port", "0")
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("ReadString: want no error, got error %v\nstderr %s", err, p.stderr)
	}
	return p, strings.TrimSpace(line)
}

// end waits for the process, and returns its output and exit code.
func (p *program) end() (string, int) {
	p.t.Helper()
	out, _ := io.ReadAll(p.stdout)
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(out), p.ProcessState.ExitCode()
}

// run runs a command to its end.
func run(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, dir, args...)
	stdout, code = p.end()
	return stdout, p.stderr.String(), code
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

// says waits for words on stderr, which is another pipe than stdout and may lag behind.
func (p *program) says(words string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("no %q: %s", words, p.stderr)
		}
	}()
	waitFor(p.t, func() bool { return strings.Contains(p.stderr.String(), words) })
}

// caller calls the API of a server.
type caller struct {
	t     *testing.T
	http  *http.Client
	base  string
	token string
}

func onSocket(t *testing.T, dir string) *caller {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	var owner struct{ Socket string }
	if err := json.Unmarshal(data, &owner); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", owner.Socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: t, http: &http.Client{Transport: transport}, base: "http://deskhand"}
}

func (c *caller) do(method, path string, in any, header ...string) (int, []byte) {
	c.t.Helper()
	body, _ := json.Marshal(in)
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, out
}

func (c *caller) get(path string, out any) {
	c.t.Helper()
	status, data := c.do("GET", path, nil)
	if status != http.StatusOK {
		c.t.Fatalf("GET %s: got %d %s, want 200", path, status, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) post(path string, in, out any) {
	c.t.Helper()
	status, data := c.do("POST", path, in)
	if status >= 300 {
		c.t.Fatalf("POST %s: got %d %s, want less than 300", path, status, data)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(data, out); err != nil {
		c.t.Fatal(err)
	}
}

// watch follows the feed from its beginning until is matches an event, and returns every event up to then.
func (c *caller) watch(what string, is func(feed.Event) bool) []feed.Event {
	c.t.Helper()
	var hello struct{ Gen string }
	c.get("/client/hello", &hello)
	var all []feed.Event
	after := int64(0)
	for deadline := time.Now().Add(testkit.Limit); time.Now().Before(deadline); {
		var batch feed.Batch
		c.get("/client/events?wait=1&gen="+hello.Gen+"&after="+strconv.FormatInt(after, 10), &batch)
		after = batch.Seq
		for _, e := range batch.Events {
			all = append(all, e)
			if is(e) {
				return all
			}
		}
	}
	c.t.Fatalf("feed: got %d events, want %s among them", len(all), what)
	return nil
}

func decode[T any](e feed.Event) T {
	var v T
	_ = json.Unmarshal(e.Data, &v) // an event of another type decodes to a zero record, which no test expects
	return v
}

func isText(e feed.Event) bool {
	return e.Type == "entry.append" || e.Type == "entry.upsert" && decode[transcript.Entry](e).Kind == "agent"
}

// shownText is the agent's text as a surface shows the text after these events.
func shownText(events []feed.Event) string {
	texts := map[string]string{}
	var order []string
	for _, e := range events {
		switch e.Type {
		case "entry.upsert":
			entry := decode[transcript.Entry](e)
			if entry.Kind == "agent" {
				if _, known := texts[entry.ID]; !known {
					order = append(order, entry.ID)
				}
				texts[entry.ID] = entry.Text
			}
		case "entry.append":
			a := decode[transcript.Append](e)
			if text, agent := texts[a.ID]; agent && len(text) >= a.Offset {
				texts[a.ID] = text[:a.Offset] + a.Text
			}
		}
	}
	var all strings.Builder
	for _, id := range order {
		all.WriteString(texts[id])
	}
	return all.String()
}

func (c *caller) begin(dir, text string) session.Session {
	c.t.Helper()
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: dir}, &s)
	c.post("/client/sessions/"+s.ID+"/prompt", map[string]string{"message": text}, nil)
	return s
}

// processes lists the processes of /proc whose command line contains word.
func processes(t *testing.T, parent int, word string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc here")
	}
	var found []int
	for _, f := range files {
		cmdline, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(cmdline, []byte(word)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if fields[0] != "Z" && (parent == 0 || fields[1] == strconv.Itoa(parent)) {
			found = append(found, pid)
		}
	}
	return found
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && (runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil)
}

func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.NewTimer(testkit.Limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("process %d: got it alive, want it gone", pid)
		}
	}
}

func TestServerLetsBrowserInByLinkOnly(t *testing.T) {
	t.Parallel()
	_, link := server(t, t.TempDir())
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	code, ok := strings.CutPrefix(u.Fragment, "code=")
	if !ok {
		t.Fatalf("link: got %s, want a code", link)
	}
	c := &caller{t: t, http: http.DefaultClient, base: "http://" + u.Host}
	if status, _ := c.do("GET", "/client/hello", nil); status != http.StatusUnauthorized {
		t.Errorf("/client/hello without a token: got status %d, want 401", status)
	}
	if status, _ := c.do("POST", "/client/login", map[string]string{"code": "guess"}); status != http.StatusUnauthorized {
		t.Errorf("a guessed code: got status %d, want 401", status)
	}
	var granted struct{ Token string }
	c.post("/client/login", map[string]string{"code": code}, &granted)
	if status, _ := c.do("POST", "/client/login", map[string]string{"code": code}); status != http.StatusUnauthorized {
		t.Errorf("the code a second time: got status %d, want 401", status)
	}
	c.token = granted.Token
	if status, said := c.do("GET", "/client/hello", nil); status != http.StatusOK || !strings.Contains(string(said), `"url":"`+c.base+`"`) {
		t.Errorf("/client/hello with the token: got %d %s, want 200 and the URL %s", status, said, c.base)
	}
	if status, _ := c.do("GET", "/v1/health", nil); status != http.StatusUnauthorized {
		t.Errorf("/v1/health with the client's token: got status %d, want 401", status)
	}
	if status, _ := c.do("GET", "/client/hello", nil, "Host", "evil.example:80"); status != http.StatusMisdirectedRequest {
		t.Errorf("/client/hello of a foreign host: got status %d, want 421", status)
	}
	if status, _ := c.do("GET", "/client/hello", nil, "Origin", "http://evil.example"); status != http.StatusForbidden {
		t.Errorf("/client/hello of a foreign origin: got status %d, want 403", status)
	}
}

func TestServerRuntimeTokenIsItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, link := server(t, dir)
	u, _ := url.Parse(link)
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, http: http.DefaultClient, base: "http://" + u.Host, token: strings.TrimSpace(string(token))}
	if status, body := c.do("GET", "/v1/health", nil); status != http.StatusOK || string(body) != `{"status":"ok"}` {
		t.Errorf("/v1/health: got %d %s, want 200 and ok", status, body)
	}
	if status, _ := c.do("GET", "/client/hello", nil); status != http.StatusUnauthorized {
		t.Errorf("/client/hello with the runtime's token: got status %d, want 401", status)
	}
	status, body := c.do("POST", "/v1/acp/one?agent=mock", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`))
	if status != http.StatusOK || !bytes.Contains(body, []byte(`"protocolVersion":1`)) {
		t.Errorf("initialize: got %d %s, want 200 and protocol version 1", status, body)
	}
}

func TestPromptExitCodes(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	// codex reports a turn as cancelled after a rejected approval.
	const codex = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":null},"options":[{"optionId":"n","name":"No","kind":"reject_once"}]}}'
		read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'
		cat >/dev/null`
	file, _ := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "like-codex", "command": "/bin/sh", "args": []string{"-c", codex}}}})
	if err := os.WriteFile(filepath.Join(dir, "config", "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args         []string
		code         int
		stdout, help string
	}{
		{[]string{"markdown"}, 0, "|", ""},
		{[]string{"--approve", "once", "permission"}, 0, "", "allowed"},
		{[]string{"permission"}, 5, "", "turned down"},
		{[]string{"question"}, 5, "", "turned down"},
		{[]string{"--approve", "ask", "permission"}, 5, "", "turned down"}, // standard input is at its end
		{[]string{"--agent", "like-codex", "x"}, 5, "", "turned down"},
		{[]string{"refuse"}, 3, "", "refused"},
		{[]string{"error"}, 1, "", "failed"},
		{[]string{"crash"}, 1, "", "exit code 3"},
		{[]string{"limit"}, 1, "", "the token limit"},
		{[]string{"--agent", "nobody", "x"}, 2, "", `no agent "nobody"`},
		{[]string{"--dir", filepath.Join(work, "none"), "x"}, 2, "", "no such file"},
		{[]string{"  "}, 2, "", "nothing to say"},
		{[]string{"--approve", "always", "x"}, 2, "", "approve"},
		{[]string{}, 2, "", "expected"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			args := []string{"prompt", "--dir", work}
			if !slices.Contains(tc.args, "--agent") {
				args = append(args, "--agent", "mock")
			}
			stdout, stderr, code := run(t, dir, append(args, tc.args...)...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.help) {
				t.Errorf("exit %d, want %d\nstdout %s\nstderr %s", code, tc.code, stdout, stderr)
			}
		})
	}
}

func TestPromptAsksAnAgentOfYourOwnFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--dir", t.TempDir(), "markdown"); code != 7 || !strings.Contains(stderr, "deskhand agents install") || !strings.Contains(stderr, "--agent mock") {
		t.Errorf("with no other: exit %d, want 7 and what to do\n%s", code, stderr)
	}
	self := agenttest.Program(t)
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`{"agents":[{"id":"gone","command":"/none/gone"},{"id":"mine","name":"My own","command":%q,"args":["demo-agent"]}]}`, self)
	if err := os.WriteFile(filepath.Join(dir, "config", "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, dir, "prompt", "--dir", t.TempDir(), "markdown"); code != 0 || !strings.Contains(stderr, "asking My own") {
		t.Errorf("deskhand prompt with an agent of one's own: got exit %d, stderr %s; want 0, and that agent asked", code, stderr)
	}
}

func TestPromptGoesThroughTheRunningServer(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	_, _ = server(t, dir)
	stdout, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo from the terminal")
	if code != 0 || !strings.Contains(stdout, "from the terminal") {
		t.Fatalf("deskhand prompt: got exit %d\n%s\n%s\nwant 0 and the echo", code, stdout, stderr)
	}
	var page session.Page[session.Session]
	onSocket(t, dir).get("/client/sessions", &page)
	if len(page.Items) != 1 || page.Items[0].Cwd != work {
		t.Errorf("sessions of the server: got %+v, want one in %s", page.Items, work)
	}
	if stdout, _, code := run(t, dir, "link"); code != 0 || !strings.Contains(stdout, "/#code=") {
		t.Errorf("deskhand link: got exit %d, %s; want 0 and a code", code, stdout)
	}
}

func TestServerTellsBadInputByStatusAndCode(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	_, _ = server(t, dir)
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: work}, &s)
	c.watch("the agent to be ready", func(e feed.Event) bool { // a starting session can be cancelled
		return e.Type == "session.upsert" && decode[session.Session](e).Phase == lifecycle.Ready
	})
	mine := "/client/sessions/" + s.ID
	type object map[string]any
	for name, tc := range map[string]struct {
		method, path string
		in           any
		status       int
		code         string
	}{
		"no fields":         {"POST", "/client/sessions", object{}, 400, "request.invalid"},
		"unknown field":     {"POST", "/client/sessions", object{"agent": "mock", "cwd": work, "x": 1}, 400, "request.invalid"},
		"unknown agent":     {"POST", "/client/sessions", object{"agent": "nobody", "cwd": work}, 400, "agent.unknown"},
		"relative":          {"POST", "/client/sessions", object{"agent": "mock", "cwd": "x/y"}, 400, "directory.relative"},
		"no directory":      {"POST", "/client/sessions", object{"agent": "mock", "cwd": "/none/of/these"}, 400, "directory.missing"},
		"a zero byte":       {"POST", "/client/sessions", object{"agent": "mock", "cwd": "/a\x00b"}, 400, "directory.unreadable"},
		"a long path":       {"POST", "/client/sessions", object{"agent": "mock", "cwd": "/" + strings.Repeat("a", 4095)}, 400, "directory.unreadable"},
		"no session":        {"GET", "/client/sessions/nope", nil, 404, "not_found"},
		"no session's turn": {"POST", "/client/sessions/nope/prompt", object{"message": "x"}, 404, "not_found"},
		"empty prompt":      {"POST", mine + "/prompt", object{"message": " \n"}, 400, "prompt.empty"},
		"prompt of no text": {"POST", mine + "/prompt", object{"message": 7}, 400, "request.invalid"},
		"huge prompt":       {"POST", mine + "/prompt", object{"message": strings.Repeat("x", 17<<20)}, 413, "request.invalid"},
		"nothing to cancel": {"POST", mine + "/cancel", nil, 409, "turn.none"},
		"longest draft":     {"PATCH", mine, object{"draft": strings.Repeat("ü", 1<<20)}, 200, ""},
		"longer draft":      {"PATCH", mine, object{"draft": strings.Repeat("x", 1<<20+1)}, 400, "request.invalid"},
		"long title":        {"PATCH", mine, object{"title": strings.Repeat("x", 201)}, 400, "request.invalid"},
		"no setting":        {"POST", mine + "/config", object{"id": "x"}, 400, "request.invalid"},
		"after nothing":     {"GET", "/client/events?after=-1", nil, 400, "request.invalid"},
		"long wait":         {"GET", "/client/events?wait=26", nil, 400, "request.invalid"},
		"no entries":        {"GET", mine + "/entries?limit=0", nil, 400, "request.invalid"},
		"before all":        {"GET", mine + "/entries?before=-1", nil, 400, "request.invalid"},
		"no entry's text":   {"GET", mine + "/entries/nope/text", nil, 404, "not_found"},
		"no page":           {"GET", "/client/sessions?before=yesterday", nil, 400, "list.before"},
		"no request":        {"POST", "/client/requests/nope/answer", object{"optionId": "x"}, 404, "not_found"},
		"no window":         {"POST", "/client/activate", nil, 409, "window.none"},
	} {
		status, body := c.do(tc.method, tc.path, tc.in)
		var problem struct{ Code string }
		if err := json.Unmarshal(body, &problem); err != nil || status != tc.status || problem.Code != tc.code {
			t.Errorf("%s: %d %s, want %d %s: %.300s", name, status, problem.Code, tc.status, tc.code, body)
		}
	}
}

// TestServerTakesPositionByHeader: a reader may pass its position in headers, so that every call has the same address, and gets the same
// events as with a query.
func TestServerTakesPositionByHeader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _ = server(t, dir)
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: t.TempDir()}, &s)
	c.watch("the agent to be ready", func(e feed.Event) bool {
		return e.Type == "session.upsert" && decode[session.Session](e).Phase == lifecycle.Ready
	})
	var start, all, none feed.Batch
	c.get("/client/events", &start)
	c.get("/client/events?wait=0&after=0&gen="+start.Gen, &all)
	read := func(after int64, out *feed.Batch) {
		status, data := c.do("GET", "/client/events?wait=0", nil, "Deskhand-Gen", start.Gen, "Deskhand-After", strconv.FormatInt(after, 10))
		if err := json.Unmarshal(data, out); status != http.StatusOK || err != nil {
			t.Fatalf("Unmarshal: got status %d, data %s, error %v, want status http.StatusOK and no error", status, data, err)
		}
	}
	var same feed.Batch
	read(0, &same)
	if len(all.Events) == 0 || len(same.Events) < len(all.Events) || same.Reset || same.Events[0].Seq != all.Events[0].Seq {
		t.Errorf("events by headers: got %d, reset %v; want the %d of the query or more", len(same.Events), same.Reset, len(all.Events))
	}
	read(same.Seq, &none)
	if none.Reset || none.Seq < same.Seq || slices.ContainsFunc(none.Events, func(e feed.Event) bool { return e.Seq <= same.Seq }) {
		t.Errorf("got none %+v, want not none.Reset, none.Seq at least %v and not slices.ContainsFunc(none.Events, func(e feed.Event) bool { return e.Seq <= same.Seq })", none, same.Seq)
	}
	if status, data := c.do("GET", "/client/events", nil, "Deskhand-Gen", start.Gen, "Deskhand-After", "-1"); status != http.StatusBadRequest {
		t.Errorf(`do("GET", "/client/events", "Deskhand-Gen", "Deskhand-After", "-1"): got status %d, data %s, want status http.StatusBadRequest`, status, data)
	}
}

func TestServerTokenOfUserIsNotWritten(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery-staple"
	dir := t.TempDir()
	p := start(t, dir, "server", "--port", "0", "--token", token)
	if _, err := p.stdout.ReadString('\n'); err != nil {
		t.Fatalf("ReadString: want no error, got error %v\nstderr %s", err, p.stderr)
	}
	stdout, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", t.TempDir(), "echo "+token)
	if code != 0 || strings.Contains(stdout, token) || !strings.Contains(stdout, "[redacted]") {
		t.Errorf("deskhand prompt of the token: got exit %d\n%s\n%s\nwant 0 and it redacted", code, stdout, stderr)
	}
}

func TestServerRefusesATokenThatCanBeGuessed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for token, why := range map[string]string{"a": "1 characters", "fifteen-letters": "15 characters", "sixteen  letters": "a blank", "sechzehn-zeichën": "ASCII"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--token", token}, {"--token-file", file}} {
			_, stderr, code := run(t, t.TempDir(), append([]string{"server", "--port", "0"}, args...)...)
			if code != 2 || !strings.Contains(stderr, why) || strings.Contains(stderr, token+" ") && len(token) > 1 {
				t.Errorf("%s %q: exit code %d, want 2 and %q\n%s", args[0], token, code, why, stderr)
			}
		}
	}
	if _, stderr, code := run(t, t.TempDir(), "server", "--port", "0", "--token-file", filepath.Join(t.TempDir(), "none")); code != 2 || !strings.Contains(stderr, "none") {
		t.Errorf("a file that is none: exit code %d, want 2\n%s", code, stderr)
	}
}

// TestServerTokenThatNobodyElseSees: a token from a file or from the environment opens /v1, and does not show in the list of processes.
func TestServerTokenThatNobodyElseSees(t *testing.T) {
	const token = "sixteen--letters"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"file": {"server", "--port", "0", "--token-file", file}, "environment": {"server", "--port", "0"}} {
		if name == "environment" {
			t.Setenv("DESKHAND_TOKEN", token)
		}
		p := start(t, t.TempDir(), args...)
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("ReadString: want no error, got error %v\nstderr %s", err, p.stderr)
		}
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		c := &caller{t: t, http: http.DefaultClient, base: "http://" + u.Host, token: token}
		if status, body := c.do("GET", "/v1/health", nil); status != http.StatusOK {
			t.Errorf("%s: /v1/health answers %d %s, want 200", name, status, body)
		}
		if strings.Contains(strings.Join(p.Args, " "), token) {
			t.Errorf("%s: got arguments %q, want them without the token", name, p.Args)
		}
	}
	t.Setenv("DESKHAND_TOKEN", "a")
	if _, stderr, code := run(t, t.TempDir(), "server", "--port", "0"); code != 2 || !strings.Contains(stderr, "DESKHAND_TOKEN has 1 characters") {
		t.Errorf("server with DESKHAND_TOKEN=a: got exit code %d, want 2 and the reason\n%s", code, stderr)
	}
}

func TestCtrlCStopsTurn(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "prompt", "--agent", "mock", "--dir", t.TempDir(), "slow")
	if _, err := p.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, stderr %s, want no error", err, p.stderr)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, p.stderr)
	}
}

func TestSecondCtrlCLeavesAtOnce(t *testing.T) {
	t.Parallel()
	var took time.Duration
	for range 3 { // the cancel alone may take a busy machine eight seconds with an agent that ignores the cancel
		p := start(t, t.TempDir(), "prompt", "--agent", "mock", "--dir", t.TempDir(), "stubborn")
		if _, err := p.stdout.ReadByte(); err != nil {
			t.Fatalf("ReadByte: got error %v, stderr %s, want no error", err, p.stderr)
		}
		began := time.Now()
		for range 2 {
			if err := p.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for !strings.Contains(p.stderr.String(), "Stopping") {
				time.Sleep(5 * time.Millisecond)
			}
		}
		if _, code := p.end(); code != 4 {
			t.Errorf("exit %d, want 4\n%s", code, p.stderr)
		}
		if took = time.Since(began); took <= 6*time.Second {
			return
		}
	}
	t.Errorf("a second Ctrl-C: got the end after %s, want it within 6s", took)
}

func TestSecondServerSaysWhoHoldsTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, link := server(t, dir)
	second, url := server(t, dir)
	if strings.Contains(url, "#code=") {
		t.Errorf("second server: got %s, want no link to the app", url)
	}
	c := &caller{t: t, http: http.DefaultClient, base: url}
	if status, _ := c.do("GET", "/client/hello", nil); status == http.StatusOK {
		t.Error("the second server serves /client")
	}
	second.says("Only the API under /v1")
	text := second.stderr.String()
	for _, want := range []string{strconv.Itoa(first.Process.Pid), "server", strings.Split(link, "/#")[0]} {
		if !strings.Contains(text, want) {
			t.Errorf("second server: got %s, want %q told", text, want)
		}
	}
}

func TestServerStartsThatFailTellWhy(t *testing.T) {
	t.Parallel()
	_, link := server(t, t.TempDir())
	u, _ := url.Parse(link)
	if _, stderr, code := run(t, t.TempDir(), "server", "--port", u.Port()); code != 1 || !strings.Contains(stderr, "--port") {
		t.Errorf("deskhand server on a taken port: got exit %d, stderr %s; want 1 and --port named", code, stderr)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The directory cannot be created, not even with root's rights.
	if _, stderr, code := run(t, filepath.Join(blocked, "data"), "server", "--port", "0"); code != 1 || !strings.Contains(stderr, blocked) {
		t.Errorf("deskhand server in a directory that cannot be: got exit %d, stderr %s; want 1 and %s named", code, stderr, blocked)
	}
	if _, stderr, code := run(t, t.TempDir(), "server", "--host", "0.0.0.0", "--port", "0", "--no-token"); code != 1 || !strings.Contains(stderr, "token") {
		t.Errorf("deskhand server open to the network without a token: got exit %d, stderr %s; want 1 and the token named", code, stderr)
	}
	full := t.TempDir()
	if err := os.Mkdir(filepath.Join(full, "deskhand.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, full, "server", "--port", "0"); code != 1 || strings.Contains(stderr, "owner.json") {
		t.Errorf("deskhand server with a database that cannot be: got exit %d, stderr %s; want 1, nothing of owner.json", code, stderr)
	}
	if _, stderr, code := run(t, t.TempDir(), "link"); code != 1 || !strings.Contains(stderr, "no Deskhand runs on") {
		t.Errorf("deskhand link where nothing runs: got exit %d, stderr %s; want 1 and that told", code, stderr)
	}
}

func TestKillOfTheAgentIsTold(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	p, _ := server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "slow")
	c.watch("text", isText)
	agents := processes(t, p.Process.Pid, "demo-agent")
	if len(agents) != 1 {
		t.Fatalf("agents: got processes %v, want 1", agents)
	}
	killed := time.Now()
	agent, err := os.FindProcess(agents[0])
	if err == nil {
		err = agent.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	events := c.watch("exit", func(e feed.Event) bool {
		entry := decode[transcript.Entry](e)
		return e.Type == "entry.upsert" && entry.Divider != nil && entry.Divider.Code == "agent.exited"
	})
	last := decode[transcript.Entry](events[len(events)-1])
	if last.Divider.Exit.Signal != "SIGKILL" {
		t.Errorf(`got last.Divider.Exit %+v, want last.Divider.Exit.Signal "SIGKILL"`, last.Divider.Exit)
	}
	t.Logf("stored %v after the kill", last.At.Sub(killed))
	c.post("/client/sessions/"+s.ID+"/restart", nil, nil)
	c.watch("ready again", func(e feed.Event) bool {
		now := decode[session.Session](e)
		return e.Type == "session.upsert" && now.Phase == lifecycle.Ready && now.Generation == 2
	})
}

func TestKillOfTheProgramLosesNothingThatWasShown(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	p, _ := server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "slow")
	n := 0
	shown := shownText(c.watch("some text", func(e feed.Event) bool {
		if isText(e) {
			n++
		}
		return n > 20
	}))
	agents := processes(t, p.Process.Pid, "demo-agent")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = p.end()
	for _, pid := range agents {
		gone(t, pid)
	}
	if len(agents) != 1 || len(shown) < 20 {
		t.Fatalf("before the kill: got agents %v, shown %q; want 1 agent and 20 bytes or more", agents, shown)
	}

	_, _ = server(t, dir)
	var tr session.Transcript
	onSocket(t, dir).get("/client/sessions/"+s.ID+"/entries", &tr)
	var stored strings.Builder
	for _, e := range tr.Items {
		if e.Kind == "agent" {
			stored.WriteString(e.Text)
		}
	}
	if !strings.HasPrefix(stored.String(), shown) {
		t.Errorf("stored after the kill: got %q, want it to begin with all that was shown: %q", stored.String(), shown)
	}
	if turn := tr.Turns[0]; turn.State != "done" || turn.StopReason != "interrupted" {
		t.Errorf(`got turn %+v, want turn.State "done" and turn.StopReason "interrupted"`, turn)
	}
	if last := tr.Items[len(tr.Items)-1]; last.Divider == nil || last.Divider.Code != "app.interrupted" {
		t.Errorf(`got last %+v, want last.Divider not nil and last.Divider.Code "app.interrupted"`, last)
	}
	if text, stderr, code := run(t, dir, "sessions", "show", s.ID); code != 0 || !strings.Contains(text, "\n---\n\n*Deskhand was interrupted here*\n") {
		t.Errorf("deskhand sessions show: got exit %d %s\n%s\nwant 0 and the interruption", code, stderr, text)
	}
}

func TestPromptTellsEndOfServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _ := server(t, dir)
	command := start(t, dir, "prompt", "--agent", "mock", "--dir", t.TempDir(), "slow")
	if _, err := command.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, command.stderr %s, want no error", err, command.stderr)
	}
	agents := processes(t, p.Process.Pid, "demo-agent")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, code := command.end()
	for _, pid := range agents { // the agents write to the directory until their end
		gone(t, pid)
	}
	if text := command.stderr.String(); code != 1 || !strings.Contains(text, "has ended") || strings.Contains(text, "http://") {
		t.Errorf("deskhand prompt whose server ended: got exit %d, stderr %s; want 1, and that it has ended, without an address", code, text)
	}
}

func TestSignalEndsTheServerAndItsAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _ := server(t, dir)
	c := onSocket(t, dir)
	c.begin(t.TempDir(), "stubborn")
	c.watch("text", isText)
	agents := processes(t, p.Process.Pid, "demo-agent")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 {
		t.Errorf("deskhand server after SIGTERM: got exit %d\n%s\nwant 0", code, p.stderr)
	}
	for _, pid := range agents {
		gone(t, pid)
	}
	if _, err := os.Stat(filepath.Join(dir, "owner.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("owner.json after the end: got %v, want it gone", err)
	}
}

func TestAppIsServedWithoutDisplay(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "open")
	line, err := p.stdout.ReadString('\n')
	if err != nil || !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/#code=`).MatchString(line) {
		t.Fatalf("ReadString: want no error and regexp.MustCompile(`^http://127\\.0\\.0\\.1:\\d+/#code=`).MatchString(line), got line %q\nerror %v\nstderr %s", line, err, p.stderr)
	}
	p.says("no display")
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 {
		t.Errorf("deskhand after SIGINT: got exit %d, want 0", code)
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	if out, _, code := run(t, t.TempDir(), "version"); code != 0 || !strings.HasPrefix(out, "deskhand test\n") {
		t.Errorf("deskhand version: got exit code %d, stdout %q, want exit code 0 and stdout beginning with \"deskhand test\\n\"", code, out)
	}
	if out, _, code := run(t, t.TempDir(), "environment"); code != 0 || !strings.Contains("\x00"+out, "\x00PATH=") || !strings.HasSuffix(out, "\x00") {
		t.Errorf("deskhand environment: got exit code %d, stdout %q, want exit code 0, \"\\x00\"+out with \"\\x00PATH=\" and stdout ending in \"\\x00\"", code, out)
	}
	out, _, code := run(t, t.TempDir(), "--help")
	if code != 0 || !strings.Contains(out, "prompt") || strings.Contains(out, "watchdog") {
		t.Errorf(`deskhand --help: got exit code %d, stdout %s, want exit code 0, stdout with "prompt" and stdout without "watchdog"`, code, out)
	}
	fmt.Fprint(io.Discard, out)
}
