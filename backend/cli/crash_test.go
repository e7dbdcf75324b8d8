package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/maintenance"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

// rounds is the number of times a story is interrupted: usual, or the value of DESKHAND_CRASH_ROUNDS.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("DESKHAND_CRASH_ROUNDS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// screen is everything that a surface has been shown of a conversation.
type screen struct {
	entries  map[string]transcript.Entry
	turns    map[string]session.Turn
	requests map[string]requests.Request
	session  session.Session
}

func newScreen() *screen {
	return &screen{entries: map[string]transcript.Entry{}, turns: map[string]session.Turn{}, requests: map[string]requests.Request{}}
}

func (s *screen) show(e feed.Event) {
	switch e.Type {
	case "session.upsert":
		s.session = decode[session.Session](e)
	case "entry.upsert":
		entry := decode[transcript.Entry](e)
		s.entries[entry.ID] = entry
	case "entry.append":
		a := decode[transcript.Append](e)
		if entry := s.entries[a.ID]; len(entry.Text) >= a.Offset { // every text is ASCII here
			entry.Text = entry.Text[:a.Offset] + a.Text
			s.entries[a.ID] = entry
		}
	case "turn.upsert":
		turn := decode[session.Turn](e)
		s.turns[turn.ID] = turn
	case "request.upsert":
		r := decode[requests.Request](e)
		s.requests[r.ID] = r
	}
}

// missing lists the parts that were shown and are not stored.
func (s *screen) missing(now session.Session, t session.Transcript) []string {
	var lost []string
	say := func(format string, args ...any) { lost = append(lost, fmt.Sprintf(format, args...)) }
	if s.session.Title != now.Title && s.session.Title != "" {
		say("the title %q is %q", s.session.Title, now.Title)
	}
	stored := newScreen()
	for _, e := range t.Items {
		stored.entries[e.ID] = e
	}
	for _, turn := range t.Turns {
		stored.turns[turn.ID] = turn
	}
	for _, r := range t.Requests {
		stored.requests[r.ID] = r
	}
	ranks := []string{"pending", "in_progress", "completed", "failed", "cancelled"}
	for id, e := range s.entries {
		have, there := stored.entries[id]
		switch {
		case !there:
			say("the %s entry %.60q is not there", e.Kind, e.Text)
		case !strings.HasPrefix(have.Text, e.Text):
			say("of %d bytes of text %d are there", len(e.Text), len(have.Text))
		case len(have.Blocks) < len(e.Blocks), len(have.Plan) < len(e.Plan):
			say("blocks or steps of a plan are missing")
		case e.Tool != nil && (slices.Index(ranks, have.Tool.Status) < slices.Index(ranks, e.Tool.Status) || len(have.Tool.Content) < len(e.Tool.Content)):
			say("the tool call %q was %s, and is %s", e.Tool.Title, e.Tool.Status, have.Tool.Status)
		}
	}
	for id, turn := range s.turns {
		if have := stored.turns[id]; turn.State == "done" && have.StopReason != turn.StopReason || have.State != "done" {
			say("a turn was %s %s, and is %s %s", turn.State, turn.StopReason, have.State, have.StopReason)
		}
	}
	for id, r := range s.requests {
		if have := stored.requests[id]; r.Status != "requested" && have.Status != r.Status || have.Status == "requested" || have.Status == "" {
			say("a request was %s, and is %q", r.Status, have.Status)
		}
	}
	return lost
}

// watcher is a surface that follows a conversation and allows every approval.
type watcher struct {
	c      *caller
	screen *screen
	id     string
	last   feed.Batch
}

func watch(t *testing.T, c *caller, id string) *watcher {
	t.Helper()
	w := &watcher{c: c, screen: newScreen(), id: id}
	w.next(t.Context()) // returns the position of the feed
	return w
}

// follow shows the feed until the server is gone or one more turn has ended.
func (w *watcher) follow(ctx context.Context, message string) {
	w.try(ctx, "POST", "/client/sessions/"+w.id+"/prompt", `{"message":"`+message+`"}`, nil)
	answered := map[string]bool{}
	for ended := false; !ended && ctx.Err() == nil; {
		batch, ok := w.next(ctx)
		if !ok {
			return
		}
		for _, e := range batch.Events {
			w.screen.show(e)
			ended = ended || e.Type == "turn.upsert" && decode[session.Turn](e).State == "done"
			if r := decode[requests.Request](e); e.Type == "request.upsert" && r.Status == "requested" && !answered[r.ID] {
				answered[r.ID] = true
				w.try(ctx, "POST", "/client/requests/"+r.ID+"/answer", `{"optionId":"`+r.Options[0].ID+`"}`, nil)
			}
		}
	}
}

