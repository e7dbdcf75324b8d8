package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/redact"
	"deskhand/backend/transcript"
)

// What went over a session's wire, page by page, as the journal has it: secrets are taken out of that before it is written.

// Frame is one message between us and an agent, or a note of ours.
type Frame struct {
	Seq        int64           `json:"seq" doc:"Its number in the session's journal"`
	At         Time            `json:"at"`
	Generation int64           `json:"generation" doc:"Which life of the agent's process"`
	Dir        string          `json:"dir" enum:"in,out,note" doc:"in: from the agent; out: to it; note: ours, what the wire does not tell"`
	Kind       string          `json:"kind" enum:"request,response,notification,note,unknown" doc:"unknown: what the agent wrote that is no message"`
	Method     string          `json:"method,omitempty" doc:"Of a response that of the request that it answers, where that is found; of a note its name"`
	Update     string          `json:"update,omitempty" doc:"Of a session/update what it tells of: its sessionUpdate"`
	ID         json.RawMessage `json:"id,omitempty" doc:"As it came: a number or a text"`
	Millis     *int64          `json:"ms,omitempty" doc:"Of a response: since its request"`
	Failed     bool            `json:"failed,omitempty" doc:"Of a response: it is an error"`
	Size       int             `json:"size" doc:"In bytes"`
	Body       json.RawMessage `json:"body,omitempty" doc:"The message, where it is asked for and has 64 KiB at most; what is no JSON is a text"`
	Truncated  bool            `json:"truncated,omitempty" doc:"It is longer: …/frames/{seq} has all of it"`
	Damaged    bool            `json:"damaged,omitempty" doc:"The journal cannot be read at this place"`
}

// FramePage is a part of a journal. A page is also ended by how much was looked through: with a filter it may be short, or empty.
type FramePage struct {
	Items []Frame `json:"items" doc:"Ascending by seq with after, else the newest first"`
	Next  int64   `json:"next,omitempty" doc:"What to pass as before for what is older, absent at the beginning; with after: what to pass as after to go on, always there"`
	More  bool    `json:"more,omitempty" doc:"There is more to be had at once"`
}

// FrameQuery is what is asked of a journal. Without After the newest frames are given; Wait holds the answer until there is one after After.
type FrameQuery struct {
	After  *int64
	Before int64 // 0 = the end
	Limit  int
	Wait   time.Duration
	Text   string // in the message, wherever its letters are large or small
	Dir    string // in, out or empty
	Method string // the beginning of its name, or of what an update tells of
	Notes  bool
	Bodies bool
}

const (
	frameBody   = 64 << 10 // a longer one is asked for by itself
	frameBodies = 2 << 20  // of one page
	frameScan   = 8192     // how many frames one call looks through
	frameRead   = 32 << 20 // and how many bytes
	framePart   = 512      // in one go
	framesBack  = 1 << 16  // how far before its response a request is looked for
	noteKind    = "note"   // kind and direction of our own
	unknownKind = "unknown"
	frameLinger = coalesce
)

// wire tells who follows what goes over a session's wire that there is more of it.
type wire struct {
	mu    sync.Mutex // protects what is below
	grown chan struct{}
}

// next is closed when there is more.
func (w *wire) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grown == nil {
		w.grown = make(chan struct{})
	}
	return w.grown
}

func (w *wire) grew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grown != nil {
		close(w.grown)
		w.grown = nil
	}
}

// Wire gives a part of a session's journal.
func (c *Client) Wire(ctx context.Context, id string, q FrameQuery) (FramePage, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return FramePage{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, min(max(q.Wait, 0), longestWait))
	defer cancel()
	for {
		grown := v.wire.next() // before it is looked: what comes meanwhile must not be waited for
		page, err := c.framePage(ctx, id, q)
		if err != nil || len(page.Items) > 0 || page.More || q.After == nil || q.Wait <= 0 {
			return page, err
		}
		q.After = new(page.Next)
		select {
		case <-grown:
		case <-waiting.Done():
			return page, nil
		case <-v.ended:
			return page, nil
		}
		pause(waiting, frameLinger) // what follows closely comes along
	}
}

