package editor

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// choice is a request that asks for one of several answers, as an editor without forms is asked: by the options of a permission.
type choice struct {
	prompt  string
	labels  []string
	answers []map[string]any // what Deskhand is answered, by the label
	further bool             // there is more to say than these: in Deskhand
}

// choiceOf makes a choice of a request, where it is one: a question with options, or a form with a single field that must be answered by one
// of several values.
func choiceOf(r asking) (choice, bool) {
	switch {
	case r.Kind == "form":
		return choiceOfForm(r)
	case r.Kind != "question" || len(r.Questions) != 1 || r.Questions[0].MultiSelect || len(r.Questions[0].Options) == 0:
		return choice{}, false
	}
	q := r.Questions[0]
	c := choice{prompt: q.Prompt, further: q.AllowFreeText}
	for _, o := range q.Options {
		c.add(o.Label, o.Description, map[string]any{"answers": [][]string{{o.ID}}})
	}
	return c, true
}

func (c *choice) add(label, description string, answer map[string]any) {
	if description != "" && description != label {
		label += ": " + description
	}
	c.labels, c.answers = append(c.labels, label), append(c.answers, answer)
}

// formField is a field of a form, as far as it may be a choice.
type formField struct {
	Type        string
	Title       string
	Description string
	Default     json.RawMessage
	Enum        []string
	EnumNames   []string
	OneOf       []struct{ Const, Title, Description string }
}

// values are the choices of a field: what is answered, and how that reads.
func (f formField) values() (values, labels, descriptions []string) {
	for i, value := range f.Enum {
		label := value
		if i < len(f.EnumNames) {
			label = f.EnumNames[i]
		}
		values, labels, descriptions = append(values, value), append(labels, label), append(descriptions, "")
	}
	for _, o := range f.OneOf {
		values, labels, descriptions = append(values, o.Const), append(labels, cmp.Or(o.Title, o.Const)), append(descriptions, o.Description)
	}
	if f.Type == "boolean" {
		return []string{"true", "false"}, []string{"Yes", "No"}, []string{"", ""}
	}
	return values, labels, descriptions
}

// choiceOfForm is a form with one field that is a choice. Fields beside it that need no answer are for Deskhand.
func choiceOfForm(r asking) (choice, bool) {
	var schema struct {
		Properties map[string]formField
		Required   []string
	}
	if json.Unmarshal(r.Schema, &schema) != nil {
		return choice{}, false
	}
	var name string
	for _, n := range slices.Sorted(maps.Keys(schema.Properties)) {
		values, _, _ := schema.Properties[n].values()
		switch {
		case len(values) > 0 && name == "":
			name = n
		case len(values) > 0, slices.Contains(schema.Required, n):
			return choice{}, false // more than one thing is asked
		}
	}
	if name == "" {
		return choice{}, false
	}
	f := schema.Properties[name]
	c := choice{prompt: cmp.Or(f.Title, f.Description, r.Title), further: len(schema.Properties) > 1}
	values, labels, descriptions := f.values()
	for i, value := range values {
		var content any = value
		if f.Type == "boolean" {
			content = value == "true"
		}
		c.add(labels[i], descriptions[i], map[string]any{"action": "accept", "content": map[string]any{name: content}})
	}
	return c, true
}

func (c choice) options() []any {
	list := []any{}
	for i, label := range c.labels {
		list = append(list, map[string]any{"optionId": strconv.Itoa(i), "name": label, "kind": "allow_once"})
	}
	if c.further {
		list = append(list, map[string]any{"optionId": optionShow, "name": "Answer otherwise, in Deskhand", "kind": "allow_once"})
	}
	return append(list, map[string]any{"optionId": optionDecline, "name": "Decline", "kind": "reject_once"})
}

// readChoice takes the number of a choice, or what readPointer takes.
func (s *shown) readChoice(r asking, c choice) reader {
	return func(result json.RawMessage) map[string]any {
		i, err := strconv.Atoi(chosen(result))
		if err != nil || i < 0 || i >= len(c.answers) {
			return s.readPointer(r)(result)
		}
		return c.answers[i]
	}
}
