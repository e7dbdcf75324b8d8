// Package trust finds what an agent reads in a directory by itself and can start programs by: its settings, hooks, commands and skills.
// Nobody can keep these from the agent, so they are shown and approved, or it does not start there.
//
// It looks where the catalogue says that the agent looks ([autorun.Place]), and as the agent would: links are followed, wherever they lead,
// but of what lies outside of the directory, its repository and its parents only the hash is shown. Nothing waits for a pipe, and how
// much is read, and for how long, is bounded. What cannot be read, or not all of it, is not passed over: it is found as something that
// says so. Prose is no program and is not found, unless it has the agent run commands, or gives leave for them.
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

// The kinds of what is found.
const (
	Hook   = "hook"         // a command that the agent runs at an event
	Config = "agent_config" // what else starts programs, or changes what is run
	Script = "script"       // a program
)

// Found is something that is approved as one.
type Found struct {
	Kind, Name string
	Hash       string // of all that counts, in hexadecimal
	Detail     string // what a person judges by
}

// Where is what is looked through.
type Where struct {
	Directory string          // the session's
	Further   []string        // what it may work in beside that
	Reads     []autorun.Place // where the agent looks
	// Linked tells of a link, or copy, below the directory that was made for a session: a person has approved what it leads to.
	Linked func(path string) bool
}

// How much is looked at, in all places together. What is beyond that is an entry of its own.
const (
	mostVisited  = 20_000   // files and folders
	mostRead     = 2_000    // files
	mostHashed   = 64 << 20 // bytes of them
	mostWords    = 20_000   // of settings, that may name files
	longestText  = 1 << 20  // bytes of a file whose text is judged
	deepest      = 16       // folders
	mostParents  = 64
	longestVisit = 10 * time.Second
)

// What a person can read at once.
const (
	mostEntries   = 200
	longestDetail = 32 << 10
	longestList   = 256 << 10
)

// search is one look at what an agent reads.
type search struct {
	Where

	ctx     context.Context //nolint:containedctx // of one call, which goes through many small ones
	real    string          // the directory, with links resolved
	parents []string        // and itself
	far     []string        // the further ones
	// What is below is shown: the repository, else the directory. What a link finds elsewhere is not.
	inside string
	end    time.Time

	visited, read, words int
	hashed               int64
	seen                 map[string]bool // names of files, and folders with links resolved
	counted              map[string]bool // names of files that are entries
	found                []Found
	rest                 hash.Hash // of what was found and not read
	left                 int
	over                 string // why something was not looked at
}

// Find finds what the agent would. A directory that is not there has nothing.
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

// upward looks in the directory and its parents; top is the last of them that agents take for the project's.
func (s *search) upward(home, top string) {
	for at, base := range s.parents {
		s.base(base, func(r autorun.Place) bool {
			if base == home && r.Folder() {
				return false // the user's own settings, which agents have wherever they start
			}
			return at == 0 || r.Up == autorun.UpAll || r.Up == autorun.UpRepository && within(top, base)
		})
		if within(top, base) && (base != home || at == 0) {
			s.repository(base)
		}
	}
}

// ours tells of a link that a session has here.
func (s *search) ours(at string) bool {
	rel, err := filepath.Rel(s.real, at)
	return err == nil && s.Linked != nil && s.Linked(filepath.ToSlash(rel))
}

// basesOf are the directory and its parents, from the inside out, up to the home of the user, who has what is there for all agents
// anyway; and which of them is the root of its repository. Outside of repositories agents go up as far as they can, so all parents count.
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

// homeOf is the user's home, with links resolved; "" when there is none.
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

// within tells whether a path is a directory, or below it.
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

// place is a directory in which the agent looks, and what it looks for there.
type place struct {
	*search
	base string
	rows []autorun.Place
}

// name is how a path is called: from the session's directory, or in full when it is in none of its parents either.
func (s *search) name(at string) string {
	rel, err := filepath.Rel(s.real, at)
	if err != nil || !within(s.inside, at) && !s.beside(at, s.parents) {
		return filepath.ToSlash(at)
	}
	return filepath.ToSlash(rel)
}

