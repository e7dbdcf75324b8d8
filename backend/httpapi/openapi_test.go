package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

// The document is committed, so that reviews show changes of the API; the server returns the document at /openapi.json.
func TestRuntimeDocumentIsCurrent(t *testing.T) {
	const file = "openapi.json"
	w := knock(direct(t, Config{}).Loopback(memoryAddr{}), "GET", "/openapi.json", "Authorization", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET /openapi.json: got %d %v, want 200 and JSON", w.Code, w.Header())
	}
	have := append(w.Body.Bytes(), '\n')
	if flag.Lookup("update").Value.String() == "true" { // see client_test.go
		if err := os.WriteFile(file, have, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s: got another document than the sources make, want that of go test ./backend/httpapi -run Document -update", file)
	}
}

// People read the document's operations: each must have a summary, its parameters, and every possible failure.
func TestOpenAPIDocumentIsComplete(t *testing.T) {
	a := direct(t, Config{})
	data, err := a.document()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID, Summary string
			Parameters           []struct{ Name, In, Description string }
			Responses            map[string]struct {
				Description string
				Ref         string `json:"$ref"`
			}
		}
		Components struct {
			Schemas   map[string]json.RawMessage
			Responses map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi: got %s, want 3.1.0", doc.OpenAPI)
	}
	ids := map[string]bool{}
	for _, e := range a.endpoints(newSpec()) {
		method, path, _ := strings.Cut(e.pattern, " ")
		op, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok || op.Summary == "" || op.OperationID == "" || ids[op.OperationID] {
			t.Errorf("%s: got %+v, want a summary and a unique operationId", e.pattern, op)
		}
		ids[op.OperationID] = true
		for _, p := range op.Parameters {
			if p.Description == "" {
				t.Errorf("%s: got no description of parameter %s, want one", e.pattern, p.Name)
			}
		}
		needs := []string{"421", "403"}
		if under(path, "/v1") {
			needs = append(needs, "401", "429")
		}
		for _, status := range needs {
			if op.Responses[status].Ref == "" {
				t.Errorf("%s: got no response %s, want it", e.pattern, status)
			}
		}
		for status, r := range op.Responses {
			name := strings.TrimPrefix(r.Ref, "#/components/responses/")
			if r.Description == "" && doc.Components.Responses[name].Description == "" {
				t.Errorf("%s: got no description of response %s, want one", e.pattern, status)
			}
		}
	}
	for _, m := range []string{`"Info"`, `"document"`, `"": `, ` null`} {
		if bytes.Contains(data, []byte(m)) {
			t.Errorf("the document: got %s in it, want it nowhere", m)
		}
	}
}
