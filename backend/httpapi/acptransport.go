package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// The protocol's own transport, at /acp/{agent}: streamable HTTP and WebSocket, as in its RFD and the SDKs. Each client has its own agent
// process, which initialize starts. The messages of the process are in its log, as for every instance, and each stream of the client reads
// the log separately and selects its messages: those of a session, or all others. So no message is queued twice, unread messages stay as
// long as the log keeps them, and a slow reader holds the agent up. Errors are plain text, as the RFD demands.

// The headers of the transport.
const (
	headerPeer    = "Acp-Connection-Id"
	headerSession = "Acp-Session-Id"
)

// abandoned is how long a client may be without a stream before its agent is ended.
const abandoned = time.Minute

// longestSessionID is the longest id of a session; the SDKs have the same limit.
const longestSessionID = 1024

// standard holds the clients of the transport.
type standard struct {
	api *API

	mu      sync.Mutex // protects the fields below
	peers   map[string]*peer
	sockets sync.WaitGroup
	closing chan struct{} // closed by close
}

func newStandard(a *API) *standard {
	return &standard{api: a, peers: map[string]*peer{}, closing: make(chan struct{})}
}

func (s *standard) routes(m *router) {
	m.HandleFunc("POST /acp/{agent}", s.post)
	m.HandleFunc("GET /acp/{agent}", s.get)
	m.HandleFunc("DELETE /acp/{agent}", s.remove)
}

// close ends the WebSockets, which no server waits for, and waits until they are closed.
func (s *standard) close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	s.sockets.Wait()
}

// peer is a client of the transport, with its agent.
type peer struct {
	id, agent string
	inst      *proxy.Instance

	passing sync.RWMutex // held for reading while a stream takes messages and notes their sessions

	mu      sync.Mutex       // protects the fields below
	answers routes           // by the client's request: the session whose stream gets the answer, see routeOf
	asked   routes           // by the agent's request: its session
	mails   map[string]*mail // by session; "" = messages without a session
	passed  passed
	streams int
	idle    *time.Timer
}

// routes maps requests to their sessions. Several streams look every request up, each at its own time, so none of them can remove an entry:
// the oldest entries are dropped when there are too many. An answer to such an old request then goes to the client's own stream.
type routes struct {
	of    map[acp.Key]way
	order []acp.Key
}

// way is the route of the answer to a request: the request's session. An id may be reused once answered: a stream that lags behind still
// has to pass the earlier answer, which goes to the earlier session.
type way struct {
	session  string
	answered uint64 // number of the answer; 0 = no stream has passed the answer
	before   string // session of the earlier request with the same id
	upTo     uint64 // for answers up to this number
}

const mostRoutes = 4096

func (r *routes) put(id acp.Key, session string) {
	if r.of == nil {
		r.of = map[acp.Key]way{}
	}
	old, again := r.of[id]
	if !again {
		r.order = append(r.order, id)
	}
	r.of[id] = way{session: session, before: old.session, upTo: old.answered}
	if len(r.order) > mostRoutes {
		delete(r.of, r.order[0])
		r.order = r.order[1:]
	}
}

// answer returns the session of the request that message number seq answers.
func (r *routes) answer(id acp.Key, seq uint64) string {
	one, known := r.of[id]
	if known && seq <= one.upTo {
		return one.before
	}
	if known && one.answered == 0 {
		one.answered = seq
		r.of[id] = one
	}
	return one.session
}

// mail is the position of a stream.
type mail struct {
	at    uint64
	taken bool
}

// passed summarises the messages that the client's streams have passed, to tell whether dropped messages were about a session.
type passed struct {
	first map[string]uint64 // number of the first message about each session
	upTo  uint64
	blind bool // some messages were dropped unseen
}

// kept reports whether all messages about a session are kept that no stream has read; oldest is the oldest kept message.
func (p *peer) kept(session string, oldest uint64) bool {
	p.passing.Lock() // streams that have taken messages have noted them
	defer p.passing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed.blind = p.passed.blind || oldest > p.passed.upTo+1
	first, some := p.passed.first[session]
	return !p.passed.blind && (!some || first >= oldest)
}

// note records the sessions of the messages that a stream has taken, and returns the stream for each.
func (p *peer) note(batch []proxy.Message) []string {
	if len(batch) == 0 {
		return nil
	}
	routes := make([]string, len(batch))
	for n, msg := range batch {
		routes[n] = p.routeOf(msg)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, session := range routes {
		if session == "" || strings.HasPrefix(session, "\x00") || len(session) > longestSessionID {
			continue // no such stream exists
		}
		first, known := p.passed.first[session]
		switch {
		case known:
			p.passed.first[session] = min(first, batch[n].Seq)
		case len(p.passed.first) < mostRoutes:
			p.passed.first[session] = batch[n].Seq
		default:
			p.passed.blind = true
		}
	}
	p.passed.upTo = max(p.passed.upTo, batch[len(batch)-1].Seq)
	return routes
}

// Routes to no stream.
const (
	routeNone = "\x00none" // the answer to initialize, which the POST got
	routeEnd  = "\x00end"  // the agent has ended
)

// inWords answers with plain text.
func inWords(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words)) // fails only when the caller is gone
}

