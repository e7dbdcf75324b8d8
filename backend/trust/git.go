package trust

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/autorun"
	"deskhand/backend/git"
)

// Agents run git as soon as they start, and git runs the programs that .git/config and .git/hooks name. Neither travels with a clone; an
// unpacked directory contains the files of its maker. Of a configuration, only the settings that name programs count, and of the hooks only
// those that git would run, so that nobody is asked about an ordinary clone.

// gitDirs are the git directories of a worktree: its own, and the directory that linked worktrees share. Usually the two are the same.
type gitDirs struct{ own, common string }

// gitDirsOf finds the git directories for the .git in a directory. ok says that git would take the directory for the root of a
// repository.
func gitDirsOf(dir string) (g gitDirs, ok bool) {
	name := filepath.Join(dir, ".git")
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return g, false
	case info.IsDir():
		g.own = name
	case !info.Mode().IsRegular():
		return g, false
	default:
		target, is := strings.CutPrefix(strings.TrimRight(string(small(name)), "\r\n"), "gitdir: ")
		if g.own = filepath.FromSlash(target); !is || g.own == "" {
			return gitDirs{}, false
		}
		if !filepath.IsAbs(g.own) {
			g.own = filepath.Join(dir, g.own)
		}
	}
	g.common = g.own
	if shared := strings.TrimRight(string(small(filepath.Join(g.own, "commondir"))), "\r\n"); shared != "" {
		if g.common = filepath.FromSlash(shared); !filepath.IsAbs(g.common) {
			g.common = filepath.Join(g.own, g.common)
		}
	}
	return g, g.valid() && !g.elsewhere(info.IsDir())
}

// small returns the content of a short regular file, or nil.
func small(name string) []byte {
	const most = 64 << 10
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return data
}

var head = regexp.MustCompile(`^(?:ref:[ \t]*refs/\S.*|[0-9a-f]{40}|[0-9a-f]{64})\s*$`)

// valid reports whether git takes the directories for those of a repository. Otherwise git searches the parents.
func (g gitDirs) valid() bool {
	isFolder := func(name string) bool {
		info, err := os.Stat(filepath.Join(g.common, name))
		return err == nil && info.IsDir()
	}
	file := filepath.Join(g.own, "HEAD")
	link, _ := os.Readlink(file) // older versions of git made HEAD a link
	return (head.Match(small(file)) || strings.HasPrefix(filepath.ToSlash(link), "refs/")) && isFolder("objects") && isFolder("refs")
}

// elsewhere reports whether the configuration puts the files of the repository elsewhere, or git could not read the configuration: an
// agent may then take a parent for the root.
func (g gitDirs) elsewhere(folder bool) bool {
	list, err := git.ParseConfig(small(filepath.Join(g.common, "config")))
	return err != nil || folder && slices.ContainsFunc(list, func(s git.Setting) bool {
		return s.Key == "core.worktree" || s.Key == "core.bare" && s.Value == "true" || s.Key == "core.repositoryformatversion" && s.Value != "0" && s.Value != "1"
	})
}

// repository adds the entries of the git directories at a directory.
func (s *search) repository(dir string) {
	if g, _ := gitDirsOf(dir); g.own != "" && g.valid() {
		s.gitFolder(dir, ".git", g.common, true)
		if g.own != g.common {
			s.gitFolder(dir, ".git", g.own, false)
		}
	}
	if (gitDirs{dir, dir}).valid() { // a bare repository, which git accepts without a .git
		s.gitFolder(dir, "", dir, true)
	}
}

// gitFolder adds the entries of a git directory. Its files are named as if they were below the directory, so that an approval for a
// repository also holds for its linked worktrees.
func (s *search) gitFolder(dir, below, folder string, whole bool) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil || s.seen["git "+real] || s.full() {
		return
	}
	s.seen["git "+real] = true
	for _, name := range []string{"config", "config.worktree"} {
		s.gitConfig(dir, path.Join(below, name), filepath.Join(real, name), 0)
	}
	if !whole {
		return
	}
	s.hooks(dir, path.Join(below, "hooks"), filepath.Join(real, "hooks"))
	for _, e := range entriesOf(filepath.Join(real, "worktrees")) {
		s.gitConfig(dir, path.Join(below, "worktrees", e.Name(), "config.worktree"), filepath.Join(real, "worktrees", e.Name(), "config.worktree"), 0)
	}
	s.modules(dir, path.Join(below, "modules"), filepath.Join(real, "modules"), 0)
}

