package undo

import (
	"context"
	"errors"
	"strconv"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// Prepare takes a snapshot of the directory of a session that somebody opens, so that the snapshot before the next turn has little to read.
func (l *Library) Prepare(ctx context.Context, s Session) {
	at := l.Host(s.Place)
	if at.Snapshots == nil || !l.Enabled() || l.Writable() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beforeLimit)
	defer cancel()
	if at.Directories.Answers(ctx, s.Cwd) != nil {
		return
	}
	store := at.Snapshots.Store(s.Workspace, s.Cwd)
	_, err := store.Take(ctx)
	if err == nil {
		_, err = store.Hidden(ctx, maxHidden)
	}
	if err != nil && ctx.Err() == nil { // the snapshot before the turn tells the person
		l.Logger.Debug("a directory cannot be looked at ahead", "session", s.ID, "error", err)
	}
}

// logFailure logs why the changes of a turn could not be recorded.
func (l *Library) logFailure(ctx context.Context, which string, err error) {
	if err != nil && ctx.Err() == nil {
		l.Logger.Error("what a turn changes cannot be written down", "look", which, "error", err)
	}
}

// recordBefore takes the tree before a turn, and stores the row of the turn.
func (l *Library) recordBefore(ctx context.Context, s *Session, turn string, at time.Time, p *pendingSnapshot) error {
	tree, off := l.take(ctx, s, p)
	row := turnRow{turn: turn, session: s.ID, workspace: s.Workspace, at: at, was: tree.ID, data: off}
	row.left.Was, row.left.MoreLeft = firstLeft(tree.Left)
	row.left.More = off == nil // the hidden names are listed below, when the agent is at work: a file that appears meanwhile counts as hidden before
	if off != nil {
		row.ended = time.Now()
	}
	storing := context.WithoutCancel(ctx)
	if err := l.insert(storing, &row); err != nil {
		return err
	}
	p.noteTaken()
	if off == nil {
		row.left.Hidden, row.left.More = l.hidden(ctx, s)
		return l.update(storing, &row)
	}
	if p.limit.Load() == nil {
		return nil
	}
	return l.Publish(storing, turn) // the turn may be over by now
}

// hidden lists the names that .gitignore rules leave out of a session's directory, and tells whether the list is incomplete.
func (l *Library) hidden(ctx context.Context, s *Session) (names []string, more bool) {
	names, err := l.store(s).Hidden(ctx, maxHidden)
	l.logFailure(ctx, "hidden", err)
	return names, err != nil || len(names) == maxHidden
}

// take takes a tree of a session's directory. off tells why there is none.
func (l *Library) take(ctx context.Context, s *Session, p *pendingSnapshot) (tree snapshot.Tree, off *TurnChanges) {
	at := l.Host(s.Place)
	switch {
	case at.Snapshots == nil:
		return tree, offBy(reasonElsewhere)
	case !l.Enabled():
		return tree, offBy(reasonOff)
	case at.Directories.Answers(ctx, s.Cwd) != nil:
		return tree, offBy(reasonSlow)
	}
	tree, err := at.Snapshots.Store(s.Workspace, s.Cwd).TakeUntil(ctx, p.limit.Load)
	var large *snapshot.TooLargeError
	switch {
	case err == nil:
		return tree, nil
	case errors.Is(err, snapshot.ErrLate):
		off = offBy(reasonSlow)
	case errors.Is(err, snapshot.ErrNoGit):
		off = offBy(reasonNoGit)
	case errors.Is(err, snapshot.ErrMissing):
		off = offBy(reasonMissing)
	case errors.Is(err, snapshot.ErrWide):
		off = offBy(reasonWide)
	case errors.As(err, &large) && large.Files > 0:
		off = offBy(reasonTooLarge, "files", strconv.Itoa(large.Files))
	case large != nil:
		off = offBy(reasonTooLarge, "bytes", strconv.FormatInt(large.Bytes, 10))
	case ctx.Err() != nil:
		off = offBy(reasonSlow)
	default:
		l.Logger.Error("a directory cannot be looked at", "session", s.ID, "error", err)
		off = offBy(reasonFailed)
	}
	return snapshot.Tree{}, off
}

