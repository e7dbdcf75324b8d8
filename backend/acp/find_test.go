package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// wide is a text in UTF-16, with its mark or without.
func wide(text string, mark, big bool) string {
	var b []byte
	units := utf16.Encode([]rune(text))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func TestFindReadsMessagesAmongOtherText(t *testing.T) {
	t.Parallel()
	const m, other = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`, `{"jsonrpc":"2.0","method":"session/update","params":{}}`
	for line, want := range map[string][]string{ // the messages, and last the rest
		"\x1b[0m" + m:                         {m, ""},
		"\x1b]0;tool: ready\x07" + m:          {m, ""},
		"\x1b]2;tool\x1b\\" + m + "\x1b[0m":   {m, ""},
		"\x1b[?25l\x1b[2K\x1b[1G" + m:         {m, ""},
		"\x1b]0;never ended" + m:              {m, ""},
		"\x1b]0;{\"a\":1}\x07" + m:            {m, ""},
		"\x1b]11;?\x1b\\\x1b[c" + m:           {m, ""},
		"\ufeff" + m:                          {m, ""},
		"\ufeff\ufeff" + m + "\ufeff":         {m, ""},
		"\x00" + m + "\x00\x00":               {m, ""},
		"\x08\x08" + m + "\x04\x1a":           {m, ""},
		"Loading… " + m:                       {m, "Loading…"},
		"\rLoading 10%\rLoading 100%\r" + m:   {m, "Loading 10%Loading 100%"},
		"[info] " + m:                         {m, "[info]"},
		"12:00:01 INFO agent: " + m:           {m, "12:00:01 INFO agent:"},
		"data: " + m:                          {m, "data:"},
		"it's 5\" {wide}: " + m:               {m, `it's 5" {wide}:`},
		"> " + m:                              {m, ">"},
		m + " done":                           {m, "done"},
		m + "\x1b[0m":                         {m, ""},
		m + ",":                               {m, ","},
		m + other:                             {m, other, ""},
		m + "\r" + other + "\r":               {m, other, ""},
		m + " and " + other + " too":          {m, other, "and too"},
		`{"jsonrpc":"2.0","met` + m:           {m, `{"jsonrpc":"2.0","met`},
		`{"level":"info"}` + m:                {m, `{"level":"info"}`},
		"[info] " + `{"id":1,"result":{}}`:    {`{"id":1,"result":{}}`, "[info]"},
		"[info] " + `{"method":"a/b"}`:        {`{"method":"a/b"}`, "[info]"},
		wide(m, true, false):                  {m, ""},
		wide(m, true, true):                   {m, ""},
		wide(m, false, false):                 {m, ""},
		wide(m, false, true):                  {m, ""},
		"\x00" + wide(m+"\r", false, false):   {m, ""}, // behind a line feed in UTF-16
		"\x00" + wide(m+"\r", true, false):    {m, ""},
		wide("Грузится "+m, true, false) + "": {m, "Грузится"},
		"\x1b[32m{\x1b[0m\"id\":1,\x1b[33m\"result\"\x1b[0m:{}}": {`{"id":1,"result":{}}`, ""},

		// Words that only look as if the message were logged.
		"Loading sentence-transformers… " + m: {m, "Loading sentence-transformers…"},
		"Presenting [sentry] consent " + m:    {m, "Presenting [sentry] consent"},
		"Sending telemetry… " + m:             {m, "Sending telemetry…"},
		"Request sent. Waiting... " + m:       {m, "Request sent. Waiting..."},
		"forgot key, resend-api on " + other:  {other, "forgot key, resend-api on"},

		// What other libraries take for JSON.
		`{"id":1,"result":NaN}`:                              {`{"id":1,"result":null}`, ""},
		`{"id":1,"result":[Infinity, -Infinity,-0,-0.0]}`:    {`{"id":1,"result":[null, null,-0,-0.0]}`, ""},
		"{\"id\":1,\"result\":\"a\tb\x1b[0m\"}":              {`{"id":1,"result":"a\u0009b\u001b[0m"}`, ""},
		"{\"id\":1,\"result\":\"caf\xe9 \xff\"}":             {"{\"id\":1,\"result\":\"caf\ufffd \ufffd\"}", ""},
		"{\"id\":1,\"result\":\"\xed\xa0\xbd\xed\xb8\x80\"}": {`{"id":1,"result":"😀"}`, ""},
		"{\"id\":1,\"result\":\"\xed\xa0\xbd!\xc0\x80\"}":    {"{\"id\":1,\"result\":\"\ufffd!\ufffd\ufffd\"}", ""},
		`{"id":1,"result":"it\'s C:\x"}`:                     {`{"id":1,"result":"it\\'s C:\\x"}`, ""},
		`{"id":1,"result":"NaN{\"","x":NaN}`:                 {`{"id":1,"result":"NaN{\"","x":null}`, ""},

		// What is no message stays what it is.
		"Loading…":                                               {"Loading…"},
		"\x1b[0m\ufeff\x00":                                      {""},
		`{"level":"info"} x`:                                     {`{"level":"info"} x`},
		`[info] {"a":{"id":1,"result":2}}`:                       {`[info] {"a":{"id":1,"result":2}}`},
		`[info] {"method":"GET","path":"/","id":7}`:              {`[info] {"method":"GET","path":"/","id":7}`},
		`[info] {"method":"GET"}`:                                {`[info] {"method":"GET"}`},
		`[debug] {"jsonrpc":"2.0","id":1,"method":"initialize"}`: {`[debug] {"jsonrpc":"2.0","id":1,"method":"initialize"}`},
		`[debug] received ` + m:                                  {"[debug] received " + m},
		`[12.5] got: ` + m:                                       {"[12.5] got: " + m},
		`Ready. Sent #1 ` + m:                                    {"Ready. Sent #1 " + m},
		`rpc_recv ` + m:                                          {"rpc_recv " + m},
		`<-- ` + m:                                               {"<-- " + m},
		`--> ` + other:                                           {"--> " + other},
		`Sending ` + other:                                       {"Sending " + other},
		`"` + strings.ReplaceAll(m, `"`, `\"`) + `" x`:           {`"` + strings.ReplaceAll(m, `"`, `\"`) + `" x`},
		`{"jsonrpc":"2.0","id":1,"result":`:                      {`{"jsonrpc":"2.0","id":1,"result":`},
		"{'id':1,'result':{}}":                                   {"{'id':1,'result':{}}"},
	} {
		if _, err := Peek([]byte(line)); err == nil {
			t.Fatalf("Peek(%q): got a message, want an error", line)
		}
		f := Find([]byte(line))
		var got []string
		for _, e := range f.Messages {
			got = append(got, string(e.Raw))
		}
		if got = append(got, f.Rest); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", line, got, want)
		}
	}
}

