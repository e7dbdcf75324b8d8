package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"deskhand/backend/journal"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

// Transcript is a part of a session's transcript, with the turns and requests that its entries name.
type Transcript struct {
	Items    []transcript.Entry `json:"items" doc:"Ascending by seq"`
	Next     int64              `json:"next,omitempty" doc:"What to pass as before for what is older"`
	Newer    int64              `json:"newer,omitempty" doc:"What to pass as after for what is newer"`
	Turns    []Turn             `json:"turns"`
	Requests []requests.Request `json:"requests"`
}

const lastSeq = 1 << 62

// Transcripts reads the transcripts of sessions. Any goroutine may call the methods of Transcripts.
type Transcripts struct{ client *Client }

// Transcripts returns the transcripts of all sessions.
func (c *Client) Transcripts() *Transcripts { return &Transcripts{c} }

// Entries returns the newest entries before seq before; 0 = the newest of all.
func (r *Transcripts) Entries(ctx context.Context, id string, before int64, limit int) (Transcript, error) {
	if before <= 0 {
		before = lastSeq
	}
	items, more, err := r.older(ctx, id, before, limit)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: items}
	if more {
		t.Next = items[0].Seq
	}
	return Complete(ctx, r.client.cfg.Store, id, t)
}

// After returns the entries that follow seq after.
func (r *Transcripts) After(ctx context.Context, id string, after int64, limit int) (Transcript, error) {
	items, more, err := r.newer(ctx, id, after, limit)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: items}
	if more {
		t.Newer = items[len(items)-1].Seq
	}
	return Complete(ctx, r.client.cfg.Store, id, t)
}

// Around returns entries around seq around, half of limit before it and half from it on.
func (r *Transcripts) Around(ctx context.Context, id string, around int64, limit int) (Transcript, error) {
	older, moreOlder, err := r.older(ctx, id, around, limit/2)
	if err != nil {
		return Transcript{}, err
	}
	newer, moreNewer, err := r.newer(ctx, id, around-1, limit-limit/2)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: append(older, newer...)}
	if moreOlder && len(t.Items) > 0 {
		t.Next = t.Items[0].Seq
	}
	if moreNewer {
		t.Newer = newer[len(newer)-1].Seq
	}
	return Complete(ctx, r.client.cfg.Store, id, t)
}

// older returns at most limit entries before a seq, ascending, and whether there are more.
func (r *Transcripts) older(ctx context.Context, id string, before int64, limit int) (items []transcript.Entry, more bool, err error) {
	v, err := r.client.conversation(ctx, id)
	if err != nil {
		return nil, false, err
	}
	late := *v.late.Load()
	items, err = r.client.entries.Before(ctx, id, before, limit+1)
	items = late.over(items)
	if len(items) > limit {
		return items[1:], true, err
	}
	return items, false, err
}

// newer returns at most limit entries after a seq, and whether there are more.
func (r *Transcripts) newer(ctx context.Context, id string, after int64, limit int) (items []transcript.Entry, more bool, err error) {
	v, err := r.client.conversation(ctx, id)
	if err != nil {
		return nil, false, err
	}
	late := *v.late.Load()
	items, err = r.client.entries.After(ctx, id, after, limit+1)
	items = late.over(items)
	if len(items) > limit {
		return items[:limit], true, err
	}
	return items, false, err
}

// Text returns the whole text of an entry, also of an entry that is clipped in the transcript: the text is folded anew from the readable
// frames of the journal.
func (r *Transcripts) Text(ctx context.Context, id, entry string) (string, error) {
	if _, err := r.client.conversation(ctx, id); err != nil {
		return "", err
	}
	t := transcript.New(id, transcript.Facts{})
	found := false
	var text strings.Builder
	t.Limit, t.Said = 0, func(e *transcript.Entry, more string) {
		if e.ID == entry {
			text.WriteString(more)
		}
	}
	lost, err := r.client.journal.Readable(ctx, id, func(f journal.Frame) {
		t.Apply(f)
		changes, _ := t.Take()
		for _, ch := range changes {
			found = found || ch.Entry.ID == entry
		}
	})
	if err == nil && !found {
		err = cmp.Or(lost, fmt.Errorf("entry %s: %w", entry, ErrNotFound))
	}
	return text.String(), err
}

// Rebuild computes the entries of a session anew from its journal, and stores nothing.
func (r *Transcripts) Rebuild(ctx context.Context, id string) ([]transcript.Entry, error) {
	t := transcript.New(id, transcript.Facts{})
	if err := r.client.journal.Each(ctx, id, t.Apply); err != nil {
		return nil, err
	}
	changes, _ := t.Take()
	list := make([]transcript.Entry, len(changes))
	for i, ch := range changes {
		list[i] = *ch.Entry
	}
	return list, nil
}
