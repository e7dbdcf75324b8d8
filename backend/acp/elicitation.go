package acp

import "encoding/json"

// Elicitation is the params of elicitation/create. Mode decides which of the other fields are required. A field that is missing, or of
// the wrong type, is empty.
type Elicitation struct {
	Mode    string
	Message string
	Schema  json.RawMessage // of the form
	ID      string          // by which the agent reports later that the work at URL is done
	URL     string
}

// ParseElicitation decodes the params of elicitation/create.
func ParseElicitation(params json.RawMessage) (Elicitation, error) {
	var p struct {
		Mode    string           `json:"mode"`
		Message optional[string] `json:"message"`
		Schema  json.RawMessage  `json:"requestedSchema"`
		ID      Text             `json:"elicitationId"`
		URL     optional[string] `json:"url"`
	}
	if err := lenient(params, &p); err != nil {
		return Elicitation{}, err
	}
	return Elicitation{Mode: p.Mode, Message: p.Message.value, Schema: p.Schema, ID: string(p.ID), URL: p.URL.value}, nil
}

// CompletedElicitation returns the id in an elicitation/complete message, or "" when there is none.
func CompletedElicitation(message []byte) string {
	var m struct {
		Params struct {
			ID Text `json:"elicitationId"`
		} `json:"params"`
	}
	if lenient(message, &m) != nil {
		return ""
	}
	return string(m.Params.ID)
}
