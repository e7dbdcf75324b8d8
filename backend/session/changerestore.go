package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/snapshot"
)

// A restoration is written down before the first file of it is touched: with the directory as it was, and with what each file is to become. So
// there is a way back also where it broke off, for whatever reason. What it has come to is added when it is over.

// ofUndo stands for the turn of a restoration that takes another one back: nobody is offered it, because that one is.
const ofUndo = "undo"

// restoration is what is stored of one.
type restoration struct {
	id, workspace, turn, was, became string
	at                               time.Time
	first                            string                   // of its files
	files                            map[string]snapshot.Side // and what they were to become; known of an unfinished one alone
}

// unfinished tells of one that broke off.
func (r *restoration) unfinished() bool { return r.became == "" }

// target is how a file is written down of a restoration that is not over. Names may be no text.
type target struct {
	Path []byte `json:"path"`
	ID   string `json:"id,omitempty"`
	Mode string `json:"mode,omitempty"`
}

func (c *Client) restorations(ctx context.Context, where string, args ...any) ([]restoration, error) {
	return query(ctx, c.cfg.Store.Read(), func(s scanner) (r restoration, err error) {
		var at int64
		var paths string
		if err := s.Scan(&r.id, &r.workspace, &r.turn, &at, &r.was, &r.became, &paths); err != nil {
			return r, err
		}
		r.at, r.files = fromMillis(at).Time, map[string]snapshot.Side{}
		return r, r.read([]byte(paths))
	}, `SELECT id, workspace, turn, at, was, became, paths FROM restoration `+where, args...)
}

// read takes up the files.
func (r *restoration) read(paths []byte) error {
	var list []target
	if r.unfinished() {
		if err := json.Unmarshal(paths, &list); err != nil {
			return err
		}
	} else {
		var done [][]byte
		if err := json.Unmarshal(paths, &done); err != nil {
			return err
		}
		for _, path := range done {
			list = append(list, target{Path: path})
		}
	}
	for i, t := range list {
		if i == 0 {
			r.first = string(t.Path)
		}
		r.files[string(t.Path)] = snapshot.Side{ID: t.ID, Mode: t.Mode}
	}
	return nil
}

// back is what takes back one that broke off: of each file that is what it was to become. Any other was changed since, or was not reached.
func (r *restoration) back(ctx context.Context, store *snapshot.Store, now snapshot.Tree) ([]snapshot.Put, error) {
	list, err := store.Compare(ctx, r.was, now.ID)
	if err != nil {
		return nil, err
	}
	var puts []snapshot.Put
	for _, one := range list {
		ch := fileChange{Change: one}
		for _, put := range ch.puts(true) {
			if became, ours := r.files[put.Path]; ours {
				put.With, put.Expect = "", &became
				puts = append(puts, put)
			}
		}
	}
	return puts, nil
}

// restoring is a restoration on its way.
type restoring struct {
	c    *Client
	s    Session
	at   span
	p    *backPlan
	turn string // that all of it is of
	id   string
	rows bool // it was written down
}

// marks is the turn that is written down with it.
func (r *restoring) marks() string {
	if r.p.undoes != "" {
		return ofUndo
	}
	return r.turn
}

// putBack does what was planned. turn is the one that all of it is of.
func (c *Client) putBack(ctx context.Context, s Session, at span, p *backPlan, turn string) (Restored, error) {
	if err := c.ReadOnly(); err != nil && !p.preview {
		return Restored{}, err
	}
	if turn == ofUndo {
		turn = ""
	}
	if !p.preview {
		defer c.looks.putsBack(c.reachOf(s))()
	}
	r := &restoring{c: c, s: s, at: at, p: p, turn: turn, id: uuid.Must(uuid.NewV7()).String()}
	way, err := at.store.Restore(ctx, p.preview, func(now snapshot.Tree) ([]snapshot.Put, error) { return r.plan(ctx, now) })
	lasting := context.WithoutCancel(ctx)
	if err != nil {
		if r.rows { // it is offered from now on, to be taken back
			err = errors.Join(err, r.tell(lasting))
		}
		if errors.Is(err, snapshot.ErrMissing) {
			return Restored{}, &RefusedError{Code: refusedNotLookedAt, Params: map[string]string{"reason": lookMissing}}
		}
		return Restored{}, c.notCompared(s, err)
	}
	done, clean := r.told(way)
	if p.preview {
		return done, nil
	}
	if way.Changed() {
		done.ID = r.id
	}
	return done, r.finish(lasting, way, clean)
}

