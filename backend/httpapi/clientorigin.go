package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/session"
)

type summary struct {
	Text string `json:"text" doc:"Summary in Markdown, at most 16 KiB, made from the transcript without a model: prompts, decisions, plan, changed files, the last answer"`
}

// originRoutes adds the routes that make a session from another: from the agent's own, from a copy, or for another agent; and the preview
// of the text that such a session gets.
func (c *Client) originRoutes() {
	s := c.cfg.Sessions
	register(c, op("listAgentSessions", http.MethodGet, "agents/{id}/sessions", "List the agent's own conversations, as the agent reports them", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID        string `path:"id" maxLength:"64"`
			Directory string `query:"directory" maxLength:"4096" doc:"Only conversations of this directory"`
			Before    string `query:"before" maxLength:"8192" doc:"Cursor from the previous page"`
		},
		) (*body[session.AgentSessions], error) {
			return answer(s.Imports().Sessions(ctx, in.ID, in.Directory, in.Before))
		})
	register(c, op("importSession", http.MethodPost, "sessions/import", "Import a conversation of an agent as a session, or find the session that has it", http.StatusCreated),
		func(ctx context.Context, in *body[session.Import]) (*body[session.Session], error) {
			return answer(s.Imports().Take(ctx, in.Body))
		})
	register(c, op("forkSession", http.MethodPost, "sessions/{id}/fork", "Fork a session: make a second session that continues from the first", http.StatusCreated),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			return answer(s.Fork(ctx, in.ID))
		})
	register(c, op("branchSession", http.MethodPost, "sessions/{id}/branch", "Make a session that continues from before a message, which becomes its draft together with what was said before as a file; no agent starts until the draft is sent", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Turn string `json:"turn" minLength:"1" maxLength:"64" doc:"The turn that the message began"`

				Message string `json:"message,omitempty" maxLength:"1048576" doc:"The draft, in place of the message"`
			}
		},
		) (*body[session.Session], error) {
			return answer(s.Branch(ctx, in.ID, in.Body.Turn, in.Body.Message))
		})
	register(c, op("continueSession", http.MethodPost, "sessions/{id}/continue", "Make a session for another agent, with a summary of this session as its draft", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Agent string `json:"agent" minLength:"1" maxLength:"64"`
			}
		},
		) (*body[session.Session], error) {
			return answer(s.Continuations().Begin(ctx, in.ID, in.Body.Agent))
		})
	register(c, op("summariseSession", http.MethodGet, "sessions/{id}/summary", "Get a summary of a session's transcript for another agent", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[summary], error) {
			text, err := s.Continuations().Summary(ctx, in.ID)
			return answer(summary{text}, err)
		})
}
