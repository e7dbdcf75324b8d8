package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"deskhand/backend/transcript"
)

// fits checks a form's content by a schema that is made anew from the form's fields, and has no more in it than the protocol gives a field. The
// agent's own is not given to the validator: with $ref and allOf 4 KB ask for 2^40 steps, and a number like 1e2000000, in it or in the
// content, is a panic. What is not checked here the agent will say itself.
func fits(schema, content json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		return err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("an object is expected")
	}
	for name, v := range object {
		if n, is := v.(json.Number); is {
			if object[name], is = plainNumber(string(n)); !is {
				return fmt.Errorf("at '/%s': %s is larger than numbers are", transcript.ClipText(name), transcript.ClipText(string(n)))
			}
		}
	}
	fields, _ := readForm(schema)
	compiled := compile(fields)
	if compiled == nil {
		return nil
	}
	err = compiled.Validate(value)
	if err == nil {
		return nil
	}
	// The validator's first line names its schema, of which nobody knows; the others say what is wrong, a field each.
	_, lines, _ := strings.Cut(err.Error(), "\n- ")
	return errors.New(strings.ReplaceAll(lines, "\n- ", "; "))
}

// compile is nil for fields of which no schema can be made.
func compile(fields []formField) *jsonschema.Schema {
	const name = "urn:deskhand:form" // a path would be looked for from the working directory, which may be there no more
	properties, required, room := make(map[string]any, len(fields)), []any{}, longestPatterns
	for i := range fields {
		f := &fields[i]
		properties[f.name] = f.schema(&room)
		if f.required {
			required = append(required, f.name)
		}
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is ever fetched
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) { return readPattern(text) })
	if c.AddResource(name, map[string]any{"type": "object", "properties": properties, "required": required}) != nil {
		return nil
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil
	}
	return compiled
}

// schema is what the value of a field is checked by. A keyword that is wrong, or that nobody can follow, leaves the others as they are. The
// pattern takes from room, and is left out when that is used up.
func (f *formField) schema(room *int) map[string]any {
	s := map[string]any{"type": f.kind}
	limit := func(keyword string, raw json.RawMessage, read func(string) (json.Number, bool)) {
		if n, ok := read(string(raw)); ok {
			s[keyword] = n
		}
	}
	p := f.property
	switch {
	case f.kind == "array":
		s["items"] = map[string]any{"enum": f.choiceIDs()}
		limit("minItems", p.MinItems, count)
		limit("maxItems", p.MaxItems, count)
	case f.choices != nil:
		s["enum"] = f.choiceIDs()
	case f.kind == "string":
		limit("minLength", p.MinLength, count)
		limit("maxLength", p.MaxLength, count)
		switch format := stringOf(p.Format); format {
		case "email", "uri", "date", "date-time":
			s["format"] = format
		}
		if text := stringOf(p.Pattern); text != "" && *room > 0 {
			known, err := readPattern(text)
			if *room -= known.size; err == nil && *room >= 0 {
				s["pattern"] = text
			}
		}
	case f.kind != "boolean":
		limit("minimum", p.Minimum, plainNumber)
		limit("maximum", p.Maximum, plainNumber)
	}
	return s
}

func (f *formField) choiceIDs() []any {
	ids := make([]any, len(f.choices))
	for i, o := range f.choices {
		ids[i] = o.ID
	}
	return ids
}

// plainNumber is a number of JSON as others reckon with it: whole ones of 64 bits, else as a float. The validator knows fractions of any size,
// and would make a million digits of seven characters. A number larger than floats are is none.
func plainNumber(text string) (json.Number, bool) {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return json.Number(text), true
	}
	n, err := strconv.ParseFloat(text, 64)
	return json.Number(strconv.FormatFloat(n, 'g', -1, 64)), err == nil
}

// count is a limit of a length, as large as the protocol has them.
func count(text string) (json.Number, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), err == nil && n >= 0 && n <= math.MaxUint32 && n == math.Trunc(n)
}

// What a pattern may cost. Its steps are counted with its repetitions written out: x{1000} is a thousand, and ten bytes.
const (
	longestPattern  = 1 << 10 // bytes
	longestPatterns = 1 << 14 // steps, of all of a form
	longestMatch    = 1 << 25 // steps, times the bytes of the text: a second or so
)

// pattern is an expression that says yes to what it would take too long for.
type pattern struct {
	*regexp.Regexp

	size int
}

func readPattern(text string) (p pattern, err error) {
	if len(text) > longestPattern {
		return p, errors.New("it is too long")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return p, err
	}
	steps, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return p, err
	}
	if p.size = len(steps.Inst); p.size > longestPatterns {
		return p, errors.New("it has too many steps")
	}
	p.Regexp, err = regexp.Compile(text)
	return p, err
}

func (p pattern) MatchString(text string) bool {
	return len(text) > longestMatch/p.size || p.Regexp.MatchString(text)
}
