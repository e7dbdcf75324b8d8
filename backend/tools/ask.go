package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/form"
	"deskhand/backend/requests"
)

const askSchema = `{
	"type": "object",
	"properties": {
		"prompt": {"type": "string", "description": "The question"},
		"options": {"type": "array", "items": {"type": "string"}, "description": "What to choose from; without it the answer is in the person's own words"},
		"multiSelect": {"type": "boolean", "description": "Several options may be chosen"},
		"allowFreeText": {"type": "boolean", "description": "Words that are no option are an answer too"},
		"questions": {
			"type": "array",
			"description": "Several questions at once, in place of the one above",
			"items": {
				"type": "object",
				"properties": {
					"prompt": {"type": "string"},
					"options": {"type": "array", "items": {"type": "string"}},
					"multiSelect": {"type": "boolean"},
					"allowFreeText": {"type": "boolean"}
				},
				"required": ["prompt"]
			}
		}
	}
}`

// The limits of the questions in a call.
const (
	mostQuestions = 20
	mostOptions   = 100
	longestText   = 32 << 10 // of all texts of a call
)

type question struct {
	Prompt        string   `json:"prompt"`
	Question      string   `json:"question"` // the name that some models use
	Options       []option `json:"options"`
	MultiSelect   bool     `json:"multiSelect"`
	AllowFreeText bool     `json:"allowFreeText"`
}

type askInput struct {
	question
	Questions []question `json:"questions"`
}

// option is a label that is its own id, a pair of id and label, or an object: the forms of _sandboxagent/session/request_question.
type option form.QuestionOption

func (o *option) UnmarshalJSON(raw []byte) error {
	var label string
	if json.Unmarshal(raw, &label) == nil {
		*o = option{ID: label, Label: label}
		return nil
	}
	var pair []string
	if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
		*o = option{ID: pair[0], Label: pair[1]}
		return nil
	}
	var whole form.QuestionOption
	if err := json.Unmarshal(raw, &whole); err != nil {
		return errors.New("an option is a text, a pair of id and label, or an object with id and label")
	}
	if whole.ID == "" {
		whole.ID = whole.Label
	}
	if whole.Label == "" {
		whole.Label = whole.ID
	}
	*o = option(whole)
	return nil
}

func (in askInput) list() ([]requests.Question, error) {
	if len(in.Questions) == 0 {
		in.Questions = []question{in.question}
	}
	if len(in.Questions) > mostQuestions {
		return nil, &ruleError{"arguments", fmt.Sprintf("%d questions at once are the most", mostQuestions)}
	}
	size := 0
	list := make([]requests.Question, len(in.Questions))
	for i, q := range in.Questions {
		prompt := strings.TrimSpace(q.Prompt)
		if prompt == "" {
			prompt = strings.TrimSpace(q.Question)
		}
		switch {
		case prompt == "":
			return nil, &ruleError{"arguments", "a question needs a prompt"}
		case len(q.Options) > mostOptions:
			return nil, &ruleError{"arguments", fmt.Sprintf("%d options of a question are the most", mostOptions)}
		}
		size += len(prompt)
		list[i] = requests.Question{Prompt: prompt, MultiSelect: q.MultiSelect, AllowFreeText: q.AllowFreeText || len(q.Options) == 0, Options: []form.QuestionOption{}}
		for _, o := range q.Options {
			if o.ID == "" {
				return nil, &ruleError{"arguments", "an option needs a label"}
			}
			size += len(o.ID) + len(o.Label) + len(o.Description)
			list[i].Options = append(list[i].Options, form.QuestionOption(o))
		}
	}
	if size > longestText {
		return nil, &ruleError{"arguments", fmt.Sprintf("the questions are longer than %d bytes", longestText)}
	}
	return list, nil
}

// answered has the shape of the answer to _sandboxagent/session/request_question.
type answered struct {
	Status  string     `json:"status"`
	Answers [][]string `json:"answers,omitempty"`
}

func (c *caller) ask(ctx context.Context, _ *sdk.CallToolRequest, in askInput) (any, error) {
	list, err := in.list()
	if err != nil {
		return nil, err
	}
	client, err := c.using(ctx)
	if err != nil {
		return nil, err
	}
	answers, status, err := client.AskUser(ctx, c.grant.session, list)
	switch {
	case err != nil:
		return nil, err
	case status == "answered":
		return answered{status, answers}, nil
	case status == "rejected":
		return nil, &ruleError{status, "the person does not want to answer"}
	}
	return nil, &ruleError{status, "nobody has answered: the question was taken back"}
}
