package usage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the names of time zones, on systems that have none

	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// Codes of refusals; the params are value, and name, which is from, to or zone.
const (
	refusedDay  = "usage.day"  // no date such as 2026-11-30
	refusedSpan = "usage.span" // the last day is before the first, or more than ten years after it
	refusedZone = "usage.zone" // no known time zone
)

// The groups of a report.
const (
	ByDay     = "day"
	ByAgent   = "agent"
	ByModel   = "model"
	ByAccount = "account"
	BySession = "session"
)

// Groups returns all groups of a report.
func Groups() []string { return []string{ByDay, ByAgent, ByModel, ByAccount, BySession} }

// Query asks for the sums of some days.
type Query struct {
	From string // the first day, as 2026-11-01; "" = 29 days before To
	To   string // the last day; "" = today
	Zone string // where the days begin: an IANA name, or an offset such as +05:30; "" = the zone of this machine
	By   string // one of Groups; "" = day
}

// TallyReport is the sums of some days. The list is complete: a group without a turn is left out.
type TallyReport struct {
	From    string     `json:"from" doc:"First day"`
	To      string     `json:"to" doc:"Last day"`
	Zone    string     `json:"zone" doc:"Time zone in which the days begin"`
	By      string     `json:"by" enum:"day,agent,model,account,session"`
	Pending int        `json:"pending,omitempty" doc:"How many conversations of before there was a tally are still to be counted"`
	Total   TurnSum    `json:"total"`
	Rows    []TallyRow `json:"rows" doc:"Days in order; other groups with the most tokens first"`
}

// TallyRow is the sum of a group.
type TallyRow struct {
	Key     string     `json:"key" doc:"The day, or the id of the agent or the session, or the model or the account in words; empty for a model or an account that nobody knows, and for all deleted sessions together"`
	Name    string     `json:"name,omitempty" doc:"Name of the agent, or title of the session"`
	Agent   string     `json:"agent,omitempty" doc:"Of a session, the id of its agent; of a model or an account, that of the agent that used it last"`
	Deleted int        `json:"deleted,omitempty" doc:"How many deleted sessions the row is the sum of"`
	Sum     TurnSum    `json:"sum"`
	Agents  []AgentSum `json:"agents,omitempty" doc:"Of a day, the part of each agent"`
}

// AgentSum is the part of an agent.
type AgentSum struct {
	Agent string  `json:"agent" doc:"Id of the agent"`
	Name  string  `json:"name"`
	Sum   TurnSum `json:"sum"`
}

// TurnSum is what some turns took.
type TurnSum struct {
	Turns  int               `json:"turns"`
	Untold int               `json:"untold,omitempty" doc:"Turns among them of which the agent told no tokens"`
	TookMs int64             `json:"tookMs" doc:"How long the turns ran together, in milliseconds"`
	Tokens TokenSum          `json:"tokens"`
	Costs  []transcript.Cost `json:"costs" doc:"As the agents told them, one a currency; empty where none told a cost"`
}

// TokenSum is numbers of tokens.
type TokenSum struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CachedRead  int64 `json:"cachedRead"`
	CachedWrite int64 `json:"cachedWrite"`
	Thought     int64 `json:"thought" doc:"Agents differ in whether these are a part of the output"`
	Total       int64 `json:"total" doc:"As the agents told it"`
}

// span is the days of a query.
type span struct {
	from, to time.Time // the beginnings of the first day, and of the day after the last
	zone     *time.Location
}

const (
	dayLayout  = time.DateOnly
	usualSpan  = 30 // days
	longestLen = 10 // years
)

