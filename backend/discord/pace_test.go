package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/feed"
	"deskhand/backend/session"
	"deskhand/backend/storetest"
)

// slowDiscord takes a while for each call, and notes when they came. It is a transport, so that there is no socket in a bubble.
type slowDiscord struct {
	t     *testing.T
	takes time.Duration

	mu    sync.Mutex
	busy  int
	text  map[string]string      // by message
	edits map[string][]time.Time // when an edit of it began
}

func (d *slowDiscord) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Content string `json:"content"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	d.mu.Lock()
	if d.busy++; d.busy > 1 {
		d.t.Error("two calls at once")
	}
	id := path.Base(r.URL.Path)
	if r.Method == http.MethodPost {
		id = fmt.Sprint(len(d.text) + 1)
	}
	d.edits[id] = append(d.edits[id], time.Now())
	d.mu.Unlock()
	if err := pause(r.Context(), d.takes); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	d.text[id] = body.Content
	answer := fmt.Sprintf(`{"id":%q,"content":%q,"author":{"id":"1","bot":true}}`, id, body.Content)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(answer)), Request: r}, nil
}

func TestMessageIsEditedOnceASecondAtMost(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() { _ = db.Close() })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := &slowDiscord{t: t, takes: 150 * time.Millisecond, text: map[string]string{}, edits: map[string][]time.Time{}}
		s := &Surface{cfg: Config{Store: db, Logger: slog.New(slog.DiscardHandler)}, ctx: ctx, stop: cancel, set: setting{Enabled: true}}
		s.client, s.bindings, s.in, s.out = &client{s: s, unit: time.Second}, newBindings(s), newInbound(s), newOutput(s)
		s.client.rest = rest.New(rest.NewClient("", rest.WithURL("http://discord.test"), rest.WithRateLimiter(rest.NewNoopRateLimiter()),
			rest.WithLogger(slog.New(slog.DiscardHandler)), rest.WithHTTPClient(&http.Client{Transport: d})))
		s.bindings.bonds[7] = &bond{Binding: Binding{Channel: "7", Session: "s"}}
		s.out.follows["s"] = 7 // there is nothing that could be read of it
		tell := func(kind string, e session.BusEvent) {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			s.out.follow(ctx, []feed.Event{{Session: "s", Type: kind, Data: data}})
		}
		begun := time.Now()
		tell(feedSaid, session.BusEvent{RequestID: "t", MessageID: "u", Text: "go"})
		var text strings.Builder
		for i := range 100 {
			more := fmt.Sprintf("line %d %s\n", i, strings.Repeat("word ", 10))
			text.WriteString(more)
			tell(feedText, session.BusEvent{RequestID: "t", MessageID: "m", Delta: more})
			if i%20 == 0 {
				tell(feedTool, session.BusEvent{RequestID: "t", MessageID: fmt.Sprint("tool", i), Title: "Look", Status: "completed"})
			}
			if err := pause(ctx, 70*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		tell(feedState, session.BusEvent{RequestID: "t", State: turnDone, StopReason: "end_turn"})
		ended := time.Now()
		te := s.out.teller(ctx, "s")
		for {
			te.mu.Lock()
			open := len(te.turns)
			te.mu.Unlock()
			if open == 0 {
				break
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		if late := time.Since(ended); late > 3*time.Second*time.Duration(len(d.text)) {
			t.Errorf("last text: got it after %v, want %v at most", late, 3*time.Second*time.Duration(len(d.text)))
		}
		cancel()
		s.out.close()
		all := ""
		for i := range len(d.text) {
			id := fmt.Sprint(i + 1)
			all += d.text[id] + "\n"
			for j := 1; j < len(d.edits[id]); j++ {
				if apart := d.edits[id][j].Sub(d.edits[id][j-1]); apart < editPace {
					t.Errorf("message %s: got two edits %v apart, want %v or more", id, apart, editPace)
				}
			}
		}
		if n, most := len(d.edits["1"]), int(time.Since(begun)/editPace)+1; len(d.text) < 3 || n < 2 || n > most {
			t.Errorf("pace: got %d messages, %d calls for the first, want 3 or more, 2 to %d", len(d.text), n, most)
		}
		for line := range strings.Lines(text.String()) {
			if strings.Count(all, line[:len(line)-2]) != 1 {
				t.Errorf("line %q: got it %d times, want once", line, strings.Count(all, line[:len(line)-2]))
			}
		}
	})
}
