package session

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"deskhand/backend/snapshot"
)

// A session's directory is looked at before each prompt goes to the agent, and when the turn is over, however it ends. Nobody looks in the
// conversation's goroutine: reading a directory takes its time. The prompt is held until the first look is over, but not for long: of a look that
// goes on when an agent is let loose the tree is that of this moment all the same (snapshot.Limit). The look begins when a conversation is opened,
// so that there is little left to do when somebody has written a prompt.

// How long is looked.
const (
	holdPrompt  = 300 * time.Millisecond // as long as a prompt is held at most
	holdQuick   = 20 * time.Millisecond  // what a look takes of a directory in which little was touched
	firstLook   = 3 * time.Minute        // what a look before has; what it got done makes the next one quick
	lastLook    = 30 * time.Second       // what a look after has
	partingLook = 5 * time.Second        // what it has when we are to end
)

// looks is what the client knows of looks. Nothing is held while trees are made: one that was taken is spared until it is written down.
type looks struct {
	late    map[string]bool // turns that the end of the program before has ended, or kept from being looked at
	joining sync.Mutex

	mu       sync.Mutex // protects what is below
	diffs    []twoTrees
	letGo    *time.Timer // of these; nil while there are none
	composed []allTurns
	working  map[string]*reaching // by turn
	puts     []*puttingBack
}

// glance is one look at a directory.
type glance struct {
	seen chan struct{}                  // closed when the tree was taken, or cannot be
	over chan struct{}                  // closed when the tree is stored
	late atomic.Pointer[snapshot.Limit] // since when an agent has been let loose that it was not over for; nil = it was
}

// lookAhead looks at the directory of a conversation that somebody opens, so that the look before its next turn has little to read.
func (c *Client) lookAhead(ctx context.Context, s Session) {
	at := c.hosts.At(s.Place)
	if at.Snapshots == nil || !c.Settings().Snapshots || c.ReadOnly() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	if at.Directories.Answers(ctx, s.Cwd) != nil {
		return
	}
	store := at.Snapshots.Store(s.Workspace.ID, s.Cwd)
	_, err := store.Take(ctx)
	if err == nil {
		_, err = store.Hidden(ctx, mostHidden)
	}
	if err != nil && ctx.Err() == nil { // the look before the turn says so to the person
		c.cfg.Logger.Debug("a directory cannot be looked at ahead", "session", s.ID, "error", err)
	}
}

// lookBefore looks at the directory before a turn.
func (v *conversation) lookBefore(turn string) {
	if v.c.cfg.Snapshots == nil {
		return
	}
	before := slices.DeleteFunc(v.looks, (*glance).done)
	l := newGlance()
	v.looks = append(slices.Clone(before), l)
	s, at := v.row.Session, v.turn.StartedAt
	v.links.Go(func() {
		defer close(l.over)
		defer l.saw()
		ctx, cancel := context.WithTimeout(v.c.ctx, firstLook)
		defer cancel()
		if v.host().Directories.Answers(ctx, s.Cwd) == nil {
			reach := v.c.reachOf(s)
			v.c.looks.begins(turn, s.ID, reach)
			v.c.looks.awaitPuts(v.c.ctx, reach)
		}
		awaitTrees(ctx, before) // else the end of the turn before could be looked at when this one has begun
		v.c.looked(ctx, "before", v.c.lookBefore(ctx, s, turn, at, l))
	})
}

func newGlance() *glance { return &glance{seen: make(chan struct{}), over: make(chan struct{})} }

// saw tells that the tree was taken. It is called by the goroutine of the look alone.
func (l *glance) saw() {
	if l.waits() {
		close(l.seen)
	}
}

// waits tells whether the tree is not taken yet.
func (l *glance) waits() bool {
	select {
	case <-l.seen:
		return false
	default:
		return true
	}
}

