package session

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// database asks SQLite whether its file is as it should be.
func (x *examination) database(ctx context.Context) error {
	db := x.c.cfg.Store
	faults, err := db.Check(ctx)
	if err != nil {
		return err
	}
	var file, index []string
	for _, line := range faults {
		if strings.Contains(line, "words") { // the table of the index, which is made of what is elsewhere
			index = append(index, line)
		} else {
			file = append(file, line)
		}
	}
	if len(file) > 0 {
		x.find(foundDatabase, "", false, "detail", strings.Join(file, "; "))
	}
	if len(index) > 0 {
		x.find(foundIndex, "", x.wish.Repair && x.c.cfg.Search.Rebuild(ctx) == nil, "detail", strings.Join(index, "; "))
	}
	lost, err := query(ctx, db.Read(), func(s scanner) (string, error) {
		var table, parent string
		var row, key sql.NullInt64
		return table, s.Scan(&table, &row, &parent, &key)
	}, `PRAGMA foreign_key_check`)
	count := map[string]int{}
	for _, table := range lost {
		count[table]++
	}
	for table, n := range count {
		x.find(foundForeign, "", false, "table", table, "rows", strconv.Itoa(n))
	}
	return err
}

// records looks for rows of conversations of which a part that is JSON was damaged on the disk: what it said is not shown.
func (x *examination) records(ctx context.Context) error {
	for _, q := range []struct{ of, text string }{
		{"session", `SELECT id FROM session WHERE deleted_at = 0 AND NOT (json_valid(labels) AND json_valid(facts) AND json_valid(directories) AND json_valid(draft_attachments)
			AND (exit = '' OR json_valid(exit)) AND (origin = '' OR json_valid(origin)))`},
		{"turn", `SELECT DISTINCT session FROM turn WHERE NOT ((error = '' OR json_valid(error)) AND (usage = '' OR json_valid(usage)))`},
		{"request", `SELECT DISTINCT session FROM request WHERE NOT json_valid(data)`},
	} {
		ids, err := query(ctx, x.c.cfg.Store.Read(), scanText, q.text)
		if err != nil {
			return err
		}
		for _, id := range ids {
			x.find(foundRecord, id, false, "table", q.of)
		}
	}
	return nil
}

// blobs looks for those that no frame names. What was written just now may still be about to be named.
func (x *examination) blobs(ctx context.Context) error {
	const settled = time.Minute
	count, bytes := 0, int64(0)
	err := x.c.cfg.Store.Blobs.Each(ctx, func(sha string, info fs.FileInfo) error {
		if time.Since(info.ModTime()) < settled {
			return nil
		}
		named, err := x.c.named(ctx, sha)
		if err == nil && !named {
			count++
			bytes += info.Size()
		}
		return err
	})
	if err != nil || count == 0 {
		return err
	}
	repaired := false
	if x.wish.Repair {
		_, err = x.c.sweep(ctx)
		repaired = err == nil
	}
	x.find(foundOrphans, "", repaired, "count", strconv.Itoa(count), "bytes", strconv.FormatInt(bytes, 10))
	return err
}

// attachments looks at the bytes of each file that is kept.
func (x *examination) attachments(ctx context.Context) error {
	list, err := query(ctx, x.c.cfg.Store.Read(), scanJSON[transcript.Attachment], `SELECT data FROM attachment WHERE sha256 <> '' GROUP BY sha256`)
	for _, a := range list {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err := x.c.cfg.Store.Blobs.Get(a.SHA256)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			x.find(foundNoFile, "", false, "attachment", a.ID, "name", a.Filename, "sha256", a.SHA256)
		case errors.Is(err, store.ErrDamaged):
			x.find(foundBadFile, "", false, "attachment", a.ID, "name", a.Filename, "sha256", a.SHA256, "detail", err.Error())
		case err != nil: // as it is now
			x.find(foundFailed, "", false, "detail", a.Filename+": "+err.Error())
		}
	}
	return err
}

// index looks for entries that no search would find, and for entries of the index that are gone.
func (x *examination) index(ctx context.Context) error {
	faults, err := x.c.cfg.Search.Check(ctx)
	if err != nil {
		return err
	}
	missing, extra := len(faults.Missing), len(faults.Extra)
	repaired := false
	if x.wish.Repair && missing+extra > 0 {
		err = x.c.cfg.Search.Repair(ctx, faults)
		repaired = err == nil
	}
	if missing > 0 {
		x.find(foundUnindexed, "", repaired, "count", strconv.Itoa(missing))
	}
	if extra > 0 {
		x.find(foundOverindexed, "", repaired, "count", strconv.Itoa(extra))
	}
	return err
}

