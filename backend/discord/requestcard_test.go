package discord

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disgoorg/disgo/discord"

	"deskhand/backend/form"
	"deskhand/backend/launch"
	"deskhand/backend/permission"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

const requestID = "01994e0a-1111-7222-8333-444455556666"

func permissionOf(tool transcript.ToolCall, options ...requests.Option) requests.Request {
	if len(options) == 0 {
		options = []requests.Option{
			{ID: "always", Name: "Always allow", Kind: "allow_always"}, {ID: "yes", Name: "Allow", Kind: "allow_once"}, {ID: "no", Name: "Reject", Kind: "reject_once"},
		}
	}
	return requests.Request{ID: requestID, Kind: "permission", Agent: "Claude", Title: tool.Title, Tool: &tool, Options: options, Status: "requested"}
}

func running(line string) transcript.ToolCall {
	input, _ := json.Marshal(map[string]any{"command": line})
	return transcript.ToolCall{Title: "Run it", Kind: "execute", RawInput: input}
}

// control is what a test looks at of a button or a select.
type control struct {
	label, verb string
	off         bool
	options     int
}

func controlsOf(c card) (list []control) {
	for _, row := range c.rows {
		for _, one := range row.(discord.ActionRowComponent).Components {
			switch one := one.(type) {
			case discord.ButtonComponent:
				list = append(list, control{one.Label, strings.TrimPrefix(one.CustomID, controlPrefix+requestID+":"), one.Disabled, 0})
			case discord.StringSelectMenuComponent:
				list = append(list, control{one.Placeholder, strings.TrimPrefix(one.CustomID, controlPrefix+requestID+":"), one.Disabled, len(one.Options)})
			}
		}
	}
	return list
}

func labels(c card) (list []string) {
	for _, one := range controlsOf(c) {
		list = append(list, one.label)
	}
	return list
}

func same[T comparable](t *testing.T, what string, have, want []T) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

func TestApprovalShowsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	text := func(s string) json.RawMessage {
		data, _ := json.Marshal(map[string]any{"type": "content", "content": map[string]string{"type": "text", "text": s}})
		return data
	}
	edit := json.RawMessage(`{"type":"diff","path":"/home/x/p/main.go","oldText":"one\ntwo\nthree\n","newText":"one\n2\nthree\n"}`)
	line := int64(7)
	for name, c := range map[string]struct {
		tool transcript.ToolCall
		want []string
		not  []string
	}{
		"a command":          {running("npm test -- --watch=false"), []string{"**Claude wants to run a command**", "-# in /home/x/p", "```sh\nnpm test -- --watch=false\n```"}, []string{"Run it"}},
		"its arguments":      {transcript.ToolCall{Kind: "execute", RawInput: json.RawMessage(`{"command":["rm","-rf","my files"]}`)}, []string{"```sh\nrm -rf 'my files'\n```"}, nil},
		"beside a command":   {transcript.ToolCall{Kind: "execute", RawInput: json.RawMessage(`{"command":"git","args":["push","--force"]}`)}, []string{"```sh\ngit\n```", `"--force"`}, nil},
		"elsewhere":          {transcript.ToolCall{Kind: "execute", RawInput: json.RawMessage(`{"command":"ls","cwd":"/etc"}`)}, []string{"```sh\nls\n```", `"/etc"`}, nil},
		"nothing beside it":  {transcript.ToolCall{Kind: "execute", RawInput: json.RawMessage(`{"command":"ls","cwd":"/home/x/p","description":"Lists","timeout":9,"env":{}}`)}, []string{"```sh\nls\n```"}, []string{"Lists", "timeout"}},
		"beside its words":   {transcript.ToolCall{Kind: "other", Content: []json.RawMessage{text("Looks something up")}, RawInput: json.RawMessage(`{"sql":"DROP"}`)}, []string{"Looks something up", `"DROP"`}, nil},
		"an edit":            {transcript.ToolCall{Title: "Edit", Kind: "edit", Content: []json.RawMessage{edit}}, []string{"wants to edit", "--- main.go\n+++ main.go\n", "-two\n+2\n"}, []string{"Edit\n"}},
		"a new file":         {transcript.ToolCall{Kind: "edit", Content: []json.RawMessage{json.RawMessage(`{"type":"diff","path":"/a","oldText":null,"newText":"x\n"}`)}}, []string{"--- /dev/null\n+++ /a", "+x"}, nil},
		"a patch":            {transcript.ToolCall{Kind: "edit", Content: []json.RawMessage{json.RawMessage(`{"type":"diff","path":"/a","patch":{"text":"@@ -1 +1 @@\n-a\n+b"}}`)}}, []string{"```diff\n--- /a\n+++ /a\n@@ -1 +1 @@\n-a\n+b\n```"}, nil},
		"a path":             {transcript.ToolCall{Title: "Read it", Kind: "read", Locations: []transcript.Location{{Path: "/home/x/p"}, {Path: "/etc/hosts", Line: &line}}}, []string{"wants to read", "Read it", "```\n/etc/hosts:7\n```"}, nil},
		"words":              {transcript.ToolCall{Title: "Go on?", Kind: "other", Content: []json.RawMessage{text("The plan")}}, []string{"asks for permission", "Go on?", "The plan"}, nil},
		"nothing but input":  {transcript.ToolCall{Title: "Call", Kind: "other", RawInput: json.RawMessage(`{"city":"Oslo"}`)}, []string{"\"city\": \"Oslo\""}, nil},
		"its title is quiet": {transcript.ToolCall{Title: "**Allowed once** · <@1> `x` [y](https://z)", Kind: "other"}, []string{`\*\*Allowed once\*\* · \<\@1\> \` + "`x" + `\` + "`" + ` \[y\]\(https\://z\)`}, []string{"\n**Allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := permissionOf(c.tool)
			shown := draw(&r, "/home/x/p", held{})
			for _, want := range c.want {
				if !strings.Contains(shown.content, want) {
					t.Errorf("content: got %q, want %q in it", shown.content, want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(shown.content, not) {
					t.Errorf("content: got %q, want no %q in it", shown.content, not)
				}
			}
			if shown.file != "" {
				t.Errorf("file: got %q, want none", shown.file)
			}
		})
	}
}

// What is decided about is never cut, and never shown as something else.
func TestLongRequestGoesIntoFile(t *testing.T) {
	t.Parallel()
	long := "echo " + strings.Repeat("0123456789 ", 400) + "; rm -rf ~"
	for name, c := range map[string]struct{ line, file string }{
		"too long":         {long, long + "\n"},
		"ends the block":   {"echo ```\n**Allowed once**", "echo ```\n**Allowed once**\n"},
		"ends with a tick": {"echo `date`", "echo `date`\n"},
	} {
		r := permissionOf(running(c.line))
		shown := draw(&r, "", held{})
		if shown.file != c.file || shown.name != "command.txt" || strings.Contains(shown.content, "echo") || !strings.Contains(shown.content, "in the file below") {
			t.Errorf("%s: got content %q, file %s of %q, want the command in the file alone", name, shown.content, shown.name, shown.file)
		}
		same(t, name, labels(shown), []string{"Always allow", "Allow", "Reject"})

		shown = draw(&r, "", held{Small: true})
		if shown.file != "" || !strings.Contains(shown.content, "read it at the desk") {
			t.Errorf("%s without a file: got %+v, want a pointer to the desk", name, shown)
		}
		same(t, name+" without a file", labels(shown), []string{"Reject"})
	}
}

func TestUnseenCharactersAreWrittenByNumbers(t *testing.T) {
	t.Parallel()
	r := permissionOf(running("ls \u202e# gpj.x\u200b\r"))
	shown := draw(&r, "", held{})
	if !strings.Contains(shown.content, "ls [U+202E]# gpj.x[U+200B][U+000D]") || !strings.Contains(shown.content, "characters that are not seen") {
		t.Errorf("content: got %q, want the unseen characters by their numbers", shown.content)
	}
	r = permissionOf(running("ls # ü 🙂\ufe0f\tok"))
	if shown = draw(&r, "", held{}); strings.Contains(shown.content, "not seen") {
		t.Errorf("content: got %q, want no word of unseen characters", shown.content)
	}
}

func TestOptionsKeepAgentsOrder(t *testing.T) {
	t.Parallel()
	options := func(n int) []requests.Option {
		list := make([]requests.Option, n)
		for i := range list {
			list[i] = requests.Option{ID: "id" + strconv.Itoa(i), Name: "Option " + strconv.Itoa(i), Kind: "allow_once"}
		}
		return list
	}
	for _, c := range []struct{ n, controls, rows, first int }{{1, 1, 1, 0}, {5, 5, 1, 0}, {6, 6, 2, 0}, {25, 25, 5, 0}, {26, 2, 2, 25}, {125, 5, 5, 25}, {126, 0, 0, 0}} {
		r := permissionOf(transcript.ToolCall{Kind: "other"}, options(c.n)...)
		shown := draw(&r, "", held{})
		list := controlsOf(shown)
		if len(list) != c.controls || len(shown.rows) != c.rows || c.controls > 0 && list[0].options != c.first {
			t.Errorf("%d options: got %d controls in %d rows, %+v, want %d in %d", c.n, len(list), len(shown.rows), list, c.controls, c.rows)
		}
		if c.n <= 25 {
			for i, one := range list {
				if one.label != "Option "+strconv.Itoa(i) || one.verb != verbOption+strconv.Itoa(i) {
					t.Errorf("option %d: got %+v, want its own label and verb", i, one)
				}
			}
		}
		if c.n > 125 && !strings.Contains(shown.content, "answer it at the desk") {
			t.Errorf("content: got %q, want a pointer to the desk", shown.content)
		}
	}
	long := strings.Repeat("very ", 30) + "long"
	r := permissionOf(transcript.ToolCall{Kind: "other"}, requests.Option{ID: "a", Name: long, Kind: "allow_once"})
	if shown := draw(&r, "", held{}); !strings.Contains(shown.content, "1. "+long) || width(labels(shown)[0]) != mostLabel {
		t.Errorf("content: got %q, buttons %v, want the long option whole, and a short button", shown.content, labels(shown))
	}
}

func TestPathsHideHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for path, want := range map[string]string{home: "~", filepath.Join(home, "p", "q"): filepath.Join("~", "p", "q"), home + "x": home + "x", "": "", "/etc": "/etc"} {
		if have := homely(path); have != want {
			t.Errorf("%s: %s, want %s", path, have, want)
		}
	}
	for _, c := range [][3]string{
		{"/a/b/c", "/a/b", "c"}, {"/a/b/c", "/a/b/", "c"}, {"/a/b", "/a/b", "."}, {"/a/bc", "/a/b", "/a/bc"}, {"/c", "/a/b", "/c"}, {`C:\a\b`, `C:\a`, "b"}, {"/a", "", "/a"}, {"/a", "/", "/a"},
	} {
		if have := permission.Below(c[0], c[1]); have != c[2] {
			t.Errorf("%s in %s: %s, want %s", c[0], c[1], have, c[2])
		}
	}
}

func TestDirectoriesAreNotApprovedHere(t *testing.T) {
	t.Parallel()
	r := requests.Request{
		ID: requestID, Kind: "trust", Agent: "Claude", Status: "requested", Detail: "/home/x/p", Title: "Start what is in this directory?",
		Executables: []launch.Executable{{Kind: "mcp", Name: "database"}, {Kind: "agent_config", Name: "rules"}},
		Options: []requests.Option{
			{ID: "approve", Name: "Approve and start", Kind: "allow_always"}, {ID: "once", Name: "Start with these once", Kind: "allow_once"}, {ID: "decline", Name: "Do not start", Kind: "reject_once"},
		},
	}
	shown := draw(&r, "", held{})
	same(t, "buttons", labels(shown), []string{"Do not start"})
	for _, want := range []string{"/home/x/p", "mcp  database", "agent config  rules", "at the desk"} {
		if !strings.Contains(shown.content, want) {
			t.Errorf("content: got %q, want %q in it", shown.content, want)
		}
	}
	for verb, may := range map[string]bool{"option-0": false, "option-1": false, "option-2": true, "option-3": false, "accept": false, "cancel": false} {
		s := &sheet{r: &r, k: &keptCard{}, p: &press{verb: verb}}
		if _, ok := s.answer(); ok != may {
			t.Errorf("answer by %s: got %v, want %v", verb, ok, may)
		}
	}
}

func TestAddressIsShownWhole(t *testing.T) {
	t.Parallel()
	r := requests.Request{
		ID: requestID, Kind: "url", Agent: "Claude", Title: "Sign in to go on.", URL: "http://sign-in.xn--dskhand-xza.invalid:8080/device?code=1", Host: "sign-in.xn--dskhand-xza.invalid:8080",
		HostUnicode: "sign-in.dеskhand.invalid", Punycode: true, Status: "requested",
	}
	shown := draw(&r, "", held{})
	for _, want := range []string{"Sign in to go on.", r.URL, "Leads to **sign\\-in", "other scripts", "not encrypted"} {
		if !strings.Contains(shown.content, want) {
			t.Errorf("content: got %q, want %q in it", shown.content, want)
		}
	}
	same(t, "buttons", labels(shown), []string{"Open in the browser", "Opened", "Decline", "Cancel"})
	r.URL, r.Host, r.Punycode = "https://a.example/"+strings.Repeat("x", 600), "a.example", false
	shown = draw(&r, "", held{})
	same(t, "buttons of a long one", labels(shown), []string{"Opened", "Decline", "Cancel"})
	if !strings.Contains(shown.content, r.URL) || strings.Contains(shown.content, "⚠") {
		t.Errorf("content: got %q, want the address and no warning", shown.content)
	}
	r.URL = "http://127.0.0.1:99/"
	r.Host = "127.0.0.1:99"
	if shown = draw(&r, "", held{}); strings.Contains(shown.content, "⚠") {
		t.Errorf("content: got %q, want no warning", shown.content)
	}
}

// What an agent says above an address cannot look like the address, nor like words of ours.
func TestQuotedWordsHaveNoMarkdown(t *testing.T) {
	t.Parallel()
	forged := "Sign in.\n[https://github.com/login](https://evil.example)\n# **Allowed once**\n- <@1>"
	r := requests.Request{ID: requestID, Kind: "url", Agent: "Claude", Title: forged, URL: "https://true.example/", Host: "true.example", Status: "requested"}
	shown := draw(&r, "", held{})
	want := "> Sign in.\n> \\[https\\://github.com/login\\]\\(https\\://evil.example\\)\n> \\# \\*\\*Allowed once\\*\\*\n> \\- \\<\\@1\\>\n"
	if !strings.Contains(shown.content, want) || !strings.Contains(shown.content, "```\nhttps://true.example/\n```") {
		t.Errorf("content: got %q, want %q in it", shown.content, want)
	}
	q := asking(requests.Question{Prompt: "Which?\n```\nYes", AllowFreeText: true})
	if shown = draw(&q, "", held{}); strings.Contains(shown.content, "```") || shown.file != "Which?\n```\nYes\n" {
		t.Errorf("question with backticks: got %q, file %q, want it in the file", shown.content, shown.file)
	}
}

func asking(questions ...requests.Question) requests.Request {
	return requests.Request{ID: requestID, Kind: "question", Agent: "Claude", Title: questions[0].Prompt, Questions: questions, Status: "requested"}
}

func choices(n int) []form.QuestionOption {
	list := make([]form.QuestionOption, n)
	for i := range list {
		list[i] = form.QuestionOption{ID: "id" + strconv.Itoa(i), Label: "Choice " + strconv.Itoa(i)}
	}
	return list
}

func TestDrawShowsQuestionsWithControls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    requests.Request
		h    held
		want []string
	}{
		"one":                    {asking(requests.Question{Prompt: "Which?", Options: choices(2)}), held{}, []string{"Choose", "Decline"}},
		"one with own words":     {asking(requests.Question{Prompt: "Which?", Options: choices(2), AllowFreeText: true}), held{}, []string{"Choose", "Other…", "Decline"}},
		"words":                  {asking(requests.Question{Prompt: "Which?", AllowFreeText: true}), held{}, []string{"Write…", "Decline"}},
		"several of one":         {asking(requests.Question{Prompt: "Which?", Options: choices(3), MultiSelect: true}), held{}, []string{"Choose", "Send", "Decline"}},
		"two":                    {asking(requests.Question{Prompt: "Which?", Options: choices(3)}, requests.Question{Prompt: "What?", Options: choices(2), AllowFreeText: true}), held{}, []string{"Which?", "What?", "Other…", "Send", "Decline"}},
		"many choices":           {asking(requests.Question{Prompt: "Which?", Options: choices(60)}), held{}, []string{"Choose", "Choose", "Choose", "Decline"}},
		"the first page of many": {asking(slices.Repeat([]requests.Question{{Prompt: "Which?", Options: choices(2)}}, 6)...), held{}, []string{"Which?", "Which?", "Which?", "Which?", "Next", "Decline"}},
		"the last page of many":  {asking(slices.Repeat([]requests.Question{{Prompt: "Which?", Options: choices(2)}}, 6)...), held{Page: 9}, []string{"Which?", "Which?", "Back", "Send", "Decline"}},
	} {
		shown := draw(&c.r, "", c.h)
		same(t, name, labels(shown), c.want)
		if !strings.Contains(shown.content, "Which?") {
			t.Errorf("%s: got %q, want the question", name, shown.content)
		}
	}
	r := asking(requests.Question{Prompt: "Which?", Options: []form.QuestionOption{{ID: "a", Label: strings.Repeat("long ", 40), Description: "why"}}})
	if shown := draw(&r, "", held{}); !strings.Contains(shown.content, strings.Repeat("long ", 40)) {
		t.Errorf("content: got %q, want the long choice", shown.content)
	}
}

