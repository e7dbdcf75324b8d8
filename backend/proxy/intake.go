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

// intake makes messages of the lines of an agent. Only the goroutine that reads the lines uses an intake.
type intake struct {
	i       *Instance
	batch   [][]byte
	answers []answer
	around  []string // texts around messages that are already in the log
}

// answer is a response whose call is finished once the response is in the log.
type answer struct {
	at   int // index in the batch
	call *Call
	msg  []byte
}

// mostAround limits how many different texts around messages go into the log, because a progress text may change with every line.
const mostAround = 32

// line makes messages of a line. A blank line is no message.
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

// message adds a message, and finds the call that the message answers.
func (in *intake) message(e acp.Envelope, data []byte) {
	if e.Kind == acp.Response || e.Kind == acp.Other && e.ID != nil { // Other with an id has neither result nor error, but answers a call
		if call := in.i.takeAnswered(e.Key()); call != nil {
			in.answers = append(in.answers, answer{at: len(in.batch), call: call, msg: data})
		}
	}
	in.batch = append(in.batch, data)
}

// find adds the messages within a line that is no message itself. The text around them goes to the kept end of stderr, and once into the
// log, before the messages.
func (in *intake) find(data []byte, reason error) {
	f := acp.Find(data)
	if len(f.Messages) == 0 {
		if f.Rest != "" { // otherwise the line has nothing that a person could read
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

// noteAside keeps the text around messages together with stderr.
func (i *Instance) noteAside(text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stderr.write([]byte(text + "\n"))
}

// takeAnswered removes the call of an answer from the calls in flight. Some agents write a number id of a request as a text, or the
// reverse.
func (i *Instance) takeAnswered(key acp.Key) *Call {
	if call := i.takeCall(key); call != nil {
		return call
	}
	if twin := key.Twin(); twin != "" {
		return i.takeCall(twin)
	}
	return nil
}

// wideReader converts a stream in UTF-16, as programs of Windows write into pipes, to UTF-8. wideReader decides by the first bytes.
type wideReader struct {
	src io.Reader
	of  io.Reader // src, or a decoder of src; nil before the first bytes
}

func (w *wideReader) Read(p []byte) (int, error) {
	if w.of != nil {
		return w.of.Read(p)
	}
	n, err := w.src.Read(p)
	if n == 0 {
		return n, err
	}
	for err == nil && n < min(len(p), 4) && (n == 1 || p[0] == 0 || p[1] == 0) { // too short to tell; a message is longer
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

// then is a reader that returns err, or else reads src.
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

// orderOf reports whether a stream is in UTF-16: it begins with a byte order mark, or with a character of ASCII in UTF-16.
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
