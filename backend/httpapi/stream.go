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
	// stopGrace is how long an ended stream may take for its last writes; a client that reads nothing would block the stream for ever.
	stopGrace = 5 * time.Second
	// largeMessage is the size from which a message is written directly, without another copy.
	largeMessage = 64 << 10
	// pieceBytes is the size of a single write. After each piece the log learns that the client still reads: a batch may take minutes on a slow
	// line, and must not get the reader dropped.
	pieceBytes = 64 << 10
)

// streamMessages sends the log of an instance as server-sent events: the kept messages, then the new.
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

// stream is a response of server-sent events.
type stream struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	reader *proxy.Reader
	buf    []byte
	err    error // of the first failed write
}

func newStream(w http.ResponseWriter, reader *proxy.Reader) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	return &stream{w: w, out: http.NewResponseController(w), reader: reader}
}

// run sends messages until there are no more, the client is gone, or a write fails.
func (s *stream) run(gone <-chan struct{}) error {
	quiet := time.NewTimer(heartbeatEvery)
	defer quiet.Stop()
	s.flush() // headers go first: the client waits for the connection
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
			s.buf = nil // idle: release the buffer
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

// data adds a message. A carriage return, which is white space between JSON tokens, would end the line.
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

// write writes bytes to the response in pieces.
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