// awaitTrees waits until the trees of looks are taken.
func awaitTrees(ctx context.Context, list []*glance) {
	for _, l := range list {
		select {
		case <-l.seen:
		case <-ctx.Done():
			return
		}
	}
}

func (l *glance) done() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

func awaitLooks(ctx context.Context, list []*glance) {
	for _, l := range list {
		select {
		case <-l.over:
		case <-ctx.Done():
			return
		}
	}
}

// looked logs what a look could not do.
func (c *Client) looked(ctx context.Context, which string, err error) {
	if err != nil && ctx.Err() == nil {
		c.cfg.Logger.Error("what a turn changes cannot be written down", "look", which, "error", err)
	}
}

// afterLook has the prompt of a turn wait for the look before it, and for what is being put back; true = it waits.
func (v *conversation) afterLook(turn string) bool {
	if !slices.ContainsFunc(v.looks, (*glance).waits) && !v.c.looks.putting() {
		return false
	}
	v.hold(turn)
	return true
}

// hold has a prompt wait, as one waits that is being composed. However long files are put back for, no agent is let loose in their directory: it
// would read half of what was before, and what it writes would be replaced.
func (v *conversation) hold(turn string) {
	a, s, waits := v.agent, v.row.Session, slices.Clone(v.looks)
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		if v.host().Directories.Answers(ctx, s.Cwd) != nil {
			return
		}
		reach := v.c.reachOf(s)
		v.c.looks.awaitPuts(ctx, reach)
		limit := v.c.awaitOrMark(ctx, s, waits)
		if ctx.Err() != nil {
			return // the agent never hears of it
		}
		letLoose(waits, limit)
		a.post(func() { //nolint:contextcheck // it is of the conversation, which has none
			if v.composing != now {
				return // it was stopped meanwhile
			}
			v.composing = nil
			if v.c.looks.putIn(reach) != nil { // it was begun before anybody could see the turn
				v.hold(turn)
				return
			}
			v.sendPrompt(turn)
		})
	})
}

// letLoose tells looks that are not over that an agent is let loose.
func letLoose(list []*glance, limit *snapshot.Limit) {
	for _, l := range list {
		if l.waits() {
			l.late.CompareAndSwap(nil, limit)
		}
	}
}

// awaitOrMark waits for looks, as long as a prompt is held at most. Where they are not over by then, it tells what can be known at that moment.
func (c *Client) awaitOrMark(ctx context.Context, s Session, waits []*glance) *snapshot.Limit {
	held, enough := context.WithTimeout(ctx, cmp.Or(c.cfg.HoldPrompt, holdPrompt))
	defer enough()
	await := func(most time.Duration) bool {
		some, over := context.WithTimeout(held, most)
		defer over()
		awaitTrees(some, waits)
		return !slices.ContainsFunc(waits, (*glance).waits)
	}
	limit := &snapshot.Limit{}
	if await(holdQuick) {
		return limit
	}
	// Nobody waits for a mark when the looks are over.
	marking, stop := context.WithCancel(held)
	var watching sync.WaitGroup
	watching.Go(func() {
		awaitTrees(marking, waits)
		stop()
	})
	defer watching.Wait()
	defer stop()
	// The mark is to be made as late as possible, and to be over when the prompt goes out. The first one tells how long it takes.
	store := c.cfg.Snapshots.Store(s.Workspace.ID, s.Cwd)
	begun := time.Now()
	mark, err := store.Mark(marking)
	took := time.Since(begun)
	deadline, _ := held.Deadline()
	if rest := time.Until(deadline) - took - took/2; err == nil && rest > 0 {
		if await(rest) {
			return limit
		}
		mark, err = store.Mark(marking)
	}
	if marking.Err() != nil && held.Err() == nil && await(time.Second) {
		return limit
	}
	limit.At = time.Now()
	if err == nil {
		limit.Mark = mark
	}
	return limit
}

