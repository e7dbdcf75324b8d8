package agents

import (
	"slices"
	"time"
)

// place is where an agent was found.
type place struct {
	program string   // the agent's own file, as shown to people
	node    []string // node and its arguments, when program is a script for node
	version string   // of an installed agent, with its directory in home
	home    string
	start   *start // how to start the agent, when the catalogue does not say
	reason  string
}

// argv returns the command line with the agent's arguments.
func (p place) argv(args []string) (string, []string) {
	if len(p.node) == 0 {
		return p.program, args
	}
	return p.node[0], slices.Concat(p.node[1:], []string{p.program}, args)
}

// start is the way to start an agent at the time of its installation. The registry may change that for later versions.
type start struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env,omitempty"`
}

// release is an installed version.
type release struct {
	Version   string    `json:"version"`
	Package   string    `json:"package"`
	Directory string    `json:"directory"`           // beside current.json
	Bin       string    `json:"bin"`                 // inside the directory, with slashes
	Integrity string    `json:"integrity"`           // of the package as npm checked it; of an archive; of the record of a Python package
	Unchecked bool      `json:"unchecked,omitempty"` // the archive came without a checksum
	Installed time.Time `json:"installed"`
	Start     *start    `json:"start,omitempty"` // of an agent that only the registry knows
}

// current is the content of current.json.
type current struct {
	release
	Previous *release `json:"previous,omitempty"`
}
