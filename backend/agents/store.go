package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/environ"
)

// The store of installed agents:
//
//	<Dir>/registry.json        the last good document of the agents' registry
//	<Dir>/<id>/lock            held during an installation
//	<Dir>/<id>/current.json    which version is used, and the version before
//	<Dir>/<id>/<version>/      the files of npm, uv or an archive; a second directory of the same version is <version>-2
//	<Dir>/<id>/.new-*          a running or killed installation; uv's are made in their final place
const (
	currentName = "current.json"
	lockName    = "lock"
	newPattern  = ".new-*"
	newPrefix   = ".new-"
)

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

// start is the way to start an agent at the time of its installation. The registry may change that for later versions.
type start struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env,omitempty"`
}

// current is the content of current.json.
type current struct {
	release
	Previous *release `json:"previous,omitempty"`
}

var errNoneStored = errors.New("not installed by Deskhand")

// home returns the directory of an agent in the store.
func (c *Catalogue) home(id string) string { return filepath.Join(c.cfg.Dir, id) }

// readCurrent returns the version in use, or errNoneStored.
func (c *Catalogue) readCurrent(id string) (current, error) {
	file := filepath.Join(c.home(id), currentName)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return current{}, errNoneStored
	}
	if err != nil {
		return current{}, err
	}
	var now current
	if err := json.Unmarshal(data, &now); err != nil {
		return current{}, fmt.Errorf("%s is broken: %w", file, err)
	}
	if !filepath.IsLocal(now.Directory) || !filepath.IsLocal(filepath.FromSlash(now.Bin)) {
		return current{}, fmt.Errorf("%s is broken: it points outside of its directory", file)
	}
	return now, nil
}

// writeCurrent makes next the version in use. The version before stays known, and its directory stays.
func (c *Catalogue) writeCurrent(id string, next release, before *release) error {
	data, err := json.MarshalIndent(current{next, before}, "", "  ")
	if err != nil {
		return err
	}
	return c.cfg.WriteFile(filepath.Join(c.home(id), currentName), append(data, '\n'), 0o600)
}

// stored finds an agent in the store.
func (c *Catalogue) stored(e entry) (place, error) {
	now, err := c.readCurrent(e.id)
	if err != nil {
		return place{}, err
	}
	if !e.owns(now.release) {
		return place{}, errNoneStored
	}
	at, err := c.launch(filepath.Join(c.home(e.id), now.Directory), now.Bin)
	if err != nil {
		return place{}, err
	}
	at.version, at.reason, at.start = now.Version, "Deskhand installed it, version "+now.Version, now.Start
	if now.Unchecked {
		at.reason += ", from an archive that came without a checksum"
	}
	return at, nil
}

// owns reports whether the version that is installed under the id is this agent: agents.json may put another agent in its place, and remove
// that again. For an agent outside that file owns is true, whatever the registry says by now, unless only the file can have named the
// version.
func (e entry) owns(r release) bool {
	if !e.inFile && (e.known.remote || r.Start == nil) {
		return true
	}
	return r.Package == e.known.artefact() || e.known.via == viaBinary && sameOrigin(r.Package, e.known.binary.Archive)
}

// launch returns the place of an installed program: the program itself, or node with its full path when the program is a script.
func (c *Catalogue) launch(dir, bin string) (place, error) {
	at := place{program: filepath.Join(dir, filepath.FromSlash(bin)), home: dir}
	if info, err := os.Stat(at.program); err != nil || !info.Mode().IsRegular() {
		return place{}, fmt.Errorf("%s is not there", at.program)
	}
	flags, script := nodeScript(at.program)
	if !script {
		return at, environ.Executable(at.program)
	}
	node := c.environment.Program("node")
	if node == "" {
		return place{}, fmt.Errorf("it needs node, which is not on PATH: %s", getNode)
	}
	at.node = append([]string{node}, flags...)
	return at, nil
}

// nodeScript reports whether a file is a script for node, and returns the flags of node in its first line.
func nodeScript(file string) (flags []string, yes bool) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	start := make([]byte, 256)
	n, _ := f.Read(start) // an empty file is no script
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	if words := strings.Fields(line); strings.HasPrefix(line, "#!") {
		i := slices.IndexFunc(words, func(w string) bool { return w == "node" || strings.HasSuffix(w, "/node") })
		if i < 0 {
			return nil, false
		}
		return words[i+1:], true
	}
	return nil, slices.Contains([]string{".js", ".mjs", ".cjs"}, filepath.Ext(file))
}

// sweep removes the remains of killed installations, and versions that are neither in use nor the one before. The caller holds the lock.
// Directories that cannot be removed, or are used by a process, stay for the next sweep.
func (c *Catalogue) sweep(id string) {
	now, err := c.readCurrent(id)
	if err != nil && !errors.Is(err, errNoneStored) {
		return // without the record, removing would be a guess
	}
	keep := []string{now.Directory}
	if now.Previous != nil {
		keep = append(keep, now.Previous.Directory)
	}
	items, err := os.ReadDir(c.home(id))
	if err != nil {
		return
	}
	for _, item := range items {
		dir := filepath.Join(c.home(id), item.Name())
		if !item.IsDir() || slices.Contains(keep, item.Name()) {
			continue
		}
		if !strings.HasPrefix(item.Name(), newPrefix) && inUse(dir) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			c.cfg.Logger.Warn("an old version of an agent cannot be removed", "agent", id, "path", dir, "error", err)
		}
	}
}

// freeName returns a directory name for a version that does not exist yet: an existing directory may be in use, and is not replaced.
func freeName(home, version string) string {
	name := version
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(home, name)); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s-%d", version, n)
	}
}
