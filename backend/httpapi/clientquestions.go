package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/requests"

	"github.com/danielgtaylor/huma/v2"
)

// inboxPage lists the waiting requests, and again, as questions, those that programs of the older shape understand.
type inboxPage struct {
	Items     []requests.Request         `json:"items" doc:"Waiting requests, the oldest first"`
	Questions []requests.WaitingQuestion `json:"questions" doc:"The items that ask for a choice or a text"`
}

type requestList struct {
	Items []requests.Request `json:"items"`
}

// questionRoutes answer requests in the shape of the earlier API, see the seed questions.md: 204, 404 for no question, and 409 for an
// answered question, as for requests.
func (c *Client) questionRoutes() {
	s := c.cfg.Sessions
	reply := op("replyQuestion", http.MethodPost, "sessions/{session}/questions/{question}/reply", "Answer a question; the first answer wins", http.StatusNoContent)
	huma.Register(c.api, reply, func(ctx context.Context, in *struct {
		Session  string `path:"session" maxLength:"64"`
		Question string `path:"question" maxLength:"256" doc:"The question_id, or the request_id; when two waiting questions have the same question_id, only the request_id"`
		Surface  string `header:"Deskhand-Surface" maxLength:"20"`
		Body     struct {
			Answers [][]string `json:"answers" maxItems:"1000" doc:"For each question a list of options or own words; with a request_id the lists of all questions of the request, otherwise one list"`
		}
	},
	) (*none, error) {
		return done(s.ReplyQuestion(ctx, in.Session, in.Question, in.Body.Answers, surface(in.Surface)))
	})
	reject := op("rejectQuestion", http.MethodPost, "sessions/{session}/questions/{question}/reject", "Reject a question", http.StatusNoContent)
	huma.Register(c.api, reject, func(ctx context.Context, in *struct {
		Session  string `path:"session" maxLength:"64"`
		Question string `path:"question" maxLength:"256" doc:"The question_id, or the request_id; when two waiting questions have the same question_id, only the request_id"`
		Surface  string `header:"Deskhand-Surface" maxLength:"20"`
	},
	) (*none, error) {
		return done(s.RejectQuestion(ctx, in.Session, in.Question, surface(in.Surface)))
	})
}