// lookBefore takes the tree that a turn begins with, and writes it down.
func (c *Client) lookBefore(ctx context.Context, s Session, turn string, at Time, l *glance) error {
	tree, why := c.takeTree(ctx, s, l)
	row := changeRow{turn: turn, session: s.ID, workspace: s.Workspace.ID, at: at.Time, was: tree.ID, data: why}
	row.left.Was, row.left.MoreLeft = someLeft(tree.Left)
	row.left.More = why == nil // what rules leave out is looked up when the agent is at work: what comes meanwhile counts as what was there
	if why != nil {
		row.ended = time.Now()
	}
	stored := context.WithoutCancel(ctx)
	if err := c.cfg.Store.Write(stored, func(tx *sql.Tx) error { return row.insert(stored, tx) }); err != nil {
		return err
	}
	l.saw()
	if why == nil {
		row.left.Hidden, row.left.More = c.hiddenFiles(ctx, s)
		return c.cfg.Store.Write(stored, func(tx *sql.Tx) error { return row.update(stored, tx) })
	}
	if l.late.Load() == nil {
		return nil
	}
	return c.tellTurn(stored, turn) // which may be over by now
}

// hiddenFiles lists what rules leave out of a session's directory, and whether that is not all of it.
func (c *Client) hiddenFiles(ctx context.Context, s Session) (names []string, more bool) {
	names, err := c.cfg.Snapshots.Store(s.Workspace.ID, s.Cwd).Hidden(ctx, mostHidden)
	c.looked(ctx, "hidden", err)
	return names, err != nil || len(names) == mostHidden
}

// takeTree takes a tree of a session's directory, or tells why there is none.
func (c *Client) takeTree(ctx context.Context, s Session, l *glance) (snapshot.Tree, *TurnChanges) {
	off := func(reason string, params map[string]string) (snapshot.Tree, *TurnChanges) {
		return snapshot.Tree{}, &TurnChanges{State: changesOff, Reason: reason, Params: params}
	}
	at := c.hosts.At(s.Place)
	switch {
	case at.Snapshots == nil:
		return off(lookElsewhere, nil)
	case !c.Settings().Snapshots:
		return off(lookOff, nil)
	case at.Directories.Answers(ctx, s.Cwd) != nil:
		return off(lookSlow, nil)
	}
	tree, err := at.Snapshots.Store(s.Workspace.ID, s.Cwd).TakeUntil(ctx, l.late.Load)
	var large *snapshot.TooLargeError
	switch {
	case err == nil:
		return tree, nil
	case errors.Is(err, snapshot.ErrLate):
		return off(lookSlow, nil)
	case errors.Is(err, snapshot.ErrNoGit):
		return off(lookNoGit, nil)
	case errors.Is(err, snapshot.ErrMissing):
		return off(lookMissing, nil)
	case errors.Is(err, snapshot.ErrWide):
		return off(lookWide, nil)
	case errors.As(err, &large) && large.Files > 0:
		return off(lookTooLarge, map[string]string{"files": strconv.Itoa(large.Files)})
	case large != nil:
		return off(lookTooLarge, map[string]string{"bytes": strconv.FormatInt(large.Bytes, 10)})
	case ctx.Err() != nil:
		return off(lookSlow, nil)
	}
	c.cfg.Logger.Error("a directory cannot be looked at", "session", s.ID, "error", err)
	return off(lookFailed, nil)
}

