package tools

import (
	"context"
	"errors"
	"io"
	"net/url"
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

func (c *caller) download(ctx context.Context, _ *sdk.CallToolRequest, in downloadInput) (any, error) {
	client, err := c.using(ctx)
	if err != nil {
		return nil, err
	}
	done, err := c.move(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	items, own, cwd, err := client.InboundFiles(ctx, c.grant.session)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 && len(own) == 0 {
		return nil, &ruleError{"attachment.none", "no message of this session came with files"}
	}
	dir, err := c.downloadDir(in.DownloadDir, cwd)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	out := downloadOutput{OK: true, DownloadDir: dir.Name(), Files: []attachment.Downloaded{}}
	hosts := client.Settings().Hosts()
	switch {
	case len(items) == 0:
		out.Files, err = c.save(ctx, client, own, dir)
	case len(hosts) == 0:
		err = &ruleError{"attachment.host", "the settings allow no host to fetch files from"}
	default:
		out.Files, err = attachment.Download(ctx, c.outside, items, dir, attachment.DownloadLimits{Hosts: hosts})
	}
	if err != nil {
		return nil, &partlyError{err, out.Files}
	}
	return out, nil
}

// partlyError is the failure of one file, with the files that were saved before.
type partlyError struct {
	error

	done []attachment.Downloaded
}

// What of our own files a call saves at most, as of those that are fetched.
const (
	mostSaved      = 25 << 20 // a file
	mostSavedACall = 50 << 20
)

// save writes files of our own: what came with a message from somewhere else than a chat.
func (c *caller) save(ctx context.Context, client *session.Client, own []attachment.File, dir *os.Root) (files []attachment.Downloaded, err error) {
	files = []attachment.Downloaded{}
	left := int64(mostSavedACall)
	for _, f := range own {
		if f.Directory {
			continue // it is where it is, and the agent was told
		}
		data, err := c.read(ctx, client, f, min(left, mostSaved))
		if err != nil {
			return files, err
		}
		left -= int64(len(data))
		saved, err := attachment.Save(ctx, dir, data, f.Filename, f.MimeType, source(f))
		if err != nil {
			return files, err
		}
		if !slices.ContainsFunc(files, func(d attachment.Downloaded) bool { return d.SHA10 == saved.SHA10 }) {
			files = append(files, saved)
		}
	}
	return files, nil
}

// read gives the bytes of a file that a person has attached: those that were kept, else those that are there now.
func (c *caller) read(ctx context.Context, client *session.Client, f attachment.File, most int64) ([]byte, error) {
	_, from, err := client.Content(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(data)) > most {
		err = &attachment.Problem{Code: "attachment.too_large", Params: map[string]string{"name": f.Filename, "limit": strconv.FormatInt(most, 10)}}
	}
	return data, err
}

// source is what stands in the place of a URL for a file that was never behind one.
func source(f attachment.File) string {
	switch {
	case f.URI != "":
		return f.URI
	case f.Path != "":
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(f.Path)}).String()
	}
	return "sha256:" + f.SHA256
}

// downloadDir opens a directory that an agent may save files in: inside of the home or the session's directory, and not one of our own.
func (c *caller) downloadDir(given, cwd string) (*os.Root, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = cwd
	}
	dir, err := attachment.DownloadDir(given, home, cwd, home, cwd)
	if err != nil {
		return nil, err
	}
	for _, private := range c.cfg.Private {
		if within(dir.Name(), private) {
			return nil, errors.Join(&ruleError{"attachment.outside", "files are not saved among Deskhand's own"}, dir.Close())
		}
	}
	return dir, nil
}

// within tells whether a directory is in another one, by what they are called without links.
func within(dir, outer string) bool {
	real, err := filepath.EvalSymlinks(outer)
	if err != nil {
		return false // it is not there
	}
	rel, err := filepath.Rel(real, dir)
	return err == nil && filepath.IsLocal(rel)
}
