package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/transcript"
)

// BenchmarkRebuild measures the rebuild of a long transcript, while another goroutine writes a row every few milliseconds, as a
// conversation does. BenchmarkRebuild reports the longest wait of that goroutine beside the speed.
func BenchmarkRebuild(b *testing.B) {
	s := openShelf(b)
	story := newStoryteller(b, 11).tell(1500)
	size := 0
	for _, f := range story {
		size += len(f.Data)
	}
	s.put("s", story)
	c := s.open()
	until(b, c, s.current)
	var longest atomic.Int64
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			begun := time.Now()
			_ = s.db.Write(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `UPDATE session SET unread = 1 - unread WHERE id = 's'`)
				return err
			})
			longest.Store(max(longest.Load(), int64(time.Since(begun))))
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	for b.Loop() {
		b.StopTimer()
		s.exec(`UPDATE entry SET data = json_set(data, '$.text', 'as it was once') WHERE session = 's'`)
		s.exec(`UPDATE session SET projection = 1`)
		longest.Store(0)
		b.StartTimer()
		if err := c.maintainer.Update(ctx, "s"); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size))
	b.ReportMetric(float64(len(story)), "frames")
	b.ReportMetric(float64(longest.Load())/1e6, "ms/longest-wait")
}

// BenchmarkVerifySession measures the comparison of the same transcript with its journal.
func BenchmarkVerifySession(b *testing.B) {
	s := openShelf(b)
	story := newStoryteller(b, 11).tell(400)
	size := 0
	for _, f := range story {
		size += len(f.Data)
	}
	s.put("s", story)
	c := s.open()
	until(b, c, s.current)
	for b.Loop() {
		if found := verified(b, c, maintenance.Verify{}); len(found) > 0 {
			b.Fatalf("Verify: got the findings %v, want none", found)
		}
	}
	b.SetBytes(int64(size))
}

// BenchmarkFoldWhole measures the fold of the journal of 20,000 short turns in one pass, as for an export and a fork.
func BenchmarkFoldWhole(b *testing.B) {
	const turns = 20_000
	s := newStoryteller(b, 11)
	s.start()
	for range turns {
		id := fmt.Sprintf("turn-%d", len(s.frames))
		s.note(transcript.Note{Note: transcript.NoteTurnBegan, Turn: id, Prompt: []json.RawMessage{json.RawMessage(`{"type":"text","text":"go on"}`)}})
		s.say("agent_message_chunk", 8)
		s.note(transcript.Note{Note: transcript.NoteTurnEnded, Turn: id, Reason: lifecycle.StopEnd})
	}
	for b.Loop() {
		t := transcript.New("s", transcript.Facts{})
		for _, f := range s.frames {
			t.Apply(f)
		}
		if changes, _ := t.Take(); len(changes) != 2*turns {
			b.Fatalf("%d entries", len(changes))
		}
	}
}
