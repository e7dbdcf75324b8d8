package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// fixture is an index that is not started, over a database of its own.
type fixture struct {
	*Index
	tb testing.TB
	db *store.DB
}

func open(tb testing.TB) *fixture {
	tb.Helper()
	f := openAt(tb, tb.TempDir())
	tb.Cleanup(f.close)
	return f
}

func openAt(tb testing.TB, dir string) *fixture {
	tb.Helper()
	db := storetest.Open(tb, dir)
	return &fixture{tb: tb, db: db, Index: New(Deps{Store: db, Logger: slog.New(slog.DiscardHandler), AgentName: func(id string) string { return "Agent " + id }})}
}

func (f *fixture) close() {
	f.tb.Helper()
	f.Close()
	if err := f.db.Close(); err != nil {
		f.tb.Error(err)
	}
}

func (f *fixture) exec(statement string, args ...any) {
	f.tb.Helper()
	err := f.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(context.Background(), statement, args...)
		return err
	})
	if err != nil {
		f.tb.Fatalf("%s: got %v, want it done", statement, err)
	}
}

func (f *fixture) number(query string) (n int) {
	f.tb.Helper()
	if err := f.db.Read().QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		f.tb.Fatalf("%s: got %v, want a number", query, err)
	}
	return n
}

// session stores a session of an agent in the workspace "here".
func (f *fixture) session(agent string) string {
	f.tb.Helper()
	id := uuid.Must(uuid.NewV7()).String()
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('here', 'local', '/here', 0, 0, 0, 0) ON CONFLICT DO NOTHING`)
	f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at) VALUES (?, 'local', 'here', '/here', ?, 'A title', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 0, 0, 0)`, id, agent)
	return id
}

