package inspect_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/inspect"
	"deskhand/backend/journal"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
)

// fixture is an inspector over a database with the session "s".
type fixture struct {
	*inspect.Inspector
	tb     testing.TB
	db     *store.DB
	growth inspect.Growth
	ended  chan struct{}
}

func open(tb testing.TB) *fixture {
	tb.Helper()
	db := storetest.Open(tb, tb.TempDir())
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("Close of the database: got %v, want no error", err)
		}
	})
	f := &fixture{tb: tb, db: db, ended: make(chan struct{})}
	f.Inspector = inspect.New(inspect.Deps{
		Store: db, Redactor: redact.New([]string{"our-own-token"}, nil),
		Find: func(_ context.Context, id string) (inspect.Session, error) {
			if id != "s" {
				return inspect.Session{}, refusal.ErrNotFound
			}
			return inspect.Session{Generation: 1, Growth: &f.growth, Ended: f.ended}, nil
		},
		Call: func(_ context.Context, request string) (inspect.Call, error) {
			if request != "r" {
				return inspect.Call{}, refusal.ErrNotFound
			}
			return clipped(), nil
		},
	})
	f.write(func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/w', 0, 0, 0, 0);
			INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
			generation, facts, exit, created_at, updated_at, archived_at)
			VALUES ('s', 'local', 'w', '/w', 'demo', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 0, 0, 0)`)
		return err
	})
	return f
}

func (f *fixture) write(do func(*sql.Tx) error) {
	f.tb.Helper()
	if err := f.db.Write(context.Background(), do); err != nil {
		f.tb.Fatalf("Write: got %v, want no error", err)
	}
}

// fill adds frames of generation 1 to the journal, a millisecond apart.
func (f *fixture) fill(count int, data func(n int) (dir journal.Direction, text string)) {
	f.tb.Helper()
	j := journal.Of(f.db)
	last, err := j.Last(context.Background(), "s")
	if err != nil {
		f.tb.Fatalf("Last: got %v, want a number", err)
	}
	frames := make([]journal.Frame, count)
	for n := range frames {
		dir, text := data(n)
		frames[n] = journal.Frame{N: last + int64(n) + 1, Generation: 1, At: time.UnixMilli(1_700_000_000_000 + int64(n)), Dir: dir, Data: []byte(text)}
	}
	stored, err := j.Encode(frames)
	if err != nil {
		f.tb.Fatalf("Encode: got %v, want no error", err)
	}
	f.write(func(tx *sql.Tx) error { return journal.Append(context.Background(), tx, "s", stored) })
}

func (f *fixture) add(dir journal.Direction, text string) {
	f.tb.Helper()
	f.fill(1, func(int) (journal.Direction, string) { return dir, text })
}

func (f *fixture) page(q inspect.Query) inspect.FramePage {
	f.tb.Helper()
	page, err := f.Frames(context.Background(), "s", q)
	if err != nil {
		f.tb.Fatalf("Frames(%+v): got %v, want a page", q, err)
	}
	return page
}

// summary is each frame's direction, kind and method.
func summary(items []inspect.Frame) (list []string) {
	for _, f := range items {
		list = append(list, f.Dir+" "+f.Kind+" "+f.Method)
	}
	return list
}

func update(n int) (journal.Direction, string) {
	return journal.In, fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word %d"}}}}`, n)
}

