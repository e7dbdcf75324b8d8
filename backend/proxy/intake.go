package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"deskhand/backend/acp"
)

// intake makes messages of the lines of an agent. It belongs to the goroutine that reads them.
type intake struct {
	i       *Instance
	batch   [][]byte
	answers []answer
	around  []string // what stood around messages and was told
}

// answer is a response that waits to be in the log before its call is told.
type answer struct {
	at   int // index in the batch
	call *Call
	msg  []byte
}

// mostAround is how many different texts around messages are told in the log; a progress may change with every line.
const mostAround = 32

// line makes messages of a line. A blank line is none.
func (in *intake) line(l line) {
	if l.length > maxLine {
		in.batch = append(in.batch, invalidLine(fmt.Errorf("a line of %d bytes is longer than the limit of %d", l.length, maxLine), l.data))
		return
	}
	e, err := acp.Peek(l.data)
	switch {
	case err == nil:
		in.message(e, l.data)
	case !errors.Is(err, acp.ErrEmpty):
		in.find(l.data, err)
	}
}

// message adds a message, and finds the call that it answers.
func (in *intake) message(e acp.Envelope, data []byte) {
	if e.Kind == acp.Response || e.Kind == acp.Other && e.ID != nil { // the latter says neither result nor error, but what it answers
		if call := in.i.takeAnswered(e.Key()); call != nil {
			in.answers = append(in.answers, answer{at: len(in.batch), call: call, msg: data})
		}
	}
	in.batch = append(in.batch, data)
}

// find adds what messages a line holds that is none itself, and keeps the rest: at the end of what the agent says on stderr, and in the log
// before the messages, unless it was told there before.
func (in *intake) find(data []byte, reason error) {
	f := acp.Find(data)
	if len(f.Messages) == 0 {
		if f.Rest != "" { // else it has nothing that a person could read
			in.batch = append(in.batch, invalidLine(reason, data))
		}
		return
	}
	if f.Rest != "" {
		in.i.noteAside(f.Rest)
		if len(in.around) < mostAround && !slices.Contains(in.around, f.Rest) {
			in.around = append(in.around, f.Rest)
			in.batch = append(in.batch, invalidLine(errAround, []byte(f.Rest)))
		}
	}
	for _, e := range f.Messages {
		in.message(e, e.Raw)
	}
}

var errAround = errors.New("text around a message")

// noteAside keeps what the agent said beside its messages with what it says on stderr.
func (i *Instance) noteAside(text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stderr.write([]byte(text + "\n"))
}

// takeAnswered takes the call of an answer out of the books. Some agents write the id of a request as a text where it was a number, or the other
// way round.
func (i *Instance) takeAnswered(key acp.Key) *Call {
	if call := i.takeCall(key); call != nil {
		return call
	}
	if twin := key.Twin(); twin != "" {
		return i.takeCall(twin)
	}
	return nil
}

// wideReader makes UTF-8 of a stream that begins in UTF-16, as programs of Windows write into pipes. It looks at the first bytes alone.
type wideReader struct {
	src io.Reader
	of  io.Reader // src, or what reads it; nil before the first bytes
}

func (w *wideReader) Read(p []byte) (int, error) {
	if w.of != nil {
		return w.of.Read(p)
	}
	n, err := w.src.Read(p)
	if n == 0 {
		return n, err
	}
	for err == nil && n < min(len(p), 4) && (n == 1 || p[0] == 0 || p[1] == 0) { // too little to tell; a message is longer
		var more int
		more, err = w.src.Read(p[n:])
		n += more
	}
	w.of = w.src
	if order, wide := orderOf(p[:n]); wide {
		begun := io.MultiReader(bytes.NewReader(bytes.Clone(p[:n])), &then{err, w.src})
		w.of = transform.NewReader(begun, unicode.UTF16(order, unicode.UseBOM).NewDecoder())
		return w.of.Read(p)
	}
	return n, err
}

// then is an error, where there was one, and else what a reader goes on with.
type then struct {
	err error
	src io.Reader
}

func (t *then) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	return t.src.Read(p)
}

// orderOf tells that a stream is in UTF-16: it begins with its mark, or with a character of ASCII in it.
func orderOf(b []byte) (order unicode.Endianness, wide bool) {
	if len(b) < 2 {
		return unicode.LittleEndian, false
	}
	switch {
	case b[0] == 0xff && b[1] == 0xfe, ' ' <= b[0] && b[0] < 0x7f && b[1] == 0 && (len(b) < 4 || b[3] == 0):
		return unicode.LittleEndian, true
	case b[0] == 0xfe && b[1] == 0xff, ' ' <= b[1] && b[1] < 0x7f && b[0] == 0 && (len(b) < 4 || b[2] == 0):
		return unicode.BigEndian, true
	}
	return unicode.LittleEndian, false
}