// pause lasts d, or until the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// framePage looks through the journal part by part, until the page is full, or enough was looked at.
func (c *Client) framePage(ctx context.Context, id string, q FrameQuery) (FramePage, error) {
	page := FramePage{Items: []Frame{}}
	last, err := c.journal.Last(ctx, id)
	if err != nil {
		return page, err
	}
	s := frameScanner{c: c, session: id, q: q, last: last, text: searched(q.Text), updates: true}
	s.at = s.last + 1
	if q.Before > 0 {
		s.at = min(q.Before, s.at)
	}
	if q.After != nil {
		s.at = *q.After
	}
	full := false
	for !full && !s.ended() && s.looked < frameScan && s.read < frameRead {
		part, err := s.part(ctx)
		if err != nil {
			return page, err
		}
		page.Items, full = s.choose(page.Items, part)
	}
	page.More = !s.ended()
	if page.More || q.After != nil {
		page.Next = s.at
	}
	return page, nil
}

// frameScanner is one look through a journal, in one direction.
type frameScanner struct {
	c       *Client
	session string
	q       FrameQuery
	text    [][]byte // what is looked for, as messages may have it, in small letters
	updates bool     // what an update tells of is asked for
	last    int64    // the newest frame

	at     int64 // the frame that was looked at last; before the first: the one before it
	looked int
	read   int // bytes
	bodies int
}

func (s *frameScanner) ended() bool {
	if s.q.After != nil {
		return s.at >= s.last
	}
	return s.at <= 1
}

// lookedAt is a frame, and whether its text is the one that is looked for.
type lookedAt struct {
	Frame
	key  acp.Key
	fits bool
}

// part reads the next frames, in the order of the page. Numbers are counted and not rows, so that a part is small whatever is left out.
func (s *frameScanner) part(ctx context.Context) ([]lookedAt, error) {
	n := int64(framePart)
	if s.text == nil && s.q.Method == "" {
		n = int64(min(max(s.q.Limit, 32), framePart))
	}
	low, high := max(s.at-n, 1), s.at-1
	if s.q.After != nil {
		low, high = s.at+1, min(s.at+n, s.last)
	}
	var list []lookedAt
	cut := false
	r := journal.Range{Low: low, High: high, Dir: journal.Direction(s.q.Dir), Notes: s.q.Notes, Newest: s.q.After == nil}
	err := s.c.journal.Range(ctx, s.session, r, func(f journal.Stored) bool {
		if cut = s.read >= frameRead && len(list) > 0; cut {
			return false
		}
		list = append(list, s.look(f))
		s.at = f.N
		return true
	})
	if err != nil { // the connection was given back: there are few, and pair wants one
		return nil, err
	}
	if !cut {
		s.at = low
		if s.q.After != nil {
			s.at = high
		}
	}
	s.looked += int(high - low + 1)
	return list, s.pair(ctx, list)
}

// look reads a frame, and keeps no more of it than the page may need.
func (s *frameScanner) look(f journal.Stored) lookedAt {
	out := lookedAt{Frame: Frame{Seq: f.N, At: Time{Time: f.At}, Generation: f.Generation, Dir: string(f.Dir), Kind: unknownKind}}
	if err := s.c.journal.Decode(&f); err != nil {
		out.Damaged, out.fits = true, s.text == nil
		return out
	}
	s.read += len(f.Data)
	out.Size = len(f.Data)
	out.fits = s.text == nil || contains(f.Data, s.text)
	out.envelope(f.Frame)
	if !out.fits {
		return out
	}
	if s.updates && out.Method == "session/update" {
		out.Update = updateOf(f.Data)
	}
	if !s.q.Bodies {
		return out
	}
	if out.Truncated = len(f.Data) > frameBody; !out.Truncated {
		out.Body = record.AsJSON([]byte(s.c.secret.KnownOnly(string(f.Data))))
	}
	return out
}

// envelope tells what a frame is.
func (l *lookedAt) envelope(f journal.Frame) {
	if f.Dir == journal.Note {
		var n transcript.Note
		_ = json.Unmarshal(f.Data, &n) // it was looked at when it was decoded
		l.Kind, l.Method = noteKind, n.Note
		return
	}
	env, err := acp.Peek(f.Data)
	if err != nil {
		return
	}
	l.Method, l.key, l.Failed = env.Method(), env.Key(), env.HasError()
	l.ID = slices.Clone(env.ID)
	switch env.Kind {
	case acp.Request:
		l.Kind = "request"
	case acp.Response:
		l.Kind = "response"
	case acp.Notification:
		l.Kind = "notification"
	case acp.Other:
	}
}

