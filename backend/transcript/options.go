package transcript

import (
	"encoding/json"
	"strconv"

	"deskhand/backend/acp"
	"deskhand/backend/record"
)

// The ids under which an agent's older modes and models are shown as config options. They are the options' categories too.
const (
	modesOption  = "mode"
	modelsOption = "model"
)

// Limits of the stored facts of an agent. The facts are in the session's record, which is stored and sent whole again and again.
const (
	maxFacts = 1 << 20 // bytes of all commands; of all options; of all their choices
	maxWords = 4 << 10 // bytes of a title, and of the description of a command, an option or a choice
	maxLabel = 1 << 10 // bytes of an enumerated word or a name
)

// commands returns the first of an agent's commands, up to the limit. A name is kept whole or not at all, because a person sends the name.
func commands(list []acp.Command) []Command {
	out, room := make([]Command, 0, len(list)), maxFacts
	for _, c := range list {
		command := Command{Name: c.Name, Description: Clip(c.Description, maxWords)}
		if c.Input != nil {
			command.Hint = Clip(c.Input.Hint, maxWords)
		}
		if room -= len(record.JSON(command)); room < 0 {
			break
		}
		out = append(out, command)
	}
	return out
}

// isModel tells of an option that chooses the model.
func isModel(o ConfigOption) bool { return o.Category == modelsOption || o.ID == modelsOption }

// olderOption returns the option for an agent's older form of modes or models, if the agent has any. The current value is kept whole or not
// at all, like every value of an option.
func olderOption(id, name, current string, choices []acp.ConfigChoice) []ConfigOption {
	if len(current) > maxWords {
		return []ConfigOption{}
	}
	option, room := ConfigOption{ID: id, Name: name, Category: id, Type: "select", Value: current}, maxFacts
	option.offer(choices, &room)
	return []ConfigOption{option}
}

// ConfigOptions converts the options of an agent, as many as maxFacts allows.
func ConfigOptions(list []acp.ConfigOption) []ConfigOption {
	out, room := make([]ConfigOption, 0, len(list)), maxFacts
	for _, o := range list {
		option := ConfigOption{ID: o.ID, Name: Clip(o.Name, maxLabel), Description: Clip(o.Description, maxWords), Category: o.Category, Type: o.Type}
		// The type decides which of the two is meant; a value of the wrong type is none.
		if o.Type == "boolean" {
			_ = json.Unmarshal(o.Current, (*acp.Flag)(&option.Checked))
		} else {
			_ = json.Unmarshal(o.Current, (*acp.Text)(&option.Value))
		}
		if room -= len(record.JSON(option)); room < 0 {
			break
		}
		out = append(out, option)
	}
	room = maxFacts
	for _, modes := range []bool{true, false} { // a mode that asks can be chosen, however many models there are
		for i := range out {
			if (out[i].Category == ModeCategory) == modes {
				out[i].offer(list[i].Choices, &room)
			}
		}
	}
	return out
}

// offer adds choices up to the limit. The current choice is always included, whatever its position: without that choice nobody would see
// the current value. The current choices of all options together have the same limit again.
func (o *ConfigOption) offer(list []acp.ConfigChoice, room *int) {
	shown := false
	for _, c := range list {
		choice := ConfigChoice{Value: c.Value, Name: Clip(c.Name, maxLabel), Description: Clip(c.Description, maxWords), Group: Clip(c.Group, maxLabel)}
		size := len(record.JSON(choice))
		current := c.Value == o.Value
		if size <= *room || current && !shown && size <= *room+maxFacts {
			o.Choices, shown = append(o.Choices, choice), shown || current
			*room -= size
		}
	}
}

// Alike reports whether both are the same option, whatever the values.
func (o ConfigOption) Alike(p ConfigOption) bool { return o.ID == p.ID && o.Type == p.Type }

// Same reports whether both have the same value.
func (o ConfigOption) Same(p ConfigOption) bool { return o.Value == p.Value && o.Checked == p.Checked }

// IsSet reports whether an option has a value that can be set again.
func (o ConfigOption) IsSet() bool { return o.Type == "boolean" || o.Type == "select" && o.Value != "" }

// ModeCategory is the category of options that decide whether an agent asks before it acts.
const ModeCategory = "mode"

// Lost returns the parameters of the text for an option that has lost its value.
func (o ConfigOption) Lost() []string {
	value := o.Value
	if o.Type == "boolean" {
		value = strconv.FormatBool(o.Checked)
	}
	for _, c := range o.Choices {
		if c.Value == o.Value {
			value = c.Name
		}
	}
	return []string{"option", o.Name, "value", value}
}

// With returns the option with another value; ok is false for a value that the option cannot have.
func (o ConfigOption) With(value json.RawMessage) (chosen ConfigOption, ok bool) {
	var err error
	switch {
	case string(value) == "null": // encoding/json would take null for any type
		return o, false
	case o.Type == "boolean":
		err = json.Unmarshal(value, &o.Checked)
	default:
		err = json.Unmarshal(value, &o.Value)
	}
	return o, err == nil && (o.Type == "boolean" || o.Offers(o.Value))
}

// Offers reports whether an option has a value among its choices.
func (o ConfigOption) Offers(value string) bool {
	for _, c := range o.Choices {
		if c.Value == value {
			return true
		}
	}
	return false
}

// ConfigOption is a setting that the agent offers (mode, model, thought level...). An agent's older modes are shown as an option of
// category mode.
type ConfigOption struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Category    string         `json:"category,omitempty"`
	Type        string         `json:"type" doc:"select or boolean; options of other types are shown and cannot be changed"`
	Value       string         `json:"value,omitempty" doc:"The chosen value of a select"`
	Checked     bool           `json:"checked,omitempty" doc:"The state of a boolean"`
	Choices     []ConfigChoice `json:"choices,omitempty"`
}

// ConfigChoice is a value of a select; Group is the heading above the value.
type ConfigChoice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Group       string `json:"group,omitempty"`
}