// offBy returns the changes of a turn without snapshots. params are a name and a value, or nothing.
func offBy(reason string, params ...string) *TurnChanges {
	off := &TurnChanges{State: stateOff, Reason: reason}
	if len(params) == 2 {
		off.Params = map[string]string{params[0]: params[1]}
	}
	return off
}

// recordAfter takes the tree after a turn, completes the row of the turn, and publishes the turn.
func (l *Library) recordAfter(ctx context.Context, s *Session, turn string, ended time.Time, p *pendingSnapshot) error {
	storing := context.WithoutCancel(ctx) // ctx limits the reading of the directory alone
	rows, err := l.turns(storing, `WHERE turn = ?`, turn)
	if err != nil || len(rows) == 0 {
		return err
	}
	row := rows[0]
	if row.data == nil {
		if err := l.complete(ctx, s, &row, p); err != nil {
			return err
		}
	}
	row.ended = ended
	if err := l.update(storing, &row); err != nil {
		return err
	}
	return l.Publish(storing, turn)
}

// complete takes the tree after a turn, and sets the changes in the row of the turn.
func (l *Library) complete(ctx context.Context, s *Session, row *turnRow, p *pendingSnapshot) error {
	tree, off := l.take(ctx, s, p)
	p.noteTaken()
	if off != nil {
		row.was, row.data = "", off
		return nil
	}
	row.became = tree.ID
	row.left.Became, _ = firstLeft(tree.Left) // the files beyond are found on the disk
	if row.workspace != s.Workspace {         // the directory has moved since the turn began
		if err := l.adoptTrees(ctx, row.workspace, s); err != nil {
			return err
		}
		row.workspace = s.Workspace
	}
	list, err := l.store(s).Differ(ctx, row.was, row.became) // the numbers of lines only: nobody has asked for the lines
	if err != nil {
		row.was, row.became, row.data = "", "", offBy(reasonSlow)
		if ctx.Err() == nil {
			l.Logger.Error("two snapshots of a directory cannot be compared", "session", s.ID, "error", err)
			row.data = offBy(reasonFailed)
		}
		return nil
	}
	row.data = summed(withLeft(list, row.left))
	row.data.Mixed = l.busy.mixed(row.turn)
	if l.late[row.turn] && row.data.State == stateReady {
		row.data.Mixed, row.data.Reason = true, reasonLate
	}
	return nil
}

// summed counts changed files and lines.
func summed(list []fileChange) *TurnChanges {
	sum := &TurnChanges{State: stateNone}
	for i := range list {
		sum.State = stateReady
		sum.Files++
		sum.Added += list[i].Added
		sum.Removed += list[i].Removed
	}
	return sum
}

// Recover returns the function that takes the missing snapshots after turns that were over when the program ended. Recover is called before the
// turns that the end of the program interrupted are ended: their sessions take the snapshots of these. Changes of a person, or of a process that
// the agent had left running, cannot be told from the changes of such a turn: each of these turns is marked as mixed, with reason changes.late.
func (l *Library) Recover(ctx context.Context) (take func(ctx context.Context), err error) {
	if l.Snapshots == nil {
		return func(context.Context) {}, nil
	}
	open, err := record.Query(ctx, l.Store.Read(), record.ScanText, `SELECT turn FROM turn_change WHERE ended = 0`)
	if err != nil {
		return func(context.Context) {}, err
	}
	l.late = map[string]bool{}
	for _, turn := range open {
		l.late[turn] = true
	}
	unfinished, err := l.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.turns(ctx, `WHERE ended = 0 AND turn NOT IN (SELECT value FROM json_each(?))`, string(record.JSON(unfinished)))
	return func(ctx context.Context) {
		for _, row := range rows {
			s, err := l.Find(ctx, row.session)
			if err == nil {
				lasting, cancel := l.outlasting(ctx)
				err = l.recordAfter(lasting, &s, row.turn, time.Now(), newPending())
				cancel()
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, refusal.ErrNotFound) {
				l.Logger.Error("a turn of before cannot be looked at", "session", row.session, "error", err)
			}
		}
	}, err
}