// session compares one session with its journal, and makes it anew where they differ.
func (x *examination) session(ctx context.Context, id string) error {
	found, left, err := x.look(ctx, id)
	if erased, _ := Erased(ctx, x.c.cfg.Store, id); erased { // what is missing of it was meant to be
		return nil
	}
	if err != nil {
		return wrapSession(id, err)
	}
	found.tell(x, id, left)
	return nil
}

// look compares a session with its journal, and repairs it where that is wanted; left is what was left then.
func (x *examination) look(ctx context.Context, id string) (found, left comparison, err error) {
	if err := x.c.bringUp(ctx, id); err != nil {
		return found, left, err
	}
	take, keep := slices.Contains(x.wish.TakeJournal, id), slices.Contains(x.wish.KeepTranscript, id)
	if kept, err := x.c.keeps(ctx, id); err != nil || kept && !take {
		return found, left, err
	}
	found, err = x.c.compare(ctx, id)
	switch {
	case err != nil || found.damaged() || found.clean():
		return found, left, err
	case keep:
		return found, left, x.c.keepTranscript(ctx, id)
	case !take && (!x.wish.Repair || found.contradicts()):
		return found, found, nil
	}
	if err := x.c.alone(ctx, id, func() error { return x.c.rebuild(ctx, id, take) }); err != nil {
		return found, left, err
	}
	left, err = x.c.compare(ctx, id)
	return found, left, err
}

// keeps tells whether a person keeps the transcript of a session whatever its journal makes.
func (c *Client) keeps(ctx context.Context, id string) (kept bool, err error) {
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT kept FROM session WHERE id = ?`, id).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return kept, err
}

// keepTranscript stores that choice.
func (c *Client) keepTranscript(ctx context.Context, id string) error {
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET kept = 1 WHERE id = ?`, id)
		return err
	})
}

// differ is how two lists of the same things differ.
type differ struct{ missing, different, extra int }

func (d differ) none() bool { return d == differ{} }

// comparison is how a session differs from its journal.
type comparison struct {
	journal                         []Finding // what is wrong with the journal itself; then nothing else is compared
	entries, turns, requests, files differ
	first                           disagreement
	unchecked                       int // frames without a checksum, which are from before there were any
}

// disagreement is a place at which a transcript is not what its journal makes.
type disagreement struct {
	entry       int64 // its seq
	shown, made string
}

// contradicts tells that the journal would replace or remove something that is shown: who chooses between the two is a person.
func (d comparison) contradicts() bool {
	return d.entries.different+d.entries.extra+d.turns.different+d.turns.extra > 0
}

func (d comparison) damaged() bool { return len(d.journal) > 0 }
func (d comparison) clean() bool {
	return !d.damaged() && d.entries.none() && d.turns.none() && d.requests.none() && d.files.none()
}

// tell tells of it; left is what was left of it after a repair.
func (d comparison) tell(x *examination, session string, left comparison) {
	for _, f := range d.journal {
		x.add(f)
	}
	for _, part := range []struct {
		code      string
		was, left differ
	}{{foundEntries, d.entries, left.entries}, {foundTurns, d.turns, left.turns}, {foundRequests, d.requests, left.requests}, {foundFiles, d.files, left.files}} {
		if part.was.none() {
			continue
		}
		params := []string{"missing", strconv.Itoa(part.was.missing), "different", strconv.Itoa(part.was.different), "extra", strconv.Itoa(part.was.extra)}
		if part.code == foundEntries || part.code == foundTurns {
			params = append(params, "unchecked", strconv.Itoa(d.unchecked))
		}
		if part.code == foundEntries {
			params = append(params, "entry", strconv.FormatInt(d.first.entry, 10), "shown", d.first.shown, "made", d.first.made)
		}
		x.find(part.code, session, x.repairs(session) && !d.damaged() && part.left.none(), params...)
	}
}

// repairs tells whether anything of a session may have been mended.
func (x *examination) repairs(session string) bool {
	return x.wish.Repair || slices.Contains(x.wish.TakeJournal, session) || slices.Contains(x.wish.KeepTranscript, session)
}

