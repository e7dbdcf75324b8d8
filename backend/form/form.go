// Package form reads the forms of elicitations (ACP, elicitation/create), makes their content from a person's answers, and checks the content. A
// form is a flat JSON Schema that the agent wrote, so nothing in a form may panic or take long: of a schema only the keywords count that the
// protocol gives a field, and a keyword with a wrong value counts as absent.
package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/refusal"
)

// QuestionOption is an option of a question. The label of an option without an id is also its id.
type QuestionOption struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// A Form is the fields of a form in the order of its schema.
type Form []Field

// Field is a property of a form.
type Field struct {
	Name, Kind  string // Kind is string, number, integer, boolean or array
	Description string
	Choices     []QuestionOption // of a select
	Beside      string           // of a text: the name of the select that the text completes, for an answer that is no choice

	title    string
	required bool
	other    bool // Codex: the last choice means that the answer stands in the text beside the select
	property *property
}

// property is a property of a schema. Every value may have any type; a wrong value counts as absent.
type property struct {
	Type        json.RawMessage   `json:"type"`
	Title       json.RawMessage   `json:"title"`
	Description json.RawMessage   `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   json.RawMessage   `json:"enumNames"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	Items       *property         `json:"items"`
	Meta        json.RawMessage   `json:"_meta"`

	MinLength json.RawMessage `json:"minLength"`
	MaxLength json.RawMessage `json:"maxLength"`
	Pattern   json.RawMessage `json:"pattern"`
	Format    json.RawMessage `json:"format"`
	Minimum   json.RawMessage `json:"minimum"`
	Maximum   json.RawMessage `json:"maximum"`
	MinItems  json.RawMessage `json:"minItems"`
	MaxItems  json.RawMessage `json:"maxItems"`
}

// fieldMeta is the _meta of a field of Codex, which ties the text for an own answer to its question.
type fieldMeta struct {
	Codex struct {
		IsOther    bool   `json:"isOther"`
		QuestionID string `json:"questionId"`
	} `json:"codex"`
}

// mostFields is more than a person fills in. The work on a form grows with the square of its fields, so that a hundred thousand fields would hold
// up the conversation.
const mostFields = 1000

// Read returns the form of a schema. ok is false when there is no control for one of the fields. The frontend decides the same by itself, in
// inbox/form.ts.
func Read(schema json.RawMessage) (fields Form, ok bool) {
	var s struct { // the type counts as object whatever it is, as in the published schema
		Properties json.RawMessage `json:"properties"`
		Required   json.RawMessage `json:"required"`
	}
	if len(bytes.TrimSpace(schema)) == 0 || json.Unmarshal(schema, &s) != nil || bytes.TrimSpace(schema)[0] != '{' {
		return nil, false
	}
	if isSet(s.Properties) {
		if fields, ok = readProperties(s.Properties); !ok {
			return nil, false
		}
	}
	var required []any
	_ = json.Unmarshal(s.Required, &required) // a value that is no list requires nothing
	for i := range fields {
		fields[i].required = slices.Contains(required, any(fields[i].Name))
	}
	pair(fields)
	return fields, true
}

func readProperties(object json.RawMessage) (fields Form, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		var p *property
		if err != nil || !isName || d.Decode(&p) != nil || p == nil {
			return nil, false
		}
		f, ok := p.field(name)
		if !ok {
			return nil, false
		}
		// Of two properties with the same name the last counts, as in every JSON reader.
		if i := slices.IndexFunc(fields, func(o Field) bool { return o.Name == name }); i >= 0 {
			fields[i] = f
		} else if fields = append(fields, f); len(fields) > mostFields {
			return nil, false
		}
	}
	return fields, true
}

func (p *property) field(name string) (f Field, ok bool) {
	f = Field{Name: name, Kind: stringOf(p.Type), Description: stringOf(p.Description), title: stringOf(p.Title), property: p}
	var meta fieldMeta
	_ = json.Unmarshal(p.Meta, &meta) // a _meta of another shape says nothing
	f.Beside, f.other = meta.Codex.QuestionID, meta.Codex.IsOther
	switch f.Kind {
	case "number", "integer", "boolean":
		return f, true
	case "string":
		if p.Enum == nil && p.OneOf == nil {
			return f, true
		}
		f.Choices, ok = p.options(p.OneOf)
		return f, ok
	case "array":
		if p.Items == nil || isSet(p.Items.Type) && stringOf(p.Items.Type) != "string" {
			return f, false
		}
		if f.Choices, ok = p.Items.options(p.Items.AnyOf); !ok {
			f.Choices, ok = p.Items.options(p.Items.OneOf)
		}
		return f, ok
	}
	return f, false
}

