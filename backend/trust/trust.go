// Package trust finds the files that an agent reads in a directory by itself and that can start programs: settings, hooks, commands and
// skills. Nobody can keep these files from the agent, so a person approves them, or the agent does not start there.
//
// The package searches the places that the catalogue lists for the agent ([autorun.Place]), and as the agent would: links are followed,
// wherever they lead, but of a file outside of the directory, its repository and its parents only the hash is shown. Nothing waits for a
// pipe, and both the bytes and the time of a search are bounded. A file that cannot be read, or not whole, is not skipped: its entry says
// so. Prose is no program and no entry, unless the prose has the agent run commands, or allows some.
package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"deskhand/backend/autorun"
)

// The kinds of entries.
const (
	Hook   = "hook"         // a command that the agent runs at an event
	Config = "agent_config" // other settings that start programs, or change which programs run
	Script = "script"       // a program
)

// Found is an entry that a person approves.
type Found struct {
	Kind, Name string
	Hash       string // of all bytes that count, in hexadecimal
	Detail     string // the text by which a person judges
}

// Where says which places are searched.
type Where struct {
	Directory string          // the session's directory
	Further   []string        // further directories of the session
	Reads     []autorun.Place // the places that the agent searches
	// Linked reports whether a link, or copy, below the directory was made for a session: a person has approved its target.
	Linked func(path string) bool
}

// The limits of a search, for all places together. An entry of its own reports what is beyond.
const (
	mostVisited  = 20_000   // files and folders
	mostRead     = 2_000    // files
	mostHashed   = 64 << 20 // bytes of the files
	mostWords    = 20_000   // words of settings that may name files
	longestText  = 1 << 20  // bytes of a file whose text is judged
	deepest      = 16       // nested folders
	mostParents  = 64
	longestVisit = 10 * time.Second
)

// The limits of a list that a person can read at once.
const (
	mostEntries   = 200
	longestDetail = 32 << 10
	longestList   = 256 << 10
)

// search is a search for the files that an agent reads.
type search struct {
	Where

	ctx     context.Context //nolint:containedctx // of a single Find, which makes many small calls
	real    string          // the directory, with links resolved
	parents []string        // the directory and its parents
	far     []string        // the further directories
	// the repository, else the directory. Files inside are shown; the target of a link elsewhere is not.
	inside string
	end    time.Time

	visited, read, words int
	hashed               int64
	seen                 map[string]bool // names of files, and folders with links resolved
	counted              map[string]bool // names of files that have entries
	found                []Found
	rest                 hash.Hash // of files that were found and not read
	left                 int
	over                 string // why the search stopped
}

// Find returns the entries for the files that the agent would read. A missing directory has none.
func Find(ctx context.Context, w Where) []Found {
	real, err := filepath.EvalSymlinks(w.Directory)
	if err != nil || len(w.Reads) == 0 {
		return nil
	}
	s := &search{Where: w, ctx: ctx, real: real, end: time.Now().Add(longestVisit), seen: map[string]bool{}, counted: map[string]bool{}, rest: sha256.New()}
	home := homeOf()
	bases, repository := basesOf(real, home)
	s.parents, s.inside = bases, cmp.Or(repository, real)
	s.upward(home, cmp.Or(repository, bases[len(bases)-1]))
	s.deeper(home)
	for _, other := range w.Further {
		if real, err := filepath.EvalSymlinks(other); err == nil && !slices.Contains(s.parents, real) {
			s.far = append(s.far, real)
			s.base(real, func(r autorun.Place) bool { return r.Further })
			s.repository(real)
		}
	}
	return s.result()
}

// upward searches the directory and its parents; top is the last parent that agents take for the project's root.
func (s *search) upward(home, top string) {
	for at, base := range s.parents {
		s.base(base, func(r autorun.Place) bool {
			if base == home && r.Folder() {
				return false // the user's own settings, which agents read wherever they start
			}
			return at == 0 || r.Up == autorun.UpAll || r.Up == autorun.UpRepository && within(top, base)
		})
		if within(top, base) && (base != home || at == 0) {
			s.repository(base)
		}
	}
}

// ours reports whether a path is a link of a session.
func (s *search) ours(at string) bool {
	rel, err := filepath.Rel(s.real, at)
	return err == nil && s.Linked != nil && s.Linked(filepath.ToSlash(rel))
}

// basesOf returns the directory and its parents, from the inside out, up to the home of the user, whose files all agents read anyway, and
// the root of the repository. Outside of repositories, agents search all parents, so all parents count.
func basesOf(directory, home string) (bases []string, repository string) {
	for dir := directory; len(bases) < mostParents; dir = filepath.Dir(dir) {
		if dir == home && dir != directory {
			break
		}
		bases = append(bases, dir)
		if repository == "" {
			if _, is := gitDirsOf(dir); is {
				repository = dir
			}
		}
		if filepath.Dir(dir) == dir || dir == home {
			break
		}
	}
	return bases, repository
}

// homeOf returns the user's home, with links resolved, or "".
func homeOf() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		return real
	}
	return filepath.Clean(home)
}