// lookAfter looks at the directory when a turn is over.
func (v *conversation) lookAfter(turn string) {
	if v.c.cfg.Snapshots == nil {
		return
	}
	before := slices.DeleteFunc(v.looks, (*glance).done)
	l := newGlance()
	v.looks = append(slices.Clone(before), l)
	s, at := v.row.Session, time.Now()
	// What is told of the turn by the look comes behind what the turn itself has told: who follows it stops listening at its end.
	if v.step.shown == nil {
		v.step.shown = make(chan struct{})
	}
	shown := v.step.shown
	v.links.Go(func() {
		defer close(l.over)
		defer l.saw()
		<-shown
		// However long they take, which they know an end of: the row that a look before writes would stay open for ever, if the look that is to
		// complete it had gone by then.
		awaitLooks(context.WithoutCancel(v.c.ctx), before)
		ctx, cancel := v.c.lookingOn()
		defer cancel()
		defer v.c.looks.ends(turn)
		v.c.looked(ctx, "after", v.c.lookAfter(ctx, s, turn, at, l))
	})
}

// lookingOn is a context that lasts a little longer than we do: what an agent did until we end is seen.
func (c *Client) lookingOn() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), cmp.Or(c.cfg.LastLook, lastLook))
	var timer atomic.Pointer[time.Timer]
	stop := context.AfterFunc(c.ctx, func() { timer.Store(time.AfterFunc(partingLook, cancel)) })
	return ctx, func() {
		stop()
		cancel()
		if t := timer.Load(); t != nil {
			t.Stop()
		}
	}
}

// lookAfter takes the tree that a turn ends with, and tells what it has changed.
func (c *Client) lookAfter(ctx context.Context, s Session, turn string, ended time.Time, l *glance) error {
	stored := context.WithoutCancel(ctx) // it is the directory that may take too long
	rows, err := c.changeRows(stored, `WHERE turn = ?`, turn)
	if err != nil || len(rows) == 0 {
		return err
	}
	row := rows[0]
	if row.data == nil {
		if err := c.lookAt(ctx, s, &row, l); err != nil {
			return err
		}
	}
	row.ended = ended
	err = c.cfg.Store.Write(stored, func(tx *sql.Tx) error { return row.update(stored, tx) })
	if err != nil {
		return err
	}
	return c.tellTurn(stored, turn)
}

// lookAt completes the row of a turn that is over.
func (c *Client) lookAt(ctx context.Context, s Session, row *changeRow, l *glance) error {
	tree, why := c.takeTree(ctx, s, l)
	l.saw()
	if why != nil {
		row.was, row.data = "", why
		return nil
	}
	row.became = tree.ID
	row.left.Became, _ = someLeft(tree.Left) // of those that are beyond, the disk tells that they are there
	if row.workspace != s.Workspace.ID {     // the directory has moved since the turn began
		if err := c.adopt(ctx, row.workspace, s); err != nil {
			return err
		}
		row.workspace = s.Workspace.ID
	}
	at := row.span(s.Cwd)(c.cfg.Snapshots)
	list, err := at.store.Differ(ctx, at.was, at.became) // by how much: nobody has asked for the lines
	if err != nil {
		c.cfg.Logger.Error("two looks at a directory cannot be compared", "session", s.ID, "error", err)
		row.was, row.became, row.data = "", "", &TurnChanges{State: changesOff, Reason: lookFailed}
		return nil
	}
	row.data = summed(withLeft(list, at.left))
	row.data.Mixed = c.looks.mixed(row.turn)
	if c.looks.late[row.turn] && row.data.State == changesReady {
		row.data.Mixed, row.data.Reason = true, lookLate
	}
	return nil
}

// summed is what became of files, in short.
func summed(list []fileChange) *TurnChanges {
	sum := &TurnChanges{State: changesNone}
	for i := range list {
		sum.State = changesReady
		sum.Files++
		sum.Added += list[i].Added
		sum.Removed += list[i].Removed
	}
	return sum
}

// tellTurn tells of a turn that is over and of which more is known now.
func (c *Client) tellTurn(ctx context.Context, turn string) error {
	turns, err := query(ctx, c.cfg.Store.Read(), scanTurn, `SELECT `+turnColumns+` FROM turn WHERE id = ? AND state = 'done'
		AND session IN (SELECT id FROM session WHERE deleted_at = 0)`, turn)
	for _, t := range turns {
		c.feed.publish(Event{Session: t.Session, Type: eventTurn, Data: mustJSON(t)})
	}
	return err
}