// compare reads the journal of a session and what is shown of it as of one moment.
func (c *Client) compare(ctx context.Context, session string) (d comparison, err error) {
	tx, err := c.cfg.Store.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	r := newComparing(c.cfg.Store, session)
	if err := r.read(ctx, tx); err != nil {
		return d, err
	}
	d.unchecked = r.unchecked
	if d.journal = r.journal; d.damaged() {
		return d, nil
	}
	if d.entries, err = r.entries(ctx, tx); err != nil {
		return d, err
	}
	if !d.entries.none() {
		if d.first, err = r.firstDisagreement(ctx, tx); err != nil {
			return d, err
		}
	}
	if d.turns, err = r.compareTurns(ctx, tx); err != nil {
		return d, err
	}
	if d.requests, err = r.compareRequests(ctx, tx); err != nil {
		return d, err
	}
	d.files, err = r.compareFiles(ctx, tx)
	return d, err
}

// compareFiles compares the attachments that the journal names with those that are known to be used.
func (r *comparing) compareFiles(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	named := map[string]bool{}
	for _, a := range r.attached {
		named[a.ID] = true
	}
	rows, err := tx.QueryContext(ctx, `SELECT attachment FROM attachment_use WHERE session = ?`, r.session)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return d, err
		}
		if !named[id] {
			d.extra++
		}
		delete(named, id)
	}
	d.missing = len(named)
	return d, rows.Err()
}

// comparing is a journal that is read to be compared.
type comparing struct {
	*retelling
	db      *store.DB
	session string
	want    int64
	made    map[string]madeEntry         // by their ids
	open    map[string]*transcript.Entry // what was told while the turn runs, which may be late
	openOf  string                       // the turn
	journal []Finding

	unchecked int
	differs   string            // the id of an entry that is not what the journal makes, the first in their order
	at        int64             // its seq
	wanted    *transcript.Entry // that entry as the journal makes it, where it is looked for by its id
}

func newComparing(db *store.DB, session string) *comparing {
	return &comparing{retelling: retell(session), db: db, session: session, want: 1, made: map[string]madeEntry{}, open: map[string]*transcript.Entry{}}
}

// madeEntry is an entry that the journal makes.
type madeEntry struct {
	seq int64
	sum [sha256.Size]byte
}

// read folds the whole journal.
func (r *comparing) read(ctx context.Context, tx *sql.Tx) error {
	for more := true; more; {
		before := r.want
		last, err := journal.Of(r.db).Stored(ctx, tx, r.session, before-1, journal.Part, r.frame)
		if err != nil {
			return err
		}
		r.keep()
		more = last >= before
	}
	if len(r.journal) == 0 {
		r.take()
		r.keep()
	}
	return nil
}

// mostOfAJournal is how many faults of one journal are told.
const mostOfAJournal = 20

func (r *comparing) wrong(code string, frame int64, params ...string) {
	if len(r.journal) < mostOfAJournal {
		params = append(params, "frame", strconv.FormatInt(frame, 10))
		r.journal = append(r.journal, Finding{Code: code, Session: r.session, Params: bad(code, params...).Params})
	}
}

func (r *comparing) frame(f journal.Stored) error {
	if f.N != r.want {
		r.wrong(foundGap, r.want, "next", strconv.FormatInt(f.N, 10))
	}
	r.want = f.N + 1
	if !f.Checked() {
		r.unchecked++
	}
	err := journal.Of(r.db).Decode(&f)
	_, damaged := errors.AsType[*journal.DamagedError](err)
	switch {
	case err == nil:
		r.apply(f.Frame)
	case !damaged:
		return err
	case errors.Is(err, journal.ErrChecksum):
		r.wrong(foundFrame, f.N, "detail", journal.ErrChecksum.Error())
	case f.Blob() != "" && errors.Is(err, fs.ErrNotExist):
		r.wrong(foundNoBlob, f.N, "sha256", f.Blob())
	case f.Blob() != "":
		r.wrong(foundBadBlob, f.N, "sha256", f.Blob(), "detail", err.Error())
	default:
		r.wrong(foundFrame, f.N, "detail", errors.Unwrap(err).Error())
	}
	return nil
}

