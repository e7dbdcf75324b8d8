package demoagent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are the published JSON schemas of ACP v1; testdata/README.md names their source.
type schemas struct {
	stable   map[string]*jsonschema.Schema // by definition
	unstable *jsonschema.Schema            // PromptResponse with the unstable usage
	forked   *jsonschema.Schema            // ForkSessionResponse, whose method is unstable
	byMethod map[string]map[string]string  // method -> Request, Response or Notification -> definition
}

//nolint:gochecknoglobals // to compile them takes longer than most of the tests that use them
var published = sync.OnceValue(func() schemas {
	s := schemas{stable: map[string]*jsonschema.Schema{}, byMethod: map[string]map[string]string{}}
	compiler := jsonschema.NewCompiler()
	definitions := readSchema(compiler, "acp-v1-schema.json")
	for name, definition := range definitions {
		s.stable[name] = compiler.MustCompile("acp-v1-schema.json#/$defs/" + name)
		method, _ := definition.(map[string]any)["x-method"].(string)
		if method == "" {
			continue
		}
		if s.byMethod[method] == nil {
			s.byMethod[method] = map[string]string{}
		}
		for _, kind := range []string{"Request", "Response", "Notification"} {
			if strings.HasSuffix(name, kind) {
				s.byMethod[method][kind] = name
			}
		}
	}
	readSchema(compiler, "acp-v1-schema.unstable.json")
	s.unstable = compiler.MustCompile("acp-v1-schema.unstable.json#/$defs/PromptResponse")
	s.forked = compiler.MustCompile("acp-v1-schema.unstable.json#/$defs/ForkSessionResponse")
	return s
})

func readSchema(compiler *jsonschema.Compiler, name string) map[string]any {
	file, err := os.Open("testdata/" + name + ".gz")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(unpacked)
	if err != nil {
		panic(err)
	}
	if err := compiler.AddResource(name, document); err != nil {
		panic(err)
	}
	return document.(map[string]any)["$defs"].(map[string]any)
}

// extension reports whether the agent uses a method outside ACP on purpose.
func extension(method string) bool {
	return method == questionMethod || method == "demo/unknown_request" || method == "_demo/vendor_request"
}

// checkFrame fails the test when a message of the agent violates the schema. answered is the method that a response belongs to.
func checkFrame(t *testing.T, m received, answered string) {
	t.Helper()
	if m.Version != "2.0" {
		t.Errorf("jsonrpc is %q in %.300s", m.Version, m.raw)
	}
	s := published()
	switch {
	case m.Method != "" && extension(m.Method):
	case m.Method != "" && m.ID == nil:
		checkValue(t, s.stable[s.byMethod[m.Method]["Notification"]], m.Method, m.Params)
	case m.Method != "":
		checkValue(t, s.stable[s.byMethod[m.Method]["Request"]], m.Method, m.Params)
	case m.Error != nil:
		checkValue(t, s.stable["Error"], "error of "+answered, m.Error)
	case answered == "session/fork":
		checkValue(t, s.forked, "result of "+answered, m.Result)
	case answered == steeringMethod: // no schema has it
	default:
		checkValue(t, s.stable[s.byMethod[answered]["Response"]], "result of "+answered, m.Result)
		if answered == "session/prompt" {
			checkValue(t, s.unstable, "result of "+answered, m.Result)
		}
	}
}

func checkValue(t *testing.T, schema *jsonschema.Schema, what string, raw json.RawMessage) {
	t.Helper()
	if schema == nil {
		t.Errorf("%s is not in the schema", what)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v\nin %.1000s", what, err, raw)
	}
}
