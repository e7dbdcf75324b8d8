package session

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/snapshot"
)

// Differences are held, so that a person who looks at one file after the other does not wait for each: so many, as long as somebody asks for
// them, and beside the newest no more than so many bytes of lines.
const (
	mostCompared  = 6
	bytesCompared = 8 << 20
	holdCompared  = 10 * time.Minute
)

// twoTrees is a difference that is held.
type twoTrees struct {
	was, became string
	list        []snapshot.Change
	asked       time.Time // for the last time
	size        int
}

// held gives a difference that is held, and holds it on.
func (l *looks) held(was, became string) ([]snapshot.Change, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.diffs, func(d twoTrees) bool { return d.was == was && d.became == became })
	if i < 0 {
		return nil, false
	}
	l.diffs[i].asked = time.Now()
	return l.diffs[i].list, true
}

// hold holds a difference in place of those that were asked for before the others.
func (l *looks) hold(was, became string, list []snapshot.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := twoTrees{was, became, list, time.Now(), sizeOf(list)}
	slices.SortStableFunc(l.diffs, func(a, b twoTrees) int { return b.asked.Compare(a.asked) })
	all, n := now.size, 0
	for ; n < min(len(l.diffs), mostCompared-1) && all+l.diffs[n].size <= bytesCompared; n++ {
		all += l.diffs[n].size
	}
	l.diffs = append([]twoTrees{now}, l.diffs[:n]...)
	if l.letGo == nil {
		l.letGo = time.AfterFunc(holdCompared, l.drop)
	}
}

// drop lets go of what nobody has asked for.
func (l *looks) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := holdCompared
	l.diffs = slices.DeleteFunc(l.diffs, func(d twoTrees) bool {
		left := holdCompared - time.Since(d.asked)
		if left > 0 {
			next = min(next, left)
		}
		return left <= 0
	})
	if l.letGo = nil; len(l.diffs) > 0 {
		l.letGo = time.AfterFunc(next, l.drop)
	}
}

// sizeOf is about what the lines of a difference take.
func sizeOf(list []snapshot.Change) (bytes int) {
	const ofLine = 32 // beside its text
	for i := range list {
		for _, h := range list[i].Hunks {
			bytes += len(h.Lines) * ofLine
			for _, line := range h.Lines {
				bytes += len(line.Text)
			}
		}
	}
	return bytes
}

// fileChange is what became of a file. Of a lost one a content is missing: there is no way back.
type fileChange struct {
	snapshot.Change
	lost bool
}

// span is two looks at a directory.
type span struct {
	store       *snapshot.Store
	workspace   string // whose store it is
	scope       string // of the marks of a person: a turn, or start
	was, became string
	left        leftOut
	mixed       bool
	row         *changeRow      // of a turn
	between     map[string]bool // files that were changed between the turns as well
}

func (r *changeRow) span(cwd string) func(*snapshot.Library) span {
	return func(l *snapshot.Library) span {
		mixed := r.data != nil && r.data.Mixed
		return span{store: l.Store(r.workspace, cwd), workspace: r.workspace, scope: r.turn, was: r.was, became: r.became, left: r.left, mixed: mixed, row: r}
	}
}

// difference is what is different between two looks, by path.
func (c *Client) difference(ctx context.Context, of func(*snapshot.Library) span) ([]fileChange, error) {
	at := of(c.cfg.Snapshots)
	list, err := c.compared(ctx, at)
	if err != nil {
		return nil, err
	}
	return withLeft(list, at.left), nil
}

func (c *Client) compared(ctx context.Context, at span) ([]snapshot.Change, error) {
	if list, held := c.looks.held(at.was, at.became); held {
		return list, nil
	}
	list, err := at.store.Compare(ctx, at.was, at.became)
	if err == nil {
		c.looks.hold(at.was, at.became, list)
	}
	return list, err
}

