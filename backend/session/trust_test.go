package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// mcpServer is an MCP server with one tool, whose description is the server's arguments.
func mcpServer(args []string) {
	if err := saying(strings.Join(args, " ")+os.Getenv("FIXTURE_WORD")+os.Getenv("FIXTURE_SECRET")).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func saying(text string) *sdk.Server {
	type nothing struct{}
	s := sdk.NewServer(&sdk.Implementation{Name: "saying", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "said", Description: "started with " + text},
		func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
	return s
}

// mcpFile writes mcp.json as another program would.
func (d *desk) mcpFile(text string) {
	d.t.Helper()
	folder := filepath.Join(d.work, ".sandbox-agent", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// saysEntry returns an entry of a server that says a word.
func saysEntry(t testing.TB, word string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, _ := json.Marshal([]string{self, "mcp-server", word})
	return fmt.Sprintf(`{"type":"local","command":%s,"env":{"FIXTURE_WORD":" and hidden-value-1"}}`, command)
}

func (d *desk) ready(id string) {
	d.t.Helper()
	d.until("readiness", func() bool { return d.get(id).Phase == lifecycle.Ready })
}

// tools has the agent list its tools, and returns the agent's text of that turn.
func (d *desk) tools(id string) string {
	d.t.Helper()
	turn := d.prompt(id, "mcp")
	t := d.idle(id)
	t.Items = slices.DeleteFunc(t.Items, func(e transcript.Entry) bool { return e.Turn != turn.ID })
	return textOf(t, "agent")
}

func notices(t session.Transcript) string {
	var b strings.Builder
	for _, e := range t.Items {
		if e.Kind == "notice" {
			b.WriteString(e.Notice.Title + ": " + e.Notice.Description + "\n")
		}
	}
	return b.String()
}

func (d *desk) sent(id string) string {
	d.t.Helper()
	var b strings.Builder
	for dir, data := range d.journal(id) {
		if dir == "out" {
			b.Write(data)
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestTrustIsAskedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"one":` + saysEntry(t, "one") + `,"off":{"type":"local","command":"x","enabled":false}}`)
	s := d.create()
	turn := d.prompt(s.ID, "mcp")
	r := d.request(s.ID)
	if r.Kind != "trust" || r.Detail != d.work || len(r.Executables) != 1 || len(r.Options) != 3 {
		t.Fatalf("request: got %+v, want trust of %s for one executable, with 3 options", r, d.work)
	}
	e := r.Executables[0]
	if e.Kind != "mcp" || e.Name != "one" || e.Approved || e.Before != "" || len(e.Hash) != 64 || !strings.Contains(e.Detail, "mcp-server one") ||
		!strings.Contains(e.Detail, "FIXTURE_WORD") || strings.Contains(e.Detail, "hidden-value") {
		t.Errorf("executable: got %+v, want the MCP server one, not approved, without the hidden value", e)
	}
	if now := d.get(s.ID); now.Phase != lifecycle.Waiting || now.Waiting != 1 || now.Turn == nil || now.Turn.ID != turn.ID || now.Turn.State != "requires_action" {
		t.Errorf("session: got %+v, want it waiting for 1 in turn %s", now, turn.ID)
	}
	if sent := d.sent(s.ID); sent != "" {
		t.Errorf("an agent was sent something: %s", sent)
	}
	if run := d.set.List(); len(run) > 0 {
		t.Errorf("something runs: %+v", run)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "yes"}, "window"), "answer.unknown_option")
	d.answer(r, requests.Answer{OptionID: "approve"})
	if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, "one/said") || !strings.Contains(text, "started with one and hidden-value-1") {
		t.Errorf("agent's tools: got %q, want one/said with its value", text)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "without"}, "cli"), "request.resolved")
	if list, err := d.Launch().Executables(t.Context(), d.work); err != nil || len(list) != 2 || list[0].Approved || !list[1].Approved {
		t.Errorf("Executables(%s): got %+v, %v; want 2, the second approved", d.work, list, err)
	}
	if sent := d.sent(s.ID); strings.Contains(sent, "hidden-value") || !strings.Contains(sent, "FIXTURE_WORD") {
		t.Errorf("the journal has the secret: %s", sent)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID) // no person is asked again
	if text := d.tools(s.ID); !strings.Contains(text, "started with one") {
		t.Errorf("after a restart: %s", text)
	}
	d.sameAsRebuilt(s.ID)
	if err := d.Launch().Revoke(t.Context(), d.work, e.Hash); err != nil {
		t.Fatal(err)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if again := d.request(s.ID); again.Executables[0].Hash != e.Hash {
		t.Errorf("request after a change: got %+v, want hash %s again", again, e.Hash)
	}
}

func TestTrustOnceAndWithout(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"one":` + saysEntry(t, "one") + `}`)
	s := d.create()
	d.answer(d.request(s.ID), requests.Answer{OptionID: "once"})
	if text := d.tools(s.ID); !strings.Contains(text, "started with one") {
		t.Errorf("once: %s", text)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	r := d.request(s.ID)
	d.answer(r, requests.Answer{OptionID: "without"})
	d.ready(s.ID)
	if text := d.tools(s.ID); !strings.Contains(text, "no MCP servers") {
		t.Errorf("without: %s", text)
	}
	tr := d.transcript(s.ID)
	if text := notices(tr); !strings.Contains(text, "Started without what was not approved: mcp one") {
		t.Errorf("notices: got %q, want the server that was left out", text)
	}
	if i := slices.IndexFunc(tr.Requests, func(q requests.Request) bool { return q.ID == r.ID }); i < 0 || tr.Requests[i].Status != "rejected" {
		t.Errorf("requests: got %+v, want %s rejected", tr.Requests, r.ID)
	}
	if list, err := d.Launch().Executables(t.Context(), d.work); err != nil || list[0].Approved {
		t.Errorf("Executables(%s): got %+v, %v; want it not approved", d.work, list, err)
	}
	d.sameAsRebuilt(s.ID)
}

func TestTrustCoversOnlyContentThatWasShown(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"srv":` + saysEntry(t, "one") + `}`)
	s := d.create()
	r := d.request(s.ID)
	d.mcpFile(`{"srv":` + saysEntry(t, "two") + `}`) // while a person reads the first request
	d.answer(r, requests.Answer{OptionID: "approve"})
	if text := d.tools(s.ID); !strings.Contains(text, "started with one") {
		t.Errorf("another than the approved one was started: %s", text)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	again := d.request(s.ID)
	if e := again.Executables[0]; e.Hash == r.Executables[0].Hash || e.Before != r.Executables[0].Detail || e.Before == e.Detail {
		t.Errorf("changed executable: got %+v, want another hash and the detail of before: %s", e, r.Executables[0].Detail)
	}
	refused(t, d.Launch().Approve(t.Context(), d.work, []string{r.Executables[0].Hash}), "trust.changed")
	if err := d.Launch().Approve(t.Context(), d.work, []string{again.Executables[0].Hash}); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID) // the approval in the other session is enough
	if text := d.tools(s.ID); !strings.Contains(text, "started with two") {
		t.Errorf("agent's tools: got %q, want the server started with two", text)
	}
}

func TestTrustAnswerServesAllSessionsOfDirectory(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"srv":` + saysEntry(t, "one") + `}`)
	first, second := d.create(), d.create()
	r := d.request(first.ID)
	d.request(second.ID)
	d.mcpFile(`{"srv":` + saysEntry(t, "two") + `}`)
	third := d.create() // the third session is shown another request
	d.request(third.ID)
	d.answer(r, requests.Answer{OptionID: "approve"})
	d.ready(first.ID)
	d.ready(second.ID)
	if got := d.transcript(second.ID).Requests[0]; got.Status != "answered" || got.AnsweredBy != "window" {
		t.Errorf("request of the second session: got %+v, want it answered by window", got)
	}
	if now := d.get(third.ID); now.Phase != lifecycle.Waiting {
		t.Errorf("session with other content: got %+v, want it waiting", now)
	}
	d.sameAsRebuilt(second.ID)
}

// A server of all projects comes with the agents of every directory, and one answer serves the sessions that wait in any of them.
func TestTrustAnswerServesAllProjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	folder := filepath.Join(dir, "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), []byte(`{"srv":`+saysEntry(t, "everywhere")+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first := d.create()
	d.work = t.TempDir()
	second := d.create()
	for _, s := range []session.Session{first, second} {
		d.prompt(s.ID, "mcp")
	}
	r := d.request(first.ID)
	if len(r.Executables) != 1 || r.Executables[0].Scope != "all" || d.request(second.ID).Executables[0].Hash != r.Executables[0].Hash {
		t.Errorf("request: got %+v, want the server of all projects, in both sessions", r)
	}
	d.answer(r, requests.Answer{OptionID: "approve"})
	for _, s := range []session.Session{first, second} {
		if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, "started with everywhere and hidden-value-1") {
			t.Errorf("the tools in %s: got %q, want the server's", s.Cwd, text)
		}
		if sent := d.sent(s.ID); strings.Contains(sent, "hidden-value") {
			t.Errorf("the journal has the secret: %s", sent)
		}
	}
}

func TestCancelWithdrawsTrustRequest(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"srv":` + saysEntry(t, "one") + `}`)
	s := d.create()
	turn := d.prompt(s.ID, "mcp")
	r := d.request(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(s.ID)
	if last := lastTurn(tr); last.ID != turn.ID || last.StopReason != "cancelled" || tr.Requests[0].Status != "cancelled" {
		t.Errorf("after Cancel: got turn %+v, requests %+v; want turn %s and its request cancelled", last, tr.Requests, turn.ID)
	}
	if now := d.get(s.ID); now.Phase != lifecycle.Closed || now.Exit != nil || now.Waiting != 0 {
		t.Errorf("session after Cancel: got %+v, want it closed, without an exit, waiting for nothing", now)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "approve"}, "window"), "request.resolved")
	if list, err := d.Launch().Executables(t.Context(), d.work); err != nil || list[0].Approved {
		t.Errorf("Executables(%s): got %+v, %v; want it not approved", d.work, list, err)
	}
	if sent := d.sent(s.ID); sent != "" {
		t.Errorf("sent to the agent: got %q, want nothing", sent)
	}
	d.prompt(s.ID, "mcp")
	if again := d.request(s.ID); again.ID == r.ID {
		t.Errorf("next request: got %+v, want another than %s", again, r.ID)
	}
	d.sameAsRebuilt(s.ID)
}

func TestTrustRequestExpiresWithProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.mcpFile(`{"srv":` + saysEntry(t, "one") + `}`)
	s := d.create()
	r := d.request(s.ID)
	d.close()
	d = open(t, dir)
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "approve"}, "window"), "request.resolved")
	if tr := d.transcript(s.ID); tr.Requests[0].Status != "expired" {
		t.Errorf("requests after reopening: got %+v, want the first expired", tr.Requests)
	}
	d.prompt(s.ID, "mcp")
	again := d.request(s.ID)
	d.answer(again, requests.Answer{OptionID: "approve"})
	if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, "started with one") {
		t.Errorf("agent's tools: got %q, want the server started with one", text)
	}
	d.close()
	d = open(t, dir) // an approval survives a restart
	if text := d.tools(s.ID); !strings.Contains(text, "started with one") {
		t.Errorf("agent's tools after reopening: got %q, want the server started with one", text)
	}
}

func TestMCPServersThatAgentCannotTakeAreTold(t *testing.T) {
	t.Setenv("DESKHAND_TEST_TOKEN", "token-of-the-test")
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume")
	d := open(t, dir)
	var asked string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return saying("web") }, &sdk.StreamableHTTPOptions{Stateless: true}).ServeHTTP(w, r)
	}))
	defer web.Close()
	d.mcpFile(`{
		"web": {"type":"remote","url":"` + web.URL + `?key=in-the-query","bearerTokenEnvVar":"DESKHAND_TEST_TOKEN"},
		"unset": {"type":"remote","url":"` + web.URL + `","bearerTokenEnvVar":"DESKHAND_TEST_NONE"},
		"gone": {"type":"local","command":"no-such-program-at-all"}
	}`)
	s := d.create()
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	if text := d.tools(s.ID); !strings.Contains(text, "web/said") || strings.Contains(text, "unset") {
		t.Errorf("agent's tools: got %q, want web/said, and unset left out", text)
	}
	if asked != "Bearer token-of-the-test" {
		t.Errorf("the server was asked with %q", asked)
	}
	text := notices(d.transcript(s.ID))
	for _, want := range []string{
		`"unset" was not given to Demo agent: the environment variable DESKHAND_TEST_NONE is not set`, `"gone" was not given to Demo agent: its program no-such-program-at-all was not found`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said: %s", want, text)
		}
	}
	if sent := d.sent(s.ID); strings.Contains(sent, "token-of-the-test") || strings.Contains(sent, "in-the-query") || !strings.Contains(sent, `"Authorization"`) {
		t.Errorf("the journal: %s", sent)
	}

	other, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work}) // the agent has no mcpCapabilities
	if err != nil {
		t.Fatal(err)
	}
	d.ready(other.ID)
	if text := notices(d.transcript(other.ID)); !strings.Contains(text, `"web" was not given to forgetful: the agent takes no MCP servers over http`) {
		t.Errorf("notices: got %q, want that forgetful takes no servers over http", text)
	}
	if sent := d.sent(other.ID); !strings.Contains(sent, `"mcpServers":[]`) {
		t.Errorf("sent to forgetful: got %s, want no MCP servers", sent)
	}
}

func TestMCPServersFitSchema(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.mcpFile(`{"srv":` + saysEntry(t, "one") + `,"web":{"type":"http","url":"http://127.0.0.1:1/","headers":{"A":"b"}},"old":{"type":"sse","url":"http://127.0.0.1:1/"}}`)
	s := d.create()
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.ready(s.ID)
	definition, seen := acpSchema(t), 0
	for dir, data := range d.journal(s.ID) {
		var m wire
		if dir != "out" || json.Unmarshal(data, &m) != nil || m.Method != "session/new" {
			continue
		}
		seen++
		if err := definition("session/new", "Request").Validate(m.Params); err != nil {
			t.Errorf("session/new against the schema: got %v, want it valid: %s", err, data)
		}
		servers := m.Params.(map[string]any)["mcpServers"].([]any)
		if len(servers) != 3 {
			t.Fatalf("session/new: got %d servers, want 3: %s", len(servers), data)
		}
		for _, s := range servers { // a known agent drops a stdio server that has a type
			if kind, typed := s.(map[string]any)["type"]; typed == (s.(map[string]any)["name"] == "srv") {
				t.Errorf("%v: type %v", s, kind)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d session/new", seen)
	}
}
