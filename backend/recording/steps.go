package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

const (
	methodNew    = "session/new"
	methodPrompt = "session/prompt"
)

func isWants(s *step) bool { return s.kind == wants }

// opens reports whether a method opens a session.
func opens(method string) bool {
	return slices.Contains([]string{methodNew, "session/load", "session/resume", "session/fork"}, method)
}

// opening is the first method that opens a session in the generation that begins at start; "" = none.
func (p *player) opening(start int) string {
	i := p.rec.next(start, func(s *step) bool { return s.kind == wants && opens(s.method) })
	if i < 0 || i >= p.rec.end(start) {
		return ""
	}
	return p.rec.steps[i].method
}

// open answers the requests before a session, and finds the first step to play.
func (p *player) open() error {
	if p.rec.next(0, func(s *step) bool { return s.kind == wants && opens(s.method) }) < 0 {
		return nil // the recorded process never opened a session
	}
	for {
		m, err := p.next()
		if err != nil {
			return err
		}
		begun := opens(*m.Method) && p.begin(m)
		if begun && p.at < len(p.rec.steps) && p.rec.steps[p.at].method != methodPrompt {
			p.client.waiting = append([]agentio.Message{m}, p.client.waiting...) // the recording has the answer
			return nil
		}
		if err := p.extra(m); err != nil || begun {
			return err
		}
	}
}

// next waits for a request while no step plays.
func (p *player) next() (agentio.Message, error) {
	for len(p.client.waiting) == 0 {
		if err := p.wait(func() bool { return len(p.client.waiting) > 0 }, nil); err != nil {
			return agentio.Message{}, err
		}
		if _, err := p.turn(); err != nil {
			return agentio.Message{}, err
		}
	}
	m := p.client.waiting[0]
	p.client.waiting = p.client.waiting[1:]
	return m, nil
}

// begin finds the step that begins the answer to this request. begin returns false when the request names a foreign session.
func (p *player) begin(m agentio.Message) bool {
	request := sessionRequest{}
	_ = json.Unmarshal(m.Params, &request) // an invalid field stays empty
	p.cwd = request.Cwd
	key, from := "session:"+request.SessionID, 0
	if *m.Method == methodNew {
		key = "cwd:" + p.cwd
	}
	now, known := p.positions.load(key)
	switch {
	case known:
		from = min(now.Step, len(p.rec.steps))
		p.written += now.Sent
	case *m.Method != methodNew:
		return false
	}
	p.initialized = true
	if *m.Method == methodNew {
		if err := p.positions.forget(key); err != nil {
			p.remark("the next conversation in this directory may begin in the middle: %v", err)
		}
		p.jump(p.start(from))
		return true
	}
	p.session = request.SessionID
	p.jump(p.resumption(from))
	return true
}

// start is the beginning of the next generation that creates a session.
func (p *player) start(from int) int {
	for at := from; at < len(p.rec.steps); at = p.rec.end(at) {
		if p.opening(at) == methodNew {
			return at
		}
	}
	for at := 0; at < len(p.rec.steps); at = p.rec.end(at) {
		if p.opening(at) != "" {
			return at
		}
		p.remark("a start that failed before a session was asked for is passed over")
	}
	return 0
}

// resumption is the step at which a session continues that another process has played up to from: the next prompt of the same generation, or
// the next generation.
func (p *player) resumption(from int) int {
	first := from == 0 || from < len(p.rec.steps) && p.rec.steps[from].generation != p.rec.steps[from-1].generation
	for at := from; at < len(p.rec.steps); at++ {
		s := &p.rec.steps[at]
		begins := at > from && s.generation != p.rec.steps[at-1].generation || at == from && first
		switch {
		case begins && p.opening(at) != "":
			return at
		case begins:
			p.remark("a start that failed before a session was asked for is passed over")
		case s.kind == wants && s.method == methodPrompt:
			return at
		}
	}
	return len(p.rec.steps)
}

