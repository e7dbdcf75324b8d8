package usage_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
	"deskhand/backend/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a tally on a database with the sessions s and t, of the agents claude and codex.
type fixture struct {
	*usage.Tally
	t  *testing.T
	db *store.DB
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{usage.New(usage.Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Agent: func(id string) string { return "The " + id },
	}), t, db}
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', '', '/', 0, 0, 0, 0)`)
	f.session("s", "claude", `{}`, ``)
	f.session("t", "codex", `{}`, ``)
	return f
}

func (f *fixture) session(id, agent, facts, origin string) {
	f.t.Helper()
	f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id,
		protocol_version, generation, facts, exit, created_at, updated_at, archived_at, origin)
		VALUES (?, 'local', 'w', '/', ?, ?, '', '[]', 0, 0, '', '', 1, 3, ?, '', ?, 0, 0, ?)`, id, agent, "Title of "+id, facts, moment("2026-11-01 09:00").UnixMilli(), origin)
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	f.write(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	})
}

func (f *fixture) write(do func(ctx context.Context, tx *sql.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error { return do(f.t.Context(), tx) }); err != nil {
		f.t.Fatal(err)
	}
}

// older stores a turn as a version without a tally has stored it.
func (f *fixture) older(session, id, ended, told string) {
	f.t.Helper()
	at := moment(ended).UnixMilli()
	f.exec(`INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES (?, ?, 1, 'done', 'end_turn', '', ?, ?, ?)`, id, session, told, at-1000, at)
	f.exec(`INSERT INTO tally_unfilled (session) VALUES (?) ON CONFLICT DO NOTHING`, session)
}

// spend counts a turn of ten seconds, of which the agent tells tokens and the cost of the session; "" = it tells none.
func (f *fixture) spend(session, id, ended, tokens, cost string) {
	f.t.Helper()
	f.tells(session, cost)
	at := moment(ended).UnixMilli()
	f.write(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES (?, ?, 1, 'done', 'end_turn', '', ?, ?, ?)
			ON CONFLICT DO UPDATE SET usage = excluded.usage, ended_at = excluded.ended_at`, id, session, tokens, at-10_000, at)
		return errors.Join(err, usage.TurnEnded(session, id)(ctx, tx))
	})
}

// tells has the agent tell the cost of a session; "" = it tells none.
func (f *fixture) tells(session, cost string) {
	f.t.Helper()
	if amount, currency, told := strings.Cut(cost, " "); told {
		f.exec(`UPDATE session SET facts = json_set(facts, '$.usage', json(?)) WHERE id = ?`, `{"used":1,"size":2,"cost":{"amount":`+amount+`,"currency":"`+currency+`"}}`, session)
	}
}

// moment is a time of UTC.
func moment(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return at
}

func noon() time.Time { return moment("2026-11-30 12:00") }

func (f *fixture) report(q usage.Query) usage.TallyReport {
	f.t.Helper()
	if q.Zone == "" {
		q.Zone = "UTC"
	}
	r, err := f.Report(f.t.Context(), q, noon())
	if err != nil {
		f.t.Fatalf("Report(%+v): got error %v, want none", q, err)
	}
	return r
}

// brief returns the rows of a report, each as its key, turns, tokens and costs.
func brief(r usage.TallyReport) (list []string) {
	for _, row := range r.Rows {
		text := fmt.Sprintf("%s: %d turns, %d tokens", row.Key, row.Sum.Turns, row.Sum.Tokens.Total)
		for _, c := range row.Sum.Costs {
			text += fmt.Sprintf(", %v %s", c.Amount, c.Currency)
		}
		list = append(list, text)
	}
	return list
}

// fill counts the older turns, as a start does.
func (f *fixture) fill() {
	f.t.Helper()
	f.Start(f.t.Context())
	f.Wait()
	f.Close()
	if n := f.report(usage.Query{}).Pending; n != 0 {
		f.t.Fatalf("conversations that are not counted: got %d, want none", n)
	}
}

func (f *fixture) wants(by string, want ...string) {
	f.t.Helper()
	if got := brief(f.report(usage.Query{By: by})); !slices.Equal(got, want) {
		f.t.Errorf("report by %s: got %q, want %q", by, got, want)
	}
}

