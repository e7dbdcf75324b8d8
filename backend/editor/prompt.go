package editor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
)

// prompt is a prompt whose answer the editor waits for.
type prompt struct {
	id     json.RawMessage
	key    acp.Key
	queued bool   // the prompt waits behind a turn that another surface began
	held   string // why the prompt waits for a person; "" when it does not, or the reason is unknown
}

// block is a part of a prompt.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Resource struct {
		URI      string  `json:"uri"`
		MimeType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// message is a prompt in Deskhand's form: the words, with a link in place of each resource, followed by the texts that the editor embedded,
// and files. Even an agent that only takes words can get a message.
type message struct {
	words strings.Builder
	texts strings.Builder
	files []file
}

type file struct {
	name, mime string
	data       []byte
}

func (m *message) add(b block) error {
	switch b.Type {
	case "text":
		m.words.WriteString(b.Text)
	case "resource_link":
		m.link(b.Name, b.URI)
	case "image", "audio":
		return m.file(b.URI, b.Type, b.MimeType, b.Data)
	case "resource":
		if b.Resource.Text == nil {
			return m.file(b.Resource.URI, "file", b.Resource.MimeType, b.Resource.Blob)
		}
		m.link("", b.Resource.URI)
		m.quote(b.Resource.URI, *b.Resource.Text)
	default:
		return fmt.Errorf("a prompt cannot hold %q", b.Type)
	}
	return nil
}

// link formats a Markdown link to a resource. A name comes from the editor, and a path must not be read as Markdown.
func (m *message) link(name, uri string) {
	if name == "" {
		name = nameOf(uri)
	}
	name = strings.NewReplacer("[", "(", "]", ")", "\n", " ").Replace(name)
	uri = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "\n", "%0A").Replace(uri)
	fmt.Fprintf(&m.words, "[@%s](%s)", name, uri)
}

func (m *message) quote(uri, text string) {
	kind := strings.TrimPrefix(path.Ext(nameOf(uri)), ".")
	fmt.Fprintf(&m.texts, "\n\n%s\n%s", uri, acp.Fenced(kind, text))
}

func (m *message) file(uri, kind, mime, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("what the editor sent as %s is no base64", mime)
	}
	name := nameOf(uri)
	if name == "" {
		name = kind + extension(mime)
	}
	m.files = append(m.files, file{name, mime, raw})
	return nil
}

// nameOf is the last part of a URI's path.
func nameOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || uri == "" {
		return uri
	}
	name := path.Base(u.Path)
	if name == "." || name == "/" {
		return u.Host
	}
	return name
}

// extension is the file extension for a MIME type, independent of the system's tables.
func extension(mime string) string {
	_, kind, _ := strings.Cut(mime, "/")
	kind, _, _ = strings.Cut(kind, ";")
	kind, _, _ = strings.Cut(strings.TrimPrefix(kind, "x-"), "+")
	if kind == "" || strings.ContainsAny(kind, "/\\. ") {
		return ""
	}
	return "." + kind
}

// prompt begins a turn, or queues the prompt behind a turn that another surface began.
func (s *shown) prompt(r request) {
	in, err := s.compose(r.params)
	var sent struct {
		Turn      *turn
		QueueItem *struct{ ID string }
	}
	if err == nil {
		// The call outlives the editor: cancelling the call would leave open whether the message was sent, and the editor might send it again.
		ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
		defer cancel()
		defer context.AfterFunc(s.ctx, func() { time.AfterFunc(mostMaking, cancel) })()
		err = s.e.client.call(ctx, http.MethodPost, "sessions/"+url.PathEscape(s.id)+"/prompt", in, &sent)
	}
	p := &prompt{id: r.id, key: r.key}
	switch {
	case err != nil:
		s.e.wire.fail(r.id, promptError(err))
	case sent.QueueItem != nil:
		p.queued = true
		s.prompts[sent.QueueItem.ID] = p
	case sent.Turn != nil:
		s.prompts[sent.Turn.ID] = p
	default:
		s.e.wire.fail(r.id, &acp.Error{Code: acp.CodeInternalError, Message: "Deskhand took no turn"})
	}
}

func promptError(err error) *acp.Error {
	if refused, ok := err.(*problem); ok && refused.Status == http.StatusBadRequest { //nolint:errorlint // client wraps no problem
		return badParams("%s", refused)
	}
	return asError(err)
}

