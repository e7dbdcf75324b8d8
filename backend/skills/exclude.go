package skills

import (
	"context"
	"slices"

	"deskhand/backend/exclude"
)

// excluded is the comment for Deskhand's lines in info/exclude.
const excluded = "links to skills, as long as a session needs them"

// excluder returns where the links of a directory are excluded. Without git nobody asks for a status.
func (l *Library) excluder(ctx context.Context, directory string) exclude.Place {
	place, err := exclude.Find(ctx, l.processes, l.cfg.Environ(ctx), directory)
	if err != nil {
		return exclude.Place{} // the caller has given up
	}
	return place
}

// exclude sets the exclude line of a link.
func (m *made) exclude(p exclude.Place) {
	if p.File != "" {
		m.Exclude, m.Pattern = p.File, p.Pattern(m.Path)
	}
}

// excludesOf returns the exclude files of links.
func excludesOf(list []*made) []string {
	var files []string
	for _, m := range list {
		if m.Exclude != "" && !slices.Contains(files, m.Exclude) {
			files = append(files, m.Exclude)
		}
	}
	return files
}

// writeExcludesLocked updates Deskhand's part of the exclude files to the book; gone are links whose lines may remain in the files. The
// caller holds links.mu.
func (l *Library) writeExcludesLocked(excludes []string, gone []*made) {
	for _, file := range excludes {
		var add []string
		ours := map[string]bool{}
		for _, m := range slices.Concat(l.links.book.Links, gone) {
			if m.Exclude == file {
				ours[m.Pattern] = true
			}
		}
		for _, m := range l.links.book.Links {
			if m.Exclude == file && !slices.Contains(add, m.Pattern) {
				add = append(add, m.Pattern)
			}
		}
		slices.Sort(add)
		if err := exclude.Rewrite(file, excluded, ours, add); err != nil {
			l.cfg.Logger.Warn("git was not told of the links to skills", "file", file, "error", err)
		}
	}
}
