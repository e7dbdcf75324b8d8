package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/agentio"
)

func TestInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for _, asked := range []int{1, 0, 2, 65535} {
			e := p.mustCall("initialize", map[string]any{"protocolVersion": asked, "clientCapabilities": map[string]any{}})
			want := `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,` +
				`"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},` +
				`"sessionCapabilities":{"list":{},"resume":{},"close":{},"delete":{},"fork":{}}},` +
				`"agentInfo":{"name":"deskhand-demo","title":"Deskhand demo agent","version":"1.0.0"},"authMethods":[],"_meta":{"steering":{"supported":true}}}`
			if string(e.result) != want {
				t.Errorf("initialize: %s", e.result)
			}
		}
	})
}

// TestBadLines: an invalid line is answered with an error and the right id.
func TestBadLines(t *testing.T) {
	tests := map[string]struct {
		id   string
		code int64
	}{
		`nonsense`: {"null", -32700},
		`{"jsonrpc":"2.0","id":1,"method":"initialize"`:      {"null", -32700},
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}": {"null", -32700},
		`[]`: {"null", -32600},
		`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`: {"null", -32600},
		`"text"`:                        {"null", -32600},
		`7`:                             {"null", -32600},
		`null`:                          {"null", -32600},
		`{}`:                            {"null", -32600},
		`{"jsonrpc":"2.0","id":5}`:      {"5", -32600},
		`{"jsonrpc":"2.0","result":{}}`: {"null", -32600},
		`{"jsonrpc":"1.0","id":"a","method":"initialize"}`:    {`"a"`, -32600},
		`{"jsonrpc":"2.0","id":{},"method":"initialize"}`:     {"null", -32600},
		`{"jsonrpc":"2.0","id":1.5,"method":"initialize"}`:    {"null", -32600},
		`{"jsonrpc":"2.0","id":true,"method":"initialize"}`:   {"null", -32600},
		`{"jsonrpc":"2.0","id":1,"method":7}`:                 {"null", -32600},
		`{"jsonrpc":"2.0","id":"x","method":"authenticate"}`:  {`"x"`, -32601},
		`{"jsonrpc":"2.0","id":null,"method":"_vendor/x"}`:    {"null", -32601},
		`{"jsonrpc":"2.0","id":-9,"method":"session/cancel"}`: {"-9", -32601},
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for line, want := range tests {
			p.write(line + "\r") // a CRLF end is no part of the line
			m := p.next()
			var got agentio.Error
			p.decode(m.Error, &got)
			if string(m.ID) != want.id || got.Code != want.code {
				t.Errorf("%s: answered %s", line, m.raw)
			}
		}
	})
}

func TestIgnoredLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for _, line := range []string{
			``, `   `, `{"jsonrpc":"2.0","method":"_vendor/notification"}`, `{"jsonrpc":"2.0","method":"session/cancel"}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"none"}}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`,
			`{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":7}`,
		} {
			p.write(line)
		}
		p.mustCall("initialize", map[string]any{"protocolVersion": 1})
	})
}

func TestLineTooLong(t *testing.T) {
	p := start(t)
	go func() {
		pad := strings.Repeat("x", 1<<20)
		for range agentio.MaxLine/len(pad) + 1 {
			if _, err := io.WriteString(p.in, pad); err != nil {
				return
			}
		}
		_, _ = io.WriteString(p.in, "\n")
	}()
	if m := p.next(); string(m.ID) != "null" || !strings.Contains(string(m.Error), "-32600") {
		t.Errorf("answered %s", m.raw)
	}
	p.mustCall("initialize", map[string]any{"protocolVersion": 1})
}

func TestInvalidParams(t *testing.T) {
	tests := []struct {
		method, params string
		code           int64
	}{
		{"initialize", `null`, -32602},
		{"initialize", `{}`, -32602},
		{"initialize", `{"protocolVersion":"1"}`, -32602},
		{"session/new", `[]`, -32602},
		{"session/new", `{"mcpServers":[]}`, -32602},
		{"session/new", `{"cwd":"here","mcpServers":[]}`, -32602},
		{"session/new", `{"cwd":"/"}`, -32602},
		{"session/new", `{"cwd":"/","mcpServers":[{"command":"x"}]}`, -32602},
		{"session/new", `{"cwd":"/","mcpServers":[{"name":"x"}]}`, -32602},
		{"session/new", `{"cwd":"/","mcpServers":[{"name":"x","type":"stdio","command":"x"}]}`, -32602},
		{"session/new", `{"cwd":"/","mcpServers":[{"name":"x","type":"http"}]}`, -32602},
		{"session/new", `{"cwd":"/","mcpServers":[{"name":"x","type":"sse"}]}`, -32602},
		{"session/prompt", `{}`, -32602},
		{"session/prompt", `{"sessionId":"none","prompt":[]}`, -32602},
		{"session/prompt", `{"sessionId":"none","prompt":"text"}`, -32602},
		{"session/prompt", `{"sessionId":"none","prompt":[{"type":"text","text":"x"}]}`, -32002},
		{"session/load", `{"sessionId":"../../etc/passwd","cwd":"/","mcpServers":[]}`, -32002},
		{"session/load", `{"sessionId":"0199a5b0-0000-7000-8000-000000000000","cwd":"/","mcpServers":[]}`, -32002},
		{"session/load", `{"sessionId":"0199A5B0-0000-7000-8000-000000000000","cwd":"/","mcpServers":[]}`, -32002},
		{"session/load", `{"sessionId":"x","cwd":"/"}`, -32602},
		{"session/resume", `{"sessionId":"x","cwd":"/"}`, -32002},
		{"session/resume", `{"sessionId":"x"}`, -32602},
		{"session/close", `{"sessionId":"x"}`, -32002},
		{"session/list", `{"cursor":"%%%"}`, -32602},
		{"session/list", `{"cursor":7}`, -32602},
		{"session/set_mode", `{"sessionId":"x","modeId":"ask"}`, -32002},
		{"session/set_config_option", `{"sessionId":"x","configId":"mode","value":"ask"}`, -32002},
		{"session/set_config_option", `7`, -32602},
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for _, test := range tests {
			e := p.call(test.method, json.RawMessage(test.params))
			if e.err == nil || e.err.Code != test.code {
				t.Errorf("call(%s): got test.params %s, result %s, err %v, want err not nil and e.err.Code %v", test.method, test.params, e.result, e.err, test.code)
			}
		}
	})
}

