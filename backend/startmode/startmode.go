// Package startmode decides in which mode and with which model a new conversation begins.
//
// Many agents have modes in which they decide by themselves about their actions, and some begin in such a mode. A conversation begins in a
// deciding mode only when a person has chosen that mode: for the conversation, for the agent in a directory, or for the agent. Without a
// choice, the conversation begins in the agent's own first mode when the agent asks in that mode, and otherwise in the first mode of
// [agents.Modes.Begin] that the agent offers.
//
// The meaning of a mode is data of the catalogue ([agents.Modes]). A mode that the catalogue does not know counts as a deciding mode, so
// that a new version of an agent which renames or adds modes loosens nothing. For an unmeasured agent only the modes with the same meaning
// everywhere are known; a conversation with such an agent may begin in an unknown mode, since there may be no other.
package startmode

import (
	"slices"

	"deskhand/backend/agents"
)

// Judgement says whether an agent asks a person in a mode.
type Judgement string

// The judgements.
const (
	Asks     Judgement = "asks"     // before the agent changes a file or runs a command, or the agent does neither
	Decides  Judgement = "decides"  // by itself: nobody is asked, at least about some changes
	Settings Judgement = "settings" // as the agent's own settings say, which Deskhand does not read
	Unknown  Judgement = "unknown"
)

// Modes judges the modes of an agent.
type Modes struct {
	known    agents.Modes
	measured bool
}

// Of returns the Modes of an agent by the catalogue's data.
func Of(known agents.Modes, measured bool) Modes { return Modes{known, measured} }

// Judge returns the judgement of a mode.
func (m Modes) Judge(mode string) Judgement {
	switch {
	case m.known.Unasking, slices.Contains(m.known.Deciding, mode):
		return Decides
	case slices.Contains(m.known.Asking, mode):
		return Asks
	case slices.Contains(m.known.Settings, mode):
		return Settings
	}
	return Unknown
}

// Safe tells whether a conversation may begin in a mode that nobody has chosen.
func (m Modes) Safe(mode string) bool {
	switch m.Judge(mode) {
	case Asks, Settings:
		return true
	case Unknown:
		return !m.measured
	case Decides:
	}
	return false
}

// Begin returns the mode, of those that the agent offers, in which a conversation begins when nobody has chosen one. ok is false when the
// agent has no mode that asks. current is the agent's own first mode.
func (m Modes) Begin(current string, offered []string) (mode string, ok bool) {
	if m.Safe(current) {
		return current, true
	}
	i := slices.IndexFunc(m.known.Begin, func(mode string) bool { return slices.Contains(offered, mode) })
	if i < 0 {
		return "", false
	}
	return m.known.Begin[i], true
}

// Default returns the result of Begin before the agent has sent its modes: "" when unknown.
func (m Modes) Default() string {
	if len(m.known.Begin) == 0 || !m.measured {
		return ""
	}
	return m.known.Begin[0]
}

// Choice is a mode and a model; an empty field is not chosen.
type Choice struct {
	Mode  string `json:"mode,omitempty" maxLength:"1024"`
	Model string `json:"model,omitempty" maxLength:"1024"`
}

// Over returns the choice, with empty fields filled from lower.
func (c Choice) Over(lower Choice) Choice {
	if c.Mode == "" {
		c.Mode = lower.Mode
	}
	if c.Model == "" {
		c.Model = lower.Model
	}
	return c
}

// Offer is an agent's offer of modes and models when a conversation last began.
type Offer struct {
	Modes  []Value `json:"modes,omitempty"`
	Models []Value `json:"models,omitempty"`
}

// Value is a mode or model.
type Value struct {
	Value       string    `json:"value"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Asks        Judgement `json:"asks,omitempty" enum:"asks,decides,settings,unknown" doc:"Judgement of a mode: the agent asks before a change; the agent decides by itself; the agent's own settings decide; or unknown, which counts like deciding by itself"`
}
