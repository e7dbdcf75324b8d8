package maintenance

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// session compares a session with its journal, and repairs the session if that is wanted.
func (x *examination) session(ctx context.Context, id string) error {
	found, left, err := x.look(ctx, id)
	if erased, _ := x.erased(ctx, id); erased { // missing rows are no fault
		return nil
	}
	if err != nil {
		return wrapSession(id, err)
	}
	found.tell(x, id, left)
	return nil
}

// look compares a session with its journal, and repairs the session if that is wanted. left is the comparison after the repair.
func (x *examination) look(ctx context.Context, id string) (found, left comparison, err error) {
	if err := x.Update(ctx, id); err != nil {
		return found, left, err
	}
	take, keep := slices.Contains(x.wish.TakeJournal, id), slices.Contains(x.wish.KeepTranscript, id)
	if kept, err := x.keeps(ctx, id); err != nil || kept && !take {
		return found, left, err
	}
	found, err = x.compare(ctx, id)
	switch {
	case err != nil || found.damaged() || found.clean():
		return found, left, err
	case keep:
		return found, left, x.keepTranscript(ctx, id)
	case !take && (!x.wish.Repair || found.contradicts()):
		return found, found, nil
	}
	if err := x.alone(ctx, id, func() error { return x.rebuild(ctx, id, take) }); err != nil {
		return found, left, err
	}
	left, err = x.compare(ctx, id)
	return found, left, err
}

// keeps reports whether a person has chosen to keep the transcript of a session, whatever the journal says.
func (m *Maintainer) keeps(ctx context.Context, id string) (kept bool, err error) {
	err = m.deps.Store.Read().QueryRowContext(ctx, `SELECT kept FROM session WHERE id = ?`, id).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return kept, err
}

// keepTranscript stores the choice that keeps reports.
func (m *Maintainer) keepTranscript(ctx context.Context, id string) error {
	return m.deps.Store.Write(ctx, func(tx *sql.Tx) error { return m.deps.SaveOutcome(ctx, tx, id, Kept) })
}

// differ counts the differences between a list of the database and the same list made of the journal.
type differ struct{ missing, different, extra int }

func (d differ) none() bool { return d == differ{} }

// comparison has the differences between a session and its journal.
type comparison struct {
	journal                         []Finding // faults of the journal itself; with a fault, nothing else is compared
	entries, turns, requests, files differ
	first                           disagreement
	unchecked                       int // frames without a checksum, written by early versions
}

// disagreement is an entry as the transcript shows the entry, and as the journal makes the entry.
type disagreement struct {
	entry       int64 // its seq
	shown, made string
}

// contradicts reports whether the journal would replace or remove an entry or a turn, so that a person has to choose.
func (d comparison) contradicts() bool {
	return d.entries.different+d.entries.extra+d.turns.different+d.turns.extra > 0
}

func (d comparison) damaged() bool { return len(d.journal) > 0 }
func (d comparison) clean() bool {
	return !d.damaged() && d.entries.none() && d.turns.none() && d.requests.none() && d.files.none()
}

// tell adds the findings of a comparison. left is the comparison after the repair.
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

// repairs reports whether the wish allows a repair of a session.
func (x *examination) repairs(session string) bool {
	return x.wish.Repair || slices.Contains(x.wish.TakeJournal, session) || slices.Contains(x.wish.KeepTranscript, session)
}