// refuseText answers with the text of an error.
func (s *standard) refuseText(w http.ResponseWriter, err error) {
	p := s.api.problemOf(err).document()
	inWords(w, p.Status, p.Detail)
}

func (s *standard) post(w http.ResponseWriter, r *http.Request) {
	e, ok := s.message(w, r)
	if !ok {
		return
	}
	id := r.Header.Get(headerPeer)
	initialize := e.Kind == acp.Request && e.Method() == "initialize"
	switch {
	case initialize && id == "":
		s.begin(w, r, e)
		return
	case initialize:
		inWords(w, http.StatusBadRequest, "Initialize not allowed on existing connection")
		return
	}
	p, ok := s.find(w, r)
	if !ok {
		return
	}
	session, why := p.admit(e, r.Header.Values(headerSession))
	if why != "" {
		inWords(w, http.StatusBadRequest, why)
		return
	}
	if err := p.pass(r.Context(), e, session); err != nil {
		s.refusePass(w, p, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// refusePass answers for a message that the agent did not get. 409 is taken: clients of the transport read 409 as a second reader of the
// session.
func (s *standard) refusePass(w http.ResponseWriter, p *peer, err error) {
	switch {
	case errors.Is(err, proxy.ErrDuplicateID):
		inWords(w, http.StatusBadRequest, "A request with this id is in flight already")
	case errors.As(err, new(*proxy.ExitError)), errors.Is(err, proxy.ErrRemoved):
		s.drop(p)
		inWords(w, http.StatusNotFound, "Unknown "+headerPeer+": the agent has ended")
	default:
		s.refuseText(w, err)
	}
}

// message reads a message from the body, or answers with an error.
func (s *standard) message(w http.ResponseWriter, r *http.Request) (acp.Envelope, bool) {
	if mediaType(r) != "application/json" {
		inWords(w, http.StatusUnsupportedMediaType, "Unsupported Media Type")
		return acp.Envelope{}, false
	}
	body, err := readBody(w, r, maxEnvelope)
	if err != nil {
		s.refuseText(w, err)
		return acp.Envelope{}, false
	}
	e, err := acp.Peek(body)
	switch {
	case err != nil:
		inWords(w, http.StatusBadRequest, "Invalid JSON: "+err.Error())
	case e.Raw[0] == '[':
		s.reply(w, http.StatusBadRequest, batchesRefused())
	case e.Kind == acp.Other, e.ID != nil && e.Key() == "":
		inWords(w, http.StatusBadRequest, "Invalid JSON-RPC message")
	default:
		return e, true
	}
	return e, false
}

func batchesRefused() []byte {
	msg, _ := acp.NewErrorResponse(json.RawMessage("null"), &acp.Error{Code: acp.CodeInvalidRequest, Message: "JSON-RPC batches are not supported"})
	return msg
}

func (s *standard) reply(w http.ResponseWriter, status int, msg []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(msg) // fails only when the caller is gone
}

// begin starts an agent for a new client. Only the answer to initialize comes with a POST.
func (s *standard) begin(w http.ResponseWriter, r *http.Request, e acp.Envelope) {
	ctx := r.Context()
	id, inst, err := s.start(ctx, r.PathValue("agent"))
	if err != nil {
		s.refuseStart(w, e, err)
		return
	}
	p := s.add(id, inst)
	p.answers.put(e.Key(), routeNone)
	answer, err := first(ctx, inst, e)
	if err != nil {
		s.drop(p)
		s.refuseStart(w, e, err)
		return
	}
	p.watch(s, 0) // the client must open its streams in time
	w.Header().Set(headerPeer, id)
	s.reply(w, http.StatusOK, answer)
}

// start starts an agent of the table; no other program can be named.
func (s *standard) start(ctx context.Context, agent string) (id string, inst *proxy.Instance, err error) {
	id = uuid.NewString()
	inst, err = s.api.cfg.Runtime.Ensure(ctx, standardID(id), agent, s.api.prepare(agent, ""))
	if err != nil { // also when only this wait has ended
		err = errors.Join(err, s.api.cfg.Runtime.Remove(standardID(id)))
	}
	return id, inst, err
}

// standardID returns the server_id of a client's instance.
func standardID(id string) string { return "acp." + id }

// first sends initialize and waits for the answer.
func first(ctx context.Context, inst *proxy.Instance, e acp.Envelope) ([]byte, error) {
	call, err := inst.Call(e)
	if err != nil {
		return nil, err
	}
	select {
	case <-call.Done():
		return call.Outcome()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuseStart answers a client whose agent cannot be started.
func (s *standard) refuseStart(w http.ResponseWriter, e acp.Envelope, err error) {
	if errors.Is(err, agents.ErrUnknown) {
		inWords(w, http.StatusNotFound, err.Error())
		return
	}
	p := s.api.problemOf(err).document()
	data, err := json.Marshal(p)
	if err != nil { // details that cannot be encoded
		data = nil
	}
	msg, _ := acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeInternalError, Message: p.Detail, Data: data})
	s.reply(w, http.StatusInternalServerError, msg)
}

func (s *standard) add(id string, inst *proxy.Instance) *peer {
	p := &peer{
		id: id, agent: inst.Agent(), inst: inst, mails: map[string]*mail{}, passed: passed{first: map[string]uint64{}, upTo: inst.Since()},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[id] = p
	return p
}

// find returns the client of a call, or answers with an error.
func (s *standard) find(w http.ResponseWriter, r *http.Request) (*peer, bool) {
	id := r.Header.Get(headerPeer)
	if id == "" {
		inWords(w, http.StatusBadRequest, "Missing "+headerPeer)
		return nil, false
	}
	s.mu.Lock()
	p := s.peers[id]
	s.mu.Unlock()
	if p == nil || p.agent != r.PathValue("agent") {
		inWords(w, http.StatusNotFound, "Unknown "+headerPeer)
		return nil, false
	}
	return p, true
}

// drop ends a client's agent and its streams.
func (s *standard) drop(p *peer) {
	s.mu.Lock()
	known := s.peers[p.id] == p
	delete(s.peers, p.id)
	s.mu.Unlock()
	if !known {
		return
	}
	p.watch(nil, 0)
	if err := p.inst.Close(); err != nil {
		s.api.log.Error("an agent could not be ended", "server_id", p.inst.ServerID(), "error", err)
	}
}

func (s *standard) remove(w http.ResponseWriter, r *http.Request) {
	if p, ok := s.find(w, r); ok {
		s.drop(p)
		w.WriteHeader(http.StatusAccepted)
	}
}

// watch counts open streams. Without a stream, the client is dropped after a while; with a nil s the timer is only stopped.
func (p *peer) watch(s *standard, streams int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams += streams
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	if s != nil && p.streams == 0 {
		p.idle = time.AfterFunc(abandoned, func() { s.drop(p) })
	}
}

// sessionMethods returns the methods that are always about a session.
func sessionMethods() []string {
	return []string{
		"session/cancel", "session/close", "session/delete", "session/fork", "session/load", "session/prompt", "session/resume",
		"session/set_config_option", "session/set_mode", "session/set_model",
	}
}

// admit checks that a message names its session as the transport demands, and returns the session whose stream gets the answer.
func (p *peer) admit(e acp.Envelope, headers []string) (session, refusal string) {
	header := ""
	if len(headers) > 0 {
		header = headers[0]
	}
	if len(headers) > 1 || len(header) > longestSessionID {
		return "", "Invalid " + headerSession
	}
	if e.Kind == acp.Response {
		return "", p.admitAnswer(e, header)
	}
	session = sessionOf(e.Raw)
	switch {
	case header == "" && (session != "" || slices.Contains(sessionMethods(), e.Method())):
		return "", "Missing " + headerSession
	case header != "" && session != "" && header != session:
		return "", "Mismatched " + headerSession
	case e.Method() == "session/load":
		return "", "" // the client has no stream for the session yet
	}
	return header, ""
}

func (p *peer) admitAnswer(e acp.Envelope, header string) (refusal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	session := p.asked.of[e.Key()].session
	switch {
	case session != "" && header == "":
		return "Missing " + headerSession
	case session != "" && header != session:
		return "Mismatched " + headerSession
	}
	return ""
}

// pass delivers a message to the agent. The answer to a request comes on the session's stream.
func (p *peer) pass(ctx context.Context, e acp.Envelope, session string) error {
	if e.Kind != acp.Request {
		return p.inst.Deliver(ctx, e)
	}
	// The route is stored before the answer can come, and the lock keeps streams from looking up another request's route in between.
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.answers.of[e.Key()]
	p.answers.put(e.Key(), session)
	err := ask(p.inst, e)
	if err != nil && known {
		p.answers.of[e.Key()] = before // the request in flight with the same id keeps its route
	}
	return err
}

// ask sends a request to the agent without waiting for the answer. A full queue is reported as the call's outcome at once.
func ask(inst *proxy.Instance, e acp.Envelope) error {
	call, err := inst.Call(e)
	if err != nil {
		return err
	}
	select {
	case <-call.Done():
		_, err = call.Outcome()
	default:
	}
	return err
}

// sessionOf returns the session in a message's params.
func sessionOf(msg []byte) string {
	var m struct {
		Params struct {
			SessionID string `json:"sessionId"`
		} `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil {
		return "" // params of another shape
	}
	return m.Params.SessionID
}

// routeOf returns the stream for a message of the agent: a session's id, or "".
func (p *peer) routeOf(msg proxy.Message) string {
	e, err := acp.Peek(msg.Data)
	if err != nil {
		return routeNone
	}
	method := e.Method()
	switch {
	case method == "_adapter/agent_exited":
		return routeEnd
	case strings.HasPrefix(method, "_adapter/"): // messages of the other transport
		return routeNone
	case e.Kind == acp.Response:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answers.answer(e.Key(), msg.Seq)
	}
	session := sessionOf(msg.Data)
	if e.Kind == acp.Request && session != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked.put(e.Key(), session)
	}
	return session
}
