package attachments

import (
	"cmp"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"deskhand/backend/attachment"
	"deskhand/backend/refusal"
)

// FoundPaths is the files and directories whose paths match a few letters, the best first.
type FoundPaths struct {
	Items []FoundPath `json:"items"`
	More  bool        `json:"more" doc:"There are more that fit, or not all of the directory was looked at"`
}

// FoundPath is a file or a directory that was found.
type FoundPath struct {
	Path      string `json:"path" doc:"Absolute"`
	Relative  string `json:"relative" doc:"From the session's directory, with slashes"`
	Directory bool   `json:"directory,omitempty"`
}

// The limits of a search; a person types on meanwhile.
const (
	maxSearch = 500 * time.Millisecond
	maxNames  = 200_000
)

// FindPaths finds files below the directory of a session, or below cwd when session is empty, by some of their letters. FindPaths goes level by level, so that near files are found first
// however large the directory is, and passes over .git and the files that .gitignore files leave out.
func (l *Library) FindPaths(ctx context.Context, session, cwd, letters string, limit int) (FoundPaths, error) {
	w, err := l.at(ctx, session, cwd)
	if err != nil {
		return FoundPaths{}, err
	}
	if w.Host.Directories == nil {
		return FoundPaths{}, &refusal.Error{Code: "paths.elsewhere"}
	}
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()
	f := &finder{root: w.Cwd, want: []rune(strings.ToLower(letters)), limit: limit}
	f.walk(ctx)
	return f.found(), nil
}

// finder is a search of FindPaths.
type finder struct {
	root  string
	want  []rune
	limit int

	hits  []hit
	names int
	cut   bool // the search ended before the whole directory was read
}

type hit struct {
	FoundPath
	score int
}

// level is a directory that is still to be read, with the rules of the .gitignore files that apply there.
type level struct {
	relative string
	rules    []ignoring
}

func (f *finder) walk(ctx context.Context) {
	// The copies of attached files are passed over, whether git ignores the copies or not.
	copies, _ := parseIgnore("/"+attachment.Copies+"/", "")
	waiting := []level{{rules: []ignoring{copies}}}
	for len(waiting) > 0 {
		if ctx.Err() != nil || f.names > maxNames {
			f.cut = true
			return
		}
		var below []level
		below, waiting = f.read(waiting[0]), waiting[1:]
		waiting = append(waiting, below...)
	}
}

// read reads a directory, and returns the directories in it.
func (f *finder) read(at level) (below []level) {
	dir := filepath.Join(f.root, filepath.FromSlash(at.relative))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // unreadable, or gone
	}
	rules := at.rules
	if more := readIgnore(filepath.Join(dir, ".gitignore"), at.relative); len(more) > 0 {
		rules = append(slices.Clip(rules), more...)
	}
	for _, e := range entries {
		f.names++
		relative := path.Join(at.relative, e.Name())
		if e.Name() == ".git" || ignored(rules, relative, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			below = append(below, level{relative, rules})
		}
		if score, fits := f.fits(relative); fits && utf8.ValidString(relative) {
			f.hits = append(f.hits, hit{FoundPath{filepath.Join(dir, e.Name()), relative, e.IsDir()}, score})
		}
	}
	return below
}

func (f *finder) found() FoundPaths {
	slices.SortStableFunc(f.hits, func(a, b hit) int {
		return cmp.Or(b.score-a.score, len(a.Relative)-len(b.Relative), strings.Compare(a.Relative, b.Relative))
	})
	out := FoundPaths{Items: []FoundPath{}, More: f.cut || len(f.hits) > f.limit}
	for _, h := range f.hits[:min(len(f.hits), f.limit)] {
		out.Items = append(out.Items, h.FoundPath)
	}
	return out
}

// fits reports whether a path has the letters in their order, and how well: letters that stand together, that begin a word, and that stand in
// the name score higher.
func (f *finder) fits(relative string) (score int, fits bool) {
	if len(f.want) == 0 {
		return -strings.Count(relative, "/"), true
	}
	text := []rune(strings.ToLower(relative))
	name := len(text) - len([]rune(path.Base(relative)))
	if s, ok := f.match(text[name:], f.want); ok { // all letters in the name score highest
		return s + 50*len(f.want), true
	}
	return f.match(text, f.want)
}

func (f *finder) match(text, want []rune) (score int, fits bool) {
	at, last := 0, -2
	for i, r := range text {
		if at == len(want) {
			break
		}
		if r != want[at] {
			continue
		}
		switch {
		case i == last+1:
			score += 5
		case i == 0 || !unicode.IsLetter(text[i-1]) && !unicode.IsDigit(text[i-1]):
			score += 3
		}
		last = i
		at++
	}
	if strings.Contains(string(text), string(want)) {
		score += 10 * len(want)
	}
	return score, at == len(want)
}