func TestFramesFilter(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.add(journal.Note, `{"note":"turn.began"}`)
	f.add(journal.Out, `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"the lighthouse"}]}}`)
	f.fill(1, update)
	f.add(journal.In, `{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}`)
	f.add(journal.Note, `{"note":"turn.ended"}`)
	const prompt, said, answer = "out request session/prompt", "in notification session/update", "in response session/prompt"
	for name, tc := range map[string]struct {
		q    inspect.Query
		want []string
	}{
		"all, the newest first":  {inspect.Query{}, []string{answer, said, prompt}},
		"all, the oldest first":  {inspect.Query{After: new(int64(0))}, []string{prompt, said, answer}},
		"a method":               {inspect.Query{Method: "session/prompt"}, []string{answer, prompt}},
		"a direction":            {inspect.Query{Dir: "out"}, []string{prompt}},
		"notes":                  {inspect.Query{Method: "turn.", Notes: true}, []string{"note note turn.ended", "note note turn.began"}},
		"a text in another case": {inspect.Query{Text: "LIGHTHOUSE"}, []string{prompt}},
		"a text of JSON":         {inspect.Query{Text: `"sessionUpdate":"agent_message_chunk"`}, []string{said}},
		"a kind of update":       {inspect.Query{Method: "agent_mess"}, []string{said}},
		"the newest frame":       {inspect.Query{Limit: 1}, []string{answer}},
	} {
		tc.q.Limit = cmp.Or(tc.q.Limit, 100)
		if got := summary(f.page(tc.q).Items); !slices.Equal(got, tc.want) {
			t.Errorf("%s: Frames(%+v): got %q, want %q", name, tc.q, got, tc.want)
		}
	}
	pair := f.page(inspect.Query{Method: "session/prompt", Limit: 10}).Items
	if got := pair[0]; got.Millis == nil || *got.Millis != got.At.Sub(pair[1].At.Time).Milliseconds() || string(got.ID) != "7" || pair[1].Millis != nil {
		t.Errorf("got the response %+v of %+v, want the time between the two", got, pair[1])
	}
	if got := pair[0]; got.Body != nil || got.Size == 0 {
		t.Errorf("without Bodies: got %+v, want a size and no body", got)
	}
	if _, err := f.Frames(t.Context(), "none", inspect.Query{Limit: 1}); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Frames of no session: got %v, want ErrNotFound", err)
	}
}

func TestPagesHaveEachFrameOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.fill(2_000, update)
	down, up := []int64{}, []int64{}
	for q := (inspect.Query{Limit: 300}); ; {
		page := f.page(q)
		for _, f := range page.Items {
			down = append(down, f.Seq)
		}
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	for q := (inspect.Query{Limit: 500, After: new(int64(0))}); ; {
		page := f.page(q)
		for _, f := range page.Items {
			up = append(up, f.Seq)
		}
		if q.After = &page.Next; !page.More {
			break
		}
	}
	slices.Reverse(down)
	if !slices.Equal(up, down) || len(up) != 2_000 || !slices.IsSorted(up) {
		t.Errorf("got %d frames upwards and %d downwards, want the same 2,000 in order", len(up), len(down))
	}
}