// keep remembers what the entries are that are ready: of one that comes again the last counts.
func (r *comparing) keep() {
	if r.openOf != r.running {
		clear(r.open)
		r.openOf = r.running
	}
	for _, ch := range r.ready {
		if r.running != "" { // of other turns too: programs outlive theirs
			r.open[ch.Entry.ID] = ch.Entry
		}
		r.made[ch.Entry.ID] = madeEntry{ch.Entry.Seq, sha256.Sum256(sortable(ch.Entry.Seq, mustJSON(ch.Entry)))}
		if ch.Entry.ID == r.differs {
			r.wanted = ch.Entry
		}
	}
	r.ready = r.ready[:0]
}

func sortable(seq int64, data []byte) []byte { return append(strconv.AppendInt(nil, seq, 10), data...) }

func (r *comparing) entries(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, seq, data FROM entry WHERE session = ?`, r.session)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	there := map[string]bool{}
	for rows.Next() {
		var id string
		var seq int64
		var data []byte
		if err := rows.Scan(&id, &seq, &data); err != nil {
			return d, err
		}
		made, known := r.made[id]
		switch {
		case !known:
			d.extra++
			r.differ(id, seq)
			continue
		case made.sum != sha256.Sum256(sortable(seq, data)) && (r.open[id] == nil || !transcript.IsPrefixOf(data, r.open[id])):
			d.different++
			r.differ(id, seq)
		}
		there[id] = true
	}
	for id, made := range r.made {
		if !there[id] {
			d.missing++
			r.differ(id, made.seq)
		}
	}
	return d, rows.Err()
}

func (r *comparing) differ(id string, seq int64) {
	if r.differs == "" || seq < r.at || seq == r.at && id < r.differs {
		r.differs, r.at = id, seq
	}
}

// firstDisagreement tells of the first entry that differs, for which the journal is read once more.
func (r *comparing) firstDisagreement(ctx context.Context, tx *sql.Tx) (disagreement, error) {
	var data []byte
	err := tx.QueryRowContext(ctx, `SELECT data FROM entry WHERE session = ? AND seq = ?`, r.session, r.at).Scan(&data)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return disagreement{}, err
	}
	again := newComparing(r.db, r.session)
	again.differs = r.differs
	if err := again.read(ctx, tx); err != nil {
		return disagreement{}, err
	}
	var made []byte
	if again.wanted != nil {
		made = mustJSON(again.wanted)
	}
	d := disagreement{entry: r.at}
	shown, wanted := readable(data), readable(made)
	if shown == wanted { // it is not in what a person reads
		shown, wanted = string(data), string(made)
	}
	d.shown, d.made = apart(shown, wanted)
	return d, nil
}

// readable is what a person reads of an entry, or its record where that is damaged or the difference is not in its text.
func readable(data []byte) string {
	var e transcript.Entry
	if json.Unmarshal(data, &e) == nil {
		if text := e.SearchText(); text != "" {
			return text
		}
	}
	return string(data)
}

// apart cuts two texts down to where they first differ, with a little of what stands around that place.
func apart(a, b string) (string, string) {
	const before, most = 30, 90
	one, other := []rune(a), []rune(b)
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	cut := func(text []rune) string {
		from, to := min(max(at-before, 0), len(text)), min(at+most, len(text))
		part := string(text[from:to])
		if from > 0 {
			part = "…" + part
		}
		if to < len(text) {
			part += "…"
		}
		return part
	}
	return cut(one), cut(other)
}

func (r *comparing) compareTurns(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	have, err := storedTurns(ctx, tx, r.session)
	if err != nil {
		return d, err
	}
	for id, t := range r.turns {
		stored, there := have[id]
		switch {
		case !there:
			d.missing++
		case !t.sameAs(stored):
			d.different++
		}
		delete(have, id)
	}
	d.extra = len(have)
	return d, nil
}

// compareRequests compares which requests there are. How one ended stands in its own row alone, unless its agent has ended: then it
// cannot wait any more.
func (r *comparing) compareRequests(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, status FROM request WHERE session = ?`, r.session)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	there := 0
	for rows.Next() {
		var id, status string
		if err := rows.Scan(&id, &status); err != nil {
			return d, err
		}
		q, known := r.requests[id]
		switch {
		case !known:
			d.extra++
			continue
		case q.over && status == statusRequested:
			d.different++
		}
		there++
	}
	d.missing = len(r.requests) - there
	return d, rows.Err()
}