// compose converts a prompt's blocks into the API's form.
func (s *shown) compose(params json.RawMessage) (map[string]any, error) {
	var p struct {
		Prompt []block `json:"prompt"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Detail: err.Error()}
	}
	var m message
	for _, b := range p.Prompt {
		if err := m.add(b); err != nil {
			return nil, &problem{Status: http.StatusBadRequest, Detail: err.Error()}
		}
	}
	files := []any{}
	for _, f := range m.files {
		id, err := s.e.client.upload(s.ctx, f.name, f.mime, f.data)
		if err != nil {
			return nil, err
		}
		files = append(files, map[string]any{"id": id})
	}
	return map[string]any{"message": m.words.String() + m.texts.String(), "attachments": files, "when": "queue"}, nil
}

// began reports whether a starting turn is the editor's.
func (s *shown) began(turn string) bool {
	p := s.prompts[turn]
	if p != nil {
		p.queued = false
	}
	return p != nil
}

func (s *shown) turnEnded(e ending) {
	p := s.prompts[e.turn]
	if p == nil {
		return
	}
	delete(s.prompts, e.turn)
	if e.failure != nil {
		s.e.wire.fail(p.id, e.failure)
		return
	}
	s.e.wire.answer(p.id, e.result)
}

// unqueued records that a prompt has left the queue. A person has removed a prompt that left without a turn.
func (s *shown) unqueued(turn string) {
	if p := s.prompts[turn]; p != nil && p.queued {
		delete(s.prompts, turn)
		s.e.wire.answer(p.id, map[string]any{"stopReason": "cancelled"})
	}
}

// held tells the editor that its prompt waits for a person in Deskhand. Without this message the editor would wait for an answer that may
// never come.
func (s *shown) held(item queued) {
	p := s.prompts[item.ID]
	if p == nil || !p.queued || p.held == item.Held {
		return
	}
	p.held = item.Held
	if words := heldWords(item.Held); words != "" {
		s.mirror.notice(encoded(map[string]any{
			"sessionUpdate": "notice", "severity": "warning", "title": "Your message waits in Deskhand",
			"description": words + " Send it there, or stop here to take it back.",
		}))
	}
}

func heldWords(why string) string {
	switch why {
	case "", "steering":
		return ""
	case "stopped":
		return "The turn before it was stopped."
	case "failed":
		return "The turn before it ended with an error."
	case "refused":
		return "The agent refused the turn before it."
	case "exited":
		return "The agent ended in the turn before it."
	case "interrupted":
		return "Deskhand or the agent was started again meanwhile."
	case "archived":
		return "The conversation was archived."
	}
	return "Somebody holds it there."
}

// compare compares the unanswered prompts with the session, for events that the feed did not deliver. compare reads the queue before the
// journal, so that a prompt that has left the queue is in the journal. When either cannot be read, the prompt's state stays unknown.
func (s *shown) compare() {
	if len(s.prompts) == 0 {
		return
	}
	var list struct{ Items []queued }
	if err := s.call(http.MethodGet, "queue", nil, &list); err != nil {
		if s.ctx.Err() == nil {
			s.e.tell("%s", err)
		}
		return
	}
	if !s.flush() {
		return
	}
	running := map[string]bool{}
	for id, p := range s.prompts {
		if !p.queued {
			running[id] = true
		} else if i := slices.IndexFunc(list.Items, func(q queued) bool { return q.ID == id }); i >= 0 {
			s.held(list.Items[i])
		} else {
			s.unqueued(id)
		}
	}
	if err := s.reread(); err == nil && s.flush() {
		s.lost(running)
	}
}

// lost answers the prompts of turns that a Deskhand has lost by ending without a word; the next Deskhand does not know these turns.
func (s *shown) lost(running map[string]bool) {
	for id, p := range s.prompts {
		if running[id] && (s.now.Turn == nil || s.now.Turn.ID != id) {
			delete(s.prompts, id)
			s.e.wire.fail(p.id, &acp.Error{Code: acp.CodeInternalError, Message: endWords("interrupted")})
		}
	}
}

// cancel cancels the running turn, and removes the editor's queued prompts.
func (s *shown) cancel() {
	for id, p := range s.prompts {
		if p.queued {
			_ = s.call(http.MethodDelete, "queue/"+url.PathEscape(id), nil, nil) // the prompt has just begun, and is cancelled below
		}
	}
	_ = s.call(http.MethodPost, "cancel", nil, nil) // nothing runs, or the turn is cancelled already
}

// cancelPrompt cancels the prompt of the request key, if the prompt belongs to this session.
func (s *shown) cancelPrompt(key acp.Key) {
	for id, p := range s.prompts {
		switch {
		case p.key != key:
		case p.queued:
			_ = s.call(http.MethodDelete, "queue/"+url.PathEscape(id), nil, nil) // the prompt has just begun
		default:
			_ = s.call(http.MethodPost, "cancel", nil, nil)
		}
	}
}