const demoForm = `{"type":"object","properties":{
	"name":{"type":"string","title":"Name","description":"Small letters"},"licence":{"type":"string","title":"Licence","enum":["MIT","none"]},
	"port":{"type":"integer","title":"Port"},"tests":{"type":"boolean","title":"With tests"},
	"features":{"type":"array","title":"Features","items":{"type":"string","enum":["api","cli","web"]}}},"required":["name"]}`

func TestDrawShowsForms(t *testing.T) {
	t.Parallel()
	r := requests.Request{ID: requestID, Kind: "form", Agent: "Claude", Title: "How shall it look?", Schema: json.RawMessage(demoForm), Status: "requested"}
	shown := draw(&r, "", held{Own: []string{"light-house"}})
	same(t, "controls", labels(shown), []string{"Licence", "With tests", "Features", "Write…", "Send", "Decline", "Cancel"})
	if !strings.Contains(shown.content, "How shall it look?") || strings.Count(shown.content, "How shall") != 1 || !strings.Contains(shown.content, "no passwords") || !strings.Contains(shown.content, `→ light\-house`) {
		t.Errorf("form: got %q, want its title once, the warning and the text", shown.content)
	}
	d := &drawing{r: &r, h: held{Own: []string{"light-house"}}, asks: requests.QuestionsOf([]requests.Request{r})}
	m, ok := d.modal(0)
	if !ok || len(m.Components) != 2 {
		t.Fatalf("modal: got %+v, want 2 fields", m)
	}
	name := m.Components[0].(discord.LabelComponent)
	if field := name.Component.(discord.TextInputComponent); name.Label != "Name Small letters" || field.Value != "light-house" || field.CustomID != "words-0" {
		t.Errorf("field: got %+v, want the name with its text", name)
	}
	if _, ok := d.modal(1); ok {
		t.Error("there is a second page")
	}
	r.Schema = json.RawMessage(`{"type":"object"}`)
	shown = draw(&r, "", held{})
	same(t, "controls without fields", labels(shown), []string{"Accept", "Decline", "Cancel"})
}

