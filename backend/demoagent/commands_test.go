package demoagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agentio"
)

// inBubble runs a test with a session of a client that can do everything.
func inBubble(t *testing.T, test func(p *peer, session, cwd string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		session, cwd := p.session(allCapabilities)
		test(p, session, cwd)
	})
}

// selects answers a permission by an option's id.
func (p *peer) selects(option string) func(received) {
	return func(m received) {
		if m.Method != "session/request_permission" {
			p.t.Errorf("an unexpected request: %s", m.raw)
		}
		p.reply(m, `{"outcome":{"outcome":"selected","optionId":"`+option+`"}}`)
	}
}

func wantFile(t *testing.T, cwd, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(cwd, demoFile))
	if want == "" {
		if err == nil {
			t.Errorf("%s was written: %q", demoFile, got)
		}
		return
	}
	if err != nil || string(got) != want {
		t.Errorf("%s: %v\n%s\nwant\n%s", demoFile, err, got, want)
	}
}

func TestPlainRun(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		var asked permissionRequest
		p.onRequest = func(m received) {
			p.decode(m.Params, &asked)
			p.selects(allowOnce)(m)
		}
		began := time.Now()
		turn := p.prompt(session, "Tidy up here, please")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a plain run takes %v", took)
		}
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, "> Tidy up here, please")
		turn.wantSaid(t, "**Done.** The edit is written. You allowed it once. `deskhand-demo.md` has 6 lines now.")
		if turn.thought == "" || len(turn.messages) < 3 {
			t.Errorf("thought %q, %d messages", turn.thought, len(turn.messages))
		}
		wantFile(t, cwd, demoText(1))
		var told []string
		for _, id := range turn.order {
			call := turn.tools[id]
			told = append(told, fmt.Sprint(call["kind"], " ", call["name"], " ", call["status"]))
		}
		want := []string{"read read_file completed", "edit edit_file completed", "execute run_command completed"}
		if !slices.Equal(told, want) {
			t.Errorf("tool calls %v", told)
		}
		if asked.ToolCall.ToolCallID != turn.order[1] || asked.SessionID != session {
			t.Errorf("the permission is for %+v", asked.ToolCall)
		}
		for _, entry := range turn.plan {
			if entry.Status != "completed" {
				t.Errorf("plan %+v", turn.plan)
			}
		}
		kinds := []string{"session_info_update", "agent_thought_chunk", "plan", "agent_message_chunk", "tool_call", "usage_update"}
		for _, kind := range kinds {
			if !slices.Contains(turn.kinds, kind) {
				t.Errorf("no %s in %v", kind, turn.kinds)
			}
		}
		if turn.kinds[0] != "session_info_update" || turn.kinds[len(turn.kinds)-1] != "usage_update" {
			t.Errorf("title not first or usage not last: %v", turn.kinds)
		}
	})
}

// TestPlainRunAgain: the second edit shows the first edit's text, and the title is sent once.
func TestPlainRunAgain(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.onRequest = p.selects(allowOnce)
		p.prompt(session, "one")
		turn := p.prompt(session, "two")
		wantFile(t, cwd, demoText(2))
		if turn.kinds[0] == "session_info_update" {
			t.Error("a second title")
		}
		change := turn.tool(t, 1)["content"].([]any)[0].(map[string]any)
		if change["oldText"] != demoText(1) || change["newText"] != demoText(2) {
			t.Errorf("diff %v", change)
		}
	})
}

