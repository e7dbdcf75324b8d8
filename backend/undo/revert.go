package undo

import (
	"context"
	"slices"

	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// plan is the files that a restoration is to put back.
type plan struct {
	puts    []snapshot.Put
	lost    map[string]bool // files whose content is not kept
	preview bool
	undoes  string // the restoration that this restoration takes back

	// late returns puts that depend on the tree of the directory at the time of the restoration. It replaces puts.
	late func(ctx context.Context, now snapshot.Tree) ([]snapshot.Put, error)
}

// puts returns what puts a file back as it was before. With force, the file is put back whatever it is now.
func (ch *fileChange) puts(force bool) []snapshot.Put {
	expect := func(s snapshot.Side) *snapshot.Side {
		if force {
			return nil
		}
		return &s
	}
	if ch.Was != "" {
		return []snapshot.Put{
			{Path: ch.Was, Want: ch.Before, Expect: expect(snapshot.Side{}), With: ch.Path},
			{Path: ch.Path, Expect: expect(ch.After), With: ch.Was},
		}
	}
	return []snapshot.Put{{Path: ch.Path, Want: ch.Before, Expect: expect(ch.After)}}
}

// edit returns what takes hunks back in the present content of a file.
func (ch *fileChange) edit(hunks []snapshot.Hunk) snapshot.Put {
	return snapshot.Put{
		Path: ch.Path, Remove: ch.Before.ID == "",
		Edit: func(now []byte) ([]byte, bool) { return without(now, hunks) },
	}
}

// whole adds a file as it was before the change.
func (p *plan) whole(ch *fileChange, force bool) {
	if ch.lost {
		p.lost[ch.Path] = true
		return
	}
	p.puts = append(p.puts, ch.puts(force)...)
}

// file adds a file that a person chose. All of its hunks are taken back one by one where that is possible: the person may have taken back, or
// changed, other parts of the file already.
func (p *plan) file(ch *fileChange) {
	if ch.lost || ch.Kind != snapshot.Modified || !ch.editable() || len(ch.Hunks) == 0 || ch.Before.Mode != ch.After.Mode {
		p.whole(ch, false)
		return
	}
	p.puts = append(p.puts, ch.edit(ch.Hunks))
}

// hunks adds the wanted hunks of a file. path is the path that people are shown.
func (p *plan) hunks(ch *fileChange, path string, wanted map[string]bool) error {
	var hunks []snapshot.Hunk
	for i, id := range ch.hunkIDs() {
		if wanted[id] && i < len(ch.Hunks) {
			hunks = append(hunks, ch.Hunks[i])
		}
		delete(wanted, id)
	}
	switch {
	case len(wanted) > 0:
		return refusal.Bad(refusedUnknownHunk, "path", path)
	case ch.lost || !ch.editable() || len(hunks) == 0:
		p.file(ch)
	default:
		p.puts = append(p.puts, ch.edit(hunks))
	}
	return nil
}

// Revert takes back hunks and files.
func (l *Library) Revert(ctx context.Context, id string, r RevertChanges) (Restored, error) {
	c, err := l.scoped(ctx, id, r.ChangeScope)
	if err != nil {
		return Restored{}, err
	}
	p := &plan{lost: map[string]bool{}}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(r.Paths))) {
		ch, err := c.file(ctx, path)
		if err != nil {
			return Restored{}, err
		}
		p.file(ch)
	}
	byFile := map[string]map[string]bool{}
	for _, h := range r.Hunks {
		if byFile[h.Path] == nil {
			byFile[h.Path] = map[string]bool{}
		}
		byFile[h.Path][h.Hunk] = true
	}
	for path, wanted := range byFile {
		if slices.Contains(r.Paths, path) {
			continue
		}
		ch, err := c.file(ctx, path)
		if err == nil {
			err = p.hunks(ch, path, wanted)
		}
		if err != nil {
			return Restored{}, err
		}
	}
	return l.restore(ctx, &c.session, &c.trees, p, "")
}

// RestoreTurn takes back all changes of a turn, or of that turn and all later ones. The turns of several are not marked as undone, since
// a restoration stands for one turn.
func (l *Library) RestoreTurn(ctx context.Context, id string, r RestoreTurn) (Restored, error) {
	at := ChangeScope{Turn: r.Turn}
	if r.Later {
		at.Since = sinceTurn
	}
	c, err := l.scoped(ctx, id, at)
	if err != nil {
		return Restored{}, err
	}
	if r.Later && c.taking && c.session.Turn == "" {
		return Restored{}, &refusal.Error{Code: refusedTaking} // the files of the newest turn would be in conflict
	}
	p := &plan{lost: map[string]bool{}, preview: r.Preview}
	for i := range c.list {
		p.whole(&c.list[i], r.Force)
	}
	done, err := l.restore(ctx, &c.session, &c.trees, p, c.turn)
	if c.mixed {
		done.Mixed, done.Reason = true, c.reason
	}
	return done, err
}

// UndoRestoration puts files back to their content before a restoration. A restoration of which a file is in conflict can be undone again.
func (l *Library) UndoRestoration(ctx context.Context, id, restoration string) (Restored, error) {
	s, err := l.Find(ctx, id)
	if err != nil {
		return Restored{}, err
	}
	if err := l.join(ctx, &s); err != nil {
		return Restored{}, l.gitFailed(&s, err)
	}
	rows, err := l.restorations(ctx, `WHERE id = ? AND session = ?`, restoration, id)
	if err != nil {
		return Restored{}, err
	}
	if len(rows) == 0 || l.Snapshots == nil {
		return Restored{}, &refusal.Error{Code: refusedUnknownUndo}
	}
	r := rows[0]
	c := trees{store: l.Snapshots.Store(r.workspace, s.Cwd), workspace: r.workspace, was: r.was, became: r.became}
	p := &plan{lost: map[string]bool{}, undoes: restoration}
	if r.unfinished() {
		p.late = func(ctx context.Context, now snapshot.Tree) ([]snapshot.Put, error) {
			return r.putsBack(ctx, c.store, now)
		}
		return l.restore(ctx, &s, &c, p, r.turn)
	}
	list, err := l.difference(ctx, &c)
	if err != nil {
		return Restored{}, l.gitFailed(&s, err)
	}
	for i := range list {
		for _, put := range list[i].puts(false) {
			if _, done := r.files[put.Path]; done {
				put.With = ""
				p.puts = append(p.puts, put)
			}
		}
	}
	return l.restore(ctx, &s, &c, p, r.turn)
}
