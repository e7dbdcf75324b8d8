package session

import (
	"encoding/json"
	"testing"

	"deskhand/backend/lifecycle"
)

// Whatever an agent asks for, and whatever is answered: nothing panics, and what is taken for an answer fits.
func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","minLength":1,"pattern":"^a"},"b":{"type":"array","items":{"enum":["x"]}}},"required":["a"]}`), []byte(`{"a":"ab","b":["x"]}`), "x")
	f.Add([]byte(`{"properties":{"n":{"type":"integer","minimum":1}}}`), []byte(`{"n":1.5}`), "7")
	f.Add([]byte(`{"$ref":"http://127.0.0.1/x","properties":{}}`), []byte(`{}`), "")
	f.Add([]byte(`{"properties":{"q":{"type":"string","oneOf":[{"const":"a"}],"_meta":{"codex":{"isOther":true}}},"q_note":{"type":"string"}},"required":["q"]}`), []byte(`[]`), "own")
	f.Fuzz(func(t *testing.T, schema, content []byte, word string) {
		r := &openRequest{Request: Request{ID: "r", Kind: kindForm, Title: word, Schema: schema}, method: "elicitation/create"}
		if showable(schema) != (len(r.asks()) > 0) {
			t.Errorf("%s is shown, and asks nothing", schema)
		}
		if !showable(schema) {
			return
		}
		status, result, err := r.respond(Answer{Action: "accept", Content: content})
		if err == nil && (status != lifecycle.StatusAnswered || result == nil || !json.Valid(content)) {
			t.Errorf("%s for %s is %s %v", content, schema, status, result)
		}
		a, err := r.fromLists([][]string{{word}, {word, word}})
		if err != nil {
			return
		}
		if _, _, err := r.respond(a); err == nil {
			r.Status, r.Answer = lifecycle.StatusAnswered, mustJSON(a)
		}
		for _, e := range r.questionEvents() {
			mustJSON(e)
		}
	})
}
