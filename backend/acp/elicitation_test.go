package acp_test

import (
	"encoding/json"
	"errors"
	"testing"

	"deskhand/backend/acp"
)

func TestElicitationKeepsFieldsThatAreValid(t *testing.T) {
	for _, test := range []struct {
		params string
		want   acp.Elicitation
	}{
		{`{"mode":"url","message":"go","elicitationId":"e","url":"https://example.com"}`, acp.Elicitation{Mode: "url", Message: "go", ID: "e", URL: "https://example.com"}},
		{`{"mode":"url","message":7,"elicitationId":null,"url":["x"]}`, acp.Elicitation{Mode: "url"}},
		{`{"message":"no mode"}`, acp.Elicitation{Message: "no mode"}},
	} {
		got, err := acp.ParseElicitation(json.RawMessage(test.params))
		if err != nil || got.Mode != test.want.Mode || got.Message != test.want.Message || got.ID != test.want.ID || got.URL != test.want.URL {
			t.Errorf("ParseElicitation(%s): got %+v, %v, want %+v", test.params, got, err, test.want)
		}
	}
	if got, err := acp.ParseElicitation(json.RawMessage(`[]`)); !errors.Is(err, acp.ErrShape) {
		t.Errorf("ParseElicitation([]): got %+v, %v, want %v", got, err, acp.ErrShape)
	}
}

func TestCompletedElicitationIsItsID(t *testing.T) {
	for message, want := range map[string]string{
		`{"method":"elicitation/complete","params":{"elicitationId":"e"}}`: "e",
		`{"method":"elicitation/complete","params":{"elicitationId":5}}`:   "5",
		`{"method":"elicitation/complete"}`:                                "",
		`not JSON`:                                                         "",
	} {
		if got := acp.CompletedElicitation([]byte(message)); got != want {
			t.Errorf("CompletedElicitation(%s): got %q, want %q", message, got, want)
		}
	}
}
