package tools

import (
	"encoding/json"
	"reflect"
	"testing"
)

// An agent is told in a sentence what is wrong with an argument, and not by the words of a decoder.
func TestWrongArgumentsAreExplained(t *testing.T) {
	add, ask, download := reflect.TypeFor[addInput](), reflect.TypeFor[askInput](), reflect.TypeFor[downloadInput]()
	for _, c := range []struct {
		in         reflect.Type
		text, want string
	}{
		{add, `{"paths":"a.png"}`, "paths must be a list of texts, and is a text."},
		{add, `{"paths":["a",5]}`, "paths must be a list of texts, and has a number in it."},
		{add, `{"path":["a"]}`, "path must be a text, and is a list."},
		{add, `{"filename":{"a":1}}`, "filename must be a text, and is an object."},
		{add, `"a.png"`, "The arguments must be an object, and are a text."},
		{add, `[1]`, "The arguments must be an object, and are a list."},
		{download, `{"downloadDir":true}`, "downloadDir must be a text, and is true or false."},
		{download, `{"downloadDir":1.5}`, "downloadDir must be a text, and is a number."},
		{ask, `{"prompt":5}`, "prompt must be a text, and is a number."},
		{ask, `{"prompt":"a","multiSelect":"yes"}`, "multiSelect must be true or false, and is a text."},
		{ask, `{"prompt":"a","options":"b"}`, "options must be a list of options, and is a text."},
		{ask, `{"questions":[{"prompt":[]}]}`, "questions.prompt must be a text, and is a list."},
		{ask, `{"questions":"Which?"}`, "questions must be a list of objects, and is a text."},
		{ask, `{"prompt":"a","options":[5]}`, "The arguments cannot be read: an option is a text, a pair of id and label, or an object with id and label."},
	} {
		err := json.Unmarshal([]byte(c.text), reflect.New(c.in).Interface())
		if err == nil {
			t.Fatalf("decode of %s: got no error, want one", c.text)
		}
		if got := wrongArguments(err, c.in).Error(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
}
