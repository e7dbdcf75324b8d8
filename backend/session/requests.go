package session

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/permission"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

// mostOpen is how many requests may wait in a conversation. Each new request is compared with all others, so an agent that asks in a loop
// would slow down its conversation, and hide the requests that a person can answer. Requests that a rule answers do not wait.
const mostOpen = 256

// asked handles a request of the agent, which is in the journal already.
func (b *inbox) asked(env acp.Envelope, data []byte) {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // Peek has checked the message; params of any type are accepted here
	method := env.Method()
	r := &requests.Pending{Key: env.Key(), AgentID: slices.Clone(env.ID), Method: method, Request: requests.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Session: b.v.id, Generation: b.v.row.Generation, Agent: b.v.agentName,
		Options: []requests.Option{}, Status: lifecycle.StatusRequested, CreatedAt: Time{Time: time.Now()},
	}}
	if b.v.turn != nil {
		r.Turn = b.v.turn.ID
	}
	if slices.ContainsFunc(b.waiting(), func(o *requests.Pending) bool { return o.Key == r.Key }) {
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
		ok = r.ReadQuestion(m.Params, b.v.c.secret.Text)
	case b.v.c.cfg.Agents.Quirks(b.v.row.Agent).Refuses(method): // sent at every step by some agents, and of no use to people
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
		return // the request was refused while it was read
	}
	d := b.decided(r)
	if d == nil && len(b.open) >= mostOpen {
		b.refuse(r, acp.CodeInternalError, "too many requests are open")
		return
	}
	if !ok {
		r.Kind, r.Title, r.Raw = requests.KindRaw, method, transcript.ClipRaw(b.v.c.secret.Message(data))
	}
	unread := b.v.row.Unread
	b.opens(r)
	b.answerBy(r, d, unread)
}

// opens makes a request wait for a person's answer.
func (b *inbox) opens(r *requests.Pending) {
	b.open[r.ID] = r
	b.v.saveRequest(&r.Request)
	b.tell(&r.Request)
	b.v.do(lifecycle.Open{Request: r.ID})
}

func (b *inbox) waiting() []*requests.Pending {
	list := make([]*requests.Pending, 0, len(b.open))
	for _, r := range b.open {
		list = append(list, r)
	}
	return list
}

// refuse answers a request with an error, without asking a person.
func (b *inbox) refuse(r *requests.Pending, code int, why string) {
	r.Status = lifecycle.StatusRejected
	b.v.out(acp.NewErrorResponse(r.AgentID, &acp.Error{Code: code, Message: why}))
}

// readPermission fills in a permission. readPermission returns false when the request is to be shown raw.
func (b *inbox) readPermission(r *requests.Pending, params json.RawMessage) bool {
	p, err := acp.ParsePermission(params)
	if err != nil {
		return false
	}
	r.Kind = requests.KindPermission
	for _, o := range p.Options {
		r.Options = append(r.Options, requests.Option{ID: o.ID, Number: o.Number, Name: b.v.c.secret.Text(o.Name), Kind: o.Kind})
	}
	r.LabelOptions()
	r.Choice = permission.IsChoice(r.Offer(metaOf(p.ToolCall)))
	patch, err := acp.ParseToolCall(b.v.c.secret.Message(p.ToolCall))
	if err != nil {
		return true // the permission can be answered without its tool call
	}
	tool := transcript.ToolCall{ToolCallID: patch.ToolCallID, Kind: "other", Status: "pending", StartedAt: r.CreatedAt}
	// An earlier report of the tool call counts if it came in this turn. Some agents number their calls anew in each turn, so a call with
	// this id may be another call of an earlier turn: it is better to show and judge nothing than the data of another call.
	r.Frame, r.Told = b.v.frames, b.v.frames
	if e := b.v.fold.CallOfTurn(patch.ToolCallID); e != nil {
		tool, r.Told = *e.Tool, e.Seq/transcript.PerFrame
	}
	transcript.PatchToolCall(&tool, patch)
	r.Clipped = tool.Clipped()
	tool = tool.Begun() // the record of a request goes to every surface, and says in the text that a text goes on
	// Some permissions have no title (title: null) and a tool call that was not reported before.
	r.ToolCallID, r.Tool, r.Title = tool.ToolCallID, &tool, cmp.Or(tool.Title, tool.Name, tool.Kind)
	if r.Clipped {
		b.readWhole(r)
	}
	r.Choice = r.Choice || permission.IsChoice(r.Offer(nil))
	r.ReadAsked(p.ToolCall, b.v.c.secret.Text)
	return true
}