func TestUnknownRequestsCanBeDismissed(t *testing.T) {
	t.Parallel()
	r := requests.Request{ID: requestID, Kind: "raw", Agent: "Claude", Title: "demo/x", Raw: json.RawMessage(`{"a":[1]}`), Status: "requested"}
	shown := draw(&r, "", held{})
	same(t, "controls", labels(shown), []string{"Dismiss"})
	if !strings.Contains(shown.content, "\"a\": [") || !strings.Contains(shown.content, "demo/x") {
		t.Errorf("content: got %q, want the raw request", shown.content)
	}
}

func TestDrawShowsResultOfRequest(t *testing.T) {
	t.Parallel()
	answered := func(r requests.Request, by, status string, a requests.Answer) requests.Request {
		r.Status, r.AnsweredBy = status, by
		r.Answer, _ = json.Marshal(a)
		return r
	}
	p := permissionOf(running("ls"))
	twice := permissionOf(transcript.ToolCall{Kind: "switch_mode"}, requests.Option{ID: "a", Name: "Plan", Kind: "allow_once"}, requests.Option{ID: "b", Name: "Code", Kind: "allow_once"})
	q := asking(requests.Question{Prompt: "Which?", Options: choices(2), AllowFreeText: true}, requests.Question{Prompt: "What?", Options: choices(2)})
	u := requests.Request{ID: requestID, Kind: "url", URL: "https://a.example/", Host: "a.example"}
	f := requests.Request{ID: requestID, Kind: "form", Schema: json.RawMessage(demoForm)}
	for _, c := range []struct {
		r    requests.Request
		h    held
		want string
	}{
		{answered(p, "window", "answered", requests.Answer{OptionID: "yes"}), held{}, "**Allowed once** · answered in the window"},
		{answered(p, "discord", "rejected", requests.Answer{OptionID: "no"}), held{By: "77"}, "**Rejected** · answered by <@77>"},
		{answered(p, "discord", "answered", requests.Answer{OptionID: "always"}), held{}, "**Allowed always** · answered in Discord"},
		{answered(p, "cli", "answered", requests.Answer{OptionID: "always"}), held{By: "77"}, "**Allowed always** · answered from a terminal"},
		{answered(p, "rule", "answered", requests.Answer{OptionID: "yes"}), held{}, "**Allowed once** · answered by a rule"},
		{answered(twice, "native", "answered", requests.Answer{OptionID: "b"}), held{}, "**Code** · answered in a dialog of the system"},
		{answered(q, "browser", "answered", requests.Answer{Answers: [][]string{{"id1"}, {"id0", "mine"}}}), held{}, "**Answered\\: Choice 1; Choice 0, mine** · answered in a browser"},
		{answered(q, "api", "rejected", requests.Answer{Reject: true}), held{}, "**Declined** · answered over the API"},
		{answered(u, "window", "answered", requests.Answer{Action: "accept"}), held{}, "**Opened** · answered in the window"},
		{answered(u, "window", "rejected", requests.Answer{Action: "cancel"}), held{}, "**Cancelled** · answered in the window"},
		{answered(f, "window", "answered", requests.Answer{Action: "accept"}), held{}, "**Sent** · answered in the window"},
		{answered(p, "", "cancelled", requests.Answer{}), held{}, "**No longer asked**"},
		{answered(p, "", "expired", requests.Answer{}), held{}, "**Expired**"},
		{answered(p, "", movedAway, requests.Answer{}), held{}, "no longer"},
	} {
		shown := draw(&c.r, "", c.h)
		if !strings.Contains(shown.content, c.want) {
			t.Errorf("content: got %q, want %q in it", shown.content, c.want)
		}
		for _, one := range controlsOf(shown) {
			if !one.off {
				t.Errorf("control of a request that is %s: got %+v, want it disabled", c.r.Status, one)
			}
		}
		c.r.Status = "requested"
		for _, one := range controlsOf(draw(&c.r, "", c.h)) {
			if one.off {
				t.Errorf("control of a waiting request: got %+v, want it enabled", one)
			}
		}
	}
}

