package undo

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

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// A restoration is stored before its first file is replaced: with the tree of the directory as it was, and with the content that each file is to
// get. So a restoration that broke off, for whatever reason, can be undone too. The outcome is stored when the restoration is over.

// ofUndo is stored as the turn of a restoration that undoes another: such a restoration is not offered to be undone, the other is.
const ofUndo = "undo"

// restoration is a row of the table restoration.
type restoration struct {
	id, workspace, turn, was, became string // became is "" until the restoration is over
	at                               time.Time
	first                            string                   // of the files
	files                            map[string]snapshot.Side // by path, with the planned content; the content is stored of an unfinished restoration alone
}

// unfinished reports whether the restoration broke off.
func (r *restoration) unfinished() bool { return r.became == "" }

// target is a file in the stored list of an unfinished restoration. A path is stored as bytes, since names may be no text.
type target struct {
	Path []byte `json:"path"`
	ID   string `json:"id,omitempty"`
	Mode string `json:"mode,omitempty"`
}

// restorations returns the rows that a WHERE clause selects.
func (l *Library) restorations(ctx context.Context, where string, args ...any) ([]restoration, error) {
	return record.Query(ctx, l.Store.Read(), func(s record.Scanner) (r restoration, err error) {
		var at int64
		var paths string
		if err := s.Scan(&r.id, &r.workspace, &r.turn, &at, &r.was, &r.became, &paths); err != nil {
			return r, err
		}
		r.at, r.files = record.FromMillis(at).Time, map[string]snapshot.Side{}
		return r, r.readFiles([]byte(paths))
	}, `SELECT id, workspace, turn, at, was, became, paths FROM restoration `+where, args...)
}

// readFiles sets the files from their stored list.
func (r *restoration) readFiles(paths []byte) error {
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

// putsBack returns what undoes an unfinished restoration: the files that have the planned content. Any other file was changed since, or the
// restoration had not reached the file.
func (r *restoration) putsBack(ctx context.Context, store *snapshot.Store, now snapshot.Tree) ([]snapshot.Put, error) {
	list, err := store.Compare(ctx, r.was, now.ID)
	if err != nil {
		return nil, err
	}
	var puts []snapshot.Put
	for _, one := range list {
		ch := fileChange{Change: one}
		for _, put := range ch.puts(true) {
			if planned, ours := r.files[put.Path]; ours {
				put.With, put.Expect = "", &planned
				puts = append(puts, put)
			}
		}
	}
	return puts, nil
}

// restore puts back the files of a plan. turn is the turn that is taken back as a whole; "" = none is.
func (l *Library) restore(ctx context.Context, s *Session, at *trees, p *plan, turn string) (Restored, error) {
	if err := l.Writable(); err != nil && !p.preview {
		return Restored{}, err
	}
	if turn == ofUndo {
		turn = ""
	}
	if !p.preview {
		defer l.busy.restoreBegins(l.reach(s))()
	}
	w := &restoreWork{l: l, session: s, at: at, plan: p, turn: turn, id: uuid.Must(uuid.NewV7()).String()}
	way, err := at.store.Restore(ctx, p.preview, func(now snapshot.Tree) ([]snapshot.Put, error) { return w.puts(ctx, now) })
	lasting := context.WithoutCancel(ctx)
	if err != nil {
		if w.stored { // people can undo the restoration from now on
			err = errors.Join(err, w.publish(lasting))
		}
		if errors.Is(err, snapshot.ErrMissing) {
			return Restored{}, &refusal.Error{Code: refusedNoSnapshot, Params: map[string]string{"reason": reasonMissing}}
		}
		return Restored{}, l.gitFailed(s, err)
	}
	done, clean := w.outcome(way)
	if p.preview {
		return done, nil
	}
	if way.Changed() {
		done.ID = w.id
	}
	return done, w.finish(lasting, way, clean)
}

// restoreWork is a restoration that is being carried out.
type restoreWork struct {
	l       *Library
	session *Session
	at      *trees
	plan    *plan
	turn    string // that is taken back as a whole
	id      string
	stored  bool // there is a row
}

// puts returns the files to put back. Package snapshot calls puts while nobody else can change the store of the directory.
func (w *restoreWork) puts(ctx context.Context, now snapshot.Tree) (_ []snapshot.Put, err error) {
	if w.l.atWork(w.session) {
		return nil, &refusal.Error{Code: refusedTurnRunning}
	}
	p := w.plan
	if p.late != nil {
		if p.puts, err = p.late(ctx, now); err != nil {
			return nil, err
		}
	}
	for i := range p.puts {
		p.puts[i].From = w.at.was
	}
	if p.preview || len(p.puts) == 0 {
		return p.puts, nil
	}
	return p.puts, w.begin(context.WithoutCancel(ctx), now)
}

// begin stores the restoration.
func (w *restoreWork) begin(ctx context.Context, now snapshot.Tree) error {
	targets := []target{}
	for _, put := range w.plan.puts {
		if side, will := w.at.store.Target(put); will {
			targets = append(targets, target{[]byte(put.Path), side.ID, side.Mode})
		}
	}
	turn := w.turn
	if w.plan.undoes != "" {
		turn = ofUndo
	}
	err := w.l.Store.WriteSync(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO restoration (id, session, workspace, turn, at, was, became, paths) VALUES (?, ?, ?, ?, ?, ?, '', ?)`,
			w.id, w.session.ID, w.at.workspace, turn, time.Now().UnixMilli(), now.ID, string(record.JSON(targets)))
		if err != nil {
			return err
		}
		return offerNewest(ctx, tx, w.turn)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	w.stored = true
	return nil
}

// outcome returns the record of the API; clean reports that no file is in conflict.
func (w *restoreWork) outcome(way snapshot.Way) (done Restored, clean bool) {
	done = Restored{Files: []RestoredFile{}}
	clean = len(w.plan.lost) == 0
	for path := range w.plan.lost {
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

// finish stores the outcome, and publishes the turn.
func (w *restoreWork) finish(ctx context.Context, way snapshot.Way, clean bool) error {
	err := w.l.Store.Write(ctx, func(tx *sql.Tx) error {
		var err error
		if way.Changed() {
			_, err = tx.ExecContext(ctx, `UPDATE restoration SET became = ?, paths = ? WHERE id = ?`, way.Became.ID, string(record.JSON(putBackPaths(way))), w.id)
		} else {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE id = ?`, w.id)
		}
		if err == nil && clean {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE id = ?`, w.plan.undoes)
		}
		if err != nil || w.turn == "" {
			return err
		}
		if err := w.markUndone(ctx, tx, way, clean); err != nil {
			return err
		}
		return offerNewest(ctx, tx, w.turn)
	})
	return errors.Join(err, w.publish(ctx))
}

// markUndone stores that a turn is taken back, or no longer is.
func (w *restoreWork) markUndone(ctx context.Context, tx *sql.Tx, way snapshot.Way, clean bool) error {
	var data string
	switch {
	case w.plan.undoes != "" && (clean || way.Changed()):
		data = `json_remove(data, '$.undone')`
	case w.plan.undoes == "" && clean:
		data = `json_set(data, '$.undone', json('true'))`
	default:
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET data = `+data+` WHERE turn = ? AND data <> ''`, w.turn)
	return err
}

