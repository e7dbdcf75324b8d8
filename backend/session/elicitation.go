package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/destination"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// An elicitation is what an agent wants to know of a person by ACP's own method: a form to fill in, or an address to go to. To accept an
// address is to agree that it is opened, no more; that something was done there is told later, by elicitation/complete.

// elicitation is elicitation/create, as far as it is understood. Which of the rest is needed is for its mode to say.
type elicitation struct {
	Mode          string          `json:"mode"`
	Message       looseText       `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema"`
	ElicitationID looseText       `json:"elicitationId"`
	URL           looseText       `json:"url"`
}

// looseText is empty where something else than a text was sent.
type looseText string

// UnmarshalJSON never fails.
func (t *looseText) UnmarshalJSON(raw []byte) error {
	var text string
	_ = json.Unmarshal(raw, &text) // a value of another type leaves text empty
	*t = looseText(text)
	return nil
}

func (b *inbox) readElicitation(r *openRequest, params json.RawMessage) bool {
	var p elicitation
	if json.Unmarshal(params, &p) != nil || transcript.TooDeep(p.Schema) {
		return false
	}
	r.Title = b.v.c.secret.Text(string(p.Message))
	switch p.Mode {
	case "form":
		if !showable(p.Schema) {
			return false
		}
		r.Kind, r.Schema = kindForm, b.v.c.secret.Message(p.Schema)
		return true
	case "url":
		return b.readURL(r, p)
	}
	b.refuse(r, acp.CodeInvalidParams, fmt.Sprintf("this client takes no elicitation of mode %q", p.Mode))
	b.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: string(p.Message), Description: "elicitation mode " + p.Mode}})
	return false
}

// readURL refuses an address that is not opened whatever the person says: people see why, and are not asked.
func (b *inbox) readURL(r *openRequest, p elicitation) bool {
	to, err := destination.Read(string(p.URL))
	if err == nil && b.v.c.secret.Text(to.URL) != to.URL {
		err = errors.New("it holds a secret")
	}
	if err == nil && p.ElicitationID == "" {
		err = errors.New("it has no elicitationId")
	}
	if err != nil {
		b.refuse(r, acp.CodeInvalidParams, "this client does not open this address: "+err.Error())
		b.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: string(p.Message), Description: "The address is not opened: " + err.Error() + ": " + transcript.ClipText(string(p.URL))}})
		return false
	}
	r.Kind, r.URL, r.Host, r.HostUnicode, r.Punycode, r.ElicitationID = kindURL, to.URL, to.Host, to.Unicode, to.Unicode != "", string(p.ElicitationID)
	return true
}

// byAgent is who answered a request whose business the agent itself saw done.
const byAgent = "agent"

// completed is the agent's elicitation/complete: what was to be done at an address is done. A card that waits still is closed by it, with
// the answer by which the agent goes on; nothing was opened for that. An id that nobody knows is ignored.
func (b *inbox) completed(data []byte) {
	var m struct {
		Params struct {
			ElicitationID string `json:"elicitationId"`
		} `json:"params"`
	}
	if json.Unmarshal(data, &m) != nil || m.Params.ElicitationID == "" {
		return
	}
	now := Time{Time: time.Now()}
	for _, r := range b.open {
		if r.Kind == kindURL && r.ElicitationID == m.Params.ElicitationID {
			r.CompletedAt, r.AnsweredBy = &now, byAgent
			b.v.out(acp.NewResponse(r.id, map[string]any{"action": "accept"}))
			b.v.do(lifecycle.Resolve{Request: r.ID, Status: lifecycle.StatusAnswered})
			return
		}
	}
	if r, ok := b.opened[m.Params.ElicitationID]; ok {
		delete(b.opened, m.Params.ElicitationID)
		r.CompletedAt = &now
		b.v.saveRequest(&r)
		b.v.touched()
	}
}

// keepOpened keeps an address that a person has agreed to, until the agent says that it is done with.
func (b *inbox) keepOpened(r *openRequest) {
	if r.Kind != kindURL || r.Status != lifecycle.StatusAnswered || r.CompletedAt != nil {
		return
	}
	if b.opened == nil {
		b.opened = map[string]Request{}
	}
	b.opened[r.ElicitationID] = r.Request
}
