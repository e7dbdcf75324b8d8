package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// formField is one property of a form, as far as an answer needs to know it; what its value is checked by is its schema.
type formField struct {
	name, kind         string // the kind: string, number, integer, boolean, array
	title, description string
	choices            []QuestionOption // of a select
	required           bool
	of                 string // of a text: the select beside which it stands, for who wants to say something else
	other              bool   // Codex: the last choice says that the answer stands in that text
	property           *property
}

// property is a property of a schema. What is only shown may be of any type; what is wrong is as if it were not there.
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

// fieldMeta is what of a field's _meta is understood: by it Codex ties the text for an own answer to its question.
type fieldMeta struct {
	Codex struct {
		IsOther    bool   `json:"isOther"`
		QuestionID string `json:"questionId"`
	} `json:"codex"`
}

// mostFields is more than a person fills in. All that is done with a form looks from each field at the others: of a hundred thousand it would hold
// up the conversation.
const mostFields = 1000

// readForm gives the fields of a form in the order of its schema; ok is false where there is no control for one of them. The frontend
// decides the same by itself, in inbox/form.ts.
func readForm(schema json.RawMessage) (fields []formField, ok bool) {
	var s struct { // its type is an object, whatever stands there: so the published schema has it
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
	_ = json.Unmarshal(s.Required, &required) // what is no list requires nothing
	for i := range fields {
		fields[i].required = slices.Contains(required, any(fields[i].name))
	}
	pair(fields)
	return fields, true
}

func readProperties(object json.RawMessage) (fields []formField, ok bool) {
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
		// Of two of one name the last counts, as everywhere.
		if i := slices.IndexFunc(fields, func(o formField) bool { return o.name == name }); i >= 0 {
			fields[i] = f
		} else if fields = append(fields, f); len(fields) > mostFields {
			return nil, false
		}
	}
	return fields, true
}

func (p *property) field(name string) (f formField, ok bool) {
	f = formField{property: p, name: name, kind: stringOf(p.Type), title: stringOf(p.Title), description: stringOf(p.Description)}
	var meta fieldMeta
	_ = json.Unmarshal(p.Meta, &meta) // of whatever shape it is
	f.of, f.other = meta.Codex.QuestionID, meta.Codex.IsOther
	switch f.kind {
	case "number", "integer", "boolean":
		return f, true
	case "string":
		if p.Enum == nil && p.OneOf == nil {
			return f, true
		}
		f.choices, ok = p.options(p.OneOf)
		return f, ok
	case "array":
		if p.Items == nil || isSet(p.Items.Type) && stringOf(p.Items.Type) != "string" {
			return f, false
		}
		if f.choices, ok = p.Items.options(p.Items.AnyOf); !ok {
			f.choices, ok = p.Items.options(p.Items.OneOf)
		}
		return f, ok
	}
	return f, false
}

// options are the choices: an enum, with the older enumNames, or constants with titles.
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

// pair finds the texts that stand beside a select for who wants to say something else: Codex names the question in _meta, and both it and
// Claude put an ending to the question's name.
func pair(fields []formField) {
	for i := range fields {
		f := &fields[i]
		if f.kind != "string" || f.choices != nil {
			f.of = ""
			continue
		}
		names := []string{f.of, strings.TrimSuffix(f.name, "_custom"), strings.TrimSuffix(f.name, "_note")}
		f.of = ""
		if at := slices.IndexFunc(fields[:i], func(o formField) bool { return o.choices != nil && slices.Contains(names, o.name) }); at >= 0 {
			f.of = fields[at].name
		}
	}
}

// companion is the name of the text beside a select; "" = it has none.
func companion(fields []formField, name string) string {
	for _, f := range fields {
		if f.of == name && name != "" {
			return f.name
		}
	}
	return ""
}

// contentOf makes the content of a form from lists of answers: one for each field that is no text beside a select, in order; a list that is
// empty or missing leaves its field out. What is no choice goes to the text beside it.
func contentOf(fields []formField, answers [][]string) (json.RawMessage, error) {
	out, i := map[string]any{}, 0
	for _, f := range fields {
		if f.of != "" {
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
		beside := companion(fields, f.name)
		if err := f.fill(out, given, beside); err != nil {
			return nil, err
		}
	}
	if len(answers) > i {
		return nil, bad("answer.count", "want", strconv.Itoa(i), "have", strconv.Itoa(len(answers)))
	}
	return mustJSON(out), nil
}

func (f *formField) fill(out map[string]any, given []string, beside string) error {
	switch {
	case f.choices != nil:
		return f.choose(out, given, beside)
	case f.kind == "boolean":
		b, err := strconv.ParseBool(given[0])
		if err != nil {
			return bad("answer.unknown_option", "optionId", given[0])
		}
		out[f.name] = b
	case f.kind == "string":
		out[f.name] = given[0]
	default:
		n := json.Number(strings.TrimSpace(given[0]))
		if _, err := n.Float64(); err != nil || !json.Valid([]byte(n)) {
			return bad("answer.invalid", "detail", strconv.Quote(given[0])+" is no number")
		}
		out[f.name] = n
	}
	return nil
}

func (f *formField) choose(out map[string]any, given []string, beside string) error {
	chosen, own := []string{}, []string{}
	for _, value := range given {
		i := optionIndex(f.choices, value)
		switch {
		case i >= 0:
			chosen = append(chosen, f.choices[i].ID)
		case beside == "":
			return bad("answer.unknown_option", "optionId", value)
		default:
			own = append(own, value)
		}
	}
	if len(own) > 0 {
		out[beside] = strings.Join(own, ", ")
		if f.other && f.required && len(chosen) == 0 {
			chosen = append(chosen, f.choices[len(f.choices)-1].ID)
		}
	}
	switch {
	case f.kind == "array":
		if len(chosen) > 0 {
			out[f.name] = chosen
		}
	case len(chosen) > 1:
		return bad("answer.choose", "question", f.label())
	case len(chosen) == 1:
		out[f.name] = chosen[0]
	}
	return nil
}

// optionIndex finds a choice by its id, else by what people read; -1 = it is none.
func optionIndex(options []QuestionOption, value string) int {
	if i := slices.IndexFunc(options, func(o QuestionOption) bool { return o.ID == value }); i >= 0 {
		return i
	}
	return slices.IndexFunc(options, func(o QuestionOption) bool { return o.Label == value })
}

func (f *formField) label() string {
	if f.title != "" {
		return f.title
	}
	return f.name
}

// isSet tells whether an optional value was sent: null means no, as absence does.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// stringOf is a value that is a text; "" where it is none.
func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // of another type it stays empty
	return s
}
