package httpapi

import (
	"net/http"
	"strings"
	"time"

	"deskhand/backend/proxy"
)

// get opens a stream of server-sent events, or a WebSocket.
func (s *standard) get(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		s.socket(w, r)
		return
	}
	if !strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/event-stream") {
		inWords(w, http.StatusNotAcceptable, "Not Acceptable")
		return
	}
	p, ok := s.find(w, r)
	if !ok {
		return
	}
	session := r.Header.Get(headerSession)
	if len(session) > longestSessionID || strings.HasPrefix(session, "\x00") {
		inWords(w, http.StatusBadRequest, "Invalid "+headerSession)
		return
	}
	m, ok := p.take(session)
	if !ok {
		inWords(w, http.StatusConflict, "Outbound stream already has an active receiver")
		return
	}
	p.watch(s, 1)
	defer p.watch(s, -1)
	defer p.giveBack(m)
	if s.stream(w, r, p, session, m) {
		s.drop(p)
	}
}

// mostStreams is how many different sessions a client may read in its life.
const mostStreams = 1024

// take reserves a session's stream for a reader.
func (p *peer) take(session string) (*mail, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.mails[session]
	if m == nil && len(p.mails) >= mostStreams {
		return nil, false
	}
	if m == nil {
		m = &mail{at: p.inst.Since()}
		p.mails[session] = m
	}
	if m.taken {
		return nil, false
	}
	m.taken = true
	return m, true
}

func (p *peer) giveBack(m *mail) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.taken = false
}

// stream sends the messages of a stream. over reports that the client's agent must be ended: the process has ended, or messages are lost.
func (s *standard) stream(w http.ResponseWriter, r *http.Request, p *peer, session string, m *mail) (over bool) {
	reader := p.inst.After(m.at)
	defer reader.Close()
	oldest, gap := reader.Gap()
	kept := gap && p.kept(session, oldest)
	switch {
	case !gap:
	case session == "":
		inWords(w, http.StatusGone, "More was said than is kept, and nobody read it: initialize anew, and load the session")
		return true
	case kept && m.at == p.inst.Since(): // never read, and the dropped messages were about other sessions
	default:
		m.at = oldest - 1
		inWords(w, http.StatusGone, "More was said than is kept since this stream was read: load the session, and open it again")
		return false
	}
	out := newStream(w, reader)
	reader.OnStop(func() { _ = out.out.SetWriteDeadline(time.Now().Add(stopGrace)) })
	defer func() { _ = out.out.SetWriteDeadline(time.Time{}) }() // the connection may serve another request
	return p.pump(out, session, m, r.Context().Done())
}

// pump sends messages until there are no more, or the client is gone.
func (p *peer) pump(out *stream, session string, m *mail, gone <-chan struct{}) (over bool) {
	quiet := time.NewTimer(heartbeatEvery)
	defer quiet.Stop()
	out.flush() // headers go first: the client waits for the connection
	for out.err == nil {
		p.passing.RLock()
		batch, more, err := out.reader.Poll()
		routes := p.note(batch)
		p.passing.RUnlock()
		if err != nil {
			return false
		}
		if len(batch) > 0 {
			over := p.send(out, session, batch, routes)
			if out.flush(); out.err == nil {
				m.at = batch[len(batch)-1].Seq
			}
			if over {
				return true
			}
			quiet.Reset(heartbeatEvery)
			continue
		}
		select {
		case <-more:
		case <-gone:
			return false
		case <-quiet.C:
			out.buf = append(out.buf, ":\n\n"...)
			out.flush()
			out.buf = nil // idle: release the buffer
			quiet.Reset(heartbeatEvery)
		}
	}
	return false
}

// send sends the messages of a batch that are routed to this stream. over reports that the agent has ended.
func (p *peer) send(out *stream, session string, batch []proxy.Message, routes []string) (over bool) {
	for n, msg := range batch {
		switch routes[n] {
		case routeEnd:
			over = true
		case session:
			out.buf = append(out.buf, "data: "...)
			out.data(msg.Data)
			out.buf = append(out.buf, "\n\n"...)
		}
	}
	return over
}
