package session

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
)

// FoundPaths are files and directories of a session's directory that fit a few letters, the best first.
type FoundPaths struct {
	Items []FoundPath `json:"items"`
	More  bool        `json:"more" doc:"There are more that fit, or not all of the directory was looked at"`
}

// FoundPath is one of them.
type FoundPath struct {
	Path      string `json:"path" doc:"Absolute"`
	Relative  string `json:"relative" doc:"From the session's directory, with slashes"`
	Directory bool   `json:"directory,omitempty"`
}

// What is looked at for one question; a person types on meanwhile.
const (
	longestLook = 500 * time.Millisecond
	mostLooked  = 200_000 // names
)

// FindPaths looks for files below a session's directory: level by level, so that what is near is found first however large the rest is.
// What the directory's .gitignore files leave out, it leaves out too, and .git itself.
func (c *Client) FindPaths(ctx context.Context, id, q string, limit int) (FoundPaths, error) {
	s, err := c.Get(ctx, id)
	if err != nil {
		return FoundPaths{}, err
	}
	if c.hosts.At(s.Place).Directories == nil {
		return FoundPaths{}, &RefusedError{Code: "paths.elsewhere"}
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	f := &finder{root: s.Cwd, want: []rune(strings.ToLower(q)), limit: limit}
	f.walk(ctx)
	return f.found(), nil
}

// finder is one such search.
type finder struct {
	root  string
	want  []rune
	limit int

	hits   []hit
	looked int
	cut    bool // not all was looked at
}

type hit struct {
	FoundPath
	score int
}

// level is a directory that is still to be looked into, with the rules that count there.
type level struct {
	relative string
	rules    []ignoring
}

func (f *finder) walk(ctx context.Context) {
	// The copies of attached files are nobody's own, however git is told of them.
	copies, _ := parseIgnore("/"+attachment.Copies+"/", "")
	waiting := []level{{rules: []ignoring{copies}}}
	for len(waiting) > 0 {
		if ctx.Err() != nil || f.looked > mostLooked {
			f.cut = true
			return
		}
		var below []level
		below, waiting = f.look(waiting[0]), waiting[1:]
		waiting = append(waiting, below...)
	}
}

// look looks at one directory and gives those in it.
func (f *finder) look(at level) (below []level) {
	dir := filepath.Join(f.root, filepath.FromSlash(at.relative))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nobody may read it, or it has gone
	}
	rules := at.rules
	if more := readIgnore(filepath.Join(dir, ".gitignore"), at.relative); len(more) > 0 {
		rules = append(slices.Clip(rules), more...)
	}
	for _, e := range entries {
		f.looked++
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

// fits tells whether the letters stand in a path in their order, and how well: together, at the beginning of a word, in the name.
func (f *finder) fits(relative string) (score int, fits bool) {
	if len(f.want) == 0 {
		return -strings.Count(relative, "/"), true
	}
	text := []rune(strings.ToLower(relative))
	name := len(text) - len([]rune(path.Base(relative)))
	if s, ok := f.match(text[name:], f.want); ok { // all of it in the name is worth most
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
