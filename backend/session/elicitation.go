package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/destination"
	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

// An elicitation asks a person by ACP's own method: by a form to fill in, or by an address to open. To accept an address is to agree that
// it is opened, and no more; the agent reports later, by elicitation/complete, that the work there is done.

// readElicitation fills in the request of an elicitation. readElicitation returns false when the request was refused, or is to be shown
// raw.
func (b *inbox) readElicitation(r *requests.Pending, params json.RawMessage) bool {
	p, err := acp.ParseElicitation(params)
	if err != nil || transcript.TooDeep(p.Schema) {
		return false
	}
	r.Title = b.v.c.secret.Text(p.Message)
	switch p.Mode {
	case "form":
		if !showable(p.Schema) {
			return false
		}
		r.Kind, r.Schema = requests.KindForm, b.v.c.secret.Message(p.Schema)
		return true
	case "url":
		return b.readURL(r, p)
	}
	b.refuse(r, acp.CodeInvalidParams, fmt.Sprintf("this client takes no elicitation of mode %q", p.Mode))
	b.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: p.Message, Description: "elicitation mode " + p.Mode}})
	return false
}

// readURL reads an address to open. An address that would not be opened whatever the person answers is refused, and a notice tells why.
func (b *inbox) readURL(r *requests.Pending, p acp.Elicitation) bool {
	to, err := destination.Read(p.URL)
	if err == nil && b.v.c.secret.Text(to.URL) != to.URL {
		err = errors.New("it holds a secret")
	}
	if err == nil && p.ID == "" {
		err = errors.New("it has no elicitationId")
	}
	if err != nil {
		b.refuse(r, acp.CodeInvalidParams, "this client does not open this address: "+err.Error())
		b.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: p.Message, Description: "The address is not opened: " + err.Error() + ": " + transcript.ClipText(p.URL)}})
		return false
	}
	r.Kind, r.URL, r.Host, r.HostUnicode, r.Punycode, r.ElicitationID = requests.KindURL, to.URL, to.Host, to.Unicode, to.Unicode != "", p.ID
	return true
}

// byAgent is the surface of a request that the agent itself reported as done.
const byAgent = "agent"

// completed handles the agent's elicitation/complete: the work at an address is done. A request that still waits ends with the answer by
// which the agent goes on, and nothing is opened. An unknown id is ignored.
func (b *inbox) completed(data []byte) {
	id := acp.CompletedElicitation(data)
	if id == "" {
		return
	}
	now := Time{Time: time.Now()}
	for _, r := range b.open {
		if r.Kind == requests.KindURL && r.ElicitationID == id {
			r.CompletedAt, r.AnsweredBy = &now, byAgent
			b.v.out(acp.NewResponse(r.AgentID, map[string]any{"action": "accept"}))
			b.v.do(lifecycle.Resolve{Request: r.ID, Status: lifecycle.StatusAnswered})
			return
		}
	}
	if r, ok := b.opened[id]; ok {
		delete(b.opened, id)
		r.CompletedAt = &now
		b.v.saveRequest(&r)
		b.v.touched()
	}
}

// keepOpened keeps a request to open an address that a person has accepted, until the agent reports that it is done.
func (b *inbox) keepOpened(r *requests.Pending) {
	if r.Kind != requests.KindURL || r.Status != lifecycle.StatusAnswered || r.CompletedAt != nil {
		return
	}
	if b.opened == nil {
		b.opened = map[string]requests.Request{}
	}
	b.opened[r.ElicitationID] = r.Request
}

// showable reports whether every property of a form has a control.
func showable(schema json.RawMessage) bool {
	_, ok := form.Read(schema)
	return ok
}