func TestTurnsAreSummedByEachGroup(t *testing.T) {
	f := open(t)
	f.exec(`UPDATE session SET facts = ? WHERE id = 's'`, `{"options":[{"id":"model","category":"model","value":"opus"}],"account":{"kind":"account","label":"Claude Max","email":"ada@example.org"}}`)
	f.spend("s", "1", "2026-11-29 10:00", `{"inputTokens":10,"outputTokens":20,"cachedReadTokens":30,"cachedWriteTokens":"40","thoughtTokens":5,"totalTokens":100}`, "0.5 USD")
	f.spend("t", "2", "2026-11-30 10:00", `{"inputTokens":1,"outputTokens":2}`, "")
	f.spend("t", "3", "2026-11-30 11:00", `null`, "")
	f.spend("t", "4", "2026-10-30 11:00", `{"totalTokens":9}`, "") // before the first of 30 days

	f.wants(usage.ByDay, "2026-11-29: 1 turns, 100 tokens, 0.5 USD", "2026-11-30: 2 turns, 3 tokens")
	f.wants(usage.ByAgent, "claude: 1 turns, 100 tokens, 0.5 USD", "codex: 2 turns, 3 tokens")
	f.wants(usage.ByModel, "opus: 1 turns, 100 tokens, 0.5 USD", ": 2 turns, 3 tokens")
	f.wants(usage.ByAccount, "Claude Max (ada@example.org): 1 turns, 100 tokens, 0.5 USD", ": 2 turns, 3 tokens")
	f.wants(usage.BySession, "s: 1 turns, 100 tokens, 0.5 USD", "t: 2 turns, 3 tokens")

	r := f.report(usage.Query{By: usage.ByDay})
	want := usage.TurnSum{
		Turns: 3, Untold: 1, TookMs: 30_000, Tokens: usage.TokenSum{Input: 11, Output: 22, CachedRead: 30, CachedWrite: 40, Thought: 5, Total: 103},
		Costs: []transcript.Cost{{Amount: 0.5, Currency: "USD"}},
	}
	if !reflect.DeepEqual(r.Total, want) {
		t.Errorf("total: got %+v, want %+v", r.Total, want)
	}
	if r.From != "2026-11-01" || r.To != "2026-11-30" || r.Zone != "UTC" {
		t.Errorf("the usual days: got %s to %s in %s, want the 30 days until 2026-11-30 in UTC", r.From, r.To, r.Zone)
	}
	if a := r.Rows[0].Agents; len(a) != 1 || a[0].Agent != "claude" || a[0].Name != "The claude" || a[0].Sum.Tokens.Total != 100 {
		t.Errorf("agents of 2026-11-29: got %+v, want claude with 100 tokens", a)
	}
}

// A step is written again when the disk has refused it, and a program that was killed cannot know whether its last step was stored.
func TestTurnCountsOnce(t *testing.T) {
	f := open(t)
	f.spend("s", "1", "2026-11-30 10:00", `{"totalTokens":7}`, "1 USD")
	refused := errors.New("no space")
	f.older("s", "2", "2026-11-30 10:00", `{"totalTokens":8}`)
	f.exec(`DELETE FROM tally_unfilled`)
	f.tells("s", "3 USD")
	count := usage.TurnEnded("s", "2")
	err := f.db.Write(t.Context(), func(tx *sql.Tx) error { return errors.Join(count(t.Context(), tx), refused) })
	if !errors.Is(err, refused) {
		t.Fatalf("the refused transaction: got error %v, want %v", err, refused)
	}
	f.wants(usage.ByAgent, "claude: 1 turns, 7 tokens, 1 USD")
	f.write(count)
	f.write(count)
	f.tells("s", "5 USD")
	f.write(count)
	f.wants(usage.ByAgent, "claude: 2 turns, 15 tokens, 3 USD")
}