// compare compares a session with its journal, as of one moment.
func (m *Maintainer) compare(ctx context.Context, session string) (d comparison, err error) {
	tx, err := m.deps.Store.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	r := newComparing(m.deps.Store, session)
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

// compareFiles compares the attachments that the journal names with the stored uses.
func (r *comparing) compareFiles(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	named := map[string]bool{}
	for _, a := range r.attached {
		named[a.ID] = true
	}
	uses, err := attachments.Uses(ctx, tx, r.session)
	for _, id := range uses {
		if !named[id] {
			d.extra++
		}
		delete(named, id)
	}
	d.missing = len(named)
	return d, err
}

// comparing is a journal while it is compared with the database.
type comparing struct {
	*retelling
	db      *store.DB
	session string
	want    int64
	made    map[string]madeEntry         // by the ids of the entries
	open    map[string]*transcript.Entry // entries of the running turn, which may be stored later
	openOf  string                       // the id of that turn
	journal []Finding

	unchecked int
	differs   string            // the id of the first entry that differs
	at        int64             // the seq of that entry
	wanted    *transcript.Entry // that entry as the journal makes the entry; set by a second reading
}

func newComparing(db *store.DB, session string) *comparing {
	return &comparing{retelling: retell(session), db: db, session: session, want: 1, made: map[string]madeEntry{}, open: map[string]*transcript.Entry{}}
}

// madeEntry is the place and the hash of an entry that the journal makes.
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

// mostOfAJournal limits the findings about one journal.
const mostOfAJournal = 20

func (r *comparing) wrong(code string, frame int64, params ...string) {
	if len(r.journal) < mostOfAJournal {
		params = append(params, "frame", strconv.FormatInt(frame, 10))
		r.journal = append(r.journal, Finding{Code: code, Session: r.session, Params: refusal.Bad(code, params...).Params})
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

// keep records the ready entries. When an entry comes again, the last counts.
func (r *comparing) keep() {
	if r.openOf != r.running {
		clear(r.open)
		r.openOf = r.running
	}
	for _, ch := range r.ready {
		if r.running != "" { // also entries of former turns: a program outlives its turn
			r.open[ch.Entry.ID] = ch.Entry
		}
		r.made[ch.Entry.ID] = madeEntry{ch.Entry.Seq, sha256.Sum256(sortable(ch.Entry.Seq, record.JSON(ch.Entry)))}
		if ch.Entry.ID == r.differs {
			r.wanted = ch.Entry
		}
	}
	r.ready = r.ready[:0]
}

func sortable(seq int64, data []byte) []byte { return append(strconv.AppendInt(nil, seq, 10), data...) }

func (r *comparing) entries(ctx context.Context, tx *sql.Tx) (d differ, err error) {
	there := map[string]bool{}
	err = entries.Rows(ctx, tx, r.session, func(e entries.Row) {
		made, known := r.made[e.ID]
		switch data := []byte(e.Data); {
		case !known:
			d.extra++
			r.differ(e.ID, e.Seq)
			return
		case made.sum != sha256.Sum256(sortable(e.Seq, data)) && (r.open[e.ID] == nil || !transcript.IsPrefixOf(data, r.open[e.ID])):
			d.different++
			r.differ(e.ID, e.Seq)
		}
		there[e.ID] = true
	})
	for id, made := range r.made {
		if !there[id] {
			d.missing++
			r.differ(id, made.seq)
		}
	}
	return d, err
}

func (r *comparing) differ(id string, seq int64) {
	if r.differs == "" || seq < r.at || seq == r.at && id < r.differs {
		r.differs, r.at = id, seq
	}
}

// firstDisagreement reads the journal again and returns the first entry that differs.
func (r *comparing) firstDisagreement(ctx context.Context, tx *sql.Tx) (disagreement, error) {
	stored, err := entries.At(ctx, tx, r.session, r.at)
	if err != nil {
		return disagreement{}, err
	}
	data := []byte(stored)
	again := newComparing(r.db, r.session)
	again.differs = r.differs
	if err := again.read(ctx, tx); err != nil {
		return disagreement{}, err
	}
	var made []byte
	if again.wanted != nil {
		made = record.JSON(again.wanted)
	}
	d := disagreement{entry: r.at}
	shown, wanted := readable(data), readable(made)
	if shown == wanted { // the difference is not in the text for people
		shown, wanted = string(data), string(made)
	}
	d.shown, d.made = apart(shown, wanted)
	return d, nil
}

// readable returns the text of an entry for people, or the stored record of a damaged entry or an entry without text.
func readable(data []byte) string {
	var e transcript.Entry
	if json.Unmarshal(data, &e) == nil {
		if text := e.SearchText(); text != "" {
			return text
		}
	}
	return string(data)
}

// apart cuts two texts down to the surroundings of their first difference.
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
	have, err := entries.Ends(ctx, tx, r.session)
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

// compareRequests compares the requests of the journal with the table request. The answer to a request stands in the table alone, but a
// request whose agent has ended cannot wait any more.
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
		case q.over && status == "requested":
			d.different++
		}
		there++
	}
	d.missing = len(r.requests) - there
	return d, rows.Err()
}
