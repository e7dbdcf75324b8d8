package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"deskhand/backend/transcript"
)

// directories checks what a session is to work in beside its own directory, and gives each once, in its order.
func directories(paths []string) ([]string, error) {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		path, err := existingDirectory(path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list, nil
}

func existingDirectory(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", bad("directory.relative", "path", path)
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bad(transcript.ProblemNoDirectory, "path", path)
	case err != nil:
		return "", bad("directory.unreadable", "path", path, "detail", err.Error())
	case !info.IsDir():
		return "", bad("directory.not_one", "path", path)
	}
	return path, nil
}

// mostDirectories is how many a person can choose; New and Patch say so too.
const mostDirectories = 20

// choosable are those of paths that a person could have chosen: an agent's list names what was there when the conversation was.
func choosable(paths []string) []string {
	list := []string{}
	for _, path := range paths {
		if path, err := existingDirectory(path); err == nil && !slices.Contains(list, path) && len(list) < mostDirectories {
			list = append(list, path)
		}
	}
	return list
}

// roots are where the files and the programs of the agent may be: the session's directory first.
func (v *conversation) roots() []string { return append([]string{v.row.Cwd}, v.row.Directories...) }

// Roots are the directories of a session, the first of them first. One whose files are elsewhere has none here.
func (c *Client) Roots(ctx context.Context, id string) ([]string, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	s, at := v.look(), v.host().Directories
	if at == nil {
		return nil, &RefusedError{Code: "paths.elsewhere"}
	}
	return at.Roots(s.Cwd, s.Directories), nil
}
