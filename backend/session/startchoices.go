package session

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/host"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
)

// StartMode is the mode and the model that new conversations with an agent begin with.
type StartMode struct {
	Mode  string              `json:"mode" doc:"The mode of the next conversation; empty where the agent begins in one of its own and nobody has chosen another"`
	Model string              `json:"model" doc:"The model of the next conversation; empty for the agent's own"`
	Usual string              `json:"usual" doc:"The mode where nobody has chosen one; empty where the agent begins in one of its own"`
	Asks  startmode.Judgement `json:"asks" enum:"asks,decides,settings,unknown" doc:"Whether the agent asks in that mode before it changes something"`

	Chosen startmode.Chosen  `json:"chosen" doc:"What people have chosen: for the agent, and for the agent in the directory, which goes first"`
	Modes  []startmode.Value `json:"modes" doc:"What the agent offered when a conversation last began; of an agent that has begun none here, what is known of it"`
	Models []startmode.Value `json:"models"`
}

// StartMode returns the mode and model that a conversation with an agent begins with in a directory; without a directory, in every
// directory that has no choice of its own. With a mode it answers as if that mode had been chosen.
func (c *Client) StartMode(ctx context.Context, agent, place, directory, mode string) (StartMode, error) {
	place = cmp.Or(place, host.Local)
	if err := c.hosts.At(place).Startable(agent); err != nil {
		return StartMode{}, err
	}
	chosen, err := c.starts.Chosen(ctx, agent, place, c.project(place, directory))
	if err != nil {
		return StartMode{}, err
	}
	offer, _, err := c.starts.Offered(ctx, agent, place)
	if err != nil {
		return StartMode{}, err
	}
	modes := startmode.Of(c.cfg.Agents.Modes(agent))
	if len(offer.Modes) == 0 {
		offer.Modes = c.knownModes(agent)
	}
	for i, m := range offer.Modes {
		offer.Modes[i].Asks = modes.Judge(m.Value)
	}
	now := startmode.Choice{Mode: mode}.Over(chosen.Directory).Over(chosen.Agent)
	if now.Mode == "" {
		now.Mode = modes.Default()
	}
	s := StartMode{Mode: now.Mode, Model: now.Model, Usual: modes.Default(), Asks: modes.Judge(now.Mode), Chosen: chosen, Modes: offer.Modes, Models: offer.Models}
	if s.Modes == nil {
		s.Modes = []startmode.Value{}
	}
	if s.Models == nil {
		s.Models = []startmode.Value{}
	}
	return s, nil
}

// ChooseStart stores the mode and model that conversations with an agent begin with: in one directory, or without a directory in all. An
// empty field of choice removes an earlier choice.
func (c *Client) ChooseStart(ctx context.Context, agent, place, directory string, choice startmode.Choice) (StartMode, error) {
	place = cmp.Or(place, host.Local)
	if err := c.hosts.At(place).Startable(agent); err != nil {
		return StartMode{}, err
	}
	if directory != "" && c.hosts.At(place).Directories != nil && !filepath.IsAbs(directory) {
		return StartMode{}, bad("directory.relative", "path", directory)
	}
	if err := c.offered(ctx, agent, place, choice); err != nil {
		return StartMode{}, err
	}
	if err := c.starts.Choose(ctx, agent, place, c.project(place, directory), choice); err != nil {
		return StartMode{}, err
	}
	return c.StartMode(ctx, agent, place, directory, "")
}

// project returns the directory that a choice is stored for: for a worktree of Deskhand's, the directory of its repository.
func (c *Client) project(place, directory string) string {
	if directory == "" || c.hosts.At(place).Directories == nil {
		return directory
	}
	return c.worktrees.StandsFor(filepath.Clean(directory))
}

// knownModes returns the modes that the catalogue knows of an agent, for an agent that has begun no conversation here.
func (c *Client) knownModes(agent string) (list []startmode.Value) {
	for _, o := range transcript.ConfigOptions(c.cfg.Agents.KnownOptions(agent)) {
		if o.Category == transcript.ModeCategory {
			list = append(list, valuesOf(o)...)
		}
	}
	if modes, measured := c.cfg.Agents.Modes(agent); measured && len(list) == 0 {
		for _, mode := range slices.Concat(modes.Asking, modes.Settings, modes.Deciding) {
			list = append(list, startmode.Value{Value: mode, Name: mode[strings.LastIndexByte(mode, '#')+1:]}) // some ids are URLs
		}
	}
	return list
}

// offered refuses a mode or a model that the agent does not offer, if the offer of the agent's installed version is known.
func (c *Client) offered(ctx context.Context, agent, place string, choice startmode.Choice) error {
	catalogue := c.hosts.At(place).Agents
	if choice == (startmode.Choice{}) || catalogue == nil {
		return nil
	}
	offer, version, err := c.starts.Offered(ctx, agent, place)
	if err != nil {
		return err
	}
	now, err := catalogue.Agent(agent)
	if same := err == nil && version != "" && now.Version == version; !same {
		return nil // the start reports an agent that is missing
	}
	for _, one := range []struct {
		code, value string
		list        []startmode.Value
	}{{transcript.ProblemStartMode, choice.Mode, offer.Modes}, {transcript.ProblemStartModel, choice.Model, offer.Models}} {
		if one.value != "" && !slices.ContainsFunc(one.list, func(v startmode.Value) bool { return v.Value == one.value }) {
			return bad(one.code, "agent", c.cfg.Agents.Name(agent), "value", one.value, "offers", offersOf(one.list))
		}
	}
	return nil
}

func offersOf(list []startmode.Value) string {
	values := make([]string, len(list))
	for i, v := range list {
		values[i] = v.Value
	}
	return strings.Join(values, ", ")
}

// startWish decides the mode and model of a new conversation; given holds those that the request named.
func (c *Client) startWish(ctx context.Context, agent, place, directory string, given startmode.Choice) (*transcript.Start, error) {
	place = cmp.Or(place, host.Local)
	if err := c.offered(ctx, agent, place, given); err != nil {
		return nil, err
	}
	chosen, err := c.starts.Chosen(ctx, agent, place, c.project(place, directory))
	if err != nil {
		return nil, err
	}
	choice := given.Over(chosen.Directory).Over(chosen.Agent)
	return &transcript.Start{Mode: choice.Mode, Model: choice.Model}, nil
}