// withLeft adds what the trees do not have: a file that is only in one of them may have been there at the other moment too, too long to be
// kept.
func withLeft(list []snapshot.Change, left leftOut) []fileChange {
	was, became := byPath(left.Was), byPath(left.Became)
	hid := left.hider(list)
	out := make([]fileChange, 0, len(list)+len(was)+len(became))
	for _, c := range unpaired(list, func(c snapshot.Change) bool {
		_, stays := became[c.Was]
		_, replaces := was[c.Path]
		return stays || replaces || hid(c.Path)
	}) {
		before, wasLeft := was[c.Path]
		after, isLeft := became[c.Path]
		switch {
		case c.Kind == snapshot.Added && wasLeft:
			out = append(out, lostSide(snapshot.Modified, c.Path, snapshot.Side{Size: before.Size}, c.After))
		case c.Kind == snapshot.Deleted && isLeft:
			out = append(out, lostSide(snapshot.Modified, c.Path, c.Before, snapshot.Side{Size: after.Size}))
		case c.Kind == snapshot.Added && hid(c.Path):
			out = append(out, fileChange{c, true})
		default:
			out = append(out, fileChange{Change: c})
		}
		delete(was, c.Path)
		delete(became, c.Path)
	}
	for path, after := range became {
		before, there := was[path]
		delete(was, path)
		switch {
		case !there:
			out = append(out, lostSide(snapshot.Added, path, snapshot.Side{}, snapshot.Side{Size: after.Size}))
		case before.Size != after.Size || !before.Modified.Equal(after.Modified):
			out = append(out, lostSide(snapshot.Modified, path, snapshot.Side{Size: before.Size}, snapshot.Side{Size: after.Size}))
		}
	}
	for path, before := range was {
		out = append(out, lostSide(snapshot.Deleted, path, snapshot.Side{Size: before.Size}, snapshot.Side{}))
	}
	slices.SortFunc(out, func(a, b fileChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func lostSide(kind snapshot.Kind, path string, before, after snapshot.Side) fileChange {
	return fileChange{snapshot.Change{Kind: kind, Path: path, Before: before, After: after, Large: true}, true}
}

// unpaired is a list in which no file is renamed that is where it was, or where another one was: git knows only of those that are kept.
func unpaired(list []snapshot.Change, apart func(snapshot.Change) bool) []snapshot.Change {
	out := make([]snapshot.Change, 0, len(list))
	for _, c := range list {
		if c.Kind != snapshot.Renamed || !apart(c) {
			out = append(out, c)
			continue
		}
		out = append(
			out, snapshot.Change{Kind: snapshot.Deleted, Path: c.Was, Before: c.Before, Large: c.Large, Binary: c.Binary, Cut: true},
			snapshot.Change{Kind: snapshot.Added, Path: c.Path, After: c.After, Large: c.Large, Binary: c.Binary, Cut: true},
		)
	}
	return out
}

// hider tells of a path whether rules left it out before: what shows only since they are others was not made by the turn. Where there was
// too much of that to be remembered, it may be any, once a rule has changed; where there was too much that could not be kept, it may be any.
func (l leftOut) hider(list []snapshot.Change) func(path string) bool {
	files, folders := map[string]bool{}, []string{}
	for _, name := range l.Hidden {
		files[name] = true
		if strings.HasSuffix(name, "/") {
			folders = append(folders, name)
		}
	}
	ruled := l.More && slices.ContainsFunc(list, func(c snapshot.Change) bool { return strings.HasSuffix("/"+c.Path, "/.gitignore") })
	return func(path string) bool {
		return l.MoreLeft || ruled || files[path] || slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(path, folder) })
	}
}

func byPath(list []snapshot.Left) map[string]snapshot.Left {
	m := map[string]snapshot.Left{}
	for _, l := range list {
		m[l.Path] = l
	}
	return m
}

// rowsOf are the turns of a session that were looked at, the oldest first.
func (c *Client) rowsOf(ctx context.Context, id string) ([]changeRow, Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, Session{}, err
	}
	s := v.look()
	if err := c.join(ctx, s); err != nil {
		return nil, s, c.notCompared(s, err)
	}
	rows, err := c.changeRows(ctx, `WHERE session = ? ORDER BY at, turn`, id)
	return rows, s, err
}