func TestCostIsDifferenceOfSessionsCost(t *testing.T) {
	for name, c := range map[string]struct {
		told []string // with each turn; "late " before a cost that is told without a turn
		want string
	}{
		"it grows":                                {[]string{"0.1 USD", "0.3 USD", "0.35 USD"}, "s: 3 turns, 0 tokens, 0.35 USD"},
		"the same again":                          {[]string{"0.1 USD", "0.1 USD"}, "s: 2 turns, 0 tokens, 0.1 USD"},
		"a new process counts from nothing":       {[]string{"0.5 USD", "0.2 USD", "0.3 USD"}, "s: 3 turns, 0 tokens, 0.8 USD"},
		"it is not told":                          {[]string{"", ""}, "s: 2 turns, 0 tokens"},
		"it is not told in between":               {[]string{"0.5 USD", "", "0.7 USD"}, "s: 3 turns, 0 tokens, 0.7 USD"},
		"between turns, of the last one":          {[]string{"0.5 USD", "late 0.6 USD", "0.7 USD"}, "s: 2 turns, 0 tokens, 0.7 USD"},
		"a start tells nothing yet":               {[]string{"0.5 USD", "late 0 USD", "0.7 USD"}, "s: 2 turns, 0 tokens, 1.2 USD"},
		"before the first turn, spent elsewhere":  {[]string{"late 3 USD", "late 4 USD", "4.5 USD"}, "s: 1 turns, 0 tokens, 0.5 USD"},
		"another currency":                        {[]string{"0.5 USD", "0.4 EUR", "0.6 EUR"}, "s: 3 turns, 0 tokens, 0.2 EUR, 0.5 USD"},
		"another currency between turns":          {[]string{"0.5 USD", "late 0.4 EUR", "0.6 EUR"}, "s: 2 turns, 0 tokens, 0.2 EUR, 0.5 USD"},
		"less than nothing":                       {[]string{"0.5 USD", "-3 USD", "0.6 USD"}, "s: 3 turns, 0 tokens, 0.6 USD"},
		"tenths add up":                           {[]string{"0.1 USD", "0.2 USD", "0.30000000000000004 USD"}, "s: 3 turns, 0 tokens, 0.3 USD"},
		"more money than there is":                {[]string{"1e300 USD", "0.2 USD"}, "s: 2 turns, 0 tokens, 0.2 USD"},
		"a turn without a cost has the next late": {[]string{"", "late 0.2 USD"}, "s: 1 turns, 0 tokens, 0.2 USD"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			for i, told := range c.told {
				if cost, late := strings.CutPrefix(told, "late "); late {
					f.tells("s", cost)
					f.write(usage.CostTold("s"))
					continue
				}
				f.spend("s", fmt.Sprint(i), "2026-11-30 10:00", ``, told)
			}
			f.wants(usage.BySession, c.want)
		})
	}
}

// A fork begins with the record of its parent, cost included, and some agents go on counting there.
func TestForkDoesNotCountCostOfParent(t *testing.T) {
	for told, want := range map[string]string{
		"":        "fork: 1 turns, 0 tokens, 0 USD",   // the parent's, as the record has it
		"2.5 USD": "fork: 1 turns, 0 tokens, 0.5 USD", // the agent goes on
		"0.5 USD": "fork: 1 turns, 0 tokens, 0.5 USD", // the agent counts from nothing
	} {
		f := open(t)
		f.session("fork", "claude", `{"usage":{"cost":{"amount":2,"currency":"USD"}}}`, `{"kind":"fork","session":"s"}`)
		f.write(usage.CostTold("fork"))
		f.spend("s", "1", "2026-11-01 08:00", ``, "2 USD")
		f.spend("s", "2", "2026-11-20 08:00", ``, "9 USD") // after the fork was made
		f.spend("fork", "3", "2026-11-21 08:00", ``, told)
		if got := brief(f.report(usage.Query{By: usage.BySession})); !slices.Contains(got, want) {
			t.Errorf("fork with a cost of %q: got %q, want %q among them", told, got, want)
		}
	}
}

// A branch is a session of the agent's own, which counts from nothing.
func TestBranchCountsItsOwnCost(t *testing.T) {
	f := open(t)
	f.session("branch", "claude", `{}`, `{"kind":"branch","session":"s"}`)
	f.spend("s", "1", "2026-11-01 08:00", ``, "2 USD")
	f.spend("branch", "2", "2026-11-21 08:00", ``, "3 USD")
	f.wants(usage.BySession, "branch: 1 turns, 0 tokens, 3 USD", "s: 1 turns, 0 tokens, 2 USD")
}

