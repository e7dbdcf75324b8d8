package session

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// lateness is how long a message that streams may be longer than it is stored. Its frames are in the journal before it is shown, as always;
// the entry, which is made of them, was written whole with every few words, of a message of 200 kB 25 MB a second.
const lateness = 500 * time.Millisecond

// late are the entries of the running turn whose text is longer than it is stored, by their ids. None of them changes any more: what
// grows on is another. Who reads stored entries puts them in (over); after a crash the turn is folded anew from its journal (recover).
type late map[string]*Entry

// spare gives what a step has to store of the entries that it changed, and what is late after it.
func (v *conversation) spare(entries []change) ([]change, late) {
	was := v.late.Load()
	if v.turn != nil && !v.overdue && v.step.adds() && !slices.ContainsFunc(entries, func(c change) bool { return !c.grew() }) {
		now := late{}
		maps.Copy(now, *was)
		for _, c := range entries {
			now[c.Entry.ID] = c.Entry
		}
		return nil, now
	}
	for _, e := range *was {
		if !slices.ContainsFunc(entries, func(c change) bool { return c.Entry.ID == e.ID }) {
			entries = append(entries, change{Entry: e})
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

// grew tells that nothing but text was added to an entry that is stored.
func (c change) grew() bool { return c.Append != nil && c.Append.Offset > 0 }

// adds tells that a step does nothing but go on with what its frames say, and with the session's record: agents tell of what they use between
// two words.
func (s *step) adds() bool {
	rest := *s
	rest.frames, rest.row, rest.line, rest.send, rest.shown = nil, nil, nil, nil, nil
	return rest.empty() && !s.sync && !s.imported && s.deletion == nil && s.closing == nil
}

// over puts what was late when the entries were asked for in the place of what was stored, where that is less: it may have been stored since,
// and changed otherwise.
func (l late) over(stored []Entry) []Entry {
	for i := range stored {
		if e := l[stored[i].ID]; e != nil && len(e.Text) > len(stored[i].Text) && behind(mustJSON(&stored[i]), e) {
			stored[i] = *e
		}
	}
	return stored
}

// behind tells that data, which is stored, is the entry, or as it was when it had less text.
func behind(data []byte, e *Entry) bool {
	var stored struct {
		Text    string
		Clipped int
	}
	if json.Unmarshal(data, &stored) != nil || !strings.HasPrefix(e.Text, stored.Text) || stored.Clipped > e.Clipped {
		return false
	}
	before := *e
	before.Text, before.Clipped = stored.Text, stored.Clipped
	return bytes.Equal(data, mustJSON(&before))
}