// modules searches the git directories of submodules, which are nested where their names have slashes.
func (s *search) modules(dir, below, folder string, depth int) {
	for _, e := range entriesOf(folder) {
		if depth > deepest || !e.IsDir() || s.full() {
			continue
		}
		s.visited++
		name, at := path.Join(below, e.Name()), filepath.Join(folder, e.Name())
		if _, err := os.Lstat(filepath.Join(at, "HEAD")); err == nil {
			s.gitFolder(dir, name, at, true)
		} else {
			s.modules(dir, name, at, depth+1)
		}
	}
}

func entriesOf(folder string) []fs.DirEntry {
	entries, err := os.ReadDir(folder + string(filepath.Separator) + ".") // the dot keeps the open from waiting for a pipe
	if err != nil {
		return nil
	}
	return entries
}

// gitFile reads a file of a git directory under its name below the directory.
func (s *search) gitFile(dir, below, file string) (f looked, ok bool) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return looked{}, false
	}
	s.visited++
	f = readFile(file, info, mostHashed)
	f.at = filepath.Join(dir, filepath.FromSlash(below))
	f.name = s.below(f.at)
	return f, true
}

// below returns the name of a git file relative to the session's directory.
func (s *search) below(at string) string {
	rel, err := filepath.Rel(s.real, at)
	if err != nil {
		return filepath.ToSlash(at)
	}
	return filepath.ToSlash(rel)
}

// gitConfig adds the settings of a configuration that name programs, and those of the files that the configuration includes.
func (s *search) gitConfig(dir, below, file string, depth int) {
	const mostIncluded = 10 // the limit of git
	f, ok := s.gitFile(dir, below, file)
	if !ok || s.counted[f.name] || depth > mostIncluded || s.full() {
		return
	}
	s.counted[f.name] = true
	list, err := git.ParseConfig(f.data)
	switch {
	case f.problem != "" || f.data == nil:
		s.add(f.unseen("It cannot be told what git would run by it"))
		return
	case err != nil: // git cannot read the file either, unless git's syntax has grown
		s.add(f.whole(Config, f.text()))
		return
	}
	s.gitPrograms(dir, f, slices.DeleteFunc(slices.Clone(list), func(set git.Setting) bool {
		return !set.Starts() && (!includes(set) || !unfollowed(set.Value)) && (set.Key != "core.worktree" || strings.Contains(below, "modules/"))
	}))
	for _, set := range list {
		if includes(set) && !unfollowed(set.Value) {
			s.included(dir, below, file, set.Value, depth)
		}
	}
}

// includes reports whether a setting names a further file of settings.
func includes(set git.Setting) bool {
	section, _, _ := strings.Cut(set.Key, ".")
	return (section == "include" || section == "includeif") && strings.HasSuffix(set.Key, ".path")
}

// unfollowed reports whether only git knows which file a name means: in the home of another account, or where git is installed.
func unfollowed(name string) bool {
	return strings.HasPrefix(name, "%(") || strings.HasPrefix(name, "~") && name != "~" && !strings.HasPrefix(name, "~/")
}

// gitPrograms adds the settings of a file that name programs, and the named programs that are in the directory.
func (s *search) gitPrograms(dir string, f looked, list []git.Setting) {
	if len(list) == 0 {
		return
	}
	var lines []string
	for _, set := range list {
		lines = append(lines, visible(set.Key)+" = "+visible(set.Value))
	}
	text := strings.Join(lines, "\n")
	s.add(f.part(Config, f.name, "git goes by these settings when it runs programs:\n"+text, []byte(text)))
	at := place{s, dir, nil}
	for _, set := range list {
		for _, w := range append(words(strings.TrimPrefix(set.Value, "!"), true), word{text: set.Value, loads: set.Key == "core.hookspath"}) {
			at.named(w, dir)
		}
	}
}

