package startmode

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"deskhand/backend/agents"
	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// StartMode is the mode and the model that new conversations with an agent begin with.
type StartMode struct {
	Mode  string    `json:"mode" doc:"The mode of the next conversation; empty where the agent begins in one of its own and nobody has chosen another"`
	Model string    `json:"model" doc:"The model of the next conversation; empty for the agent's own"`
	Usual string    `json:"usual" doc:"The mode where nobody has chosen one; empty where the agent begins in one of its own"`
	Asks  Judgement `json:"asks" enum:"asks,decides,settings,unknown" doc:"Whether the agent asks in that mode before it changes something"`

	Chosen Chosen  `json:"chosen" doc:"What people have chosen: for the agent, and for the agent in the directory, which goes first"`
	Modes  []Value `json:"modes" doc:"What the agent offered when a conversation last began; of an agent that has begun none here, what is known of it"`
	Models []Value `json:"models"`
}

// Choices decide in which mode and with which model the conversations of this machine and of remote places begin. Any goroutine may call the
// methods of Choices.
type Choices struct {
	Library *Library

	hosts     host.Hosts
	catalogue *agents.Catalogue
	standsFor func(directory string) string
}

// NewChoices returns the choices of a library. standsFor returns the directory of the repository for a worktree of Deskhand's, and any other
// directory as it is.
func NewChoices(library *Library, hosts host.Hosts, catalogue *agents.Catalogue, standsFor func(string) string) *Choices {
	return &Choices{library, hosts, catalogue, standsFor}
}

// For returns the mode and model that a conversation with an agent begins with in a directory; without a directory, in every
// directory that has no choice of its own. With a mode it answers as if that mode had been chosen.
func (c *Choices) For(ctx context.Context, agent, place, directory, mode string) (StartMode, error) {
	place = cmp.Or(place, host.Local)
	if err := c.hosts.At(place).Startable(agent); err != nil {
		return StartMode{}, err
	}
	chosen, err := c.Library.Chosen(ctx, agent, place, c.project(place, directory))
	if err != nil {
		return StartMode{}, err
	}
	offer, _, err := c.Library.Offered(ctx, agent, place)
	if err != nil {
		return StartMode{}, err
	}
	modes := Of(c.catalogue.Modes(agent))
	if len(offer.Modes) == 0 {
		offer.Modes = c.knownModes(agent)
	}
	for i, m := range offer.Modes {
		offer.Modes[i].Asks = modes.Judge(m.Value)
	}
	now := Choice{Mode: mode}.Over(chosen.Directory).Over(chosen.Agent)
	if now.Mode == "" {
		now.Mode = modes.Default()
	}
	s := StartMode{Mode: now.Mode, Model: now.Model, Usual: modes.Default(), Asks: modes.Judge(now.Mode), Chosen: chosen, Modes: offer.Modes, Models: offer.Models}
	if s.Modes == nil {
		s.Modes = []Value{}
	}
	if s.Models == nil {
		s.Models = []Value{}
	}
	return s, nil
}

// Choose stores the mode and model that conversations with an agent begin with: in one directory, or without a directory in all. An
// empty field of choice removes an earlier choice.
func (c *Choices) Choose(ctx context.Context, agent, place, directory string, choice Choice) (StartMode, error) {
	place = cmp.Or(place, host.Local)
	if err := c.hosts.At(place).Startable(agent); err != nil {
		return StartMode{}, err
	}
	if directory != "" && c.hosts.At(place).Directories != nil && !filepath.IsAbs(directory) {
		return StartMode{}, refusal.Bad("directory.relative", "path", directory)
	}
	if err := c.offered(ctx, agent, place, choice); err != nil {
		return StartMode{}, err
	}
	if err := c.Library.Choose(ctx, agent, place, c.project(place, directory), choice); err != nil {
		return StartMode{}, err
	}
	return c.For(ctx, agent, place, directory, "")
}

// project returns the directory that a choice is stored for: for a worktree of Deskhand's, the directory of its repository.
func (c *Choices) project(place, directory string) string {
	if directory == "" || c.hosts.At(place).Directories == nil {
		return directory
	}
	return c.standsFor(filepath.Clean(directory))
}

// knownModes returns the modes that the catalogue knows of an agent, for an agent that has begun no conversation here.
func (c *Choices) knownModes(agent string) (list []Value) {
	for _, o := range transcript.ConfigOptions(c.catalogue.KnownOptions(agent)) {
		if o.Category == transcript.ModeCategory {
			list = append(list, ValuesOf(o)...)
		}
	}
	if modes, measured := c.catalogue.Modes(agent); measured && len(list) == 0 {
		for _, mode := range slices.Concat(modes.Asking, modes.Settings, modes.Deciding) {
			list = append(list, Value{Value: mode, Name: inWords(mode)})
		}
	}
	return list
}

// inWords returns a name for a mode of which only the id is known: acceptEdits is "Accept edits". Some ids are URLs.
func inWords(mode string) string {
	var words []rune
	for i, r := range []rune(mode[strings.LastIndexByte(mode, '#')+1:]) {
		switch {
		case i == 0:
			words = append(words, unicode.ToUpper(r))
		case r == '-' || r == '_':
			words = append(words, ' ')
		case unicode.IsUpper(r) && unicode.IsLower(words[len(words)-1]):
			words = append(words, ' ', unicode.ToLower(r))
		default:
			words = append(words, r)
		}
	}
	return string(words)
}

// offered refuses a mode or a model that the agent does not offer, if the offer of the agent's installed version is known.
func (c *Choices) offered(ctx context.Context, agent, place string, choice Choice) error {
	catalogue := c.hosts.At(place).Agents
	if choice == (Choice{}) || catalogue == nil {
		return nil
	}
	offer, version, err := c.Library.Offered(ctx, agent, place)
	if err != nil {
		return err
	}
	now, err := catalogue.Agent(agent)
	if same := err == nil && version != "" && now.Version == version; !same {
		return nil // the start reports an agent that is missing
	}
	for _, one := range []struct {
		code, value string
		list        []Value
	}{{transcript.ProblemStartMode, choice.Mode, offer.Modes}, {transcript.ProblemStartModel, choice.Model, offer.Models}} {
		if one.value != "" && !slices.ContainsFunc(one.list, func(v Value) bool { return v.Value == one.value }) {
			return refusal.Bad(one.code, "agent", c.catalogue.Name(agent), "value", one.value, "offers", offersOf(one.list))
		}
	}
	return nil
}

func offersOf(list []Value) string {
	values := make([]string, len(list))
	for i, v := range list {
		values[i] = v.Value
	}
	return strings.Join(values, ", ")
}

// Decide decides the mode and model of a new conversation; given holds those that the request named.
func (c *Choices) Decide(ctx context.Context, agent, place, directory string, given Choice) (*transcript.Start, error) {
	place = cmp.Or(place, host.Local)
	if err := c.offered(ctx, agent, place, given); err != nil {
		return nil, err
	}
	chosen, err := c.Library.Chosen(ctx, agent, place, c.project(place, directory))
	if err != nil {
		return nil, err
	}
	choice := given.Over(chosen.Directory).Over(chosen.Agent)
	return &transcript.Start{Mode: choice.Mode, Model: choice.Model}, nil
}

// ValuesOf returns the values that an option of an agent offers.
func ValuesOf(o transcript.ConfigOption) []Value {
	list := make([]Value, len(o.Choices))
	for i, ch := range o.Choices {
		list[i] = Value{Value: ch.Value, Name: ch.Name, Description: ch.Description}
	}
	return list
}
