package demoagent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// questionMethod is the extension that asks a question. Clients that do not know the extension answer -32601.
const questionMethod = "_sandboxagent/session/request_question"

// inWords is an error as a sentence for people.
func inWords(e *agentio.Error) string {
	return fmt.Sprintf("The client answered with error %d: %s", e.Code, e.Message)
}

// question uses the extension in its plainest form, questions uses every feature.
func question(ctx context.Context, t *turn) {
	t.say(ctx, "I have a question.")
	t.askQuestion(ctx, questionRequest{
		Prompt:  "Which option?",
		Options: [][2]string{{"option-a", "Option A"}, {"option-b", "Option B"}},
	})
}

func questions(ctx context.Context, t *turn) {
	t.say(ctx, "I have two questions.")
	t.askQuestion(ctx, questionRequest{Prompt: "Two questions", Questions: []questionItem{
		{Prompt: "Which toppings?", Options: [][2]string{{"cheese", "Cheese"}, {"olives", "Olives"}, {"basil", "Basil"}}, MultiSelect: true},
		{Prompt: "Which drink?", Options: []string{"Water", "Tea"}, AllowFreeText: true}, // an option may serve as its own id
	}})
}

// askQuestion asks a question and reports the answer.
func (t *turn) askQuestion(ctx context.Context, request questionRequest) {
	if ctx.Err() != nil {
		return
	}
	request.SessionID, request.QuestionID = t.session.id, uuid.NewString()
	r, answered := t.agent.ask(ctx, questionMethod, request)
	if !answered {
		return
	}
	var response questionResponse
	switch {
	case r.err != nil:
		t.say(ctx, inWords(r.err))
	case json.Unmarshal(r.result, &response) != nil:
		t.say(ctx, "The answer to my question could not be read.")
	case response.Status == "answered":
		var lists []string
		for _, list := range response.Answers {
			lists = append(lists, strings.Join(list, ", "))
		}
		t.say(ctx, "You answered: "+strings.Join(lists, "; "))
	case response.Status == "rejected":
		t.say(ctx, "You rejected the question.")
	default:
		t.say(ctx, fmt.Sprintf("The question came back with the unknown status %q.", response.Status))
	}
}

// formSchema has a field of every kind that ACP knows.
const formSchema = `{
	"type": "object",
	"title": "New project",
	"properties": {
		"name": {"type": "string", "title": "Name", "description": "Small letters, digits and dashes",
			"minLength": 1, "maxLength": 40, "pattern": "^[a-z0-9-]+$"},
		"contact": {"type": "string", "title": "Contact", "format": "email"},
		"licence": {"type": "string", "title": "Licence", "enum": ["MIT", "Apache-2.0", "none"], "default": "MIT"},
		"size": {"type": "string", "title": "Size", "oneOf": [
			{"const": "small", "title": "Small", "description": "One package"},
			{"const": "large", "title": "Large", "description": "Many packages"}]},
		"port": {"type": "integer", "title": "Port", "minimum": 1, "maximum": 65535, "default": 8080},
		"coverage": {"type": "number", "title": "Coverage", "minimum": 0, "maximum": 1, "default": 0.8},
		"tests": {"type": "boolean", "title": "With tests", "default": true},
		"features": {"type": "array", "title": "Features", "minItems": 1, "maxItems": 2, "items": {"anyOf": [
			{"const": "api", "title": "HTTP API"}, {"const": "cli", "title": "Command line"}, {"const": "web", "title": "Web page"}]}},
		"systems": {"type": "array", "title": "Systems", "items": {"type": "string", "enum": ["linux", "macos", "windows"]}, "default": ["linux"]}
	},
	"required": ["name", "size", "features"]
}`

func form(ctx context.Context, t *turn) { t.askForm(ctx, "How shall the project look?", formSchema) }

// askForm asks by elicitation, within a tool call as many agents do, and reports the answer.
func (t *turn) askForm(ctx context.Context, message, schema string) {
	if !given(t.agent.capabilities().Elicitation.Form) {
		t.say(ctx, "This client shows no forms (`elicitation.form`).")
		return
	}
	t.say(ctx, "I need some details.")
	id := t.open(ctx, ToolCall{Title: "Ask for the details", Name: "ask_form", Kind: "other", Status: "in_progress"})
	if ctx.Err() != nil {
		return
	}
	r, answered := t.agent.ask(ctx, "elicitation/create", formRequest{
		Mode: "form", SessionID: t.session.id, ToolCallID: id,
		Message: message, RequestedSchema: json.RawMessage(schema),
	})
	if !answered {
		return
	}
	told, ended := formAnswer(r)
	t.change(ctx, id, ToolCall{Status: ended, Content: []any{content(text(told))}})
	t.say(ctx, told)
}

// formAnswer describes an answer, and returns the final state of the tool call: decline skips the call, cancel aborts the call.
func formAnswer(r reply) (told, ended string) {
	var response formResponse
	switch {
	case r.err != nil:
		return inWords(r.err), "failed"
	case json.Unmarshal(r.result, &response) != nil:
		return "The answer to my form could not be read.", "failed"
	}
	switch response.Action {
	case "accept":
		var sent bytes.Buffer
		if given(response.Content) {
			_ = json.Indent(&sent, response.Content, "", "  ") // the content was parsed before
		}
		return "You sent the form:\n\n" + acp.Fenced("json", sent.String()), "completed"
	case "decline":
		return "You declined the form, so I go on without it.", "completed"
	case "cancel":
		return "You cancelled the form.", "failed"
	default:
		return fmt.Sprintf("The form came back with the unknown action %q.", response.Action), "failed"
	}
}

// visitURL is the address of "visit". No server answers there, since the domain invalid is reserved.
const visitURL = "https://sign-in.deskhand.invalid/device?code=DEMO-1234"

func visit(ctx context.Context, t *turn) { t.askVisit(ctx, "Sign in to go on.", visitURL) }

// askVisit asks the client to open an address. Like agents that listen for a callback, askVisit waits for a moment and then reports
// completion.
func (t *turn) askVisit(ctx context.Context, message, address string) {
	if !given(t.agent.capabilities().Elicitation.URL) {
		t.say(ctx, "This client opens no addresses (`elicitation.url`).")
		return
	}
	t.say(ctx, "You have to go somewhere.")
	if ctx.Err() != nil {
		return
	}
	id := uuid.NewString()
	r, answered := t.agent.ask(ctx, "elicitation/create", visitRequest{Mode: "url", SessionID: t.session.id, Message: message, ElicitationID: id, URL: address})
	if !answered {
		return
	}
	var response formResponse
	switch {
	case r.err != nil:
		t.say(ctx, inWords(r.err))
	case json.Unmarshal(r.result, &response) != nil:
		t.say(ctx, "The answer could not be read.")
	case response.Action == "accept":
		t.say(ctx, "You agreed to open it; I wait until all is done there.")
		if t.pause(ctx, 20*pace) {
			t.agent.notify("elicitation/complete", visitDone{id})
			t.say(ctx, "All is done there.")
		}
	case response.Action == "decline":
		t.say(ctx, "You declined, so I go on without it.")
	case response.Action == "cancel":
		t.say(ctx, "You cancelled it.")
	default:
		t.say(ctx, fmt.Sprintf("The answer is the unknown action %q.", response.Action))
	}
}
