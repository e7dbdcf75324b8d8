package app

import (
	"encoding/json"
	"net/url"
)

// The records below hold the fields of the client API's records that the app reads, and the answers that the app sends. Package session
// documents the fields.

type request struct {
	ID          string       `json:"id"`
	Session     string       `json:"session"`
	Kind        string       `json:"kind"`
	Agent       string       `json:"agent"`
	Title       string       `json:"title"`
	Detail      string       `json:"detail"`
	Tool        *toolCall    `json:"tool"`
	Options     []option     `json:"options"`
	Choice      bool         `json:"choice"`  // only a person may answer, with all options in view
	Clipped     bool         `json:"clipped"` // not all of the tool call is in the record
	Executables []executable `json:"executables"`
	Status      string       `json:"status"`

	danger []string // codes of the dangers to show before an approval; fetched separately
}

// conversation is a session, with the set-up of its worktree.
type conversation struct {
	ID    string `json:"id"`
	Agent string `json:"agentName"`
	Setup struct {
		State   string `json:"state"`
		Waiting bool   `json:"waiting"` // the start of the agent waits for it
	} `json:"setup"`
}

// setUpOf is the id under which a set-up waits.
func setUpOf(session string) string { return "set-up of " + session }

// held reports whether the conversation's agent waits for a person to say how it goes on with a set-up that has failed or was stopped. The server
// has no request for that: the state of the conversation says so. Beside the window it is shown as a request without answers.
func (c conversation) held() (request, bool) {
	r := request{ID: setUpOf(c.ID), Session: c.ID, Kind: kindSetUp, Agent: c.Agent, Title: "Worktree set-up failed", Status: waits}
	if c.Setup.State == "stopped" {
		r.Title = "Worktree set-up stopped"
	}
	return r, c.Setup.Waiting && (c.Setup.State == "failed" || c.Setup.State == "stopped")
}

const waits = "requested" // the status of a request that nobody has answered

// The kinds of request that a dialog can show.
const (
	kindPermission = "permission"
	kindQuestion   = "question"
	kindForm       = "form"
	kindTrust      = "trust"

	kindSetUp = "set-up" // is shown as a notification alone, and is answered in the window
)

type option struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Label string `json:"label"` // the name to show to people
}

// question is a request with a single question, in the API's common shape of questions.
type question struct {
	ID      string `json:"request_id"`
	Prompt  string `json:"prompt"`
	Choices []struct {
		ID          string `json:"id"`
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"choices"`
	MultiSelect bool `json:"multi_select"`
	FreeText    bool `json:"free_text"`
}

type executable struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail"`
	Before string `json:"before"`
	Path   string `json:"path"`
}

type toolCall struct {
	Title     string            `json:"title"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Content   []json.RawMessage `json:"content"`
	Locations []struct {
		Path string `json:"path"`
		Line int64  `json:"line"`
	} `json:"locations"`
	RawInput json.RawMessage `json:"rawInput"`
}

// place is the conversation that a request is of.
type place struct {
	Title string `json:"title"`
	Cwd   string `json:"cwd"`
}

// settings are the settings of dialogs and notifications beside the window.
type settings struct {
	NativeDialogs string `json:"nativeDialogs"`
	Notifications bool   `json:"notifications"`
}

// When there are dialogs.
const (
	dialogsNever  = "never"
	dialogsAlways = "always"
)

// wish is a call of the API that answers a request.
type wish struct {
	route string
	body  any
}

func (r *request) answer(body map[string]any) wish {
	return wish{"/client/requests/" + url.PathEscape(r.ID) + "/answer", body}
}

func (r *request) choose(o option) wish { return r.answer(map[string]any{"optionId": o.ID}) }

// reply answers the question that the request is.
func (r *request) reply(list []string) wish {
	return wish{
		"/client/sessions/" + url.PathEscape(r.Session) + "/questions/" + url.PathEscape(r.ID) + "/reply",
		map[string]any{"answers": [][]string{list}},
	}
}

// decline is a no to a question.
func (r *request) decline() wish {
	if r.Kind == kindForm {
		return r.answer(map[string]any{"action": "decline"})
	}
	return r.answer(map[string]any{"reject": true})
}