// lookAgain looks at the turns that were over when the program ended, and whose looks were not. It is asked before turns are ended that the
// end of the program has ended: those are looked at by their conversations. What a person, or what the agent had left running, did in the
// directory meanwhile cannot be told from the turn's own: each of these turns says so.
func (c *Client) lookAgain(ctx context.Context) (func(), error) {
	if c.cfg.Snapshots == nil {
		return func() {}, nil
	}
	open, err := query(ctx, c.cfg.Store.Read(), scanText, `SELECT turn FROM turn_change WHERE ended = 0`)
	if err != nil {
		return nil, err
	}
	c.looks.late = map[string]bool{}
	for _, turn := range open {
		c.looks.late[turn] = true
	}
	rows, err := c.changeRows(ctx, `WHERE ended = 0 AND turn NOT IN (SELECT id FROM turn WHERE state <> 'done')`)
	return func() { //nolint:contextcheck // it lives as long as the client
		for _, row := range rows {
			r, _, err := c.load(c.ctx, row.session, false)
			if err == nil {
				ctx, cancel := c.lookingOn()
				err = c.lookAfter(ctx, r.Session, row.turn, time.Now(), newGlance())
				cancel()
			}
			if err != nil && c.ctx.Err() == nil && !errors.Is(err, ErrNotFound) {
				c.cfg.Logger.Error("a turn of before cannot be looked at", "session", row.session, "error", err)
			}
		}
	}, err
}

// changeRow is what is stored of a turn's changes.
type changeRow struct {
	turn, session, workspace string
	at, ended                time.Time // ended is zero while the end is to be looked at
	was, became              string
	left                     leftOut
	data                     *TurnChanges // nil while the end is to be looked at
}

// leftOut is what the two trees do not have.
type leftOut struct {
	Was    []snapshot.Left `json:"was,omitempty"`
	Became []snapshot.Left `json:"became,omitempty"`
	Hidden []string        `json:"hidden,omitempty"` // what rules left out before; folders with a slash at the end
	More   bool            `json:"more,omitempty"`   // there was more of it

	MoreLeft bool `json:"moreLeft,omitempty"` // there was more than Was
}

// MarshalJSON writes names that are no text so that they come back as they are: JSON has none for them, and a file that was left out would not
// be known again.
func (l leftOut) MarshalJSON() ([]byte, error) {
	type plain leftOut
	return json.Marshal(plain(l.renamed(packed)))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *leftOut) UnmarshalJSON(data []byte) error {
	type plain leftOut
	err := json.Unmarshal(data, (*plain)(l))
	*l = l.renamed(unpacked)
	l.MoreLeft = l.MoreLeft || len(l.Was) == mostLeft // of turns of before nobody has written it down
	return err
}

func (l leftOut) renamed(as func(string) string) leftOut {
	l.Was, l.Became, l.Hidden = slices.Clone(l.Was), slices.Clone(l.Became), slices.Clone(l.Hidden)
	for _, list := range [][]snapshot.Left{l.Was, l.Became} {
		for i := range list {
			list[i].Path = as(list[i].Path)
		}
	}
	for i, name := range l.Hidden {
		l.Hidden[i] = as(name)
	}
	return l
}

const packedMark = "\x00" // no name of a file has it

func packed(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return packedMark + base64.StdEncoding.EncodeToString([]byte(name))
}

func unpacked(text string) string {
	if code, is := strings.CutPrefix(text, packedMark); is {
		if name, err := base64.StdEncoding.DecodeString(code); err == nil {
			return string(name)
		}
	}
	return text
}

const (
	mostLeft   = 500
	mostHidden = 1000
)

// someLeft is what of a list is remembered, and whether that is not all of it.
func someLeft(list []snapshot.Left) (some []snapshot.Left, more bool) {
	return list[:min(len(list), mostLeft)], len(list) > mostLeft
}