// options returns the choices of a select: an enum, with the older enumNames, or constants with titles.
func (p *property) options(constants []json.RawMessage) (list []QuestionOption, ok bool) {
	if p.Enum != nil {
		var names []json.RawMessage
		_ = json.Unmarshal(p.EnumNames, &names)
		for i, raw := range p.Enum {
			var o QuestionOption
			if json.Unmarshal(raw, &o.ID) != nil || string(raw) == "null" {
				return nil, false
			}
			if i < len(names) {
				o.Label = stringOf(names[i])
			}
			list = append(list, o.labelled())
		}
		return list, len(list) > 0
	}
	for _, raw := range constants {
		var c struct {
			Const       json.RawMessage `json:"const"`
			Title       json.RawMessage `json:"title"`
			Description json.RawMessage `json:"description"`
		}
		o := QuestionOption{}
		if json.Unmarshal(raw, &c) != nil || !isSet(c.Const) || json.Unmarshal(c.Const, &o.ID) != nil {
			return nil, false
		}
		o.Label, o.Description = stringOf(c.Title), stringOf(c.Description)
		list = append(list, o.labelled())
	}
	return list, len(list) > 0
}

func (o QuestionOption) labelled() QuestionOption {
	if o.Label == "" {
		o.Label = o.ID
	}
	return o
}

// pair sets Beside of the texts that complete a select. Codex names the question in _meta; Codex and Claude also put an ending to the name of the
// question.
func pair(fields Form) {
	for i := range fields {
		f := &fields[i]
		if f.Kind != "string" || f.Choices != nil {
			f.Beside = ""
			continue
		}
		names := []string{f.Beside, strings.TrimSuffix(f.Name, "_custom"), strings.TrimSuffix(f.Name, "_note")}
		f.Beside = ""
		if at := slices.IndexFunc(fields[:i], func(o Field) bool { return o.Choices != nil && slices.Contains(names, o.Name) }); at >= 0 {
			f.Beside = fields[at].Name
		}
	}
}

// Companion returns the name of the text beside a select, or "".
func (form Form) Companion(name string) string {
	for _, f := range form {
		if f.Beside == name && name != "" {
			return f.Name
		}
	}
	return ""
}

// Content returns the content of the form for lists of answers: a list for each field that is no text beside a select, in order. A list that is
// empty or missing leaves its field out. An answer that is no choice goes into the text beside the select. The error is a *refusal.Error.
func (form Form) Content(answers [][]string) (json.RawMessage, error) {
	out, i := map[string]any{}, 0
	for _, f := range form {
		if f.Beside != "" {
			continue
		}
		if i >= len(answers) {
			break
		}
		given := answers[i]
		i++
		if len(given) == 0 {
			continue
		}
		if err := f.fill(out, given, form.Companion(f.Name)); err != nil {
			return nil, err
		}
	}
	if len(answers) > i {
		return nil, refusal.Bad("answer.count", "want", strconv.Itoa(i), "have", strconv.Itoa(len(answers)))
	}
	return json.Marshal(out)
}

// CheckAnswer returns the refusal that Content would return for the answer to the field of that name.
func (form Form) CheckAnswer(name string, given []string) error {
	for _, f := range form {
		if f.Name == name {
			return f.fill(map[string]any{}, given, form.Companion(name))
		}
	}
	return nil
}

// fill adds the value of the field to the content out. beside is the name of the text beside a select.
func (f *Field) fill(out map[string]any, given []string, beside string) error {
	switch {
	case f.Choices != nil:
		return f.choose(out, given, beside)
	case f.Kind == "boolean":
		b, err := strconv.ParseBool(given[0])
		if err != nil {
			return refusal.Bad("answer.unknown_option", "optionId", given[0])
		}
		out[f.Name] = b
	case f.Kind == "string":
		out[f.Name] = given[0]
	default:
		n := json.Number(strings.TrimSpace(given[0]))
		if _, err := n.Float64(); err != nil || !json.Valid([]byte(n)) {
			return refusal.Bad("answer.invalid", "detail", strconv.Quote(given[0])+" is no number")
		}
		out[f.Name] = n
	}
	return nil
}

func (f *Field) choose(out map[string]any, given []string, beside string) error {
	chosen, own := []string{}, []string{}
	for _, value := range given {
		i := Choice(f.Choices, value)
		switch {
		case i >= 0:
			chosen = append(chosen, f.Choices[i].ID)
		case beside == "":
			return refusal.Bad("answer.unknown_option", "optionId", value)
		default:
			own = append(own, value)
		}
	}
	if len(own) > 0 {
		out[beside] = strings.Join(own, ", ")
		if f.other && f.required && len(chosen) == 0 {
			chosen = append(chosen, f.Choices[len(f.Choices)-1].ID)
		}
	}
	switch {
	case f.Kind == "array":
		if len(chosen) > 0 {
			out[f.Name] = chosen
		}
	case len(chosen) > 1:
		return refusal.Bad("answer.choose", "question", f.Label())
	case len(chosen) == 1:
		out[f.Name] = chosen[0]
	}
	return nil
}

// Choice returns the index of an option by its id, else by its label; -1 means that there is none.
func Choice(options []QuestionOption, value string) int {
	if i := slices.IndexFunc(options, func(o QuestionOption) bool { return o.ID == value }); i >= 0 {
		return i
	}
	return slices.IndexFunc(options, func(o QuestionOption) bool { return o.Label == value })
}

// Label returns the title of the field, or its name.
func (f *Field) Label() string {
	if f.title != "" {
		return f.title
	}
	return f.Name
}

// isSet reports whether an optional value was sent. null counts as absent.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// stringOf returns a value that is a text, or "".
func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // a value of another type leaves s empty
	return s
}
