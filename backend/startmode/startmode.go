// Package startmode decides in which mode and with which model a new conversation begins.
//
// Many agents have modes in which they decide by themselves what they may do, and some of them begin in such a mode. A conversation begins in
// a mode that decides by itself only when a person has chosen that mode: for the one conversation, for the agent in a directory, or for the
// agent. Where nobody has chosen, it begins in the mode that the agent itself begins in when that one asks, and else in the first mode of
// [agents.Modes.Begin] that the agent offers.
//
// What a mode means is data of the catalogue ([agents.Modes]). A mode that the catalogue does not know counts like one that decides by itself,
// so that a new version of an agent which renames or adds modes loosens nothing. Of an agent that nobody has measured only the modes that mean
// the same everywhere are known; a conversation with it may begin in an unknown mode, since there may be no other.
package startmode

import (
	"slices"

	"deskhand/backend/agents"
)

// Judgement tells whether an agent asks a person in one of its modes.
type Judgement string

// The judgements.
const (
	Asks     Judgement = "asks"     // before it changes a file or runs a command, or it does neither
	Decides  Judgement = "decides"  // by itself: nobody is asked, at least about some changes
	Settings Judgement = "settings" // as the agent's own settings say, which Deskhand does not read
	Unknown  Judgement = "unknown"
)

// Modes are those of one agent, to be judged.
type Modes struct {
	known    agents.Modes
	measured bool
}

// Of makes them of what the catalogue knows.
func Of(known agents.Modes, measured bool) Modes { return Modes{known, measured} }

// Judge tells what the agent does in a mode.
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

// Begin gives the mode in which a conversation begins when nobody has chosen one, of the modes that the agent offers. ok is false when the
// agent has none that asks. current is the mode that the agent begins in by itself.
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

// Default is Begin before the agent has told anything: "" where nobody knows.
func (m Modes) Default() string {
	if len(m.known.Begin) == 0 || !m.measured {
		return ""
	}
	return m.known.Begin[0]
}

// Choice is a mode and a model; an empty one is not chosen.
type Choice struct {
	Mode  string `json:"mode,omitempty" maxLength:"1024"`
	Model string `json:"model,omitempty" maxLength:"1024"`
}

// Over gives the choice, and where it leaves something open, that of lower.
func (c Choice) Over(lower Choice) Choice {
	if c.Mode == "" {
		c.Mode = lower.Mode
	}
	if c.Model == "" {
		c.Model = lower.Model
	}
	return c
}

// Offer is what an agent offered when a conversation last began.
type Offer struct {
	Modes  []Value `json:"modes,omitempty"`
	Models []Value `json:"models,omitempty"`
}

// Value is one mode or model.
type Value struct {
	Value       string    `json:"value"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Asks        Judgement `json:"asks,omitempty" enum:"asks,decides,settings,unknown" doc:"Judgement of a mode: the agent asks before a change; the agent decides by itself; the agent's own settings decide; or unknown, which counts like deciding by itself"`
}
