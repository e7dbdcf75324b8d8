package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/mail"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/transcript"
)

// Check returns an error that names each field in which the content of a form does not fit the schema, by JSON Pointer. Fields that the schema does
// not have, and keywords that the protocol does not give a field, are left to the agent.
func Check(schema, content json.RawMessage) error {
	object, err := readContent(content)
	if err != nil {
		return err
	}
	form, _ := Read(schema)
	var faults []string
	room := longestPatterns
	for i := range form {
		f := &form[i]
		c := f.checks(&room)
		value, given := object[f.Name]
		switch {
		case given:
			faults = append(faults, f.fault(c, value)...)
		case f.required:
			faults = append(faults, "missing property "+quoted(f.Name))
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

// readContent decodes a JSON object. Numbers stay json.Numbers, in the form of plainNumber.
func readContent(content json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("an object is expected, and nothing after it")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("an object is expected")
	}
	for name, v := range object {
		if n, is := v.(json.Number); is {
			if object[name], is = plainNumber(string(n)); !is {
				return nil, fmt.Errorf("%s%s is larger than numbers are", at(name), transcript.ClipText(string(n)))
			}
		}
	}
	return object, nil
}

// checks are the keywords of a field with a right value.
type checks struct {
	minimum, maximum json.Number // of a number; of a text its length, of an array its items; "" = no limit
	format           string
	pattern          *pattern
}

// checks reads the keywords of the field. The pattern takes its steps from room, and is left out when room is used up.
func (f *Field) checks(room *int) (c checks) {
	p := f.property
	switch {
	case f.Kind == "array":
		c.minimum, c.maximum = limit(p.MinItems, count), limit(p.MaxItems, count)
	case f.Choices != nil || f.Kind == "boolean":
	case f.Kind == "string":
		c.minimum, c.maximum = limit(p.MinLength, count), limit(p.MaxLength, count)
		c.format = stringOf(p.Format)
		if text := stringOf(p.Pattern); text != "" && *room > 0 {
			known, err := readPattern(text)
			if *room -= known.size; err == nil && *room >= 0 {
				c.pattern = &known
			}
		}
	default:
		c.minimum, c.maximum = limit(p.Minimum, plainNumber), limit(p.Maximum, plainNumber)
	}
	return c
}

// limit returns the number of a keyword, or "".
func limit(raw json.RawMessage, read func(string) (json.Number, bool)) json.Number {
	n, ok := read(string(raw))
	if !ok {
		return ""
	}
	return n
}

func rat(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(string(n))
	return r
}

// fault returns the differences between a value and the field.
func (f *Field) fault(c checks, value any) (faults []string) {
	say := func(format string, args ...any) { faults = append(faults, at(f.Name)+fmt.Sprintf(format, args...)) }
	if !f.takes(value) {
		shown, _ := json.Marshal(value)
		say("got %s, want %s", transcript.ClipText(string(shown)), f.Kind)
		return faults
	}
	switch v := value.(type) {
	case string:
		if f.Choices == nil {
			c.text(v, say)
		} else if !f.has(v) {
			say("%s is none of the choices", quoted(v))
		}
	case json.Number:
		c.within(rat(v), v.String(), say)
	case []any:
		c.within(big.NewRat(int64(len(v)), 1), strconv.Itoa(len(v))+" items", say)
		for i, item := range v {
			if text, is := item.(string); !is || !f.has(text) {
				say("item %d is none of the choices", i+1)
			}
		}
	}
	return faults
}

// takes reports whether a value is of the field's kind.
func (f *Field) takes(value any) bool {
	switch v := value.(type) {
	case string:
		return f.Kind == "string"
	case bool:
		return f.Kind == "boolean"
	case json.Number:
		return f.Kind == "number" || f.Kind == "integer" && rat(v).IsInt()
	case []any:
		return f.Kind == "array"
	}
	return false
}

func (f *Field) has(id string) bool {
	return slices.ContainsFunc(f.Choices, func(o QuestionOption) bool { return o.ID == id })
}

// within says when a number is beyond a limit. shown is the number as a person reads it.
func (c *checks) within(n *big.Rat, shown string, say func(string, ...any)) {
	if c.minimum != "" && n.Cmp(rat(c.minimum)) < 0 {
		say("got %s, want at least %s", shown, c.minimum)
	}
	if c.maximum != "" && n.Cmp(rat(c.maximum)) > 0 {
		say("got %s, want at most %s", shown, c.maximum)
	}
}

// text says what is wrong with a text.
func (c *checks) text(v string, say func(string, ...any)) {
	length := utf8.RuneCountInString(v)
	c.within(big.NewRat(int64(length), 1), strconv.Itoa(length)+" characters", say)
	if c.pattern != nil && !c.pattern.MatchString(v) {
		say("%s does not match pattern '%s'", quoted(v), c.pattern)
	}
	var err error
	switch c.format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(v); err == nil && a.Address != v {
			err = errors.New("more than an address")
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(v); err == nil && !u.IsAbs() {
			err = errors.New("no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, v)
	case "date-time":
		_, err = time.Parse(time.RFC3339, strings.ToUpper(v)) // RFC 3339 allows t and z
	}
	if err != nil {
		say("%s is no %s", quoted(v), c.format)
	}
}

// at names a field, as a JSON Pointer.
func at(name string) string {
	return "at '/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(transcript.ClipText(name)) + "': "
}

// quoted returns a text in single quotes, on one line.
func quoted(text string) string {
	q := strconv.Quote(transcript.ClipText(text))
	return "'" + strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`) + "'"
}

// plainNumber returns a number of JSON as other programs compute with it: an integer of 64 bits as it is, else the nearest float. ok is false for a
// number that is larger than floats are. A big.Rat of 1e2000000 would have a million digits.
func plainNumber(text string) (json.Number, bool) {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return json.Number(text), true
	}
	n, err := strconv.ParseFloat(text, 64)
	return json.Number(strconv.FormatFloat(n, 'g', -1, 64)), err == nil
}

// count reads the limit of a length, which the protocol has in 32 bits.
func count(text string) (json.Number, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), err == nil && n >= 0 && n <= math.MaxUint32 && n == math.Trunc(n)
}

// The limits of patterns. The steps of a pattern are counted with its repetitions written out: x{1000} has a thousand steps in ten bytes.
const (
	longestPattern  = 1 << 10 // bytes
	longestPatterns = 1 << 14 // steps, of all patterns of a form
	longestMatch    = 1 << 25 // steps times the bytes of the text, about a second
)

// pattern is an expression that matches each text for which the matching would take too long.
type pattern struct {
	*regexp.Regexp

	size int
}

func readPattern(text string) (p pattern, err error) {
	if len(text) > longestPattern {
		return p, errors.New("the pattern is too long")
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
		return p, errors.New("the pattern has too many steps")
	}
	p.Regexp, err = regexp.Compile(text)
	return p, err
}

func (p *pattern) MatchString(text string) bool {
	return len(text) > longestMatch/p.size || p.Regexp.MatchString(text)
}