// within reports whether a path is a directory, or below that directory.
func within(directory, name string) bool {
	rel, err := filepath.Rel(directory, name)
	return err == nil && filepath.IsLocal(rel)
}

func (s *search) base(base string, looks func(autorun.Place) bool) {
	var rows []autorun.Place
	for _, r := range s.Reads {
		if looks(r) {
			rows = append(rows, r)
		}
	}
	p := place{s, base, rows}
	for _, r := range rows {
		if !strings.ContainsAny(r.Path, "*?[") {
			p.look(filepath.Join(base, filepath.FromSlash(r.Path)), r, 0)
		}
	}
}

// place is a directory that the agent searches, with the places to search there.
type place struct {
	*search
	base string
	rows []autorun.Place
}

// name returns the name of a path for people: relative to the session's directory, or absolute when the path is in none of its parents
// either.
func (s *search) name(at string) string {
	rel, err := filepath.Rel(s.real, at)
	if err != nil || !within(s.inside, at) && !s.beside(at, s.parents) {
		return filepath.ToSlash(at)
	}
	return filepath.ToSlash(rel)
}

// beside reports whether a path belongs to a place of the agent in a directory of bases.
func (s *search) beside(at string, bases []string) bool {
	return slices.ContainsFunc(bases, func(base string) bool {
		return slices.ContainsFunc(s.Reads, func(r autorun.Place) bool {
			return within(filepath.Join(base, filepath.FromSlash(r.Path)), at)
		})
	})
}

// full reports whether the search must stop, and sets over to the reason.
func (s *search) full() bool {
	switch {
	case s.ctx.Err() != nil:
		return true
	case s.over != "":
	case s.visited >= mostVisited:
		s.over = fmt.Sprintf("There are more than %d files and folders", mostVisited)
	case !time.Now().Before(s.end):
		s.over = fmt.Sprintf("After %s not all of it was looked at", longestVisit)
	}
	return s.over != ""
}

// look looks at a path, whatever its kind.
func (p place) look(at string, row autorun.Place, depth int) {
	if p.full() {
		return
	}
	p.visited++
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !errors.Is(err, fs.ErrPermission):
		return // the agent finds nothing either: a file stands in place of a folder
	case err != nil:
		p.unusable(at, "", "It cannot be looked at: "+reason(err))
		return
	}
	real, err := filepath.EvalSymlinks(at)
	if err == nil {
		info, err = os.Stat(real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // a dangling link; its target counts once it exists
	case err != nil:
		p.unusable(at, "", "It cannot be looked at: "+reason(err))
	case info.IsDir():
		p.folder(at, real, row, depth)
	case info.Mode().IsRegular():
		p.file(at, real, info, row, nil)
	default:
		p.unusable(at, real, "It is neither a file nor a folder but "+special(info.Mode())+": what is read from it cannot be shown")
	}
}

func special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// folder looks at all entries of a folder, in the order of their names.
func (p place) folder(at, real string, row autorun.Place, depth int) {
	// Elsewhere the same files may count, though not as the data of a skill.
	key := fmt.Sprintf("%s %t", real, strings.Contains(p.name(at)+"/", "skills/"))
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	if depth > deepest {
		p.unusable(at, real, "It is deeper in its folders than anything is looked at")
		return
	}
	f, err := os.Open(real + string(filepath.Separator) + ".") // without the dot, the open would wait for a pipe in the folder's place
	if err != nil {
		p.unusable(at, real, "The folder cannot be read: "+reason(err))
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(mostVisited) // a folder without end is read in part
	if err != nil && !errors.Is(err, io.EOF) && len(entries) == 0 {
		p.unusable(at, real, "The folder cannot be read: "+reason(err))
		return
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := filepath.Join(at, e.Name())
		switch {
		case p.full():
			return
		case p.skipped(name) || p.excepted(name):
		case e.Type()&fs.ModeSymlink != 0 && p.ours(name):
		case e.IsDir() && depth > 0 && p.ours(name): // a copy, on systems without links
		default:
			p.look(name, row, depth+1)
		}
	}
}

// byName matches folders in which agents take every entry by its name.
var byName = regexp.MustCompile(`(^|/)(skills|extensions)$|(^|/)(commands?|agents?|prompts|workflows|modes?)(/|$)`)

// skipped reports whether a folder holds the work of others: packages, which an approved script may load, and a repository's .git; but
// not in a folder where a skill, or a command, may have such a name.
func (p place) skipped(at string) bool {
	name := filepath.Base(at)
	if name != "node_modules" && name != ".git" {
		return false
	}
	rel, err := filepath.Rel(p.base, filepath.Dir(at))
	return err == nil && !byName.MatchString(filepath.ToSlash(rel))
}

// excepted reports whether the agent starts nothing from a path.
func (p place) excepted(at string) bool {
	rel, err := filepath.Rel(p.base, at)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p.rows, func(r autorun.Place) bool {
		below, ok := strings.CutPrefix(filepath.ToSlash(rel), r.Path)
		return ok && slices.Contains(r.Except, below)
	})
}