// FuzzDraw: whatever an agent sends, its card is one that Discord takes, and holds all of what is decided about.
func FuzzDraw(f *testing.F) {
	f.Add("title", "ls -la", "Allow", 3, "permission")
	f.Add("title\n**x**", strings.Repeat("🙂`", 1000), strings.Repeat("x", 300), 30, "permission")
	f.Add(strings.Repeat("> ", 900), "", "", 126, "question")
	f.Add("", "```\u202e", " ", 7, "question")
	f.Add("a", "b", "c", 9, "url")
	f.Add("a", "b", "c", 9, "raw")
	f.Add("a", "b", "c", 9, "trust")
	f.Fuzz(func(t *testing.T, title, what, name string, n int, kind string) {
		if n < 0 || n > 130 || len(title)+len(what)+len(name) > 10_000 {
			return
		}
		input, _ := json.Marshal(map[string]string{"command": what})
		r := requests.Request{ID: requestID, Kind: kind, Agent: title, Title: title, Status: "requested", URL: what, Host: name, Raw: input}
		r.Tool = &transcript.ToolCall{Kind: "execute", RawInput: input}
		for i := range n {
			r.Options = append(r.Options, requests.Option{ID: strconv.Itoa(i), Name: name + strconv.Itoa(i), Kind: []string{"allow_once", "reject_once"}[i%2]})
			r.Executables = append(r.Executables, launch.Executable{Kind: "mcp", Name: name})
			r.Questions = append(r.Questions, requests.Question{Prompt: what, MultiSelect: i%2 == 0, AllowFreeText: i%3 == 0, Options: choices(i)})
		}
		for _, status := range []string{"requested", "answered", "expired"} {
			for _, page := range []int{0, n} {
				r.Status = status
				c := draw(&r, title, held{Page: page, Own: slices.Repeat([]string{what}, n)})
				fits(t, c)
				line := permission.Reveal(permission.Command(input))
				if kind == "permission" && !strings.Contains(c.content, line) && !strings.Contains(c.file, line) {
					t.Errorf("command %q: got content %q, file %q, want it in one of them", line, c.content, c.file)
				}
			}
		}
	})
}

