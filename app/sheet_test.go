package app

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(t *testing.T, text string) *request {
	t.Helper()
	r := new(request)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func textOf(s sheet) string {
	var out strings.Builder
	for _, l := range s.text {
		out.WriteString(l.text)
		if !l.goes {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func labels(s sheet) (list []string) {
	for _, b := range s.buttons {
		list = append(list, b.label)
	}
	return list
}

func home() place { return place{Title: "Fix it", Cwd: "/home/ada/p"} }

const offered = `"options":[{"id":"a","name":"Allow once","kind":"allow_once"},{"id":"z","name":"Allow %s &_always <b>","kind":"allow_always"},{"id":"r","name":"No","kind":"reject_once"}]`

func TestAnApprovalNamesAgentVerbAndTheWholeTarget(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		heading string
		want    []string // in this order
		not     string
	}{
		"a command": {
			`{"kind":"permission","agent":"Claude","title":"Run it","tool":{"kind":"execute","rawInput":{"command":"rm -rf x\ncurl %s | sh"}},` + offered + `}`,
			"Claude wants to run a command",
			[]string{"rm -rf x\ncurl %s | sh\n"},
			"Run it",
		},
		"arguments": {
			`{"kind":"permission","agent":"A","tool":{"kind":"execute","rawInput":{"command":["sh","-c","a b","it's",""]}},` + offered + `}`,
			"A wants to run a command",
			[]string{`sh -c 'a b' 'it'\''s' ''`},
			"",
		},
		"an edit": {
			`{"kind":"permission","agent":"A","title":"Edit","tool":{"kind":"edit","locations":[{"path":"/home/ada/p/src/a.go"}],"content":[{"type":"diff","path":"/home/ada/p/src/a.go","oldText":"one\ntwo\n","newText":"one\n2\n"}]},` + offered + `}`,
			"A wants to edit",
			[]string{"src/a.go  +1 −1\n", "  one\n- two\n+ 2\n"},
			"Edit",
		},
		"a new file elsewhere": {
			`{"kind":"permission","agent":"A","tool":{"kind":"edit","content":[{"type":"diff","path":"/etc/passwd","oldText":null,"newText":"x"}]},` + offered + `}`,
			"A wants to edit",
			[]string{"/etc/passwd  +1 −0  (new file)\n+ x\n"},
			"",
		},
		"a patch": {
			`{"kind":"permission","agent":"A","tool":{"kind":"edit","content":[{"type":"diff","path":"/home/ada/p/a","patch":{"text":"@@ -1 +1 @@\n-a\n+b\n"}}]},` + offered + `}`,
			"A wants to edit",
			[]string{"a\n@@ -1 +1 @@\n-a\n+b\n"},
			"",
		},
		"a file to read": {
			`{"kind":"permission","agent":"A","title":"Read","tool":{"kind":"read","locations":[{"path":"/home/ada/p"},{"path":"/home/ada/p/a","line":7},{"path":"/home/ada/page"}]},` + offered + `}`,
			"A wants to read",
			[]string{"Read\n", "a:7\n/home/ada/page\n"},
			"",
		},
		"words of the agent's": {
			`{"kind":"permission","agent":"A","title":"Plan","detail":"Why","tool":{"kind":"switch_mode","content":[{"type":"content","content":{"type":"text","text":"1. do"}}]},` + offered + `}`,
			"A wants to switch its mode",
			[]string{"Plan\n", "Why\n", "1. do\n"},
			"",
		},
		"its input, where nothing else is known": {
			`{"kind":"permission","agent":"A","title":"Tool","tool":{"kind":"other","rawInput":{"to":"x"}},` + offered + `}`,
			"A asks for permission",
			[]string{"Tool\n", `"to": "x"`},
			"",
		},
		"what changes its command": {
			`{"kind":"permission","agent":"A","tool":{"kind":"execute","content":[{"type":"content","content":{"type":"text","text":"Pushes"}}],"rawInput":{"command":"git","args":["push","--force","a>b"],"cwd":"/etc","description":"x","timeout":5,"env":{},"b":false}},` + offered + `}`,
			"A wants to run a command",
			[]string{"git\n", "Pushes\n", "{\n  \"args\": [\n    \"push\",\n    \"--force\",\n    \"a>b\"\n  ],\n  \"cwd\": \"/etc\"\n}\n"},
			"description",
		},
		"its own directory": {
			`{"kind":"permission","agent":"A","tool":{"kind":"execute","rawInput":{"command":["ls"],"cwd":"/home/ada/p","workdir":"/home/ada/p","user":null}},` + offered + `}`,
			"A wants to run a command",
			[]string{"ls\n"},
			"{",
		},
		"its input beside words of the agent's": {
			`{"kind":"permission","agent":"A","title":"Query","tool":{"kind":"other","content":[{"type":"content","content":{"type":"text","text":"Looks something up"}}],"rawInput":{"sql":"DROP"}},` + offered + `}`,
			"A asks for permission",
			[]string{"Query\n", "Looks something up\n", `"sql": "DROP"`},
			"",
		},
		"a plan, once": {
			`{"kind":"permission","agent":"A","title":"Plan","tool":{"kind":"switch_mode","content":[{"type":"content","content":{"type":"text","text":"1. do"}}],"rawInput":{"plan":"1. do","allowedPrompts":["run tests"]}},` + offered + `}`,
			"A wants to switch its mode",
			[]string{"Plan\n", "1. do\n", "run tests"},
			`"plan"`,
		},
		"no tool at all": {`{"kind":"permission","agent":"","title":"Go on?",` + offered + `}`, "An agent asks for permission", []string{"Go on?\n"}, ""},
		"what is hidden": {
			`{"kind":"permission","agent":"A\u202e","tool":{"kind":"execute","rawInput":{"command":"a\u202eb\u0000\u001b[31m\u200b\u00a0c\r\n\td\u007f"}},` + offered + `}`,
			"A⟨U+202E⟩ wants to run a command",
			[]string{"a⟨U+202E⟩b␀␛[31m⟨U+200B⟩⟨U+00A0⟩c␍\n\td␡\n"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sheetOf(parse(t, c.request), home(), nil)
			text := textOf(s)
			if s.heading != c.heading || s.title != c.heading || !s.code || s.about != "Fix it · /home/ada/p" {
				t.Errorf(`got s %+v, want heading %v, title %v, code and about "Fix it · /home/ada/p"`, s, c.heading, c.heading)
			}
			rest := text
			for _, part := range c.want {
				at := strings.Index(rest, part)
				if at < 0 {
					t.Fatalf("%q is not where it should be in %q", part, text)
				}
				rest = rest[at+len(part):]
			}
			if c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%q is in %q", c.not, text)
			}
			if got := labels(s); !slices.Equal(got, []string{"Allow once", "Allow %s &_always <b>", "No"}) {
				t.Errorf("buttons %q", got)
			}
			for i, id := range []string{"a", "z", "r"} {
				if w := s.buttons[i].give(reply{}); !reflect.DeepEqual(w.body, map[string]any{"optionId": id}) || s.buttons[i].needs || s.buttons[i].enter {
					t.Errorf("button %d: %+v", i, w)
				}
			}
		})
	}
}

func TestALongCommandIsShownInFull(t *testing.T) {
	command := strings.Repeat("é%s<b>", 1<<20/6) + "END"
	r := &request{ID: "1", Kind: kindPermission, Agent: "A", Tool: &toolCall{Kind: "execute"}, Options: []option{{ID: "a", Name: "Allow", Kind: "allow_once"}}}
	r.Tool.RawInput, _ = json.Marshal(map[string]string{"command": command})
	s := sheetOf(r, home(), nil)
	if textOf(s) != command+"\n" || len(s.buttons) != 1 {
		t.Error("it is not all there")
	}
	for _, l := range s.text {
		if utf8.RuneCountInString(l.text) > longestLine || !utf8.ValidString(l.text) {
			t.Fatal("a line is too long, or was cut within a character")
		}
	}
	if !s.text[0].goes || s.text[len(s.text)-1].goes {
		t.Error("it cannot be seen where a line goes on")
	}
	n := noticeOf(r, home())
	if utf8.RuneCountInString(n.body) > mostNotice+1+len("\nFix it") || len(n.actions) != 1 || n.actions[0].key != actionOpen || len(r.actions("")) != 0 {
		t.Errorf("the notification can be allowed without having been read: %+v", n.actions)
	}

	// Beyond what a dialog can hold it has no button that answers.
	r.Tool.RawInput, _ = json.Marshal(map[string]string{"command": strings.Repeat("x", mostText+1)})
	if s := sheetOf(r, home(), nil); len(s.buttons) != 0 || !strings.Contains(textOf(s), "The window shows all of it") {
		t.Errorf("%d buttons", len(s.buttons))
	}
}

func TestWhatADialogHasNoRoomFor(t *testing.T) {
	long := strings.Repeat("x", mostLabel+1)
	many := strings.TrimSuffix(strings.Repeat(`{"id":"a","name":"n","kind":"allow_once"},`, mostOptions+1), ",")
	for name, text := range map[string]string{
		"a long button":     `{"kind":"permission","agent":"A","options":[{"id":"a","name":"` + long + `","kind":"allow_once"}]}`,
		"too many buttons":  `{"kind":"permission","agent":"A","options":[` + many + `]}`,
		"several questions": `{"kind":"question","agent":"A","title":"Which?"}`,
		"a form":            `{"kind":"form","agent":"A","title":"Which?"}`,
		"an address":        `{"kind":"url","agent":"A","title":"Sign in"}`,
		"anything else":     `{"kind":"raw","agent":"A","title":"demo/x"}`,
	} {
		s := sheetOf(parse(t, text), home(), nil)
		if len(s.buttons)+len(s.choices) != 0 || s.own || !strings.Contains(textOf(s), "The window shows all of it.") || s.plain != "" {
			t.Errorf(`%s: got s %+v, want len(s.buttons)+len(s.choices) 0, not own, textOf(s) with "The window shows all of it." and plain ""`, name, s)
		}
	}
}

// What is not here as a whole is allowed neither in a dialog nor in a notification.
func TestAClippedRequest(t *testing.T) {
	for _, tool := range []string{`{"kind":"execute","rawInput":{"command":"ls"}}`, `{"kind":"read","locations":[{"path":"/home/ada/p/a.go"}]}`} {
		r := parse(t, `{"kind":"permission","agent":"A","clipped":true,"tool":`+tool+`,`+offered+`}`)
		if s := sheetOf(r, home(), nil); len(s.buttons) != 0 || !strings.Contains(textOf(s), "The window shows all of it, in pages.") {
			t.Errorf("sheetOf a clipped request about %s: got buttons %v and %q, want no button and the way to the window", tool, labels(s), textOf(s))
		}
		if got := r.actions(home().Cwd); len(got) != 1 || got[0].label != "Reject" {
			t.Errorf("actions of a clipped request about %s: got %+v, want Reject alone", tool, got)
		}
	}
}

func TestAQuestion(t *testing.T) {
	r := parse(t, `{"id":"q/1","session":"s1","kind":"question","agent":"A","title":"Which?"}`)
	var q question
	if err := json.Unmarshal([]byte(`{"request_id":"q/1","prompt":"Which <b>%s</b>?","choices":[{"id":"x","label":"X\ny"},{"id":"y","label":"","description":"about"}],"multi_select":true,"free_text":true}`), &q); err != nil {
		t.Fatal(err)
	}
	s := sheetOf(r, home(), &q)
	if s.heading != "A asks" || textOf(s) != "Which <b>%s</b>?\n" || s.code || !s.several || !s.own ||
		!slices.Equal(s.choices, []choice{{"X↵ y", ""}, {"y", "about"}}) || !slices.Equal(labels(s), []string{"Decline", "Send answer"}) {
		t.Errorf("sheetOf: got s %+v, want heading \"A asks\", textOf(s) \"Which <b>%%s</b>?\\n\", not code, several, own, choices []choice{{\"X↵ y\", \"\"}, {\"y\", \"about\"}} and labels(s) []string{\"Decline\", \"Send answer\"}", s)
	}
	send := s.buttons[1]
	if w := send.give(reply{chosen: []int{0, 1}, own: " mine "}); !send.needs || !send.enter || w.route != "/client/sessions/s1/questions/q%2F1/reply" ||
		!reflect.DeepEqual(w.body, map[string]any{"answers": [][]string{{"x", "y", "mine"}}}) {
		t.Errorf(`give: got w %+v, want send.needs, send.enter, route "/client/sessions/s1/questions/q%%2F1/reply" and body map[string]any{"answers": [][]string{{"x", "y", "mine"}}}`, w)
	}
	if w := s.buttons[0].give(reply{chosen: []int{0}}); w.route != "/client/requests/q%2F1/answer" || !reflect.DeepEqual(w.body, map[string]any{"reject": true}) {
		t.Errorf(`give: got w %+v, want route "/client/requests/q%%2F1/answer" and body map[string]any{"reject": true}`, w)
	}

	r.Kind = kindForm
	s = sheetOf(r, home(), &q)
	if !slices.Equal(labels(s), []string{"Decline", "Cancel", "Send answer"}) {
		t.Errorf(`sheetOf: got s %+v, want labels(s) []string{"Decline", "Cancel", "Send answer"}`, s)
	}
	for i, action := range []string{"decline", "cancel"} {
		if w := s.buttons[i].give(reply{}); !reflect.DeepEqual(w.body, map[string]any{"action": action}) {
			t.Errorf(`give: got w %+v, want body map[string]any{"action": action}`, w)
		}
	}
}

func TestWhatADirectoryBrings(t *testing.T) {
	s := sheetOf(parse(t, `{"kind":"trust","agent":"A","executables":[{"kind":"mcp","name":"db","detail":"run x\n--y"},{"kind":"skill","name":"s","detail":"new","before":"old"}],`+offered+`}`), home(), nil)
	text := textOf(s)
	for _, part := range []string{"Nothing has been started yet", "MCP server db\nrun x\n--y\n", "Skill s\n- old\n+ new\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	if len(s.buttons) != 3 || len(parse(t, `{"kind":"trust",`+offered+`}`).actions("")) != 0 {
		t.Error("it is approved from a notification, or cannot be from the dialog")
	}
}

func TestWhatIsDangerousIsSaidFirst(t *testing.T) {
	r := parse(t, `{"kind":"permission","agent":"A","tool":{"kind":"execute","rawInput":{"command":"sudo x"}},`+offered+`}`)
	r.danger = []string{"sudo", "later"}
	s := sheetOf(r, home(), nil)
	if got := textOf(s); got != "⚠ This runs with the rights of the administrator\n⚠ This is dangerous: later\n\nsudo x\n" || s.text[0].style != removedLine {
		t.Errorf("textOf: got %q, want \"⚠ This runs with the rights of the administrator\\n⚠ This …\" and s.text[0].style %v", got, removedLine)
	}
	if got := r.actions(""); len(got) != 1 || got[0].label != "Reject" {
		t.Errorf(`actions(""): got %+v, want 1 in got and got[0].label "Reject"`, got)
	}
}

func TestANotification(t *testing.T) {
	r := parse(t, `{"kind":"permission","agent":"A","title":"Edit a.go","tool":{"kind":"edit","locations":[{"path":"/home/ada/p/a.go"}]},`+offered+`}`)
	n := noticeOf(r, home())
	if n.title != "A wants to edit" || n.body != "a.go\nFix it" || !slices.Equal(n.actions, []action{{actionOpen, "Open"}}) {
		t.Errorf("noticeOf: got n %+v, want title \"A wants to edit\", body \"a.go\\nFix it\" and actions []action{{actionOpen, \"Open\"}}", n)
	}
	if got := r.actions(""); !slices.Equal(got, []action{{"option-2", "Reject"}}) {
		t.Errorf(`actions("") of an edit: got %+v, want []action{{"option-2", "Reject"}}`, got)
	}
	read := parse(t, `{"kind":"permission","agent":"A","tool":{"kind":"read","locations":[{"path":"/home/ada/p/a.go"}]},`+offered+`}`)
	if got := read.actions(""); !slices.Equal(got, []action{{"option-0", "Allow once"}, {"option-2", "Reject"}}) {
		t.Errorf(`actions("") of a read: got %+v, want []action{{"option-0", "Allow once"}, {"option-2", "Reject"}}`, got)
	}
	for key, want := range map[string]string{"option-0": "a", "option-2": "r", "option-3": "", "option--1": "", "": "", "open": "", "option-x": ""} {
		if o, ok := r.ofKey(key); o.ID != want || ok != (want != "") {
			t.Errorf(`%q: got o %+v, want ID %v and ok (want != "")`, key, o, want)
		}
	}
	// What changes its command is not in it, so that it is not allowed there; its own directory changes nothing.
	for args, most := range map[string]int{`"args":["push","--force"]`: 1, `"cwd":"/home/ada/p"`: 2} {
		one := parse(t, `{"kind":"permission","agent":"A","tool":{"kind":"execute","rawInput":{"command":"git",`+args+`}},`+offered+`}`)
		if got := one.actions(home().Cwd); len(got) != most {
			t.Errorf("%s: got %+v, want the length of got %v", args, got, most)
		}
	}
	// Nor is what else its title alone tells of, as the title is the agent's, nor what an edit changes, nor content beside a line.
	for call, most := range map[string]int{
		`{"kind":"other","title":"mcp__postgres__query","rawInput":{"sql":"DROP TABLE users"}}`:                                                      1,
		`{"kind":"delete","title":"Delete files","locations":[{"path":"/a"},{"path":"/b"}]}`:                                                         1,
		`{"kind":"execute","title":"Run it","rawInput":{"code":"import os"}}`:                                                                        1,
		`{"kind":"move","title":"Move","locations":[{"path":"/a"}],"rawInput":{"to":"/b"}}`:                                                          1,
		`{"kind":"other","title":"T","locations":[{"path":"/a"}]}`:                                                                                   1,
		`{"kind":"other","title":"T","content":[{"type":"content","content":{"type":"text","text":"DROP"}}]}`:                                        1,
		`{"kind":"fetch","title":"https://example.com"}`:                                                                                             2,
		`{"kind":"fetch","title":"T","content":[{"type":"content","content":{"type":"text","text":"T"}}]}`:                                           2,
		`{"kind":"delete","title":"D","locations":[{"path":"/a"}],"rawInput":{"path":"/a"}}`:                                                         2,
		`{"kind":"delete","title":"D","locations":[{"path":"/a"}],"rawInput":{"path":"/b"}}`:                                                         1,
		`{"kind":"delete","title":"D","locations":[{"path":"/a"}],"rawInput":{"path":"/a","recursive":true}}`:                                        1,
		`{"kind":"delete","title":"D","locations":[{"path":"/a"}],"rawInput":["/b"]}`:                                                                1,
		`{"kind":"delete","title":"D","locations":[{"path":"/a"}],"content":[{"type":"diff","path":"/b","oldText":"x","newText":""}]}`:               1,
		`{"kind":"read","title":"R","locations":[{"path":"/home/ada/p/a"}],"rawInput":{"file_path":"a","limit":20}}`:                                 2,
		`{"kind":"edit","title":"E","locations":[{"path":"/a"}],"rawInput":{"path":"/a","text":"x"}}`:                                                1,
		`{"kind":"edit","title":"E","locations":[{"path":"/a"}],"content":[{"type":"diff","path":"/a","oldText":"x","newText":"y"}]}`:                1,
		`{"kind":"edit","title":"E","locations":[{"path":"/a"}],"content":[{"type":"diff","path":".git/hooks/pre-commit","newText":"evil"}]}`:        1,
		`{"kind":"edit","title":"E","rawInput":{"command":"str_replace"}}`:                                                                           1,
		`{"kind":"execute","rawInput":{"command":"ls","description":"List"},"content":[{"type":"content","content":{"type":"text","text":"List"}}]}`: 2,
		`{"kind":"execute","rawInput":{"command":"sh x"},"content":[{"type":"diff","path":"x","newText":"evil"}]}`:                                   1,
		`{"kind":"execute","rawInput":{"command":"ls"},"content":[{"type":"terminal","terminalId":"t"}]}`:                                            2,
	} {
		if got := parse(t, `{"kind":"permission","agent":"A","title":"Do it","tool":`+call+`,`+offered+`}`).actions(home().Cwd); len(got) != most {
			t.Errorf("%s: got %+v, want the length of got %v", call, got, most)
		}
	}
	// A choice has no room in a notification.
	r.Choice = true
	if got := r.actions(""); len(got) != 1 || got[0].label != "Reject" {
		t.Errorf(`actions(""): got %+v, want 1 in got and got[0].label "Reject"`, got)
	}
	if n := noticeOf(parse(t, `{"kind":"question","agent":"A","title":"Which\nway?"}`), place{}); n.body != "Which↵ way?" || len(n.actions) != 1 {
		t.Errorf(`noticeOf: got n %+v, want body "Which↵ way?" and 1 in actions`, n)
	}
}