const changeColumns = `turn, session, workspace, at, ended, was, became, left_out, data`

func (c *Client) changeRows(ctx context.Context, where string, args ...any) ([]changeRow, error) {
	return query(ctx, c.cfg.Store.Read(), func(s scanner) (r changeRow, err error) {
		var at, ended int64
		var left, data string
		if err := s.Scan(&r.turn, &r.session, &r.workspace, &at, &ended, &r.was, &r.became, &left, &data); err != nil {
			return r, err
		}
		r.at = fromMillis(at).Time
		if ended != 0 {
			r.ended = fromMillis(ended).Time
		}
		err = json.Unmarshal([]byte(left), &r.left)
		if data != "" {
			err = errors.Join(err, json.Unmarshal([]byte(data), &r.data))
		}
		return r, err
	}, `SELECT `+changeColumns+` FROM turn_change `+where, args...)
}

func (r *changeRow) values() []any {
	ended, data := int64(0), ""
	if !r.ended.IsZero() {
		ended = millis(r.ended)
	}
	if r.data != nil {
		data = string(mustJSON(r.data))
	}
	return []any{r.turn, r.session, r.workspace, millis(r.at), ended, r.was, r.became, string(mustJSON(r.left)), data}
}

// insert writes the row, unless its session is gone meanwhile.
func (r *changeRow) insert(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO turn_change (`+changeColumns+`) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
		WHERE EXISTS (SELECT 1 FROM session WHERE id = ?2)`, r.values()...)
	return err
}

func (r *changeRow) update(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE turn_change SET workspace = ?3, ended = ?5, was = ?6, became = ?7, left_out = ?8, data = ?9
		WHERE turn = ?1 AND session = ?2 AND at = ?4`, r.values()...)
	return err
}

// How long snapshots are kept, and of how many turns of a directory.
const (
	keepLooks = 30 * 24 * time.Hour
	mostLooks = 300
)

// pruneLooks forgets snapshots that are too old or too many, and those that nothing names any more.
func (c *Client) pruneLooks(ctx context.Context) error {
	if c.cfg.Snapshots == nil {
		return nil
	}
	ids, err := c.cfg.Snapshots.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := c.pruneStore(ctx, id); err != nil {
			return fmt.Errorf("the snapshots of %s: %w", id, err)
		}
	}
	return nil
}

func (c *Client) pruneStore(ctx context.Context, id string) error {
	pruned := string(mustJSON(TurnChanges{State: changesOff, Reason: lookPruned}))
	before := millis(time.Now().Add(-keepLooks))
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE turn_change SET was = '', became = '', left_out = '{}', data = ?1 WHERE workspace = ?2 AND ended <> 0 AND was <> '' AND
			(at < ?3 OR turn NOT IN (SELECT turn FROM turn_change WHERE workspace = ?2 ORDER BY at DESC LIMIT ?4))`, pruned, id, before, mostLooks)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE workspace = ? AND at < ?`, id, before)
		}
		return err
	})
	if err != nil {
		return err
	}
	trees, err := query(ctx, c.cfg.Store.Read(), scanText, `SELECT was FROM turn_change WHERE workspace = ?1 UNION SELECT became FROM turn_change WHERE workspace = ?1
		UNION SELECT was FROM restoration WHERE workspace = ?1 UNION SELECT became FROM restoration WHERE workspace = ?1`, id)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, tree := range trees {
		keep[tree] = tree != ""
	}
	return c.cfg.Snapshots.Store(id, "").Prune(ctx, keep)
}

// snapshotBytes is what the snapshots take of the disk.
func (c *Client) snapshotBytes(ctx context.Context) (int64, error) {
	if c.cfg.Snapshots == nil {
		return 0, nil
	}
	return c.cfg.Snapshots.Size(ctx)
}