// next asks for the new events.
func (w *watcher) next(ctx context.Context) (feed.Batch, bool) {
	path := "/client/events?wait=25&session=" + w.id + "&gen=" + w.last.Gen + "&after=" + strconv.FormatInt(w.last.Seq, 10)
	var batch feed.Batch
	if !w.try(ctx, "GET", path, "", &batch) {
		return batch, false
	}
	w.last = batch
	return batch, !batch.Reset
}

// try makes a call that may fail, since the server may die during the call.
func (w *watcher) try(ctx context.Context, method, path, body string, out any) bool {
	req, err := http.NewRequestWithContext(ctx, method, w.c.base+path, strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.c.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode < 300 && (out == nil || json.Unmarshal(data, out) == nil)
}

// transcript is the stored transcript of a conversation.
func (c *caller) transcript(id string) (s session.Session, t session.Transcript) {
	c.t.Helper()
	c.get("/client/sessions/"+id, &s)
	c.get("/client/sessions/"+id+"/entries?limit=1000", &t)
	for before := t.Next; before != 0; {
		var page session.Transcript
		c.get("/client/sessions/"+id+"/entries?limit=1000&before="+strconv.FormatInt(before, 10), &page)
		t.Items, before = append(page.Items, t.Items...), page.Next
	}
	var whole session.Transcript // including every turn and request
	c.get("/client/sessions/"+id+"/entries?limit=1&after=1", &whole)
	t.Turns, t.Requests = append(t.Turns, whole.Turns...), append(t.Requests, whole.Requests...)
	return s, t
}

// sound checks a database that no process has open.
func sound(t *testing.T, dir string) {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, check := range []string{"integrity_check", "foreign_key_check"} {
		var said string
		err := db.Read().QueryRowContext(t.Context(), "PRAGMA "+check).Scan(&said)
		if check == "integrity_check" && said != "ok" || check == "foreign_key_check" && err == nil {
			t.Fatalf(`%s: got said %s, error %v, want not (check == "integrity_check" && said != "ok") and not (check == "foreign_key_check" && err == nil)`, check, said, err)
		}
	}
}

// stories are the prompts that get interrupted: many words, many updates, tools that need approval, a plan. The last story does not end by
// itself.
func stories() []string {
	return []string{"please write a note", "burst", "terminal and diff", "permission", "plan", endless}
}

const endless = "slow"

// TestKilledAtAnyPoint kills the program in the middle of conversations, again and again on one data directory. After the next start
// everything that was shown is stored, and the database is sound.
func TestKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const longest = 1200 * time.Millisecond
	shown, broken := 0, 0
	for round := range rounds(t, 6) {
		p, _ := server(t, dir)
		c := onSocket(t, dir)
		var s session.Session
		c.post("/client/sessions", session.New{Agent: "mock", Cwd: work}, &s)
		w := watch(t, c, s.ID)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := round; ctx.Err() == nil && w.try(ctx, "GET", "/client/hello", "", nil); n++ {
				w.follow(ctx, stories()[n%len(stories())])
			}
		}()
		<-time.After(rand.N(longest)) // the kill may hit any point
		_ = p.Process.Kill()
		_, _ = p.end()
		<-done
		cancel()
		sound(t, dir)
		after, _ := server(t, dir)
		now, stored := onSocket(t, dir).transcript(s.ID)
		if lost := w.screen.missing(now, stored); len(lost) > 0 {
			t.Errorf("round %d: got lost after the kill:\n%s\nwant nothing", round, strings.Join(lost, "\n"))
		}
		shown += len(w.screen.entries)
		if n := len(stored.Items); n > 0 && stored.Items[n-1].Divider != nil {
			broken++
		}
		_ = after.Process.Kill()
		_, _ = after.end()
	}
	t.Logf("%d entries were shown, %d turns were broken off", shown, broken)
	if shown == 0 || broken == 0 {
		t.Error("nothing was broken off: the rounds are too short")
	}
}

