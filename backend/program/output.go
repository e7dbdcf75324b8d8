package program

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"deskhand/backend/proxy"
)

// MostNews is how many bytes of output wait for News at most; older bytes are counted.
const MostNews = 64 << 10

// chunkSlack keeps small limits from moving their bytes at each write.
const chunkSlack = 4 << 10

// Output is the output of a program, and the program's end. The agent is given the newest bytes within a limit; people are shown the output
// in pieces as it comes. Any goroutine may call the methods of Output.
type Output struct {
	limit int
	fresh chan struct{} // holds a token when there is output that nobody has seen
	gone  chan struct{} // closed when the program has ended and all of its output is here

	mu      sync.Mutex // protects the fields below
	kept    []byte     // for the agent
	cut     bool       // the beginning of the output is not in kept
	unseen  []byte     // for people
	skipped int64      // bytes that were dropped before unseen
	over    bool
	exit    proxy.Exit
}

// NewOutput returns the Output of a program that has written nothing yet. limit is how many bytes are kept for the agent.
func NewOutput(limit int) *Output {
	return &Output{limit: limit, fresh: make(chan struct{}, 1), gone: make(chan struct{})}
}

// Fresh holds a token when there is output, or the end, that News has not returned.
func (o *Output) Fresh() <-chan struct{} { return o.fresh }

// Gone is closed when the program has ended and all of its output is taken.
func (o *Output) Gone() <-chan struct{} { return o.gone }

// Write takes output of the program; the oldest output is dropped beyond the limits. Write never fails, and never waits for a reader.
func (o *Output) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, data...)
	if over := len(o.kept) - o.limit; over > o.limit/2+chunkSlack { // not at each byte: Text cuts the rest
		o.kept, o.cut = append(o.kept[:0], o.kept[over:]...), true
	}
	o.unseen = append(o.unseen, data...)
	if over := len(o.unseen) - MostNews; over > 0 {
		o.unseen = append(o.unseen[:0], o.unseen[over:]...)
		o.skipped += int64(over)
	}
	o.wake()
	return len(data), nil
}

func (o *Output) wake() {
	select {
	case o.fresh <- struct{}{}:
	default:
	}
}

// Finish records the end of the program. Finish is called once, after the last Write.
func (o *Output) Finish(exit proxy.Exit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.exit = true, exit
	close(o.gone)
	o.wake()
}

// Exit returns how the program ended; ended is false while the program runs. code is nil for a program that a signal ended, or whose exit is
// not known.
func (o *Output) Exit() (code *int, signal string, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		return nil, "", false
	}
	if o.exit.Signal == "" && o.exit.Code >= 0 {
		code = &o.exit.Code
	}
	return code, o.exit.Signal, true
}

// News returns the newest output that News has not returned yet, at most so many bytes, how many bytes before that output are left out, and
// whether the program runs on. News marks all output as returned.
func (o *Output) News(most int) (text string, skipped int64, running bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if over := len(o.unseen) - most; over > 0 {
		o.unseen = o.unseen[over:]
		o.skipped += int64(over)
	}
	if o.skipped > 0 {
		part := fromRune(o.unseen)
		o.skipped += int64(len(o.unseen) - len(part))
		o.unseen = part
	}
	whole := len(o.unseen)
	if !o.over {
		whole = wholeRunes(o.unseen)
	}
	text, skipped = strings.ToValidUTF8(string(o.unseen[:whole]), "\uFFFD"), o.skipped
	o.unseen, o.skipped = slices.Clone(o.unseen[whole:]), 0
	return text, skipped, !o.over
}

// Text returns the newest output within the limit, cut between characters, and whether older output is left out.
func (o *Output) Text() (text string, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, cut := o.kept, o.cut
	if over := len(data) - o.limit; over > 0 {
		data, cut = data[over:], true
	}
	if cut {
		data = fromRune(data)
	}
	if !o.over {
		data = data[:wholeRunes(data)]
	}
	text = strings.ToValidUTF8(string(data), "\uFFFD")
	if over := len(text) - o.limit; over > 0 { // replaced bytes may have made the text longer
		text, cut = string(fromRune([]byte(text[over:]))), true
	}
	return text, cut
}

// fromRune returns b from its first whole character on.
func fromRune(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b // b is no UTF-8, so no character is cut
}

// wholeRunes returns the length of b without an incomplete character at its end.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		last := b[len(b)-back:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}
