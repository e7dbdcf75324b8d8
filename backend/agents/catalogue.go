package agents

import (
	"cmp"
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

	Deskhand struct {
		Modes Modes `json:"modes"` // of agents that nobody has measured
	} `json:"deskhand"`
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

// distribution is how an agent can be had. Of several ways npm goes first, because its packages say what they need and come with
// checksums; then the binary for this machine, which needs nothing else here; then uv.
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

// binaryTarget is a program for one kind of machine.
type binaryTarget struct {
	Archive string            `json:"archive"` // its URL; or that of the program itself
	Cmd     string            `json:"cmd"`     // the program in the archive
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	SHA256  string            `json:"sha256"` // of the archive, in hexadecimal; newer entries have it
}

// The ways an agent is installed.
const (
	viaNPM    = "npm"
	viaUVX    = "uvx"
	viaBinary = "binary"
)

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
	Quirks        Quirks            `json:"quirks"`
	Modes         *Modes            `json:"modes"` // nil where nobody has measured them
	Reads         []string          `json:"reads"` // the sets of package autorun that the agent reads in a directory; nil where that is not known
	Size          *measured         `json:"size"`  // of that version, on linux-x64
	Credentials   credentials       `json:"credentials"`
	Capabilities  Capabilities      `json:"capabilities"`
	ConfigOptions []json.RawMessage `json:"configOptions"` // for as long as the agent cannot be asked

	registryID string       // its id in the registry
	remote     bool         // the registry alone tells of it, or agents.json as a registry would
	via        string       // how it is installed; "" when it cannot be
	npm        string       // the npm package, without a version
	python     string       // the Python package, without a version
	binary     binaryTarget // the program for this machine
	version    string       // the one that is installed when none is asked for
	home       string       // where people read about it
}

// measured is how large an agent was when it was installed.
type measured struct {
	Download int64 `json:"download"`
	Unpacked int64 `json:"unpacked"`
}

// need is a program that an adapter starts.
type need struct {
	Program  string `json:"program"`
	Variable string `json:"variable"` // names another program in its place
	Hint     string `json:"hint"`
}

// credentials says where an agent finds its own.
type credentials struct {
	Providers   []string             `json:"providers"`
	Environment []string             `json:"environment"`
	Methods     map[string]wayValues `json:"methods"` // by the ids of its ways to sign in: those that need values in its environment
}

// ofAnother is what still holds when agents.json puts another program under the id: who pays, and what it does most likely.
func (k known) ofAnother(other known) known {
	other.Credentials, other.Capabilities, other.Quirks, other.Reads, other.RootEnv, other.Modes = k.Credentials, k.Capabilities, k.Quirks, k.Reads, k.RootEnv, k.Modes
	return other
}

// parseCatalogue makes the table's rows of a catalogue, in its order.
func parseCatalogue(data []byte) ([]entry, error) {
	file, err := readCatalogue(data)
	if err != nil {
		return nil, err
	}
	rows := make([]entry, 0, len(file.Agents))
	for _, r := range file.Agents {
		rows = append(rows, r.entry())
	}
	return rows, nil
}

func readCatalogue(data []byte) (file catalogueFile, err error) {
	if err := json.Unmarshal(data, &file); err != nil {
		return catalogueFile{}, fmt.Errorf("the catalogue of agents cannot be read: %w", err)
	}
	return file, nil
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
	e.distribute(r)
	e.complete(r.Distribution)
	return e
}

// environ are the variables that an agent is started with beside those of all: where agents run as the system's administrator those that
// the catalogue has for that, under those of the entry.
func (e entry) environ() map[string]string {
	if !asRoot() || len(e.known.RootEnv) == 0 {
		return e.env
	}
	env := maps.Clone(e.known.RootEnv)
	maps.Copy(env, e.env)
	return env
}

// distribute chooses the way it is installed.
func (e *entry) distribute(r registryEntry) {
	d := r.Distribution
	b, here := d.here()
	switch {
	case d.NPX != nil:
		e.known.via = viaNPM
		e.known.npm, e.known.version = splitSpec(d.NPX.Package)
		e.args, e.env = d.NPX.Args, d.NPX.Env
	case here:
		e.known.via, e.known.binary, e.known.version = viaBinary, b, r.Version
		e.args, e.env = b.Args, b.Env
	case d.UVX != nil:
		e.known.via = viaUVX
		e.known.python, e.known.version = splitPython(d.UVX.Package)
		e.known.version = cmp.Or(e.known.version, r.Version)
		e.args, e.env = d.UVX.Args, d.UVX.Env
	default: // of one that is found on PATH the arguments are those of other machines
		b = d.elsewhere()
		e.args, e.env = b.Args, b.Env
	}
}

// artefact is what people are told that is installed.
func (k known) artefact() string { return cmp.Or(k.npm, k.python, k.binary.Archive) }

// complete fills in what the registry's own entries leave open.
func (e *entry) complete(d distribution) {
	b := cmp.Or(e.known.binary.Cmd, d.elsewhere().Cmd)
	switch {
	case e.command != "":
	case d.NPX != nil && d.NPX.Cmd != "":
		e.command = d.NPX.Cmd
	case d.NPX != nil:
		e.command = unscoped(e.known.npm)
	case e.known.via == viaUVX:
		name, _, _ := strings.Cut(e.known.python, "[")
		e.command = cmp.Or(d.UVX.Cmd, name)
	default:
		e.command = strings.TrimSuffix(path.Base(slashed(b)), ".exe")
	}
	if e.known.Capabilities == (Capabilities{}) {
		e.known.Capabilities = plainCapabilities()
	}
}

// slashed is a path in an archive as we write it: entries for Windows may have backslashes.
func slashed(cmd string) string { return path.Clean(strings.ReplaceAll(cmd, `\`, "/")) }

// here is the binary for this machine.
func (d distribution) here() (binaryTarget, bool) {
	b, ok := d.Binary[machineName()]
	return b, ok
}

// machineName is what the registry calls this kind of machine.
func machineName() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// elsewhere is a binary for any machine.
func (d distribution) elsewhere() binaryTarget {
	for _, name := range slices.Sorted(maps.Keys(d.Binary)) {
		return d.Binary[name]
	}
	return binaryTarget{}
}

// splitPython takes name==version and name@version apart; an extra, as in name[extra], is part of the name.
func splitPython(spec string) (name, version string) {
	if name, version, ok := strings.Cut(spec, "=="); ok {
		return strings.TrimSpace(name), strings.TrimSpace(version)
	}
	name, version, _ = strings.Cut(spec, "@")
	return strings.TrimSpace(name), strings.TrimSpace(version)
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
	text := "there is nothing of it to install on this machine"
	if e.known.home != "" {
		text += ": see " + e.known.home
	}
	if e.known.remote {
		return text + ", and write it into agents.json"
	}
	return text + ", and have " + e.command + " on PATH"
}
