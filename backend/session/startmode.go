package session

import (
	"slices"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
)

// A conversation begins in the mode and with the model that startmode decides on. What is decided stands in its facts until its agent is there
// for the first time, so that a start that fails, or the end of the program, does not lose it. The agent is told of both before it gets a
// message, and a conversation whose agent is in another mode gets none.

// modelCategory is that of the option by which an agent offers models.
const modelCategory = "model"

func valuesOf(o transcript.ConfigOption) []startmode.Value {
	list := make([]startmode.Value, len(o.Choices))
	for i, ch := range o.Choices {
		list[i] = startmode.Value{Value: ch.Value, Name: ch.Name, Description: ch.Description}
	}
	return list
}

// beginning is how far a life of an agent is with what its conversation begins with.
type beginning struct {
	wish  *transcript.Start // nil = the conversation has begun
	held  bool              // it has begun, and was in a mode that the agent is told of anew
	model bool              // that has been seen to
	mode  bool
	spoke bool // the agent has been sent a message in this life
	last  string
}

// toBegin is what a start of the agent has to see to. What an agent told of itself before its conversation began is its own choice.
func (v *conversation) toBegin() beginning {
	f := &v.fold.Facts
	if f.Start == nil {
		return beginning{held: slices.ContainsFunc(f.Chosen, func(o transcript.ConfigOption) bool { return o.Category == transcript.ModeCategory && o.IsSet() })}
	}
	f.Chosen = slices.DeleteFunc(slices.Clone(f.Options), func(o transcript.ConfigOption) bool {
		return o.Category == transcript.ModeCategory || o.Category == modelCategory && f.Start.Model != ""
	})
	v.fold.FactsChanged = true
	return beginning{wish: f.Start}
}

// beginAs has the agent change to the model and then to the mode that the conversation begins with: which modes there are may depend on the
// model. It is true when then is called later, or never.
func (a *agentProcess) beginAs(then func()) bool {
	s := &a.beginning
	if !s.model {
		s.model = true
		if s.wish != nil && s.wish.Model != "" {
			return a.choose(modelCategory, s.wish.Model, transcript.ProblemStartModel, then)
		}
	}
	if s.mode {
		return false
	}
	s.mode = true
	if s.wish != nil && s.wish.Mode != "" {
		return a.choose(transcript.ModeCategory, s.wish.Mode, transcript.ProblemStartMode, then)
	}
	o := optionOf(a.v.fold.Facts.Options, transcript.ModeCategory)
	if s.held || o == nil {
		return false
	}
	mode, ok := a.v.modes.Begin(o.Value, valuesIn(o))
	if !ok {
		a.notBegun(transcript.ProblemStartUnasked, o.Value, o)
		return true
	}
	return mode != o.Value && a.choose(transcript.ModeCategory, mode, transcript.ProblemStartUnasked, then)
}

// choose has the agent change an option, and keeps in mind that it has to be so (lostMode).
func (a *agentProcess) choose(category, value, problem string, then func()) bool {
	o := optionOf(a.v.fold.Facts.Options, category)
	if o == nil || !o.Offers(value) {
		a.notBegun(problem, value, o)
		return true
	}
	f := a.v.fold
	o.Value = value
	f.Facts.Chosen, f.FactsChanged = append(slices.DeleteFunc(slices.Clone(f.Facts.Chosen), o.Alike), *o), true
	a.chosen = append(a.chosen, *o)
	if !a.rechoose(then) {
		then()
	}
	return true
}

func valuesIn(o *transcript.ConfigOption) []string {
	if o == nil {
		return nil
	}
	list := make([]string, len(o.Choices))
	for i, c := range o.Choices {
		list[i] = c.Value
	}
	return list
}

// notBegun ends the start of a conversation that cannot begin as it has to. The next start tries the same again, until somebody has chosen
// another mode or model (setConfig).
func (a *agentProcess) notBegun(problem, value string, o *transcript.ConfigOption) {
	v := a.v
	if v.fold.Facts.Start == nil {
		v.fold.Facts.Start, v.fold.FactsChanged = &transcript.Start{}, true
	}
	a.fail(problem, "agent", v.agentName, "value", value, "offers", strings.Join(valuesIn(o), ", "))
}

