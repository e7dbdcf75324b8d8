package agents

import (
	"encoding/json"
	"slices"
	"sync"

	"deskhand/backend/acp"
)

// Modes is data of the catalogue: in which modes of an agent a person is asked before the agent changes a file or runs a command. A mode that
// stands in none of the lists is one that nobody has looked at, such as a mode that a newer version has added.
type Modes struct {
	Begin    []string `json:"begin"`    // in which conversations begin when nobody has chosen a mode: the first of them that the agent offers
	Asking   []string `json:"asking"`   // the agent asks, or changes nothing
	Deciding []string `json:"deciding"` // the agent decides by itself, at least about some changes
	Settings []string `json:"settings"` // the agent asks as its own settings say
	Unasking bool     `json:"unasking"` // the agent has no modes, and never asks
}

// Modes gives those of an agent. Of an agent that nobody has measured, such as one of agents.json (in the place of a known agent, too: it may be
// any program, and the lists are then those of the known agent), measured is false and the lists hold the
// modes that mean the same wherever they are known.
func (c *Catalogue) Modes(id string) (m Modes, measured bool) {
	if e, err := c.row(id); err == nil && e.known.Modes != nil {
		return e.known.Modes.clone(), !e.inFile
	}
	return unmeasured().clone(), false
}

// InCatalogue reports whether the catalogue itself, rather than agents.json alone, has an agent with this id. The demo agent is not in it.
func (c *Catalogue) InCatalogue(id string) bool {
	return slices.ContainsFunc(*c.table.Load(), func(e entry) bool { return e.id == id })
}

// unmeasured are the modes of agents that nobody has measured. A bundled catalogue that cannot be read is told of by Open.
//
//nolint:gochecknoglobals // read once from what is part of the program
var unmeasured = sync.OnceValue(func() Modes {
	file, _ := readCatalogue(bundled)
	return file.Deskhand.Modes
})

func (m Modes) clone() Modes {
	m.Begin, m.Asking, m.Deciding, m.Settings = slices.Clone(m.Begin), slices.Clone(m.Asking), slices.Clone(m.Deciding), slices.Clone(m.Settings)
	return m
}

// demoModes are those of the demo agent.
func demoModes() *Modes {
	return &Modes{Begin: []string{"ask"}, Asking: []string{"ask", "plan"}, Deciding: []string{"code"}}
}

// KnownOptions are the config options of an agent that the catalogue tells of, as SessionConfigOption of ACP.
func (c *Catalogue) KnownOptions(id string) []acp.ConfigOption {
	e, err := c.row(id)
	if err != nil || len(e.known.ConfigOptions) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"configOptions": e.known.ConfigOptions})
	if err != nil {
		return nil
	}
	list, _ := acp.ParseConfigOptions(body)
	return list
}
