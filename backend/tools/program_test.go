package tools_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"deskhand/backend/agenttest"
	"deskhand/backend/cli"
	"deskhand/backend/demoagent"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

// The test binary is the program, and with "spy" the demo agent, which keeps what its client says in a file.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-test."):
		os.Exit(runTests(m))
	case os.Args[1] == "spy":
		os.Exit(spy())
	}
	p := cli.Program{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: "test"}
	os.Exit(p.Run())
}

// runTests runs them, and wants nothing to be left that runs.
func runTests(m *testing.M) int {
	code := m.Run()
	if web, ok := http.DefaultTransport.(*http.Transport); ok {
		web.CloseIdleConnections()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func spy() int {
	kept, err := os.OpenFile(os.Getenv("SPY_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = demoagent.Run(context.Background(), agenttest.Demo(), io.TeeReader(os.Stdin, kept), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// rig is the real program, as a server, with two agents: one that takes addresses and one that takes programs.
type rig struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
	log  *bytes.Buffer // read after that
	dir  string        // of the data
	work string        // of the sessions
	home string
	base string // where browsers reach it
	api  *http.Client
}

func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// newRig prepares a data directory; settings may be nil.
func newRig(t *testing.T, settings map[string]any) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), work: t.TempDir(), home: t.TempDir(), log: &bytes.Buffer{}}
	agents := []any{}
	for id, takes := range map[string]string{"web": "", "programs": "stdio"} {
		agents = append(agents, map[string]any{"id": id, "name": id, "command": self(t), "args": []string{"spy"}, "env": map[string]string{
			"SPY_FILE": filepath.Join(r.dir, id+".jsonl"), "DESKHAND_DEMO_MCP": takes, "DESKHAND_DEMO_STATE": filepath.Join(r.dir, "demo"),
		}})
	}
	r.write(filepath.Join(r.dir, "config", "agents.json"), map[string]any{"agents": agents})
	if settings != nil {
		r.write(filepath.Join(r.dir, "config", "settings.json"), settings)
	}
	return r
}

func (r *rig) write(path string, value any) {
	r.t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) environ() []string {
	return append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_KEYRING=off", "DESKHAND_DATA_DIR="+r.dir,
		"DISPLAY=", "WAYLAND_DISPLAY=", "PATH=/none", "HOME="+r.home)
}

// serve starts the program; more is for its environment.
func serve(t *testing.T, settings map[string]any, more ...string) *rig {
	t.Helper()
	r := newRig(t, settings)
	r.cmd = exec.Command(self(t), "server", "--port", "0")
	r.cmd.Env, r.cmd.Stderr, r.done = append(r.environ(), more...), r.log, make(chan struct{})
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // the tests ask the state
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		<-r.done
	})
	u, parsed := url.Parse(strings.TrimSpace(line))
	if err != nil || parsed != nil {
		t.Fatalf("address of the server: got %q, errors %v and %v, want a URL", line, err, parsed)
	}
	r.base = "http://" + u.Host
	var owner struct{ Socket string }
	data, err := os.ReadFile(filepath.Join(r.dir, "owner.json"))
	if err == nil {
		err = json.Unmarshal(data, &owner)
	}
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", owner.Socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	r.api = &http.Client{Transport: transport}
	return r
}

// call calls the client API; in and out may be nil.
func (r *rig) call(method, path string, in, out any) {
	r.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://deskhand/client/"+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.api.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		r.t.Fatalf("%s %s: got status %d, body %s, error %v, want success", method, path, resp.StatusCode, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			r.t.Fatal(err)
		}
	}
}

