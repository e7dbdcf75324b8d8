package attachments

import (
	"bufio"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"deskhand/backend/attachment"
)

// ignoring is one line of a .gitignore (gitignore(5)).
type ignoring struct {
	base    string   // the directory of the file, from the root
	parts   []string // of the pattern; "**" is any number of directories
	keep    bool     // begins with !
	dirOnly bool     // ends with /
}

const mostIgnore = 1 << 20 // bytes of one file

// readIgnore reads a .gitignore; base is the directory of the file, from the root. A file that is missing, or is no regular file, has no rules.
func readIgnore(file, base string) (rules []ignoring) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := attachment.Open(attachment.File{Path: file}) // does not wait, should the file be a FIFO by now
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, mostIgnore))
	for lines.Scan() {
		if r, ok := parseIgnore(lines.Text(), base); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseIgnore(line, base string) (ignoring, bool) {
	line = strings.TrimRight(line, "\r")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	if line == "" || line[0] == '#' {
		return ignoring{}, false
	}
	r := ignoring{base: base}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.keep, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return ignoring{}, false
	}
	r.parts = strings.Split(line, "/")
	if !anchored { // matches at every depth
		r.parts = append([]string{"**"}, r.parts...)
	}
	return r, true
}

// ignored reports whether the rules leave a path out. The last rule that fits counts.
func ignored(rules []ignoring, relative string, directory bool) bool {
	for _, r := range slices.Backward(rules) {
		if r.fits(relative, directory) {
			return !r.keep
		}
	}
	return false
}

func (r ignoring) fits(relative string, directory bool) bool {
	if r.dirOnly && !directory {
		return false
	}
	if r.base != "" {
		rest, ok := strings.CutPrefix(relative, r.base+"/")
		if !ok {
			return false
		}
		relative = rest
	}
	return fitsParts(r.parts, strings.Split(relative, "/"))
}

// fitsParts backtracks to the last "**" alone, which is enough, and costs at most the length of the pattern times the length of the path.
func fitsParts(pattern, parts []string) bool {
	var afterStar, retry []string
	starred := false
	for len(parts) > 0 {
		switch {
		case len(pattern) == 1 && pattern[0] == "**":
			return true // whatever is below
		case len(pattern) > 0 && pattern[0] == "**":
			pattern = pattern[1:]
			afterStar, retry, starred = pattern, parts, true
		case len(pattern) > 0 && fitsPart(pattern[0], parts[0]):
			pattern, parts = pattern[1:], parts[1:]
		case starred:
			retry = retry[1:]
			pattern, parts = afterStar, retry
		default:
			return false
		}
	}
	return len(pattern) == 0
}

func fitsPart(pattern, name string) bool {
	fits, err := path.Match(pattern, name)
	return err == nil && fits
}
