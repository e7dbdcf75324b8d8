package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// Frame is one message between us and an agent, or a note of ours.
type Frame struct {
	Seq        int64           `json:"seq" doc:"Its number in the session's journal"`
	At         record.Time     `json:"at"`
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

// FramePage is a part of a journal. A page also ends when enough of the journal was looked through, so that a page with a filter may be short
// or empty.
type FramePage struct {
	Items []Frame `json:"items" doc:"Ascending by seq with after, else the newest first"`
	Next  int64   `json:"next,omitempty" doc:"What to pass as before for what is older, absent at the beginning; with after: what to pass as after to go on, always there"`
	More  bool    `json:"more,omitempty" doc:"There is more to be had at once"`
}

// Query selects frames of a journal. A Query without After selects the newest frames.
type Query struct {
	After  *int64        // frames with a greater number, the oldest first
	Before int64         // frames with a smaller number, the newest first; 0 = all
	Limit  int           // of the page, in frames
	Wait   time.Duration // with After: how long Frames waits for a frame when there is none; at most longestWait
	Text   string        // occurs in the message, in upper or lower case
	Dir    string        // in, out or empty
	Method string        // the beginning of the method's name, or of the kind of a session/update
	Notes  bool          // our own notes too
	Bodies bool          // with the messages
}

const (
	longestWait = 25 * time.Second
	linger      = 16 * time.Millisecond // frames that follow the first so closely come in the same page

	bodyLimit   = 64 << 10 // of a frame in a page, in bytes
	bodiesLimit = 2 << 20  // of a page, in bytes
	scanLimit   = 8192     // of a call, in frames
	readLimit   = 32 << 20 // of a call, in bytes
	partLimit   = 512      // frames that are read at once
	pairLimit   = 1 << 16  // frames between a request and its response

	noteKind    = "note"
	unknownKind = "unknown"
)

// Frames returns a page of the journal of a session.
func (i *Inspector) Frames(ctx context.Context, id string, q Query) (FramePage, error) {
	s, err := i.deps.Find(ctx, id)
	if err != nil {
		return FramePage{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, min(max(q.Wait, 0), longestWait))
	defer cancel()
	for {
		grown := s.Growth.Next() // before the page is read, so that no frame is missed
		page, err := i.page(ctx, id, q)
		if err != nil || len(page.Items) > 0 || page.More || q.After == nil || q.Wait <= 0 {
			return page, err
		}
		q.After = new(page.Next)
		select {
		case <-grown:
		case <-waiting.Done():
			return page, nil
		case <-s.Ended:
			return page, nil
		}
		pause(waiting, linger)
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

// page reads the journal part by part, until the page is full or a limit of the call is reached.
func (i *Inspector) page(ctx context.Context, id string, q Query) (FramePage, error) {
	page := FramePage{Items: []Frame{}}
	last, err := i.journal.Last(ctx, id)
	if err != nil {
		return page, err
	}
	s := scan{i: i, session: id, q: q, last: last, text: searched(q.Text), updates: true}
	s.at = s.last + 1
	if q.Before > 0 {
		s.at = min(q.Before, s.at)
	}
	if q.After != nil {
		s.at = *q.After
	}
	full := false
	for !full && !s.ended() && s.looked < scanLimit && s.read < readLimit {
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

// scan is a pass over a journal, in one direction.
type scan struct {
	i       *Inspector
	session string
	q       Query
	text    [][]byte // the forms of the searched text, in lower case; nil = every frame fits
	updates bool     // the kind of each session/update is read
	last    int64    // the newest frame

	at     int64 // the last frame of the pass so far; at first the frame before the pass
	looked int   // frames so far
	read   int   // bytes so far
	bodies int   // bytes of the bodies in the page
}

func (s *scan) ended() bool {
	if s.q.After != nil {
		return s.at >= s.last
	}
	return s.at <= 1
}

// scanned is a frame of a pass.
type scanned struct {
	Frame
	key  acp.Key
	fits bool // the message has the searched text
}

// part reads the next frames, in the order of the page. A part is a range of numbers and not a count of rows, so that a part stays small
// however many of its frames the query leaves out.
func (s *scan) part(ctx context.Context) ([]scanned, error) {
	n := int64(partLimit)
	if s.text == nil && s.q.Method == "" {
		n = int64(min(max(s.q.Limit, 32), partLimit))
	}
	low, high := max(s.at-n, 1), s.at-1
	if s.q.After != nil {
		low, high = s.at+1, min(s.at+n, s.last)
	}
	var list []scanned
	cut := false
	r := journal.Range{Low: low, High: high, Dir: journal.Direction(s.q.Dir), Notes: s.q.Notes, Newest: s.q.After == nil}
	err := s.i.journal.Range(ctx, s.session, r, func(f journal.Stored) bool {
		if cut = s.read >= readLimit && len(list) > 0; cut {
			return false
		}
		list = append(list, s.look(f))
		s.at = f.N
		return true
	})
	if err != nil { // the connection of the range is free again, and pair takes a connection: there are few
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

// look reads a frame, and keeps no more of the frame than the page may need.
func (s *scan) look(f journal.Stored) scanned {
	out := scanned{Frame: Frame{Seq: f.N, At: record.Time{Time: f.At}, Generation: f.Generation, Dir: string(f.Dir), Kind: unknownKind}}
	if err := s.i.journal.Decode(&f); err != nil {
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
	if out.Truncated = len(f.Data) > bodyLimit; !out.Truncated {
		out.Body = record.AsJSON([]byte(s.i.deps.Redactor.KnownOnly(string(f.Data))))
	}
	return out
}

// envelope reads the kind, the method and the id of a message.
func (l *scanned) envelope(f journal.Frame) {
	if f.Dir == journal.Note {
		var n transcript.Note
		_ = json.Unmarshal(f.Data, &n) // Decode has checked the JSON
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

// updateOf returns the kind of a session/update, or "".
func updateOf(data []byte) string {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // Peek has checked the JSON
	u, _ := acp.ParseUpdate(m.Params)
	return u.Kind
}

// choose adds the frames of a part that the query selects, and reports whether the page is full. The pass then ends at the last chosen frame.
func (s *scan) choose(items []Frame, part []scanned) (_ []Frame, full bool) {
	for _, l := range part {
		if !l.fits || !strings.HasPrefix(l.Method, s.q.Method) && !strings.HasPrefix(l.Update, s.q.Method) {
			continue
		}
		items = append(items, l.Frame)
		s.bodies += len(l.Body)
		if len(items) >= s.q.Limit || s.bodies >= bodiesLimit {
			s.at = l.Seq
			return items, true
		}
	}
	return items, false
}

// pairKey identifies a request; a response has the pairKey of its request.
type pairKey struct {
	generation int64
	dir        string // of the request
	key        acp.Key
}

func (l *scanned) pair() pairKey {
	dir := l.Dir
	if l.Kind == "response" {
		dir = map[string]string{string(journal.In): string(journal.Out), string(journal.Out): string(journal.In)}[l.Dir]
	}
	return pairKey{l.Generation, dir, l.key}
}

func (l *scanned) answers(r scanned) {
	l.Method, l.Millis = r.Method, new(l.At.Sub(r.At.Time).Milliseconds())
}

// pair gives the responses of a part the methods of their requests, which are in the same part or before the part.
func (s *scan) pair(ctx context.Context, part []scanned) error {
	open := map[pairKey]scanned{}
	lost := map[pairKey]*scanned{}
	order := slices.Clone(part)
	at := map[int64]*scanned{}
	for i := range part {
		at[part[i].Seq] = &part[i]
	}
	slices.SortFunc(order, func(a, b scanned) int { return int(a.Seq - b.Seq) })
	for _, l := range order {
		switch l.Kind {
		case "request":
			open[l.pair()] = l
		case "response":
			if r, found := open[l.pair()]; found {
				at[l.Seq].answers(r)
			} else {
				lost[l.pair()] = at[l.Seq]
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return s.pairBefore(ctx, order[0].Seq, lost)
}

// pairBefore looks for the requests of responses before a part. A request further back than pairLimit is not found, and its response stays
// without a method and a duration.
func (s *scan) pairBefore(ctx context.Context, before int64, lost map[pairKey]*scanned) error {
	look := scan{i: s.i, session: s.session}
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
	for low := before; len(lost) > 0 && low > max(1, before-pairLimit) && look.read < readLimit; {
		high := low - 1
		low = max(low-partLimit, 1)
		err := s.i.journal.Range(ctx, s.session, journal.Range{Low: low, High: high, Dir: dir, Generation: oldest, Newest: true}, func(f journal.Stored) bool {
			r := look.look(f)
			if response := lost[r.pair()]; r.Kind == "request" && response != nil {
				response.answers(r)
				delete(lost, r.pair())
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// searched returns the forms that a text may have in a message, in lower case; nil for no text.
func searched(text string) (forms [][]byte) {
	for _, form := range redact.Forms(text) {
		forms = append(forms, bytes.ToLower([]byte(form)))
	}
	return forms
}

// contains reports whether a message has one of the forms.
func contains(data []byte, forms [][]byte) bool {
	small := bytes.ToLower(data)
	return slices.ContainsFunc(forms, func(form []byte) bool { return bytes.Contains(small, form) })
}

// Body returns a whole message of a session's journal.
func (i *Inspector) Body(ctx context.Context, id string, seq int64) ([]byte, error) {
	if _, err := i.deps.Find(ctx, id); err != nil {
		return nil, err
	}
	f, found, err := i.journal.Frame(ctx, id, seq)
	if err == nil && !found {
		err = fmt.Errorf("frame %d: %w", seq, refusal.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return record.AsJSON([]byte(i.deps.Redactor.KnownOnly(string(f.Data)))), nil
}