// span returns the days of a query as times. A day begins where its zone says, so that one may have 23 or 25 hours.
func (q Query) span(now time.Time) (s span, err error) {
	if s.zone, err = ZoneOf(q.Zone); err != nil {
		return s, err
	}
	last := s.begin(now.In(s.zone).Date())
	if q.To != "" {
		if last, err = s.day("to", q.To); err != nil {
			return s, err
		}
	}
	s.to, s.from = s.begin(last.AddDate(0, 0, 1).Date()), s.begin(last.AddDate(0, 0, 1-usualSpan).Date())
	if q.From != "" {
		if s.from, err = s.day("from", q.From); err != nil {
			return s, err
		}
	}
	if s.from.After(last) || s.from.AddDate(longestLen, 0, 0).Before(last) {
		return s, refusal.Bad(refusedSpan, "from", s.from.Format(dayLayout), "to", last.Format(dayLayout))
	}
	return s, nil
}

func (s span) day(name, value string) (time.Time, error) {
	day, err := time.Parse(dayLayout, value)
	if err != nil {
		return day, refusal.Bad(refusedDay, "name", name, "value", value)
	}
	return s.begin(day.Date()), nil
}

// begin returns the first moment of a day. Some zones change their clocks at midnight: then a day has no midnight, or two of them.
func (s span) begin(year int, month time.Month, date int) time.Time {
	t := time.Date(year, month, date, 0, 0, 0, 0, s.zone)
	for t.Day() != date {
		t = t.Add(30 * time.Minute) // clocks change by whole or half hours
	}
	if before := t.Add(-time.Hour); before.Day() == date {
		t = before
	}
	return t
}

// ZoneOf returns a time zone by its IANA name, or by its offset from UTC: +05:30, -0800, +02. "" is the zone of this machine.
func ZoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if at, err := time.Parse(layout, name); err == nil {
			_, seconds := at.Zone()
			return time.FixedZone(name, seconds), nil
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, refusal.Bad(refusedZone, "name", "zone", "value", name)
	}
	return zone, nil
}

// counted is a row of the tally with what a report needs of its session.
type counted struct {
	row
	hasTokens bool
	title     string
	deleted   bool
}

// Report returns the sums of a query. now is the present.
func (t *Tally) Report(ctx context.Context, q Query, now time.Time) (TallyReport, error) {
	s, err := q.span(now)
	if err != nil {
		return TallyReport{}, err
	}
	r := TallyReport{From: s.from.Format(dayLayout), To: s.to.Add(-time.Nanosecond).Format(dayLayout), Zone: s.zone.String(), By: cmp.Or(q.By, ByDay)}
	if !slices.Contains(Groups(), r.By) {
		return TallyReport{}, fmt.Errorf("a report by %q: %w", r.By, errors.ErrUnsupported)
	}
	if err := t.deps.Store.Read().QueryRowContext(ctx, `SELECT count(*) FROM tally_unfilled`).Scan(&r.Pending); err != nil {
		return TallyReport{}, err
	}
	all, groups := newTotal(), map[string]*group{}
	err = t.each(ctx, s, func(c counted) {
		all.add(c)
		key := c.key(r.By, s.zone)
		if groups[key] == nil {
			groups[key] = &group{total: newTotal(), agents: map[string]*total{}, deleted: map[string]bool{}}
		}
		groups[key].add(c)
	})
	r.Total = all.sum()
	r.Rows = make([]TallyRow, 0, len(groups))
	for key, g := range groups {
		r.Rows = append(r.Rows, t.row(r.By, key, g))
	}
	slices.SortFunc(r.Rows, func(a, b TallyRow) int {
		if r.By == ByDay {
			return strings.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Sum.Tokens.Total, a.Sum.Tokens.Total), cmp.Compare(b.Sum.Turns, a.Sum.Turns), strings.Compare(a.Key, b.Key))
	})
	return r, err
}

