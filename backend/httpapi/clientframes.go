package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// frameRoutes adds the routes about the wire, and other facts about a session's agent.
func (c *Client) frameRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("listFrames", http.MethodGet, "sessions/{id}/frames", "What went between us and the agent, as the journal has it", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string  `path:"id" maxLength:"64"`
			After  int64   `query:"after" default:"-1" minimum:"-1" doc:"What follows this seq, ascending; without it the newest come first"`
			Before int64   `query:"before" minimum:"0"`
			Limit  int     `query:"limit" default:"200" minimum:"1" maximum:"500"`
			Wait   float64 `query:"wait" minimum:"0" maximum:"25" doc:"Seconds; with after, where there is nothing yet"`
			Text   string  `query:"q" maxLength:"1000" doc:"In the message as it was on the wire; case does not count"`
			Dir    string  `query:"dir" enum:"in,out" doc:"in: from the agent"`
			Method string  `query:"method" maxLength:"200" doc:"What its name begins with, or the update of a session/update; responses count by the request that they answer"`
			Notes  bool    `query:"notes" doc:"Ours too: what the wire does not tell, such as the beginning and the end of a turn"`
			Bodies bool    `query:"bodies" default:"true"`
		},
		) (*body[session.FramePage], error) {
			q := session.FrameQuery{
				Before: in.Before, Limit: in.Limit, Wait: time.Duration(in.Wait * float64(time.Second)), Text: in.Text, Dir: in.Dir, Method: in.Method,
				Notes: in.Notes, Bodies: in.Bodies,
			}
			if in.After >= 0 {
				q.After = &in.After
			}
			return answer(s.Wire(ctx, in.ID, q))
		})
	huma.Register(c.api, op("frameBody", http.MethodGet, "sessions/{id}/frames/{seq}", "One whole message; what is no JSON is a text", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID  string `path:"id" maxLength:"64"`
			Seq int64  `path:"seq" minimum:"1"`
		},
		) (*plainText, error) {
			data, err := s.FrameBody(ctx, in.ID, in.Seq)
			if err != nil {
				return nil, problemOf(err)
			}
			return &plainText{Type: "application/json", Body: data}, nil
		})
	huma.Register(c.api, op("readStderr", http.MethodGet, "sessions/{id}/stderr", "The end of what the agent wrote beside its protocol", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Stderr], error) {
			return answer(s.Stderr(ctx, in.ID))
		})
	huma.Register(c.api, op("given", http.MethodGet, "sessions/{id}/given", "What the agent was given when its session was last opened", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Given], error) {
			return answer(s.Given(ctx, in.ID))
		})
}