// offerNewest stores the newest restoration of a turn in the changes of the turn, so that surfaces can offer to undo the restoration.
func offerNewest(ctx context.Context, tx *sql.Tx, turn string) error {
	if turn == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET data = coalesce(
		(SELECT json_set(turn_change.data, '$.restoration', r.id) FROM restoration r WHERE r.session = turn_change.session AND r.turn = turn_change.turn ORDER BY r.at DESC, r.id DESC LIMIT 1),
		json_remove(data, '$.restoration')) WHERE turn = ? AND data <> ''`, turn)
	return err
}

// publish publishes the turn that is taken back as a whole.
func (w *restoreWork) publish(ctx context.Context) error {
	if w.turn == "" {
		return nil
	}
	return w.l.Publish(ctx, w.turn)
}

// putBackPaths returns the files that were put back, as bytes.
func putBackPaths(way snapshot.Way) (paths [][]byte) {
	for _, f := range way.Files {
		if f.Outcome == snapshot.Restored || f.Outcome == snapshot.Removed {
			paths = append(paths, []byte(f.Path))
		}
	}
	return paths
}

// lastRestoration returns the newest restoration of a session; nil when a turn has begun since.
func (l *Library) lastRestoration(ctx context.Context, rows []turnRow, id string) (*LastRestoration, error) {
	since := int64(0)
	if len(rows) > 0 {
		since = rows[len(rows)-1].at.UnixMilli()
	}
	list, err := l.restorations(ctx, `WHERE session = ? AND at >= ? AND turn <> '`+ofUndo+`' ORDER BY at DESC, id DESC LIMIT 1`, id, since)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := list[0]
	return &LastRestoration{
		ID: r.id, At: record.Time{Time: r.at}, Turn: r.turn, Path: shownPath(r.first), Files: len(r.files), Unfinished: r.unfinished(),
	}, nil
}
