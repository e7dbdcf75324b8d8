package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/inspect"
)

type partList struct {
	Items []inspect.RequestPart `json:"items" doc:"Parts in display order; the number of a part is its index"`
}

// requestParts adds the routes that return the complete content of a permission request, of any length.
func (c *Client) requestParts() {
	i := c.cfg.Inspector
	huma.Register(c.api, op("listRequestParts", http.MethodGet, "requests/{id}/parts", "List all parts of a permission request, with their true counts", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[partList], error) {
			list, err := i.Parts(ctx, in.ID)
			return answer(partList{list}, err)
		})
	huma.Register(c.api, op("readRequestPart", http.MethodGet, "requests/{id}/parts/{part}", "Read a page of the text of one part of a permission request, from the journal", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Part   int    `path:"part" minimum:"0" doc:"Index of the part in the list of parts"`
			Offset int    `query:"offset" minimum:"0" doc:"Byte offset: 0, or next of the previous page"`
			Limit  int    `query:"limit" default:"65536" minimum:"1024" maximum:"1048576" doc:"Maximum number of bytes of text"`
		},
		) (*body[inspect.PartPage], error) {
			return answer(i.PartPage(ctx, in.ID, in.Part, in.Offset, in.Limit))
		})
}