func TestSecondPrompt(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		first := p.request("session/prompt", promptParams(session, "plan"))
		second := p.until(p.request("session/prompt", promptParams(session, "thought")))
		if second.err == nil || second.err.Code != -32600 || second.err.Message != "invalid request: a prompt is running in this session" {
			t.Errorf("the second prompt: %v", second.err)
		}
		p.turn(p.until(first)).wantSaid(t, "The plan is done.")
		p.prompt(session, "thought").wantStop(t, "end_turn") // the next prompt may follow the answer at once
	})
}

// TestPromptsInARow: prompts sent without waiting are either refused or run after the first, and their updates never mix.
func TestPromptsInARow(t *testing.T) {
	p := start(t)
	session, _ := p.session(`{}`)
	for range 50 {
		first := p.request("session/prompt", promptParams(session, "silent"))
		second := p.request("session/prompt", promptParams(session, "silent"))
		for range 2 {
			m := p.next()
			refused := strings.Contains(string(m.Error), "-32600") && string(m.ID) == second
			if m.Result == nil && !refused || string(m.ID) != first && string(m.ID) != second {
				t.Fatalf("answered %s", m.raw)
			}
		}
	}
}

// TestCancel: every word ends with the stop reason cancelled as soon as the turn is cancelled, wherever it is.
func TestCancel(t *testing.T) {
	prompts := []string{"anything", "slow", "burst", "crash", "error", "refuse"}
	for _, w := range Additions().words() {
		if !w.fault && w.name != "call" && w.name != "mcp" && w.name != "echo" && w.name != "switch" && w.name != "notice" {
			prompts = append(prompts, w.name)
		}
	}
	for _, prompt := range prompts {
		t.Run(prompt, func(t *testing.T) {
			inBubble(t, func(p *peer, session, _ string) {
				t := p.t
				id := p.request("session/prompt", promptParams(session, prompt))
				p.next() // the title shows that the turn runs
				p.next()
				began := time.Now()
				p.notify("session/cancel", map[string]any{"sessionId": session})
				p.onRequest = func(received) {}
				p.turn(p.until(id)).wantStop(t, "cancelled")
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("the cancel took %v", took)
				}
				p.onRequest = p.selects(rejectOnce)
				p.prompt(session, "thought").wantStop(t, "end_turn")
			})
		})
	}
}

// TestCancelWhileAsking: a cancel withdraws the agent's pending request, and a late answer changes nothing.
func TestCancelWhileAsking(t *testing.T) {
	for _, prompt := range []string{"anything", "permission", "question", "form", "visit", "unknown request"} {
		for _, how := range []string{"session/cancel", "$/cancel_request"} {
			t.Run(prompt+" "+how, func(t *testing.T) {
				inBubble(t, func(p *peer, session, cwd string) {
					t := p.t
					id := p.request("session/prompt", promptParams(session, prompt))
					asked := p.next()
					for asked.Method == "session/update" {
						asked = p.next()
					}
					if how == "session/cancel" {
						p.notify(how, map[string]any{"sessionId": session})
					} else {
						p.notify(how, map[string]any{"requestId": json.RawMessage(id)})
					}
					withdrawn := p.next()
					if withdrawn.Method != "$/cancel_request" || string(withdrawn.Params) != `{"requestId":`+string(asked.ID)+`}` {
						t.Errorf("after the cancel came %s", withdrawn.raw)
					}
					e := p.until(id)
					p.turn(e).wantStop(t, "cancelled")
					if len(e.updates) != 0 {
						t.Errorf("updates after the cancel: %s", e.updates)
					}
					p.reply(asked, `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`)
					wantFile(t, cwd, "")
					p.prompt(session, "thought").wantStop(t, "end_turn")
				})
			})
		}
	}
}

