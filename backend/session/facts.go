package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"deskhand/backend/acp"
)

// The ids under which an agent's older modes and models are shown as config options. They are the options' categories too.
const (
	modesOption  = "mode"
	modelsOption = "model"
)

// What is kept of the agent's facts at most. They stand in the session's record, which is stored and told whole again and again.
const (
	maxFacts = 1 << 20 // bytes of all commands; of all options; of all their choices
	maxWords = 4 << 10 // of a title, and of what describes a command, an option or a choice
	maxLabel = 1 << 10 // of a word that is one of few, and of a name
)

func clipString(s string) string { return clipTo(s, maxItem) }

// clipTo is the text as far as so many bytes, and a mark.
func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n… %d"+clippedMark, s[:cut], len(s)-cut)
}

// clippedMark ends a text of which not all is shown.
const clippedMark = " more bytes, kept in the journal"

// isFact tells of an update that changes what is known about the session and nothing of its transcript.
func isFact(kind string) bool {
	return slices.Contains([]string{
		"available_commands_update", "config_option_update", "current_mode_update", "session_info_update", "usage_update",
	}, kind)
}

// applyFact folds an update of the facts; known is false for a kind that nobody knows.
func (t *transcript) applyFact(u acp.Update) (known bool, err error) {
	if !isFact(u.Kind) {
		return false, nil
	}
	switch u.Kind {
	case "available_commands_update":
		list, err := acp.ParseCommands(u.Body)
		if err != nil {
			return true, err
		}
		t.facts.Commands = commands(list)
	case "config_option_update":
		t.applyOptions(u.Body)
	case "current_mode_update":
		mode, err := acp.ParseCurrentMode(u.Body)
		if err != nil {
			return true, err
		}
		t.setMode(mode)
	case "session_info_update":
		info, err := acp.ParseSessionInfo(u.Body)
		if err != nil {
			return true, err
		}
		if info.Title != nil {
			t.facts.Title = clipTo(*info.Title, maxWords)
		}
	case "usage_update":
		usage, err := acp.ParseUsage(u.Body)
		if err != nil {
			return true, err
		}
		t.facts.Usage = &Usage{Used: usage.Used, Size: usage.Size, Cost: (*Cost)(usage.Cost)}
	}
	t.changed = true
	return true, nil
}

// commands are the first of an agent's, as far as there is room. A name is whole or not there: it is what a person sends.
func commands(list []acp.Command) []Command {
	out, room := make([]Command, 0, len(list)), maxFacts
	for _, c := range list {
		command := Command{Name: c.Name, Description: clipTo(c.Description, maxWords)}
		if c.Input != nil {
			command.Hint = clipTo(c.Input.Hint, maxWords)
		}
		if room -= len(mustJSON(command)); room < 0 {
			break
		}
		out = append(out, command)
	}
	return out
}

// applyOptions takes config options out of a session response or an update: the list is always the whole one. The older modes and models stand in
// for options where an agent has none for these.
func (t *transcript) applyOptions(body json.RawMessage) {
	if body == nil {
		return
	}
	models, told := t.modelsIn(body)
	list, modes := slices.DeleteFunc(slices.Clone(t.facts.Options), t.isOlderModel), t.facts.Modes
	whole, isList := acp.ParseConfigOptions(body)
	m, hasModes := acp.ParseModes(body)
	switch {
	case isList:
		list, modes = configOptions(whole), false
	case hasModes:
		list, modes = olderOption(modesOption, "Mode", m.Current, m.List), true
	case !told:
		return
	case !t.told: // the process before this one told of the list
		list, modes = []ConfigOption{}, false
	}
	t.facts.Models = len(models) > 0 && !slices.ContainsFunc(list, isModel)
	if t.facts.Models {
		list = append(list, models...)
	}
	t.facts.Options, t.facts.Modes, t.changed, t.told = list, modes, true, true
}

// modelsIn is the option for the older models of a body. A body without models changes nothing of those that this process has told of.
func (t *transcript) modelsIn(body json.RawMessage) (list []ConfigOption, told bool) {
	if m, ok := acp.ParseModels(body); ok {
		return olderOption(modelsOption, "Model", m.Current, m.List), true
	}
	if i := slices.IndexFunc(t.facts.Options, t.isOlderModel); i >= 0 && t.told {
		return []ConfigOption{t.facts.Options[i]}, false
	}
	return nil, false
}

// keepOptions takes the options as they are stored: older modes and models change without a word in the journal.
func (t *transcript) keepOptions(f facts) {
	t.facts.Options, t.facts.Modes, t.facts.Models = f.Options, f.Modes, f.Models
}

// isOlderModel tells of the option that stands for the agent's older models.
func (t *transcript) isOlderModel(o ConfigOption) bool { return t.facts.Models && o.ID == modelsOption }

// isModel tells of an option that chooses the model.
func isModel(o ConfigOption) bool { return o.Category == modelsOption || o.ID == modelsOption }

