package undo

import (
	"context"
	"slices"
	"strings"

	"deskhand/backend/snapshot"
)

// fileChange is the change of a file. A lost change cannot be taken back: the content before or after is not kept.
type fileChange struct {
	snapshot.Change
	lost bool
}

// trees is two trees of a directory, one of them earlier, and what is known of the files beside the trees.
type trees struct {
	store       *snapshot.Store // nil = there is nothing to compare
	workspace   string          // to which store belongs
	scope       string          // of the marks of a person: the id of a turn, that with a plus for it and all later ones, or sinceStart
	was, became string
	left        leftOut
	mixed       bool
	reason      string          // of mixed
	turn        string          // whose trees these are; "" = those of all turns
	between     map[string]bool // files that were changed between the turns as well
	taking      bool            // a turn of several is without its last snapshot, and its changes are not among these
}

// treesOf returns the trees of a turn.
func (l *Library) treesOf(r *turnRow, cwd string) trees {
	c := trees{
		store: l.Snapshots.Store(r.workspace, cwd), workspace: r.workspace, scope: r.turn, was: r.was, became: r.became, left: r.left, turn: r.turn,
	}
	if r.data != nil {
		c.mixed, c.reason = r.data.Mixed, r.data.Reason
	}
	return c
}

// difference returns the changed files between two trees, by path.
func (l *Library) difference(ctx context.Context, c *trees) ([]fileChange, error) {
	list, cached := l.diffs.get(c.was, c.became)
	if !cached {
		var err error
		if list, err = c.store.Compare(ctx, c.was, c.became); err != nil {
			return nil, err
		}
		l.diffs.put(c.was, c.became, list)
	}
	return withLeft(list, c.left), nil
}

// withLeft adds the files that the trees do not contain: a file that is only in one of the trees may have been there at the other moment too, too
// long to be kept.
func withLeft(list []snapshot.Change, left leftOut) []fileChange {
	was, became := byPath(left.Was), byPath(left.Became)
	hidden := left.hider(list)
	out := make([]fileChange, 0, len(list)+len(was)+len(became))
	for _, c := range unpaired(list, func(c snapshot.Change) bool {
		_, stays := became[c.Was]
		_, replaces := was[c.Path]
		return stays || replaces || hidden(c.Path)
	}) {
		before, wasLeft := was[c.Path]
		after, isLeft := became[c.Path]
		switch {
		case c.Kind == snapshot.Added && wasLeft:
			out = append(out, lostChange(snapshot.Modified, c.Path, snapshot.Side{Size: before.Size}, c.After))
		case c.Kind == snapshot.Deleted && isLeft:
			out = append(out, lostChange(snapshot.Modified, c.Path, c.Before, snapshot.Side{Size: after.Size}))
		case c.Kind == snapshot.Added && hidden(c.Path):
			out = append(out, fileChange{c, true})
		default:
			out = append(out, fileChange{Change: c})
		}
		delete(was, c.Path)
		delete(became, c.Path)
	}
	for path, after := range became {
		before, there := was[path]
		delete(was, path)
		switch {
		case !there:
			out = append(out, lostChange(snapshot.Added, path, snapshot.Side{}, snapshot.Side{Size: after.Size}))
		case before.Size != after.Size || !before.Modified.Equal(after.Modified):
			out = append(out, lostChange(snapshot.Modified, path, snapshot.Side{Size: before.Size}, snapshot.Side{Size: after.Size}))
		}
	}
	for path, before := range was {
		out = append(out, lostChange(snapshot.Deleted, path, snapshot.Side{Size: before.Size}, snapshot.Side{}))
	}
	slices.SortFunc(out, func(a, b fileChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func lostChange(kind snapshot.Kind, path string, before, after snapshot.Side) fileChange {
	return fileChange{snapshot.Change{Kind: kind, Path: path, Before: before, After: after, Large: true}, true}
}

// unpaired splits a rename for which apart is true into a deletion and an addition. git pairs renamed files among the kept files only: the old
// file may still be there, or the new path may have had a file before.
func unpaired(list []snapshot.Change, apart func(snapshot.Change) bool) []snapshot.Change {
	out := make([]snapshot.Change, 0, len(list))
	for _, c := range list {
		if c.Kind != snapshot.Renamed || !apart(c) {
			out = append(out, c)
			continue
		}
		out = append(
			out, snapshot.Change{Kind: snapshot.Deleted, Path: c.Was, Before: c.Before, Large: c.Large, Binary: c.Binary, Cut: true},
			snapshot.Change{Kind: snapshot.Added, Path: c.Path, After: c.After, Large: c.Large, Binary: c.Binary, Cut: true},
		)
	}
	return out
}

// hider returns a function that reports whether a path may have been left out before: by .gitignore rules, or as too long to be kept. Such a file
// appears in the second tree because the rules or the file have changed, and was not made by the turn. Where the names are not complete, any path
// may have been left out.
func (l leftOut) hider(list []snapshot.Change) func(path string) bool {
	files, folders := map[string]bool{}, []string{}
	for _, name := range l.Hidden {
		files[name] = true
		if strings.HasSuffix(name, "/") {
			folders = append(folders, name)
		}
	}
	ruled := l.More && slices.ContainsFunc(list, func(c snapshot.Change) bool { return strings.HasSuffix("/"+c.Path, "/.gitignore") })
	return func(path string) bool {
		return l.MoreLeft || ruled || files[path] || slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(path, folder) })
	}
}

func byPath(list []snapshot.Left) map[string]snapshot.Left {
	m := map[string]snapshot.Left{}
	for _, l := range list {
		m[l.Path] = l
	}
	return m
}

// whole returns a change with all of its lines, where the change has too many lines for the cache.
func (c *trees) whole(ctx context.Context, ch *fileChange) (*fileChange, error) {
	if !ch.Cut {
		return ch, nil
	}
	only := []string{ch.Path}
	if ch.Was != "" {
		only = append(only, ch.Was)
	}
	list, err := c.store.Compare(ctx, c.was, c.became, only...)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Path == ch.Path {
			return &fileChange{one, ch.lost}, nil
		}
	}
	return ch, nil
}
