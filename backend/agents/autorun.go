package agents

import "deskhand/backend/autorun"

// Reads returns the places that an agent reads in a directory by itself. The demo agent reads none; an agent without known places, such as
// one of agents.json, may read all places that any agent does.
func (c *Catalogue) Reads(id string) []autorun.Place {
	if id == Demo {
		return nil
	}
	var sets []string
	if e, err := c.row(id); err == nil {
		sets = e.known.Reads
	}
	return autorun.Places(sets)
}