// enter stores entries in a session, from number 1 on.
func (f *fixture) enter(session string, count int, entry func(n int) transcript.Entry) {
	f.tb.Helper()
	err := f.db.Write(context.Background(), func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(context.Background(), `INSERT INTO entry (id, session, seq, data) VALUES (?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for n := 1; n <= count; n++ {
			e := entry(n)
			if e.At.IsZero() {
				e.At.Time = time.Now()
			}
			e.ID, e.Session, e.Seq = fmt.Sprintf("%s%s.%d", firstID(e.At.Time), session[13:], n), session, int64(n)*16
			if _, err := insert.ExecContext(context.Background(), e.ID, session, e.Seq, string(record.JSON(e))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.tb.Fatal(err)
	}
}

// fill stores messages of the agent in a session.
func (f *fixture) fill(session string, count int, text func(n int) string) {
	f.tb.Helper()
	f.enter(session, count, func(n int) transcript.Entry { return transcript.Entry{Kind: "agent", Text: text(n)} })
}

// index indexes every entry that waits.
func (f *fixture) index() {
	f.tb.Helper()
	for more := true; more; {
		var err error
		if more, err = f.indexSome(context.Background()); err != nil {
			f.tb.Fatal(err)
		}
	}
}

// found searches once every entry is indexed, for at most 50 hits where the query has no limit.
func (f *fixture) found(q Query) Found {
	f.tb.Helper()
	if q.Limit == 0 {
		q.Limit = 50
	}
	f.index()
	found, err := f.Find(context.Background(), q)
	if err != nil || found.Pending != 0 {
		f.tb.Fatalf("Find(%+v): got %d pending entries and error %v, want none", q, found.Pending, err)
	}
	return found
}

// hits returns the kind and the matches of each hit.
func hits(f Found) string {
	var b strings.Builder
	for _, h := range f.Items {
		fmt.Fprintf(&b, "%s:", h.Kind)
		for _, p := range h.Excerpt {
			if p.Hit {
				fmt.Fprintf(&b, " %s", p.Text)
			}
		}
		b.WriteString("; ")
	}
	return b.String()
}

func TestFindChoosesEntriesByWordsAndFilters(t *testing.T) {
	t.Parallel()
	f := open(t)
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	say := func(text string, at time.Time) string {
		id := f.session("nova")
		f.enter(id, 2, func(n int) transcript.Entry {
			return transcript.Entry{Kind: []string{"user", "agent"}[n-1], Text: text, At: record.Time{Time: at.Add(time.Duration(n) * time.Second)}}
		})
		return id
	}
	second := begin.Add(time.Minute)
	say("echo the Zürich zeppelin", begin)
	other := say("echo zeppelins do not fly エラー404", second)

	if got, want := hits(f.found(Query{Text: "zurich zeppelin"})), "agent: Zürich zeppelin; user: Zürich zeppelin; "; got != want {
		t.Errorf("Find(zurich zeppelin): got %q, want %q", got, want)
	}
	all := f.found(Query{Text: "zeppelin"})
	if h := all.Items[0]; len(all.Items) != 4 || h.Session != other || h.AgentName != "Agent nova" || h.Title != "A title" || h.Workspace.Path != "/here" {
		t.Errorf("Find(zeppelin): got %+v, want 4 hits, the first in the session %s of Agent nova in /here", all, other)
	}
	for name, c := range map[string]struct {
		q    Query
		want int
	}{
		"phrase":            {Query{Text: `"do not fly"`}, 2},
		"after a mark":      {Query{Text: "404"}, 2},
		"with the mark":     {Query{Text: "エラー404"}, 2},
		"a beginning":       {Query{Text: "エラー"}, 2},
		"without a word":    {Query{Text: "zeppelin -fly"}, 2},
		"an agent":          {Query{Text: "zeppelin", Agent: "nova"}, 4},
		"another agent":     {Query{Text: "zeppelin", Agent: "claude"}, 0},
		"a workspace":       {Query{Text: "zeppelin", Workspace: "here"}, 4},
		"another workspace": {Query{Text: "zeppelin", Workspace: "none"}, 0},
		"from long ago":     {Query{Text: "zeppelin", From: begin}, 4},
		"from":              {Query{Text: "zeppelin", From: second}, 2},
		"to":                {Query{Text: "zeppelin fly", To: second}, 0},
		"to, earlier":       {Query{Text: "zeppelin", To: second}, 2},
		"an empty time":     {Query{Text: "zeppelin", From: second, To: second}, 0},
		"an absent word":    {Query{Text: "dirigible"}, 0},
	} {
		if found := f.found(c.q); len(found.Items) != c.want {
			t.Errorf("%s: Find(%+v): got %q, want %d hits", name, c.q, hits(found), c.want)
		}
	}
	page := f.found(Query{Text: "zeppelin", Limit: 3})
	rest := f.found(Query{Text: "zeppelin", Limit: 3, Before: page.Next})
	if len(page.Items) != 3 || len(rest.Items) != 1 || rest.Next != "" || rest.Items[0].Entry != all.Items[3].Entry {
		t.Errorf("got the pages %+v and %+v, want 3 hits and the last of %+v", page, rest, all)
	}
	for code, q := range map[string]Query{"search.empty": {Text: " -only "}, "list.before": {Text: "zeppelin", Before: "x"}} {
		_, err := f.Find(t.Context(), q)
		if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != code {
			t.Errorf("Find(%+v): got error %v, want the refusal %s", q, err, code)
		}
	}
}

func TestFindKnowsTheTextOfEveryKindOfEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	list := []transcript.Entry{
		{Kind: "user", Text: "Where is the lantern?", Attachments: []transcript.Attachment{{Filename: "Harbour plan.pdf"}}},
		{Kind: "thought", Text: "It may be in the cellar"},
		{Kind: "plan", Plan: []transcript.PlanItem{{Content: "Open the hatch"}, {Content: "Climb down"}}},
		{Kind: "tool", Tool: &transcript.ToolCall{
			Title: "Look around", Locations: []transcript.Location{{Path: "/srv/cellar/stairs.go"}},
			RawInput: raw(`{"command":["bash","-lc","torch --bright"],"timeout":90210}`),
			Content: []json.RawMessage{
				raw(`{"type":"content","content":{"type":"text","text":"\u001b[32mPASS\u001b[0m: barrels\r\n"}}`),
				raw(`{"type":"diff","path":"notes.md","oldText":"","newText":"cobwebs"}`), raw(`{"type":"terminal","terminalId":"t9","output":"puddles"}`),
			},
			RawOutput: raw(`{"stdout":"PASS: barrels\n","stderr":"\u001b[31mrats\u001b[0m","call_id":"call_77","image":{"data":"QUJD","mimeType":"image/png"}}`),
		}},
		{Kind: "tool", Tool: &transcript.ToolCall{Title: "Count", RawOutput: raw(`[{"type":"text","text":"three candles"}]`)}},
		{Kind: "tool", Tool: &transcript.ToolCall{Title: "Tell", RawOutput: raw(`"a story"`)}},
		{
			Kind: "terminal", Terminal: &transcript.Terminal{Command: "sh", Args: []string{"-c", "kindle --all"}},
			Text: "10% wax\r55% wax\r\n\x1b]0;heading\x07\x1b[1;33mwarning\x1b[0m: smoke\n",
		},
		{Kind: "terminal", Terminal: &transcript.Terminal{Running: true}, Text: "obsidian\n" + strings.Repeat("dust\n", 16<<10/5) + "granite\n"},
		{Kind: "file", File: &transcript.FileChange{Path: "/srv/letters/draft.txt", Diff: raw(`{"type":"diff","path":"x","newText":"to the keeper"}`)}},
		{Kind: "attachment", Attachments: []transcript.Attachment{{Filename: "moonlight.png"}}},
		{Kind: "compaction", Compaction: &transcript.Compaction{}, Text: "So far the lantern was lost"},
		{Kind: "notice", Notice: &transcript.Notice{Title: "Low oil", Description: "Fill it up"}},
		{Kind: "raw", Raw: raw(`{"unheard":true}`)},
	}
	f.enter(f.session("nova"), len(list), func(n int) transcript.Entry { return list[n-1] })
	for query, want := range map[string]string{
		"lantern":         "compaction: lantern; user: lantern; ",
		"harbour plan":    "user: Harbour plan; ",
		"cellar":          "tool: cellar; thought: cellar; ",
		"hatch":           "plan: hatch; ",
		"climb":           "plan: Climb; ",
		"around":          "tool: around; ",
		"stairs.go":       "tool: stairs.go; ",
		"torch":           "tool: torch; ",
		"90210":           "",
		`"pass barrels"`:  "tool: PASS: barrels; ",
		"notes":           "tool: notes; ",
		"cobwebs":         "tool: cobwebs; ",
		"puddles":         "tool: puddles; ",
		"rats":            "tool: rats; ",
		"77":              "",
		"qujd":            "",
		"candles":         "tool: candles; ",
		"story":           "tool: story; ",
		"kindle":          "terminal: kindle; ",
		`"55 wax"`:        "terminal: 55% wax; ",
		`"10 wax"`:        "",
		"heading":         "",
		`"warning smoke"`: "terminal: warning: smoke; ",
		"granite":         "terminal: granite; ",
		"obsidian":        "",
		"draft":           "file: draft; ",
		"keeper":          "file: keeper; ",
		"moonlight":       "attachment: moonlight; ",
		"oil":             "notice: oil; ",
		"fill":            "notice: Fill; ",
		"unheard":         "",
	} {
		if got := hits(f.found(Query{Text: query})); got != want {
			t.Errorf("Find(%s): got %q, want %q", query, got, want)
		}
	}
}

func TestFindInASessionListsEveryPlace(t *testing.T) {
	t.Parallel()
	f := open(t)
	session, other := f.session("nova"), f.session("nova")
	say := func(n int) string {
		return fmt.Sprintf("message %d of a ferry%s", n, strings.Repeat(" to the isle", n%2))
	}
	f.fill(session, 300, say)
	f.fill(other, 10, say)
	found := f.found(Query{Text: "ferry isle", Session: session})
	if len(found.Items) != 50 || len(found.Places) != 150 || found.Places[0] != 1*16 || found.Places[149] != 299*16 || found.Items[0].Seq != 299*16 {
		t.Errorf("got %d hits and the places %v, want 50 and each second of 300 places", len(found.Items), found.Places)
	}
	if next := f.found(Query{Text: "ferry isle", Session: session, Before: found.Next}); len(next.Items) != 50 || next.Items[0].Session != session || next.Places != nil {
		t.Errorf("next page: got %q and the places %v, want 50 hits and no places", hits(next), next.Places)
	}
	if all := f.found(Query{Text: "ferry"}); all.Places != nil {
		t.Errorf("search of all sessions: got the places %v, want none", all.Places)
	}
	if none := f.found(Query{Text: "ferry", Session: "none"}); len(none.Items)+len(none.Places) != 0 {
		t.Errorf("search of an unknown session: got %q and the places %v, want none", hits(none), none.Places)
	}
	f.exec(`INSERT INTO unsearched SELECT rowid FROM entry WHERE session = ?`, other)
	for id, want := range map[string]int{session: 0, other: 10, "": 10} {
		if found, err := f.Find(t.Context(), Query{Text: "ferry", Session: id, Limit: 1}); err != nil || found.Pending != want {
			t.Errorf("search of the session %q: got %d pending entries and error %v, want %d", id, found.Pending, err, want)
		}
	}
}

// TestFindPassesOverOtherSessions searches sessions whose entries lie far apart between the entries of others.
func TestFindPassesOverOtherSessions(t *testing.T) {
	t.Parallel()
	f := open(t)
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return begin.AddDate(0, 0, n) }
	var ids [4]string
	for i, count := range []int{20, 1200, 20, 1200} {
		ids[i] = f.session([]string{"rare", "nova"}[i%2])
		f.enter(ids[i], count, func(n int) transcript.Entry {
			return transcript.Entry{Kind: "agent", Text: fmt.Sprintf("message %d", n), At: record.Time{Time: day(i).Add(time.Duration(n) * time.Second)}}
		})
	}
	count := func(f Found) string {
		var b strings.Builder
		hits := map[string]int{}
		for i, h := range f.Items {
			if hits[h.Session]++; i > 0 && h.At.After(f.Items[i-1].At.Time) {
				t.Errorf("got a hit of %v below a hit of %v, want the newest first", h.At, f.Items[i-1].At)
			}
		}
		for i, id := range ids {
			if hits[id] > 0 {
				fmt.Fprintf(&b, "%d of %d, ", hits[id], i)
			}
		}
		if f.Next != "" {
			b.WriteString("more")
		}
		return b.String()
	}
	page := f.found(Query{Text: "message", Agent: "rare", Limit: 30})
	for name, c := range map[string]struct {
		q    Query
		want string
	}{
		"an agent":                    {Query{Agent: "rare", Limit: 30}, "10 of 0, 20 of 2, more"},
		"the next page":               {Query{Agent: "rare", Limit: 30, Before: page.Next}, "10 of 0, "},
		"up to a day":                 {Query{To: day(1)}, "20 of 0, "},
		"up to a second":              {Query{To: day(0).Add(6 * time.Second)}, "5 of 0, "},
		"from a day":                  {Query{From: day(3), Limit: 2000}, "1200 of 3, "},
		"from a second":               {Query{From: day(3).Add(1198 * time.Second)}, "3 of 3, "},
		"within a day":                {Query{From: day(2), To: day(3)}, "20 of 2, "},
		"an agent up to a day":        {Query{Agent: "rare", To: day(2)}, "20 of 0, "},
		"another agent up to a day":   {Query{Agent: "nova", To: day(3), Limit: 2000}, "1200 of 1, "},
		"later than every entry":      {Query{From: day(4)}, ""},
		"earlier than every entry":    {Query{To: day(0)}, ""},
		"a session on a day after it": {Query{Session: ids[2], From: day(3)}, ""},
	} {
		c.q.Text = "message"
		if got := count(f.found(c.q)); got != c.want {
			t.Errorf("%s: Find(%+v): got %q, want %q", name, c.q, got, c.want)
		}
	}
}

func TestFindReadsRowsByIndexes(t *testing.T) {
	t.Parallel()
	f := open(t)
	plan := func(text string, args ...any) string { return storetest.Plan(t, f.db, text, args...) }
	for _, q := range []Query{{}, {Agent: "a"}, {Workspace: "w"}, {Session: "s"}, {From: time.Now(), To: time.Now()}} {
		text, args := q.hits(`"word"`, rowRange{1, 100}, 10)
		got := plan(text, args...)
		if !strings.HasPrefix(got, "SCAN words VIRTUAL TABLE") || !strings.Contains(got, "SEARCH e USING INTEGER PRIMARY KEY") ||
			strings.Contains(got, "SCAN s") || strings.Contains(got, "ORDER BY") {
			t.Errorf("hits of %+v: got the plan\n%s\nwant a scan of words that looks up entries by their rows", q, got)
		}
		text, args = q.conversations()
		got = plan(text, args...)
		dates := strings.Count(got, "SEARCH entry USING INDEX entry_seq (session=?)")
		if strings.Count(got, "SEARCH entry USING COVERING INDEX entry_rows (session=?)") != 2 || strings.Contains(got, "SCAN entry") ||
			dates != 0 && dates != 2 || dates == 0 && !q.From.IsZero() {
			t.Errorf("conversations of %+v: got the plan\n%s\nwant each end by an index", q, got)
		}
	}
}

// BenchmarkSearch searches 100,000 messages of 60 words, as people write: few words are in half of the messages, most words in a few. The goal
// is to have the first results within 50 ms.
func BenchmarkSearch(b *testing.B) {
	f := open(b)
	const sessions, messages = 50, 2000
	dice := rand.New(rand.NewPCG(1, 2))
	frequent := rand.NewZipf(dice, 1.1, 1, 50_000)
	begin := time.Now()
	var ids [sessions]string
	var began [sessions]time.Time
	for i := range ids {
		ids[i], began[i] = f.session("nova"), time.Now()
		f.fill(ids[i], messages, func(n int) string {
			var t strings.Builder
			for range 60 {
				fmt.Fprintf(&t, "word%d ", frequent.Uint64())
			}
			if n == messages/2 {
				t.WriteString("needle")
			}
			return t.String()
		})
	}
	// Long entries beside the others: with the match at the end, and as programs print.
	long := strings.Repeat("lorem ipsum ", 64<<10/12)
	f.enter(f.session("nova"), 120, func(n int) transcript.Entry {
		if n%2 == 0 {
			return transcript.Entry{Kind: "agent", Text: "first " + long + "last"}
		}
		return transcript.Entry{Kind: "terminal", Terminal: &transcript.Terminal{Command: "print"}, Text: strings.Repeat("\x1b[32mok\x1b[0m   \texample.com/a/package\t0.003s\n", 1400) + "last"}
	})
	f.exec(`UPDATE session SET agent = 'rare' WHERE id IN (?, ?)`, ids[2], ids[30])
	f.exec(`INSERT INTO workspace SELECT 'few', place, path || '/few', 0, 0, 0, created_at FROM workspace LIMIT 1`)
	f.exec(`UPDATE session SET workspace = 'few' WHERE id = ?`, ids[5])
	written := time.Since(begin)
	begin = time.Now()
	f.index()
	b.Logf("%d messages written in %v, indexed in %v", sessions*messages, written, time.Since(begin))
	for name, q := range map[string]Query{
		"rare": {Text: "needle"}, "common": {Text: "word0"}, "two": {Text: "word1 word300"}, "beginning": {Text: "word12"},
		"phrase": {Text: `"word0 word1"`}, "without": {Text: "word0 -word1"}, "none": {Text: "absent"},
		"long ago": {Text: "word0", To: began[2]}, "to come": {Text: "word0", From: time.Now().Add(time.Hour)},
		"rare agent": {Text: "word0", Agent: "rare"}, "rare agent, rare": {Text: "needle", Agent: "rare"},
		"few in a directory": {Text: "word0", Workspace: "few"}, "nearly all": {Text: "word0", Agent: "nova", From: began[1]},
		"long, at its beginning": {Text: "first"}, "long, at its end": {Text: "last"},
	} {
		q.Limit = 50
		b.Run(name, func(b *testing.B) {
			f.measure(b, q, "ms/search")
			b.ReportMetric(50, "ms/goal")
		})
	}
}

// BenchmarkFindInConversation searches one session of 20,000 turns beside others, for a word of every entry and of one entry.
func BenchmarkFindInConversation(b *testing.B) {
	f := open(b)
	long := f.session("nova")
	say := func(n int) string {
		return fmt.Sprintf("message %d of many, said to somebody %s", n, strings.Repeat("needle", n%20_000/19_999))
	}
	f.fill(f.session("nova"), 20_000, say)
	f.fill(long, 40_000, say)
	f.fill(f.session("nova"), 20_000, say)
	f.index()
	for name, text := range map[string]string{"all": "message", "one": "needle", "none": "absent", "number": "19999"} {
		b.Run(name, func(b *testing.B) { f.measure(b, Query{Text: text, Session: long, Limit: 1}, "ms/find") })
	}
}

func (f *fixture) measure(b *testing.B, q Query, unit string) {
	b.Helper()
	for b.Loop() {
		if _, err := f.Find(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), unit)
}
