package skills

import (
	"context"
	"slices"

	"deskhand/backend/exclude"
)

// excluded is what our lines of info/exclude are about.
const excluded = "links to skills, as long as a session needs them"

// excluder tells where the links of a directory are to be named. Without git nobody asks for its status.
func (l *Library) excluder(ctx context.Context, directory string) exclude.Place {
	place, err := exclude.Find(ctx, l.processes, l.cfg.Environ(ctx), directory)
	if err != nil {
		return exclude.Place{} // the call ends
	}
	return place
}

// exclude gives a link its line.
func (m *made) exclude(p exclude.Place) {
	if p.File != "" {
		m.Exclude, m.Pattern = p.File, p.Pattern(m.Path)
	}
}

// excludesOf are the files that links are named in.
func excludesOf(list []*made) []string {
	var files []string
	for _, m := range list {
		if m.Exclude != "" && !slices.Contains(files, m.Exclude) {
			files = append(files, m.Exclude)
		}
	}
	return files
}

// writeExcludesLocked brings our part of the files to what the book says; gone are the links whose lines are there still.
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
