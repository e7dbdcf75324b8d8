package trust

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/autorun"
)

// mostMatches limits how many files a pattern may stand for. A pattern with more is reported.
const mostMatches = 500

// named adds the scripts, or the folders of scripts, that a word of the configuration may name, when they are near: all of them, as only the
// agent knows in which directory it runs a command.
func (p place) named(w word, folder string) {
	if p.words++; p.words > mostWords || p.full() {
		p.over = cmp.Or(p.over, "There are more words than are looked at for the names of programs")
		return
	}
	for _, from := range slices.Compact([]string{p.base, folder, p.real, p.inside}) {
		for _, at := range p.matches(from, w) {
			p.script(at, w)
		}
	}
}

// matches returns the paths that a word may stand for.
func (p place) matches(from string, w word) []string {
	at := filepath.FromSlash(w.text)
	switch {
	case w.glob && filepath.IsAbs(at):
		list, _ := filepath.Glob(at) // a malformed pattern matches nothing
		return p.few(list)
	case w.glob:
		return p.few(p.glob(from, path.Clean(w.text)))
	case filepath.IsAbs(at):
		return []string{at}
	}
	at = filepath.Join(from, at)
	if !w.runs {
		return []string{at}
	}
	list := []string{at}
	for _, ending := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh", "/index.js", "/index.ts", "/__main__.py"} { // as interpreters complete a name
		list = append(list, at+filepath.FromSlash(ending))
	}
	return list
}

// glob returns the files below a directory that match the pattern. For a ** that may stand for folders, glob returns the folder to
// search.
func (p place) glob(from, pattern string) (list []string) {
	for strings.HasPrefix(pattern, "../") {
		from, pattern = filepath.Dir(from), pattern[len("../"):]
	}
	if folder, _, deep := strings.Cut(pattern, "**"); deep {
		return []string{filepath.Join(from, filepath.FromSlash(path.Dir(folder+"x")))}
	}
	names, _ := fs.Glob(os.DirFS(from), pattern) // a malformed pattern matches nothing
	for _, name := range names {
		list = append(list, filepath.Join(from, filepath.FromSlash(name)))
	}
	return list
}

func (p place) few(list []string) []string {
	if len(list) <= mostMatches {
		return list
	}
	p.over = cmp.Or(p.over, "A pattern of programs stands for more files than are looked at")
	return list[:mostMatches]
}

// script adds a file or folder that a word names, if there is one.
func (p place) script(at string, w word) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil || !within(p.inside, real) && !within(p.base, real) || within(real, p.real) {
		return
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
	case info.Mode().IsRegular() && w.tasks != nil && filepath.Base(at) == "package.json":
		p.tasksOf(at, real, info, w.tasks)
	case info.Mode().IsRegular() && (w.runs || mayRun(at, info)):
		p.visited++
		p.file(at, real, info, autorun.Place{Path: filepath.Base(at)}, &w)
	case info.IsDir() && (w.loads || w.glob && strings.Contains(w.text, "**")):
		p.look(at, autorun.Place{Path: "named/"}, 1)
	}
}

// tasksOf adds the scripts of a package.json, all of them, so that every change is noticed, and the files that the named scripts run. The
// packages listed in the file do not count: they change often, and a command line does not name them.
func (p place) tasksOf(at, real string, info fs.FileInfo, tasks []string) {
	name := p.name(at)
	known := p.counted[name]
	if p.followed(name, tasks) {
		return
	}
	f := readFile(real, info, mostHashed-p.hashed)
	p.hashed += f.hashed
	f.name, f.at, f.outside = name, at, !within(p.inside, real)
	var file struct {
		Scripts map[string]string `json:"scripts"`
	}
	p.counted[name] = true
	switch {
	case f.data == nil || json.Unmarshal(f.data, &file) != nil:
		if !known {
			p.add(f.unseen("It cannot be told what is run by it"))
		}
		return
	case len(file.Scripts) > 0 && !known:
		p.add(f.part(Script, name, "scripts: "+written(file.Scripts), compact(file.Scripts)))
	}
	for _, line := range reached(file.Scripts, tasks) {
		for _, w := range words(line, true) {
			p.named(w, filepath.Dir(at))
		}
	}
}

// reached returns the lines of the named scripts, of the scripts that a package manager runs before, after and by itself, and of the
// scripts that these lines name in turn.
func reached(scripts map[string]string, tasks []string) (lines []string) {
	queue := append(slices.Clone(tasks), "preinstall", "install", "postinstall", "prepare")
	seen := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		line, is := scripts[name]
		if !is || seen[name] {
			continue
		}
		seen[name] = true
		lines = append(lines, line)
		queue = append(queue, "pre"+name, "post"+name)
		queue = append(queue, strings.Fields(line)...)
		if strings.Contains(line, "*") { // as in run-s "build:*"
			queue = append(queue, slices.Sorted(maps.Keys(scripts))...)
		}
	}
	return lines
}
