package agents

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// table holds the agents that can be started.
type table struct {
	demo        entry
	bundled     []entry
	catalogue   atomic.Pointer[[]entry] // bundled, merged with the registry's document
	definitions *Definitions
	fault       error // of the bundled catalogue; a test holds it nil
}

// row returns the table's entry for id.
func (t *table) row(id string) (entry, error) {
	rows, fileErr := t.rows()
	for _, e := range rows {
		if e.id == id {
			return e, nil
		}
	}
	if fileErr != nil {
		return entry{}, fmt.Errorf("%w: %s (%w)", ErrUnknown, id, fileErr)
	}
	return entry{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// rows returns the whole table: the demo agent, the catalogue in its order, then the readable entries of agents.json. The error is that of
// agents.json.
func (t *table) rows() ([]entry, error) {
	rows := append([]entry{t.demo}, *t.catalogue.Load()...)
	own, err := t.definitions.entries()
	for _, e := range own {
		i := slices.IndexFunc(rows, func(r entry) bool { return r.id == e.id })
		if i >= 0 {
			e.known = rows[i].known.ofAnother(e.known)
			rows[i] = e
		} else {
			rows = append(rows, e)
		}
	}
	return rows, errors.Join(t.fault, err)
}

// demo returns the entry of the demo agent, which is part of a program: Deskhand itself, or that of tests.
func demo(program string) entry {
	return entry{
		id: Demo, name: "Demo agent", source: Builtin, command: program, args: []string{"demo-agent"},
		known: known{Capabilities: allCapabilities(), Modes: demoModes()},
	}
}
