package api

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is the OpenAPI document that the server is held to.
var published = sync.OnceValues(func() (*schemas, error) { //nolint:gochecknoglobals // compiled once, for all transcripts
	data, err := os.ReadFile("../../backend/httpapi/openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", doc); err != nil {
		return nil, err
	}
	return &schemas{compiler: c, paths: doc.(map[string]any)["paths"].(map[string]any)}, nil
})

// schemas compiles the schemas of a document as they are needed.
type schemas struct {
	paths    map[string]any
	mu       sync.Mutex // protects compiler, which caches
	compiler *jsonschema.Compiler
}

// check holds one answer against the document: its status and media type must stand there, and JSON must have that shape. What is no
// operation of the document must be refused.
func (s *schemas) check(t *testing.T, method, requestURL string, res *http.Response, body string) {
	t.Helper()
	u, err := url.Parse(requestURL)
	if err != nil {
		t.Fatal(err)
	}
	at := method + " " + u.EscapedPath() + " " + strconv.Itoa(res.StatusCode)
	template, operation := s.operation(method, u.EscapedPath())
	if operation == nil {
		if res.StatusCode < 400 {
			t.Errorf("%s: the document has no such operation", at)
		}
		return
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	answer, ok := operation["responses"].(map[string]any)[strconv.Itoa(res.StatusCode)].(map[string]any)
	if !ok {
		t.Errorf("%s: the document has no such status", at)
		return
	}
	pointer := "/paths/" + escape(template) + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(res.StatusCode)
	if ref, ok := answer["$ref"].(string); ok { // of a problem
		pointer = strings.TrimPrefix(ref, "#")
		if media != "application/problem+json" {
			t.Errorf(`%s: got %s, want "application/problem+json"`, at, media)
		}
	} else if content, _ := answer["content"].(map[string]any); content[media] == nil && (media != "" || body != "") {
		t.Errorf("%s: the document has no %q", at, media)
		return
	}
	if media != "application/json" && media != "application/problem+json" {
		return
	}
	s.mu.Lock()
	schema, err := s.compiler.Compile("openapi.json#" + pointer + "/content/" + escape(media) + "/schema")
	s.mu.Unlock()
	if err != nil {
		t.Fatal(at, err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: want no error, got error %v\nbody %.500s", at, err, body)
	}
}

// operation finds the path of the document that a request's path fits.
func (s *schemas) operation(method, path string) (string, map[string]any) {
	for template, item := range s.paths {
		want, got := strings.Split(template, "/"), strings.Split(path, "/")
		fits := len(want) == len(got)
		for n := 0; fits && n < len(want); n++ {
			fits = want[n] == got[n] || strings.HasPrefix(want[n], "{") && got[n] != ""
		}
		if !fits {
			continue
		}
		operation, _ := item.(map[string]any)[strings.ToLower(method)].(map[string]any)
		return template, operation
	}
	return "", nil
}

func escape(segment string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(segment))
}
