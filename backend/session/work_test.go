package session

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"deskhand/backend/maintenance"
	"deskhand/backend/search"
)

// worked waits for the end of a work.
func worked(t *testing.T, c *Client, _ maintenance.Work, err error) maintenance.Work {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var now *maintenance.Work
	until(t, c, func() bool {
		s, err := c.maintainer.Storage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now = s.Work
		return now.State != "running"
	})
	return *now
}

// Compact returns unused space to the disk, loses no data, and leaves search results as they were.
func TestCompactGivesSpaceBack(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	for n, id := range []string{"a", "kept", "b"} {
		s.put(id, newStoryteller(t, uint64(n)).tell(20))
	}
	s.exec(`DELETE FROM session WHERE id <> 'kept'`)
	c := s.open()
	s.indexed(c)
	before := s.told("kept")
	var said string
	if err := s.db.Read().QueryRow(`SELECT group_concat(json_extract(data, '$.text'), ' ') FROM entry WHERE json_extract(data, '$.kind') = 'user'`).Scan(&said); err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`[A-Za-z]{4,}`).FindString(said) // the text is code, and may begin with a bracket
	find := func() int {
		found, err := c.cfg.Search.Find(t.Context(), search.Query{Text: word, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Items)
	}
	hits := find()
	begun, err := c.maintainer.Compact()
	now := worked(t, c, begun, err)
	if now.State != "done" || now.Bytes <= 0 || hits == 0 {
		t.Errorf("%+v, %d hits", now, hits)
	}
	if s.told("kept") != before {
		t.Error("the transcript is another one")
	}
	if got := find(); got != hits {
		t.Errorf("hits after Compact: got %d, want %d", got, hits)
	}
	if codes := verified(t, c, maintenance.Verify{}); len(codes) != 0 {
		t.Errorf("Verify after Compact: got findings %v, want none", codes)
	}
}

// After Compact the index holds no word of an erased conversation.
func TestCompactLeavesNoWordOfTheErased(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	for n, id := range []string{"kept", "erased"} {
		s.put(id, newStoryteller(t, uint64(n)).tell(3))
	}
	s.exec(`UPDATE entry SET data = json_set(data, '$.text', 'okapiquagga ' || json_extract(data, '$.text')) WHERE session = 'erased' AND json_extract(data, '$.kind') = 'user'`)
	c := s.open()
	s.exec(`INSERT INTO words (words, rank) VALUES ('automerge', 0), ('deletemerge', 0)`) // otherwise the pages may be merged by chance, depending on the lengths of the texts
	s.indexed(c)
	words := func() int { // a page may hold only the end of a word, after the beginning of the word before
		return s.number(`SELECT count(*) FROM words_data WHERE instr(block, CAST('apiquagga' AS BLOB)) > 0`)
	}
	if err := (eraser{c}).erase(t.Context(), "erased"); err != nil {
		t.Fatal(err)
	}
	if words() == 0 {
		t.Fatal("there is nothing to leave")
	}
	begun, err := c.maintainer.Compact()
	if now := worked(t, c, begun, err); now.State != "done" || words() != 0 {
		t.Errorf("%+v, and %d pages have its word", now, words())
	}
	if codes := verified(t, c, maintenance.Verify{}); len(codes) != 0 {
		t.Errorf("Verify after Compact: got findings %v, want none", codes)
	}
}

// Compact shrinks the database although the search index is damaged.
func TestCompactWithDamagedIndex(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("s", newStoryteller(t, 1).tell(3))
	c := s.open()
	s.indexed(c)
	s.exec(`DELETE FROM words_data`)
	begun, err := c.maintainer.Compact()
	if now := worked(t, c, begun, err); now.State != "done" {
		t.Errorf("Compact with a damaged index: got %+v, want it done", now)
	}
}

// One work runs at a time; another one is refused until the first is cancelled.
func TestBeginWorkIsRefusedWhileWorkRuns(t *testing.T) {
	t.Parallel()
	c := openShelf(t).open()
	begun, err := c.maintainer.BeginWork(maintenance.WorkExport, func(ctx context.Context, _ func(func(*maintenance.Work))) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.maintainer.Compact()
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Code != "work.running" || refused.Params["kind"] != maintenance.WorkExport {
		t.Errorf("Compact while an export runs: got %v, want the refusal work.running", err)
	}
	c.maintainer.CancelWork()
	if now := worked(t, c, begun, nil); now.State != "cancelled" {
		t.Errorf("state of cancelled work: got %s, want %s", now.State, "cancelled")
	}
}
