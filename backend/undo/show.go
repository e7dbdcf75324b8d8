package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// recorded returns a session, and the rows of its turns, the oldest first.
func (l *Library) recorded(ctx context.Context, id string) ([]turnRow, Session, error) {
	s, err := l.Find(ctx, id)
	if err != nil {
		return nil, s, err
	}
	if err := l.join(ctx, &s); err != nil {
		return nil, s, l.gitFailed(&s, err)
	}
	rows, err := l.turns(ctx, `WHERE session = ? ORDER BY at, turn`, id)
	return rows, s, err
}

// resolve returns the trees that a scope means. Where there is nothing to compare, the store of the trees is nil and head tells why.
func (l *Library) resolve(ctx context.Context, rows []turnRow, s *Session, scope ChangeScope) (c trees, head Changes, err error) {
	if scope.Since != "" {
		marks := sinceStart
		if scope.Since == sinceTurn {
			first := slices.IndexFunc(rows, func(r turnRow) bool { return r.turn >= scope.Turn }) // ids have the order of their times
			if first < 0 {
				return trees{}, Changes{State: stateReady, Turn: scope.Turn}, nil
			}
			rows, marks = rows[first:], scope.Turn+"+"
		}
		c, head, err = l.ofTurns(ctx, rows, s, marks)
		if err != nil {
			err = l.gitFailed(s, err)
		}
		return c, head, err
	}
	c, head = l.ofTurn(rows, s, scope.Turn)
	return c, head, nil
}

// ofTurn is resolve for a turn; "" = the newest.
func (l *Library) ofTurn(rows []turnRow, s *Session, turn string) (trees, Changes) {
	i := len(rows) - 1
	if turn != "" {
		i = slices.IndexFunc(rows, func(r turnRow) bool { return r.turn == turn })
	}
	head := Changes{State: stateReady, Turn: turn}
	switch {
	case i < 0 && s.Turn != "" && (turn == "" || turn == s.Turn):
		return trees{}, Changes{State: stateTaking, Turn: s.Turn}
	case i < 0 && l.Snapshots == nil:
		return trees{}, Changes{State: stateOff, Turn: turn, Reason: reasonOff}
	case i < 0:
		return trees{}, head
	}
	row := &rows[i]
	head.Turn = row.turn
	switch {
	case l.Snapshots == nil:
		head.State, head.Reason = stateOff, reasonOff
	case row.data == nil:
		head.State = stateTaking
	case row.data.State == stateOff:
		head.State, head.Reason, head.Params = stateOff, row.data.Reason, row.data.Params
	default:
		head.Mixed, head.Reason = row.data.Mixed, row.data.Reason
		return l.treesOf(row, s.Cwd), head
	}
	return trees{}, head
}

// Changes returns what agents changed in a session's directory.
func (l *Library) Changes(ctx context.Context, id string, scope ChangeScope) (Changes, error) {
	rows, s, err := l.recorded(ctx, id)
	if err != nil {
		return Changes{}, err
	}
	c, head, err := l.resolve(ctx, rows, &s, scope)
	if err != nil {
		return Changes{}, err
	}
	if head.Restoration, err = l.lastRestoration(ctx, rows, id); err != nil {
		return Changes{}, err
	}
	head.Turns, head.Files = changedTurns(rows), []ChangedFile{}
	if c.store == nil {
		return head, nil
	}
	list, err := l.difference(ctx, &c)
	if err != nil {
		return Changes{}, l.gitFailed(&s, err)
	}
	kept, err := l.kept(ctx, id, c.scope)
	if err != nil {
		return Changes{}, err
	}
	now, err := c.store.Look(ctx, plain(list))
	if err != nil {
		return Changes{}, err
	}
	for i := range list {
		f := list[i].file(now[list[i].Path], kept)
		f.Between = c.between[list[i].Path] || c.between[list[i].Was]
		head.Files = append(head.Files, f)
	}
	head.Left = c.left.shown()
	return head, nil
}

// Stat returns the size of all changes of agents in a session's directory; nothing where they are not known.
func (l *Library) Stat(ctx context.Context, id string) (ChangeStat, error) {
	rows, s, err := l.recorded(ctx, id)
	if err != nil {
		return ChangeStat{}, err
	}
	c, _, err := l.resolve(ctx, rows, &s, ChangeScope{Since: sinceStart})
	if err != nil || c.store == nil {
		return ChangeStat{}, err
	}
	list, err := l.difference(ctx, &c)
	if err != nil {
		return ChangeStat{}, l.gitFailed(&s, err)
	}
	stat := ChangeStat{Files: len(list)}
	for i := range list {
		stat.Added += list[i].Added
		stat.Removed += list[i].Removed
	}
	return stat, nil
}