// olderOption is the option for what an agent offers in an older way, if there is one: the current value is whole or not there, as what is chosen
// of the option has to be.
func olderOption(id, name, current string, choices []acp.ConfigChoice) []ConfigOption {
	if len(current) > maxWords {
		return []ConfigOption{}
	}
	option, room := ConfigOption{ID: id, Name: name, Category: id, Type: "select", Value: current}, maxFacts
	option.offer(choices, &room)
	return []ConfigOption{option}
}

// configOptions are the first of an agent's, as far as there is room.
func configOptions(list []acp.ConfigOption) []ConfigOption {
	out, room := make([]ConfigOption, 0, len(list)), maxFacts
	for _, o := range list {
		option := ConfigOption{ID: o.ID, Name: clipTo(o.Name, maxLabel), Description: clipTo(o.Description, maxWords), Category: o.Category, Type: o.Type}
		// The type decides which of the two is meant; a value of the wrong type is none.
		_ = json.Unmarshal(o.Current, &option.Value)
		_ = json.Unmarshal(o.Current, &option.Checked)
		if room -= len(mustJSON(option)); room < 0 {
			break
		}
		out = append(out, option)
	}
	room = maxFacts
	for _, modes := range []bool{true, false} { // whatever there is of models, a mode in which it asks can be chosen
		for i := range out {
			if (out[i].Category == modeCategory) == modes {
				out[i].offer(list[i].Choices, &room)
			}
		}
	}
	return out
}

// offer adds choices as far as there is room. The one that the option has is among them however many stand before it: without it nobody
// sees which that is. Those of all options have as much room again.
func (o *ConfigOption) offer(list []acp.ConfigChoice, room *int) {
	shown := false
	for _, c := range list {
		choice := ConfigChoice{Value: c.Value, Name: clipTo(c.Name, maxLabel), Description: clipTo(c.Description, maxWords), Group: clipTo(c.Group, maxLabel)}
		size := len(mustJSON(choice))
		current := c.Value == o.Value
		if size <= *room || current && !shown && size <= *room+maxFacts {
			o.Choices, shown = append(o.Choices, choice), shown || current
			*room -= size
		}
	}
}

// setMode changes the mode that is shown, whichever way the agent offers it.
func (t *transcript) setMode(mode string) {
	for i, o := range t.facts.Options {
		if o.Category == modeCategory && slices.ContainsFunc(o.Choices, func(c ConfigChoice) bool { return c.Value == mode }) {
			t.facts.Options = slices.Clone(t.facts.Options)
			t.facts.Options[i].Value = mode
			return
		}
	}
}

// setOption changes the value that is shown of an option.
func (t *transcript) setOption(to ConfigOption) {
	t.facts.Options, t.changed = slices.Clone(t.facts.Options), true
	for i, o := range t.facts.Options {
		if o.alike(to) {
			t.facts.Options[i].Value, t.facts.Options[i].Checked = to.Value, to.Checked
		}
	}
}

// unsure forgets the value of an option of which an agent that tells nothing of its options has refused one: nobody knows which it has.
func (t *transcript) unsure(was ConfigOption) {
	switch {
	case t.told:
	case was.Type == "boolean": // which has no value for that
		t.facts.Options, t.changed = slices.DeleteFunc(slices.Clone(t.facts.Options), was.alike), true
	default:
		was.Value = ""
		t.setOption(was)
	}
}

// alike tells of the same option, whatever its value.
func (o ConfigOption) alike(p ConfigOption) bool { return o.ID == p.ID && o.Type == p.Type }

// same tells of the same value.
func (o ConfigOption) same(p ConfigOption) bool { return o.Value == p.Value && o.Checked == p.Checked }

// isSet tells of an option that has a value, and can be given it.
func (o ConfigOption) isSet() bool { return o.Type == "boolean" || o.Type == "select" && o.Value != "" }

// shown are the options as a person has chosen them, also while the agent is still to be told of it.
func (f facts) shown() []ConfigOption {
	if len(f.Chosen) == 0 {
		return f.Options
	}
	list := slices.Clone(f.Options)
	for i, o := range list {
		if n := slices.IndexFunc(f.Chosen, o.alike); n >= 0 {
			list[i].Value, list[i].Checked = f.Chosen[n].Value, f.Chosen[n].Checked
		}
	}
	return list
}

// alike holds once what agents tell of themselves: it is long, and alike in most of an agent's conversations, which stay loaded after they were
// worked in. Each with its own took 6 kB a conversation.
type alike struct {
	mu       sync.Mutex // protects what is below
	commands map[string][]Command
	options  map[string][]ConfigOption
}

// mostAlike bounds what is held for those that come.
const mostAlike = 64

// share has the row hold what an equal one holds already. Nobody changes these lists in place.
func (a *alike) share(r *row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.facts.Commands, r.facts.Options = once(&a.commands, r.facts.Commands), once(&a.options, r.facts.Options)
	r.showFacts()
}

// once gives the list that was held first of those that are equal.
func once[T any](held *map[string][]T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	key := string(mustJSON(list))
	if first, ok := (*held)[key]; ok {
		return first
	}
	if *held == nil || len(*held) >= mostAlike {
		*held = map[string][]T{}
	}
	(*held)[key] = list
	return list
}