// play plays a step. play returns false when the step has to be examined again.
func (p *player) play(at int) (bool, error) {
	s := &p.rec.steps[at]
	switch s.kind {
	case wants:
		return p.want(at, s)
	case cancels:
		if p.prompt < 0 || p.heeded {
			return true, nil
		}
		return false, p.wait(never, nil)
	case replies:
		return p.reply(s)
	case interrupted:
		return false, p.wait(never, nil)
	case killed:
		return p.die(at)
	case answers, asks, says, prints, exits:
	}
	if err := p.pause(s.at); err != nil || p.cancelled || p.struck {
		return false, err
	}
	return true, p.say(at, s)
}

func never() bool { return false }

// say plays a step that sends a message.
func (p *player) say(at int, s *step) error {
	switch s.kind {
	case answers:
		return p.answer(at, s)
	case asks:
		return p.ask(at, s)
	case says:
		return p.notify(s)
	case prints:
		return p.put(append(bytes.Clone(s.data), '\n'))
	case exits:
		return p.leave(s)
	case wants, cancels, replies, interrupted, killed:
	}
	return nil
}

// want takes the client's request. want skips a recorded request when the client has made a later request instead.
func (p *player) want(at int, s *step) (bool, error) {
	if s.method == "initialize" && p.initialized {
		return p.startAgain(at)
	}
	if i := slices.IndexFunc(p.client.waiting, func(m agentio.Message) bool { return p.fits(at, m) }); i >= 0 {
		m := p.client.waiting[i]
		p.client.waiting = slices.Delete(p.client.waiting, i, i+1)
		return p.took(at, s, m)
	}
	for len(p.client.waiting) > 0 {
		m := p.client.waiting[0]
		if p.comes(at+1, *m.Method) {
			p.pass(at)
			return true, nil
		}
		p.client.waiting = p.client.waiting[1:]
		if err := p.extra(m); err != nil {
			return false, err
		}
	}
	var limit <-chan time.Time
	if p.prompt >= 0 { // a turn does not wait long for an optional request
		timer := time.NewTimer(patience)
		defer timer.Stop()
		limit = timer.C
	}
	err := p.wait(func() bool { return len(p.client.waiting) > 0 }, limit)
	if err == nil && limit != nil && len(p.client.waiting) == 0 && !p.cancelled && !p.struck {
		p.pass(at)
		return true, nil
	}
	return false, err
}

func (p *player) pass(at int) {
	p.remark("%s is not asked as it was then", p.rec.steps[at].method)
	p.client.passed[at] = true
}

// startAgain handles a start of the recorded process in mid-conversation. The recorded agent was started again, for instance after a sleep,
// while this process runs on: the next request finds the session open.
func (p *player) startAgain(at int) (bool, error) {
	if !p.begun {
		p.clock.sync(p.rec.steps[at].at)
		return true, nil
	}
	if p.prompt >= 0 {
		p.remark("the recorded turn was cut off here; a cancel ends it")
		return false, p.wait(never, nil)
	}
	if err := p.wait(func() bool { return len(p.client.waiting) > 0 }, nil); err != nil || p.cancelled || p.struck {
		return false, err
	}
	end := p.rec.end(at)
	for i := at; i < end; i++ {
		s := &p.rec.steps[i]
		if s.kind != wants || !opens(s.method) {
			continue
		}
		if result, ok := p.rec.succeeded(i); ok {
			p.nameSession(s, result)
			p.jump(s.other + 1)
			return false, nil
		}
	}
	p.jump(end)
	return false, nil
}

// fits reports whether a client's request matches the step. Where a session was opened, any request that opens a session matches.
func (p *player) fits(at int, m agentio.Message) bool {
	s := &p.rec.steps[at]
	if s.method == *m.Method {
		return true
	}
	_, ok := p.rec.succeeded(at)
	return ok && opens(s.method) && opens(*m.Method)
}