// shown returns the files that cannot be taken back, by path, at most 100.
func (l leftOut) shown() (list []LeftOut) {
	const most = 100
	late := slices.DeleteFunc(slices.Clone(l.Was), func(f snapshot.Left) bool { return !f.Late })
	for _, f := range slices.Concat(late, l.Became) {
		why := "large"
		switch {
		case f.Late:
			why = "late"
		case f.Unreadable:
			why = "unreadable"
		}
		list = append(list, LeftOut{shownPath(f.Path), f.Size, why})
	}
	slices.SortStableFunc(list, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	list = slices.CompactFunc(list, func(a, b LeftOut) bool { return a.Path == b.Path })
	return list[:min(len(list), most)]
}

func plain(list []fileChange) []snapshot.Change {
	out := make([]snapshot.Change, len(list))
	for i := range list {
		out[i] = list[i].Change
	}
	return out
}

func changedTurns(rows []turnRow) []ChangedTurn {
	turns := []ChangedTurn{}
	for _, r := range rows {
		if d := r.data; d != nil && d.State == stateReady {
			turns = append(turns, ChangedTurn{r.turn, record.Time{Time: r.at}, d.Files, d.Added, d.Removed, d.Undone, d.Mixed})
		}
	}
	return turns
}

// file returns the change in short.
func (ch *fileChange) file(now snapshot.Now, kept map[string]bool) ChangedFile {
	f := ChangedFile{
		Path: shownPath(ch.Path), Was: shownPath(ch.Was), Kind: string(ch.Kind), Added: ch.Added, Removed: ch.Removed, Binary: ch.Binary, Large: ch.Large,
		Size: ch.After.Size, Now: nowOf(now),
	}
	if ch.Kind == snapshot.Deleted {
		f.Size = ch.Before.Size
	}
	for _, id := range ch.hunkIDs() {
		f.Hunks++
		if kept[id] {
			f.Kept++
		}
	}
	return f
}

func nowOf(n snapshot.Now) string {
	switch {
	case n.Same:
		return "same"
	case n.Gone:
		return "gone"
	}
	return "other"
}

// scope is the changed files of a scope, for a command on them.
type scope struct {
	trees
	session Session
	list    []fileChange
}

// scoped returns the changed files of a scope, or the refusal of a command when there are none to act on.
func (l *Library) scoped(ctx context.Context, id string, at ChangeScope) (*scope, error) {
	rows, s, err := l.recorded(ctx, id)
	if err != nil {
		return nil, err
	}
	c, head, err := l.resolve(ctx, rows, &s, at)
	switch {
	case err != nil:
		return nil, err
	case c.store != nil:
		list, err := l.difference(ctx, &c)
		if err != nil {
			return nil, l.gitFailed(&s, err)
		}
		return &scope{c, s, list}, nil
	case head.State == stateTaking && s.Turn != "":
		return nil, &refusal.Error{Code: refusedTurnRunning}
	case head.State == stateTaking:
		return nil, &refusal.Error{Code: refusedTaking}
	case head.State == stateOff:
		return nil, &refusal.Error{Code: refusedNoSnapshot, Params: map[string]string{"reason": head.Reason}}
	}
	return nil, refusal.Bad(refusedUnknownTurn, "turn", at.Turn)
}

// file returns the change of a file with all of its lines. path is the path that people are shown.
func (sc *scope) file(ctx context.Context, path string) (*fileChange, error) {
	i := slices.IndexFunc(sc.list, func(ch fileChange) bool { return shownPath(ch.Path) == path })
	if i < 0 {
		return nil, refusal.Bad(refusedUnknownPath, "path", path)
	}
	return sc.whole(ctx, &sc.list[i])
}

// FileDiff returns the change of one file.
func (l *Library) FileDiff(ctx context.Context, id string, at ChangeScope, path string) (FileDiff, error) {
	c, err := l.scoped(ctx, id, at)
	if err != nil {
		return FileDiff{}, err
	}
	ch, err := c.file(ctx, path)
	if err != nil {
		return FileDiff{}, l.gitFailed(&c.session, err)
	}
	kept, err := l.kept(ctx, id, c.scope)
	if err != nil {
		return FileDiff{}, err
	}
	now, err := c.store.Look(ctx, []snapshot.Change{ch.Change})
	if err != nil {
		return FileDiff{}, err
	}
	d := FileDiff{
		Path: shownPath(ch.Path), Was: shownPath(ch.Was), Kind: string(ch.Kind), Binary: ch.Binary, Large: ch.Large, Now: nowOf(now[ch.Path]),
		Hunks: ch.shown(c.store, now[ch.Path], kept),
	}
	if d.Before, err = ch.text(ctx, c.store, ch.Before); err == nil {
		d.After, err = ch.text(ctx, c.store, ch.After)
	}
	if err != nil {
		return FileDiff{}, l.gitFailed(&c.session, err)
	}
	return d, nil
}

const maxText = 2 << 20 // bytes of a file that is shown whole

// text returns the whole text of one side of a change; nil when there is no file, or the file is no text.
func (ch *fileChange) text(ctx context.Context, store *snapshot.Store, side snapshot.Side) (*string, error) {
	if side.ID == "" || ch.Binary || ch.Large {
		return nil, nil //nolint:nilnil // there is none
	}
	data, err := store.Read(ctx, side.ID, maxText)
	if err != nil || !utf8.Valid(data) {
		return nil, err
	}
	text := string(data)
	return &text, nil
}

// shownPath returns a path as text. A byte that is no text is written as U+FFFD and two hexadecimal digits, and so are the bytes of U+FFFD itself:
// two paths are never shown alike.
func shownPath(path string) string {
	if utf8.ValidString(path) && !strings.ContainsRune(path, utf8.RuneError) {
		return path
	}
	var text strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		if r != utf8.RuneError {
			text.WriteString(path[i : i+n])
		} else {
			for _, b := range []byte(path[i : i+n]) {
				fmt.Fprintf(&text, "\uFFFD%02X", b)
			}
		}
		i += n
	}
	return text.String()
}