// updateOf is what a session/update tells of; empty where it does not say.
func updateOf(data []byte) string {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // it was looked at when its envelope was
	u, _ := acp.ParseUpdate(m.Params)
	return u.Kind
}

// choose adds what the page is to have, and tells when it is full. What is then left of the part is looked at again.
func (s *frameScanner) choose(items []Frame, part []lookedAt) (_ []Frame, full bool) {
	for _, l := range part {
		if !l.fits || !strings.HasPrefix(l.Method, s.q.Method) && !strings.HasPrefix(l.Update, s.q.Method) {
			continue
		}
		items = append(items, l.Frame)
		s.bodies += len(l.Body)
		if len(items) >= s.q.Limit || s.bodies >= frameBodies {
			s.at = l.Seq
			return items, true
		}
	}
	return items, false
}

// asking is what a response has in common with its request.
type asking struct {
	generation int64
	dir        string // of the request
	key        acp.Key
}

func (l *lookedAt) asking() asking {
	dir := l.Dir
	if l.Kind == "response" {
		dir = map[string]string{string(journal.In): string(journal.Out), string(journal.Out): string(journal.In)}[l.Dir]
	}
	return asking{l.Generation, dir, l.key}
}

func (l *lookedAt) answers(r lookedAt) {
	l.Method, l.Millis = r.Method, new(l.At.Sub(r.At.Time).Milliseconds())
}

// pair finds the requests of responses: in the same part, else before it.
func (s *frameScanner) pair(ctx context.Context, part []lookedAt) error {
	open := map[asking]lookedAt{}
	lost := map[asking]*lookedAt{}
	order := slices.Clone(part)
	at := map[int64]*lookedAt{}
	for i := range part {
		at[part[i].Seq] = &part[i]
	}
	slices.SortFunc(order, func(a, b lookedAt) int { return int(a.Seq - b.Seq) })
	for _, l := range order {
		switch l.Kind {
		case "request":
			open[l.asking()] = l
		case "response":
			if r, found := open[l.asking()]; found {
				at[l.Seq].answers(r)
			} else {
				lost[l.asking()] = at[l.Seq]
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return s.pairBefore(ctx, order[0].Seq, lost)
}

// pairBefore looks for the requests of responses before a part. What is far before is not found: then it is not told how long it took.
func (s *frameScanner) pairBefore(ctx context.Context, before int64, lost map[asking]*lookedAt) error {
	look := frameScanner{c: s.c, session: s.session}
	oldest, dirs := int64(1)<<62, map[string]bool{}
	for a := range lost {
		oldest, dirs[a.dir] = min(oldest, a.generation), true
	}
	dir := journal.Direction("") // both
	if len(dirs) == 1 {
		for d := range dirs {
			dir = journal.Direction(d)
		}
	}
	for low := before; len(lost) > 0 && low > max(1, before-framesBack) && look.read < frameRead; {
		high := low - 1
		low = max(low-framePart, 1)
		err := s.c.journal.Range(ctx, s.session, journal.Range{Low: low, High: high, Dir: dir, Generation: oldest, Newest: true}, func(f journal.Stored) bool {
			r := look.look(f)
			if response := lost[r.asking()]; r.Kind == "request" && response != nil {
				response.answers(r)
				delete(lost, r.asking())
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// searched are the forms that a text may have in a message, in small letters; nil for none.
func searched(text string) (forms [][]byte) {
	for _, form := range redact.Forms(text) {
		forms = append(forms, bytes.ToLower([]byte(form)))
	}
	return forms
}

func contains(data []byte, forms [][]byte) bool {
	small := bytes.ToLower(data)
	return slices.ContainsFunc(forms, func(form []byte) bool { return bytes.Contains(small, form) })
}

// FrameBody is one whole message, as the journal has it.
func (c *Client) FrameBody(ctx context.Context, id string, seq int64) ([]byte, error) {
	if _, err := c.conversation(ctx, id); err != nil {
		return nil, err
	}
	f, found, err := c.journal.Frame(ctx, id, seq)
	if err == nil && !found {
		err = fmt.Errorf("frame %d: %w", seq, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return record.AsJSON([]byte(c.secret.KnownOnly(string(f.Data)))), nil
}