func TestPermission(t *testing.T) {
	tests := map[string]struct {
		answer  string
		said    string
		written bool
	}{
		"once":      {`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`, "The edit is written. You allowed it once.", true},
		"always":    {`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`, "You allowed it and every other edit of this session.", true},
		"reject":    {`{"outcome":{"outcome":"selected","optionId":"reject-once"}}`, "**Nothing was changed.** The edit was rejected.", false},
		"dismissed": {`{"outcome":{"outcome":"cancelled"}}`, "**Nothing was changed.** The request was dismissed.", false},
		"unknown":   {`{"outcome":{"outcome":"selected","optionId":"all"}}`, "The answer is none of the options that I offered.", false},
		"broken":    {`{"outcome":"yes"}`, "The answer to my question could not be read.", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(p *peer, session, cwd string) {
				t := p.t
				var asked permissionRequest
				p.onRequest = func(m received) {
					p.decode(m.Params, &asked)
					p.reply(m, test.answer)
				}
				turn := p.prompt(session, "permission")
				turn.wantStop(t, "end_turn")
				turn.wantSaid(t, test.said)
				want, status := "", "failed"
				if test.written {
					want, status = demoText(1), "completed"
				}
				wantFile(t, cwd, want)
				if got := turn.tool(t, 0)["status"]; got != status {
					t.Errorf("status %v", got)
				}
				var kinds []string
				for _, option := range asked.Options {
					kinds = append(kinds, option.Kind)
				}
				if !slices.Equal(kinds, []string{"allow_once", "allow_always", "reject_once"}) {
					t.Errorf("options %v", kinds)
				}
			})
		})
	}
}

// TestPermissionAlways: "always" holds for this session only, and outlives the process.
func TestPermissionAlways(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.onRequest = p.selects(allowAlways)
		p.prompt(session, "permission")
		p.onRequest = func(m received) { t.Errorf("asked again: %s", m.raw) }
		p.prompt(session, "permission").wantSaid(t, "You had allowed every edit of this session, so I did not ask.")
		wantFile(t, cwd, demoText(2))
		p.close()

		p = restart(t)
		p.mustCall("session/resume", map[string]any{"sessionId": session, "cwd": cwd})
		p.commands()
		p.prompt(session, "permission")
		wantFile(t, cwd, demoText(3))
		other := p.sessionIn(allCapabilities, cwd, `[]`)
		p.onRequest = p.selects(rejectOnce)
		p.prompt(other, "permission").wantSaid(t, "The edit was rejected.")
	})
}

func TestPermissionUnknownToTheClient(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.onRequest = func(m received) {
			p.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"what?"}}`)
		}
		p.prompt(session, "permission").wantSaid(t, "The client answered with error -32601: what?")
		wantFile(t, cwd, "")
	})
}

// TestEditLeavesAlone: a person's file of that name, a link out of the directory, and a file that changes while the person decides.
func TestEditLeavesAlone(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		path := filepath.Join(cwd, demoFile)
		write := func(contents string) {
			if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("mine\n")
		p.prompt(session, "permission").wantSaid(t, "**The edit failed.** deskhand-demo.md is not a file of the demo agent.")
		wantFile(t, cwd, "mine\n")

		write(demoText(1))
		p.onRequest = func(m received) {
			write(demoText(7))
			p.selects(allowOnce)(m)
		}
		p.prompt(session, "permission").wantSaid(t, "has changed since it was read")
		wantFile(t, cwd, demoText(7))

		outside := filepath.Join(t.TempDir(), "outside.md")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Skip("no symbolic links here")
		}
		p.prompt(session, "permission").wantSaid(t, "is not a small regular file")
		if err := errors.Join(os.Remove(path), os.Symlink("precious", filepath.Join(cwd, "."+demoFile+".new"))); err != nil {
			t.Fatal(err)
		}
		p.onRequest = p.selects(allowOnce)
		p.prompt(session, "permission").wantSaid(t, "You allowed it once.")
		wantFile(t, cwd, demoText(1))
		for _, file := range []string{outside, filepath.Join(cwd, "precious")} {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s was written through a link", file)
			}
		}
	})
}

func TestEditWithoutDirectory(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		if err := os.Remove(cwd); err != nil {
			t.Fatal(err)
		}
		turn := p.prompt(session, "anything")
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, "**The edit failed.**")
	})
}

func TestHelp(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		want := helpText(Additions().words())
		if got := p.prompt(session, "What can you do? HELP!").said; got != want {
			t.Errorf("said %s", got)
		}
		if got := p.prompt(session, "/help me").said; got != want {
			t.Errorf("said %s", got)
		}
		p.prompt(session, "/nonsense x").wantSaid(t, "There is no command `/nonsense` here.")
		for _, w := range Additions().words() {
			if w.name != wordHelp && !strings.Contains(want, "`"+w.name) {
				t.Errorf("help does not know %q", w.name)
			}
		}
	})
}