func TestOlderTurnsAreCountedOnce(t *testing.T) {
	f := open(t)
	f.exec(`UPDATE session SET facts = '{"options":[{"id":"m","category":"model","value":"opus"}],"usage":{"used":1,"size":2,"cost":{"amount":0.7,"currency":"USD"}}}' WHERE id = 's'`)
	f.older("s", "1", "2026-11-28 10:00", `{"totalTokens":7}`)
	f.older("s", "2", "2026-11-29 10:00", `{"totalTokens":"8"}`)
	f.older("t", "3", "2026-11-29 10:00", `{broken`)
	if r := f.report(usage.Query{}); r.Pending != 2 || len(r.Rows) != 0 {
		t.Errorf("before the start: got %d pending and %q, want 2 and nothing", r.Pending, brief(r))
	}
	f.fill()
	f.fill()
	f.wants(usage.ByDay, "2026-11-28: 1 turns, 7 tokens", "2026-11-29: 2 turns, 8 tokens, 0.7 USD")
	f.wants(usage.ByModel, "opus: 2 turns, 15 tokens, 0.7 USD", ": 1 turns, 0 tokens")
	f.spend("s", "4", "2026-11-30 10:00", ``, "0.9 USD")
	f.wants(usage.BySession, "s: 3 turns, 15 tokens, 0.9 USD", "t: 1 turns, 0 tokens")
}

// A conversation may go on before its older turns are counted. Its turn is stored already when it is counted.
func TestTurnBeforeOlderTurnsAreCounted(t *testing.T) {
	f := open(t)
	f.exec(`UPDATE session SET facts = '{"usage":{"cost":{"amount":0.9,"currency":"USD"}}}' WHERE id = 's'`)
	f.older("s", "1", "2026-11-28 10:00", `{"totalTokens":7}`)
	f.spend("s", "2", "2026-11-30 10:00", `{"totalTokens":8}`, "0.9 USD")
	f.write(usage.CostTold("s"))
	f.fill()
	f.wants(usage.ByDay, "2026-11-28: 1 turns, 7 tokens", "2026-11-30: 1 turns, 8 tokens, 0.9 USD")
}

// A fork has the turns of its parent as its own, with other ids and the same times.
func TestOlderForkDoesNotCountTurnsOfParent(t *testing.T) {
	f := open(t)
	f.session("fork", "claude", `{"usage":{"cost":{"amount":0.9,"currency":"USD"}}}`, `{"kind":"fork","session":"s"}`)
	f.older("s", "1", "2026-10-28 10:00", `{"totalTokens":7}`)
	f.older("fork", "1-fork", "2026-10-28 10:00", `{"totalTokens":7}`)
	f.older("fork", "2", "2026-11-28 10:00", `{"totalTokens":8}`)
	f.fill()
	r := f.report(usage.Query{From: "2026-10-01", By: usage.BySession})
	if got, want := brief(r), []string{"fork: 1 turns, 8 tokens", "s: 1 turns, 7 tokens"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: nobody knows what of the cost is the fork's", got, want)
	}
}

func TestDeletedSessionsLeaveTheirNumbers(t *testing.T) {
	f := open(t)
	f.session("u", "claude", `{}`, ``)
	f.spend("s", "1", "2026-11-30 10:00", `{"totalTokens":7}`, "1 USD")
	f.spend("t", "2", "2026-11-30 10:00", `{"totalTokens":8}`, "1 USD")
	f.spend("u", "3", "2026-11-30 10:00", `{"totalTokens":1}`, "")
	f.exec(`DELETE FROM session WHERE id = 's'`)
	f.exec(`UPDATE session SET deleted_at = 1 WHERE id = 't'`) // can still be undone
	f.wants(usage.BySession, ": 2 turns, 15 tokens, 2 USD", "u: 1 turns, 1 tokens")
	if row := f.report(usage.Query{By: usage.BySession}).Rows[0]; row.Deleted != 2 || row.Name != "" {
		t.Errorf("the row of deleted sessions: got %d and the name %q, want 2 and none", row.Deleted, row.Name)
	}
}

