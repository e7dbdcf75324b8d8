package agents

import (
	_ "embed" // the catalogue
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// bundled is the catalogue in the format of the public ACP registry (version 1). What we add stands under the key "deskhand" of an
// entry; other keys that we do not know are passed over, so that the registry's own file, which says more, reads as well.
//
//go:embed catalogue.json
var bundled []byte

type catalogueFile struct {
	Version string          `json:"version"`
	Agents  []registryEntry `json:"agents"`
}

// registryEntry is one agent of the registry.
type registryEntry struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Description  string       `json:"description"`
	Repository   string       `json:"repository"`
	Website      string       `json:"website"`
	Distribution distribution `json:"distribution"`
	Deskhand     known        `json:"deskhand"`
}

// distribution is how an agent can be had. Of the three ways npm is the one that is installed from.
type distribution struct {
	NPX    *npmPackage             `json:"npx"`
	UVX    *npmPackage             `json:"uvx"` // of Python: name==version, or with an @
	Binary map[string]binaryTarget `json:"binary"`
}

type npmPackage struct {
	Package string            `json:"package"` // name@version
	Cmd     string            `json:"cmd"`     // its program, where that is not named like the package
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type binaryTarget struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
}

// known is what we know of an agent beyond the registry: the additions of the catalogue, and the package.
type known struct {
	Alias         string            `json:"alias"`      // the id in the API, where it is not the registry's
	Main          bool              `json:"main"`       // worth a row for those who do not have it
	Bin           string            `json:"bin"`        // its program, in the package and on PATH
	Ambiguous     bool              `json:"ambiguous"`  // other programs have this name too: on PATH only the package's own counts
	Native        bool              `json:"native"`     // the package is the agent itself, not an adapter for it
	Scripts       bool              `json:"scripts"`    // the package does not work without its own install scripts
	RootEnv       map[string]string `json:"rootEnv"`    // what it wants in its environment when it runs as root
	Needs         *need             `json:"needs"`      // what must be here beside it
	Unverified    bool              `json:"unverified"` // the version is the registry's word: the package could not be had when this was written
	Credentials   credentials       `json:"credentials"`
	Capabilities  Capabilities      `json:"capabilities"`
	ConfigOptions []json.RawMessage `json:"configOptions"` // for as long as the agent cannot be asked

	registryID string // its id in the registry
	remote     bool   // the registry alone tells of it
	npm        string // the package, without a version; empty when it is not on npm
	version    string // the one that is installed when none is asked for
	home       string // where people read about it
}

// need is a program that an adapter starts.
type need struct {
	Program  string `json:"program"`
	Variable string `json:"variable"` // names another program in its place
	Hint     string `json:"hint"`
}

// credentials says where an agent finds its own.
type credentials struct {
	Providers   []string `json:"providers"`
	Environment []string `json:"environment"`
}

// ofAnother is what still holds when agents.json puts another program under the id: who pays, and what it does most likely.
func (k known) ofAnother() known {
	return known{Credentials: k.Credentials, Capabilities: k.Capabilities}
}

// parseCatalogue makes the table's rows of a catalogue, in its order.
func parseCatalogue(data []byte) ([]entry, error) {
	var file catalogueFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("the catalogue of agents cannot be read: %w", err)
	}
	rows := make([]entry, 0, len(file.Agents))
	for _, r := range file.Agents {
		rows = append(rows, r.entry())
	}
	return rows, nil
}

func (r registryEntry) entry() entry {
	e := entry{id: r.ID, name: r.Name, source: OnPath, command: r.Deskhand.Bin, known: r.Deskhand}
	e.known.registryID = r.ID
	if e.known.Alias != "" {
		e.id = e.known.Alias
	}
	if e.known.home = r.Website; e.known.home == "" {
		e.known.home = r.Repository
	}
	if n := r.Distribution.NPX; n != nil {
		e.known.npm, e.known.version = splitSpec(n.Package)
		e.args, e.env = n.Args, n.Env
	} else if b, ok := r.Distribution.target(); ok {
		e.args, e.env = b.Args, b.Env
	} else if u := r.Distribution.UVX; u != nil {
		e.args, e.env = u.Args, u.Env
	}
	e.complete(r.Distribution)
	if asRoot() && len(e.known.RootEnv) > 0 {
		env := maps.Clone(e.known.RootEnv)
		maps.Copy(env, e.env)
		e.env = env
	}
	return e
}

// complete fills in what the registry's own entries leave open.
func (e *entry) complete(d distribution) {
	b, _ := d.target()
	switch {
	case e.command != "":
	case d.NPX != nil && d.NPX.Cmd != "":
		e.command = d.NPX.Cmd
	case d.NPX != nil:
		e.command = unscoped(e.known.npm)
	case d.UVX != nil && len(d.Binary) == 0:
		e.command = d.UVX.Cmd
		if e.command == "" {
			e.command, _, _ = strings.Cut(strings.Map(pythonSpec, d.UVX.Package), "@")
		}
	default:
		e.command = strings.TrimSuffix(path.Base(strings.ReplaceAll(b.Cmd, `\`, "/")), ".exe")
	}
	if e.known.Capabilities == (Capabilities{}) {
		e.known.Capabilities = plainCapabilities()
	}
}

// pythonSpec makes one sign of those that end the name in name[extra]==version and name@version.
func pythonSpec(r rune) rune {
	if strings.ContainsRune("[=<>~! ", r) {
		return '@'
	}
	return r
}

// target is the binary for this machine, or any: their arguments are the same, and it is these that we want.
func (d distribution) target() (binaryTarget, bool) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if b, ok := d.Binary[runtime.GOOS+"-"+arch]; ok {
		return b, true
	}
	for _, name := range slices.Sorted(maps.Keys(d.Binary)) {
		return d.Binary[name], true
	}
	return binaryTarget{}, false
}

// splitSpec takes name@version apart; a scope's @ is part of the name.
func splitSpec(spec string) (name, version string) {
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		return spec[:i], spec[i+1:]
	}
	return spec, ""
}

// unscoped is the name of a package without its scope.
func unscoped(npm string) string { return path.Base(npm) }

// how says how to get an agent that we do not install.
func (e entry) how() string {
	text := "there is no npm package of it"
	if e.known.home != "" {
		text += ": see " + e.known.home
	}
	if e.known.remote {
		return text + ", and write it into agents.json"
	}
	return text + ", and have " + e.command + " on PATH"
}
