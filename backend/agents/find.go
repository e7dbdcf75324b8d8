package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/environ"
)

var errUnusable = errors.New("what Deskhand installed cannot be used")

// finder looks up where agents are on this machine.
type finder struct {
	store       *store
	environment *environ.Environment
}

// locate finds an agent that can be started, or returns why none can.
func (f *finder) locate(e entry) (place, error) {
	at, err := f.find(e)
	if err != nil {
		return place{}, err
	}
	return at, f.lacks(e)
}

// find looks up an agent in the store, then on PATH.
func (f *finder) find(e entry) (place, error) {
	onPath, missing := f.findProgram(e)
	if e.source != OnPath || f.store.dir == "" {
		return onPath, missing
	}
	at, err := f.store.find(e)
	switch {
	case err == nil && missing == nil:
		at.reason += "; it goes before " + onPath.program
		return at, nil
	case err == nil:
		return at, nil
	case errors.Is(err, errNoneStored):
		return onPath, missing
	}
	err = fmt.Errorf("%w: %w", errUnusable, err)
	if missing == nil {
		onPath.reason += "; " + err.Error()
		return onPath, nil
	}
	return place{}, err
}

// findProgram looks up an agent as its entry says: at a path, or on PATH.
func (f *finder) findProgram(e entry) (place, error) {
	switch {
	case e.source == Builtin:
		return place{program: e.command, reason: "it is part of Deskhand"}, environ.Executable(e.command)
	case e.known.remote && e.known.via == "":
		return place{}, errors.New(e.how())
	case e.known.remote && e.inFile:
		return place{}, errors.New("it is not installed; agents.json says how it is")
	case e.known.remote:
		return place{}, errors.New("it is not installed; as the registry alone knows it, none on PATH is taken for it")
	case filepath.IsAbs(e.command):
		return place{program: e.command, reason: "agents.json gives its path"}, environ.Executable(e.command)
	}
	for file, source := range f.environment.OnPath(e.command) {
		if !e.known.Ambiguous || isOfPackage(file, e.known.npm) {
			return place{program: file, reason: "the first of that name: " + source}, nil
		}
	}
	if e.known.Ambiguous {
		return place{}, f.environment.NotFound(e.command + " of the npm package " + e.known.npm)
	}
	return place{}, f.environment.NotFound(e.command)
}

// isOfPackage reports whether npm put a program on PATH for that package: by a link into the package, or, on Windows, beside the package.
func isOfPackage(file, npm string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil && strings.Contains(filepath.ToSlash(real), "/node_modules/"+npm+"/") {
		return true
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(file), "node_modules", filepath.FromSlash(npm)))
	return err == nil && info.IsDir()
}

// lacks returns the program that a found agent still needs, as an error.
func (f *finder) lacks(e entry) error {
	n := e.known.Needs
	if n == nil || f.environment.Variable(n.Variable) != "" {
		return nil
	}
	for range f.environment.OnPath(n.Program) {
		return nil
	}
	return fmt.Errorf("%s is here, but it starts %s, which is not on PATH: %s", e.command, n.Program, n.Hint)
}

// versionBeside returns the version of the npm package that a program on PATH belongs to, or "".
func versionBeside(program, npm string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil || npm == "" {
		return ""
	}
	inside := string(filepath.Separator) + filepath.Join("node_modules", filepath.FromSlash(npm))
	at := strings.LastIndex(real, inside+string(filepath.Separator))
	if at < 0 {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(real[:at]+inside, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(data, &manifest) // a bad manifest has no version
	return manifest.Version
}
