package llm

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func script() []Turn {
	return []Turn{{When: "write", Steps: []Step{
		{Text: "First this. ", Shell: "echo hi > file"},
		{Text: "Then that."},
	}}}
}

func open(t *testing.T, script []Turn) *Model {
	t.Helper()
	m, err := Open(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return m
}

func post(t *testing.T, m *Model, path, body string) string {
	t.Helper()
	response, err := http.Post(m.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got response.Status %s, answer %s, error %v, want no error and response.StatusCode http.StatusOK", path, response.Status, answer, err)
	}
	return string(answer)
}

// frames gives the data of server-sent events.
func frames(body string) []string {
	var all []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all = append(all, strings.TrimSpace(data))
		}
	}
	return all
}

const (
	openAITools    = `"tools":[{"type":"function","function":{"name":"read"}},{"type":"function","function":{"name":"bash"}}]`
	anthropicTools = `"tools":[{"name":"Read"},{"name":"Bash"}]`
)

func TestOpenAIStreamsTextAndThenTheCall(t *testing.T) {
	m := open(t, script())
	got := frames(post(t, m, "/v1/chat/completions", `{"model":"x","stream":true,`+openAITools+`,
		"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"please write"}]}]}`))
	var text, arguments, finish string
	for _, frame := range got[:len(got)-1] {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(frame), &chunk); err != nil {
			t.Fatalf("%v in %s", err, frame)
		}
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				arguments += call.Function.Name + " " + call.Function.Arguments
			}
		}
	}
	if text != "First this. " || finish != "tool_calls" || !strings.HasPrefix(arguments, "bash ") || !strings.Contains(arguments, `"echo hi \u003e file"`) {
		t.Errorf("text %q, call %q, finish %q", text, arguments, finish)
	}
	if got[len(got)-1] != "[DONE]" {
		t.Errorf("the last frame is %q", got[len(got)-1])
	}
}

func TestTheAnswerFollowsFromTheConversation(t *testing.T) {
	m := open(t, script())
	after := `{"model":"x",` + openAITools + `,"messages":[{"role":"user","content":"please write"},
		{"role":"assistant","content":"First this. ","tool_calls":[]},{"role":"tool","content":"hi"}]}`
	for range 2 { // a repeated request gets the same answer
		body := post(t, m, "/v1/chat/completions", after)
		if !strings.Contains(body, "Then that.") {
			t.Errorf(`post("/v1/chat/completions"): got %s, want with "Then that."`, body)
		}
	}
	body := post(t, m, "/v1/chat/completions", `{"messages":[{"role":"user","content":"please write"}]}`)
	if !strings.Contains(body, "Scripted title") {
		t.Errorf("a request without tools got %s", body)
	}
}

func TestAnthropicStreamsBlocks(t *testing.T) {
	m := open(t, script())
	got := frames(post(t, m, "/v1/messages", `{"model":"x","stream":true,`+anthropicTools+`,"messages":[{"role":"user","content":"please write"}]}`))
	var kinds []string
	for _, frame := range got {
		var event struct {
			Type  string
			Delta struct {
				StopReason string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(frame), &event); err != nil {
			t.Fatalf("%v in %s", err, frame)
		}
		kinds = append(kinds, event.Type+event.Delta.StopReason)
	}
	want := []string{
		"message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_deltatool_use", "message_stop",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got  %v\nwant %v", kinds, want)
	}
}

func TestAnthropicReminderBesideAResultIsNoPrompt(t *testing.T) {
	m := open(t, script())
	body := post(t, m, "/v1/messages", `{`+anthropicTools+`,"messages":[
		{"role":"user","content":"please write"},
		{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Bash","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"hi"},{"type":"text","text":"Remember: write"}]}]}`)
	if !strings.Contains(body, "Then that.") {
		t.Errorf(`post("/v1/messages"): got %s, want with "Then that."`, body)
	}
	last := m.Requests()[0].Messages
	if last[2].Role != "tool" || last[2].Text != "hi" {
		t.Errorf("recorded %+v", last)
	}
}

func TestHeldAnswerWaitsForRelease(t *testing.T) {
	m := open(t, []Turn{{When: "write", Steps: []Step{{Text: "Half", Hold: true}}}})
	ask := `{"stream":true,` + anthropicTools + `,"messages":[{"role":"user","content":"write"}]}`
	response, err := http.Post(m.URL()+"/v1/messages", "application/json", strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "Half") {
	}
	m.Release()
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if !slices.Contains(rest, "event: message_stop") {
		t.Errorf("after the release came %q", rest)
	}
}

func TestItIsNoProxy(t *testing.T) {
	m := open(t, script())
	proxy, err := url.Parse(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if response, err := client.Get("https://example.invalid/"); err == nil {
		response.Body.Close()
		t.Error("the tunnel opened")
	}
	if response, err := client.Get("http://example.invalid/"); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf(`Get("http://example.invalid/"): got response %v, error %v, want no error and response.StatusCode http.StatusForbidden`, response, err)
	} else {
		response.Body.Close()
	}
	if got, want := m.Foreign(), []string{"example.invalid:443", "example.invalid"}; !slices.Equal(got, want) {
		t.Errorf("noted %v, want %v", got, want)
	}
}
