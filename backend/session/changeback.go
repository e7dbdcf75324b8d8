package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/snapshot"
)

// The way back. What is replaced is kept before, so that there is a way back from that too; what was changed since by somebody else is left
// alone. Nothing is put back while an agent is at work in the directory.

// linesOf are the lines of a text, with their ends.
func linesOf(data []byte) []string { return slices.Collect(strings.Lines(string(data))) }

// side are the lines of a hunk as they are before it or after it, with their ends.
func side(h snapshot.Hunk, without byte) []string {
	var lines []string
	for _, l := range h.Lines {
		switch {
		case l.Op == without:
		case l.NoNewline:
			lines = append(lines, l.Text)
		default:
			lines = append(lines, l.Text+"\n")
		}
	}
	return lines
}

// where finds lines among others: at that line if they are there, else at the only place where they are; -1 where there is none, or more
// than one.
func where(lines, block []string, at int) int {
	if len(block) == 0 {
		if len(lines) == 0 {
			return 0
		}
		return -1
	}
	fits := func(i int) bool {
		return i >= 0 && i+len(block) <= len(lines) && slices.Equal(lines[i:i+len(block)], block)
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
	if where(disk, side(h, '-'), h.NewStart-1) >= 0 {
		return true, false
	}
	return false, where(disk, side(h, '+'), h.OldStart-1) >= 0
}

// without is a text without these hunks; false = one of them is not found, and was not taken back either.
func without(data []byte, hunks []snapshot.Hunk) ([]byte, bool) {
	lines := linesOf(data)
	for _, h := range slices.Backward(hunks) { // from the end, so that the others stand where they stood
		now, before := side(h, '-'), side(h, '+')
		i := where(lines, now, h.NewStart-1)
		if i < 0 {
			if where(lines, before, h.OldStart-1) >= 0 {
				continue
			}
			return nil, false
		}
		lines = slices.Replace(lines, i, i+len(now), before...)
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
	for _, path := range r.Paths {
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
	return c.putBack(ctx, s, at, p, "", false)
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
	case !ch.editable() || len(hunks) == 0:
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
	return c.putBack(ctx, s, at, p, at.row.turn, false)
}

// UndoRestoration puts files back to what they were before a restoration.
func (c *Client) UndoRestoration(ctx context.Context, id, restoration string) (Restored, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Restored{}, err
	}
	type row struct{ workspace, turn, was, became, paths string }
	rows, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (r row, err error) {
		return r, s.Scan(&r.workspace, &r.turn, &r.was, &r.became, &r.paths)
	}, `SELECT workspace, turn, was, became, paths FROM restoration WHERE id = ? AND session = ?`, restoration, id)
	if err != nil {
		return Restored{}, err
	}
	if len(rows) == 0 || c.cfg.Snapshots == nil {
		return Restored{}, &RefusedError{Code: refusedUnknownUndo}
	}
	s, r := v.look(), rows[0]
	var paths [][]byte
	if err := json.Unmarshal([]byte(r.paths), &paths); err != nil {
		return Restored{}, err
	}
	at := span{store: c.cfg.Snapshots.Store(r.workspace, s.Cwd), was: r.was, became: r.became}
	list, err := c.difference(ctx, func(*snapshot.Library) span { return at })
	if err != nil {
		return Restored{}, c.notCompared(s, err)
	}
	p := &backPlan{lost: map[string]bool{}, undoes: restoration}
	for i := range list {
		ch := &list[i]
		for _, put := range ch.puts(false) {
			if slices.ContainsFunc(paths, func(p []byte) bool { return string(p) == put.Path }) {
				put.With = ""
				p.puts = append(p.puts, put)
			}
		}
	}
	return c.putBack(ctx, s, at, p, r.turn, true)
}

// backPlan is what is to be put back.
type backPlan struct {
	puts    []snapshot.Put
	lost    map[string]bool // files that there is no way back for
	preview bool
	undoes  string // a restoration that this takes back
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

// putBack does it. turn is the one that all of it is of; undo says that it is taken back into its effect.
func (c *Client) putBack(ctx context.Context, s Session, at span, p *backPlan, turn string, undo bool) (Restored, error) {
	if err := c.ReadOnly(); err != nil && !p.preview {
		return Restored{}, err
	}
	c.looks.keeping.RLock()
	defer c.looks.keeping.RUnlock()
	way, err := at.store.Restore(ctx, p.preview, func(snapshot.Tree) ([]snapshot.Put, error) {
		if c.atWork(s) {
			return nil, &RefusedError{Code: refusedTurnRunning}
		}
		return p.puts, nil
	})
	switch {
	case errors.Is(err, snapshot.ErrMissing):
		return Restored{}, &RefusedError{Code: refusedNotLookedAt, Params: map[string]string{"reason": lookMissing}}
	case err != nil:
		return Restored{}, c.notCompared(s, err)
	}
	done := Restored{Files: []RestoredFile{}}
	clean := len(p.lost) == 0
	for path := range p.lost {
		done.Files = append(done.Files, RestoredFile{shownPath(path), string(snapshot.Conflict), "changes." + string(snapshot.NotKept)})
	}
	for _, f := range way.Files {
		file := RestoredFile{Path: shownPath(f.Path), Outcome: string(f.Outcome)}
		if f.Reason != "" {
			file.Reason = "changes." + string(f.Reason)
		}
		clean = clean && f.Outcome != snapshot.Conflict
		done.Files = append(done.Files, file)
	}
	slices.SortFunc(done.Files, func(a, b RestoredFile) int { return strings.Compare(a.Path, b.Path) })
	if p.preview || !way.Changed() {
		return done, nil
	}
	done.ID = uuid.Must(uuid.NewV7()).String()
	return done, c.restored(context.WithoutCancel(ctx), s, p, way, done.ID, turn, clean, undo)
}

// restored writes down what was put back, and tells of the turn that it was of.
func (c *Client) restored(ctx context.Context, s Session, p *backPlan, way snapshot.Way, id, turn string, clean, undo bool) error {
	marks := turn
	if undo {
		marks = "" // the turn is in effect again: what takes this back is no undoing of it
	}
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO restoration (id, session, workspace, turn, at, was, became, paths) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			id, s.ID, s.Workspace.ID, marks, millis(time.Now()), way.Was.ID, way.Became.ID, string(mustJSON(donePaths(way))))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM restoration WHERE id = ?`, p.undoes); err != nil {
			return err
		}
		if turn == "" || !clean && !undo {
			return nil
		}
		return markUndone(ctx, tx, turn, id, undo)
	})
	if err != nil || turn == "" {
		return err
	}
	return c.tellTurn(ctx, turn)
}

// donePaths are the files that were put back, as bytes: names may be no text.
func donePaths(way snapshot.Way) (paths [][]byte) {
	for _, f := range way.Files {
		if f.Outcome == snapshot.Restored || f.Outcome == snapshot.Removed {
			paths = append(paths, []byte(f.Path))
		}
	}
	return paths
}

// markUndone writes down that a turn is taken back by a restoration, or is so no more.
func markUndone(ctx context.Context, tx *sql.Tx, turn, restoration string, undo bool) error {
	data, args := `json_set(data, '$.undone', json('true'), '$.restoration', ?)`, []any{restoration, turn}
	if undo {
		data, args = `json_remove(data, '$.undone', '$.restoration')`, []any{turn}
	}
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET data = `+data+` WHERE turn = ?`, args...)
	return err
}

// atWork tells whether an agent is at work in the session's directory.
func (c *Client) atWork(s Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.live {
		if other := v.look(); other.Turn != nil && other.Workspace.ID == s.Workspace.ID {
			return true
		}
	}
	return false
}