// A line of nothing but what could begin a message costs no more than a line.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"{", `{"a":`, `{"a":[`, "{}", `{"id":1,"result":`, `{"id":1,"result":1}x`, "\x1b{"} {
		line := []byte(strings.Repeat(unit, 1<<20/len(unit)))
		if f := Find(line); len(f.Rest) > len(line)+len(f.Messages) {
			t.Errorf("Find of many %q: got a rest of %d bytes, want %d at most", unit, len(f.Rest), len(line)+len(f.Messages))
		}
	}
}

// FuzzFind holds that what is found is valid, and a message, and that a message behind an escape is always found.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{
		"\x1b[0m{\"id\":1,\"result\":{}}", "x {\"jsonrpc\":\"2.0\",\"method\":\"a\"} {\"id\":NaN,\"error\":1}", "\xff\xfe{\x00}\x00", "{\"id\":1,\"result\":\"\xed\xa0\xbd\\x\t\"}",
		`{"id":-Infinity,"method":"\`, "{\"id\":1,\"result\":-I}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range Find(data).Messages {
			if !json.Valid(e.Raw) || !utf8.Valid(e.Raw) || e.Kind == Other {
				t.Fatalf("Find(%q): got %q of kind %d, want a valid message", data, e.Raw, e.Kind)
			}
		}
		e, err := Peek(data)
		if err != nil || e.Kind == Other || bytes.Count(data, []byte{0}) > 0 {
			return
		}
		found := Find(append([]byte("\x1b[0m"), data...)).Messages
		if len(found) != 1 || !bytes.Equal(found[0].Raw, e.Raw) {
			t.Fatalf("Find of %q behind an escape: got %d messages, want the same one", data, len(found))
		}
	})
}

func TestTwinHasOtherType(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]Key{
		`1`: `"1`, `"1"`: "1", `"1.0"`: "1", `1.0`: `"1`, `"-7"`: "-7", `"x"`: "", `""`: "", `null`: "", `"null"`: "", `"true"`: "", `" 1 "`: "1", `"1}"`: "", `"1,\"id\":2"`: "", `[1]`: "",
	} {
		e := Envelope{ID: []byte(id)}
		if got := e.Key().Twin(); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestNumbersAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	number := func(n int64) *int64 { return &n }
	for text, want := range map[string]*int64{
		`7`: number(7), `7.0`: number(7), `7e0`: number(7), `0.7e1`: number(7), `"7"`: number(7), `"7.0"`: number(7), `" 7 "`: number(7), `-0`: number(0), `-0.0`: number(0), `-3.9`: number(-3),
		`9223372036854775807`: number(1<<63 - 1), `"9007199254740993"`: number(9007199254740993), `18446744073709551615`: number(1<<63 - 1), `1e400`: number(1<<63 - 1), `-1e30`: number(-1 << 63),
		`null`: nil, `true`: nil, `""`: nil, `"x"`: nil, `"0x10"`: nil, `"1_0"`: nil, `"NaN"`: nil, `"Infinity"`: nil, `"inf"`: nil, `[]`: nil, `{}`: nil,
	} {
		var i Integer
		if err := json.Unmarshal([]byte(text), &i); err != nil || i.Given != (want != nil) || want != nil && i.Value != *want {
			t.Errorf("Integer of %s: got %+v, error %v, want %v", text, i, err, want)
		}
	}
	u, err := ParseUsage(json.RawMessage(`{"used":5.0,"size":"2e5","cost":{"amount":"0.25","currency":"USD"}}`))
	if err != nil || u.Used != 5 || u.Size != 200_000 || u.Cost == nil || u.Cost.Amount != 0.25 {
		t.Errorf("ParseUsage: got %+v, error %v, want 5 of 200000, cost 0.25", u, err)
	}
	for _, version := range []string{`1`, `1.0`, `"1"`, `1e0`} {
		i, err := ParseInitialized(json.RawMessage(`{"protocolVersion":` + version + `,"agentCapabilities":{"loadSession":"true","promptCapabilities":{"image":1}}}`))
		if err != nil || i.ProtocolVersion != 1 || !i.LoadSession || !i.Image || i.Embedded {
			t.Errorf("ParseInitialized with the version %s: got %+v, error %v, want version 1, loadSession, image", version, i, err)
		}
	}
}
