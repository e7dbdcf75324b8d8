package agents

import (
	"encoding/json"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/autorun"
)

// Reads returns the places that an agent reads in a directory by itself. The demo agent reads none; an agent without known places, such as
// one of agents.json, may read all places that any agent does.
func (c *Catalogue) Reads(id string) []autorun.Place {
	if id == Demo {
		return nil
	}
	var sets []string
	if e, err := c.table.row(id); err == nil {
		sets = e.known.Reads
	}
	return autorun.Places(sets)
}

// Modes returns the modes of an agent. For an agent that nobody has measured, such as one of agents.json, measured is false and the lists
// hold the modes that mean the same wherever they are known. An entry of agents.json with the id of a known agent may start any program, so
// measured is false as well, and the lists are those of the known agent.
func (c *Catalogue) Modes(id string) (m Modes, measured bool) {
	if e, err := c.table.row(id); err == nil && e.known.Modes != nil {
		return e.known.Modes.clone(), !e.inFile
	}
	return unmeasured().clone(), false
}

// InCatalogue reports whether the catalogue itself, and not only agents.json, has an agent with this id. The demo agent is not in the
// catalogue.
func (c *Catalogue) InCatalogue(id string) bool {
	return slices.ContainsFunc(*c.table.catalogue.Load(), func(e entry) bool { return e.id == id })
}

// KnownOptions returns the config options that the catalogue has for an agent, as SessionConfigOption of ACP.
func (c *Catalogue) KnownOptions(id string) []acp.ConfigOption {
	e, err := c.table.row(id)
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

// Quirks returns the quirks of an agent; an agent outside the table has none. An entry of agents.json with the id of a known agent has the
// quirks of that agent: the entry is usually another build of the same program.
func (c *Catalogue) Quirks(id string) Quirks {
	e, err := c.table.row(id)
	if err != nil {
		return Quirks{}
	}
	return e.known.Quirks.clone()
}