// until asks again and again until the answer is yes.
func (r *rig) until(what string, yes func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(testkit.Limit); !yes(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("within 20s: got no %s, want it", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// open makes a session and waits until it is ready.
func (r *rig) open(agent string) string {
	r.t.Helper()
	var s session.Session
	r.call("POST", "sessions", session.New{Agent: agent, Cwd: r.work}, &s)
	r.ready(s.ID)
	return s.ID
}

func (r *rig) ready(id string) {
	r.t.Helper()
	r.until("a ready session", func() bool {
		var s session.Session
		r.call("GET", "sessions/"+id, nil, &s)
		return s.Phase == lifecycle.Ready
	})
}

// given is the server that an agent was told of last.
func (r *rig) given(agent string) given {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, agent+".jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, line := range slices.Backward(bytes.Split(data, []byte("\n"))) {
		var m struct{ Params struct{ McpServers []given } }
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if i := slices.IndexFunc(m.Params.McpServers, func(g given) bool { return g.Name == "deskhand" }); i >= 0 {
			return m.Params.McpServers[i]
		}
	}
	r.t.Fatalf("tools of the agent: got none in %s, want deskhand", data)
	return given{}
}

// given is an element of mcpServers.
type given struct {
	Type, Name, URL, Command string
	Args                     []string
	Headers, Env             []struct{ Name, Value string }
}

func (g given) bearer() string { return strings.TrimPrefix(g.Headers[0].Value, "Bearer ") }

func (g given) variable(name string) string {
	for _, v := range g.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

type withHeaders struct {
	given

	until context.Context // ends every request
}

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(w.until, cancel) //nolint:contextcheck // the end of either ends it
	r = r.Clone(ctx)
	for _, h := range w.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects the SDK's client as an agent would.
func (r *rig) tools(g given) *sdk.ClientSession {
	r.t.Helper()
	peer, _ := r.fleeting(g)
	return peer
}

// fleeting connects it so that it can be gone from one moment to the next.
func (r *rig) fleeting(g given) (peer *sdk.ClientSession, vanish func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	vanish = cancel
	var transport sdk.Transport
	if g.Type == "http" {
		transport = &sdk.StreamableClientTransport{Endpoint: g.URL, HTTPClient: &http.Client{Transport: withHeaders{g, ctx}}, MaxRetries: -1}
	} else {
		cmd := exec.CommandContext(ctx, g.Command, g.Args...)
		cmd.Env = os.Environ()
		for _, v := range g.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		transport = &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Second}
	}
	peer, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(r.t.Context(), transport, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = peer.Close() // the program may be gone
		cancel()
	})
	return peer, vanish
}

// outcome is what came of a call.
type outcome struct {
	OK, IsError                      bool
	Rule, File, Message, Status, Raw string
	Attachments                      []struct {
		Filename, MimeType string
		Bytes              int64
	} //nolint:lll // one record
	DownloadDir string
	Files, Done []struct {
		Path, SHA10, SourceURL, MimeType string
		Bytes                            int64
	}
	Answers [][]string
}

func invoke(ctx context.Context, t *testing.T, peer *sdk.ClientSession, tool string, input any) outcome {
	t.Helper()
	result, err := peer.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: input})
	if err != nil {
		t.Fatalf("call of %s: got error %v, want a result", tool, err)
	}
	return read(t, result)
}

func read(t *testing.T, result *sdk.CallToolResult) outcome {
	t.Helper()
	var out outcome
	text, ok := result.Content[0].(*sdk.TextContent)
	if !ok || len(result.Content) != 1 || json.Unmarshal([]byte(text.Text), &out) != nil {
		t.Fatalf("content: got %+v, want a single JSON text", result.Content)
	}
	out.IsError, out.Raw = result.IsError, text.Text
	return out
}

// shown are the names of the files that the transcript shows of an agent.
func (r *rig) shown(id string) []string {
	r.t.Helper()
	var page struct{ Items []transcript.Entry }
	r.call("GET", "sessions/"+id+"/entries?limit=1000", nil, &page)
	names := []string{}
	for _, e := range page.Items {
		if e.Kind == "attachment" {
			for _, a := range e.Attachments {
				names = append(names, a.Filename)
			}
		}
	}
	return names
}

// waiting is the request that waits in a session.
func (r *rig) waiting(id string) requests.Request {
	r.t.Helper()
	var found requests.Request
	r.until("a request", func() bool {
		var inbox struct{ Items []requests.Request }
		r.call("GET", "inbox", nil, &inbox)
		i := slices.IndexFunc(inbox.Items, func(q requests.Request) bool { return q.Session == id })
		if i >= 0 {
			found = inbox.Items[i]
		}
		return i >= 0
	})
	return found
}

func (r *rig) nothingWaits() {
	r.t.Helper()
	r.until("an empty inbox", func() bool {
		var inbox struct{ Items []requests.Request }
		r.call("GET", "inbox", nil, &inbox)
		return len(inbox.Items) == 0
	})
}

// file writes one into the session's directory.
func (r *rig) file(name string, data []byte) string {
	r.t.Helper()
	path := filepath.Join(r.work, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// sparse writes one that has a size and nothing else.
func (r *rig) sparse(name string, size int64) {
	r.t.Helper()
	if err := os.Truncate(r.file(name, nil), size); err != nil {
		r.t.Fatal(err)
	}
}

// each runs a test with an agent of each kind, on one program.
func each(t *testing.T, f func(r *rig, agent string)) {
	t.Helper()
	r := serve(t, nil)
	for _, agent := range []string{"web", "programs"} {
		t.Run(agent, func(t *testing.T) {
			own := *r
			own.t, own.work = t, t.TempDir()
			f(&own, agent)
		})
	}
}
