package tools

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/attachment"
)

const addSchema = `{
	"type": "object",
	"properties": {
		"paths": {"type": "array", "items": {"type": "string"}, "description": "The files, absolute or relative to the session's directory; shown in this order"},
		"path": {"type": "string", "description": "One file; not looked at where paths is given"},
		"filenames": {"type": "array", "items": {"type": "string"}, "description": "The name that each of paths is shown with"},
		"filename": {"type": "string", "description": "The name that path is shown with"},
		"mimeTypes": {"type": "array", "items": {"type": "string"}, "description": "The media type of each of paths"},
		"mimeType": {"type": "string", "description": "The media type of path"}
	}
}`

type addInput struct {
	Paths     []string `json:"paths"`
	Path      string   `json:"path"`
	Filenames []string `json:"filenames"`
	Filename  string   `json:"filename"`
	MimeTypes []string `json:"mimeTypes"`
	MimeType  string   `json:"mimeType"`
}

// added is a shown file, as the agent is told.
type added struct {
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
	Bytes    int64  `json:"bytes"`
}

type addOutput struct {
	OK          bool    `json:"ok"`
	Attachments []added `json:"attachments"`
}

// mostFiles is how many files a call may name.
const mostFiles = 100

// wanted returns the files that an input names. The lists are pairwise, and may be shorter than paths.
func (in addInput) wanted() ([]attachment.Wanted, error) {
	if in.Paths == nil && in.Path != "" {
		in.Paths = []string{in.Path}
		in.Filenames, in.MimeTypes = in.Filenames[:0:0], in.MimeTypes[:0:0]
		if in.Filename != "" {
			in.Filenames = []string{in.Filename}
		}
		if in.MimeType != "" {
			in.MimeTypes = []string{in.MimeType}
		}
	}
	switch n := len(in.Paths); {
	case n == 0:
		return nil, &ruleError{"arguments", "paths names no file"}
	case n > mostFiles:
		return nil, &ruleError{"arguments", fmt.Sprintf("paths names %d files; %d are the most", n, mostFiles)}
	}
	at := func(list []string, i int) string {
		if i < len(list) {
			return list[i]
		}
		return ""
	}
	list := make([]attachment.Wanted, len(in.Paths))
	for i, path := range in.Paths {
		list[i] = attachment.Wanted{Path: path, Filename: at(in.Filenames, i), MimeType: at(in.MimeTypes, i)}
	}
	return list, nil
}

func (c *caller) addFiles(ctx context.Context, _ *sdk.CallToolRequest, in addInput) (any, error) {
	list, err := in.wanted()
	if err != nil {
		return nil, err
	}
	client, done, err := c.moving(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	files, err := client.AddFiles(ctx, c.grant.session, list)
	if err != nil {
		return nil, err
	}
	out := addOutput{OK: true, Attachments: make([]added, len(files))}
	for i, f := range files {
		out.Attachments[i] = added{f.Filename, f.MimeType, f.Size}
	}
	return out, nil
}