// TestOwnHelp: the help of the agent that people have is ten lines at most, and each of its words works.
func TestOwnHelp(t *testing.T) {
	help := strings.TrimSpace(helpText(ownWords()))
	if lines := strings.Count(help, "\n") + 1; lines > 10 {
		t.Errorf("helpText(ownWords()): got %d lines, want 10 at most\n%s", lines, help)
	}
	for _, w := range ownWords() {
		if w.name != wordHelp && !strings.Contains(help, "`"+w.name) {
			t.Errorf("helpText(ownWords()): got no %q, want every word", w.name)
		}
		for _, prompt := range []string{w.name, "/" + w.command()} {
			synctest.Test(t, func(t *testing.T) {
				t.Setenv(stateVariable, t.TempDir())
				p := runAgent(t, Config{})
				session, _ := p.session(allCapabilities)
				p.onRequest = func(m received) {
					switch m.Method {
					case "session/request_permission":
						p.selects(allowOnce)(m)
					case questionMethod:
						p.reply(m, `{"status":"answered","answers":[["option-a"]]}`)
					case "elicitation/create":
						p.reply(m, `{"action":"accept"}`)
					}
				}
				turn := p.prompt(session, prompt)
				turn.wantStop(t, "end_turn")
				if turn.said == "" || strings.Contains(turn.said, "There is no command") || strings.Contains(turn.said, "You wrote") {
					t.Errorf("prompt %q: got %q, want what the word shows", prompt, turn.said)
				}
			})
		}
	}
}

// TestOwnWordsAlone: the words of tests are none of the agent that people have.
func TestOwnWordsAlone(t *testing.T) {
	for _, w := range Additions().Words {
		raw, _ := json.Marshal(text(w.Name))
		if got := readInput(promptRequest{Prompt: []json.RawMessage{raw}}, Config{}.words()).steps; len(got) > 0 {
			t.Errorf("readInput(%q): got the word %q, want none", w.Name, got[0].name)
		}
	}
}

func TestEcho(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		prompt := `[{"type":"text","text":"echo <b>\u00fc ` + "```" + `"},{"type":"image","data":"AAAA","mimeType":"image/png"},` +
			`{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///crash.log","name":"crash"},` +
			`{"type":"resource","resource":{"uri":"file:///hang","text":"stubborn"}},{"type":"future","x":1.50}]`
		meta := `{"sandboxagent.dev":{"attachments":[{"path":"/w/a.py","mime":"text/x-python"}]},"big":12345678901234567890}`
		turn := p.turn(p.call("session/prompt", map[string]any{
			"sessionId": session, "prompt": json.RawMessage(prompt), "_meta": json.RawMessage(meta),
		}))
		turn.wantStop(t, "end_turn")
		body, found := strings.CutPrefix(turn.said, "````json\n")
		body, closed := strings.CutSuffix(body, "\n````")
		if !found || !closed {
			t.Fatalf("no fence around %s", turn.said)
		}
		var got, want bytes.Buffer
		if err := json.Compact(&got, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&want, []byte(`{"prompt":`+prompt+`,"_meta":`+meta+`}`)); err != nil {
			t.Fatal(err)
		}
		// The test's own encoder has escaped the brackets.
		if strings.ReplaceAll(strings.ReplaceAll(got.String(), `\u003c`, "<"), `\u003e`, ">") != want.String() {
			t.Errorf("echoed\n%s\nwant\n%s", got.String(), want.String())
		}
	})
}

