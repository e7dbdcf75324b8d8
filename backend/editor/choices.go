package editor

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Many editors can be set to allow every permission, and then answer with an option that allows. Where the options are answers to choose
// between, the only option that allows leads to Deskhand, and the first option that rejects answers nothing or declines. The answers
// themselves are sent as of the kind that rejects: no editor takes them by itself, and their names say what they do.

// choice is a request for one of several answers. An editor without forms shows a choice as the options of a permission.
type choice struct {
	prompt  string
	labels  []string
	answers []map[string]any // Deskhand's answers, in the order of labels
	further bool             // Deskhand offers more answers than these
}

// choiceOf turns a request into a choice: a question with options, or a form whose only required field has several values. ok is false for
// other requests.
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

// formField is a form's field, with the members that matter for a choice.
type formField struct {
	Type        string
	Title       string
	Description string
	Default     json.RawMessage
	Enum        []string
	EnumNames   []string
	OneOf       []struct{ Const, Title, Description string }
}

// values are a field's values, labels and descriptions.
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

// choiceOfForm turns a form with a single choice into a choice. Optional fields can be answered in Deskhand only.
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
			return choice{}, false // the form requires further answers
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
	show := "Answer it in Deskhand"
	if c.further {
		show = "Answer otherwise, in Deskhand"
	}
	list := []any{offer(optionShow, show, "allow_once"), offer(optionDecline, "Decline", "reject_once")}
	for i, label := range c.labels {
		list = append(list, offer(strconv.Itoa(i), label, "reject_once"))
	}
	return list
}

// choicesOf are the options of a permission that is a choice. An answer whose kind allows says so in its name.
func choicesOf(list []option) []any {
	out := refusalsOf(list)
	if len(out) == 1 {
		out = append(out, offer(optionLeave, "Leave it to Deskhand", "reject_once"))
	}
	for _, o := range list {
		if strings.HasPrefix(o.Kind, "reject") {
			continue
		}
		name := cmp.Or(o.Label, o.Name)
		if effect, ok := map[string]string{"allow_once": " (allows once)", "allow_always": " (allows always)"}[o.Kind]; ok && !strings.HasSuffix(name, effect) {
			name += effect
		}
		out = append(out, offer(o.ID, name, "reject_once"))
	}
	return out
}

// readChosen is readOption for a permission that is a choice.
func (s *shown) readChosen(r asking) reader {
	return func(result json.RawMessage) map[string]any {
		id := chosen(result)
		if slices.ContainsFunc(r.Options, func(o option) bool { return o.ID == id }) {
			return map[string]any{"optionId": id}
		}
		return s.readPointer(r)(result)
	}
}

// readChoice reads the number of a choice, or an answer that readPointer reads.
func (s *shown) readChoice(r asking, c choice) reader {
	return func(result json.RawMessage) map[string]any {
		i, err := strconv.Atoi(chosen(result))
		if err != nil || i < 0 || i >= len(c.answers) {
			return s.readPointer(r)(result)
		}
		return c.answers[i]
	}
}
