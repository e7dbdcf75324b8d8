package session_test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
)

// acpSchema compiles the published schema, and returns a function that finds a method's Request, Notification or Response.
func acpSchema(t *testing.T) func(method, kind string) *jsonschema.Schema {
	t.Helper()
	document := acpDocument(t)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("acp.json", document); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for name, def := range document.(map[string]any)["$defs"].(map[string]any) {
		method, _ := def.(map[string]any)["x-method"].(string)
		for _, kind := range []string{"Request", "Notification", "Response"} {
			if method != "" && strings.HasSuffix(name, kind) {
				names[method+" "+kind] = name
			}
		}
	}
	return func(method, kind string) *jsonschema.Schema {
		name, ok := names[method+" "+kind]
		if !ok {
			return nil
		}
		return c.MustCompile("acp.json#/$defs/" + name)
	}
}

func acpDefinitions(t *testing.T) map[string]any {
	t.Helper()
	return acpDocument(t).(map[string]any)["$defs"].(map[string]any)
}

// acpMethods returns the methods of the published schema, each with the side that serves it.
func acpMethods(t *testing.T) map[string]string {
	t.Helper()
	sides := map[string]string{}
	for _, def := range acpDefinitions(t) {
		if method, ok := def.(map[string]any)["x-method"].(string); ok {
			sides[method] = def.(map[string]any)["x-side"].(string)
		}
	}
	return sides
}

func acpDocument(t *testing.T) any {
	t.Helper()
	file, err := os.Open("../demoagent/testdata/acp-v1-schema.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

type wire struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  any             `json:"params"`
	Result  any             `json:"result"`
	Error   any             `json:"error"`
}

func TestSentFramesFitSchema(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	answerNext := func(prompt string, a func(requests.Request) requests.Answer) {
		t.Helper()
		d.prompt(s.ID, prompt)
		r := d.request(s.ID)
		d.answer(r, a(r))
		d.idle(s.ID)
	}
	answerNext("permission", func(r requests.Request) requests.Answer {
		return requests.Answer{OptionID: optionOf(t, r, "allow_once")}
	})
	answerNext("form", func(requests.Request) requests.Answer { return requests.Answer{Action: "decline"} })
	answerNext("form", func(requests.Request) requests.Answer { return requests.Answer{Action: "cancel"} })
	answerNext("hologram", func(requests.Request) requests.Answer { return requests.Answer{Action: "cancel"} })
	answerNext("unknown request", func(requests.Request) requests.Answer { return requests.Answer{Action: "cancel"} })
	for _, o := range d.get(s.ID).ConfigOptions {
		value := json.RawMessage(`true`)
		if o.Type == "select" {
			value, _ = json.Marshal(o.Choices[0].Value)
		}
		if err := d.SetConfig(t.Context(), s.ID, o.ID, value); err != nil {
			t.Fatal(err)
		}
	}
	d.prompt(s.ID, "permission")
	d.request(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })

	definition := acpSchema(t)
	asked := map[string]string{} // the agent's requests, by id
	seen := map[string]bool{}
	for dir, data := range d.journal(s.ID) {
		var m wire
		if dir == "note" || json.Unmarshal(data, &m) != nil {
			continue
		}
		if dir == "in" {
			if m.Method != "" && m.ID != nil {
				asked[string(m.ID)] = m.Method
			}
			continue
		}
		check := func(method, kind string, value any) {
			t.Helper()
			seen[method+" "+kind] = true
			schema := definition(method, kind)
			if schema == nil {
				t.Errorf("%s %s is not in the schema: %s", method, kind, data)
			} else if err := schema.Validate(value); err != nil {
				t.Errorf("%s %s against the schema: got %v, want it valid: %s", method, kind, err, data)
			}
		}
		switch {
		case m.Version != "2.0":
			t.Errorf("no JSON-RPC 2.0: %s", data)
		case m.Method != "" && m.ID != nil:
			check(m.Method, "Request", m.Params)
		case m.Method != "":
			check(m.Method, "Notification", m.Params)
		case m.Error == nil:
			check(asked[string(m.ID)], "Response", m.Result)
		}
	}
	for _, want := range []string{
		"initialize Request", "session/new Request", "session/resume Request", "session/prompt Request", "session/set_config_option Request",
		"session/cancel Notification", "session/request_permission Response", "elicitation/create Response",
	} {
		if !seen[want] {
			t.Errorf("no %s was sent", want)
		}
	}
}
