package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/inspect"
)

// frameRoutes adds the routes about the wire, and other facts about a session's agent.
func (c *Client) frameRoutes() {
	i := c.lib.inspector
	register(c, op("listFrames", http.MethodGet, "sessions/{id}/frames", "List the frames between Deskhand and the agent, from the journal", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string  `path:"id" maxLength:"64"`
			After  int64   `query:"after" default:"-1" minimum:"-1" doc:"Frames after this seq, ascending; absent = the newest frames first"`
			Before int64   `query:"before" minimum:"0"`
			Limit  int     `query:"limit" default:"200" minimum:"1" maximum:"500"`
			Wait   float64 `query:"wait" minimum:"0" maximum:"25" doc:"Seconds to wait with after, when there are no frames yet"`
			Text   string  `query:"q" maxLength:"1000" doc:"Text that occurs in the message as sent on the wire; case-insensitive"`
			Dir    string  `query:"dir" enum:"in,out" doc:"Direction: in = from the agent, out = to the agent"`
			Method string  `query:"method" maxLength:"200" doc:"Prefix of the method's name, or the kind of a session/update; responses match by the method of their request"`
			Notes  bool    `query:"notes" doc:"Include Deskhand's own notes, such as the beginning and the end of a turn"`
			Bodies bool    `query:"bodies" default:"true"`
		},
		) (*body[inspect.FramePage], error) {
			q := inspect.Query{
				Before: in.Before, Limit: in.Limit, Wait: time.Duration(in.Wait * float64(time.Second)), Text: in.Text, Dir: in.Dir, Method: in.Method,
				Notes: in.Notes, Bodies: in.Bodies,
			}
			if in.After >= 0 {
				q.After = &in.After
			}
			return answer(i.Frames(ctx, in.ID, q))
		})
	huma.Register(c.api, op("frameBody", http.MethodGet, "sessions/{id}/frames/{seq}", "Get one whole frame; a frame that is not JSON is returned as a text", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID  string `path:"id" maxLength:"64"`
			Seq int64  `path:"seq" minimum:"1"`
		},
		) (*plainText, error) {
			data, err := i.Body(ctx, in.ID, in.Seq)
			if err != nil {
				return nil, problemOf(err)
			}
			return &plainText{Type: "application/json", Body: data}, nil
		})
	register(c, op("readStderr", http.MethodGet, "sessions/{id}/stderr", "Read the end of the agent's stderr", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[inspect.Stderr], error) {
			return answer(i.Stderr(ctx, in.ID))
		})
	register(c, op("given", http.MethodGet, "sessions/{id}/given", "Get the MCP servers that the agent got when its session was last opened, and the session's turns and plan", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[inspect.Given], error) {
			return answer(i.Given(ctx, in.ID))
		})
}
