package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/transcript"
)

func ev(kind, session, data string) Event {
	return Event{Type: kind, Session: session, Data: record.JSON(data)}
}

func TestFeedAnswersAtOnceOrWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New()
		if b, _ := f.After(t.Context(), Query{}); !b.Reset || b.Gen != f.Gen() {
			t.Fatalf("a foreign gen: %+v", b)
		}
		q := Query{Gen: f.Gen(), Wait: time.Minute}
		begin := time.Now()
		b, err := f.After(t.Context(), q)
		if err != nil || len(b.Events) != 0 || time.Since(begin) != longestWait {
			t.Fatalf("%+v %v after %v, want nothing after 25 s", b, err, time.Since(begin))
		}

		time.AfterFunc(time.Second, func() { f.Publish(ev("a", "", "1")) })
		time.AfterFunc(time.Second+coalesce/2, func() { f.Publish(ev("b", "", "2")) })
		time.AfterFunc(time.Second+2*coalesce, func() { f.Publish(ev("c", "", "3")) })
		begin = time.Now()
		b, _ = f.After(t.Context(), q)
		if len(b.Events) != 2 || time.Since(begin) != time.Second+coalesce {
			t.Fatalf("%+v after %v, want what came within 16 ms together", b, time.Since(begin))
		}
		time.Sleep(time.Second)
		begin = time.Now()
		q.After = b.Seq
		if b, _ = f.After(t.Context(), q); len(b.Events) != 1 || time.Since(begin) != 0 {
			t.Fatalf("%+v after %v, want what is there at once", b, time.Since(begin))
		}

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		q.After = b.Seq
		if b, err := f.After(ctx, q); err != nil || len(b.Events) != 0 {
			t.Fatalf("a caller that went away: %+v %v", b, err)
		}
	})
}

func TestFeedFilters(t *testing.T) {
	t.Parallel()
	f := New()
	f.Publish(ev("a", "s1", ""), ev("b", "s2", ""), ev("a", "", ""), ev("b", "s1", ""))
	for _, tc := range []struct {
		q    Query
		want string
	}{
		{Query{}, "1234"},
		{Query{After: 2}, "34"},
		{Query{Session: "s1"}, "134"},
		{Query{Types: []string{"a"}}, "13"},
		{Query{Session: "s2", Types: []string{"b"}}, "2"},
	} {
		tc.q.Gen = f.Gen()
		b, err := f.After(t.Context(), tc.q)
		got := ""
		for _, e := range b.Events {
			got += fmt.Sprint(e.Seq)
		}
		if err != nil || got != tc.want || b.Seq != 4 {
			t.Errorf("%+v: %s up to %d, want %s up to 4", tc.q, got, b.Seq, tc.want)
		}
	}
}

func TestFeedBatchesAndForgets(t *testing.T) {
	t.Parallel()
	f := New()
	big := strings.Repeat("x", batchBytes)
	f.Publish(ev("a", "", big), ev("b", "", "small"))
	b, _ := f.After(t.Context(), Query{Gen: f.Gen()})
	if len(b.Events) != 1 || b.Seq != 1 || !b.More {
		t.Fatalf("a large event goes alone, not %d up to %d, more: %t", len(b.Events), b.Seq, b.More)
	}
	if b, _ = f.After(t.Context(), Query{Gen: f.Gen(), After: b.Seq}); len(b.Events) != 1 || b.Seq != 2 || b.More {
		t.Fatalf("%d up to %d, more: %t", len(b.Events), b.Seq, b.More)
	}
	for range feedBytes/batchBytes + 10 {
		f.Publish(ev("a", "", big))
	}
	if b, _ := f.After(t.Context(), Query{Gen: f.Gen(), After: 1}); !b.Reset || b.Seq != f.seq {
		t.Fatalf("what is gone: %+v", b.Reset)
	}
	if b, _ := f.After(t.Context(), Query{Gen: f.Gen(), After: f.seq + 1}); !b.Reset {
		t.Fatal("a number that was never given is not told")
	}
	if f.bytes > feedBytes {
		t.Fatalf("the ring holds %d bytes", f.bytes)
	}
}

func TestFeedJoinsAppends(t *testing.T) {
	t.Parallel()
	f := New()
	add := func(id, text string, offset int) {
		f.Publish(Event{Type: Append, Data: record.JSON(transcript.Append{ID: id, Field: "text", Text: text, Offset: offset})})
	}
	add("a", "é", 3)
	add("a", "𝄞x", 4) // a surrogate pair is two units
	add("a", "y", 7)
	add("b", "z", 0)
	add("a", "!", 8)
	b, _ := f.After(t.Context(), Query{Gen: f.Gen()})
	got := ""
	for _, e := range b.Events {
		got += string(e.Data)
	}
	want := `{"id":"a","field":"text","text":"é𝄞xy","offset":3}{"id":"b","field":"text","text":"z","offset":0}{"id":"a","field":"text","text":"!","offset":8}`
	if got != want || b.Seq != 5 {
		t.Errorf("got %s up to %d", got, b.Seq)
	}
}

// A reader that was away gets the appends that it missed as one text, whatever characters they hold.
func TestFeedJoinsWhatAReaderMissed(t *testing.T) {
	t.Parallel()
	f := New()
	var want strings.Builder
	for i := range 2000 {
		piece := fmt.Sprintf("%dü😀 ", i)
		f.Publish(Event{Session: "s", Type: Append, Data: record.JSON(transcript.Append{ID: "e", Field: "text", Text: piece, Offset: transcript.Units(want.String())})})
		want.WriteString(piece)
	}
	got, events := "", 0
	for q := (Query{Gen: f.Gen()}); q.After < 2000; {
		b, err := f.After(t.Context(), q)
		if err != nil || b.Reset || len(b.Events) != 1 || b.Events[0].Seq != b.Seq {
			t.Fatalf("%+v %v, want one event that goes up to the batch's seq", b, err)
		}
		var a transcript.Append
		if err := json.Unmarshal(b.Events[0].Data, &a); err != nil || a.Offset != transcript.Units(got) {
			t.Fatalf("%v, offset %d after %d", err, a.Offset, transcript.Units(got))
		}
		got += a.Text
		q.After = b.Seq
		events++
	}
	if got != want.String() || events > 20 {
		t.Errorf("%d of %d bytes in %d events", len(got), want.Len(), events)
	}
}

// BenchmarkPublish measures an event into a ring that is full, while a reader keeps up.
func BenchmarkPublish(b *testing.B) {
	f := New()
	data := record.JSON(transcript.Append{ID: "0198f9f0-0000-7000-8000-000000000000", Field: "text", Text: "some words of a message ", Offset: 1000})
	for range feedBytes/(len(data)+eventPadding) + 1 {
		f.Publish(Event{Session: "s", Type: Append, Data: data})
	}
	for b.Loop() {
		f.Publish(Event{Session: "s", Type: Append, Data: data})
	}
}