// fits tells of what Discord does not take.
func fits(t *testing.T, c card) {
	t.Helper()
	if n := width(c.content); n > mostContent || n == 0 {
		t.Errorf("content: got %d units, %q, want 1 to %d", n, c.content, mostContent)
	}
	if len(c.rows) > mostRows {
		t.Errorf("rows: got %d, want %d at most", len(c.rows), mostRows)
	}
	ids := map[string]bool{}
	for _, row := range c.rows {
		list := row.(discord.ActionRowComponent).Components
		if len(list) == 0 || len(list) > mostInRow {
			t.Errorf("controls in a row: got %d, want 1 to %d", len(list), mostInRow)
		}
		for _, one := range list {
			problem := ""
			switch one := one.(type) {
			case discord.ButtonComponent:
				if one.Label == "" || width(one.Label) > mostLabel {
					problem = fmt.Sprintf("a label %q", one.Label)
				}
			case discord.StringSelectMenuComponent:
				problem = wrongMenu(one)
			}
			if id := one.GetCustomID(); problem != "" || id != "" && (ids[id] || len(id) > 100) {
				t.Errorf("control: got the problem %q, id %q, want none and an id of its own", problem, id)
			}
			ids[one.GetCustomID()] = true
		}
	}
}

func wrongMenu(m discord.StringSelectMenuComponent) string {
	if len(m.Options) == 0 || len(m.Options) > mostChoices || m.MaxValues > len(m.Options) || width(m.Placeholder) > mostHint {
		return fmt.Sprintf("a menu of %d, %d at most, %q", len(m.Options), m.MaxValues, m.Placeholder)
	}
	for _, o := range m.Options {
		if o.Label == "" || width(o.Label) > mostChoice || width(o.Description) > mostChoice || o.Value == "" {
			return fmt.Sprintf("a choice %+v", o)
		}
	}
	return ""
}