func TestEchoOfMuch(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		long := "echo " + strings.Repeat("漢字 ", 100_000)
		turn := p.prompt(session, long)
		turn.wantSaid(t, strings.TrimSpace(long))
		if len(turn.updates) > 20 {
			t.Errorf("%d updates", len(turn.updates))
		}
	})
}

func TestThought(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "thought")
		if turn.thought != longThought {
			t.Errorf("thought %q", turn.thought)
		}
		turn.wantSaid(t, "I have thought about it.")
	})
}

func TestPlan(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "plan")
		var steps []string
		for _, raw := range turn.updates {
			var update planUpdate
			p.decode(raw, &update)
			if update.SessionUpdate != "plan" {
				continue
			}
			states := ""
			for _, entry := range update.Entries {
				states += entry.Status[:1]
			}
			steps = append(steps, states)
		}
		if want := []string{"ipppp", "cippp", "ccipp", "cccip", "cccci", "ccccc"}; !slices.Equal(steps, want) {
			t.Errorf("plans %v", steps)
		}
		turn.wantSaid(t, "The plan is done.")
	})
}

func TestMarkdown(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "markdown")
		if turn.said != sampleMarkdown {
			t.Error("the sample is changed on the way")
		}
		for _, hostile := range []string{"<script>", "onerror=", "<iframe", "javascript:", "https://tracker.invalid"} {
			turn.wantSaid(t, hostile)
		}
	})
}

func TestMedia(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		var kinds []string
		for _, raw := range p.prompt(session, "media").updates {
			var update struct{ Content block }
			p.decode(raw, &update)
			if update.Content.Type != "" && update.Content.Type != "text" {
				kinds = append(kinds, update.Content.Type)
			}
		}
		if !slices.Equal(kinds, []string{"image", "resource_link", "resource"}) {
			t.Errorf("blocks %v", kinds)
		}
	})
}

func TestDiff(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		call := p.prompt(session, "diff").tool(t, 0)
		changes := call["content"].([]any)
		if call["status"] != "completed" || len(changes) != 2 {
			t.Fatalf("tool call %v", call)
		}
		if _, has := changes[1].(map[string]any)["oldText"]; has {
			t.Error("the new file has an old text")
		}
		if entries, _ := os.ReadDir(cwd); len(entries) != 0 {
			t.Errorf("written: %v", entries)
		}
	})
}

func TestTerminal(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "terminal")
		call := turn.tool(t, 0)
		shown := call["content"].([]any)[0].(map[string]any)["content"].(map[string]any)["text"].(string)
		if !strings.HasPrefix(shown, "```console\n$ go test ./greeting/...\n=== RUN") || !strings.Contains(shown, "\x1b[32mPASS\x1b[0m") {
			t.Errorf("shown %q", shown)
		}
		if output := call["rawOutput"].(map[string]any); output["exitCode"] != 0.0 || call["status"] != "completed" {
			t.Errorf("tool call %v", call)
		}
		if len(turn.updates) < 8 {
			t.Errorf("the output did not stream: %d updates", len(turn.updates))
		}
	})
}

func TestQuestion(t *testing.T) {
	tests := map[string]string{
		`{"status":"answered","answers":[["option-a"]]}`:                              "You answered: option-a",
		`{"status":"answered","answers":[["option-a","option-b"],["anything else"]]}`: "You answered: option-a, option-b; anything else",
		`{"status":"rejected"}`: "You rejected the question.",
		`{"status":"odd"}`:      `The question came back with the unknown status "odd".`,
		`7`:                     "The answer to my question could not be read.",
	}
	for answer, said := range tests {
		t.Run(said, func(t *testing.T) {
			inBubble(t, func(p *peer, session, _ string) {
				t := p.t
				p.onRequest = func(m received) {
					var asked questionRequest
					p.decode(m.Params, &asked)
					want := [][2]string{{"option-a", "Option A"}, {"option-b", "Option B"}}
					if m.Method != questionMethod || asked.SessionID != session || asked.Prompt == "" || !reflect.DeepEqual(asked.Options, want) {
						t.Errorf("asked %s", m.raw)
					}
					if _, err := uuid.Parse(asked.QuestionID); err != nil {
						t.Error(err)
					}
					p.reply(m, answer)
				}
				turn := p.prompt(session, "ask me a question")
				turn.wantStop(t, "end_turn")
				turn.wantSaid(t, said)
			})
		})
	}
}

