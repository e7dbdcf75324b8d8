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
	a     *agentProcess
	wish  *transcript.Start // nil = the conversation has begun
	held  bool              // it has begun, and was in a mode that the agent is told of anew
	model bool              // that has been seen to
	mode  bool
	spoke bool // the agent has been sent a message in this life
	last  string
}

// toBegin is what a start of the agent has to see to. What an agent told of itself before its conversation began is its own choice.
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

// begin has the agent change to the model and then to the mode that the conversation begins with: which modes there are may depend on the
// model. It is true when then is called later, or never.
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

// choose has the agent change an option, and keeps in mind that it has to be so (lostMode).
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

// notBegun ends the start of a conversation that cannot begin as it has to. The next start tries the same again, until somebody has chosen
// another mode or model (setConfig).
func (g *beginning) notBegun(problem, value string, o *transcript.ConfigOption) {
	v := g.a.v
	if v.fold.Facts.Start == nil {
		v.fold.Facts.Start, v.fold.FactsChanged = &transcript.Start{}, true
	}
	g.a.fail(problem, "agent", v.agentName, "value", value, "offers", strings.Join(valuesIn(o), ", "))
}

// notChanged ends the start of a conversation whose agent did not change to what was chosen.
func (g *beginning) notChanged(was transcript.ConfigOption) {
	lost := was.Lost()
	g.a.fail(transcript.ProblemStartRefused, append([]string{"agent", g.a.v.agentName}, lost...)...)
}

// lostModel is the model that the conversation begins with and that the agent does not have, whatever it has answered.
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

// settle is the end of a start that went well.
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
