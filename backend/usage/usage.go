// Package usage keeps the tally: what each ended turn took in tokens, money and time, and the sums of it by day, agent, model, account and
// conversation.
//
// A turn is counted in the transaction that stores its end, by its id, so it counts once whatever fails. The turns of before there was a
// tally are counted in the background, a session at a time. The tally outlives conversations: a deleted one leaves its numbers, without its
// title and its messages.
//
// Agents tell the cost of a whole session, so a turn has the difference to the cost that was told before. A cost that has become smaller is
// one that the agent counts from nothing again, as some do in a new process: all of it is of the turn. A cost in another currency than
// before says nothing about the turn, and is where the next difference begins.
package usage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/record"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Deps are the surroundings of a Tally.
type Deps struct {
	Store  *store.DB
	Logger *slog.Logger
	Agent  func(id string) string // the name of an agent
}

// Tally is the tally of a database. Any goroutine may call the methods of Tally.
type Tally struct {
	deps Deps
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// New returns the tally of a database. The turns of before there was a tally are counted between Start and Close.
func New(deps Deps) *Tally { return &Tally{deps: deps, stop: func() {}} }

// Start begins to count the turns of before there was a tally, until Close or until all are counted. Data that a newer version has written
// is left as it is.
func (t *Tally) Start(ctx context.Context) {
	if t.deps.Store.Newer() != nil {
		return
	}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.wg.Go(func() {
		if err := t.fill(ctx); err != nil && ctx.Err() == nil {
			t.deps.Logger.Error("the turns of older conversations are not all counted; the next start goes on", "error", err)
		}
	})
}

// Close ends the counting of older turns, and waits for its end. What is left is counted after the next Start.
func (t *Tally) Close() {
	t.stop()
	t.wg.Wait()
}

// TurnEnded returns the write that counts a turn. The write must run in the transaction that stores the end of the turn, after the rows of the
// session and of the turn are written. A turn that is counted already stays as it is.
func TurnEnded(session, turn string) func(ctx context.Context, tx *sql.Tx) error {
	return undamaged(func(ctx context.Context, tx *sql.Tx) error {
		of, err := spenderOf(ctx, tx, session, turn)
		if err != nil || of == nil {
			return err
		}
		return of.count(ctx, tx, turn)
	})
}

// undamaged has a write count nothing where the database is damaged: a conversation could not be stored otherwise, and a verification reports the
// damage.
func undamaged(write func(ctx context.Context, tx *sql.Tx) error) func(ctx context.Context, tx *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		err := write(ctx, tx)
		if store.Corrupt(err) {
			return nil
		}
		return err
	}
}

// count counts a turn with its cost.
func (of *spender) count(ctx context.Context, tx *sql.Tx, turn string) error {
	list, err := turnsOf(ctx, tx, `WHERE session = ? AND id = ?`, of.session, turn)
	if err != nil {
		return err
	}
	before, err := of.toldBefore(ctx, tx)
	if err != nil {
		return err
	}
	told := of.told()
	for _, t := range list {
		r := of.row(t)
		if r.cost, r.told = told.since(before, true), told; !told.known {
			r.told = before
		}
		if err := r.insert(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// CostTold returns the write for a cost that an agent told while no turn ran. The write must run in the transaction that stores the row of the
// session. What came to the session's cost since its last turn is of that turn; before the first turn the cost was spent elsewhere.
func CostTold(session string) func(ctx context.Context, tx *sql.Tx) error {
	return undamaged(func(ctx context.Context, tx *sql.Tx) error {
		of, err := spenderOf(ctx, tx, session, "")
		if err != nil || of == nil || !of.told().known {
			return err
		}
		return of.addCost(ctx, tx)
	})
}

func (of *spender) addCost(ctx context.Context, tx *sql.Tx) error {
	told := of.told()
	var n int64
	err := tx.QueryRowContext(ctx, `SELECT n FROM tally WHERE session = ? ORDER BY n DESC LIMIT 1`, of.session).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) && of.forked {
		return nil // the record of a fork begins with the cost of its parent
	}
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO tally_before (session, told, told_currency) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET told = excluded.told, told_currency = excluded.told_currency`, of.session, told.nanos, told.currency)
		return err
	}
	if err != nil {
		return err
	}
	before, err := of.toldBefore(ctx, tx)
	if err != nil {
		return err
	}
	if more := told.since(before, false); more.nanos > 0 {
		_, err = tx.ExecContext(ctx, `UPDATE tally SET cost = coalesce(cost, 0) + ?, currency = ? WHERE n = ? AND currency IN ('', ?)`, more.nanos, more.currency, n, more.currency)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE tally SET told = ?, told_currency = ? WHERE n = ?`, told.nanos, told.currency, n)
	}
	return err
}