// chosen is what of the rows a scope means. Where there is nothing to compare it tells why, as Changes does.
func (c *Client) chosen(ctx context.Context, rows []changeRow, s Session, at ChangeScope) (span, Changes, error) {
	if at.Since == sinceStart {
		found, head, err := c.sinceStart(ctx, rows, s)
		if err != nil {
			err = c.notCompared(s, err)
		}
		return found, head, err
	}
	found, head := c.chosenTurn(rows, s, at)
	return found, head, nil
}

func (c *Client) chosenTurn(rows []changeRow, s Session, at ChangeScope) (span, Changes) {
	i := len(rows) - 1
	if at.Turn != "" {
		i = slices.IndexFunc(rows, func(r changeRow) bool { return r.turn == at.Turn })
	}
	head := Changes{State: changesReady, Turn: at.Turn}
	switch {
	case i < 0 && s.Turn != nil && (at.Turn == "" || at.Turn == s.Turn.ID):
		return span{}, Changes{State: changesTaking, Turn: s.Turn.ID}
	case i < 0 && c.cfg.Snapshots == nil:
		return span{}, Changes{State: changesOff, Turn: at.Turn, Reason: lookOff}
	case i < 0:
		return span{}, head
	}
	row := &rows[i]
	head.Turn = row.turn
	switch {
	case c.cfg.Snapshots == nil:
		head.State, head.Reason = changesOff, lookOff
	case row.data == nil:
		head.State = changesTaking
	case row.data.State == changesOff:
		head.State, head.Reason, head.Params = changesOff, row.data.Reason, row.data.Params
	default:
		head.Mixed, head.Reason = row.data.Mixed, row.data.Reason
		return row.span(s.Cwd)(c.cfg.Snapshots), head
	}
	return span{}, head
}

// Changes tells what agents changed.
func (c *Client) Changes(ctx context.Context, id string, scope ChangeScope) (Changes, error) {
	rows, s, err := c.rowsOf(ctx, id)
	if err != nil {
		return Changes{}, err
	}
	at, head, err := c.chosen(ctx, rows, s, scope)
	if err != nil {
		return Changes{}, err
	}
	if head.Restoration, err = c.lastRestoration(ctx, rows, id); err != nil {
		return Changes{}, err
	}
	head.Turns, head.Files = changedTurns(rows), []ChangedFile{}
	if at.store == nil {
		return head, nil
	}
	list, err := c.difference(ctx, func(*snapshot.Library) span { return at })
	if err != nil {
		return Changes{}, c.notCompared(s, err)
	}
	kept, err := c.keptHunks(ctx, id, at.scope)
	if err != nil {
		return Changes{}, err
	}
	now, err := at.store.Look(ctx, plain(list))
	if err != nil {
		return Changes{}, err
	}
	for i := range list {
		f := list[i].file(now[list[i].Path], kept)
		f.Between = at.between[list[i].Path] || at.between[list[i].Was]
		head.Files = append(head.Files, f)
	}
	head.Left = at.left.shown()
	return head, nil
}

// shown are the files for which there is no way back, by path, at most 100.
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

// notCompared is what a person is told when git cannot compare.
func (c *Client) notCompared(s Session, err error) error {
	if errors.Is(err, snapshot.ErrGit) || errors.Is(err, snapshot.ErrNoGit) {
		c.cfg.Logger.Error("the changes of a session cannot be shown", "session", s.ID, "error", err)
		return &RefusedError{Code: refusedNotLookedAt, Params: map[string]string{"detail": err.Error()}}
	}
	return err
}

func plain(list []fileChange) []snapshot.Change {
	out := make([]snapshot.Change, len(list))
	for i := range list {
		out[i] = list[i].Change
	}
	return out
}

func changedTurns(rows []changeRow) []ChangedTurn {
	turns := []ChangedTurn{}
	for _, r := range rows {
		if r.data != nil && r.data.State == changesReady {
			turns = append(turns, ChangedTurn{r.turn, Time{Time: r.at}, r.data.Files, r.data.Added, r.data.Removed, r.data.Undone, r.data.Mixed})
		}
	}
	return turns
}

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

