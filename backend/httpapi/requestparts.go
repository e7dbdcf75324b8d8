package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

type partList struct {
	Items []session.RequestPart `json:"items" doc:"In the order in which they are shown; a part's number is its index"`
}

// requestParts adds the routes that return the complete content of a permission request, of any length.
func (c *Client) requestParts() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("listRequestParts", http.MethodGet, "requests/{id}/parts", "What a permission asks for, all of it: the parts, with their true counts", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[partList], error) {
			list, err := s.RequestParts(ctx, in.ID)
			return answer(partList{list}, err)
		})
	huma.Register(c.api, op("readRequestPart", http.MethodGet, "requests/{id}/parts/{part}", "A page of the text of a part of what a permission asks for, from the journal", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Part   int    `path:"part" minimum:"0" doc:"Its index in the list of parts"`
			Offset int    `query:"offset" minimum:"0" doc:"In bytes: 0, or next of a page before"`
			Limit  int    `query:"limit" default:"65536" minimum:"1024" maximum:"1048576" doc:"How many bytes of text at most"`
		},
		) (*body[session.PartPage], error) {
			return answer(s.RequestPartPage(ctx, in.ID, in.Part, in.Offset, in.Limit))
		})
}
