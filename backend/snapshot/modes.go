package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/store"
)

// modes are the permissions of a tree's files and folders. git stores only the executable bit; modes stores, beside the tree, the permissions
// of most files and the list of exceptions. When permissions change and no content does, the modes of the latest snapshot count.
type modes struct {
	file, program, folder fs.FileMode
	other                 map[string]fs.FileMode // exceptions by path; a folder's path ends with a slash
}

const (
	groupAndOthers = fs.FileMode(0o077)
	readAndWrite   = fs.FileMode(0o666)
	mayRun         = fs.FileMode(0o111)
)

// of is the recorded permission of a file.
func (m *modes) of(name string, program bool) fs.FileMode {
	if perm, odd := m.other[name]; odd {
		return perm
	}
	if program {
		return m.program
	}
	return m.file
}

func (m *modes) ofFolder(name string) fs.FileMode {
	if perm, odd := m.other[name+"/"]; odd {
		return perm
	}
	return m.folder
}

// String is the stored format. The format is no JSON, since names are arbitrary bytes.
func (m *modes) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%o %o %o\x00", m.file, m.program, m.folder)
	for _, name := range slices.Sorted(maps.Keys(m.other)) {
		fmt.Fprintf(&text, "%o %s\x00", m.other[name], name)
	}
	return text.String()
}

func parseModes(text string) *modes {
	m := &modes{other: map[string]fs.FileMode{}}
	first, rest, _ := strings.Cut(text, "\x00")
	if _, err := fmt.Sscanf(first, "%o %o %o", &m.file, &m.program, &m.folder); err != nil {
		return nil
	}
	for line := range strings.SplitSeq(rest, "\x00") {
		perm, name, ok := strings.Cut(line, " ")
		n, err := strconv.ParseUint(perm, 8, 32)
		if ok && err == nil {
			m.other[name] = fs.FileMode(n).Perm()
		}
	}
	return m
}

// modesOf computes the modes of files and folders. A folder's name ends with a slash.
func modesOf(perms map[string]fs.FileMode) *modes {
	class := func(name string, perm fs.FileMode) int {
		switch {
		case strings.HasSuffix(name, "/"):
			return 2
		case perm&0o100 != 0:
			return 1
		}
		return 0
	}
	var count [3]map[fs.FileMode]int
	for i := range count {
		count[i] = make(map[fs.FileMode]int)
	}
	for name, perm := range perms {
		count[class(name, perm)][perm]++
	}
	norm := [3]fs.FileMode{0o600, 0o700, 0o700}
	for i, c := range count {
		if len(c) > 0 {
			norm[i] = slices.MinFunc(slices.Collect(maps.Keys(c)), func(a, b fs.FileMode) int {
				return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b))
			})
		}
	}
	m := &modes{norm[0], norm[1], norm[2], map[string]fs.FileMode{}}
	for name, perm := range perms {
		if norm[class(name, perm)] != perm {
			m.other[name] = perm
		}
	}
	return m
}

func (s *Store) modesFile(tree string) string { return filepath.Join(s.path, "modes", tree) }

// keepModes stores the modes of a tree.
func (s *Store) keepModes(tree string, m *modes) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	text := m.String()
	name := s.modesFile(tree)
	if was, err := os.ReadFile(name); err == nil && string(was) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return store.WriteFile(name, []byte(text), 0o600)
}

// loadModes reads the modes of a tree, or nil when none are stored.
func (s *Store) loadModes(tree string) *modes {
	if !isID(tree) {
		return nil
	}
	text, err := os.ReadFile(s.modesFile(tree))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.l.cfg.Logger.Warn("the permissions of a tree cannot be read", "error", err)
		}
		return nil
	}
	return parseModes(string(text))
}

// modes are the permissions of the new snapshot, by paths below the directory.
func (t *taking) modes() *modes {
	t.walkFolders() // includes folders of forced files
	perms := make(map[string]fs.FileMode, len(t.perms)+len(t.folders))
	for name, perm := range t.perms {
		if below, is := strings.CutPrefix(name, t.at.prefix); is {
			perms[below] = perm
		}
	}
	for folder, perm := range t.folders {
		if below, is := strings.CutPrefix(folder+"/", t.at.prefix); is && below != "" {
			perms[below] = perm
		}
	}
	return modesOf(perms)
}

// recorded are the stored modes of a file's tree.
func (p *putting) recorded(tree string) *modes {
	m, known := p.modes[tree]
	if !known {
		m = p.s.loadModes(tree)
		if p.modes == nil {
			p.modes = map[string]*modes{}
		}
		p.modes[tree] = m
	}
	return m
}

// perm is the permission of a file about to be written. A file that is restored gets its recorded permission. A file that exists keeps
// excluding everybody whom its present permission excludes, whether the person or the agent set that permission. Without a record, the
// folder's permission decides.
func (p *putting) perm(dir *os.Root, name string, mode string, from string) (fs.FileMode, error) {
	program := mode == modeProgram
	info, err := dir.Lstat(path.Base(name))
	there := err == nil && info.Mode().IsRegular()
	if err == nil && info.IsDir() {
		return 0, errWay
	}
	m := p.recorded(from)
	var perm fs.FileMode
	switch {
	case m != nil:
		perm = m.of(name, program)
		if there {
			perm &= info.Mode().Perm()&readAndWrite | 0o600 | mayRun
		}
	case there:
		perm = info.Mode().Perm()
	default:
		folder, err := dir.Stat(".")
		if err != nil {
			return 0, err
		}
		perm = folder.Mode().Perm()&readAndWrite | 0o600
	}
	if !program {
		return perm &^ mayRun, nil
	}
	if m == nil {
		perm |= perm & 0o444 >> 2
	}
	return perm&readAndWrite | perm&mayRun&(perm&0o444>>2) | 0o100, nil
}
