package demoagent

import (
	"encoding/json"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// settings are the settings of a session. Every setting has an effect.
type settings struct {
	Mode    string `json:"mode"`
	Model   string `json:"model"`
	Thought string `json:"thought"`
	Brief   bool   `json:"brief"`
}

// The modes.
const (
	modeAsk  = "ask"
	modeCode = "code"
	modePlan = "plan"
)

// The ids of the configuration options.
const (
	optionMode    = "mode"
	optionModel   = "model"
	optionThought = "thought_level"
	optionBrief   = "brief"
)

func defaultSettings() settings {
	return settings{Mode: modeAsk, Model: "demo-large", Thought: "low"}
}

func modes() []mode {
	return []mode{
		{ID: modeAsk, Name: "Ask", Description: "Asks before it changes a file"},
		{ID: modeCode, Name: "Code", Description: "Changes its demo file without asking"},
		{ID: modePlan, Name: "Plan", Description: "Plans and changes nothing"},
	}
}

func modelGroups() []choiceGroup {
	return []choiceGroup{
		{Group: "current", Name: "Current", Options: []choice{
			{Value: "demo-large", Name: "Demo Large", Description: "A context of 200,000 tokens"},
			{Value: "demo-small", Name: "Demo Small", Description: "A context of 32,000 tokens"},
		}},
		{Group: "classic", Name: "Classic", Options: []choice{
			{Value: "demo-classic", Name: "Demo Classic", Description: "A context of 8,000 tokens"},
		}},
	}
}

// contextSize is the context size of the chosen model, in tokens.
func (s settings) contextSize() int64 {
	switch s.Model {
	case "demo-small":
		return 32_000
	case "demo-classic":
		return 8_000
	default:
		return 200_000
	}
}

func thoughtLevels() []choice {
	return []choice{
		{Value: "off", Name: "Off", Description: "Does not think aloud"},
		{Value: "low", Name: "Low", Description: "Thinks shortly"},
		{Value: "high", Name: "High", Description: "Thinks at length"},
	}
}

// options are the configuration options. booleans is set when the client knows options of type boolean.
func (s settings) options(booleans bool) []configOption {
	var modeChoices []choice
	for _, m := range modes() {
		modeChoices = append(modeChoices, choice{Value: m.ID, Name: m.Name, Description: m.Description})
	}
	brief := configOption{ID: optionBrief, Name: "Brief answers", Description: "Leaves out the closing hints", Category: "model_config"}
	if booleans {
		brief.Type, brief.CurrentValue = "boolean", s.Brief
	} else {
		brief.Type, brief.CurrentValue = "select", onOff(s.Brief)
		brief.Options = []choice{{Value: "off", Name: "Off"}, {Value: "on", Name: "On"}}
	}
	return []configOption{
		{ID: optionMode, Name: "Mode", Category: "mode", Type: "select", CurrentValue: s.Mode, Options: modeChoices},
		{ID: optionModel, Name: "Model", Category: "model", Type: "select", CurrentValue: s.Model, Options: modelGroups()},
		{ID: optionThought, Name: "Thinking", Category: "thought_level", Type: "select", CurrentValue: s.Thought, Options: thoughtLevels()},
		brief,
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// values are the values of an option; nil for an unknown option.
func values(option string) []string {
	var values []string
	add := func(choices []choice) {
		for _, c := range choices {
			values = append(values, c.Value)
		}
	}
	switch option {
	case optionMode:
		for _, m := range modes() {
			values = append(values, m.ID)
		}
	case optionModel:
		for _, group := range modelGroups() {
			add(group.Options)
		}
	case optionThought:
		add(thoughtLevels())
	case optionBrief:
		values = []string{onOff(true), onOff(false)}
	}
	return values
}

// with returns the settings with an option set to the client's value: a string, or a boolean for a boolean option.
func (s settings) with(id string, raw json.RawMessage) (settings, *agentio.Error) {
	known := values(id)
	if known == nil {
		return s, agentio.Errorf(acp.CodeInvalidParams, "invalid params: unknown option %q", id)
	}
	var value string
	var flag bool
	if id == optionBrief && json.Unmarshal(raw, &flag) == nil {
		value = onOff(flag)
	} else if json.Unmarshal(raw, &value) != nil {
		return s, agentio.Errorf(acp.CodeInvalidParams, "invalid params: the value of %q must be a string", id)
	}
	if !slices.Contains(known, value) {
		return s, agentio.Errorf(acp.CodeInvalidParams, "invalid params: option %q has no value %q", id, value)
	}
	switch id {
	case optionMode:
		s.Mode = value
	case optionModel:
		s.Model = value
	case optionThought:
		s.Thought = value
	case optionBrief:
		s.Brief = value == onOff(true)
	}
	return s, nil
}
