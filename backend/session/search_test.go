package session_test

import (
	"fmt"
	"testing"

	"deskhand/backend/search"
)

// found searches after every stored entry is indexed.
func (d *desk) found(text string) (f search.Found) {
	d.t.Helper()
	d.until("an index of every entry", func() bool {
		var err error
		if f, err = d.search.Find(d.t.Context(), search.Query{Text: text, Limit: 100}); err != nil {
			d.t.Fatal(err)
		}
		return f.Pending == 0
	})
	return f
}

// hits returns the kinds and the matches of search results.
func hits(f search.Found) (text string) {
	for _, h := range f.Items {
		text += h.Kind + ":"
		for _, p := range h.Excerpt {
			if p.Hit {
				text += " " + p.Text
			}
		}
		text += "; "
	}
	return text
}

func TestStoredEntriesOfAnAgentAreFound(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "plan terminal")
	d.idle(s.ID)
	for query, want := range map[string]string{
		`"find the right place"`: "plan: Find the right place; ",
		`"pass TestGreet"`:       "tool: PASS: TestGreet; ",
	} {
		if got := hits(d.found(query)); got != want {
			t.Errorf("Find(%s): got %q, want %q", query, got, want)
		}
	}
}

func TestEntriesAroundGoOnInBothDirections(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.alter(fmt.Sprintf(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)
		INSERT INTO entry (id, session, seq, data) SELECT 'e' || i, '%[1]s', i * 16, json_object('id', 'e' || i, 'session', '%[1]s', 'seq', i * 16,
		'kind', 'agent', 'at', '2026-03-01T12:00:00.000Z', 'text', 'message ' || i) FROM n`, s.ID))
	page, err := d.Transcripts().Around(t.Context(), s.ID, 50*16, 11)
	if err != nil || len(page.Items) != 11 || page.Items[5].Text != "message 50" {
		t.Fatalf("Around(50): got %+v, %v, want 11 entries with message 50 between", page.Items, err)
	}
	newer, err := d.Transcripts().After(t.Context(), s.ID, page.Newer, 1000)
	if err != nil || newer.Items[0].Text != "message 56" || newer.Newer != 0 {
		t.Errorf("After(%d): got %+v, %v, want message 56 first", page.Newer, newer.Items[0], err)
	}
	older, err := d.Transcripts().Entries(t.Context(), s.ID, page.Next, 1000)
	if err != nil || older.Items[len(older.Items)-1].Text != "message 44" || older.Next != 0 {
		t.Errorf("Entries(%d): got %+v, %v, want message 44 last", page.Next, older.Items, err)
	}
	for at, want := range map[int64]string{0: "message 1", 1 << 40: "message 100"} {
		page, err := d.Transcripts().Around(t.Context(), s.ID, at, 5)
		if err != nil || len(page.Items) == 0 || at == 0 && (page.Items[0].Text != want || page.Next != 0) ||
			at != 0 && (page.Items[len(page.Items)-1].Text != want || page.Newer != 0) {
			t.Errorf("Around(%d): got %+v, %v, want %s at its end", at, page, err, want)
		}
	}
}
