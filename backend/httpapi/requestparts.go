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
	i := c.lib.inspector
	register(c, op("listRequestParts", http.MethodGet, "requests/{id}/parts", "List all parts of a permission request, with their true counts", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[partList], error) {
			list, err := i.Parts(ctx, in.ID)
			return answer(partList{list}, err)
		})
	register(c, op("readRequestPart", http.MethodGet, "requests/{id}/parts/{part}", "Read a page of the text of one part of a permission request, from the journal", http.StatusOK),
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

// outputs adds the routes that return the outputs of entries, of any length, from the journal.
func (c *Client) outputs() {
	i := c.lib.inspector
	register(c, op("readOutput", http.MethodGet, "sessions/{id}/entries/{entry}/output", "Read a page of an output of an entry, from the journal", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Entry  string `path:"entry" maxLength:"64"`
			At     string `query:"at" maxLength:"1000" doc:"JSON pointer of the text in the tool call, such as the path of a cut; of a diff, such as /content/0, its patch is returned. Empty: the output of a program"`
			Offset int    `query:"offset" minimum:"0" doc:"Byte offset: 0, or one that a page or a match has told"`
			Limit  int    `query:"limit" default:"65536" minimum:"1024" maximum:"1048576" doc:"Maximum number of bytes of text"`
		},
		) (*body[inspect.OutputPage], error) {
			return answer(i.OutputPage(ctx, in.ID, in.Entry, in.At, in.Offset, in.Limit))
		})
	register(c, op("findInOutput", http.MethodGet, "sessions/{id}/entries/{entry}/output/matches", "Find lines in an output of an entry", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Entry string `path:"entry" maxLength:"64"`
			At    string `query:"at" maxLength:"1000" doc:"As of the output's pages"`
			Query string `query:"q" required:"true" minLength:"1" maxLength:"1000" doc:"Text, regardless of the case of letters"`
			Limit int    `query:"limit" default:"1000" minimum:"1" maximum:"1000"`
		},
		) (*body[inspect.OutputMatches], error) {
			return answer(i.FindOutput(ctx, in.ID, in.Entry, in.At, in.Query, in.Limit))
		})
	huma.Register(c.api, op("outputText", http.MethodGet, "sessions/{id}/entries/{entry}/output/text", "Get the whole text of an output of an entry", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Entry string `path:"entry" maxLength:"64"`
			At    string `query:"at" maxLength:"1000" doc:"As of the output's pages"`
		},
		) (*plainText, error) {
			text, err := i.OutputText(ctx, in.ID, in.Entry, in.At)
			if err != nil {
				return nil, problemOf(err)
			}
			return &plainText{Type: "text/plain; charset=utf-8", Disposition: `attachment; filename="output.txt"`, Body: []byte(text)}, nil
		})
}
