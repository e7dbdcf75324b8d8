package setup

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// The most that is kept of what a set-up writes.
const (
	mostHead = 16 << 10
	mostTail = 64 << 10
)

// output is the beginning and the end of what a set-up has written. The zero value is empty, and so is nil.
type output struct {
	mu   sync.Mutex // protects the fields below
	head []byte
	tail []byte
	cut  int64 // bytes between both
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if room := mostHead - len(o.head); room > 0 && o.cut == 0 && len(o.tail) == 0 {
		room = min(room, len(p))
		o.head = append(o.head, p[:room]...)
		p = p[room:]
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - mostTail; over > 0 {
		o.cut += int64(over)
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return n, nil
}

// kept is what is stored and shown of an output.
type kept struct {
	Head string `json:"head,omitempty"`
	Tail string `json:"tail,omitempty"`
	Cut  int64  `json:"cut,omitempty"`
}

// keep returns an output as text, without secrets. Where nothing is cut out, all of it is the head, so that no secret stands across two texts.
func (o *output) keep(clean func(string) string) kept {
	if o == nil {
		return kept{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut == 0 {
		return kept{Head: readable(clean(string(o.head) + string(o.tail)))}
	}
	return kept{Head: readable(clean(string(o.head))), Tail: readable(clean(string(o.tail))), Cut: o.cut}
}

// restored returns the output that was kept.
func (k kept) restored() *output {
	return &output{head: []byte(k.Head), tail: []byte(k.Tail), cut: k.Cut}
}

// sequences are what programs write for the screen of a terminal: colours, movements, titles.
var sequences = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])")

// readable returns what a terminal would show of a text, line by line: without colours, and only the last of what was written over itself.
func readable(text string) string {
	text = strings.ReplaceAll(sequences.ReplaceAllString(text, ""), "\r\n", "\n")
	var b strings.Builder
	for line := range strings.Lines(text) {
		end := strings.TrimSuffix(line, "\n")
		end = strings.TrimRight(end, "\r")
		if at := strings.LastIndexByte(end, '\r'); at >= 0 {
			end = end[at+1:]
		}
		b.WriteString(strings.Map(printable, end))
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func printable(r rune) rune {
	if r < ' ' && r != '\t' || r == utf8.RuneError {
		return -1
	}
	return r
}
