package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPeekTellsKinds(t *testing.T) {
	for text, want := range map[string]Kind{
		`{"id":1,"method":"m"}`:                             Request,
		`{"method":"m","id":"1","params":{"id":2}}`:         Request,
		`{"id":null,"method":"m"}`:                          Request,
		`{"id":1,"method":"m","result":1}`:                  Request,
		`{"method":"m"}`:                                    Notification,
		`{"method":"","params":[]}`:                         Notification,
		`{"id":1,"result":null}`:                            Response,
		`{"id":1,"error":{"code":1}}`:                       Response,
		`{"id":1,"method":7,"result":{}}`:                   Response,
		`{"\u0069d":1,"m\u0065thod":"m"}`:                   Request,
		`{}`:                                                Other,
		`{"id":1}`:                                          Other,
		`{"result":1}`:                                      Other,
		`{"method":1}`:                                      Other,
		`{"METHOD":"m"}`:                                    Other,
		`{"params":{"method":"m"}}`:                         Other,
		`[{"id":1,"method":"m"}]`:                           Other,
		`"method"`:                                          Other,
		` 17 `:                                              Other,
		"\t{ \"id\" : 1 ,\r\n \"method\" : \"m\" }\n":       Request,
		`{"method":1,"method":"m"}`:                         Notification, // the last one counts
		`{"method":"m","method":1}`:                         Other,
		`{"id":{"a":["}"]},"method":"\"}","params":"{"}`:    Request,
		`{"jsonrpc":"2.0","id":-0.0e+00,"result":"\ud800"}`: Response,
	} {
		e, err := Peek([]byte(text))
		if err != nil || e.Kind != want {
			t.Errorf("Peek(%s): got kind %d, error %v, want kind %d", text, e.Kind, err, want)
		}
		if err == nil && string(e.Raw) != strings.TrimSpace(text) {
			t.Errorf("Raw of Peek(%s): got %s, want the trimmed text", text, e.Raw)
		}
	}
}

func TestPeekRefusesInvalidJSON(t *testing.T) {
	for _, text := range []string{
		`{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a":1}{}`, `1 2`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `0x1`,
		`tru`, `True`, `nul`, `NaN`, `"`, `"\x"`, `"\u12g4"`, "\"\t\"", "\"\x00\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"",
		"\x00", "\xef\xbb\xbf{}", `'a'`, "{\"a\":\"b\nc\"}", strings.Repeat("[", 20_000), `}`,
	} {
		_, err := Peek([]byte(text))
		if _, ok := errors.AsType[*SyntaxError](err); !ok {
			t.Errorf("Peek(%.40q) = %v; want a SyntaxError", text, err)
		}
	}
	for _, text := range []string{"", " \t\r\n "} {
		if _, err := Peek([]byte(text)); !errors.Is(err, ErrEmpty) {
			t.Errorf("Peek(%q) = %v; want ErrEmpty", text, err)
		}
	}
}

func TestMethodAndLineOfMessage(t *testing.T) {
	e, err := Peek([]byte(" {\"method\" : \"a\\u002fb\", \"params\": [1.0,\t\"x  y\"]}\r"))
	if err != nil || e.Method() != "a/b" {
		t.Fatalf("Method: got %q, error %v, want a/b", e.Method(), err)
	}
	if got := string(e.Line()); got != `{"method":"a\u002fb","params":[1.0,"x  y"]}` {
		t.Errorf("Line: got %s, want the message without white space", got)
	}
	e, _ = Peek([]byte(" {\"method\":\"x\"} "))
	if line := e.Line(); &line[0] != &e.Raw[0] {
		t.Error("a message without white space was copied")
	}
}

func key(t *testing.T, id string) Key {
	t.Helper()
	e, err := Peek([]byte(`{"method":"m","id":` + id + `}`))
	if err != nil {
		t.Fatalf("Peek with the id %s: got error %v, want none", id, err)
	}
	return e.Key()
}

