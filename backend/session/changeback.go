package session

import (
	"context"
	"slices"
	"strings"

	"deskhand/backend/snapshot"
)

// The way back. What is replaced is kept before, so that there is a way back from that too; what was changed since by somebody else is left
// alone. Nothing is put back while an agent is at work in the directory.

// linesOf are the lines of a text, with their ends.
func linesOf(data []byte) []string { return slices.Collect(strings.Lines(string(data))) }

// block are the lines of a hunk as they are before it or after it, with their ends.
type block struct {
	lines       []string
	first, last bool // nothing stands before them, or behind them
}

// atEachSide is how many lines stand on each side of what a hunk changes; less where the file begins, or ends.
const atEachSide = 3

// side is a hunk as it is before it (without what it adds), or after it. Where it is nothing but what stands around the change, it may be
// found as well where the change was not made, or was taken back: then it is where the file begins or ends, if the hunk was there.
func side(h snapshot.Hunk, without byte) block {
	var b block
	same := func(l snapshot.Line) bool { return l.Op == ' ' }
	pure := true
	for _, l := range h.Lines {
		switch {
		case l.Op == without:
			continue
		case l.NoNewline:
			b.lines = append(b.lines, l.Text)
		default:
			b.lines = append(b.lines, l.Text+"\n")
		}
		pure = pure && same(l)
	}
	if pure {
		differs := func(l snapshot.Line) bool { return !same(l) }
		b.first = slices.IndexFunc(h.Lines, differs) < atEachSide
		tail := slices.Clone(h.Lines)
		slices.Reverse(tail)
		b.last = slices.IndexFunc(tail, differs) < atEachSide
	}
	return b
}

// where finds a block among lines: at that line if it is there, else at the only place where it is; -1 where there is none, or more
// than one.
func (b block) where(lines []string, at int) int {
	if len(b.lines) == 0 {
		if len(lines) == 0 {
			return 0
		}
		return -1
	}
	fits := func(i int) bool {
		end := i + len(b.lines)
		return i >= 0 && end <= len(lines) && (!b.first || i == 0) && (!b.last || end == len(lines)) && slices.Equal(lines[i:end], b.lines)
	}
	if fits(at) {
		return at
	}
	found := -1
	for i := range lines {
		if fits(i) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// standing tells whether a hunk is found in a file, and whether what it was before is.
func standing(h snapshot.Hunk, disk []string) (stands, reverted bool) {
	if side(h, '-').where(disk, h.NewStart-1) >= 0 {
		return true, false
	}
	return false, side(h, '+').where(disk, h.OldStart-1) >= 0
}

// without is a text without these hunks; false = one of them is not found, and was not taken back either.
func without(data []byte, hunks []snapshot.Hunk) ([]byte, bool) {
	lines := linesOf(data)
	for _, h := range slices.Backward(hunks) { // from the end, so that the others stand where they stood
		now, before := side(h, '-'), side(h, '+')
		i := now.where(lines, h.NewStart-1)
		if i < 0 {
			if before.where(lines, h.OldStart-1) >= 0 {
				continue
			}
			return nil, false
		}
		lines = slices.Replace(lines, i, i+len(now.lines), before.lines...)
	}
	return []byte(strings.Join(lines, "")), true
}

// puts are what takes a file's change back. Where it may be whatever it is now, force says so.
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

// edit is what takes hunks of a file back, in what it is now.
func (ch *fileChange) edit(hunks []snapshot.Hunk) snapshot.Put {
	return snapshot.Put{
		Path: ch.Path, Remove: ch.Before.ID == "",
		Edit: func(now []byte) ([]byte, bool) { return without(now, hunks) },
	}
}

// Revert takes back hunks and files.
func (c *Client) Revert(ctx context.Context, id string, r RevertChanges) (Restored, error) {
	at, list, s, err := c.found(ctx, id, r.ChangeScope)
	if err != nil {
		return Restored{}, err
	}
	p := &backPlan{lost: map[string]bool{}}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(r.Paths))) {
		ch, err := fileOfChanges(list, path)
		if err == nil {
			ch, err = c.whole(ctx, at, ch)
		}
		if err != nil {
			return Restored{}, err
		}
		p.file(ch, false)
	}
	if err := c.chosenHunks(ctx, at, list, r, p); err != nil {
		return Restored{}, err
	}
	return c.putBack(ctx, s, at, p, "")
}

