package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWhereAnAddressLeads(t *testing.T) {
	for address, want := range map[string]destination{
		"https://example.com":                      {url: "https://example.com", host: "example.com"},
		"HTTP://EXAMPLE.com:8080/P?q#f":            {url: "http://example.com:8080/P?q#f", host: "example.com:8080"},
		"https://example.com./":                    {url: "https://example.com./", host: "example.com."},
		"https://sub_domain.example.com/":          {url: "https://sub_domain.example.com/", host: "sub_domain.example.com"},
		"http://127.0.0.1:7/":                      {url: "http://127.0.0.1:7/", host: "127.0.0.1:7"},
		"http://[::1]:7/":                          {url: "http://[::1]:7/", host: "[::1]:7"},
		"https://bücher.example/ü":                 {url: "https://xn--bcher-kva.example/%C3%BC", host: "xn--bcher-kva.example", unicode: "bücher.example"},
		"https://xn--bcher-kva.example/":           {url: "https://xn--bcher-kva.example/", host: "xn--bcher-kva.example", unicode: "bücher.example"},
		"https://xn--80ak6aa92e.com/":              {url: "https://xn--80ak6aa92e.com/", host: "xn--80ak6aa92e.com", unicode: "аррӏе.com"}, // all of it Cyrillic
		"https://www.p\u0430ypal.example/":         {url: "https://www.xn--pypal-4ve.example/", host: "www.xn--pypal-4ve.example", unicode: "www.pаypal.example"},
		"https://example.com\u3002evil.com":        {url: "https://example.com.evil.com", host: "example.com.evil.com"},
		"https://a.example/?b=\u202ec <\"d\">":     {url: "https://a.example/?b=%E2%80%AEc%20%3C%22d%22%3E", host: "a.example"},
		"https://a.example/?b=%41+c&d='e'#\u202ef": {url: "https://a.example/?b=%41+c&d='e'#%E2%80%AEf", host: "a.example"},
		"https://\uff45xample.com/":                {url: "https://example.com/", host: "example.com"},
	} {
		if have, err := readDestination(address); err != nil || have != want {
			t.Errorf("%s leads to %+v, %v; want %+v", address, have, err, want)
		}
	}
	for _, address := range []string{
		"", "example.com", "//example.com", "/x", "ftp://example.com", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "mailto:a@b", "https:", "https:/example.com",
		"https:///example.com", "https://", "https://:80/", "https://user@example.com", "https://a:b@example.com/", `https://example.com\@evil.com`, "https://exam ple.com",
		"https://example.com\n.evil.com", "\thttps://example.com", "http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://2130706433./", "http://127.0.0.1./", "http://0x7f000001.:8080/", "http://[::1", "https://example.com:port/", "https://%zz/",
		"https://xn--\u0430.com/", "https://example.com/" + strings.Repeat("a", longestURL),
	} {
		if have, err := readDestination(address); err == nil {
			t.Errorf("%q is opened as %+v", address, have)
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add("https://bücher.example:8080/ü?q#f")
	f.Add("http://[::1]/")
	f.Add("http://a.example/?b=\u202ec <\"d\">")
	f.Fuzz(func(t *testing.T, address string) {
		to, err := readDestination(address)
		if err != nil {
			return
		}
		again, err := readDestination(to.url)
		if err != nil || again != to {
			t.Errorf("%q is %+v, which is %+v, %v", address, to, again, err)
		}
		for _, r := range to.host {
			if r > '~' || r <= ' ' {
				t.Errorf("the host of %q is %q", address, to.host)
			}
		}
		if !strings.Contains(to.url, "://"+to.host) {
			t.Errorf("%q does not lead to %q", to.url, to.host)
		}
	})
}

func TestTheFieldsOfAForm(t *testing.T) {
	fields, ok := readForm(json.RawMessage(`{"properties":{"b":{"type":"string","enum":["x","y"],"enumNames":["Ex"]},"a":{"type":"integer","title":7},
		"b_note":{"type":"string"},"c_custom":{"type":"string"},"d":{"type":"array","items":{"anyOf":[{"const":"m","title":"Em"}]}},
		"own":{"type":"string","_meta":{"codex":{"questionId":"d"}}}},"required":["a",3]}`))
	if !ok {
		t.Fatal("it is no form")
	}
	have := ""
	for _, f := range fields {
		have += f.name + ":" + f.of + " "
	}
	if have != "b: a: b_note:b c_custom: d: own:d " || !fields[1].required || fields[0].required || fields[0].choices[0].Label != "Ex" || fields[0].choices[1].Label != "y" {
		t.Errorf("%s %+v", have, fields)
	}
	for _, schema := range []string{
		``, `null`, `[]`, `7`, `"x"`, `{"properties":[]}`, `{"properties":{"a":{}}}`, `{"properties":{"a":null}}`, `{"properties":{"a":{"type":"object"}}}`,
		`{"properties":{"a":{"type":"string","enum":[]}}}`, `{"properties":{"a":{"type":"string","enum":[1]}}}`, `{"properties":{"a":{"type":"string","enum":[null]}}}`,
		`{"properties":{"a":{"type":"string","oneOf":[{"title":"x"}]}}}`, `{"properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"number","enum":["a"]}}}}`, `{"properties":{"a":{"type":["string","null"]}}}`,
	} {
		if fields, ok := readForm(json.RawMessage(schema)); ok {
			t.Errorf("%s is shown as %+v", schema, fields)
		}
	}
	for _, schema := range []string{`{}`, `{"type":"array"}`, `{"type":7,"properties":{"a":{"type":"boolean"}}}`, `{"type":null,"properties":null,"required":null}`, `{"type":"object","properties":{"a":{"type":"string","enum":null,"oneOf":null}}}`} {
		if _, ok := readForm(json.RawMessage(schema)); !ok {
			t.Errorf("%s is not shown", schema)
		}
	}
}

// A form is the agent's: whatever stands in it, what is answered is looked at in a moment, and ends nothing.
func TestNoFormHoldsOrEndsAConversation(t *testing.T) {
	t.Parallel()
	number := func(limit string) string { return `{"properties":{"n":{"type":"number",` + limit + `}}}` }
	text := func(pattern string) string {
		return `{"properties":{"s":{"type":"string","pattern":"` + pattern + `"}}}`
	}
	var each strings.Builder
	for i := range 40 {
		fmt.Fprintf(&each, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	var expressions []string
	for i := range 500 {
		expressions = append(expressions, fmt.Sprintf(`"s%d":{"type":"string","pattern":"%s"}`, i, strings.Repeat(`(.?){1000}`, 100)))
	}
	for name, c := range map[string]struct {
		schema, content string
		fits            bool
	}{
		"a step beyond all numbers":        {number(`"multipleOf":1e2000000`), `{"n":1}`, true},
		"a limit beyond all numbers":       {number(`"maximum":1e2000000`), `{"n":1}`, true},
		"a limit next to nothing":          {number(`"minimum":1e-2000000`), `{"n":1}`, true},
		"a limit that is nothing, at last": {number(`"minimum":0e99999999999999999999`), `{"n":1}`, true},
		"a number beyond all numbers":      {number(`"minimum":1`), `{"n":1e2000000}`, false},
		"a number below all numbers":       {number(`"minimum":1`), `{"n":-1e2000000}`, false},
		"a number next to nothing":         {number(`"minimum":1`), `{"n":1e-2000000}`, false},
		"a number that nobody asked for":   {number(`"minimum":1`), `{"m":1e2000000}`, false},
		"references that double":           {`{"type":"object","properties":{},"allOf":[{"$ref":"#/$defs/a0"}],"$defs":{` + each.String() + `"a40":{}}}`, `{}`, true},
		"a long expression":                {text(strings.Repeat(`(.?){1000}`, 100) + "x"), `{"s":"` + strings.Repeat("a", 100_000) + `"}`, true},
		"an expression and a long text":    {text(`^(a?){900}b`), `{"s":"` + strings.Repeat("a", 10<<20) + `"}`, true},
		"many long expressions":            {`{"properties":{` + strings.Join(expressions, ",") + `}}`, `{"s0":"a"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan any, 1)
			go func() {
				defer func() {
					if fault := recover(); fault != nil {
						ended <- fault
					}
				}()
				r := &openRequest{Request: Request{Kind: kindForm, Schema: json.RawMessage(c.schema)}}
				_, _, err := r.respond(Answer{Action: "accept", Content: json.RawMessage(c.content)})
				ended <- err
			}()
			select {
			case got := <-ended:
				if _, refused := got.(*RefusedError); got != nil && !refused || refused == c.fits {
					t.Errorf("%.200v", got)
				}
			case <-time.After(time.Minute):
				t.Error("it goes on")
			}
		})
	}
	var properties []string
	for i := range 100_000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"boolean"}`, i))
	}
	if showable(json.RawMessage(`{"properties":{` + strings.Join(properties, ",") + `}}`)) {
		t.Error("a hundred thousand fields are shown")
	}
	if all := `{"properties":{` + strings.Join(properties[:mostFields], ",") + `}}`; !showable(json.RawMessage(all)) || fits(json.RawMessage(all), json.RawMessage(`{"p7":true}`)) != nil {
		t.Error("a long form is not shown, or not taken")
	}
}

// Nobody has to be anywhere for it, and what is wrong is all that is said.
func TestFormsAreCheckedInADirectoryThatIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a directory that one is in cannot be removed there")
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	err := fits(json.RawMessage(`{"properties":{"s":{"type":"string","pattern":"^a"}}}`), json.RawMessage(`{"s":"b"}`))
	if err == nil || err.Error() != "at '/s': 'b' does not match pattern '^a'" {
		t.Errorf("it fits: %v", err)
	}
	err = fits(json.RawMessage(`{"properties":{"s":{"type":"string"},"t":{"type":"array","items":{"enum":["x"]}}}}`), json.RawMessage(`{"s":1,"t":["y"]}`))
	if err == nil || strings.Count(err.Error(), "; ") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("two fields: %v", err)
	}
}

// What the protocol lets an agent ask of a field is asked of the answer, and it is said of which field.
func TestWhatAFieldAsksFor(t *testing.T) {
	t.Parallel()
	for field, answers := range map[string]struct{ fit, unfit string }{
		`{"type":"string"}`:                                                                {`"", "a"`, `1, true, null, ["a"]`},
		`{"type":"string","minLength":2,"maxLength":3}`:                                    {`"ab", "äöü"`, `"a", "abcd"`},
		`{"type":"string","minLength":2.0,"maxLength":-1}`:                                 {`"ab", "abcd"`, `"a"`},
		`{"type":"string","minLength":"2","maxLength":3}`:                                  {`"a", "abc"`, `"abcd"`},
		`{"type":"string","minLength":null,"maxLength":1e30}`:                              {`"a"`, `1`},
		`{"type":"string","pattern":"^a+$"}`:                                               {`"a", "aa"`, `"", "ab"`},
		`{"type":"string","pattern":"(?<=a)b","maxLength":2}`:                              {`"b"`, `"abc"`},
		`{"type":"string","format":"email"}`:                                               {`"a@b.example"`, `"a"`},
		`{"type":"string","format":"uri"}`:                                                 {`"https://a.example"`, `"a"`},
		`{"type":"string","format":"date"}`:                                                {`"2026-11-26"`, `"2026-11-31"`},
		`{"type":"string","format":"date-time"}`:                                           {`"2026-11-26T10:00:00Z"`, `"2026-11-26"`},
		`{"type":"string","format":"colour"}`:                                              {`"red"`, `1`},
		`{"type":"string","enum":["a","b"]}`:                                               {`"a"`, `"c", 1`},
		`{"type":"string","oneOf":[{"const":"a"},{"const":"b"}]}`:                          {`"b"`, `"c", 1`},
		`{"type":"integer","minimum":1,"maximum":9007199254740993}`:                        {`1, 2.0, 1e3, 9007199254740993`, `0, 1.5, 9007199254740994, "1"`},
		`{"type":"number","minimum":-0.1,"maximum":1e300}`:                                 {`-0.1, 7, 1e299`, `-0.2, 1e301`},
		`{"type":"number","minimum":"1","maximum":2}`:                                      {`0`, `3`},
		`{"type":"boolean"}`:                                                               {`true, false`, `"true", 0`},
		`{"type":"array","items":{"enum":["a","b"]},"minItems":1,"maxItems":1}`:            {`["a"]`, `[], ["a","b"], ["c"], "a", [1]`},
		`{"type":"array","items":{"type":"string","anyOf":[{"const":"a"},{"const":"b"}]}}`: {`[], ["a","b"]`, `["c"], [1e2000000]`},
	} {
		schema := json.RawMessage(`{"type":"object","properties":{"a/b":` + field + `},"required":["a/b"]}`)
		for list, want := range map[string]bool{answers.fit: true, answers.unfit: false} {
			var values []json.RawMessage
			if err := json.Unmarshal([]byte("["+list+"]"), &values); err != nil {
				t.Fatal(err)
			}
			for _, value := range values {
				err := fits(schema, json.RawMessage(`{"a/b":`+string(value)+`}`))
				if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "/a~1b") {
					t.Errorf("%s for %s: %v", value, field, err)
				}
			}
		}
		if err := fits(schema, json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "a/b") {
			t.Errorf("%s is left out: %v", field, err)
		}
	}
	if err := fits(json.RawMessage(`{"properties":{"n":{"type":"number"}}}`), json.RawMessage(`{"n":1e2000000}`)); err == nil || !strings.Contains(err.Error(), "/n") {
		t.Error(err)
	}
}

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
		if err == nil && (status != statusAnswered || result == nil || !json.Valid(content)) {
			t.Errorf("%s for %s is %s %v", content, schema, status, result)
		}
		a, err := r.fromLists([][]string{{word}, {word, word}})
		if err != nil {
			return
		}
		if _, _, err := r.respond(a); err == nil {
			r.Status, r.Answer = statusAnswered, mustJSON(a)
		}
		for _, e := range r.questionEvents() {
			mustJSON(e)
		}
	})
}
