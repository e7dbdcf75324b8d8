package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// event is a server-sent event.
type event struct {
	kind   string
	id     string
	data   []byte
	tooBig bool // the data is longer than any message
}

// events reads server-sent events.
type events struct {
	in *bufio.Reader
	// between is called when all received bytes are read and end outside of an event; nil = not called.
	between func()
}

// next reads to the end of an event that has data.
func (s *events) next() (event, error) {
	var e event
	filled := false
	for {
		line, whole, err := s.line()
		if err != nil {
			return e, err
		}
		if len(line) == 0 && whole {
			if filled {
				return e, nil
			}
		} else {
			filled = e.field(line, whole) || filled
		}
		if s.between != nil && s.in.Buffered() == 0 && !filled && e.kind == "" && e.id == "" { // a comment as a sign of life, for example
			s.between()
		}
	}
}

// field reads a line of an event, and reports whether the line is data.
func (e *event) field(line []byte, whole bool) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.kind = string(value)
	case "id":
		e.id = string(value)
	case "data":
		if e.tooBig = e.tooBig || !whole || len(e.data)+1+len(value) > maxMessage; e.tooBig {
			return true // the data is dropped
		}
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return true
	}
	return false
}

// line reads a line without its end. For a line longer than any message, line returns the start, and whole is false.
func (s *events) line() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := s.in.ReadSlice('\n')
		if len(line)+len(part) <= maxMessage {
			line = append(line, part...)
		} else {
			whole = false
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		return bytes.TrimRight(line, "\r\n"), whole, nil
	}
}

// pulse is a reader that calls beat when data comes.
type pulse struct {
	io.Reader
	beat func()
}

func (p pulse) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n > 0 {
		p.beat()
	}
	return n, err
}

// stream reads the instance's stream until the stream breaks.
func (i *Instance) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	last, begun := i.begin(cancel)
	watch := time.AfterFunc(i.runtime.cfg.Stall, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := i.runtime.request(ctx, http.MethodGet, instancePath(i.id), nil, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cache-Control", "no-store")
	if last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	res, err := i.runtime.do(req)
	if err != nil {
		if p, ok := errors.AsType[*ProblemError](err); ok && p.kind() == "session_not_found" {
			if begun {
				return ErrGone
			}
			return errNotThere
		}
		return because(ctx, err)
	}
	if !isOf(res, "text/event-stream") {
		return foreign(res)
	}
	defer res.Body.Close()
	i.connected()
	in := events{bufio.NewReaderSize(pulse{res.Body, func() {
		watch.Reset(i.runtime.cfg.Stall)
		i.hears(true)
	}}, 64<<10), func() { i.hears(false) }}
	for {
		e, err := in.next()
		if err != nil {
			return because(ctx, fmt.Errorf("%w: %w", ErrUnreachable, err))
		}
		watch.Stop() // nobody reads the line while take waits for room in the queue
		if err := i.take(ctx, e); err != nil {
			return err
		}
		watch.Reset(i.runtime.cfg.Stall)
		i.hears(in.in.Buffered() > 0)
	}
}

// because returns the cause of the context's end when the context has ended, and err otherwise.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// take handles an event.
func (i *Instance) take(ctx context.Context, e event) error {
	switch e.kind {
	case "gap":
		var gap struct {
			Oldest uint64 `json:"oldest"`
		}
		if json.Unmarshal(e.data, &gap) == nil {
			i.skip(ctx, gap.Oldest)
		}
		return nil
	case "message", "":
		n, err := strconv.ParseUint(e.id, 10, 64)
		if err != nil {
			n = 0
		}
		return i.enqueue(ctx, n, e)
	}
	return nil
}
