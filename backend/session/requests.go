package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/permission"
	"deskhand/backend/transcript"
)

// What an agent asks of a person, by kind. Every request that is not answered at once is one of these; nothing hangs unseen.
const (
	kindPermission = "permission" // session/request_permission
	kindForm       = "form"       // elicitation/create, mode form
	kindURL        = "url"        // elicitation/create, mode url
	kindQuestion   = "question"   // _sandboxagent/session/request_question
	kindTrust      = "trust"      // ours: what a directory would start beside the agent
	kindRaw        = "raw"        // a method that nobody knows, or a form that cannot be shown: dismissed, never guessed
)

// mostOpen is how many requests may wait in a conversation. Each one costs a look at all the others, and an agent that asks in a loop would hold
// up its conversation, and bury what a person can answer. What a rule answers does not wait.
const mostOpen = 256

// openRequest is a request that waits. One that outlived its process has no key and is only there to be ended.
type openRequest struct {
	Request
	key    acp.Key
	id     json.RawMessage // the agent's id, as it came
	method string
	asked  *permissionQuestion // of a question that came as a permission
	parts  map[int][]string    // answers to single ones of its questions, by their numbers from 1, while others wait
	partBy string              // who gave the last of them
	ended  chan<- Request      // of one of our own tools: hears what has become of it, in place of the agent
}

// asked takes a request of the agent, which the journal has already.
func (b *inbox) asked(env acp.Envelope, data []byte) {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // Peek has checked it; params of any shape are looked at below
	method := env.Method()
	r := &openRequest{key: env.Key(), id: slices.Clone(env.ID), method: method, Request: Request{
		ID: uuid.Must(uuid.NewV7()).String(), Session: b.v.id, Generation: b.v.row.Generation, Agent: b.v.agentName,
		Options: []RequestOption{}, Status: lifecycle.StatusRequested, CreatedAt: Time{Time: time.Now()},
	}}
	if b.v.turn != nil {
		r.Turn = b.v.turn.ID
	}
	if slices.ContainsFunc(b.waiting(), func(o *openRequest) bool { return o.key == r.key }) {
		b.refuse(r, acp.CodeInvalidRequest, "a request with this id is open already")
		return
	}
	var ok bool
	switch {
	case method == "session/request_permission":
		ok = b.readPermission(r, m.Params)
	case method == "elicitation/create":
		ok = b.readElicitation(r, m.Params)
	case method == "_sandboxagent/session/request_question":
		ok = readQuestion(r, m.Params, b.v.c.secret.Text)
	case b.v.c.cfg.Agents.Quirks(b.v.row.Agent).Refuses(method): // asked at every step, and known to mean nothing to people
		b.refuse(r, acp.CodeMethodNotFound, "this client does not know "+method)
		return
	case b.serves(method):
		b.serve(r, m.Params)
		return
	case refusedAtOnce(method):
		b.refuse(r, acp.CodeMethodNotFound, "this client does not know "+method)
		if !strings.HasPrefix(method, "fs/") && !strings.HasPrefix(method, "terminal/") {
			b.v.note(transcript.Note{Note: transcript.NoteRefused, Method: method, Raw: transcript.ClipRaw(data)})
		}
		return
	}
	if r.Status != lifecycle.StatusRequested {
		return // refused while it was read
	}
	d := b.decided(r)
	if d == nil && len(b.open) >= mostOpen {
		b.refuse(r, acp.CodeInternalError, "too many requests are open")
		return
	}
	if !ok {
		r.Kind, r.Title, r.Raw = kindRaw, method, transcript.ClipRaw(b.v.c.secret.Message(data))
	}
	unread := b.v.row.Unread
	b.opens(r)
	b.answerBy(r, d, unread)
}

// opens has a request wait for a person.
func (b *inbox) opens(r *openRequest) {
	b.open[r.ID] = r
	b.v.saveRequest(&r.Request)
	b.tell(&r.Request)
	b.v.do(lifecycle.Open{Request: r.ID})
}

