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

// The protocol's own transport, at /acp/{agent}: streamable HTTP and WebSocket, as its RFD and the SDKs for it have them. Each client has an
// agent process of its own, which is started by initialize. What that process says is in its log, like that of every instance, and each
// stream of the client reads the log for itself and takes out of it what it is for: the messages of a session, or all others. So
// nothing is queued twice, what nobody reads yet is kept as long as the log keeps it, and who reads slowly holds the agent up. Errors are plain text
// here, as the RFD wants it.

// The headers of the transport.
const (
	headerPeer    = "Acp-Connection-Id"
	headerSession = "Acp-Session-Id"
)

// abandoned is how long a client may have no stream before its agent is ended.
const abandoned = time.Minute

// longestSessionID is what a session may be called; the SDKs have the same.
const longestSessionID = 1024

// standard is the clients of the transport.
type standard struct {
	api *API

	mu      sync.Mutex // protects what is below
	peers   map[string]*peer
	sockets sync.WaitGroup
	closing chan struct{} // closed at the end
}

func newStandard(a *API) *standard {
	return &standard{api: a, peers: map[string]*peer{}, closing: make(chan struct{})}
}

func (s *standard) routes(m *router) {
	m.HandleFunc("POST /acp/{agent}", s.post)
	m.HandleFunc("GET /acp/{agent}", s.get)
	m.HandleFunc("DELETE /acp/{agent}", s.remove)
}

// close ends the WebSockets, which no server waits for, and waits for them.
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

// peer is one client of the transport, with its agent.
type peer struct {
	id, agent string
	inst      *proxy.Instance

	passing sync.RWMutex // held for reading while a stream takes messages and notes whom they are about

	mu      sync.Mutex       // protects what is below
	answers routes           // of the client's requests: the session whose stream has the answer, see routeOf
	asked   routes           // the agent's requests, and the session that each is about
	mails   map[string]*mail // by session; "" = what is about none
	passed  passed
	streams int
	idle    *time.Timer
}

// routes are the sessions that requests are about. Several streams ask for each, each in its time, so none of them can take one out: the
// oldest go when there are too many. The answer to a request of so long ago is then on the client's own stream.
type routes struct {
	of    map[acp.Key]way
	order []acp.Key
}

// way is where the answer to a request goes: to its session. An id may be used again once it is answered: a stream that lags behind has that
// answer still to pass over, which goes where it was asked.
type way struct {
	session  string
	answered uint64 // the number of the answer; 0 = no stream has passed over it
	before   string // the session of the request that had the id before,
	upTo     uint64 // for answers up to this one
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

// answer gives the session of the request that the message of this number answers.
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

// mail is how far a stream has come.
type mail struct {
	at    uint64
	taken bool
}

// passed is what the streams of a client have passed over: by it is told whether what is kept no more was about a session.
type passed struct {
	first map[string]uint64 // the first message about each session
	upTo  uint64
	blind bool // nobody knows of all
}

// kept tells whether all that was said about a session is kept of which no stream was read yet; oldest is the oldest message that is.
func (p *peer) kept(session string, oldest uint64) bool {
	p.passing.Lock() // whoever has taken messages has noted them
	defer p.passing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed.blind = p.passed.blind || oldest > p.passed.upTo+1
	first, some := p.passed.first[session]
	return !p.passed.blind && (!some || first >= oldest)
}

// note notes whom messages are about that a stream has taken, and gives the stream that each is for.
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
			continue // there is no such stream
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

// What is on no stream.
const (
	routeNone = "\x00none" // the answer to initialize, which the POST has had
	routeEnd  = "\x00end"  // the agent has ended
)

// inWords answers in words.
func inWords(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words)) // the caller is gone if this fails
}

// refuseText answers with what went wrong, in words.
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

// refusePass answers for a message that the agent has not got. 409 is not for it: to the clients of the transport that means that a
// session has another reader.
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

// message reads the body, and answers when it is no message.
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
	_, _ = w.Write(msg) // the caller is gone if this fails
}

// begin starts an agent for a new client. Its answer to initialize is the only one that comes with a POST.
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
	p.watch(s, 0) // it has to open its streams in time
	w.Header().Set(headerPeer, id)
	s.reply(w, http.StatusOK, answer)
}

// start starts an agent of the table; nothing else can be named.
func (s *standard) start(ctx context.Context, agent string) (id string, inst *proxy.Instance, err error) {
	id = uuid.NewString()
	inst, err = s.api.cfg.Runtime.Ensure(ctx, standardID(id), agent, s.api.prepare(agent, ""))
	if err != nil { // also when only our wait has ended
		err = errors.Join(err, s.api.cfg.Runtime.Remove(standardID(id)))
	}
	return id, inst, err
}

// standardID is the server_id of a client's instance.
func standardID(id string) string { return "acp." + id }

// first asks the first question and waits for the answer.
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

// refuseStart answers a client whose agent is not there.
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

// find gives the client that a call is of, and answers when there is none.
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

// drop ends a client's agent, and with it the streams.
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

// watch counts streams that come and go. While there is none the client has a while to come back; without s it has not.
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

// sessionMethods are those that are about a session by their meaning.
func sessionMethods() []string {
	return []string{
		"session/cancel", "session/close", "session/delete", "session/fork", "session/load", "session/prompt", "session/resume",
		"session/set_config_option", "session/set_mode", "session/set_model",
	}
}

// admit checks that a message says which session it is about as the transport wants it, and tells on whose stream its answer is to go.
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
		return "", "" // its client has no stream of the session yet
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

// pass hands a message to the agent. The answer to a request comes on the session's stream.
func (p *peer) pass(ctx context.Context, e acp.Envelope, session string) error {
	if e.Kind != acp.Request {
		return p.inst.Deliver(ctx, e)
	}
	// The way of an answer is known before it can come, and no stream looks for that of another while it is tried.
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.answers.of[e.Key()]
	p.answers.put(e.Key(), session)
	err := ask(p.inst, e)
	if err != nil && known {
		p.answers.of[e.Key()] = before // the request of that id that is in flight has its answer where it was asked
	}
	return err
}

// ask sends the agent a request. That its queue takes no more of them is an outcome of the call, which is there at once; the answer is not waited
// for.
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

// sessionOf is the session that the params of a message name.
func sessionOf(msg []byte) string {
	var m struct {
		Params struct {
			SessionID string `json:"sessionId"`
		} `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil {
		return "" // its params are of another kind
	}
	return m.Params.SessionID
}

// routeOf tells which stream a message of the agent is for: that of a session by its name, or "".
func (p *peer) routeOf(msg proxy.Message) string {
	e, err := acp.Peek(msg.Data)
	if err != nil {
		return routeNone
	}
	method := e.Method()
	switch {
	case method == "_adapter/agent_exited":
		return routeEnd
	case strings.HasPrefix(method, "_adapter/"): // of the other transport
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