// each passes the rows of a span to do, in the order of their ends.
func (t *Tally) each(ctx context.Context, s span, do func(counted)) error {
	rows, err := t.deps.Store.Read().QueryContext(ctx, `SELECT t.session, t.agent, t.model, t.account, t.ended_at, t.took_ms, coalesce(t.input, 0), coalesce(t.output, 0),
		coalesce(t.cached_read, 0), coalesce(t.cached_write, 0), coalesce(t.thought, 0), coalesce(t.total, 0), t.total IS NOT NULL OR t.thought IS NOT NULL,
		t.cost, t.currency, coalesce(s.title, ''), coalesce(s.deleted_at, 1) <> 0
		FROM tally t LEFT JOIN session s ON s.id = t.session WHERE t.ended_at >= ? AND t.ended_at < ? ORDER BY t.ended_at, t.n`, s.from.UnixMilli(), s.to.UnixMilli())
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c counted
		var tokens [6]int64
		var cost sql.NullInt64
		err := rows.Scan(&c.session, &c.agent, &c.model, &c.account, &c.endedAt, &c.tookMs, &tokens[0], &tokens[1], &tokens[2], &tokens[3], &tokens[4], &tokens[5], &c.hasTokens,
			&cost, &c.cost.currency, &c.title, &c.deleted)
		if err != nil {
			return err
		}
		k := &c.tokens
		k.Input, k.Output, k.CachedRead, k.CachedWrite, k.Thought, k.Total = &tokens[0], &tokens[1], &tokens[2], &tokens[3], &tokens[4], &tokens[5]
		c.cost.nanos, c.cost.known = cost.Int64, cost.Valid
		do(c)
	}
	return rows.Err()
}

// key returns the group of a row.
func (c counted) key(by string, zone *time.Location) string {
	switch by {
	case ByAgent:
		return c.agent
	case ByModel:
		return c.model
	case ByAccount:
		return c.account
	case BySession:
		if c.deleted {
			return ""
		}
		return c.session
	}
	return time.UnixMilli(c.endedAt).In(zone).Format(dayLayout)
}

// group is the rows of a group.
type group struct {
	*total
	agent, title string // of the last row
	agents       map[string]*total
	deleted      map[string]bool // the deleted sessions among the rows
}

func (g *group) add(c counted) {
	g.total.add(c)
	if g.agents[c.agent] == nil {
		g.agents[c.agent] = newTotal()
	}
	g.agents[c.agent].add(c)
	g.agent, g.title = c.agent, c.title
	if c.deleted {
		g.deleted[c.session] = true
	}
}

// row returns the row of a group.
func (t *Tally) row(by, key string, g *group) TallyRow {
	r := TallyRow{Key: key, Sum: g.sum()}
	switch by {
	case ByDay:
		for _, id := range slices.Sorted(maps.Keys(g.agents)) {
			r.Agents = append(r.Agents, AgentSum{id, t.deps.Agent(id), g.agents[id].sum()})
		}
	case ByAgent:
		r.Name = t.deps.Agent(key)
	case BySession:
		if key == "" {
			r.Deleted = len(g.deleted)
			return r
		}
		r.Name, r.Agent = g.title, g.agent
	default:
		r.Agent = g.agent
	}
	return r
}

// total adds rows up.
type total struct {
	s     TurnSum
	nanos map[string]int64
}

func newTotal() *total { return &total{nanos: map[string]int64{}} }

func (a *total) add(c counted) {
	a.s.Turns++
	if !c.hasTokens {
		a.s.Untold++
	}
	a.s.TookMs += c.tookMs
	k := &a.s.Tokens
	k.Input += *c.tokens.Input
	k.Output += *c.tokens.Output
	k.CachedRead += *c.tokens.CachedRead
	k.CachedWrite += *c.tokens.CachedWrite
	k.Thought += *c.tokens.Thought
	k.Total += *c.tokens.Total
	if c.cost.known {
		a.nanos[c.cost.currency] += c.cost.nanos
	}
}

func (a *total) sum() TurnSum {
	s := a.s
	s.Costs = make([]transcript.Cost, 0, len(a.nanos))
	for _, currency := range slices.Sorted(maps.Keys(a.nanos)) {
		s.Costs = append(s.Costs, transcript.Cost{Amount: amount(a.nanos[currency]), Currency: currency})
	}
	return s
}

// amount returns billionths as the number that is the nearest to them.
func amount(nanos int64) float64 {
	f, err := strconv.ParseFloat(strconv.FormatInt(nanos, 10)+"e-9", 64)
	if err != nil {
		panic(err) // digits are a number
	}
	return f
}
