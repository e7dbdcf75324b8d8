package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Read is a place in a directory that an agent looks into by itself when it starts there, and from which it starts programs, or takes
// what changes how it runs them. It is data of the catalogue, as the agents' makers document it.
type Read struct {
	// Path is that of a file, whose last part may be a pattern, or with a slash at its end of a folder with all that is in it.
	Path string `json:"path"`
	// Up tells that the agent looks for it in the parents too: those up to the repository's ("repository"), or all ("all").
	Up string `json:"up"`
	// Further tells that the agent looks for it in the further directories of a session too.
	Further bool `json:"further"`
	// Except are folders and files below it that it starts nothing from.
	Except []string `json:"except"`
	// Harmless are members of a JSON file, by their names with dots between, that can start nothing.
	Harmless []string `json:"harmless"`
	// HarmlessRules are, by the name of a list, how rules in it begin that can start nothing.
	HarmlessRules map[string][]string `json:"harmlessRules"`
}

// Folder tells of a place that is a folder.
func (r Read) Folder() bool { return strings.HasSuffix(r.Path, "/") }

// Names tells whether a path, slashed and below the directory, is that of the file.
func (r Read) Names(name string) bool {
	ok, _ := path.Match(r.Path, name) // no pattern of ours is malformed, as a test sees
	return ok
}

// The values of Read.Up.
const (
	UpRepository = "repository"
	UpAll        = "all"
)

// Reads are the places that an agent reads. The demo agent reads none; one that nothing is known of, such as one of agents.json, may
// read all that any does.
func (c *Catalogue) Reads(id string) []Read {
	if id == Demo {
		return nil
	}
	var names []string
	if e, err := c.row(id); err == nil {
		names = e.known.Reads
	}
	return readsOf(names)
}

// readsOf gives the places of sets; of nil, those of all.
func readsOf(names []string) []Read {
	var file catalogueFile
	if err := json.Unmarshal(bundled, &file); err != nil {
		panic(fmt.Sprintf("the catalogue of agents cannot be read: %v", err)) // a test sees that it can
	}
	if names == nil {
		names = slices.Sorted(maps.Keys(file.Deskhand.Reads))
	}
	var list []Read
	for _, name := range names {
		for _, r := range file.Deskhand.Reads[name] {
			if !slices.ContainsFunc(list, func(o Read) bool { return o.Path == r.Path && o.Up == r.Up && o.Further == r.Further }) {
				list = append(list, r)
			}
		}
	}
	return list
}

// AllReads are the places that any agent reads.
func (c *Catalogue) AllReads() []Read { return readsOf(nil) }
