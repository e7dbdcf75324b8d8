package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"deskhand/backend/proxy"
)

const (
	heartbeatEvery = 15 * time.Second
	// stopGrace is how long a stream that has ended may take to write what it has; a client that takes nothing would hold it for ever.
	stopGrace = 5 * time.Second
	// largeMessage is written by itself rather than copied once more.
	largeMessage = 64 << 10
	// pieceBytes is written at once. After each piece the log hears that the client reads: at the end of a thin line it may take
	// minutes for a batch, and is not to be dropped for that.
	pieceBytes = 64 << 10
)

// streamMessages sends the log of an instance as server-sent events: what is held, then what comes.
func (a *API) streamMessages(w http.ResponseWriter, r *http.Request) {
	id, ok := serverID(w, r)
	if !ok {
		return
	}
	if quality(r, "text/event-stream") == 0 {
		WriteProblem(w, Problem{Type: "not_acceptable", Detail: "the answer is text/event-stream"})
		return
	}
	after, given, err := lastEventID(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	reader, err := a.cfg.Runtime.Reader(r.Context(), id, after)
	if errors.Is(err, proxy.ErrUnknown) {
		WriteProblem(w, Problem{Type: "session_not_found", Detail: id, SessionID: id})
		return
	}
	if err != nil {
		a.refuse(w, err)
		return
	}
	s := newStream(w, reader)
	reader.OnStop(func() { _ = s.out.SetWriteDeadline(time.Now().Add(stopGrace)) })
	defer func() {
		reader.Close()
		_ = s.out.SetWriteDeadline(time.Time{}) // the connection may serve another request
	}()
	if oldest, gap := reader.Gap(); gap && given {
		s.gap(oldest)
	}
	if err := s.run(r.Context().Done()); err != nil && !errors.Is(err, io.EOF) {
		a.log.Debug("stream ended", "server_id", id, "error", err)
	}
}

// stream is one response of server-sent events.
type stream struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	reader *proxy.Reader
	buf    []byte
	err    error // of the first write that failed
}

func newStream(w http.ResponseWriter, reader *proxy.Reader) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	return &stream{w: w, out: http.NewResponseController(w), reader: reader}
}

// run sends messages until there will be none, the client has gone or a write fails.
func (s *stream) run(gone <-chan struct{}) error {
	quiet := time.NewTimer(heartbeatEvery)
	defer quiet.Stop()
	s.flush() // headers first: the client wants to know that it is connected
	for s.err == nil {
		batch, more, err := s.reader.Poll()
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			s.messages(batch)
			s.flush()
			quiet.Reset(heartbeatEvery)
			continue
		}
		select {
		case <-more:
		case <-gone:
			return nil
		case <-quiet.C:
			s.buf = append(s.buf, ": heartbeat\n\n"...)
			s.flush()
			s.buf = nil // it has been quiet: hold nothing
			quiet.Reset(heartbeatEvery)
		}
	}
	return s.err
}

func (s *stream) gap(oldest uint64) {
	s.buf = append(s.buf, "event: gap\ndata: {\"oldest\":"...)
	s.buf = strconv.AppendUint(s.buf, oldest, 10)
	s.buf = append(s.buf, "}\n\n"...)
}

func (s *stream) messages(batch []proxy.Message) {
	for _, m := range batch {
		s.buf = append(s.buf, "event: message\nid: "...)
		s.buf = strconv.AppendUint(s.buf, m.Seq, 10)
		s.buf = append(s.buf, "\ndata: "...)
		s.data(m.Data)
		s.buf = append(s.buf, "\n\n"...)
	}
}

// data adds a message. A carriage return, which in JSON is white space between tokens, would end the line here.
func (s *stream) data(data []byte) {
	if bytes.IndexByte(data, '\r') >= 0 {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte(" "))
	}
	if len(data) < largeMessage {
		s.buf = append(s.buf, data...)
		return
	}
	s.write(s.buf)
	s.buf = s.buf[:0]
	s.write(data)
}

// write hands bytes to the response.
func (s *stream) write(p []byte) {
	for len(p) > 0 && s.err == nil {
		piece := p[:min(len(p), pieceBytes)]
		_, s.err = s.w.Write(piece)
		s.reader.Working()
		p = p[len(piece):]
	}
}

func (s *stream) flush() {
	s.write(s.buf)
	s.buf = s.buf[:0]
	if s.err == nil {
		s.err = s.out.Flush()
	}
}