// refusedAtOnce are the requests that must not keep a turn waiting, of whatever agent: extensions of the protocol, and what we did not
// advertise. What single agents ask beyond that is among their quirks.
func refusedAtOnce(method string) bool {
	for _, prefix := range []string{"_", "fs/", "terminal/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

func (b *inbox) waiting() []*openRequest {
	list := make([]*openRequest, 0, len(b.open))
	for _, r := range b.open {
		list = append(list, r)
	}
	return list
}

// refuse answers with an error; nobody is asked.
func (b *inbox) refuse(r *openRequest, code int, why string) {
	r.Status = lifecycle.StatusRejected
	b.v.out(acp.NewErrorResponse(r.id, &acp.Error{Code: code, Message: why}))
}

func (b *inbox) readPermission(r *openRequest, params json.RawMessage) bool {
	p, err := acp.ParsePermission(params)
	if err != nil {
		return false
	}
	r.Kind = kindPermission
	for _, o := range p.Options {
		r.Options = append(r.Options, RequestOption{ID: o.ID, Name: b.v.c.secret.Text(o.Name), Kind: o.Kind})
	}
	r.labelOptions()
	r.Choice = permission.IsChoice(r.offer(metaOf(p.ToolCall)))
	patch, err := acp.ParseToolCall(b.v.c.secret.Message(p.ToolCall))
	if err != nil {
		return true // it can be answered all the same
	}
	tool := transcript.ToolCall{ToolCallID: patch.ToolCallID, Kind: "other", Status: "pending", StartedAt: r.CreatedAt}
	// What was told before counts where it was told in this turn. Some agents count their calls anew in each, and a call of that id may go on from
	// an earlier one: rather is nothing shown, and judged, than what is another's.
	r.Frame, r.Told = b.v.frames, b.v.frames
	if e := b.v.fold.CallOfTurn(patch.ToolCallID); e != nil {
		tool, r.Told = *e.Tool, e.Seq/transcript.PerFrame
	}
	transcript.PatchToolCall(&tool, patch)
	r.Clipped = tool.Clipped()
	// Some approvals come without a title (title: null), and nobody was told of their tool call before.
	r.ToolCallID, r.Tool, r.Title = tool.ToolCallID, &tool, cmp.Or(tool.Title, tool.Name, tool.Kind)
	if r.Clipped {
		b.readWhole(r)
	}
	r.Choice = r.Choice || permission.IsChoice(r.offer(nil))
	r.readAsked(p.ToolCall, b.v.c.secret.Text)
	return true
}

// metaOf is the _meta of a tool call.
func metaOf(toolCall json.RawMessage) json.RawMessage {
	var call struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(toolCall, &call) // a tool call of another shape has none
	return call.Meta
}

// showable tells whether there is a control for every property of a form.
func showable(schema json.RawMessage) bool {
	_, ok := form.Read(schema)
	return ok
}

// readQuestion reads the extension: one question, or several at once; options as pairs of id and label, or as labels. What people
// read goes through clean; ids stay as they are, since they are the answer.
func readQuestion(r *openRequest, params json.RawMessage, clean func(string) string) bool {
	type question struct {
		QuestionID    json.RawMessage   `json:"questionId"`
		Prompt        string            `json:"prompt"`
		Question      string            `json:"question"`
		Options       []json.RawMessage `json:"options"`
		MultiSelect   bool              `json:"multiSelect"`
		AllowFreeText bool              `json:"allowFreeText"`
	}
	var p struct {
		question
		Questions []question `json:"questions"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	r.QuestionID = readQuestionID(p.QuestionID, clean)
	if len(p.Questions) == 0 {
		p.QuestionID = nil // it is the request's
		p.Questions = []question{p.question}
	}
	for _, q := range p.Questions {
		shown := Question{Prompt: q.Prompt, MultiSelect: q.MultiSelect, AllowFreeText: q.AllowFreeText, Options: []form.QuestionOption{}}
		if shown.Prompt == "" {
			shown.Prompt = q.Question
		}
		shown.ID, shown.Prompt = readQuestionID(q.QuestionID, clean), clean(shown.Prompt)
		for _, raw := range q.Options {
			if o, ok := readOption(raw); ok {
				o.Label, o.Description = clean(o.Label), clean(o.Description)
				shown.Options = append(shown.Options, o)
			}
		}
		if len(shown.Options) == 0 {
			shown.AllowFreeText = true // else nobody could answer
		}
		r.Questions = append(r.Questions, shown)
	}
	r.Kind, r.Title = kindQuestion, r.Questions[0].Prompt
	return r.Title != ""
}

// readQuestionID is the agent's own id of a question, a text or a number; "" where a program could not name the question by it.
func readQuestionID(raw json.RawMessage, clean func(string) string) string {
	const longest = 200
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &number) == nil:
		text = number.String()
	}
	if len(text) > longest || strings.ContainsFunc(text, unicode.IsControl) || clean(text) != text {
		return ""
	}
	return text
}

func readOption(raw json.RawMessage) (form.QuestionOption, bool) {
	var label string
	if json.Unmarshal(raw, &label) == nil {
		return form.QuestionOption{ID: label, Label: label}, label != ""
	}
	var pair []string
	if json.Unmarshal(raw, &pair) == nil && len(pair) > 0 {
		return form.QuestionOption{ID: pair[0], Label: pair[len(pair)-1]}, pair[0] != ""
	}
	var o form.QuestionOption
	if json.Unmarshal(raw, &o) != nil {
		return o, false
	}
	if o.ID == "" {
		o.ID = o.Label
	}
	if o.Label == "" {
		o.Label = o.ID
	}
	return o, o.ID != ""
}

// answer takes a person's answer. The request is as it was found in the database; what counts is whether it still waits.
func (b *inbox) answer(found Request, a Answer, surface string) error {
	r := b.open[found.ID]
	if r == nil {
		return tooLate(found)
	}
	if r.Kind == kindTrust {
		return b.answerTrust(r, a, surface)
	}
	after, err := b.beside(r, &a)
	if err != nil {
		return err
	}
	status, result, err := r.respond(a)
	if err != nil {
		return err
	}
	switch {
	case r.ended != nil: // endRequest tells
	case result == nil:
		b.v.out(acp.NewErrorResponse(r.id, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this client does not know " + r.method}))
	default:
		b.v.out(acp.NewResponse(r.id, result))
	}
	r.Answer, r.AnsweredBy = b.v.c.secret.Message(mustJSON(a)), surface
	if err := b.v.wish(lifecycle.Resolve{Request: r.ID, Status: status}); err != nil {
		return err
	}
	return after()
}

// tooLate tells who was first, or what became of a request, as it was found; see [Client.first].
func tooLate(found Request) error {
	if found.Status == lifecycle.StatusRequested { // it has outlived its process
		found.Status = lifecycle.StatusExpired
	}
	params := map[string]string{"status": found.Status, "answeredBy": found.AnsweredBy}
	if found.ResolvedAt != nil {
		params["resolvedAt"] = found.ResolvedAt.UTC().Format(timeLayout)
	}
	return &RefusedError{Code: lifecycle.RefusedNotOpen, Params: params}
}

// respond checks an answer and gives what it means to the agent; a nil result is an error response.
func (r *openRequest) respond(a Answer) (status string, result any, err error) {
	switch r.Kind {
	case kindPermission:
		i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.ID == a.OptionID })
		if i < 0 {
			return "", nil, bad("answer.unknown_option", "optionId", a.OptionID)
		}
		status = lifecycle.StatusAnswered
		if strings.HasPrefix(r.Options[i].Kind, "reject") {
			status = lifecycle.StatusRejected
		}
		return status, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": a.OptionID}}, nil
	case kindForm:
		return r.respondForm(a)
	case kindURL:
		return r.respondURL(a)
	case kindQuestion:
		status, result, err = r.respondQuestion(a)
		if err == nil && r.asked != nil {
			result = r.asked.result(status, a.Answers)
		}
		return status, result, err
	}
	if a.Action != "cancel" {
		return "", nil, bad("answer.only_cancel")
	}
	switch r.method {
	case "elicitation/create":
		return lifecycle.StatusRejected, map[string]any{"action": "cancel"}, nil
	case "session/request_permission":
		return lifecycle.StatusRejected, permissionCancelled(), nil
	}
	return lifecycle.StatusRejected, nil, nil
}

// permissionCancelled is the answer to a permission that nobody has given or turned down.
func permissionCancelled() any {
	return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
}

func (r *openRequest) respondForm(a Answer) (string, any, error) {
	switch a.Action {
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	case "accept":
	default:
		return "", nil, bad("answer.no_action")
	}
	if err := form.Check(r.Schema, a.Content); err != nil {
		return "", nil, bad("answer.invalid", "detail", err.Error())
	}
	return lifecycle.StatusAnswered, map[string]any{"action": "accept", "content": a.Content}, nil
}

func (r *openRequest) respondQuestion(a Answer) (string, any, error) {
	if a.Reject || a.Action == "decline" || a.Action == "cancel" {
		return lifecycle.StatusRejected, map[string]any{"status": "rejected"}, nil
	}
	if len(a.Answers) != len(r.Questions) {
		return "", nil, bad("answer.count", "want", fmt.Sprint(len(r.Questions)), "have", fmt.Sprint(len(a.Answers)))
	}
	for i, q := range r.Questions {
		chosen := a.Answers[i]
		if len(chosen) == 0 || len(chosen) > 1 && !q.MultiSelect && !q.AllowFreeText {
			return "", nil, bad("answer.choose", "question", q.Prompt)
		}
		for _, id := range chosen {
			known := slices.ContainsFunc(q.Options, func(o form.QuestionOption) bool { return o.ID == id })
			if !known && !q.AllowFreeText {
				return "", nil, bad("answer.unknown_option", "optionId", id)
			}
		}
	}
	return lifecycle.StatusAnswered, map[string]any{"status": "answered", "answers": a.Answers}, nil
}

// withdrawn is the agent's $/cancel_request: it no longer wants to know.
func (b *inbox) withdrawn(data []byte) {
	var m struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(data, &m) != nil {
		return
	}
	env := acp.Envelope{ID: m.Params.RequestID}
	if b.v.agent.withdraw(env.Key()) {
		return
	}
	for id, r := range b.open {
		if (r.key == env.Key() || r.key == env.Key().Twin()) && r.key != "" && r.ended == nil {
			b.v.do(lifecycle.Resolve{Request: id, Status: lifecycle.StatusCancelled})
			return
		}
	}
}

// end writes the end of a request, and tells the agent where it still waits and nobody has answered.
func (b *inbox) end(id, status string) {
	r := b.open[id]
	delete(b.open, id)
	r.Status, r.ResolvedAt = status, &Time{Time: time.Now()}
	b.v.saveRequest(&r.Request)
	b.tell(&r.Request)
	b.keepOpened(r)
	if b.v.agent != nil && b.v.agent.limit != nil {
		b.v.agent.again() // it waited for a person, and goes on now
	}
	if r.ended != nil {
		r.ended <- r.Request // has room: it ends once
		return
	}
	if status != lifecycle.StatusCancelled || r.Kind == kindTrust {
		return
	}
	switch {
	case r.method == "session/request_permission":
		b.v.out(acp.NewResponse(r.id, permissionCancelled()))
	case r.method == "elicitation/create":
		b.v.out(acp.NewResponse(r.id, map[string]any{"action": "cancel"}))
	case r.Kind == kindQuestion:
		b.v.out(acp.NewResponse(r.id, map[string]any{"status": "rejected"}))
	default:
		b.v.out(acp.NewErrorResponse(r.id, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"}))
	}
}

// inbox is the requests of a conversation that wait for an answer.
type inbox struct {
	v      *conversation
	open   map[string]*openRequest // by id
	opened map[string]Request      // addresses that a person agreed to open, by elicitation, while the agent waits for what is done there
}
