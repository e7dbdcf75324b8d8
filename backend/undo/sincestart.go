package undo

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"deskhand/backend/snapshot"
)

// The changes of all turns of a session. A person who reviews them asks for the work of the agent, without the person's own changes between the
// turns. So they are not the difference of the first and the last tree: each file that a turn changed is compared as it was before the first of
// its turns and after the last. A file that was changed between two of its turns as well is marked.

// fileState is a file at one moment. Without an id and without left, there is no file.
type fileState struct {
	side snapshot.Side
	left *snapshot.Left // the content is not kept
	tree string         // that contains the file
}

func (a fileState) same(b fileState) bool {
	if a.left != nil && b.left != nil {
		return a.left.Size == b.left.Size && a.left.Modified.Equal(b.left.Modified)
	}
	return a.left == nil && b.left == nil && a.side.ID == b.side.ID && a.side.Mode == b.side.Mode
}

// fileTurns is a file through several turns: before the first of them and after the last.
type fileTurns struct {
	first, last fileState
	between     bool // changed between two of the turns
}

// composed is the changes of several turns together, as two trees that are composed of the trees of the turns.
type composed struct {
	key         [sha256.Size]byte // of the turns
	made        time.Time
	was, became string
	left        leftOut
	between     map[string]bool
}

// The composed trees stay in the cache for composedFor. Package snapshot keeps trees that no row names for an hour.
const (
	composedFor = 20 * time.Minute
	maxComposed = 4
)

// composedCache is the newest composed trees.
type composedCache struct {
	mu   sync.Mutex // protects list
	list []composed
}

// get returns the composed trees of a key, and drops old ones.
func (c *composedCache) get(key [sha256.Size]byte) (composed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(old composed) bool { return time.Since(old.made) > composedFor })
	i := slices.IndexFunc(c.list, func(old composed) bool { return old.key == key })
	if i < 0 {
		return composed{}, false
	}
	return c.list[i], true
}

func (c *composedCache) put(now composed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, now)
	c.list = c.list[max(0, len(c.list)-maxComposed):]
}

// ofTurns returns the trees of those turns that were not taken back. marks is the scope of the marks of a person.
func (l *Library) ofTurns(ctx context.Context, rows []turnRow, s *Session, marks string) (trees, Changes, error) {
	if l.Snapshots == nil {
		return trees{}, Changes{State: stateOff, Reason: reasonOff}, nil
	}
	head := Changes{State: stateReady}
	seen := slices.DeleteFunc(slices.Clone(rows), func(r turnRow) bool { return r.became == "" || r.data == nil })
	if len(seen) == 0 {
		if len(rows) == 0 {
			return trees{}, head, nil
		}
		last := rows[len(rows)-1]
		if last.data == nil {
			return trees{}, Changes{State: stateTaking}, nil
		}
		return trees{}, Changes{State: stateOff, Reason: last.data.Reason, Params: last.data.Params}, nil
	}
	seen = slices.DeleteFunc(seen, func(r turnRow) bool { return r.data.Undone })
	for _, r := range seen {
		if r.data.Mixed {
			head.Mixed, head.Reason = true, r.data.Reason
		}
	}
	store := l.store(s)
	all, err := l.compose(ctx, store, seen)
	if err != nil {
		return trees{}, head, err
	}
	return trees{
		store: store, workspace: s.Workspace, scope: marks, was: all.was, became: all.became, left: all.left, between: all.between,
		mixed: head.Mixed, reason: head.Reason, taking: slices.ContainsFunc(rows, func(r turnRow) bool { return r.data == nil }),
	}, head, nil
}

// compose returns the composed trees of turns, from the cache where they are the same turns as before.
func (l *Library) compose(ctx context.Context, store *snapshot.Store, rows []turnRow) (composed, error) {
	h := sha256.New()
	for _, r := range rows {
		_, _ = h.Write([]byte(r.turn + r.was + r.became + "\n")) // a hash returns no error
	}
	now := composed{key: [sha256.Size]byte(h.Sum(nil)), made: time.Now()}
	if old, cached := l.all.get(now.key); cached {
		return old, nil
	}
	if err := now.build(ctx, store, rows); err != nil {
		return composed{}, err
	}
	l.all.put(now)
	return now, nil
}

// build composes the two trees.
func (all *composed) build(ctx context.Context, store *snapshot.Store, rows []turnRow) error {
	steps := make([]snapshot.Step, len(rows))
	for i, r := range rows {
		steps[i] = snapshot.Step{Before: r.was, After: r.became}
	}
	lists, err := store.Steps(ctx, steps)
	if err != nil {
		return err
	}
	files := map[string]*fileTurns{}
	for i := range rows {
		all.left.Hidden, all.left.More = append(all.left.Hidden, rows[i].left.Hidden...), all.left.More || rows[i].left.More
		all.left.MoreLeft = all.left.MoreLeft || rows[i].left.MoreLeft
		for path, turn := range touched(&rows[i], lists[i]) {
			f := files[path]
			if f == nil {
				f = &fileTurns{first: turn[0], last: turn[0]}
				files[path] = f
			}
			f.between = f.between || !f.last.same(turn[0])
			f.last = turn[1]
		}
	}
	slices.Sort(all.left.Hidden)
	all.left.Hidden = slices.Compact(all.left.Hidden)
	all.between = map[string]bool{}
	var was, became []snapshot.Part
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		if f.first.same(f.last) {
			continue
		}
		all.between[path] = f.between
		was, all.left.Was = f.first.add(path, was, all.left.Was)
		became, all.left.Became = f.last.add(path, became, all.left.Became)
	}
	if all.was, err = store.Compose(ctx, was); err != nil {
		return err
	}
	all.became, err = store.Compose(ctx, became)
	return err
}

// add adds the file to the parts of a tree, or to the files that the tree does not contain.
func (a fileState) add(path string, parts []snapshot.Part, left []snapshot.Left) ([]snapshot.Part, []snapshot.Left) {
	switch {
	case a.left != nil:
		left = append(left, *a.left)
	case a.side.ID != "":
		parts = append(parts, snapshot.Part{Path: path, Side: a.side, From: a.tree})
	}
	return parts, left
}

// touched returns the files that a turn changed, each before and after the turn.
func touched(r *turnRow, list []snapshot.Change) map[string][2]fileState {
	files := map[string][2]fileState{}
	for _, c := range list {
		files[c.Path] = [2]fileState{{side: c.Before, tree: r.was}, {side: c.After, tree: r.became}}
	}
	for i, left := range [][]snapshot.Left{r.left.Was, r.left.Became} {
		for _, l := range left {
			f := files[l.Path]
			f[i] = fileState{left: &l}
			files[l.Path] = f
		}
	}
	maps.DeleteFunc(files, func(_ string, f [2]fileState) bool { return f[0].same(f[1]) })
	return files
}