func TestForm(t *testing.T) {
	tests := map[string][2]string{
		`{"action":"accept","content":{"name":"x","port":1,"tests":true}}`: {"You sent the form:\n\n```json\n{\n  \"name\": \"x\",\n  \"port\": 1,\n  \"tests\": true\n}\n```", "completed"},
		`{"action":"accept"}`:  {"You sent the form:", "completed"},
		`{"action":"decline"}`: {"You declined the form, so I go on without it.", "completed"},
		`{"action":"cancel"}`:  {"You cancelled the form.", "failed"},
		`{"action":"odd"}`:     {`The form came back with the unknown action "odd".`, "failed"},
	}
	for answer, want := range tests {
		t.Run(answer, func(t *testing.T) {
			inBubble(t, func(p *peer, session, _ string) {
				t := p.t
				p.onRequest = func(m received) {
					if m.Method != "elicitation/create" || !bytes.Contains(m.raw, []byte(`"toolCallId":"call-1-1"`)) {
						t.Errorf("asked %s", m.raw)
					}
					p.reply(m, answer)
				}
				turn := p.prompt(session, "form")
				turn.wantStop(t, "end_turn")
				turn.wantSaid(t, want[0])
				if got := turn.tool(t, 0)["status"]; got != want[1] {
					t.Errorf("the tool call ends as %v", got)
				}
			})
		})
	}
}

func TestQuestions(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		p.onRequest = func(m received) {
			want := `"prompt":"Two questions","questions":[{"prompt":"Which toppings?",` +
				`"options":[["cheese","Cheese"],["olives","Olives"],["basil","Basil"]],"multiSelect":true},` +
				`{"prompt":"Which drink?","options":["Water","Tea"],"allowFreeText":true}]}`
			if !strings.Contains(string(m.Params), want) {
				t.Errorf("asked %s", m.Params)
			}
			p.reply(m, `{"status":"answered","answers":[["cheese","basil"],["Milk"]]}`)
		}
		p.prompt(session, "questions").wantSaid(t, "You answered: cheese, basil; Milk")
	})
}

func TestVisit(t *testing.T) {
	for word, address := range map[string]string{"visit": visitURL, "lookalike": "https://sign-in.d\u0435skhand.invalid/device"} {
		for answer, want := range map[string]string{
			`{"action":"accept"}`:  "All is done there.",
			`{"action":"decline"}`: "You declined, so I go on without it.",
			`{"action":"cancel"}`:  "You cancelled it.",
			`{"action":"odd"}`:     `The answer is the unknown action "odd".`,
			`7`:                    "The answer could not be read.",
		} {
			t.Run(word+" "+answer, func(t *testing.T) {
				inBubble(t, func(p *peer, session, _ string) {
					t := p.t
					var asked visitRequest
					p.onRequest = func(m received) {
						if m.Method == "elicitation/complete" {
							var done visitDone
							if p.decode(m.Params, &done); done.ElicitationID != asked.ElicitationID {
								t.Errorf("told %s", m.raw)
							}
							return
						}
						p.decode(m.Params, &asked)
						if m.Method != "elicitation/create" || asked.Mode != "url" || asked.URL != address || asked.ElicitationID == "" || asked.Message == "" {
							t.Errorf("asked %s", m.raw)
						}
						p.reply(m, answer)
					}
					p.prompt(session, word).wantSaid(t, want)
				})
			})
		}
	}
}