// file judges a file and adds its entries, once; by is the word by which the file is run, whatever its form, or nil.
func (p place) file(at, real string, info fs.FileInfo, row autorun.Place, by *word) {
	name := p.name(at)
	known := p.counted[name]
	if by == nil && (known || p.seen[name]) || by != nil && p.followed(name, by.tasks) {
		return
	}
	p.seen[name] = true
	switch full := p.read >= mostRead || p.hashed >= mostHashed; {
	case full && known:
		return
	case full:
		p.counted[name] = true
		p.left++
		fmt.Fprintf(p.rest, "%q %d %d %o\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return
	}
	p.read++
	f := readFile(real, info, mostHashed-p.hashed)
	p.hashed += f.hashed
	f.name, f.at, f.run = name, at, by != nil
	if by != nil {
		f.tasks = by.tasks
	}
	f.asked = !row.Folder()
	f.outside = !within(p.inside, real) && !p.beside(real, p.parents) && !p.beside(real, p.far)
	if real != at {
		f.link = p.name(real)
	}
	f.harmless, f.rules = p.harmless(at)
	for _, part := range f.parts() {
		p.counted[name] = true
		if !known {
			p.add(part)
		}
		for _, w := range part.names {
			p.named(w, filepath.Dir(at))
		}
	}
}

// followed reports whether the file was followed with these tasks before, and notes that it is now.
func (p place) followed(name string, tasks []string) bool {
	key := fmt.Sprintf("run %q %q", name, tasks)
	before := p.seen[key]
	p.seen[key] = true
	return before
}

// harmless returns the members of the file that do not count.
func (p place) harmless(at string) (members []string, rules map[string][]string) {
	rel, err := filepath.Rel(p.base, at)
	if err != nil {
		return nil, nil
	}
	for _, r := range p.Reads {
		if (r.Harmless != nil || r.HarmlessRules != nil) && r.Names(filepath.ToSlash(rel)) {
			return r.Harmless, r.HarmlessRules
		}
	}
	return nil, nil
}

// unusable adds the entry of a path that cannot be shown.
func (s *search) unusable(at, real, why string) {
	name := s.name(at)
	if s.seen[name] {
		return
	}
	s.seen[name] = true
	detail := why
	if real != "" && real != at {
		detail = "A link to " + visible(s.name(real)) + "\n" + why
	}
	s.add(part{kind: Config, name: name, covered: []byte(detail), detail: detail})
}

// add adds an entry. The hash covers the kind and the name, too: a file that is harmless under one name may not be under another.
func (s *search) add(p part) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", p.kind, p.name, p.covered)
	e := Found{Kind: p.kind, Name: p.name, Hash: hex.EncodeToString(sum.Sum(nil)), Detail: p.detail}
	for n := 2; slices.ContainsFunc(s.found, func(o Found) bool { return o.Kind == e.Kind && o.Name == e.Name }); n++ {
		e.Name = fmt.Sprintf("%s (%d)", p.name, n)
	}
	s.found = append(s.found, e)
}

// result returns the entries in an order for reading, and no more than a person can read at once: of the rest only the hash is shown.
func (s *search) result() []Found {
	if s.left > 0 {
		s.add(part{
			kind: Config, name: "(more files)", covered: s.rest.Sum(nil),
			detail: fmt.Sprintf("%d more files were not read: a change of their names, sizes or times asks again", s.left),
		})
	}
	if s.over != "" {
		detail := s.over + ". What was not looked at is not covered by an approval"
		s.add(part{kind: Config, name: "(not looked at)", covered: []byte(detail), detail: detail})
	}
	order := []string{Config, Hook, Script}
	slices.SortStableFunc(s.found, func(a, b Found) int {
		return cmp.Or(slices.Index(order, a.Kind)-slices.Index(order, b.Kind), strings.Compare(a.Name, b.Name))
	})
	size := 0
	for i := range s.found {
		e := &s.found[i]
		if size += len(e.Detail); size > longestList {
			e.Detail = fmt.Sprintf("There is too much to show all of it at once: read this file before you approve it\nSHA-256 %s", e.Hash)
		}
	}
	if len(s.found) <= mostEntries {
		return s.found
	}
	return append(s.found[:mostEntries:mostEntries], folded(s.found[mostEntries:]))
}

// folded returns a single entry for many.
func folded(list []Found) Found {
	sum := sha256.New()
	var names strings.Builder
	for i, e := range list {
		fmt.Fprintf(sum, "%q %q %s\n", e.Kind, e.Name, e.Hash)
		if line := fmt.Sprintf("\n%s %s %s", e.Hash[:12], e.Kind, visible(e.Name)); names.Len()+len(line) < longestDetail-200 {
			names.WriteString(line)
		} else if i == len(list)-1 {
			names.WriteString("\n…")
		}
	}
	return Found{
		Kind: Script, Name: "(more)", Hash: hex.EncodeToString(sum.Sum(nil)),
		Detail: fmt.Sprintf("%d more, by the beginnings of their hashes:%s", len(list), names.String()),
	}
}
