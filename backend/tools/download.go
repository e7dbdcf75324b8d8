package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/attachment"
	"deskhand/backend/session"
)

const downloadSchema = `{
	"type": "object",
	"properties": {
		"downloadDir": {"type": "string", "description": "Where to save them; ~/Downloads without it. Inside of the home or of the session's directory"}
	}
}`

type downloadInput struct {
	DownloadDir string `json:"downloadDir"`
}

type downloadOutput struct {
	OK          bool                    `json:"ok"`
	DownloadDir string                  `json:"downloadDir"`
	Files       []attachment.Downloaded `json:"files"`
}

func (c *caller) download(ctx context.Context, _ *sdk.CallToolRequest, wish downloadInput) (any, error) {
	client, done, err := c.moving(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	in, err := client.Attachments().Inbound(ctx, c.grant.session)
	if err != nil {
		return nil, err
	}
	if len(in.Items) == 0 && len(in.Own) == 0 {
		return nil, &ruleError{"attachment.none", "no message of this session came with files"}
	}
	dir, err := c.downloadDir(wish.DownloadDir, in.Cwd)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	out := downloadOutput{OK: true, DownloadDir: dir.Name(), Files: []attachment.Downloaded{}}
	hosts := client.Settings().Get().Hosts()
	switch {
	case len(in.Items) == 0:
		out.Files, err = c.save(ctx, client, in.Own, dir)
	case len(hosts) == 0:
		err = &ruleError{"attachment.host", "the settings allow no host to fetch files from"}
	default:
		out.Files, err = attachment.Download(ctx, c.outside, in.Items, dir, attachment.DownloadLimits{Hosts: hosts})
	}
	if err != nil {
		return nil, &partlyError{err, out.Files}
	}
	return out, nil
}

// partlyError is the failure of a file, with the files that were saved before.
type partlyError struct {
	error

	done []attachment.Downloaded
}

// The most that a call saves of attachments from Deskhand, as for fetched files.
const (
	mostSaved      = 25 << 20 // a file
	mostSavedACall = 50 << 20
)

// save saves attachments that came with a message from somewhere else than a chat. A file that fails does not stop the others, as in
// attachment.Download.
func (c *caller) save(ctx context.Context, client *session.Client, own []attachment.File, dir *os.Root) (files []attachment.Downloaded, err error) {
	files = []attachment.Downloaded{}
	left := int64(mostSavedACall)
	var failed []error
	for _, f := range own {
		if f.Directory {
			continue // a directory stays in its place, which the agent knows
		}
		data, err := c.read(ctx, client, f, left)
		var saved attachment.Downloaded
		if err == nil {
			left -= int64(len(data))
			saved, err = attachment.Save(ctx, dir, data, f.Filename, f.MimeType, source(f))
		}
		switch {
		case ctx.Err() != nil:
			return files, ctx.Err()
		case err != nil:
			failed = append(failed, err)
		case !slices.ContainsFunc(files, func(d attachment.Downloaded) bool { return d.SHA10 == saved.SHA10 }):
			files = append(files, saved)
		}
	}
	return files, errors.Join(failed...)
}

// read returns the bytes of a file that a person has attached: the kept bytes, or else the present bytes of the file.
func (c *caller) read(ctx context.Context, client *session.Client, f attachment.File, left int64) ([]byte, error) {
	_, from, err := client.Attachments().Content(ctx, f.ID)
	if errors.Is(err, session.ErrNotFound) { // the bytes of the file are lost, and not the session
		return nil, &attachment.Problem{Code: "attachment.missing", Params: map[string]string{"name": f.Filename}}
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	most := min(left, mostSaved)
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil || int64(len(data)) <= most:
		return data, err
	case most < mostSaved:
		return nil, &attachment.Problem{Code: "attachment.total_too_large", Params: map[string]string{"name": f.Filename, "limit": mib(mostSavedACall)}}
	}
	return nil, &attachment.Problem{Code: "attachment.too_large", Params: map[string]string{"name": f.Filename, "limit": mib(mostSaved)}}
}

func mib(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }

// source returns the text in place of a URL for a file that had no URL.
func source(f attachment.File) string {
	switch {
	case f.URI != "":
		return f.URI
	case f.Path != "":
		return attachment.URI(f.Path)
	}
	return "sha256:" + f.SHA256
}

// downloadDir opens a directory in which an agent may save files: inside of the home or the session's directory, and outside of
// Deskhand's own.
func (c *caller) downloadDir(given, cwd string) (*os.Root, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = cwd
	}
	dir, err := attachment.DownloadDir(given, home, cwd, home, cwd)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir.Name()) // a home, or a session's directory, may be named by a link
	switch {
	case err != nil:
		err = errors.Join(&ruleError{"attachment.outside", "the directory has changed meanwhile"}, err)
	case attachment.Within(real, c.cfg.Private):
		err = &ruleError{"attachment.outside", "files are not saved among Deskhand's own"}
	default:
		return dir, nil
	}
	return nil, errors.Join(err, dir.Close())
}
