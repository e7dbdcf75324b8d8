package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

var errNoneStored = errors.New("not installed by Deskhand")

// store has the agents that Deskhand installed.
type store struct {
	dir         string // "" when nothing can be installed
	write       func(name string, data []byte, mode fs.FileMode) error
	environment *environ.Environment // has node on its PATH
	logger      *slog.Logger
}

// home returns the directory of an agent in the store.
func (s *store) home(id string) string { return filepath.Join(s.dir, id) }

// current returns the version in use, or errNoneStored.
func (s *store) current(id string) (current, error) {
	file := filepath.Join(s.home(id), currentName)
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

// setCurrent makes next the version in use. The version before stays known, and its directory stays.
func (s *store) setCurrent(id string, next release, before *release) error {
	data, err := json.MarshalIndent(current{next, before}, "", "  ")
	if err != nil {
		return err
	}
	return s.write(filepath.Join(s.home(id), currentName), append(data, '\n'), 0o600)
}

// find finds an agent in the store.
func (s *store) find(e entry) (place, error) {
	now, err := s.current(e.id)
	if err != nil {
		return place{}, err
	}
	if !e.owns(now.release) {
		return place{}, errNoneStored
	}
	at, err := s.launch(filepath.Join(s.home(e.id), now.Directory), now.Bin)
	if err != nil {
		return place{}, err
	}
	at.version, at.reason, at.start = now.Version, "Deskhand installed it, version "+now.Version, now.Start
	if now.Unchecked {
		at.reason += ", from an archive that came without a checksum"
	}
	return at, nil
}

// launch returns the place of an installed program: the program itself, or node with its full path when the program is a script.
func (s *store) launch(dir, bin string) (place, error) {
	at := place{program: filepath.Join(dir, filepath.FromSlash(bin)), home: dir}
	if info, err := os.Stat(at.program); err != nil || !info.Mode().IsRegular() {
		return place{}, fmt.Errorf("%s is not there", at.program)
	}
	flags, script := nodeScript(at.program)
	if !script {
		return at, environ.Executable(at.program)
	}
	node := s.environment.Program("node")
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
func (s *store) sweep(id string) {
	now, err := s.current(id)
	if err != nil && !errors.Is(err, errNoneStored) {
		return // without the record, removing would be a guess
	}
	keep := []string{now.Directory}
	if now.Previous != nil {
		keep = append(keep, now.Previous.Directory)
	}
	items, err := os.ReadDir(s.home(id))
	if err != nil {
		return
	}
	for _, item := range items {
		dir := filepath.Join(s.home(id), item.Name())
		if !item.IsDir() || slices.Contains(keep, item.Name()) {
			continue
		}
		if !strings.HasPrefix(item.Name(), newPrefix) && inUse(dir) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			s.logger.Warn("an old version of an agent cannot be removed", "agent", id, "path", dir, "error", err)
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

const getNode = "install Node.js 20 or newer, which brings npm: https://nodejs.org"

// directories returns the version directories of an agent in the store.
func (s *store) directories(id string) []string {
	var dirs []string
	items, _ := os.ReadDir(s.home(id)) // a directory that cannot be read cannot be removed either
	for _, item := range items {
		if item.IsDir() {
			dirs = append(dirs, filepath.Join(s.home(id), item.Name()))
		}
	}
	return dirs
}

func (s *store) anyInUse(id string) bool {
	for _, dir := range s.directories(id) {
		if !strings.HasPrefix(filepath.Base(dir), newPrefix) && inUse(dir) {
			return true
		}
	}
	return false
}

// installable returns why an agent cannot be installed, or nil.
func (s *store) installable(e entry) error {
	switch {
	case e.source == Custom:
		return fmt.Errorf("%w: %s, and it is not there", ErrNotInstallable, e.whence())
	case e.source == Builtin, e.known.via == "":
		return fmt.Errorf("%w: %s", ErrNotInstallable, e.whence())
	case s.dir == "" || s.write == nil:
		return fmt.Errorf("%w: there is no directory to install to", ErrNotInstallable)
	}
	return nil
}