// included reads a file that a configuration includes. A file that is named by the user's home and lies there belongs to the user and does
// not count, unless the project itself lies there and has the file.
func (s *search) included(dir, below, from, name string, depth int) {
	if name == "" {
		return
	}
	file := filepath.FromSlash(name)
	if rest, is := strings.CutPrefix(name, "~"); is {
		home := homeOf()
		if file = filepath.Join(home, filepath.FromSlash(rest)); home == "" || within(home, file) && !within(s.inside, file) {
			return
		}
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(from), file)
		below = path.Join(path.Dir(below), filepath.ToSlash(name))
	} else if rel, err := filepath.Rel(dir, file); err == nil {
		below = filepath.ToSlash(rel)
	}
	s.gitConfig(dir, below, file, depth+1)
}

// hooks adds the hooks that git would run: no samples, and no files that are only read.
func (s *search) hooks(dir, below, folder string) {
	for _, e := range entriesOf(folder) {
		if strings.HasSuffix(e.Name(), ".sample") || s.full() {
			continue
		}
		file := filepath.Join(folder, e.Name())
		if f, ok := s.gitFile(dir, path.Join(below, e.Name()), file); ok && !s.counted[f.name] && (mayRun(file, f.info) || path.Ext(e.Name()) == "") {
			s.counted[f.name] = true
			s.hook(dir, folder, f)
		}
	}
}

func (s *search) hook(dir, folder string, f looked) {
	switch {
	case f.problem != "":
		s.add(f.unseen(f.problem))
	case f.data == nil:
		s.add(f.unseen("It is too large to be shown"))
	case len(f.data) == 0 || largeFiles.Match(f.data):
	default:
		s.add(f.whole(Script, f.text()))
		at := place{s, dir, nil}
		for _, w := range words(string(f.data), true) {
			at.named(w, folder)
		}
	}
}

// largeFiles matches the hooks that git-lfs writes into repositories: each starts the git-lfs that a person has installed.
var largeFiles = regexp.MustCompile("^#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 \\|\\| \\{ (?:echo|printf) >&2(?: \"[^\"`$]*\")+; exit [0-9]; \\}\ngit lfs [a-z-]+ \"\\$@\"\n?$")

// deeper searches all directories below the session's for files of agents and for repositories, the shallow directories first.
func (s *search) deeper(home string) {
	if within(s.real, home) && home != "" {
		return // a home directory's files are the user's own
	}
	nested := s.nested()
	list := []string{s.real}
	for n := 0; n < len(list) && !s.full(); n++ {
		if n >= mostFolders {
			s.unusable(filepath.Join(s.real, "(folders)"), "", fmt.Sprintf("There are more than %d folders. Folders of agents and repositories in those beyond were not looked for, and are not covered by an approval", mostFolders))
			return
		}
		list = append(list, s.subfolders(list[n], n > 0, nested)...)
	}
}

// mostFolders limits how many folders are searched. An entry reports further folders.
const mostFolders = 10_000

// subfolders returns the folders of a directory. With below, the directory is not the session's own, and its files are looked at.
func (s *search) subfolders(dir string, below bool, nested map[string][]autorun.Place) (list []string) {
	for _, e := range entriesOf(dir) {
		name := e.Name()
		if below && (strings.EqualFold(name, ".git") || strings.EqualFold(name, "HEAD")) {
			s.repository(dir)
		}
		if rows := nested[name]; below && rows != nil {
			p := place{s, dir, rows}
			for _, r := range rows {
				p.look(filepath.Join(dir, filepath.FromSlash(r.Path)), r, 0)
			}
		}
		if e.IsDir() && !strings.EqualFold(name, ".git") && name != "node_modules" && !s.copies(dir, name) {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list
}

// copies reports whether a folder has further worktrees of the directory, in which agents of their own start.
func (s *search) copies(dir, name string) bool {
	return slices.ContainsFunc(s.Reads, func(r autorun.Place) bool {
		return r.Folder() && slices.Contains(r.Except, name) && strings.HasSuffix(filepath.ToSlash(dir)+"/", "/"+r.Path)
	})
}

// nested returns the places that agents search in any directory, keyed by the first folder of their paths.
func (s *search) nested() map[string][]autorun.Place {
	byName := map[string][]autorun.Place{}
	for _, r := range s.Reads {
		for _, below := range r.Nested {
			first, _, _ := strings.Cut(r.Path, "/")
			byName[first] = append(byName[first], autorun.Place{Path: r.Path + below})
		}
	}
	return byName
}