// A filter that finds nothing reads a bounded part of the journal in each call.
func TestFilterReadsLongJournalInParts(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.fill(12_000, func(n int) (journal.Direction, string) {
		switch n {
		case 10:
			return journal.Out, `{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"the needle"}]}}`
		case 11_999:
			return journal.In, `{"jsonrpc":"2.0","id":77,"result":{"stopReason":"end_turn"}}`
		}
		return update(n)
	})
	calls, found := 0, 0
	for q := (inspect.Query{Limit: 100, Text: "needle"}); ; {
		page := f.page(q)
		calls++
		found += len(page.Items)
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if found != 1 || calls < 2 || calls > 10 {
		t.Errorf("got %d frames in %d calls, want one frame in 2 to 10 calls", found, calls)
	}
	if got := f.page(inspect.Query{Limit: 1}).Items[0]; got.Method != "session/prompt" || got.Millis == nil || *got.Millis != 11_989 {
		t.Errorf("got the response %+v, want session/prompt after 11,989 ms: the request is far before", got)
	}
}

func TestLongAndBrokenFrames(t *testing.T) {
	t.Parallel()
	f := open(t)
	long := `{"jsonrpc":"2.0","method":"long","params":"` + strings.Repeat("x", 100<<10) + `"}`
	f.add(journal.In, long)
	f.add(journal.In, `no JSON at all`)
	f.add(journal.In, `{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"told by our-own-token"}}`)
	page := f.page(inspect.Query{Limit: 3, Bodies: true})
	if got, want := summary(page.Items), []string{"in response ", "in unknown ", "in notification long"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	failed, broken, cut := page.Items[0], page.Items[1], page.Items[2]
	if !failed.Failed || strings.Contains(string(failed.Body), "our-own-token") || !json.Valid(failed.Body) {
		t.Errorf("got %s, failed = %v; want a failure as JSON without the token", failed.Body, failed.Failed)
	}
	if got, want := string(broken.Body), `"no JSON at all"`; got != want {
		t.Errorf("got the body %s, want %s", got, want)
	}
	if !cut.Truncated || cut.Body != nil || cut.Size != len(long) {
		t.Errorf("got a body of %d bytes, truncated = %v, size %d; want none, true, %d", len(cut.Body), cut.Truncated, cut.Size, len(long))
	}
	if got, err := f.Body(t.Context(), "s", cut.Seq); err != nil || string(got) != long {
		t.Errorf("Body: got %d bytes, %v; want %d", len(got), err, len(long))
	}
	if _, err := f.Body(t.Context(), "s", cut.Seq+100); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Body of no frame: got %v, want ErrNotFound", err)
	}
}

func TestFramesWait(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.fill(1, update)
	after := inspect.Query{After: new(int64(1)), Wait: 50 * time.Millisecond, Limit: 500}
	begun := time.Now()
	if page := f.page(after); len(page.Items) != 0 || page.Next != 1 || page.More || time.Since(begun) < after.Wait {
		t.Errorf("got %+v after %v, want no frames, next 1, after %v", page, time.Since(begun), after.Wait)
	}
	after.Wait = testkit.Limit
	grown := f.growth.Next()
	go func() {
		f.fill(3, update)
		f.growth.Grew()
	}()
	var got []int64
	for len(got) < 3 {
		page := f.page(after)
		if len(page.Items) == 0 {
			t.Fatalf("got no frame after %d, want one", *after.After)
		}
		for _, f := range page.Items {
			got = append(got, f.Seq)
		}
		after.After = new(page.Next)
	}
	if want := []int64{2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("got the frames %v, want %v", got, want)
	}
	select {
	case <-grown:
	case <-time.After(testkit.Limit):
		t.Error("Next: got an open channel after Grew, want a closed one")
	}
	close(f.ended)
	if page := f.page(after); len(page.Items) != 0 {
		t.Errorf("after the end: got %+v, want no frames", page)
	}
}

// Growth of which nobody waits costs nothing, and every reader that waits is woken.
func TestGrowthWakesEveryReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g inspect.Growth
		g.Grew()
		var readers sync.WaitGroup
		for range 3 {
			next := g.Next()
			readers.Go(func() { <-next })
		}
		g.Grew()
		readers.Wait()
		select {
		case <-g.Next():
			t.Error("Next after Grew: got a closed channel, want one that waits for the next Grew")
		default:
		}
	})
}

// The store has four connections for readers: eight passes must not wait for a connection that another pass holds.
func TestManyReadersOfLongJournal(t *testing.T) {
	t.Parallel()
	f := open(t)
	const frames = 600 // more than a pass reads at once, so that the request is found in a second part
	f.fill(frames+2, func(n int) (journal.Direction, string) {
		switch n {
		case 0:
			return journal.Out, `{"jsonrpc":"2.0","id":77,"method":"session/prompt"}`
		case frames + 1:
			return journal.In, `{"jsonrpc":"2.0","id":77,"result":{}}`
		}
		return journal.In, `{"jsonrpc":"2.0","method":"session/update"}`
	})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := f.Frames(ctx, "s", inspect.Query{Text: "none", Limit: 100}); err != nil {
				t.Errorf("Frames: got %v, want a page", err)
			}
		})
	}
	all.Wait()
}

// BenchmarkFrames reads a page of a journal of 100,000 frames: the end, the middle, and one that a filter has to find.
func BenchmarkFrames(b *testing.B) {
	f := open(b)
	f.fill(100_000, update)
	for name, q := range map[string]inspect.Query{
		"tail": {Limit: 500}, "middle": {Limit: 500, Before: 50_000}, "needle": {Limit: 500, Text: "no such text"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.page(q)
			}
		})
	}
}
