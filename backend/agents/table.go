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

// row returns the table's entry for id. A list of sessions asks for a row each, so row copies no other entry.
func (t *table) row(id string) (entry, error) {
	own, err := t.definitions.entries()
	of := slices.IndexFunc(own, func(e entry) bool { return e.id == id })
	base, known := t.base(id)
	switch {
	case of >= 0 && known:
		own[of].known = base.known.ofAnother(own[of].known)
		return own[of], nil
	case of >= 0:
		return own[of], nil
	case known:
		return base, nil
	}
	if err = errors.Join(t.fault, err); err != nil {
		return entry{}, fmt.Errorf("%w: %s (%w)", ErrUnknown, id, err)
	}
	return entry{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// base returns the entry for id without agents.json.
func (t *table) base(id string) (entry, bool) {
	if t.demo.id == id {
		return t.demo, true
	}
	catalogue := *t.catalogue.Load()
	if i := slices.IndexFunc(catalogue, func(e entry) bool { return e.id == id }); i >= 0 {
		return catalogue[i], true
	}
	return entry{}, false
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
