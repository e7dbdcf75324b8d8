package jsonerr

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestText(t *testing.T) {
	for data, want := range map[string]string{
		"":                         "",
		"{}":                       "{}",
		"\xef\xbb\xbf{}":           "{}",
		"\xef\xbb":                 "\xef\xbb",
		"\xef\xbb\xbf\xef\xbb\xbf": "\xef\xbb\xbf", // the second one is a character
		"{\xef\xbb\xbf}":           "{\xef\xbb\xbf}",
	} {
		if got := string(Text([]byte(data))); got != want {
			t.Errorf("%q: got %q, want %q", data, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]int{
		"{\n  \"a\": 1,\n}":         3,
		"{\n  \"a\" 1\n}":           2,
		"{\n  \"a\": \"text\"\n}\n": 2, // it has to be a number
		"{\n  \"a\": 1":             2, // cut off
	} {
		var value struct{ A int }
		err := json.Unmarshal([]byte(text), &value)
		if err == nil {
			t.Errorf("%q can be read", text)
		}
		if got := Line([]byte(text), err); got != want {
			t.Errorf("%q: got line %d of %q, want %d", text, got, err, want)
		}
	}
	if got := Line([]byte("{\n}"), errors.New("something else")); got != 2 {
		t.Errorf("an error without a place: got line %d, want the last one", got)
	}
}
