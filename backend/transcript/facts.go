package transcript

import (
	"bytes"
	"encoding/json"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/record"
)

// IsFact reports whether a kind of session/update changes the facts alone, and no entry.
func IsFact(kind string) bool {
	return slices.Contains([]string{
		"available_commands_update", "config_option_update", "current_mode_update", "session_info_update", "usage_update",
	}, kind)
}

// applyFact folds an update of the facts; known is false for any other kind.
func (t *Fold) applyFact(u acp.Update) (known bool, err error) {
	if !IsFact(u.Kind) {
		return false, nil
	}
	switch u.Kind {
	case "available_commands_update":
		list, err := acp.ParseCommands(u.Body)
		if err != nil {
			return true, err
		}
		t.Facts.Commands = commands(list)
	case "config_option_update":
		t.applyOptions(u.Body)
	case "current_mode_update":
		mode, err := acp.ParseCurrentMode(u.Body)
		if err != nil {
			return true, err
		}
		t.SetMode(mode)
	case "session_info_update":
		info, err := acp.ParseSessionInfo(u.Body)
		if err != nil {
			return true, err
		}
		if info.Title != nil {
			t.Facts.Title = Clip(*info.Title, maxWords)
		}
	case "usage_update":
		usage, err := acp.ParseUsage(u.Body)
		if err != nil {
			return true, err
		}
		t.applyUsage(usage)
	}
	t.FactsChanged = true
	return true, nil
}

// applyUsage stores a usage_update. What the update does not tell stays: Claude's adapter tells the cost at the end of a turn alone, and a
// limit only when the provider's answer had one.
func (t *Fold) applyUsage(told acp.Usage) {
	usage := &Usage{Used: told.Used, Size: told.Size, Cost: (*Cost)(told.Cost)}
	if before := t.Facts.Usage; before != nil {
		if usage.Cost == nil {
			usage.Cost = before.Cost
		}
		usage.Limits = slices.Clone(before.Limits)
	}
	for _, l := range told.Limits {
		usage.Limits = withLimit(usage.Limits, l)
	}
	t.Facts.Usage = usage
	if told.Model != "" {
		t.Facts.Model = Clip(told.Model, maxLabel)
	}
}

// takeAccount stores the account that a notification tells, and reports whether it tells one.
func (f *Facts) takeAccount(method string, params json.RawMessage) (told bool) {
	a, told := acp.ParseAccount(method, params)
	if told {
		f.Account = &a
	}
	return told
}

// ModelInUse returns the model that a session works with: the value of the option of category model. Where the option says no more than that the
// agent chooses, or is absent, the model counts that the agent last said it used.
func (f Facts) ModelInUse() string {
	list := f.Shown()
	if i := slices.IndexFunc(list, isModel); i >= 0 && list[i].Value != "" && (list[i].Value != agentsOwn || f.Model == "") {
		return list[i].Value
	}
	return f.Model
}

// agentsOwn is the value of Claude's option for the model that Claude chooses by itself.
const agentsOwn = "default"

// maxLimits is how many limits of an account a session's record holds at most. An agent that names more of them loses the oldest.
const maxLimits = 16

// withLimit puts a limit in the place of the older one of its type.
func withLimit(list []AccountLimit, told acp.AccountLimit) []AccountLimit {
	limit := AccountLimit{Type: Clip(told.Type, maxLabel), Status: told.Status, Used: told.Used}
	if !told.ResetsAt.IsZero() {
		limit.ResetsAt = &record.Time{Time: told.ResetsAt}
	}
	if i := slices.IndexFunc(list, func(l AccountLimit) bool { return l.Type == limit.Type }); i >= 0 {
		list[i] = limit
		return list
	}
	list = append(list, limit)
	return list[max(0, len(list)-maxLimits):]
}

// applyOptions stores the config options of a session response or an update, which always hold the whole list. An agent's older modes and
// models become options when the agent has no options for them.
func (t *Fold) applyOptions(body json.RawMessage) {
	if body == nil {
		return
	}
	models, told := t.modelsIn(body)
	list, modes := slices.DeleteFunc(slices.Clone(t.Facts.Options), t.IsOlderModel), t.Facts.Modes
	whole, isList := acp.ParseConfigOptions(body)
	m, hasModes := acp.ParseModes(body)
	switch {
	case isList:
		list, modes = ConfigOptions(whole), false
	case hasModes:
		list, modes = olderOption(modesOption, "Mode", m.Current, m.List), true
	case !told:
		return
	case !t.Told: // the previous agent process sent the list
		list, modes = []ConfigOption{}, false
	}
	t.Facts.Models = len(models) > 0 && !slices.ContainsFunc(list, isModel)
	if t.Facts.Models {
		list = append(list, models...)
	}
	t.Facts.Options, t.Facts.Modes, t.FactsChanged, t.Told = list, modes, true, true
}