func TestHologram(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		p.onRequest = func(m received) {
			if !strings.Contains(string(m.Params), `{"type":"hologram","title":"View","depth":3}`) {
				t.Errorf("asked %s", m.Params)
			}
			p.reply(m, `{"action":"cancel"}`)
		}
		p.prompt(session, "hologram").wantSaid(t, "You cancelled the form.")
	})
}

// TestBareClient: the agent sends nothing that the client has not advertised.
func TestBareClient(t *testing.T) {
	for _, capabilities := range []string{`{}`, `{"elicitation":{"url":null},"session":{"notices":null}}`, `{"elicitation":7,"session":[]}`} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t)
			session, _ := p.session(capabilities)
			p.prompt(session, "form").wantSaid(t, "This client shows no forms")
			p.prompt(session, "visit").wantSaid(t, "This client opens no addresses")
			turn := p.prompt(session, "notice")
			turn.wantSaid(t, "This client takes no notices")
			if slices.Contains(turn.kinds, "notice") {
				t.Error("a notice")
			}
		})
	}
}

func TestNotice(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		var severities []string
		for _, raw := range p.prompt(session, "notice").updates {
			var update struct{ SessionUpdate, Severity string }
			p.decode(raw, &update)
			if update.SessionUpdate == "notice" {
				severities = append(severities, update.Severity)
			}
		}
		if !slices.Equal(severities, []string{"info", "warning", "error"}) {
			t.Errorf("notices %v", severities)
		}
	})
}

func TestSwitch(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		for _, want := range []string{modeCode, modePlan, modeAsk} {
			turn := p.prompt(session, "switch")
			turn.wantSaid(t, "The mode is now `"+want+"`.")
			if !slices.Contains(turn.kinds, "current_mode_update") || !slices.Contains(turn.kinds, "config_option_update") {
				t.Errorf("updates %v", turn.kinds)
			}
		}
	})
}

func TestUnknownRequests(t *testing.T) {
	for prompt, method := range map[string]string{
		"unknown request": "demo/unknown_request", "vendor request": "_demo/vendor_request", "/unknown-request": "demo/unknown_request",
	} {
		t.Run(prompt, func(t *testing.T) {
			inBubble(t, func(p *peer, session, _ string) {
				t := p.t
				p.onRequest = func(m received) {
					if m.Method != method {
						t.Errorf("asked %s", m.raw)
					}
					p.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"unknown"}}`)
				}
				p.prompt(session, prompt).wantSaid(t, "The client answered with error -32601: unknown")
				p.onRequest = func(m received) { p.reply(m, `{"a":1}`) }
				p.prompt(session, prompt).wantSaid(t, "The client answered with a result: `{\"a\":1}`")
			})
		})
	}
}

func TestStops(t *testing.T) {
	for prompt, stop := range map[string]string{"limit": "max_tokens", "refuse": "refusal", "plan and refuse": "refusal"} {
		t.Run(prompt, func(t *testing.T) {
			inBubble(t, func(p *peer, session, _ string) { p.prompt(session, prompt).wantStop(p.t, stop) })
		})
	}
}

func TestError(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "error")
		if turn.err == nil || turn.err.Code != -32603 || turn.err.Message != "the prompt asked for an error" {
			t.Errorf("error %v", turn.err)
		}
		p.prompt(session, "thought").wantStop(t, "end_turn")
	})
}

func TestSilent(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "silent")
		turn.wantStop(t, "end_turn")
		if len(turn.updates) != 0 {
			t.Errorf("updates %s", turn.updates)
		}
		if turn := p.prompt(session, "thought"); turn.kinds[0] != "session_info_update" {
			t.Errorf("the silent turn took the title: %v", turn.kinds)
		}
	})
}

func TestJunk(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		for _, line := range JunkLines(session) {
			p.exact[line] = true
		}
		turn := p.prompt(session, "junk")
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, "After the junk I go on as if nothing had happened.")
		if call := turn.tool(t, 0); call["status"] != "completed" {
			t.Errorf("tool call %v", call)
		}
	})
}