// beside tells of a path that one of the agent's places has in one of these directories.
func (s *search) beside(at string, bases []string) bool {
	return slices.ContainsFunc(bases, func(base string) bool {
		return slices.ContainsFunc(s.Reads, func(r autorun.Place) bool {
			return within(filepath.Join(base, filepath.FromSlash(r.Path)), at)
		})
	})
}

// full tells that there is nothing more to be looked at, and why.
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

// look looks at one path, whatever stands there.
func (p place) look(at string, row autorun.Place, depth int) {
	if p.full() {
		return
	}
	p.visited++
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !errors.Is(err, fs.ErrPermission):
		return // nor does the agent find anything: a file stands where a folder should
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
		return // a link to nothing; when there is something, it is asked about
	case err != nil:
		p.unusable(at, "", "It cannot be looked at: "+reason(err))
	case info.IsDir():
		p.folder(at, real, row, depth)
	case info.Mode().IsRegular():
		p.file(at, real, info, row, false)
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

// folder looks at all that is in a folder, in the order of the names.
func (p place) folder(at, real string, row autorun.Place, depth int) {
	// Elsewhere the same files may count for something that they are not as the data of a skill.
	key := fmt.Sprintf("%s %t", real, strings.Contains(p.name(at)+"/", "skills/"))
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	if depth > deepest {
		p.unusable(at, real, "It is deeper in its folders than anything is looked at")
		return
	}
	f, err := os.Open(real + string(filepath.Separator) + ".") // without the dot a pipe that stands there by now would be waited for
	if err != nil {
		p.unusable(at, real, "The folder cannot be read: "+reason(err))
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(mostVisited) // of more there would be no end
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
		case e.IsDir() && depth > 0 && p.ours(name): // a copy, where there are no links
		default:
			p.look(name, row, depth+1)
		}
	}
}

// byName matches folders in which agents take whatever there is by its name.
var byName = regexp.MustCompile(`(^|/)(skills|extensions)$|(^|/)(commands?|agents?|prompts|workflows|modes?)(/|$)`)

// skipped tells of folders with what others have written: packages, which what is approved may load, and a repository's own; but not
// where a skill, or a command, may be called like these.
func (p place) skipped(at string) bool {
	name := filepath.Base(at)
	if name != "node_modules" && name != ".git" {
		return false
	}
	rel, err := filepath.Rel(p.base, filepath.Dir(at))
	return err == nil && !byName.MatchString(filepath.ToSlash(rel))
}

// excepted tells of what the agent starts nothing from.
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

// file judges a file and adds what of it counts; run tells that it is run, whatever it looks like.
func (p place) file(at, real string, info fs.FileInfo, row autorun.Place, run bool) {
	name := p.name(at)
	if p.counted[name] || p.seen[name] && !run {
		return
	}
	p.seen[name] = true
	if p.read >= mostRead || p.hashed >= mostHashed {
		p.counted[name] = true
		p.left++
		fmt.Fprintf(p.rest, "%q %d %d %o\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return
	}
	p.read++
	f := readFile(real, info, mostHashed-p.hashed)
	p.hashed += f.hashed
	f.name, f.at, f.run = name, at, run
	f.asked = !row.Folder()
	f.outside = !within(p.inside, real) && !p.beside(real, p.parents) && !p.beside(real, p.far)
	if real != at {
		f.link = p.name(real)
	}
	f.harmless, f.rules = p.harmless(at)
	for _, part := range f.parts() {
		p.counted[name] = true
		p.add(part)
		for _, w := range part.names {
			p.named(w, filepath.Dir(at))
		}
	}
}

// harmless are the members of the file that do not count.
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

// unusable is something that cannot be shown.
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

// add adds an entry. Its hash covers its kind and name too: what is harmless under one name may not be under another.
func (s *search) add(p part) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", p.kind, p.name, p.covered)
	e := Found{Kind: p.kind, Name: p.name, Hash: hex.EncodeToString(sum.Sum(nil)), Detail: p.detail}
	for n := 2; slices.ContainsFunc(s.found, func(o Found) bool { return o.Kind == e.Kind && o.Name == e.Name }); n++ {
		e.Name = fmt.Sprintf("%s (%d)", p.name, n)
	}
	s.found = append(s.found, e)
}

// result is what was found, in an order for reading, and no more than can be read at once: what is beyond that is shown by its hash.
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

// folded is one entry for many.
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