// hunkIDs are the names of a file's hunks: of what they say and of where they stand among those that say the same. A file without lines has
// one, for all that became of it.
func (ch *fileChange) hunkIDs() []string {
	name := func(n int, parts ...string) string {
		h := sha256.New()
		for _, p := range append(parts, ch.Path) {
			_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // it takes everything
		}
		_, _ = fmt.Fprint(h, n)
		return hex.EncodeToString(h.Sum(nil)[:12])
	}
	if len(ch.Hunks) == 0 {
		return []string{name(0, string(ch.Kind), ch.Was, ch.Before.ID, ch.After.ID, ch.Before.Mode, ch.After.Mode)}
	}
	ids, seen := make([]string, 0, len(ch.Hunks)), map[string]int{}
	for _, h := range ch.Hunks {
		var text strings.Builder
		for _, l := range h.Lines {
			text.WriteByte(l.Op)
			text.WriteString(l.Text)
			text.WriteByte('\n')
		}
		seen[text.String()]++
		ids = append(ids, name(seen[text.String()], text.String()))
	}
	return ids
}

// fileOfChanges finds a file by the path that people are shown.
func fileOfChanges(list []fileChange, path string) (*fileChange, error) {
	i := slices.IndexFunc(list, func(ch fileChange) bool { return shownPath(ch.Path) == path })
	if i < 0 {
		return nil, bad(refusedUnknownPath, "path", path)
	}
	return &list[i], nil
}

// found is the difference that a scope means, for who wants to do something with it.
func (c *Client) found(ctx context.Context, id string, scope ChangeScope) (span, []fileChange, Session, error) {
	rows, s, err := c.rowsOf(ctx, id)
	if err != nil {
		return span{}, nil, s, err
	}
	at, head, err := c.chosen(ctx, rows, s, scope)
	switch {
	case err != nil:
		return span{}, nil, s, err
	case at.store != nil:
		list, err := c.difference(ctx, func(*snapshot.Library) span { return at })
		if err != nil {
			err = c.notCompared(s, err)
		}
		return at, list, s, err
	case head.State == changesTaking && s.Turn != nil:
		return span{}, nil, s, &RefusedError{Code: refusedTurnRunning}
	case head.State == changesTaking:
		return span{}, nil, s, &RefusedError{Code: refusedChangesTaken}
	case head.State == changesOff:
		return span{}, nil, s, &RefusedError{Code: refusedNotLookedAt, Params: map[string]string{"reason": head.Reason}}
	}
	return span{}, nil, s, bad(refusedUnknownTurn, "turn", scope.Turn)
}

// FileDiff tells what became of one file.
func (c *Client) FileDiff(ctx context.Context, id string, scope ChangeScope, path string) (FileDiff, error) {
	at, list, s, err := c.found(ctx, id, scope)
	if err != nil {
		return FileDiff{}, err
	}
	ch, err := fileOfChanges(list, path)
	if err != nil {
		return FileDiff{}, err
	}
	if ch, err = c.whole(ctx, at, ch); err != nil {
		return FileDiff{}, c.notCompared(s, err)
	}
	kept, err := c.keptHunks(ctx, id, at.scope)
	if err != nil {
		return FileDiff{}, err
	}
	now, err := at.store.Look(ctx, []snapshot.Change{ch.Change})
	if err != nil {
		return FileDiff{}, err
	}
	d := FileDiff{
		Path: shownPath(ch.Path), Was: shownPath(ch.Was), Kind: string(ch.Kind), Binary: ch.Binary, Large: ch.Large, Now: nowOf(now[ch.Path]),
		Hunks: ch.shown(at.store, now[ch.Path], kept),
	}
	if d.Before, err = textOfSide(ctx, at.store, ch, ch.Before); err != nil {
		return FileDiff{}, c.notCompared(s, err)
	}
	if d.After, err = textOfSide(ctx, at.store, ch, ch.After); err != nil {
		return FileDiff{}, c.notCompared(s, err)
	}
	return d, nil
}

