// Package llm hides a language model that follows a test's script: the model answers the four APIs that coding agents speak, OpenAI's chat
// completions and responses, Anthropic's messages and Google's generateContent, and records the requests.
//
// The answer depends on the conversation in the request alone, not on the number of earlier requests, so that an agent may repeat a
// request, or ask for a title in between, without getting out of step. The same port refuses to be a proxy: agents that use the port as
// their proxy reveal the other addresses that they want to reach, and do not reach them.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Turn is the model's work on a prompt.
type Turn struct {
	When  string `json:"when"` // a part of the prompt's text
	Steps []Step `json:"steps"`
}

// Step is an answer of the model. With Shell, Read, Edit, Ask, Plan, Delegate or MCP the answer ends in a call of the agent's own tool for that work,
// and the agent's next request gets the next step. An agent that offers no such tool is answered NoTool.
type Step struct {
	Text  string `json:"text,omitempty"`
	Shell string `json:"shell,omitempty"` // a command
	Read  string `json:"read,omitempty"`  // the absolute path of a file
	Edit  *Edit  `json:"edit,omitempty"`
	Ask   *Ask   `json:"ask,omitempty"`
	Plan  string `json:"plan,omitempty"` // a plan, to be approved before the agent carries out the plan
	// Delegate is the prompt of a subagent, which works in the background. The subagent's own requests have that prompt.
	Delegate string `json:"delegate,omitempty"`
	MCP      string `json:"mcp,omitempty"`   // a tool of an MCP server; agents add their own prefixes
	Input    object `json:"input,omitempty"` // input of the MCP tool
	Hold     bool   `json:"hold,omitempty"`  // after the text the answer stands still until Release or until the agent goes away
}

// Edit replaces a text that stands in a file once.
type Edit struct {
	Path string `json:"path"` // absolute
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Ask is a question with a choice.
type Ask struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

// NoTool is the answer to an agent that does not offer the tool of a step.
const NoTool = "There is no tool for this."

// Request is a request of an agent.
type Request struct {
	API      string // "openai", "responses", "anthropic", "gemini", or the method and path of a route that is not there
	Model    string
	Stream   bool
	Tools    []string
	Messages []Message
	Body     []byte // unchanged

	freeform map[string]bool    // tools that take a text instead of JSON
	inputs   map[string]inputOf // of the tools
}

// Message is a message of a conversation: of user, assistant, system, or tool (a tool's result).
type Message struct {
	Role  string
	Text  string
	Calls []string // names of the tools that an assistant called
	Files []File   // attachments beside the text
}

// File is an attachment as it reached the model.
type File struct {
	MIME string
	Data []byte
}

// Model is a running scripted model on a port of the loopback interface.
type Model struct {
	script   []Turn
	server   *http.Server
	listener net.Listener
	served   chan struct{}
	released chan struct{}
	release  sync.Once

	mu       sync.Mutex // protects the fields below
	requests []Request
	foreign  []string
}

// Open starts a model with a script on addr, for example "127.0.0.1:0".
func Open(ctx context.Context, addr string, script []Turn) (*Model, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	m := &Model{script: script, listener: listener, served: make(chan struct{}), released: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.chatCompletions)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1beta/models/{call}", m.generate)
	mux.HandleFunc("POST /v1/messages/count_tokens", m.countTokens)
	mux.HandleFunc("HEAD /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.record(Request{API: r.Method + " " + r.URL.Path})
		http.NotFound(w, r)
	})
	m.server = &http.Server{Handler: m.refuseProxying(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(listener) // always ErrServerClosed: Close is the only way out
	}()
	return m, nil
}

// URL is the address of the model without a trailing slash; OpenAI's API is under URL()+"/v1", Anthropic's under URL().
func (m *Model) URL() string { return "http://" + m.listener.Addr().String() }

// Requests returns the requests so far.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Foreign returns the hosts that somebody tried to reach through the model as a proxy.
func (m *Model) Foreign() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.foreign)
}

// Release lets every held answer go on, those to come too.
func (m *Model) Release() { m.release.Do(func() { close(m.released) }) }

// Close ends the model and its connections.
func (m *Model) Close() error {
	m.Release()
	err := m.server.Close()
	<-m.served
	return err
}

