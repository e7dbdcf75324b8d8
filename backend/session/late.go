package session

import (
	"maps"
	"slices"
	"time"

	"deskhand/backend/transcript"
)

// lateness is how long a message that streams may be longer than it is stored. Its frames are in the journal before it is shown, as always;
// the entry, which is made of them, was written whole with every few words, of a message of 200 kB 25 MB a second.
const lateness = 500 * time.Millisecond

// late are the entries of the running turn whose text is longer than it is stored, by their ids. None of them changes any more: what
// grows on is another. Who reads stored entries puts them in (over); after a crash the turn is folded anew from its journal (recover).
type late map[string]*transcript.Entry

// spare gives what a step has to store of the entries that it changed, and what is late after it.
func (v *conversation) spare(entries []transcript.Change) ([]transcript.Change, late) {
	was := v.late.Load()
	if v.turn != nil && !v.overdue && v.step.adds() && !slices.ContainsFunc(entries, func(c transcript.Change) bool { return !c.Grew() }) {
		now := late{}
		maps.Copy(now, *was)
		for _, c := range entries {
			now[c.Entry.ID] = c.Entry
		}
		return nil, now
	}
	for _, e := range *was {
		if !slices.ContainsFunc(entries, func(c transcript.Change) bool { return c.Entry.ID == e.ID }) {
			entries = append(entries, transcript.Change{Entry: e})
		}
	}
	return entries, nil
}

// spared is told what is late once the step is written, before anybody hears of it.
func (v *conversation) spared(now late) {
	v.overdue = false
	v.late.Store(&now)
	switch {
	case len(now) == 0 && v.lateTimer != nil:
		v.lateTimer.Stop()
		v.lateTimer = nil
	case len(now) > 0 && v.lateTimer == nil:
		var timer *time.Timer
		timer = time.AfterFunc(lateness, func() {
			v.post(func() { v.overdue = v.lateTimer == timer }) // else it was stopped too late
		})
		v.lateTimer = timer
	}
}

// adds tells that a step does nothing but go on with what its frames say, and with the session's record: agents tell of what they use between
// two words.
func (s *step) adds() bool {
	rest := *s
	rest.frames, rest.row, rest.line, rest.send = nil, nil, nil, nil
	return rest.empty() && !s.sync && !s.imported && s.deletion == nil && s.closing == nil
}

// over puts what was late when the entries were asked for in the place of what was stored, where that is less: it may have been stored since,
// and changed otherwise.
func (l late) over(stored []transcript.Entry) []transcript.Entry {
	for i := range stored {
		if e := l[stored[i].ID]; e != nil && len(e.Text) > len(stored[i].Text) && transcript.IsPrefixOf(mustJSON(&stored[i]), e) {
			stored[i] = *e
		}
	}
	return stored
}
