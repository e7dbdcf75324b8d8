package undo

import (
	"context"
	"slices"

	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// Bring gives files of a session's directory the content that the files with the same paths have in the directory of another session, from. A file
// that is absent there is removed. Paths are those that people are shown, and the two directories stand for each other, as in two worktrees of a
// repository. The restoration that Bring returns can be undone.
func (l *Library) Bring(ctx context.Context, id, from string, paths []string, preview bool) (Restored, error) {
	s, err := l.Find(ctx, id)
	if err == nil {
		err = l.join(ctx, &s)
	}
	if err != nil {
		return Restored{}, err
	}
	other, err := l.Find(ctx, from)
	switch {
	case err != nil:
		return Restored{}, err
	case l.Snapshots == nil:
		return Restored{}, &refusal.Error{Code: refusedNoSnapshot, Params: map[string]string{"reason": reasonOff}}
	case l.Host(s.Place).Snapshots == nil, l.Host(other.Place).Snapshots == nil:
		return Restored{}, &refusal.Error{Code: refusedNoSnapshot, Params: map[string]string{"reason": reasonElsewhere}}
	}
	theirs, err := l.store(&other).Take(ctx)
	if err == nil {
		err = l.adoptTrees(ctx, other.Workspace, &s)
	}
	if err != nil {
		return Restored{}, l.gitFailed(&other, err)
	}
	b := bringing{theirs: theirs, store: l.store(&s), wanted: map[string]bool{}, plan: &plan{lost: map[string]bool{}, preview: preview}}
	for _, path := range paths {
		b.wanted[path] = true
	}
	b.plan.late = b.puts
	return l.restore(ctx, &s, &trees{store: b.store, workspace: s.Workspace, was: theirs.ID}, b.plan, "")
}

// bringing is the files of a Bring.
type bringing struct {
	theirs snapshot.Tree // of the other session's directory, in the store of the session's
	store  *snapshot.Store
	wanted map[string]bool
	plan   *plan
}

// puts returns the puts of the wanted files that differ. Files whose content the other tree does not have are lost.
func (b *bringing) puts(ctx context.Context, now snapshot.Tree) (puts []snapshot.Put, err error) {
	list, err := b.store.Compare(ctx, b.theirs.ID, now.ID)
	if err != nil {
		return nil, err
	}
	for _, left := range b.theirs.Left {
		if b.wanted[shownPath(left.Path)] {
			b.plan.lost[left.Path] = true
		}
	}
	for i := range list {
		ch := fileChange{Change: list[i]}
		if !b.wanted[shownPath(ch.Path)] && (ch.Was == "" || !b.wanted[shownPath(ch.Was)]) {
			continue
		}
		puts = append(puts, ch.puts(false)...)
	}
	return slices.DeleteFunc(puts, func(p snapshot.Put) bool { return b.plan.lost[p.Path] }), nil
}