func (m *Model) refuseProxying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.URL.IsAbs() {
			m.mu.Lock()
			m.foreign = append(m.foreign, r.Host)
			m.mu.Unlock()
			http.Error(w, "no network in tests", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (m *Model) record(r Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
}

// answer is a step in the form for the agent that asks: Tool is the agent's own name of the tool.
type answer struct {
	Step

	Tool     string
	Input    string // the tool's input as JSON, or as a text
	Freeform bool   // the input is a text
	ID       string // of the tool call
}

// decide finds the step for a conversation. Agents ask for titles and summaries without offering a shell tool; those get a few words.
func (m *Model) decide(r Request) answer {
	if _, _, ok := r.tool(Step{Shell: "true"}); !ok {
		return answer{Step: Step{Text: "Scripted title"}}
	}
	prompt, turn := m.find(r.Messages)
	if prompt < 0 {
		return answer{Step: Step{Text: "The script has nothing about this."}}
	}
	done, searched := 0, 0
	for _, message := range r.Messages[prompt+1:] {
		switch {
		case message.Role != "assistant":
		case slices.ContainsFunc(message.Calls, isSearch):
			searched++
		default:
			done++
		}
	}
	if done >= len(turn.Steps) {
		return answer{Step: Step{Text: "The script is at its end."}}
	}
	step := turn.Steps[done]
	a := answer{Step: step, ID: fmt.Sprintf("call_%d_%d_%d", prompt, done, searched)}
	if !step.calls() {
		return a
	}
	name, input, ok := r.tool(step)
	switch {
	case ok:
	case searched == 0:
		name, input, ok = r.search(step)
	default:
		name, ok = found(step, r.Messages[prompt+1:])
		input = step.input()
		if step.Plan != "" {
			input = object{"plan": step.Plan}
		}
	}
	if !ok {
		return answer{Step: Step{Text: NoTool}}
	}
	a.Tool, a.Freeform = name, r.freeform[name]
	if text, ok := input.(string); ok {
		a.Input = text
		return a
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return answer{Step: Step{Text: err.Error()}}
	}
	a.Input = string(encoded)
	return a
}

// find returns the position of the last prompt that the script knows, and the turn for that prompt.
func (m *Model) find(messages []Message) (int, Turn) {
	for i, message := range slices.Backward(messages) {
		if message.Role != "user" {
			continue
		}
		for _, turn := range m.script {
			if strings.Contains(message.Text, turn.When) {
				return i, turn
			}
		}
	}
	return -1, Turn{}
}

// pieces splits a text as a model would: after words.
func pieces(text string) []string { return strings.SplitAfter(text, " ") }

// hold stands still as the step asks; false means that the agent went away.
func (m *Model) hold(ctx context.Context, a answer) bool {
	if !a.Hold {
		return true
	}
	select {
	case <-m.released:
		return true
	case <-ctx.Done():
		return false
	}
}

// textOf reads a content field: a string, or a list of blocks of which those with a text are taken.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var all []string
	for _, block := range blocks {
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}

const bodyLimit = 64 << 20

// read parses a request into q, an API's form of requests, records the request, and chooses the answer; ok is false when the request was
// refused.
func (m *Model) read(w http.ResponseWriter, r *http.Request, q interface{ request() Request }) (a answer, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err == nil {
		err = json.Unmarshal(body, q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return answer{}, false
	}
	request := q.request()
	request.Body = body
	m.record(request)
	return m.decide(request), true
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the agent may have gone
}

// stream writes server-sent events; the first failure is kept, and later calls do nothing.
type stream struct {
	w   http.ResponseWriter
	err error
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &stream{w: w}
}

// send writes an event; name may be empty, data is JSON unless data is a string.
func (s *stream) send(name string, data any) {
	if s.err != nil {
		return
	}
	text, ok := data.(string)
	if !ok {
		encoded, err := json.Marshal(data)
		if err != nil {
			s.err = err
			return
		}
		text = string(encoded)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	_, err := fmt.Fprintf(s.w, "%sdata: %s\n\n", name, text)
	s.err = errors.Join(err, http.NewResponseController(s.w).Flush())
}