// notChanged ends the start of a conversation whose agent did not change to what was chosen.
func (a *agentProcess) notChanged(was transcript.ConfigOption) {
	lost := was.Lost()
	a.fail(transcript.ProblemStartRefused, append([]string{"agent", a.v.agentName}, lost...)...)
}

// lostModel is the model that the conversation begins with and that the agent does not have, whatever it has answered.
func (a *agentProcess) lostModel() *transcript.ConfigOption {
	f := a.v.fold.Facts
	if a.beginning.wish == nil || a.beginning.wish.Model == "" || !a.beginning.model {
		return nil
	}
	if o := optionOf(f.Options, modelCategory); o == nil || o.Value != a.beginning.wish.Model {
		return optionOf(f.Chosen, modelCategory)
	}
	return nil
}

// settled is the end of a start that went well.
func (a *agentProcess) settled() {
	f := a.v.fold
	if f.Facts.Start != nil {
		f.Facts.Start, f.FactsChanged = nil, true
	}
	if o := optionOf(f.Facts.Options, transcript.ModeCategory); o != nil {
		a.beginning.last = o.Value
	}
	a.v.noteOffer()
}

// noteOffer keeps what the agent offers, for the next conversation.
func (v *conversation) noteOffer() {
	var offer startmode.Offer
	if o := optionOf(v.fold.Facts.Options, transcript.ModeCategory); o != nil {
		offer.Modes = valuesOf(*o)
	}
	if o := optionOf(v.fold.Facts.Options, modelCategory); o != nil {
		offer.Models = valuesOf(*o)
	}
	c, agent, place := v.c, v.row.Agent, v.row.Place
	c.background(func() {
		version := ""
		if catalogue := c.hosts.At(place).Agents; catalogue != nil {
			now, err := catalogue.Agent(agent)
			if err != nil {
				return
			}
			version = now.Version
		}
		if err := c.starts.Note(c.ctx, agent, place, version, offer); err != nil && c.ctx.Err() == nil {
			c.cfg.Logger.Warn("what an agent offers is not kept", "agent", agent, "error", err)
		}
	})
}

// strays sees to an agent that has changed its mode between its start and its first message, when nobody has chosen that: one that tells of its
// modes late, or that changes by itself. True = send is called once the agent is back in its mode, or never.
func (a *agentProcess) strays(send func()) bool {
	s, o := &a.beginning, optionOf(a.v.fold.Facts.Options, transcript.ModeCategory)
	if s.spoke || o == nil || o.Value == s.last || a.v.modes.Safe(o.Value) {
		s.spoke = true
		return false
	}
	s.mode = false
	if s.last != "" {
		s.wish = &transcript.Start{Mode: s.last}
	}
	again := func() {
		if was := a.lostMode(); was != nil {
			a.notChanged(*was)
			return
		}
		a.v.fold.Facts.Chosen, a.v.fold.FactsChanged = nil, true
		s.spoke = true
		send()
	}
	if !a.beginAs(again) {
		s.spoke = true
		return false
	}
	return true
}

// chooseStart is setConfig for a conversation that could not begin: what is chosen is what it begins with, and it is started.
func (v *conversation) chooseStart(o transcript.ConfigOption) error {
	f := v.fold
	wish := transcript.Start{}
	if f.Facts.Start != nil {
		wish = *f.Facts.Start
	}
	switch {
	case o.Category == transcript.ModeCategory && o.Type == "select":
		wish.Mode = o.Value
	case o.Category == modelCategory && o.Type == "select":
		wish.Model = o.Value
	default:
		return &RefusedError{Code: "session.not_ready"}
	}
	f.Facts.Start, f.FactsChanged = &wish, true
	return v.wish(lifecycle.Start{})
}