func TestKeysCompareByValue(t *testing.T) {
	for _, same := range [][]string{
		{"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "100e-002", "1.000"},
		{"0", "-0", "0.0", "0e7", "-0e-5"},
		{"-12", "-12.0", "-1.2e1"},
		{"100000000000000000000", "1e20", "10E19"},
		{"123456789012345678901234567890", "123456789012345678901234567890.0"},
		{"1.5", "15e-1", "0.15e1"},
		{`"1"`, `"\u0031"`},
		{`"a/b"`, `"a\/b"`},
		{"null"},
		{`"null"`},
		{`""`},
		{"9007199254740993"},
		{"9007199254740992"}, // the same as a float, another as a value
		{"1e999999999999999999999"},
	} {
		for _, id := range same {
			if key(t, id) != key(t, same[0]) || key(t, id) == "" {
				t.Errorf("Key of %s: got %q, want %q, the key of %s", id, key(t, id), key(t, same[0]), same[0])
			}
		}
	}
	all := []string{"1", "0", "-12", "12", "1e20", "1.5", `"1"`, "null", `"null"`, `""`, "9007199254740993", "9007199254740992", "2", "10", `"a"`}
	for i, a := range all {
		for _, b := range all[:i] {
			if key(t, a) == key(t, b) {
				t.Errorf("Key of %s: got %q, want another than for %s", a, key(t, a), b)
			}
		}
	}
	for _, id := range []string{"true", "[1]", `{"a":1}`} {
		if k := key(t, id); k != "" {
			t.Errorf("Key of %s: got %q, want none", id, k)
		}
	}
}

func FuzzPeek(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"a":[true,false,null,-1.5e+7,"\u00e9\\ü"]}}`,
		"{ \"id\" : \"x\" ,\r\n\t\"result\" : { } }", `[[],{},"",0]`, `{"a":"\ud83d\ude00😀"}`, `{"a" "b"}`, "\"\xc3\x28\"", `01`, `-`, `"\u12`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Peek(data)
		// The standard library is the judge, but for UTF-8, which it repairs instead, and depth, where its count differs.
		if want := json.Valid(data) && utf8.Valid(data); (err == nil) != want && bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) < 9_000 {
			t.Fatalf("Peek(%q): got error %v, want valid %v", data, err, want)
		}
		if err != nil {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			t.Fatal(err)
		}
		if got := Compact(nil, data); !bytes.Equal(got, compact.Bytes()) {
			t.Fatalf("Compact = %q, want %q", got, compact.Bytes())
		}
		if !bytes.Equal(e.Line(), compact.Bytes()) {
			t.Fatalf("Line: got %q, want %q", e.Line(), compact.Bytes())
		}
		inPlace := Compact(data[:0], data)
		if !bytes.Equal(inPlace, compact.Bytes()) {
			t.Fatalf("Compact in place: got %q, want %q", inPlace, compact.Bytes())
		}
	})
}

// FuzzEnvelope compares what is found on an envelope with what a full decoding finds.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"method":"m"}`, `{"id":null,"result":0}`, `{"\u0069d":"\u0031","error":{}}`, `{"id":1,"id":2,"method":3,"method":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Peek(data)
		var fields map[string]json.RawMessage
		if err != nil || json.Unmarshal(data, &fields) != nil || fields == nil {
			return
		}
		if !bytes.Equal(e.ID, fields["id"]) {
			t.Errorf("id %q, want %q", e.ID, fields["id"])
		}
		var method string
		hasMethod := len(fields["method"]) > 0 && fields["method"][0] == '"'
		if hasMethod {
			_ = json.Unmarshal(fields["method"], &method)
		}
		if e.Method() != method {
			t.Errorf("method %q, want %q", e.Method(), method)
		}
		_, hasID := fields["id"]
		_, hasResult := fields["result"]
		_, hasError := fields["error"]
		want := Other
		switch {
		case hasMethod && hasID:
			want = Request
		case hasMethod:
			want = Notification
		case hasID && (hasResult || hasError):
			want = Response
		}
		if e.Kind != want {
			t.Errorf("kind %d, want %d", e.Kind, want)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("1", "1.0")
	f.Add("-0", "0e9")
	f.Add("12e-3", "0.012")
	f.Add("999999999999999999", "1e18")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 100 || len(b) > 100 {
			return
		}
		ea, err1 := Peek([]byte(`{"id":` + a + `}`))
		eb, err2 := Peek([]byte(`{"id":` + b + `}`))
		if err1 != nil || err2 != nil {
			return
		}
		x, ok1 := exact(string(ea.ID))
		y, ok2 := exact(string(eb.ID))
		if !ok1 || !ok2 {
			return
		}
		if same := x.Cmp(y) == 0; same != (ea.Key() == eb.Key()) {
			t.Errorf("keys of %s and %s: got %q and %q, want equal %v", a, b, ea.Key(), eb.Key(), same)
		}
	})
}

// exact is the value of a number with an exponent that can be computed with.
func exact(token string) (*big.Rat, bool) {
	if token == "" || strings.ContainsAny(token[:1], `"ntf[{`) {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(token), "e"); ok && len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(token)
}

func TestBuildersWriteFrames(t *testing.T) {
	request, err := NewRequest(json.RawMessage("1.0"), "a/b", map[string]string{"x": "<&>\u2028"})
	if err != nil || string(request) != `{"jsonrpc":"2.0","id":1.0,"method":"a/b","params":{"x":"<&>\u2028"}}` {
		t.Errorf("NewRequest: got %s, error %v, want the frame with the id 1.0", request, err)
	}
	notification, err := NewNotification("n", nil)
	if err != nil || string(notification) != `{"jsonrpc":"2.0","method":"n"}` {
		t.Errorf("NewNotification: got %s, error %v, want the frame without params", notification, err)
	}
	response, err := NewResponse(json.RawMessage(`"x"`), nil)
	if err != nil || string(response) != `{"jsonrpc":"2.0","id":"x","result":{}}` {
		t.Errorf("NewResponse: got %s, error %v, want an empty object", response, err)
	}
	failure, err := NewErrorResponse(json.RawMessage("7"), &Error{Code: CodeMethodNotFound, Message: "no"})
	if err != nil || string(failure) != `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}` {
		t.Errorf("NewErrorResponse: got %s, error %v, want the code -32601", failure, err)
	}
	if _, err := NewNotification("n", func() {}); err == nil {
		t.Error("what cannot be encoded was")
	}
}

// update is a message of the size and shape that agents stream.
const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk",` +
	`"content":{"type":"text","text":"a few words of an answer, as they come"}}}}`

func BenchmarkPeek(b *testing.B) {
	data := []byte(update)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Peek(data); err != nil {
			b.Fatal(err)
		}
	}
}