func TestHuge(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		// Compared as bytes, since parsing 20 MiB again and again is slow.
		whole := chunk{SessionUpdate: "agent_message_chunk", MessageID: "message-1-1", Content: text(HugeText())}
		line := agentio.Frame{Method: "session/update", Params: sessionNotification{SessionID: session, Update: whole}}.Encode()
		if len(line) < 20<<20 {
			t.Errorf("%d bytes", len(line))
		}
		p.exact[strings.TrimSuffix(string(line), "\n")] = true
		turn := p.prompt(session, "huge")
		turn.wantSaid(t, "That was one message of 20 MiB.")
	})
}

func TestBurst(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		began := time.Now()
		turn := p.prompt(session, "burst")
		numbers := strings.Fields(turn.messages["message-1-1"])
		if len(numbers) != 10_000 || numbers[0] != "1" || numbers[9_999] != "10000" || len(turn.updates) < 10_000 {
			t.Errorf("%d numbers in %d updates", len(numbers), len(turn.updates))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the burst paused for %v", took)
		}
	})
}

func TestSlow(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		began := time.Now()
		turn := p.prompt(session, "slow")
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, "tick 6000\n")
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("slow took %v", took)
		}
	})
}

func TestStream(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		began := time.Now()
		turn := p.prompt(session, "stream 1000/s 25s")
		turn.wantStop(t, "end_turn")
		if took := time.Since(began); took.Round(time.Second) != 25*time.Second {
			t.Errorf("the stream took %v", took)
		}
		chunks := 0
		for _, u := range turn.updates {
			if bytes.Contains(u, []byte(`"agent_message_chunk"`)) {
				chunks++
			}
		}
		if chunks != 25_000 || len(turn.messages) != 3 || len(turn.tools) != 2 {
			t.Errorf("%d chunks in %d messages, %d tool calls; want 25000, 3 and 2", chunks, len(turn.messages), len(turn.tools))
		}
		turn.wantSaid(t, "## Part 1\n\nThe reader takes")
	})
}

func TestWordsOfAPrompt(t *testing.T) {
	tests := map[string]string{
		"":                                  "",
		"Tidy up":                           "",
		"plans, errors and crashes":         "",
		"Plan it!":                          "plan",
		"first a DIFF, then a plan; a diff": "plan,diff",
		"unknown request":                   "unknown request",
		"unknown   request!":                "unknown request",
		"an unknown thing and a request":    "",
		"slow-crash":                        "slow,crash",
		"Why does my app crash?":            "",
		"Diff the slow error":               "diff,slow,error",
		"The plan has an error":             "plan",
		"unknown request, then error":       "unknown request,error",
		"look at this\ncrash":               "",
		"/plan diff":                        "plan",
		"/PLAN":                             "plan",
		"/home/me/notes.txt what is this":   "",
		"/":                                 "",
		"call demo/echo {\"error\":1}":      "call",
		"plan, then call hang/crash":        "plan,call",
		"recall call a/b":                   "call",
		"call":                              "call",
	}
	for prompt, want := range tests {
		var names []string
		raw, _ := json.Marshal(text(prompt))
		for _, w := range readInput(promptRequest{Prompt: []json.RawMessage{raw}}, Additions().words()).steps {
			names = append(names, w.name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%q: %s, want %s", prompt, got, want)
		}
	}
}

func TestSeveralWords(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.prompt(session, "refuse after a diff and a plan")
		turn.wantStop(t, "refusal")
		turn.wantSaid(t, "The plan is done.This is how an edit looks.")
	})
}

// TestPackageComment compares the package comment's table with the code's.
func TestPackageComment(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, w := range ownWords() {
		fmt.Fprintf(&table, "//\t%-10s  %s\n", w.name, w.does)
	}
	if !strings.Contains(string(source), "//\n"+table.String()+"//\n") {
		t.Errorf("the package comment should have\n%s", table.String())
	}
}
