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
	"sync"
)

// bundled is the catalogue in the format of the public ACP registry (version 1). Deskhand's additions stand under the key "deskhand" of an
// entry; unknown keys are ignored, so that the registry's own file, which has more keys, can be read too.
//
//go:embed catalogue.json
var bundled []byte

type catalogueFile struct {
	Version string          `json:"version"`
	Agents  []registryEntry `json:"agents"`

	Deskhand struct {
		Modes Modes `json:"modes"` // of agents whose modes nobody has measured
	} `json:"deskhand"`
}

// registryEntry is an agent of the registry.
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

// distribution lists how an agent can be installed. Of several ways npm goes first, because npm packages declare their needs and come with
// checksums; then the binary for this machine, which needs no other program; then uv.
type distribution struct {
	NPX    *npmPackage             `json:"npx"`
	UVX    *npmPackage             `json:"uvx"` // a Python package: name==version, or name@version
	Binary map[string]binaryTarget `json:"binary"`
}

type npmPackage struct {
	Package string            `json:"package"` // name@version
	Cmd     string            `json:"cmd"`     // its program, when named differently from the package
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// binaryTarget is a program for a kind of machine.
type binaryTarget struct {
	Archive string            `json:"archive"` // URL of the archive, or of a bare program
	Cmd     string            `json:"cmd"`     // path of the program in the archive
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	SHA256  string            `json:"sha256"` // of the archive, in hexadecimal; absent in older entries
}

// The ways an agent is installed.
const (
	viaNPM    = "npm"
	viaUVX    = "uvx"
	viaBinary = "binary"
)

// known holds the facts about an agent beyond the registry: the catalogue's additions, and the package.
type known struct {
	Alias         string            `json:"alias"`      // id in the API, when different from the registry's
	Main          bool              `json:"main"`       // listed even when not installed
	Bin           string            `json:"bin"`        // name of its program, in the package and on PATH
	Ambiguous     bool              `json:"ambiguous"`  // other programs share the name: on PATH only the package's own counts
	Native        bool              `json:"native"`     // the package is the agent itself, not an adapter for it
	Scripts       bool              `json:"scripts"`    // the package does not work without its own install scripts
	RootEnv       map[string]string `json:"rootEnv"`    // added to its environment when running as root
	Needs         *need             `json:"needs"`      // a program that must be on this machine too
	Unverified    bool              `json:"unverified"` // the version is the registry's claim: the package could not be fetched when this entry was written
	Quirks        Quirks            `json:"quirks"`
	Modes         *Modes            `json:"modes"` // nil where nobody has measured them
	Reads         []string          `json:"reads"` // sets of package autorun that the agent reads in a directory; nil where unknown
	Size          *measured         `json:"size"`  // of the pinned version, on linux-x64
	Credentials   credentials       `json:"credentials"`
	Capabilities  Capabilities      `json:"capabilities"`
	ConfigOptions []json.RawMessage `json:"configOptions"` // shown as long as the agent cannot be asked

	registryID string       // id in the registry
	remote     bool         // only the registry lists the agent, or agents.json in the registry's format
	via        string       // how the agent is installed; "" when impossible
	npm        string       // npm package, without a version
	python     string       // Python package, without a version
	binary     binaryTarget // program for this machine
	version    string       // installed when the request names no version
	home       string       // web page about the agent
}

// measured is how large an agent was when it was installed.
type measured struct {
	Download int64 `json:"download"`
	Unpacked int64 `json:"unpacked"`
}

// need is a program that an adapter starts.
type need struct {
	Program  string `json:"program"`
	Variable string `json:"variable"` // environment variable that names a replacement
	Hint     string `json:"hint"`
}

// credentials lists where an agent looks for credentials.
type credentials struct {
	Providers   []string             `json:"providers"`
	Environment []string             `json:"environment"`
	Methods     map[string]wayValues `json:"methods"` // by method id: methods that need values in the agent's environment
}

// wayValues describes the values of a way to sign in that the catalogue knows: the agent reads them from its environment, and authenticate
// tells the agent that the values are there.
type wayValues struct {
	Vars   []wayValue `json:"vars"`
	AnyOne bool       `json:"anyOne"` // a single value is enough
}

type wayValue struct {
	Name     string `json:"name"`
	Plain    bool   `json:"plain"` // not a secret
	Optional bool   `json:"optional"`
}

// ofAnother returns the facts that still hold when agents.json puts another program under the id: credentials, and the likely behaviour.
func (k known) ofAnother(other known) known {
	other.Credentials, other.Capabilities, other.Quirks, other.Reads, other.RootEnv, other.Modes = k.Credentials, k.Capabilities, k.Quirks, k.Reads, k.RootEnv, k.Modes
	return other
}

// parseCatalogue reads a catalogue into rows, in its order.
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

// unmeasured returns the modes of agents that nobody has measured. Open reports a bundled catalogue that cannot be read.
//
//nolint:gochecknoglobals // read once from what is part of the program
var unmeasured = sync.OnceValue(func() Modes {
	file, _ := readCatalogue(bundled)
	return file.Deskhand.Modes
})

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

// distribute chooses how the agent is installed.
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
	default: // the arguments in the entry are those for other machines
		b = d.elsewhere()
		e.args, e.env = b.Args, b.Env
	}
}

// artefact returns the name of the installed package, for people.
func (k known) artefact() string { return cmp.Or(k.npm, k.python, k.binary.Archive) }

// complete fills in the fields that the registry's own entries leave out.
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

// slashed returns a path in an archive with slashes: entries for Windows may use backslashes.
func slashed(cmd string) string { return path.Clean(strings.ReplaceAll(cmd, `\`, "/")) }

// here returns the binary for this machine.
func (d distribution) here() (binaryTarget, bool) {
	b, ok := d.Binary[machineName()]
	return b, ok
}

// machineName returns the registry's name for this kind of machine.
func machineName() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// elsewhere returns the binary for some machine.
func (d distribution) elsewhere() binaryTarget {
	for _, name := range slices.Sorted(maps.Keys(d.Binary)) {
		return d.Binary[name]
	}
	return binaryTarget{}
}

// splitPython splits name==version and name@version; an extra, as in name[extra], is part of the name.
func splitPython(spec string) (name, version string) {
	if name, version, ok := strings.Cut(spec, "=="); ok {
		return strings.TrimSpace(name), strings.TrimSpace(version)
	}
	name, version, _ = strings.Cut(spec, "@")
	return strings.TrimSpace(name), strings.TrimSpace(version)
}

// splitSpec splits name@version; a scope's @ is part of the name.
func splitSpec(spec string) (name, version string) {
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		return spec[:i], spec[i+1:]
	}
	return spec, ""
}

// unscoped returns the name of a package without its scope.
func unscoped(npm string) string { return path.Base(npm) }
