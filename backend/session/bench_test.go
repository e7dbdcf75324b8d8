package session_test

import (
	"context"
	"testing"
	"time"

	"deskhand/backend/feed"
)

// BenchmarkBurst measures 10,000 updates of an agent, from its stdout to the database and the feed, with a reader that polls the feed.
func BenchmarkBurst(b *testing.B) {
	d := open(b, b.TempDir())
	s := d.create()
	for b.Loop() {
		turn := d.prompt(s.ID, "burst")
		q := feed.Query{Gen: d.Feed().Gen(), Wait: time.Second}
		for done := false; !done; {
			batch, err := d.Feed().After(context.Background(), q)
			if err != nil {
				b.Fatal(err)
			}
			if batch.Reset {
				b.Fatal("the feed ran ahead of its reader")
			}
			q.After = batch.Seq
			now := d.get(s.ID)
			done = now.Turn == nil || now.Turn.ID != turn.ID
		}
	}
	b.ReportMetric(float64(b.N)*10000/b.Elapsed().Seconds(), "updates/s")
}