// harms imitate a loss of power during the last writes. written is the length of the WAL, and ended its length when a turn had ended, which
// syncs to the disk. Each harm returns the findings that verify may report.
func harms() []func(t *testing.T, dir, wal string, ended, written int64) (found []string) {
	overwrite := func(t *testing.T, wal string, at int64, data []byte) {
		t.Helper()
		f, err := os.OpenFile(wal, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(t *testing.T, wal string, ended, written int64) int64 {
		t.Helper()
		at := ended + rand.Int64N(written-ended)
		if err := os.Truncate(wal, at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	garbage := func(n int64) []byte {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		return data
	}
	return []func(t *testing.T, dir, wal string, ended, written int64) []string{
		func(t *testing.T, _, wal string, ended, written int64) []string { // the end is missing
			t.Helper()
			cut(t, wal, ended, written)
			return nil
		},
		func(t *testing.T, _, wal string, ended, written int64) []string { // the end has other bytes
			t.Helper()
			at := cut(t, wal, ended, written)
			overwrite(t, wal, at, garbage(1+rand.Int64N(3*4096)))
			return nil
		},
		func(t *testing.T, _, wal string, ended, written int64) []string { // half of a page is written, its rest and the next pages are not
			t.Helper()
			at := ended + rand.Int64N(written-ended)
			overwrite(t, wal, at, make([]byte, min(2048, written-at)))
			return nil
		},
		func(t *testing.T, dir, _ string, _, _ int64) []string { // the file of a long message is missing
			t.Helper()
			if err := os.Remove(newest(t, filepath.Join(dir, "blobs"))); err != nil {
				t.Fatal(err)
			}
			return []string{"blob.missing"}
		},
	}
}

// newest is the file written last.
func newest(t *testing.T, dir string) (name string) {
	t.Helper()
	var last time.Time
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(last) {
			name, last = path, info.ModTime()
		}
		return err
	})
	if err != nil || name == "" {
		t.Fatalf("files in %s: got newest %q, %v; want one", dir, name, err)
	}
	return name
}

// verify makes the running server verify its data, and returns the findings of a session.
func (c *caller) verify(id string) (codes []string) {
	c.t.Helper()
	c.post("/client/verify", maintenance.Verify{}, nil)
	var now maintenance.Verification
	for end := time.Now().Add(testkit.Limit); now.State != "done"; {
		if time.Now().After(end) {
			c.t.Fatalf("verification: got %+v after %s, want it done", now, testkit.Limit)
		}
		now = maintenance.Verification{}
		c.get("/client/verify", &now)
	}
	for _, f := range now.Findings {
		switch {
		case f.Session == "" || f.Session == id && id != "":
			codes = append(codes, f.Code)
		case f.Code != "blob.missing": // a finding of an earlier round
			c.t.Errorf(`got f %+v, want Code "blob.missing"`, f)
		}
	}
	return codes
}

// TestAWriteThatIsCutOff harms the last writes as a loss of power does. The database opens and is sound, an ended turn is whole, at most the
// running turn is lost, and a verification finds nothing or names exactly the missing parts.
func TestAWriteThatIsCutOff(t *testing.T) {
	t.Parallel()
	const together = 8 // rounds per directory: each round checks the damage of the rounds before, too
	var dir string
	work := t.TempDir()
	harmed := map[int]int{}
	for round := range rounds(t, 4) {
		if round%together == 0 {
			dir = t.TempDir()
		}
		wal := filepath.Join(dir, "deskhand.db-wal")
		p, _ := server(t, dir)
		c := onSocket(t, dir)
		var s session.Session
		c.post("/client/sessions", session.New{Agent: "mock", Cwd: work}, &s)
		w := watch(t, c, s.ID)
		w.follow(t.Context(), stories()[round%(len(stories())-1)])
		ended := size(t, wal)
		before := newScreen()
		maps.Copy(before.entries, w.screen.entries)
		maps.Copy(before.turns, w.screen.turns)
		long := fmt.Sprintf("%s\n%d %s", endless, round, strings.Repeat("long enough for a file of its own ", 1000))
		c.post("/client/sessions/"+s.ID+"/prompt", map[string]string{"message": long}, nil)
		for words := 0; words < 10; {
			batch, ok := w.next(t.Context())
			if !ok {
				t.Fatal("the feed ended")
			}
			for _, e := range batch.Events {
				if e.Type == "entry.append" {
					words++
				}
			}
		}
		_ = p.Process.Kill()
		_, _ = p.end()
		var found []string
		if written := size(t, wal); written > ended { // else SQLite has restarted the WAL meanwhile
			kind := round % len(harms())
			harmed[kind]++
			found = harms()[kind](t, dir, wal, ended, written)
		}
		_ = os.Remove(filepath.Join(dir, "deskhand.db-shm")) // no loss of power leaves the shared memory
		sound(t, dir)
		after, _ := server(t, dir)
		again := onSocket(t, dir)
		_, stored := again.transcript(s.ID)
		if lost := before.missing(session.Session{}, stored); len(lost) > 0 {
			t.Errorf("round %d: got lost after the cut:\n%s\nwant nothing", round, strings.Join(lost, "\n"))
		}
		if codes := again.verify(s.ID); !slices.Equal(codes, found) {
			t.Errorf("round %d: verify finds %v, want %v", round, codes, found)
		}
		_ = after.Process.Kill()
		_, _ = after.end()
	}
	t.Logf("harmed %v", harmed)
	if len(harmed) == 0 {
		t.Error("nothing was harmed")
	}
}

func size(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