// comes reports whether the recording has the request later, before the next prompt.
func (p *player) comes(from int, method string) bool {
	for i := from; i < len(p.rec.steps); i++ {
		s := &p.rec.steps[i]
		switch {
		case s.kind == wants && s.method == method:
			return true
		case method == methodPrompt: // however far
		case s.kind == exits, s.kind == wants && s.method == methodPrompt:
			return false
		}
	}
	return false
}

func (p *player) took(at int, s *step, m agentio.Message) (bool, error) {
	p.client.live[at] = m.ID
	p.clock.sync(s.at)
	switch {
	case s.method == methodPrompt:
		p.prompt, p.heeded = at, false
		p.keep(at + 1)
	case opens(s.method) && (s.method == *m.Method || s.other < 0):
		p.nameSession(s, nil)
	case opens(s.method):
		p.nameSession(s, nil)
		p.jump(s.other) // only a load sends the past messages of a load
		return false, nil
	}
	return true, nil
}

// sessionRequest holds the parameters of requests that open a session, and of their answers.
type sessionRequest struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
}

// nameSession maps the session id of a recorded request or result to ours.
func (p *player) nameSession(s *step, result json.RawMessage) {
	if p.session == "" && result != nil {
		p.session = uuid.NewString()
	}
	var request struct{ Params sessionRequest }
	var given sessionRequest
	_ = json.Unmarshal(s.data, &request) // an invalid field stays empty
	_ = json.Unmarshal(result, &given)
	for _, id := range []string{request.Params.SessionID, given.SessionID} {
		if id != "" && p.session != "" {
			p.ids[id] = p.session
		}
	}
}

// extra answers a request that is not in the recording.
func (p *player) extra(m agentio.Message) error {
	method := *m.Method
	result, failed := any(struct{}{}), (*agentio.Error)(nil)
	switch {
	case p.hung:
		return nil
	case method == "initialize":
		return p.again(m, p.recorded(method))
	case method == methodPrompt:
		return p.tellEnd(m)
	case method != methodNew && opens(method) && p.session != "":
		result = p.sessionState()
		p.begun = true
	case opens(method) && p.session != "":
		failed = agentio.Errorf(acp.CodeInvalidRequest, "invalid request: a replay is one conversation; start it again for another")
	case opens(method):
		failed = agentio.Errorf(acp.CodeResourceNotFound, "resource not found: this replay has not begun that session")
	case p.client.late[method] != nil:
		return p.again(m, p.client.late[method])
	case method == "session/list" && p.recorded(method) != nil:
		return p.again(m, p.recorded(method))
	case slices.Contains([]string{"authenticate", "session/set_mode", "session/set_model", "session/close"}, method):
	default:
		p.remark("%s is not in the recording", method)
		failed = agentio.Errorf(acp.CodeMethodNotFound, "method not found: %s is not in the recording", method)
	}
	if failed != nil {
		result = nil
	}
	return p.put(agentio.Frame{ID: m.ID, Result: result, Error: failed}.Encode())
}

// tellEnd answers a prompt that is not in the recording.
func (p *player) tellEnd(m agentio.Message) error {
	var request sessionRequest
	_ = json.Unmarshal(m.Params, &request) // a client knows its sessions
	p.remark("the recording has ended")
	update := agentio.Frame{Method: "session/update", Params: map[string]any{"sessionId": request.SessionID, "update": map[string]any{
		"sessionUpdate": "agent_message_chunk", "messageId": "replay-" + uuid.NewString(), "content": map[string]string{"type": "text", "text": textAtTheEnd},
	}}}
	if err := p.put(update.Encode()); err != nil {
		return err
	}
	return p.put(agentio.Frame{ID: m.ID, Result: map[string]string{"stopReason": "end_turn"}}.Encode())
}

// recorded is the first successful answer to a method in the recording, or nil.
func (p *player) recorded(method string) []byte {
	for i := range p.rec.steps {
		if s := &p.rec.steps[i]; s.kind == wants && s.method == method {
			if _, ok := p.rec.succeeded(i); ok {
				return p.rec.steps[s.other].data
			}
		}
	}
	return nil
}