// TestHang: hang ignores a cancel, and ends with its session or with the client.
func TestHang(t *testing.T) {
	hanging := func(p *peer, session string) string {
		id := p.request("session/prompt", promptParams(session, "hang"))
		time.Sleep(time.Second) // of the bubble: every update is sent by then
		for len(p.lines) > 0 {
			p.next()
		}
		p.notify("session/cancel", map[string]any{"sessionId": session})
		time.Sleep(time.Hour)
		if len(p.lines) != 0 {
			t.Errorf("the agent went on: %s", p.next().raw)
		}
		if e := p.call("session/list", nil); e.err != nil {
			t.Errorf("the rest of the agent hangs too: %v", e.err)
		}
		return id
	}
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		id := hanging(p, session)
		closing := p.request("session/close", map[string]any{"sessionId": session})
		p.turn(p.until(id)).wantStop(t, "cancelled")
		if e := p.until(closing); e.err != nil {
			t.Errorf("close: %v", e.err)
		}
	})
	inBubble(t, func(p *peer, session, _ string) {
		hanging(p, session)
		p.close()
	})
}

func TestCloseSession(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		id := p.request("session/prompt", promptParams(session, "slow"))
		p.next()
		closing := p.request("session/close", map[string]any{"sessionId": session})
		p.turn(p.until(id)).wantStop(t, "cancelled")
		if e := p.until(closing); e.err != nil {
			t.Errorf("close: %v", e.err)
		}
		if e := p.call("session/prompt", promptParams(session, "plan")); e.err == nil || e.err.Code != -32002 {
			t.Errorf("a prompt to a closed session: %v", e.err)
		}
		p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}})
		p.commands()
		p.mustCall("session/close", map[string]any{"sessionId": session})
	})
}

// TestEndOfInput: the end of input, in mid-stream or before any message, is a normal end.
func TestEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { start(t).close() })
	inBubble(t, func(p *peer, session, _ string) {
		p.request("session/prompt", promptParams(session, "slow"))
		p.next()
		p.close()
	})
	inBubble(t, func(p *peer, session, _ string) {
		p.request("session/prompt", promptParams(session, "question"))
		p.next()
		p.close()
	})
}

// TestEndOfInputWithinALine: a last line without a line end is still read.
func TestEndOfInputWithinALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv(stateVariable, t.TempDir())
		var out strings.Builder
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		if err := Run(t.Context(), Config{}, in, &out); err != nil || !strings.Contains(out.String(), `"protocolVersion":1`) {
			t.Errorf("got error %v, out %s, want no error and out with \"\\\"protocolVersion\\\":1\"", err, out.String())
		}
	})
}

// TestContextEnds: Run returns when its context ends, even if nobody writes or reads.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv(stateVariable, t.TempDir())
		in, write := io.Pipe()
		read, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Run(ctx, Config{}, in, out) }()
		if _, err := io.WriteString(write, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the answer waits to be read
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		read.Close() // ends the write, as the end of a process does
	})
}

type brokenPipe struct{ err error }

func (b brokenPipe) Read([]byte) (int, error)  { return 0, b.err }
func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }

func TestBrokenPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := brokenPipe{errors.New("broken")}
		if err := Run(t.Context(), Config{}, broken, io.Discard); !errors.Is(err, broken.err) {
			t.Errorf("a broken input: %v", err)
		}
		in, write := io.Pipe()
		go func() { _, _ = io.WriteString(write, "nonsense\n") }()
		if err := Run(t.Context(), Config{}, in, broken); !errors.Is(err, broken.err) {
			t.Errorf("a broken output: %v", err)
		}
	})
}

// TestStateCannotBeWritten: the agent works without a directory for histories.
func TestStateCannotBeWritten(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		t.Setenv(stateVariable, file)
		p := restart(t)
		session, _ := p.session(`{}`)
		p.prompt(session, "thought").wantStop(t, "end_turn")
		if e := p.call("session/list", nil); e.err == nil || e.err.Code != -32603 {
			t.Errorf("list: %v", e.err)
		}
	})
}

// quiet keeps the agent's stderr out of the test's stderr.
func quiet(t *testing.T) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = null
	t.Cleanup(func() {
		os.Stderr = stderr
		null.Close()
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":null}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-1}}`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := agentio.Parse(line)
		if err != nil && !json.Valid(m.ID) {
			t.Errorf("an error without an id to answer to")
		}
		if err == nil && m.Method == nil && m.ID == nil {
			t.Errorf("accepted %q", line)
		}
	})
}

func FuzzReadInput(f *testing.F) {
	for _, prompt := range []string{"plan", "/call a/b {}", "call a/b{\"x\":1}", "İcall x", "call\n{}"} {
		f.Add(prompt)
	}
	f.Fuzz(func(_ *testing.T, prompt string) {
		raw, _ := json.Marshal(text(prompt))
		in := readInput(promptRequest{Prompt: []json.RawMessage{raw, []byte("7")}}, Additions().words())
		title(in.text)
		pieces(in.text)
	})
}