// spender is a session, for the turns that it spends.
type spender struct {
	session, place, agent string
	parent                string // the session that this one was made from
	forked, branched      bool   // how this one was made from the parent: the agent goes on in both, or begins anew
	createdAt             time.Time
	facts                 transcript.Facts
	unfilled              bool // the turns of before there was a tally are not counted
}

// load returns a stored session; nil when the session is gone.
func load(ctx context.Context, tx *sql.Tx, session string) (*spender, error) {
	of := &spender{session: session}
	var facts, origin string
	var created int64
	err := tx.QueryRowContext(ctx, `SELECT s.place, s.agent, s.facts, s.origin, s.created_at, u.session IS NOT NULL FROM session s LEFT JOIN tally_unfilled u ON u.session = s.id WHERE s.id = ?`, session).
		Scan(&of.place, &of.agent, &facts, &origin, &created, &of.unfilled)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is nothing to count
	}
	if err != nil {
		return nil, err
	}
	of.createdAt, of.facts = time.UnixMilli(created), record.Sound[transcript.Facts](facts)
	from := record.Sound[struct{ Kind, Session string }](origin)
	of.parent, of.forked, of.branched = from.Session, from.Kind == "fork", from.Kind == "branch"
	return of, nil
}

// spenderOf returns a stored session whose older turns are counted, without their cost: that is in the cost that the caller counts. except is a turn
// that the caller counts. spenderOf returns nil when the session is gone.
func spenderOf(ctx context.Context, tx *sql.Tx, session, except string) (*spender, error) {
	of, err := load(ctx, tx, session)
	if err != nil || of == nil || !of.unfilled {
		return of, err
	}
	return of, of.fill(ctx, tx, except)
}

// told returns the cost of the session as the agent told it last.
func (of *spender) told() money {
	if of.facts.Usage == nil {
		return money{}
	}
	return moneyOf(of.facts.Usage.Cost)
}

// row returns the row of a turn, without its cost.
func (of *spender) row(t turn) row {
	r := row{
		turn: t.id, session: of.session, place: of.place, agent: of.agent, model: of.facts.ModelInUse(), account: accountOf(of.facts),
		endedAt: t.endedAt, tookMs: max(0, t.endedAt-t.startedAt),
	}
	r.tokens, _ = acp.ParseTokens(json.RawMessage(t.usage))
	return r
}

// toldBefore returns the cost of the session that was told before a turn: with the session's last turn, else before its first turn, else what the
// session that this one was forked from had cost by then.
func (of *spender) toldBefore(ctx context.Context, tx *sql.Tx) (before money, err error) {
	queries := []query{
		{`SELECT told, told_currency FROM tally WHERE session = ? ORDER BY n DESC LIMIT 1`, []any{of.session}},
		{`SELECT told, told_currency FROM tally_before WHERE session = ?`, []any{of.session}},
	}
	if of.forked {
		queries = append(queries, query{`SELECT told, told_currency FROM tally WHERE session = ? AND ended_at <= ? ORDER BY n DESC LIMIT 1`, []any{of.parent, of.createdAt.UnixMilli()}})
	}
	for _, q := range queries {
		var nanos sql.NullInt64
		err = tx.QueryRowContext(ctx, q.text, q.args...).Scan(&nanos, &before.currency)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		before.nanos, before.known = nanos.Int64, nanos.Valid
		return before, err
	}
	return money{}, nil
}

type query struct {
	text string
	args []any
}

// accountOf returns the account of a session in words; "" where the agent tells none, or nobody is signed in.
func accountOf(f transcript.Facts) string {
	if f.Account == nil || f.Account.SignedOut() {
		return ""
	}
	return f.Account.Words()
}

// money is an amount in billionths of a currency, so that sums are exact. Amounts of different currencies are never added.
type money struct {
	nanos    int64
	currency string
	known    bool
}

const (
	nanosOfOne = 1e9
	mostOfCost = 1e9 // of a currency; more is no cost of a conversation
)

