package session_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// found gives what a search finds, once nothing is waiting to be indexed.
func (d *desk) found(s session.Search) session.Found {
	d.t.Helper()
	if s.Limit == 0 {
		s.Limit = 50
	}
	for begin := time.Now(); ; {
		f, err := d.Search(d.t.Context(), s)
		if err != nil {
			d.t.Fatal(err)
		}
		if f.Pending == 0 {
			return f
		}
		if time.Since(begin) > 30*time.Second {
			d.t.Fatalf("%d entries are not indexed", f.Pending)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func hits(f session.Found) string {
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

func TestSearchFindsWhatWasSaid(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo the Zürich zeppelin")
	d.idle(s.ID)
	other := d.create()
	d.prompt(other.ID, "echo zeppelins do not fly エラー404")
	d.idle(other.ID)

	if got := hits(d.found(session.Search{Query: "zurich zeppelin"})); got != "agent: Zürich zeppelin; user: Zürich zeppelin; " {
		t.Error(got)
	}
	all := d.found(session.Search{Query: "zeppelin"})
	if len(all.Items) != 4 || all.Items[0].Session != other.ID || all.Items[0].AgentName == "" || all.Items[0].Title == "" || all.Items[0].Workspace.Path != d.work {
		t.Errorf("%+v", all)
	}
	second := d.transcript(other.ID).Items[0].At.Time
	for name, c := range map[string]struct {
		s    session.Search
		want int
	}{
		"phrase":        {session.Search{Query: `"do not fly"`}, 2},
		"after a mark":  {session.Search{Query: "404"}, 2},
		"with the mark": {session.Search{Query: "エラー404"}, 2},
		"a beginning":   {session.Search{Query: "エラー"}, 2},
		"without":       {session.Search{Query: "zeppelin -fly"}, 2},
		"agent":         {session.Search{Query: "zeppelin", Agent: "mock"}, 4},
		"other agent":   {session.Search{Query: "zeppelin", Agent: "claude"}, 0},
		"directory":     {session.Search{Query: "zeppelin", Workspace: s.Workspace.ID}, 4},
		"no directory":  {session.Search{Query: "zeppelin", Workspace: "none"}, 0},
		"long since":    {session.Search{Query: "zeppelin", From: second.Add(-time.Hour)}, 4},
		"from":          {session.Search{Query: "zeppelin", From: second}, 2},
		"to":            {session.Search{Query: "zeppelin fly", To: second}, 0},
		"before":        {session.Search{Query: "zeppelin", To: second}, 2},
		"between":       {session.Search{Query: "zeppelin", From: second, To: second}, 0},
		"nothing there": {session.Search{Query: "dirigible"}, 0},
	} {
		if f := d.found(c.s); len(f.Items) != c.want {
			t.Errorf("%s: %s", name, hits(f))
		}
	}
	page := d.found(session.Search{Query: "zeppelin", Limit: 3})
	rest := d.found(session.Search{Query: "zeppelin", Limit: 3, Before: page.Next})
	if len(page.Items) != 3 || len(rest.Items) != 1 || rest.Next != "" || rest.Items[0].Entry != all.Items[3].Entry {
		t.Errorf("%+v then %+v", page, rest)
	}
	_, err := d.Search(t.Context(), session.Search{Query: " -only ", Limit: 1})
	refused(t, err, "search.empty")
}

// TestSearchFindsEveryKind: what of each kind of entry can be found, and what beside it cannot.
func TestSearchFindsEveryKind(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
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
	enter(t, d, d.create().ID, len(list), func(n int) transcript.Entry { return list[n-1] })
	d.close()
	d = open(t, d.dir) // which finds what is to be indexed
	for q, want := range map[string]string{
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
		if got := hits(d.found(session.Search{Query: q})); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
}

// TestSearchFindsWhatAnAgentDid: a plan, and what a command has printed.
func TestSearchFindsWhatAnAgentDid(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "plan terminal")
	d.idle(s.ID)
	for q, want := range map[string]string{
		`"find the right place"`: "plan: Find the right place; ",
		`"pass TestGreet"`:       "tool: PASS: TestGreet; ",
	} {
		if got := hits(d.found(session.Search{Query: q})); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
}

// TestSearchInOneConversation: every place of it, in its order, and nothing of the others.
func TestSearchInOneConversation(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s, other := d.create(), d.create()
	said := func(n int) string {
		return fmt.Sprintf("message %d of a ferry%s", n, strings.Repeat(" to the isle", n%2))
	}
	fill(t, d, s.ID, 300, said)
	fill(t, d, other.ID, 10, said)
	d.close()
	d = open(t, d.dir) // which finds what is to be indexed
	f := d.found(session.Search{Query: "ferry isle", Session: s.ID})
	if len(f.Items) != 50 || len(f.Places) != 150 || f.Places[0] != 1*16 || f.Places[149] != 299*16 || f.Items[0].Seq != 299*16 {
		t.Errorf("%d hits, places %v", len(f.Items), f.Places)
	}
	if f := d.found(session.Search{Query: "ferry isle", Session: s.ID, Before: f.Next}); len(f.Items) != 50 || f.Items[0].Session != s.ID || f.Places != nil {
		t.Errorf("the next page: %s, %v", hits(f), f.Places)
	}
	if f := d.found(session.Search{Query: "ferry"}); f.Places != nil {
		t.Errorf("all conversations: %v", f.Places)
	}
	if f := d.found(session.Search{Query: "ferry", Session: "none"}); len(f.Items)+len(f.Places) != 0 {
		t.Errorf("no conversation: %s", hits(f))
	}
	// What waits in another conversation is not missing here.
	if err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO unsearched SELECT rowid FROM entry WHERE session = ?`, other.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if f, err := d.Search(t.Context(), session.Search{Query: "ferry", Session: s.ID, Limit: 1}); err != nil || f.Pending != 0 {
		t.Errorf("%d wait, %v", f.Pending, err)
	}
}

// TestSearchOfFewConversations: those of an agent lie far apart between the others', a page ends within one, and days are told apart.
func TestSearchOfFewConversations(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return begin.AddDate(0, 0, n) }
	var ids [4]string
	for i, count := range []int{20, 1200, 20, 1200} {
		ids[i] = d.create().ID
		enter(t, d, ids[i], count, func(n int) transcript.Entry {
			return transcript.Entry{Kind: "agent", Text: fmt.Sprintf("message %d", n), At: session.Time{Time: day(i).Add(time.Duration(n) * time.Second)}}
		})
	}
	d.alter(fmt.Sprintf(`UPDATE session SET agent = 'rare' WHERE id IN ('%s', '%s')`, ids[0], ids[2]))
	d.close()
	d = open(t, d.dir) // which finds what is to be indexed
	of := func(f session.Found) string {
		var b strings.Builder
		count := map[string]int{}
		for i, h := range f.Items {
			if count[h.Session]++; i > 0 && h.At.After(f.Items[i-1].At.Time) {
				t.Errorf("%v stands below %v", h.At, f.Items[i-1].At)
			}
		}
		for i, id := range ids {
			if count[id] > 0 {
				fmt.Fprintf(&b, "%d of %d, ", count[id], i)
			}
		}
		if f.Next != "" {
			b.WriteString("more")
		}
		return b.String()
	}
	page := d.found(session.Search{Query: "message", Agent: "rare", Limit: 30})
	if got := of(page); got != "10 of 0, 20 of 2, more" {
		t.Error(got)
	}
	if got := of(d.found(session.Search{Query: "message", Agent: "rare", Limit: 30, Before: page.Next})); got != "10 of 0, " {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		s    session.Search
		want string
	}{
		"up to a day":        {session.Search{To: day(1)}, "20 of 0, "},
		"up to a second":     {session.Search{To: day(0).Add(6 * time.Second)}, "5 of 0, "},
		"from a day":         {session.Search{From: day(3), Limit: 2000}, "1200 of 3, "},
		"from a second":      {session.Search{From: day(3).Add(1198 * time.Second)}, "3 of 3, "},
		"within a day":       {session.Search{From: day(2), To: day(3)}, "20 of 2, "},
		"an agent in a day":  {session.Search{Agent: "rare", To: day(2)}, "20 of 0, "},
		"the agent's others": {session.Search{Agent: "mock", To: day(3), Limit: 2000}, "1200 of 1, "},
		"later":              {session.Search{From: day(4)}, ""},
		"earlier":            {session.Search{To: day(0)}, ""},
		"one on another day": {session.Search{Session: ids[2], From: day(3)}, ""},
	} {
		c.s.Query = "message"
		if got := of(d.found(c.s)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSearchAfterDelete: what is gone is not found.
func TestSearchAfterDelete(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "echo quicksilver")
	d.idle(s.ID)
	if f := d.found(session.Search{Query: "quicksilver"}); len(f.Items) != 2 {
		t.Fatal(hits(f))
	}
	d.close()
	d = open(t, d.dir)
	if err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM session WHERE id = ?`, s.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if f := d.found(session.Search{Query: "quicksilver"}); len(f.Items) != 0 {
		t.Error(hits(f))
	}
	var left int
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM words_docsize`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left in the index, %v", left, err)
	}
}

// TestAround: a page around what was found, which goes on in both directions.
func TestAround(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	fill(t, d, s.ID, 100, func(n int) string { return fmt.Sprintf("message %d", n) })
	page, err := d.Around(t.Context(), s.ID, 50*16, 11)
	if err != nil || len(page.Items) != 11 || page.Items[5].Text != "message 50" {
		t.Fatalf("%+v, %v", page.Items, err)
	}
	newer, err := d.After(t.Context(), s.ID, page.Newer, 1000)
	if err != nil || newer.Items[0].Text != "message 56" || newer.Newer != 0 {
		t.Errorf("after %d: %+v, %v", page.Newer, newer.Items[0], err)
	}
	older, err := d.Entries(t.Context(), s.ID, page.Next, 1000)
	if err != nil || older.Items[len(older.Items)-1].Text != "message 44" || older.Next != 0 {
		t.Errorf("before %d: %v", page.Next, err)
	}
	for at, want := range map[int64]string{0: "message 1", 1 << 40: "message 100"} {
		page, err := d.Around(t.Context(), s.ID, at, 5)
		if err != nil || len(page.Items) == 0 || at == 0 && (page.Items[0].Text != want || page.Next != 0) ||
			at != 0 && (page.Items[len(page.Items)-1].Text != want || page.Newer != 0) {
			t.Errorf("around %d: %+v, %v", at, page, err)
		}
	}
}

// fill writes messages as a conversation would, without an agent.
func fill(tb testing.TB, d *desk, id string, count int, text func(n int) string) {
	tb.Helper()
	enter(tb, d, id, count, func(n int) transcript.Entry { return transcript.Entry{Kind: "agent", Text: text(n)} })
}

// enter writes entries, as fill does.
func enter(tb testing.TB, d *desk, id string, count int, entry func(n int) transcript.Entry) {
	tb.Helper()
	err := d.db.Write(tb.Context(), func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(tb.Context(), `INSERT INTO entry (id, session, seq, data) VALUES (?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for n := 1; n <= count; n++ {
			e := entry(n)
			if e.At.IsZero() {
				e.At.Time = time.Now()
			}
			ms := e.At.UnixMilli()
			e.ID, e.Session, e.Seq = fmt.Sprintf("%08x-%04x%s.%d", ms>>16, ms&0xffff, id[13:], n), id, int64(n)*16 // it begins with the time
			data, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := insert.ExecContext(tb.Context(), e.ID, id, e.Seq, string(data)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkSearch looks through 100,000 messages of 60 words, as people write them: few words are in half of them, most in a few. The
// goal is to have the first results within 50 ms.
func BenchmarkSearch(b *testing.B) {
	d := open(b, b.TempDir())
	const sessions, messages = 50, 2000
	dice := rand.New(rand.NewPCG(1, 2))
	frequent := rand.NewZipf(dice, 1.1, 1, 50_000)
	begin := time.Now()
	var ids [sessions]string
	var began [sessions]time.Time
	for i := range ids {
		ids[i], began[i] = d.create().ID, time.Now()
		fill(b, d, ids[i], messages, func(n int) string {
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
	// Long ones, beside the others: with what is looked for at the end, and as programs print.
	long := strings.Repeat("lorem ipsum ", 64<<10/12)
	enter(b, d, d.create().ID, 120, func(n int) transcript.Entry {
		if n%2 == 0 {
			return transcript.Entry{Kind: "agent", Text: "first " + long + "last"}
		}
		return transcript.Entry{Kind: "terminal", Terminal: &transcript.Terminal{Command: "print"}, Text: strings.Repeat("\x1b[32mok\x1b[0m   \texample.com/a/package\t0.003s\n", 1400) + "last"}
	})
	d.alter(fmt.Sprintf(`UPDATE session SET agent = 'rare' WHERE id IN ('%s', '%s')`, ids[2], ids[30]))
	d.alter(`INSERT INTO workspace SELECT 'few', place, path || '/few', 0, 0, 0, created_at FROM workspace LIMIT 1`)
	d.alter(fmt.Sprintf(`UPDATE session SET workspace = 'few' WHERE id = '%s'`, ids[5]))
	written := time.Since(begin)
	d.close()
	d = open(b, d.dir) // which finds what is to be indexed
	begin = time.Now()
	for d.found(session.Search{Query: "needle"}).Pending > 0 {
	}
	b.Logf("%d messages written in %v, indexed in %v", sessions*messages, written, time.Since(begin))
	for name, s := range map[string]session.Search{
		"rare": {Query: "needle"}, "common": {Query: "word0"}, "two": {Query: "word1 word300"}, "beginning": {Query: "word12"},
		"phrase": {Query: `"word0 word1"`}, "without": {Query: "word0 -word1"}, "none": {Query: "absent"},
		"long ago": {Query: "word0", To: began[2]}, "to come": {Query: "word0", From: time.Now().Add(time.Hour)},
		"rare agent": {Query: "word0", Agent: "rare"}, "rare agent, rare": {Query: "needle", Agent: "rare"},
		"few in a directory": {Query: "word0", Workspace: "few"}, "nearly all": {Query: "word0", Agent: "mock", From: began[1]},
		"long, at its beginning": {Query: "first"}, "long, at its end": {Query: "last"},
	} {
		s.Limit = 50
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Search(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/search")
			b.ReportMetric(50, "ms/goal")
		})
	}
}

// BenchmarkFindInConversation finds in one of 20,000 turns, beside others, what is in every entry and what is in one.
func BenchmarkFindInConversation(b *testing.B) {
	d := open(b, b.TempDir())
	long := d.create().ID
	say := func(n int) string {
		return fmt.Sprintf("message %d of many, said to somebody %s", n, strings.Repeat("needle", n%20_000/19_999))
	}
	fill(b, d, d.create().ID, 20_000, say)
	fill(b, d, long, 40_000, say)
	fill(b, d, d.create().ID, 20_000, say)
	d.close()
	d = open(b, d.dir) // which finds what is to be indexed
	for d.found(session.Search{Query: "message"}).Pending > 0 {
	}
	for name, q := range map[string]string{"all": "message", "one": "needle", "none": "absent", "number": "19999"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Search(b.Context(), session.Search{Query: q, Session: long, Limit: 1}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/find")
		})
	}
}