// plan is asked when nobody else can change what is kept of the directory.
func (r *restoring) plan(ctx context.Context, now snapshot.Tree) (_ []snapshot.Put, err error) {
	if r.c.atWork(r.s) {
		return nil, &RefusedError{Code: refusedTurnRunning}
	}
	if r.p.late != nil {
		if r.p.puts, err = r.p.late(ctx, now); err != nil {
			return nil, err
		}
	}
	for i := range r.p.puts {
		r.p.puts[i].From = r.at.was
	}
	if r.p.preview || len(r.p.puts) == 0 {
		return r.p.puts, nil
	}
	return r.p.puts, r.begin(context.WithoutCancel(ctx), now)
}

// begin writes it down.
func (r *restoring) begin(ctx context.Context, now snapshot.Tree) error {
	targets := []target{}
	for _, put := range r.p.puts {
		if side, will := r.at.store.Target(put); will {
			targets = append(targets, target{[]byte(put.Path), side.ID, side.Mode})
		}
	}
	err := r.c.cfg.Store.WriteSync(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO restoration (id, session, workspace, turn, at, was, became, paths) VALUES (?, ?, ?, ?, ?, ?, '', ?)`,
			r.id, r.s.ID, r.at.workspace, r.marks(), millis(time.Now()), now.ID, string(mustJSON(targets)))
		if err != nil {
			return err
		}
		return offerNewest(ctx, tx, r.turn)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	r.rows = true
	return nil
}

// told is what became of it, in words of the API; clean is that there was no conflict.
func (r *restoring) told(way snapshot.Way) (done Restored, clean bool) {
	done = Restored{Files: []RestoredFile{}}
	clean = len(r.p.lost) == 0
	for path := range r.p.lost {
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
	return done, clean
}

// finish writes down what it has come to, and tells of the turn.
func (r *restoring) finish(ctx context.Context, way snapshot.Way, clean bool) error {
	err := r.c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		var err error
		if way.Changed() {
			_, err = tx.ExecContext(ctx, `UPDATE restoration SET became = ?, paths = ? WHERE id = ?`, way.Became.ID, string(mustJSON(donePaths(way))), r.id)
		} else {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE id = ?`, r.id)
		}
		if err == nil && clean {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE id = ?`, r.p.undoes)
		}
		if err != nil || r.turn == "" {
			return err
		}
		if err := r.markUndone(ctx, tx, way, clean); err != nil {
			return err
		}
		return offerNewest(ctx, tx, r.turn)
	})
	return errors.Join(err, r.tell(ctx))
}

// markUndone writes down that a turn is taken back, or is so no more.
func (r *restoring) markUndone(ctx context.Context, tx *sql.Tx, way snapshot.Way, clean bool) error {
	var data string
	switch {
	case r.p.undoes != "" && (clean || way.Changed()):
		data = `json_remove(data, '$.undone')`
	case r.p.undoes == "" && clean:
		data = `json_set(data, '$.undone', json('true'))`
	default:
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET data = `+data+` WHERE turn = ? AND data <> ''`, r.turn)
	return err
}

// offerNewest writes down by what the newest restoration of a turn is taken back.
func offerNewest(ctx context.Context, tx *sql.Tx, turn string) error {
	if turn == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET data = coalesce(
		(SELECT json_set(turn_change.data, '$.restoration', r.id) FROM restoration r WHERE r.session = turn_change.session AND r.turn = turn_change.turn ORDER BY r.at DESC, r.id DESC LIMIT 1),
		json_remove(data, '$.restoration')) WHERE turn = ? AND data <> ''`, turn)
	return err
}

// tell tells of the turn that it is of.
func (r *restoring) tell(ctx context.Context) error {
	if r.turn == "" {
		return nil
	}
	return r.c.tellTurn(ctx, r.turn)
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

// lastRestoration is what was put back last, if the directory was left to the person since.
func (c *Client) lastRestoration(ctx context.Context, rows []changeRow, id string) (*LastRestoration, error) {
	since := int64(0)
	if len(rows) > 0 {
		since = millis(rows[len(rows)-1].at)
	}
	list, err := c.restorations(ctx, `WHERE session = ? AND at >= ? AND turn <> '`+ofUndo+`' ORDER BY at DESC, id DESC LIMIT 1`, id, since)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := list[0]
	return &LastRestoration{ID: r.id, At: Time{Time: r.at}, Turn: r.turn, Path: shownPath(r.first), Files: len(r.files), Unfinished: r.unfinished()}, nil
}