func moneyOf(c *transcript.Cost) money {
	if c == nil || math.IsNaN(c.Amount) || c.Amount < 0 || c.Amount > mostOfCost {
		return money{}
	}
	return money{int64(math.Round(c.Amount * nanosOfOne)), transcript.Clip(c.Currency, longestCurrency), true}
}

const longestCurrency = 16 // bytes; ISO 4217 has three letters

// since returns what came to a session's cost since an earlier moment; unknown where that cannot be told. again says that a smaller cost counts
// as one that begins at nothing.
func (m money) since(before money, again bool) money {
	switch {
	case !m.known:
		return money{}
	case !before.known:
		return m
	case before.currency != m.currency:
		return money{}
	case m.nanos >= before.nanos:
		m.nanos -= before.nanos
	case !again:
		m.nanos = 0
	}
	return m
}

// row is a turn in the tally.
type row struct {
	turn, session, place, agent, model, account string
	endedAt, tookMs                             int64
	tokens                                      acp.Tokens
	cost, told                                  money
}

func (m money) column() sql.NullInt64 { return sql.NullInt64{Int64: m.nanos, Valid: m.known} }

func (r row) insert(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO tally (turn, session, place, agent, model, account, ended_at, took_ms, input, output, cached_read, cached_write, thought, total,
		cost, currency, told, told_currency) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (turn) DO NOTHING`,
		r.turn, r.session, r.place, r.agent, r.model, r.account, r.endedAt, r.tookMs, r.tokens.Input, r.tokens.Output, r.tokens.CachedRead, r.tokens.CachedWrite,
		r.tokens.Thought, r.tokens.Total, r.cost.column(), r.cost.currency, r.told.column(), r.told.currency)
	return err
}

// fill counts the turns of before there was a tally.
func (t *Tally) fill(ctx context.Context) error {
	for {
		list, err := record.Query(ctx, t.deps.Store.Read(), record.ScanText, `SELECT session FROM tally_unfilled LIMIT 100`)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, session := range list {
			if err := t.deps.Store.Write(ctx, func(tx *sql.Tx) error { return fillWhole(ctx, tx, session) }); err != nil {
				return err
			}
		}
	}
}

// fillWhole counts the older turns of a session, if they are not counted yet. The session's cost is of the last of them, since agents tell no
// other; that of a fork is left out, because nobody knows how much of it is the parent's.
func fillWhole(ctx context.Context, tx *sql.Tx, session string) error {
	of, err := load(ctx, tx, session)
	switch {
	case err != nil:
		return err
	case of == nil: // the session was erased
		_, err := tx.ExecContext(ctx, `DELETE FROM tally_unfilled WHERE session = ?`, session)
		return err
	case !of.unfilled:
		return nil
	}
	told := of.told()
	if err := of.fill(ctx, tx, ""); err != nil || !told.known {
		return err
	}
	cost := told
	if of.forked {
		cost = money{}
	}
	_, err = tx.ExecContext(ctx, `UPDATE tally SET cost = ?, currency = ?, told = ?, told_currency = ? WHERE n = (SELECT max(n) FROM tally WHERE session = ?)`,
		cost.column(), cost.currency, told.column(), told.currency, session)
	return err
}

// fill counts the older turns without their cost. The turns that a fork has copied from its parent are the parent's: they began before the fork
// was made.
func (of *spender) fill(ctx context.Context, tx *sql.Tx, except string) error {
	list, err := turnsOf(ctx, tx, `WHERE session = ? AND state = 'done' AND id <> ? ORDER BY started_at, id`, of.session, except)
	if err != nil {
		return err
	}
	for _, t := range list {
		if (of.forked || of.branched) && t.startedAt < of.createdAt.UnixMilli() {
			continue
		}
		if err := of.row(t).insert(ctx, tx); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM tally_unfilled WHERE session = ?`, of.session)
	return err
}

// turn is a stored turn that has ended. The times are in Unix milliseconds.
type turn struct {
	id, usage          string
	startedAt, endedAt int64
}

// turnsOf returns the turns that a WHERE clause selects.
func turnsOf(ctx context.Context, tx *sql.Tx, where string, args ...any) (list []turn, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, usage, started_at, max(started_at, ended_at) FROM turn `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t turn
		if err := rows.Scan(&t.id, &t.usage, &t.startedAt, &t.endedAt); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, rows.Err()
}