// The clocks of Berlin go forward on 29 March 2026 and back on 25 October 2026, those of Cairo forward at the midnight of 24 April.
func TestDaysBeginWhereTheZoneSays(t *testing.T) {
	for _, c := range []struct {
		zone, day, last, first string // first and last moment of the day, in UTC
		hours                  int
	}{
		{"UTC", "2026-03-29", "2026-03-29 23:59", "2026-03-29 00:00", 24},
		{"Europe/Berlin", "2026-03-29", "2026-03-29 21:59", "2026-03-28 23:00", 23},
		{"Europe/Berlin", "2026-10-25", "2026-10-25 22:59", "2026-10-24 22:00", 25},
		{"Africa/Cairo", "2026-04-24", "2026-04-24 20:59", "2026-04-23 22:00", 23},
		{"America/Havana", "2026-11-01", "2026-11-02 04:59", "2026-11-01 04:00", 25},
		{"+05:30", "2026-03-29", "2026-03-29 18:29", "2026-03-28 18:30", 24},
		{"-0800", "2026-03-29", "2026-03-30 07:59", "2026-03-29 08:00", 24},
		{"+02", "2026-03-29", "2026-03-29 21:59", "2026-03-28 22:00", 24},
	} {
		f := open(t)
		first, last := moment(c.first), moment(c.last)
		if hours := int(last.Add(time.Minute).Sub(first) / time.Hour); hours != c.hours {
			t.Fatalf("%s in %s: got %d hours in the test, want %d", c.day, c.zone, hours, c.hours)
		}
		for i, at := range []time.Time{first.Add(-time.Minute), first, last, last.Add(time.Minute)} {
			f.spend("s", fmt.Sprint(i), at.Format("2006-01-02 15:04"), fmt.Sprintf(`{"totalTokens":%d}`, []int{1, 10, 100, 1000}[i]), "")
		}
		r := f.report(usage.Query{From: c.day, To: c.day, Zone: c.zone})
		if got, want := brief(r), []string{c.day + ": 2 turns, 110 tokens"}; !slices.Equal(got, want) || r.From != c.day || r.To != c.day {
			t.Errorf("%s in %s: got %q from %s to %s, want %q", c.day, c.zone, got, r.From, r.To, want)
		}
	}
}

func TestBadQueriesAreRefused(t *testing.T) {
	f := open(t)
	for want, list := range map[string][]usage.Query{
		"usage.day":  {{From: "yesterday"}, {To: "2026-02-30"}, {From: "2026-1-1"}},
		"usage.span": {{From: "2026-11-02", To: "2026-11-01"}, {From: "2000-01-01", To: "2026-01-01"}},
		"usage.zone": {{Zone: "Mars/Olympus"}, {Zone: "../../etc/passwd"}, {Zone: "+99:00"}},
	} {
		for _, q := range list {
			_, err := f.Report(t.Context(), q, noon())
			if refused, is := errors.AsType[*refusal.Error](err); !is || refused.Code != want || !refused.Bad {
				t.Errorf("Report(%+v): got %v, want the refusal %s", q, err, want)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	f := open(t)
	f.exec(`UPDATE session SET title = '=HYPERLINK("https://example.org","a, b")' WHERE id = 's'`)
	f.exec(`UPDATE session SET title = ' +1' WHERE id = 't'`)
	f.spend("s", "1", "2026-11-30 10:00", `{"inputTokens":4,"outputTokens":3,"totalTokens":7}`, "1.25 USD")
	f.spend("t", "2", "2026-11-30 10:00", ``, "3 EUR")
	f.session("gone", "claude", `{}`, ``)
	f.spend("gone", "3", "2026-11-30 10:00", ``, "")
	f.exec(`DELETE FROM session WHERE id = 'gone'`)
	var out bytes.Buffer
	if err := f.report(usage.Query{By: usage.BySession}).WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`session,name,turns,turns without tokens,seconds,tokens,input tokens,output tokens,cached tokens read,cached tokens written,thought tokens,cost EUR,cost USD
s,"'=HYPERLINK(""https://example.org"",""a, b"")",1,0,10,7,4,3,0,0,0,,1.25
,deleted conversations: 1,1,1,10,0,0,0,0,0,0,,
t,' +1,1,1,10,0,0,0,0,0,0,3,
`, "\n", "\r\n")
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if lines, err := csv.NewReader(&out).ReadAll(); err != nil || len(lines) != 4 {
		t.Errorf("read again: got %d lines and error %v, want 4", len(lines), err)
	}
}

func TestReportOfAYearReadsIndex(t *testing.T) {
	f := open(t)
	plan := storetest.Plan(t, f.db, `SELECT n FROM tally t LEFT JOIN session s ON s.id = t.session WHERE t.ended_at >= 1 AND t.ended_at < 2`)
	if !strings.Contains(plan, "tally_ended") {
		t.Errorf("plan of a report: got %s, want the index tally_ended", plan)
	}
}

// A turn that cannot be counted must not keep its conversation from being stored.
func TestDamageCountsNothing(t *testing.T) {
	f := open(t)
	f.tells("s", "1 USD")
	f.exec(`DROP TABLE tally`)
	f.write(usage.TurnEnded("s", "1"))
	f.write(usage.CostTold("s"))
}
