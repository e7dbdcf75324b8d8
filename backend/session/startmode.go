package session

import (
	"slices"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
)

// Package startmode decides in which mode and with which model a conversation begins. The decision is kept in the facts of the conversation
// until its agent is ready for the first time, so that a failed start or the end of the program does not lose it. The agent is asked for
// both before it gets a prompt, and an agent in another mode gets no prompt.

// modelCategory is the category of the option by which an agent offers models.
const modelCategory = "model"

// beginning is the progress of one agent process in setting the mode and the model of its conversation.
type beginning struct {
	a     *agentProcess
	wish  *transcript.Start // nil once the conversation has begun
	held  bool              // the conversation has begun, in a mode that the agent is asked for again
	model bool              // the model has been handled
	// mode has been handled
	mode  bool
	spoke bool // this process was sent a prompt
	last  string
}

// toBegin returns the beginning of a new process. Options that an agent reported before its conversation began are the agent's own choice,
// and are not asked for again.
func (a *agentProcess) toBegin() beginning {
	f := &a.v.fold.Facts
	if f.Start == nil {
		return beginning{a: a, held: slices.ContainsFunc(f.Chosen, func(o transcript.ConfigOption) bool { return o.Category == transcript.ModeCategory && o.IsSet() })}
	}
	f.Chosen = slices.DeleteFunc(slices.Clone(f.Options), func(o transcript.ConfigOption) bool {
		return o.Category == transcript.ModeCategory || o.Category == modelCategory && f.Start.Model != ""
	})
	a.v.fold.FactsChanged = true
	return beginning{a: a, wish: f.Start}
}

// begin asks the agent for the model and then for the mode that the conversation begins with, in this order because the modes may depend on
// the model. begin returns true when then is called later, or never because the start has failed.
func (g *beginning) begin(then func()) bool {
	if !g.model {
		g.model = true
		if g.wish != nil && g.wish.Model != "" {
			return g.choose(modelCategory, g.wish.Model, transcript.ProblemStartModel, then)
		}
	}
	if g.mode {
		return false
	}
	g.mode = true
	if g.wish != nil && g.wish.Mode != "" {
		return g.choose(transcript.ModeCategory, g.wish.Mode, transcript.ProblemStartMode, then)
	}
	o := optionOf(g.a.v.fold.Facts.Options, transcript.ModeCategory)
	if g.held || o == nil {
		return false
	}
	mode, ok := g.a.v.modes.Begin(o.Value, valuesIn(o))
	if !ok {
		g.notBegun(transcript.ProblemStartUnasked, o.Value, o)
		return true
	}
	return mode != o.Value && g.choose(transcript.ModeCategory, mode, transcript.ProblemStartUnasked, then)
}

// choose asks the agent for a value of an option, and records the value as chosen, so that lostMode and lostModel can check it.
func (g *beginning) choose(category, value, problem string, then func()) bool {
	o := optionOf(g.a.v.fold.Facts.Options, category)
	if o == nil || !o.Offers(value) {
		g.notBegun(problem, value, o)
		return true
	}
	f := g.a.v.fold
	o.Value = value
	f.Facts.Chosen, f.FactsChanged = append(slices.DeleteFunc(slices.Clone(f.Facts.Chosen), o.Alike), *o), true
	g.a.chosen = append(g.a.chosen, *o)
	if !g.a.rechoose(then) {
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

// notBegun fails the start of a conversation that cannot begin in the decided mode or with the decided model. The next start tries the
// same, until a person has chosen another mode or model (setConfig).
func (g *beginning) notBegun(problem, value string, o *transcript.ConfigOption) {
	v := g.a.v
	if v.fold.Facts.Start == nil {
		v.fold.Facts.Start, v.fold.FactsChanged = &transcript.Start{}, true
	}
	g.a.fail(problem, "agent", v.agentName, "value", value, "offers", strings.Join(valuesIn(o), ", "))
}

// notChanged fails the start of a conversation whose agent did not change to the chosen mode or model.
func (g *beginning) notChanged(was transcript.ConfigOption) {
	lost := was.Lost()
	g.a.fail(transcript.ProblemStartRefused, append([]string{"agent", g.a.v.agentName}, lost...)...)
}

// lostModel returns the chosen model if the agent has another one, whatever the agent has answered.
func (g *beginning) lostModel() *transcript.ConfigOption {
	f := g.a.v.fold.Facts
	if g.wish == nil || g.wish.Model == "" || !g.model {
		return nil
	}
	if o := optionOf(f.Options, modelCategory); o == nil || o.Value != g.wish.Model {
		return optionOf(f.Chosen, modelCategory)
	}
	return nil
}

// settle completes a successful start: the decided mode and model are no longer pending.
func (g *beginning) settle() {
	f := g.a.v.fold
	if f.Facts.Start != nil {
		f.Facts.Start, f.FactsChanged = nil, true
	}
	if o := optionOf(f.Facts.Options, transcript.ModeCategory); o != nil {
		g.last = o.Value
	}
	g.a.v.noteOffer()
}

// noteOffer stores the modes and models that the agent offers, for the next conversation.
func (v *conversation) noteOffer() {
	var offer startmode.Offer
	if o := optionOf(v.fold.Facts.Options, transcript.ModeCategory); o != nil {
		offer.Modes = startmode.ValuesOf(*o)
	}
	if o := optionOf(v.fold.Facts.Options, modelCategory); o != nil {
		offer.Models = startmode.ValuesOf(*o)
	}
	c, agent, place := v.c, v.row.Agent, v.row.Place
	c.background.Start(func() {
		version := ""
		if catalogue := c.hosts.At(place).Agents; catalogue != nil {
			now, err := catalogue.Agent(agent)
			if err != nil {
				return
			}
			version = now.Version
		}
		if err := c.starts.Library.Note(c.ctx, agent, place, version, offer); err != nil && c.ctx.Err() == nil {
			c.cfg.Logger.Warn("what an agent offers is not kept", "agent", agent, "error", err)
		}
	})
}

// strays handles an agent that changed its mode between its start and the first prompt without a person's choice, because it reports modes
// late or changes by itself. strays returns true when the agent was asked to change back: send is called once the agent is in its mode, or
// never.
func (g *beginning) strays(send func()) bool {
	o := optionOf(g.a.v.fold.Facts.Options, transcript.ModeCategory)
	if g.spoke || o == nil || o.Value == g.last || g.a.v.modes.Safe(o.Value) {
		g.spoke = true
		return false
	}
	g.mode = false
	if g.last != "" {
		g.wish = &transcript.Start{Mode: g.last}
	}
	again := func() {
		if was := g.a.lostMode(); was != nil {
			g.notChanged(*was)
			return
		}
		g.a.v.fold.Facts.Chosen, g.a.v.fold.FactsChanged = nil, true
		g.spoke = true
		send()
	}
	if !g.begin(again) {
		g.spoke = true
		return false
	}
	return true
}

// chooseStart is setConfig for a conversation that could not begin: the chosen value becomes the mode or model to begin with, and the agent
// is started.
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
