package editor

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published are the definitions of ACP v1's published schema, by method and kind (Request, Response, Notification).
//
//nolint:gochecknoglobals // to compile them takes longer than most of the tests that use them
var published = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	const name = "acp-v1-schema.json"
	file, err := os.Open("../demoagent/testdata/" + name + ".gz")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(unpacked)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	list := map[string]*jsonschema.Schema{}
	for definition, body := range document.(map[string]any)["$defs"].(map[string]any) {
		method, _ := body.(map[string]any)["x-method"].(string)
		for _, kind := range []string{"Request", "Response", "Notification"} {
			if method != "" && strings.HasSuffix(definition, kind) {
				list[method+" "+kind] = compiler.MustCompile(name + "#/$defs/" + definition)
			}
		}
	}
	return list, nil
})

// check fails the test when a message to the editor violates the schema. answered is the method that a response belongs to.
func (m received) check(t *testing.T, answered string) {
	t.Helper()
	list, err := published()
	if err != nil {
		t.Error(err)
		return
	}
	what, raw := m.Method+" Notification", m.Params
	switch {
	case m.Error != nil:
		return
	case m.Method == "":
		what, raw = answered+" Response", m.Result
	case m.ID != nil:
		what = m.Method + " Request"
	}
	schema := list[what]
	if schema == nil {
		t.Errorf("%s is not in the schema", what)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: want no error, got error %v\nraw %.2000s", what, err, raw)
	}
}