// again sends a recorded answer, or an error when recorded is nil.
func (p *player) again(m agentio.Message, recorded []byte) error {
	if recorded == nil {
		return p.put(agentio.Frame{ID: m.ID, Error: agentio.Errorf(acp.CodeInternalError, "the recording has no answer to %s", *m.Method)}.Encode())
	}
	return p.put(p.named(recorded, m.ID))
}

// sessionState is the state in the latest answer before this step that opened a session, or in the first such answer.
func (p *player) sessionState() any {
	state := map[string]json.RawMessage{}
	found := -1
	for i := range p.rec.steps {
		s := &p.rec.steps[i]
		if s.kind != wants || !opens(s.method) || found >= 0 && i >= p.at {
			continue
		}
		if result, ok := p.rec.succeeded(i); ok {
			found = i
			clear(state)
			_ = json.Unmarshal(result, &state) // an invalid result counts as empty
			p.nameSession(s, result)
		}
	}
	delete(state, "sessionId")
	return state
}

func (p *player) answer(at int, s *step) error {
	if s.other < 0 {
		return p.notify(s) // the recorded request had no answer either
	}
	asked := &p.rec.steps[s.other]
	id, ok := p.client.live[s.other]
	switch {
	case !ok:
		if p.client.passed[s.other] {
			p.client.late[asked.method] = s.data
		}
		return nil
	case opens(asked.method):
		return p.opened(at, s, asked, id)
	case s.other == p.prompt:
		p.prompt = -1
		p.keep(at + 1)
	case asked.method == "initialize":
		p.initialized = true
	}
	return p.put(p.named(s.data, id))
}

// opened answers a request that opens a session. The client gets a new id, since two replays of a recording are two sessions.
func (p *player) opened(at int, s, asked *step, id json.RawMessage) error {
	result, ok := p.rec.succeeded(s.other)
	if !ok {
		p.keep(at + 1)
		return p.put(p.named(s.data, id))
	}
	p.nameSession(asked, result)
	p.begun = true
	state := map[string]json.RawMessage{}
	_ = json.Unmarshal(result, &state) // an invalid result counts as empty
	state["sessionId"] = json.RawMessage(strconv.Quote(p.session))
	p.keep(at + 1)
	return p.put(agentio.Frame{ID: id, Result: state}.Encode())
}

// acts reports whether the client changes the machine for this method.
func acts(method string) bool {
	return method == "fs/write_text_file" || strings.HasPrefix(method, "terminal/")
}

func (p *player) ask(at int, s *step) error {
	if acts(s.method) && !p.Act {
		p.remark("%s is left out; --act sends it", s.method)
		return nil
	}
	p.agent.lastID++
	id := json.RawMessage(strconv.FormatInt(p.agent.lastID, 10))
	p.agent.sent[at] = id
	return p.put(p.named(s.data, id))
}

// reply waits for the client's answer to a request of the agent.
func (p *player) reply(s *step) (bool, error) {
	id, asked := p.agent.sent[s.other]
	if s.other < 0 || !asked {
		return true, nil
	}
	has := func() bool { _, ok := p.agent.replied[keyOf(id)]; return ok }
	if err := p.wait(has, nil); err != nil {
		return false, err
	}
	m, ok := p.agent.replied[keyOf(id)]
	if !ok {
		return false, nil
	}
	p.clock.sync(s.at)
	var was struct{ Result json.RawMessage }
	_ = json.Unmarshal(s.data, &was) // an error has no outcome
	method := p.rec.steps[s.other].method
	var then, now struct{ TerminalID string }
	if json.Unmarshal(was.Result, &then) == nil && json.Unmarshal(m.Result, &now) == nil && then.TerminalID != "" {
		p.ids[then.TerminalID] = now.TerminalID
	} else if !sameJSON(was.Result, m.Result) {
		p.remark("%s is answered in another way than then; it goes on as it did then", method)
	}
	return true, nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	_ = json.Unmarshal(a, &x) // an invalid value compares as nil
	_ = json.Unmarshal(b, &y)
	return reflect.DeepEqual(x, y)
}