// chosenHunks adds the hunks that are to be taken back.
func (c *Client) chosenHunks(ctx context.Context, at span, list []fileChange, r RevertChanges, p *backPlan) error {
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
		ch, err := fileOfChanges(list, path)
		if err == nil {
			ch, err = c.whole(ctx, at, ch)
		}
		if err != nil {
			return err
		}
		if err := p.hunks(ch, path, wanted); err != nil {
			return err
		}
	}
	return nil
}

// hunks adds those hunks of a file that are wanted.
func (p *backPlan) hunks(ch *fileChange, path string, wanted map[string]bool) error {
	var hunks []snapshot.Hunk
	for i, id := range ch.hunkIDs() {
		if wanted[id] && i < len(ch.Hunks) {
			hunks = append(hunks, ch.Hunks[i])
		}
		delete(wanted, id)
	}
	switch {
	case len(wanted) > 0:
		return bad(refusedUnknownHunk, "path", path)
	case ch.lost || !ch.editable() || len(hunks) == 0:
		p.file(ch, false)
	default:
		p.puts = append(p.puts, ch.edit(hunks))
	}
	return nil
}

// RestoreTurn takes back a turn.
func (c *Client) RestoreTurn(ctx context.Context, id string, r RestoreTurn) (Restored, error) {
	at, list, s, err := c.found(ctx, id, ChangeScope{Turn: r.Turn})
	if err != nil {
		return Restored{}, err
	}
	p := &backPlan{lost: map[string]bool{}, preview: r.Preview}
	for i := range list {
		p.whole(&list[i], r.Force)
	}
	done, err := c.putBack(ctx, s, at, p, at.row.turn)
	if at.mixed {
		done.Mixed, done.Reason = true, at.row.data.Reason
	}
	return done, err
}

// UndoRestoration puts files back to what they were before a restoration. It stays where it was not all of it.
func (c *Client) UndoRestoration(ctx context.Context, id, restoration string) (Restored, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Restored{}, err
	}
	s := v.look()
	if err := c.join(ctx, s); err != nil {
		return Restored{}, c.notCompared(s, err)
	}
	rows, err := c.restorations(ctx, `WHERE id = ? AND session = ?`, restoration, id)
	if err != nil {
		return Restored{}, err
	}
	if len(rows) == 0 || c.cfg.Snapshots == nil {
		return Restored{}, &RefusedError{Code: refusedUnknownUndo}
	}
	r := rows[0]
	at := span{store: c.cfg.Snapshots.Store(r.workspace, s.Cwd), workspace: r.workspace, was: r.was, became: r.became}
	p := &backPlan{lost: map[string]bool{}, undoes: restoration}
	if r.unfinished() {
		p.late = func(ctx context.Context, now snapshot.Tree) ([]snapshot.Put, error) {
			return r.back(ctx, at.store, now)
		}
		return c.putBack(ctx, s, at, p, r.turn)
	}
	list, err := c.difference(ctx, func(*snapshot.Library) span { return at })
	if err != nil {
		return Restored{}, c.notCompared(s, err)
	}
	for i := range list {
		for _, put := range list[i].puts(false) {
			if _, done := r.files[put.Path]; done {
				put.With = ""
				p.puts = append(p.puts, put)
			}
		}
	}
	return c.putBack(ctx, s, at, p, r.turn)
}

// backPlan is what is to be put back.
type backPlan struct {
	puts    []snapshot.Put
	lost    map[string]bool // files that there is no way back for
	preview bool
	undoes  string // a restoration that this takes back

	late func(ctx context.Context, now snapshot.Tree) ([]snapshot.Put, error) // gives puts that depend on what is there now
}

// whole adds a file as it was before.
func (p *backPlan) whole(ch *fileChange, force bool) {
	if ch.lost {
		p.lost[ch.Path] = true
		return
	}
	p.puts = append(p.puts, ch.puts(force)...)
}

// file adds a file as it was before, or what can be taken back of it where it is no longer as it was left: a hunk of it may have been taken
// back already.
func (p *backPlan) file(ch *fileChange, force bool) {
	if ch.lost || ch.Kind != snapshot.Modified || !ch.editable() || len(ch.Hunks) == 0 || ch.Before.Mode != ch.After.Mode {
		p.whole(ch, force)
		return
	}
	p.puts = append(p.puts, ch.edit(ch.Hunks))
}
