package remotes

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/refusal"
)

// PlaceAgent is an agent that a place can start.
type PlaceAgent struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Installed bool   `json:"installed" doc:"The agent is installed at the place; a runtime that supports installing installs a missing agent at the first message"`
	Version   string `json:"version,omitempty"`
}

// Agents lists the agents of a place elsewhere.
func (l *Library) Agents(ctx context.Context, id string) ([]PlaceAgent, error) {
	r, err := l.Get(id)
	if err != nil {
		return nil, err
	}
	found, err := r.Runtime().Agents(ctx)
	r.heard(ctx, err)
	if err != nil {
		return nil, r.Refusal(err)
	}
	list := make([]PlaceAgent, 0, len(found))
	for _, a := range found {
		name := a.Name
		if name == "" {
			name = l.deps.AgentName(a.ID)
		}
		list = append(list, PlaceAgent{a.ID, name, a.Installed, a.Version})
	}
	return list, nil
}

// FarDirectory is an entry of a directory picker.
type FarDirectory struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// FarDirectories is the content of a directory elsewhere, for a directory picker.
type FarDirectories struct {
	Path   string         `json:"path" doc:"Path of the listed directory; empty when the runtime does not report the path"`
	Parent string         `json:"parent,omitempty"`
	Items  []FarDirectory `json:"items"`
}

// Directories lists the directories in a directory of a place elsewhere; "" is where the runtime's paths begin.
func (l *Library) Directories(ctx context.Context, id, directory string) (FarDirectories, error) {
	r, err := l.Get(id)
	if err != nil {
		return FarDirectories{}, err
	}
	found, err := r.Runtime().Directories(ctx, directory)
	r.heard(ctx, err)
	if err != nil {
		return FarDirectories{}, r.Refusal(err)
	}
	list := FarDirectories{Path: directory, Items: []FarDirectory{}}
	for _, e := range found {
		list.Items = append(list.Items, FarDirectory{e.Name, e.Path})
		if list.Path == "" {
			list.Path = parentOf(e.Path)
		}
	}
	list.Parent = parentOf(list.Path)
	slices.SortStableFunc(list.Items, func(a, b FarDirectory) int {
		return hiddenLast(a.Name) - hiddenLast(b.Name)
	})
	return list, nil
}

func hiddenLast(name string) int {
	if strings.HasPrefix(name, ".") {
		return 1
	}
	return 0
}

// parentOf returns the directory above a directory, by the separators of the directory's place; "" at the top.
func parentOf(directory string) string {
	i := strings.LastIndexAny(directory, `/\`)
	switch {
	case i < 0 || i == len(directory)-1:
		return ""
	case i == 0, windowsPath(directory) && i == 2:
		return directory[:i+1]
	}
	return directory[:i]
}

func windowsPath(directory string) bool {
	return regexp.MustCompile(`^[A-Za-z]:[\\/]`).MatchString(directory)
}

// CleanPath cleans the path of a directory elsewhere, and refuses a path that is not absolute. Whether the directory exists cannot be seen
// from here.
func CleanPath(directory string) (string, error) {
	switch {
	case strings.HasPrefix(directory, "/"):
		directory = path.Clean(directory)
	case !windowsPath(directory):
		return "", refusal.Bad(relativePath, "path", directory)
	}
	if strings.ContainsRune(directory, 0) {
		return "", refusal.Bad(unreadablePath, "path", directory, "detail", "NUL")
	}
	return directory, nil
}