// modelsIn is the option for the older models of a body. A body without models changes nothing of those that this process has told of.
func (t *Fold) modelsIn(body json.RawMessage) (list []ConfigOption, told bool) {
	if m, ok := acp.ParseModels(body); ok {
		return olderOption(modelsOption, "Model", m.Current, m.List), true
	}
	if i := slices.IndexFunc(t.Facts.Options, t.IsOlderModel); i >= 0 && t.Told {
		return []ConfigOption{t.Facts.Options[i]}, false
	}
	return nil, false
}

// KeepOptions restores the stored options after a fold of the journal: a change of older modes and models leaves no frame.
func (t *Fold) KeepOptions(f Facts) {
	t.Facts.Options, t.Facts.Modes, t.Facts.Models = f.Options, f.Modes, f.Models
}

// IsOlderModel reports whether an option stands for the models of an agent that offers models outside its options.
func (t *Fold) IsOlderModel(o ConfigOption) bool { return t.Facts.Models && o.ID == modelsOption }

// SetMode changes the mode that is shown, both of agents with a mode option and of agents with older modes.
func (t *Fold) SetMode(mode string) {
	for i, o := range t.Facts.Options {
		if o.Category == ModeCategory && slices.ContainsFunc(o.Choices, func(c ConfigChoice) bool { return c.Value == mode }) {
			t.Facts.Options = slices.Clone(t.Facts.Options)
			t.Facts.Options[i].Value = mode
			return
		}
	}
}

// SetOption changes the value that is shown of an option.
func (t *Fold) SetOption(to ConfigOption) {
	t.Facts.Options, t.FactsChanged = slices.Clone(t.Facts.Options), true
	for i, o := range t.Facts.Options {
		if o.Alike(to) {
			t.Facts.Options[i].Value, t.Facts.Options[i].Checked = to.Value, to.Checked
		}
	}
}

// Unsure forgets the value of an option after the agent refused a change. An agent that has told its options keeps them: only an agent that
// has told none leaves open which value is set.
func (t *Fold) Unsure(was ConfigOption) {
	switch {
	case t.Told:
	case was.Type == "boolean": // a boolean has no third value
		t.Facts.Options, t.FactsChanged = slices.DeleteFunc(slices.Clone(t.Facts.Options), was.Alike), true
	default:
		was.Value = ""
		t.SetOption(was)
	}
}

// Shown returns the options with the values that a person has chosen, even before the agent was told of the choice.
func (f Facts) Shown() []ConfigOption {
	if len(f.Chosen) == 0 {
		return f.Options
	}
	list := slices.Clone(f.Options)
	for i, o := range list {
		if n := slices.IndexFunc(f.Chosen, o.Alike); n >= 0 {
			list[i].Value, list[i].Checked = f.Chosen[n].Value, f.Chosen[n].Checked
		}
	}
	return list
}

// FailedStart is a start that failed while the agent took its session up.
type FailedStart struct {
	Method string      `json:"method"`
	At     record.Time `json:"at"`
}

// Takes says which content a prompt may hold beside text and links.
type Takes struct {
	Image    bool `json:"image,omitempty"`
	Embedded bool `json:"embedded,omitempty"`
}

// Start is the mode and the model that a conversation begins with. An empty mode means a mode that asks, an empty model the agent's own.
type Start struct {
	Mode  string `json:"mode,omitempty"`
	Model string `json:"model,omitempty"`
}

// Facts.Offers: optional abilities of an agent.
const (
	OfferFork        = "fork"
	OfferSteer       = "steer"
	offerClose       = "close"
	offerDelete      = "delete"
	offerList        = "list"
	offerDirectories = "directories" // the agent works in several directories
)

// applyOffers reads the abilities of the agent from the answer to initialize, and ignores every other answer.
func (t *Fold) applyOffers(result json.RawMessage) {
	if !bytes.Contains(result, []byte(`"protocolVersion"`)) {
		return
	}
	can, err := acp.ParseInitialized(result)
	if err != nil || can.ProtocolVersion == 0 {
		return
	}
	t.Facts.Offers, t.Facts.Takes, t.FactsChanged = offers(can), &Takes{can.Image, can.Embedded}, true
}

func offers(can acp.Initialized) []string {
	list := []string{}
	for _, o := range []struct {
		name  string
		there bool
	}{
		{OfferFork, can.Fork},
		{OfferSteer, can.Steer},
		{offerClose, can.Close},
		{offerDelete, can.Delete},
		{offerList, can.List},
		{offerDirectories, can.Directories},
	} {
		if o.there {
			list = append(list, o.name)
		}
	}
	return list
}
