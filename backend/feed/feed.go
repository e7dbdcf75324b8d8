// Package feed is the order of all events that surfaces follow: a bounded ring which any number of readers poll. A reader that fell behind is told
// to load snapshots. The package hides how events are batched, how appends to one text are joined, and which events are sent by name alone.
package feed

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/record"
	"deskhand/backend/transcript"
)

// Limits of the feed. A reader further behind than the ring is told to load snapshots, and misses nothing, since events are projections of
// stored data.
const (
	feedBytes    = 8 << 20
	batchBytes   = 64 << 10
	coalesce     = 16 * time.Millisecond
	longestWait  = 25 * time.Second
	eventPadding = 160 // size of an event beside its data
)

// Feed is the order of all events: a bounded ring that any number of readers poll. Any goroutine may call the methods of Feed.
type Feed struct {
	gen string

	mu      sync.Mutex // protects the fields below
	events  []Event    // the newest, ascending
	bytes   int
	seq     int64         // of the newest event
	changed chan struct{} // closed at the next event
}

// New returns an empty feed with an id of its own.
func New() *Feed {
	return &Feed{gen: uuid.NewString(), changed: make(chan struct{})}
}

// Batch is an answer of the feed. Reset tells the reader to load snapshots, then to go on after Seq.
type Batch struct {
	Gen    string  `json:"gen"`
	Seq    int64   `json:"seq"`
	Reset  bool    `json:"reset,omitempty"`
	Events []Event `json:"events,omitzero" doc:"Absent with reset"`
	More   bool    `json:"more,omitempty" doc:"More is there already: the batch is full"`
}

// Query selects events. Empty filters select everything except question.requested, question.resolved and the events of the bus.
type Query struct {
	Gen     string
	After   int64
	Wait    time.Duration
	Session string
	Types   []string
}

// Gen returns a random id of this run of the program.
func (f *Feed) Gen() string { return f.gen }

// Publish adds events in order.
func (f *Feed) Publish(events ...Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := record.Time{Time: time.Now()}
	for _, e := range events {
		f.seq++
		e.Seq, e.At = f.seq, now
		f.events = append(f.events, e)
		f.bytes += len(e.Data) + eventPadding
	}
	drop := 0
	for ; f.bytes > feedBytes && drop < len(f.events)-1; drop++ {
		f.bytes -= len(f.events[drop].Data) + eventPadding
	}
	clear(f.events[:drop]) // frees the data of the events at once; the slots are freed when the slice grows next
	f.events = f.events[drop:]
	close(f.changed)
	f.changed = make(chan struct{})
}

// After returns the events after q.After, at once when there are some, else when some come or q.Wait has passed. Events within 16 ms of the
// first are in the same batch, up to 64 KiB; appends to one text become one event.
func (f *Feed) After(ctx context.Context, q Query) (Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, min(max(q.Wait, 0), longestWait))
	defer cancel()
	for waited := false; ; waited = true {
		batch, changed := f.look(q)
		if batch.Reset || len(batch.Events) > 0 {
			if waited {
				batch = f.linger(ctx, q)
			}
			return batch, nil
		}
		q.After = batch.Seq // events that the filter left out need not be checked again
		select {
		case <-changed:
		case <-ctx.Done():
			return batch, nil
		}
	}
}

// linger waits a moment for events that follow the first one closely, so that they are in its batch.
func (f *Feed) linger(ctx context.Context, q Query) Batch {
	pause := time.NewTimer(coalesce)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	batch, _ := f.look(q)
	return batch
}

// look returns the events that a query selects now, and a channel that is closed at the next event.
func (f *Feed) look(q Query) (Batch, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := Batch{Gen: f.gen, Seq: f.seq, Events: []Event{}}
	oldest := f.seq - int64(len(f.events)) // seq of the last event that was dropped
	if q.Gen != f.gen || q.After < oldest || q.After > f.seq {
		batch.Reset, batch.Events = true, nil
		return batch, nil
	}
	size := 0
	for _, e := range f.events[q.After-oldest:] {
		if !q.wants(e) {
			continue
		}
		if size += len(e.Data) + e.Weight + eventPadding; size > batchBytes && len(batch.Events) > 0 {
			batch.Seq, batch.More = batch.Events[len(batch.Events)-1].Seq, true
			break
		}
		batch.Events = append(batch.Events, e)
	}
	batch.Events = join(batch.Events)
	return batch, f.changed
}

func (q Query) wants(e Event) bool {
	if q.Session != "" && e.Session != "" && e.Session != q.Session {
		return false
	}
	if len(q.Types) == 0 {
		return !onlyByName(e.Type)
	}
	return slices.Contains(q.Types, e.Type)
}

// onlyByName reports whether an event repeats other events in the form of programs older than this API; such events are sent only to
// readers that name their type.
func onlyByName(kind string) bool {
	return kind == QuestionRequested || kind == QuestionResolved || strings.HasPrefix(kind, "evt.") || strings.HasPrefix(kind, "cmd.")
}

// join merges consecutive appends to the same text. A reader that is behind gets many appends, so their texts are joined in one pass.
func join(events []Event) []Event {
	out := events[:0:0]
	var last transcript.Append // the append in out's last event, if that is an append
	var text strings.Builder
	length, joined := 0, 0 // length of the text in UTF-16 units; number of appends in it
	end := func() {
		if joined > 1 {
			last.Text = text.String()
			out[len(out)-1].Data = record.JSON(last)
		}
		last, length, joined = transcript.Append{}, 0, 0
		text.Reset()
	}
	for _, e := range events {
		var a transcript.Append
		if e.Type != Append {
			end()
			out = append(out, e)
			continue
		}
		if json.Unmarshal(e.Data, &a) != nil {
			continue
		}
		if joined == 0 || last.ID != a.ID || last.Field != a.Field || last.Offset+length != a.Offset {
			end()
			last = a
			out = append(out, e)
		} else {
			out[len(out)-1].Seq, out[len(out)-1].At = e.Seq, e.At
		}
		text.WriteString(a.Text)
		length += transcript.Units(a.Text)
		joined++
	}
	end()
	return out
}

// Event is one entry of the client's event feed.
type Event struct {
	Seq     int64           `json:"seq"`
	At      record.Time     `json:"at"`
	Session string          `json:"session,omitempty"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`

	Weight int `json:"-"` // bytes that are added to the data when the event leaves the process
}

// Types of events that the feed itself knows.
const (
	Append            = "entry.append" // an append to a text; the feed joins appends
	QuestionRequested = "question.requested"
	QuestionResolved  = "question.resolved"
)