// whole is a file with its lines, where they were too many to be held.
func (c *Client) whole(ctx context.Context, at span, ch *fileChange) (*fileChange, error) {
	if !ch.Cut {
		return ch, nil
	}
	only := []string{ch.Path}
	if ch.Was != "" {
		only = append(only, ch.Was)
	}
	list, err := at.store.Compare(ctx, at.was, at.became, only...)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Path == ch.Path {
			return &fileChange{one, ch.lost}, nil
		}
	}
	return ch, nil
}

const longestSide = 2 << 20

// textOfSide is the whole text of a file; nil where there is none, or it is no text.
func textOfSide(ctx context.Context, store *snapshot.Store, ch *fileChange, side snapshot.Side) (*string, error) {
	if side.ID == "" || ch.Binary || ch.Large {
		return nil, nil //nolint:nilnil // there is none
	}
	data, err := store.Read(ctx, side.ID, longestSide)
	if err != nil || !utf8.Valid(data) {
		return nil, err
	}
	text := string(data)
	return &text, nil
}

// shown are the hunks as people see them.
func (ch *fileChange) shown(store *snapshot.Store, now snapshot.Now, kept map[string]bool) []Hunk {
	var disk []string
	if !now.Same && !now.Gone && len(ch.Hunks) > 0 {
		if data, ok := store.Content(ch.Path); ok {
			disk = linesOf(data)
		}
	}
	ids, hunks := ch.hunkIDs(), []Hunk{}
	for i, h := range ch.Hunks {
		shown := Hunk{
			ID: ids[i], OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Heading: strings.ToValidUTF8(h.Heading, "\uFFFD"),
			Kept: kept[ids[i]],
		}
		for _, l := range h.Lines {
			shown.Lines = append(shown.Lines, DiffLine{string(l.Op), strings.ToValidUTF8(l.Text, "\uFFFD"), l.NoNewline})
		}
		switch {
		case ch.lost: // nothing can be taken back
		case !ch.editable():
			shown.Revertable = now.Same
		case now.Same:
			shown.Revertable = true
		default:
			shown.Revertable, shown.Reverted = standing(h, disk)
		}
		hunks = append(hunks, shown)
	}
	return hunks
}

// editable tells whether hunks can be taken back one by one: a link, and a file that is gone, come back as a whole.
func (ch *fileChange) editable() bool {
	return ch.Kind != snapshot.Deleted && ch.After.Regular() && (ch.Before.ID == "" || ch.Before.Regular())
}

// shownPath is a path as text. A byte that is none stands as U+FFFD and two hexadecimal digits, and so does U+FFFD itself: no two paths are
// shown alike.
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

// keptHunks are those that a person has marked.
func (c *Client) keptHunks(ctx context.Context, id, scope string) (map[string]bool, error) {
	ids, err := query(ctx, c.cfg.Store.Read(), scanText, `SELECT hunk FROM kept_hunk WHERE session = ? AND scope = ?`, id, scope)
	kept := map[string]bool{}
	for _, id := range ids {
		kept[id] = true
	}
	return kept, err
}

// KeepHunks remembers which hunks a person has looked at and wants. A hunk without a name means all of its file.
func (c *Client) KeepHunks(ctx context.Context, id string, k KeepHunks) error {
	if err := c.ReadOnly(); err != nil {
		return err
	}
	at, list, _, err := c.found(ctx, id, k.ChangeScope)
	if err != nil {
		return err
	}
	var hunks []string
	for _, h := range k.Hunks {
		ch, err := fileOfChanges(list, h.Path)
		if err != nil {
			return err
		}
		if ch, err = c.whole(ctx, at, ch); err != nil {
			return err
		}
		ids := ch.hunkIDs()
		switch {
		case h.Hunk == "":
			hunks = append(hunks, ids...)
		case slices.Contains(ids, h.Hunk):
			hunks = append(hunks, h.Hunk)
		default:
			return bad(refusedUnknownHunk, "path", h.Path)
		}
	}
	text := `DELETE FROM kept_hunk WHERE session = ? AND scope = ? AND hunk = ?`
	if k.Kept {
		text = `INSERT INTO kept_hunk VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	}
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		for _, hunk := range hunks {
			if _, err := tx.ExecContext(ctx, text, id, at.scope, hunk); err != nil {
				return err
			}
		}
		return nil
	})
}