// answer handles a person's answer. found is the request as the database had it; only requests in b.open can be answered.
func (b *inbox) answer(ctx context.Context, found requests.Request, a requests.Answer, surface string) error {
	r := b.open[found.ID]
	if r == nil {
		return requests.TooLate(found)
	}
	if r.Kind == requests.KindTrust {
		return b.answerTrust(r, a, surface)
	}
	after, err := b.beside(ctx, r, &a)
	if err != nil {
		return err
	}
	status, result, err := r.Respond(a)
	if err != nil {
		return err
	}
	switch {
	case r.Ended != nil: // inbox.end sends the answer
	case result == nil:
		b.v.out(acp.NewErrorResponse(r.AgentID, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this client does not know " + r.Method}))
	default:
		b.v.out(acp.NewResponse(r.AgentID, result))
	}
	r.Answer, r.AnsweredBy = b.v.c.secret.Message(mustJSON(a)), surface
	if err := b.v.wish(lifecycle.Resolve{Request: r.ID, Status: status}); err != nil {
		return err
	}
	return after()
}

// withdrawn handles the agent's $/cancel_request.
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
		if (r.Key == env.Key() || r.Key == env.Key().Twin()) && r.Key != "" && r.Ended == nil {
			b.v.do(lifecycle.Resolve{Request: id, Status: lifecycle.StatusCancelled})
			return
		}
	}
}

// end records the end of a request, and answers a cancelled request that nobody has answered.
func (b *inbox) end(id, status string) {
	r := b.open[id]
	delete(b.open, id)
	r.Status, r.ResolvedAt = status, &Time{Time: time.Now()}
	b.v.saveRequest(&r.Request)
	b.tell(&r.Request)
	b.keepOpened(r)
	if b.v.agent != nil && b.v.agent.limit != nil {
		b.v.agent.again() // the limit was paused while the agent waited for a person, and starts anew
	}
	if r.Ended != nil {
		r.Ended <- r.Request // never blocks: the channel has room for one request, and a request ends once
		return
	}
	if status != lifecycle.StatusCancelled || r.Kind == requests.KindTrust {
		return
	}
	if result := r.Cancelled(); result != nil {
		b.v.out(acp.NewResponse(r.AgentID, result))
		return
	}
	b.v.out(acp.NewErrorResponse(r.AgentID, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"}))
}

// inbox holds the requests of a conversation that wait for an answer. The methods of inbox are called in the conversation's goroutine.
type inbox struct {
	v      *conversation
	open   map[string]*requests.Pending // by id
	opened map[string]requests.Request  // requests to open an address that a person has accepted, by elicitation id, until the agent reports that the work there is done
}

// readWhole checks the whole tool call of a clipped request for a choice; a part of the call may be in the current step. If the whole
// cannot be read, the call stays clipped, so that a person is asked.
func (b *inbox) readWhole(r *requests.Pending) {
	whole, err := b.v.c.WholeRequest(b.v.c.lasting(), r.Request, b.v.step.frames...)
	if err != nil {
		b.v.c.cfg.Logger.Error("a long request cannot be read from the journal", "session", b.v.id, "request", r.ID, "error", err)
		return
	}
	r.Choice = r.Choice || permission.IsChoice(whole.Offer(nil))
}

// tell adds the question events of a request to the step.
func (b *inbox) tell(r *requests.Request) {
	kind := feed.QuestionResolved
	if r.Status == lifecycle.StatusRequested {
		kind = feed.QuestionRequested
	}
	for _, e := range r.QuestionEvents() {
		b.v.step.questions = append(b.v.step.questions, feed.Event{Session: b.v.id, Type: kind, Data: mustJSON(e)})
	}
}

// reply answers a request by lists of option ids or texts; part is the number of the question that the list is for, or 0 for all questions.
func (b *inbox) reply(ctx context.Context, found requests.Request, part int, answers [][]string, surface string) error {
	r := b.open[found.ID]
	if r == nil {
		return requests.TooLate(found)
	}
	a, whole, err := r.Reply(part, answers, surface)
	if err != nil || !whole {
		return err
	}
	return b.answer(ctx, found, a, surface)
}

// refusedAtOnce reports whether a method is refused for all agents, so that the request does not hold up a turn: unknown extensions of the
// protocol, and methods that this client does not advertise. Methods that single agents ask for beyond that are among their quirks.
func refusedAtOnce(method string) bool {
	for _, prefix := range []string{"_", "fs/", "terminal/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// metaOf returns the _meta of a tool call.
func metaOf(toolCall json.RawMessage) json.RawMessage {
	var call struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(toolCall, &call) // a tool call of another form has no _meta
	return call.Meta
}
