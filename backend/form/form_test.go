package form

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestReadReturnsTheFields(t *testing.T) {
	fields, ok := Read(json.RawMessage(`{"properties":{"b":{"type":"string","enum":["x","y"],"enumNames":["Ex"]},"a":{"type":"integer","title":7},
		"b_note":{"type":"string"},"c_custom":{"type":"string"},"d":{"type":"array","items":{"anyOf":[{"const":"m","title":"Em"}]}},
		"own":{"type":"string","_meta":{"codex":{"questionId":"d"}}}},"required":["a",3]}`))
	if !ok {
		t.Fatal("Read: got no form, want six fields")
	}
	have := ""
	for _, f := range fields {
		have += f.Name + ":" + f.Beside + " "
	}
	if have != "b: a: b_note:b c_custom: d: own:d " || !fields[1].required || fields[0].required || fields[0].Choices[0].Label != "Ex" || fields[0].Choices[1].Label != "y" {
		t.Errorf("Read: got %s, %+v; want b: a: b_note:b c_custom: d: own:d, and a required", have, fields)
	}
	for _, schema := range []string{
		``, `null`, `[]`, `7`, `"x"`, `{"properties":[]}`, `{"properties":{"a":{}}}`, `{"properties":{"a":null}}`, `{"properties":{"a":{"type":"object"}}}`,
		`{"properties":{"a":{"type":"string","enum":[]}}}`, `{"properties":{"a":{"type":"string","enum":[1]}}}`, `{"properties":{"a":{"type":"string","enum":[null]}}}`,
		`{"properties":{"a":{"type":"string","oneOf":[{"title":"x"}]}}}`, `{"properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"number","enum":["a"]}}}}`, `{"properties":{"a":{"type":["string","null"]}}}`,
	} {
		if fields, ok := Read(json.RawMessage(schema)); ok {
			t.Errorf("Read(%s): got %+v, want no form", schema, fields)
		}
	}
	for _, schema := range []string{`{}`, `{"type":"array"}`, `{"type":7,"properties":{"a":{"type":"boolean"}}}`, `{"type":null,"properties":null,"required":null}`, `{"type":"object","properties":{"a":{"type":"string","enum":null,"oneOf":null}}}`} {
		if _, ok := Read(json.RawMessage(schema)); !ok {
			t.Errorf("Read(%s): got no form, want one", schema)
		}
	}
}

// Whatever the agent writes into a form, Check ends in a moment, and does not panic.
func TestCheckOfHostileForms(t *testing.T) {
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
			if err := Check(json.RawMessage(c.schema), json.RawMessage(c.content)); (err == nil) != c.fits {
				t.Errorf("Check: got error %.200v, want one: %t", err, !c.fits)
			}
		})
	}
	var properties []string
	for i := range 100_000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"boolean"}`, i))
	}
	if _, ok := Read(json.RawMessage(`{"properties":{` + strings.Join(properties, ",") + `}}`)); ok {
		t.Error("Read of a hundred thousand fields: got a form, want none")
	}
	all := json.RawMessage(`{"properties":{` + strings.Join(properties[:mostFields], ",") + `}}`)
	if _, ok := Read(all); !ok || Check(all, json.RawMessage(`{"p7":true}`)) != nil {
		t.Errorf("%d fields: got form %t, Check error %v; want a form that fits", mostFields, ok, Check(all, json.RawMessage(`{"p7":true}`)))
	}
}

func TestCheckNamesEachFault(t *testing.T) {
	t.Parallel()
	err := Check(json.RawMessage(`{"properties":{"s":{"type":"string","pattern":"^a"}}}`), json.RawMessage(`{"s":"b"}`))
	if err == nil || err.Error() != "at '/s': 'b' does not match pattern '^a'" {
		t.Errorf("Check: got error %v, want at '/s': 'b' does not match pattern '^a'", err)
	}
	err = Check(json.RawMessage(`{"properties":{"s":{"type":"string"},"t":{"type":"array","items":{"enum":["x"]}}}}`), json.RawMessage(`{"s":1,"t":["y"]}`))
	if err == nil || strings.Count(err.Error(), "; ") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("Check with two faults: got error %v, want two faults on one line", err)
	}
}

// Check knows each keyword that the protocol gives a field, and names the field.
func TestCheckKnowsEveryKeyword(t *testing.T) {
	t.Parallel()
	for field, answers := range map[string]struct{ fit, unfit string }{
		`{"type":"string"}`:                                                                {`"", "a"`, `1, true, null, ["a"]`},
		`{"type":"string","minLength":2,"maxLength":3}`:                                    {`"ab", "äöü"`, `"a", "abcd"`},
		`{"type":"string","minLength":2.0,"maxLength":-1}`:                                 {`"ab", "abcd"`, `"a"`},
		`{"type":"string","minLength":"2","maxLength":3}`:                                  {`"a", "abc"`, `"abcd"`},
		`{"type":"string","minLength":null,"maxLength":1e30}`:                              {`"a"`, `1`},
		`{"type":"string","pattern":"^a+$"}`:                                               {`"a", "aa"`, `"", "ab"`},
		`{"type":"string","pattern":"(?<=a)b","maxLength":2}`:                              {`"b"`, `"abc"`},
		`{"type":"string","format":"email"}`:                                               {`"a@b.example"`, `"a", "A <a@b.example>"`},
		`{"type":"string","format":"uri"}`:                                                 {`"https://a.example"`, `"a"`},
		`{"type":"string","format":"date"}`:                                                {`"2026-11-26"`, `"2026-11-31"`},
		`{"type":"string","format":"date-time"}`:                                           {`"2026-11-26T10:00:00Z", "2026-11-26t10:00:00.5z"`, `"2026-11-26"`},
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
				err := Check(schema, json.RawMessage(`{"a/b":`+string(value)+`}`))
				if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "/a~1b") {
					t.Errorf("Check(%s) for %s: got error %v, want one at /a~1b: %t", value, field, err, !want)
				}
			}
		}
		if err := Check(schema, json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "a/b") {
			t.Errorf("Check without %s: got error %v, want one that names a/b", field, err)
		}
	}
	if err := Check(json.RawMessage(`{"properties":{"n":{"type":"number"}}}`), json.RawMessage(`{"n":1e2000000}`)); err == nil || !strings.Contains(err.Error(), "/n") {
		t.Errorf("Check of 1e2000000: got error %v, want one at /n", err)
	}
}
