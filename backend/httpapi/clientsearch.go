package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/search"
)

// searchRoutes adds the routes for searching and exporting conversations.
func (c *Client) searchRoutes() {
	register(c, op("search", http.MethodGet, "search", "Search the transcripts of all sessions, the newest match first", http.StatusOK),
		func(ctx context.Context, in *struct {
			Query     string    `query:"q" required:"true" maxLength:"1000" doc:"Words that must all occur, the last as a prefix; \"a phrase\"; -excluded"`
			Agent     string    `query:"agent" maxLength:"64"`
			Workspace string    `query:"workspace" maxLength:"64" doc:"Id of a workspace"`
			Session   string    `query:"session" maxLength:"64" doc:"Search this session only, and return every match in it"`
			From      time.Time `query:"from" doc:"Only entries of this time or later"`
			To        time.Time `query:"to" doc:"Only entries before this time"`
			Before    string    `query:"before" maxLength:"100"`
			Limit     int       `query:"limit" default:"50" minimum:"1" maximum:"200"`
		},
		) (*body[search.Found], error) {
			return answer(c.cfg.Search.Find(ctx, search.Query{
				Text: in.Query, Agent: in.Agent, Workspace: in.Workspace, Session: in.Session,
				From: in.From, To: in.To, Before: in.Before, Limit: in.Limit,
			}))
		})
}

// IncompleteHeader marks an export that lacks unreadable parts.
const IncompleteHeader = "Deskhand-Incomplete"

// exportRoute sends a whole conversation, or the readable part of a damaged conversation. The export goes to a temporary file first, so that an
// error is reported as a problem instead of cutting the file off.
func (c *Client) exportRoute() {
	export := op("exportSession", http.MethodGet, "sessions/{id}/export", "Export a whole session as a file", http.StatusOK)
	export.Responses = map[string]*huma.Response{"200": {
		Description: "The file, with its name in Content-Disposition. Deskhand-Incomplete: true means that a part of the conversation could not be read",
		Content: map[string]*huma.MediaType{
			"text/markdown":    {Schema: &huma.Schema{Type: huma.TypeString}},
			"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}},
			"application/zip":  {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}
	huma.Register(c.api, export, func(ctx context.Context, in *struct {
		ID     string `path:"id" maxLength:"64"`
		Format string `query:"format" default:"md" enum:"md,json,recording"`
	},
	) (*huma.StreamResponse, error) {
		x, err := c.cfg.Exports.File(ctx, in.ID, in.Format)
		if err != nil {
			return nil, problemOf(err)
		}
		f, err := spool(x)
		if err != nil {
			return nil, problemOf(err)
		}
		return &huma.StreamResponse{Body: func(out huma.Context) {
			defer f.Close()
			if x.Lost != nil {
				out.SetHeader(IncompleteHeader, "true")
			}
			out.SetHeader("Content-Type", x.Type)
			out.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": x.Name}))
			out.SetHeader("Content-Length", strconv.FormatInt(f.size, 10)) // lets the caller notice a cut file
			_, _ = io.Copy(out.BodyWriter(), f)                            // fails only when the caller is gone
		}}, nil
	})
}

// spool writes an export to a temporary file that nobody else can open. Where the system allows, the file loses its name before the first
// byte, so that a kill leaves no conversation behind. On Windows the name stays until Close.
func spool(x io.WriterTo) (*spooled, error) {
	f, err := os.CreateTemp("", "deskhand-export-*")
	if err != nil {
		return nil, err
	}
	s := &spooled{File: f, nameless: os.Remove(f.Name()) == nil}
	if s.size, err = x.WriteTo(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

type spooled struct {
	*os.File
	size     int64
	nameless bool
}

// Close closes and removes the file.
func (s *spooled) Close() error {
	err := s.File.Close()
	if !s.nameless {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