// notify sends a message that needs no answer.
func (p *player) notify(s *step) error {
	data := s.data
	if s.method == "$/cancel_request" {
		var m struct {
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		_ = json.Unmarshal(data, &m) // an invalid field stays empty
		for at, id := range p.agent.sent {
			if asked := &p.rec.steps[at]; asked.generation == s.generation && asked.id == keyOf(m.Params.RequestID) {
				return p.put(agentio.Frame{Method: s.method, Params: map[string]json.RawMessage{"requestId": id}}.Encode())
			}
		}
		return nil
	}
	return p.put(append(p.mapped(data), '\n'))
}

// named is a recorded message with a new id.
func (p *player) named(data []byte, id json.RawMessage) []byte {
	m := map[string]json.RawMessage{}
	_ = json.Unmarshal(p.mapped(data), &m) // the message was parsed before
	m["id"] = id
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(m) // parsed JSON can be encoded
	return line.Bytes()
}

// mapped is a recorded message with the new session and terminal ids.
func (p *player) mapped(data []byte) []byte {
	for was, now := range p.ids {
		data = renamed(data, strconv.Quote(was), strconv.Quote(now))
	}
	return data
}

// renamed replaces was where it is the value of sessionId or terminalId. JSON escapes quotes in strings, so the bytes of such a member cannot
// be part of a string.
func renamed(data []byte, was, now string) []byte {
	var out []byte
	for {
		i := bytes.Index(data, []byte(was))
		if i < 0 {
			return append(out, data...)
		}
		before, isValue := bytes.CutSuffix(bytes.TrimRight(data[:i], " \t"), []byte(":"))
		before = bytes.TrimRight(before, " \t")
		out = append(out, data[:i]...)
		if isValue && (bytes.HasSuffix(before, []byte(`"sessionId"`)) || bytes.HasSuffix(before, []byte(`"terminalId"`))) {
			out = append(out, now...)
		} else {
			out = append(out, was...)
		}
		data = data[i+len(was):]
	}
}

// recordedExit is the recorded end of a process.
type recordedExit struct {
	Code       *int   `json:"code"`
	Signal     string `json:"signal"`
	StderrTail string `json:"stderrTail"`
}

func readExit(s *step) recordedExit {
	var m struct{ Params recordedExit }
	_ = json.Unmarshal(s.data, &m) // an invalid field stays empty
	return m.Params
}

// leave plays the end of the recorded process.
func (p *player) leave(s *step) error {
	e := readExit(s)
	p.out.Flush()
	_, _ = fmt.Fprint(p.stderr, e.StderrTail) // a failed write to stderr can be reported nowhere
	if e.Signal != "" {
		return p.endBy(e.Signal)
	}
	if e.Code == nil {
		return p.exit(0)
	}
	return p.exit(*e.Code)
}

// die waits to be killed, as the client killed the recorded process. A process whose recorded end was SIGKILL ignores other signals.
func (p *player) die(at int) (bool, error) {
	end := recordedExit{}
	if i := p.rec.next(at, func(s *step) bool { return s.kind == exits }); i >= 0 && i < p.rec.end(at) {
		end = readExit(&p.rec.steps[i])
	}
	p.keep(p.rec.end(at))
	if end.Signal == "" {
		p.out.Flush()
		err := p.wait(never, nil)
		if errors.Is(err, errGone) && p.ctx.Err() == nil {
			p.lines = nil
			return true, nil
		}
		return false, err
	}
	p.out.Flush()
	if end.Signal == "SIGKILL" {
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
	select {
	case <-time.After(10 * time.Minute):
	case <-p.ctx.Done():
	}
	return false, errGone
}
