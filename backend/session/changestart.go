package session

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"deskhand/backend/snapshot"
)

// What the turns of a session have changed, all together. Whoever reviews it asks for what the agent did: what the person did between the turns is
// no part of it. So it is not the difference of the first look and the last one, but, of each file that a turn has changed, that of what it
// was before the first of these turns and after the last. A file that was changed between two of them as well is named as such.

// fileAt is a file at one moment: kept, left out, or not there.
type fileAt struct {
	side snapshot.Side
	left *snapshot.Left
	tree string // that it is of
}

func (a fileAt) same(b fileAt) bool {
	if a.left != nil && b.left != nil {
		return a.left.Size == b.left.Size && a.left.Modified.Equal(b.left.Modified)
	}
	return a.left == nil && b.left == nil && a.side.ID == b.side.ID && a.side.Mode == b.side.Mode
}

// passage is what became of a file in several turns.
type passage struct {
	first, last fileAt
	between     bool
}

// allTurns is what several turns changed.
type allTurns struct {
	key         [sha256.Size]byte
	made        time.Time
	was, became string
	left        leftOut
	between     map[string]bool
}

// How long what was composed is held, and how many: its trees are forgotten when nobody has asked for them for an hour.
const (
	holdComposed = 20 * time.Minute
	mostComposed = 4
)

// sinceStart is what all turns have changed that are in effect.
func (c *Client) sinceStart(ctx context.Context, rows []changeRow, s Session) (span, Changes, error) {
	head := Changes{State: changesReady}
	if c.cfg.Snapshots == nil {
		return span{}, Changes{State: changesOff, Reason: lookOff}, nil
	}
	seen := slices.DeleteFunc(slices.Clone(rows), func(r changeRow) bool { return r.became == "" || r.data == nil })
	if len(seen) == 0 {
		if len(rows) == 0 {
			return span{}, head, nil
		}
		last := rows[len(rows)-1]
		if last.data == nil {
			return span{}, Changes{State: changesTaking}, nil
		}
		return span{}, Changes{State: changesOff, Reason: last.data.Reason, Params: last.data.Params}, nil
	}
	seen = slices.DeleteFunc(seen, func(r changeRow) bool { return r.data.Undone })
	at := span{store: c.cfg.Snapshots.Store(s.Workspace.ID, s.Cwd), workspace: s.Workspace.ID, scope: sinceStart}
	for _, r := range seen {
		if r.data.Mixed {
			at.mixed, head.Mixed, head.Reason = true, true, r.data.Reason
		}
	}
	all, err := c.composed(ctx, at.store, seen)
	if err != nil {
		return span{}, head, err
	}
	at.was, at.became, at.left, at.between = all.was, all.became, all.left, all.between
	return at, head, nil
}

// composed is what these turns changed, made anew only when they are others.
func (c *Client) composed(ctx context.Context, store *snapshot.Store, rows []changeRow) (allTurns, error) {
	h := sha256.New()
	for _, r := range rows {
		_, _ = h.Write([]byte(r.turn + r.was + r.became + "\n")) // it takes everything
	}
	now := allTurns{key: [sha256.Size]byte(h.Sum(nil)), made: time.Now()}
	c.looks.mu.Lock()
	c.looks.composed = slices.DeleteFunc(c.looks.composed, func(old allTurns) bool { return time.Since(old.made) > holdComposed })
	i := slices.IndexFunc(c.looks.composed, func(old allTurns) bool { return old.key == now.key })
	if i >= 0 {
		defer c.looks.mu.Unlock()
		return c.looks.composed[i], nil
	}
	c.looks.mu.Unlock()
	if err := now.compose(ctx, store, rows); err != nil {
		return allTurns{}, err
	}
	c.looks.mu.Lock()
	defer c.looks.mu.Unlock()
	c.looks.composed = append(c.looks.composed, now)
	c.looks.composed = c.looks.composed[max(0, len(c.looks.composed)-mostComposed):]
	return now, nil
}

// compose makes the two trees.
func (all *allTurns) compose(ctx context.Context, store *snapshot.Store, rows []changeRow) error {
	steps := make([]snapshot.Step, len(rows))
	for i, r := range rows {
		steps[i] = snapshot.Step{Before: r.was, After: r.became}
	}
	lists, err := store.Steps(ctx, steps)
	if err != nil {
		return err
	}
	files := map[string]*passage{}
	for i := range rows {
		all.left.Hidden, all.left.More = append(all.left.Hidden, rows[i].left.Hidden...), all.left.More || rows[i].left.More
		all.left.MoreLeft = all.left.MoreLeft || rows[i].left.MoreLeft
		for path, turn := range touched(&rows[i], lists[i]) {
			p := files[path]
			if p == nil {
				p = &passage{first: turn[0], last: turn[0]}
				files[path] = p
			}
			p.between = p.between || !p.last.same(turn[0])
			p.last = turn[1]
		}
	}
	slices.Sort(all.left.Hidden)
	all.left.Hidden = slices.Compact(all.left.Hidden)
	all.between = map[string]bool{}
	var was, became []snapshot.Part
	for _, path := range slices.Sorted(maps.Keys(files)) {
		p := files[path]
		if p.first.same(p.last) {
			continue
		}
		all.between[path] = p.between
		was, all.left.Was = p.first.add(path, was, all.left.Was)
		became, all.left.Became = p.last.add(path, became, all.left.Became)
	}
	if all.was, err = store.Compose(ctx, was); err != nil {
		return err
	}
	all.became, err = store.Compose(ctx, became)
	return err
}

// add adds the file to those of a tree, or to those that it does not have.
func (a fileAt) add(path string, parts []snapshot.Part, left []snapshot.Left) ([]snapshot.Part, []snapshot.Left) {
	switch {
	case a.left != nil:
		left = append(left, *a.left)
	case a.side.ID != "":
		parts = append(parts, snapshot.Part{Path: path, Side: a.side, From: a.tree})
	}
	return parts, left
}

// touched is what a turn made of files: before and after.
func touched(r *changeRow, list []snapshot.Change) map[string][2]fileAt {
	files := map[string][2]fileAt{}
	for _, c := range list {
		files[c.Path] = [2]fileAt{{side: c.Before, tree: r.was}, {side: c.After, tree: r.became}}
	}
	for i, left := range [][]snapshot.Left{r.left.Was, r.left.Became} {
		for _, l := range left {
			f := files[l.Path]
			f[i] = fileAt{left: &l}
			files[l.Path] = f
		}
	}
	maps.DeleteFunc(files, func(_ string, f [2]fileAt) bool { return f[0].same(f[1]) })
	return files
}
