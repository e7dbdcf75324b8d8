package llm

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func toolScript() []Turn {
	return []Turn{
		{When: "change", Steps: []Step{{Text: "So be it. ", Edit: &Edit{Path: "/a", Old: "x", New: "y"}}, {Text: "Changed."}}},
		{When: "ask", Steps: []Step{{Ask: &Ask{Question: "Which?", Options: []string{"Red", "Blue"}}}, {Text: "Thanks."}}},
		{When: "far", Steps: []Step{{MCP: "lighthouse"}, {Text: "Called."}}},
	}
}

func TestResponsesStreamItems(t *testing.T) {
	m := open(t, toolScript())
	tools := `"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"lighthouse"}]}]`
	ask := func(more string) string {
		return post(t, m, "/v1/responses", `{"model":"x","stream":true,`+tools+`,"input":[`+more+`]}`)
	}
	user := func(text string) string {
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`
	}
	body := ask(user("change it"))
	for _, part := range []string{`"delta":"be "`, `"type":"custom_tool_call"`, `*** Update File: /a\n@@\n-x\n+y\n`, "event: response.completed"} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	// A text and the call after it are one answer, so the second step comes.
	body = ask(user("change it") + `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So be it. "}]},
		{"type":"custom_tool_call","call_id":"1","name":"apply_patch","input":"p"},{"type":"custom_tool_call_output","call_id":"1","output":"done"}`)
	if !strings.Contains(body, "Changed.") {
		t.Errorf(`got %s, want with "Changed."`, body)
	}
	if body = ask(user("far")); !strings.Contains(body, `"namespace":"mcp__x"`) || !strings.Contains(body, `"name":"lighthouse"`) {
		t.Errorf("got body %s, want body with \"\\\"namespace\\\":\\\"mcp__x\\\"\" and body with \"\\\"name\\\":\\\"lighthouse\\\"\"", body)
	}
}

func TestGeminiStreamsParts(t *testing.T) {
	m := open(t, toolScript())
	ask := `{"tools":[{"functionDeclarations":[{"name":"run_shell_command"},
		{"name":"replace","parametersJsonSchema":{"properties":{"file_path":{},"old_string":{},"new_string":{}}}}]}],
		"contents":[{"role":"user","parts":[{"text":"change it"},{"inlineData":{"mimeType":"image/png","data":"AAEC"}}]}`
	path := "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
	body := post(t, m, path, ask+`]}`)
	if !strings.Contains(body, `"text":"be "`) || !strings.Contains(body, `"args":{"file_path":"/a","new_string":"y","old_string":"x"}`) {
		t.Errorf("post: got body %s, want body with \"\\\"text\\\":\\\"be \\\"\" and body with \"\\\"args\\\":{\\\"file_path\\\":\\\"/a\\\",\\\"new_string\\\":\\\"y\\\",\\\"old_string\\\":\\\"x\\\"}\"", body)
	}
	body = post(t, m, path, ask+`,{"role":"model","parts":[{"text":"So be it. "},{"functionCall":{"name":"replace","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"replace","response":{"output":"done"}}},{"text":"Please change it more."}]}]}`)
	if !strings.Contains(body, "Changed.") || !strings.Contains(body, `"finishReason":"STOP"`) {
		t.Errorf("post: got body %s, want body with \"Changed.\" and body with \"\\\"finishReason\\\":\\\"STOP\\\"\"", body)
	}
	first := m.Requests()[0]
	if first.Model != "gemini-x" || len(first.Messages) == 0 {
		t.Fatalf(`got first %+v, want first.Model "gemini-x" and some first.Messages`, first)
	}
	last := first.Messages[len(first.Messages)-1]
	if want := []File{{"image/png", []byte{0, 1, 2}}}; !slices.EqualFunc(last.Files, want, func(a, b File) bool { return a.MIME == b.MIME && bytes.Equal(a.Data, b.Data) }) {
		t.Errorf("got last %+v, want slices.EqualFunc(last.Files, want, func(a, b File) bool { return a.MIME == b.MIME && bytes.Equal(a.Data, b.Data) })", last)
	}
	if body = post(t, m, "/v1beta/models/gemini-x:countTokens", `{}`); !strings.Contains(body, "totalTokens") {
		t.Errorf(`post("/v1beta/models/gemini-x:countTokens", "{}"): got %s, want with "totalTokens"`, body)
	}
}

// A tool that is handed out by a search is searched for once, and the search is no step of the script.
func TestToolIsSearchedFor(t *testing.T) {
	m := open(t, toolScript())
	head := `{"tools":[{"name":"Bash"},{"name":"ToolSearch","input_schema":{"properties":{"query":{}}}}`
	rest := `],"messages":[{"role":"user","content":"far"}`
	body := post(t, m, "/v1/messages", head+rest+`]}`)
	if !strings.Contains(body, `"name":"ToolSearch"`) || !strings.Contains(body, `{"query":"lighthouse"}`) {
		t.Errorf("post(\"/v1/messages\"): got body %s, want body with \"\\\"name\\\":\\\"ToolSearch\\\"\" and body with \"{\\\"query\\\":\\\"lighthouse\\\"}\"", body)
	}
	searched := `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"ToolSearch","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"found"}]}`
	if body = post(t, m, "/v1/messages", head+`,{"name":"mcp__x__lighthouse"}`+rest+searched+`]}`); !strings.Contains(body, `"name":"mcp__x__lighthouse"`) {
		t.Errorf("post(\"/v1/messages\"): got %s, want with \"\\\"name\\\":\\\"mcp__x__lighthouse\\\"\"", body)
	}
	if body = post(t, m, "/v1/messages", head+rest+searched+`]}`); !strings.Contains(body, NoTool) {
		t.Errorf(`post("/v1/messages"): got %s, want with %v`, body, NoTool)
	}
	named := strings.Replace(searched, `"found"`, `"<function>{\"name\":\"mcp__y__lighthouse\"}"`, 1)
	if body = post(t, m, "/v1/messages", head+rest+named+`]}`); !strings.Contains(body, `"name":"mcp__y__lighthouse"`) {
		t.Errorf("post(\"/v1/messages\"): got %s, want with \"\\\"name\\\":\\\"mcp__y__lighthouse\\\"\"", body)
	}
}

func TestFilesOfEachAPI(t *testing.T) {
	for name, content := range map[string]string{
		"anthropic": `[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAEC"}}]`,
		"openai":    `[{"type":"image_url","image_url":{"url":"data:application/pdf;base64,AAEC"}}]`,
		"responses": `[{"type":"input_image","image_url":"data:application/pdf;base64,AAEC"}]`,
		"gemini":    `{"inlineData":{"mimeType":"application/pdf","data":"AAEC"}}`,
	} {
		files := filesIn(json.RawMessage(content))
		if len(files) != 1 || files[0].MIME != "application/pdf" || !bytes.Equal(files[0].Data, []byte{0, 1, 2}) {
			t.Errorf(`%s: got files %+v, want 1 in files, files[0].MIME "application/pdf" and files[0].Data []byte{0, 1, 2}`, name, files)
		}
	}
	if files := filesIn(json.RawMessage(`[{"type":"text","text":"data: none"},{"data":5,"mimeType":"x"}]`)); files != nil {
		t.Errorf("filesIn: got %+v, want nil", files)
	}
}

func TestEnvironWritesWhatAnAgentReads(t *testing.T) {
	m := open(t, nil)
	home := t.TempDir()
	for agent, file := range map[string]string{
		"claude": "", "opencode": "", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json", "qwen-code": ".qwen/settings.json", "github-copilot-cli": "",
	} {
		env, err := m.Environ(agent, home)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, value := range env {
			said += value + "\n"
		}
		if file != "" {
			data, err := os.ReadFile(filepath.Join(home, file))
			if err != nil {
				t.Fatal(err)
			}
			said += string(data)
		}
		if !strings.Contains(said, m.URL()) {
			t.Errorf("%s is not told of the model: %s", agent, said)
		}
	}
	if env, err := m.Environ("nobody", home); env != nil || err != nil {
		t.Errorf(`Environ("nobody"): got env %v, error %v, want env nil and no error`, env, err)
	}
}
