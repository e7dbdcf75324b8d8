package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// directories checks what a session is to work in beside its own directory, and gives each once, in its order.
func directories(paths []string) ([]string, error) {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return nil, bad("directory.relative", "path", path)
		}
		path = filepath.Clean(path)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, bad(problemNoDirectory, "path", path)
		case err != nil:
			return nil, bad("directory.unreadable", "path", path, "detail", err.Error())
		case !info.IsDir():
			return nil, bad("directory.not_one", "path", path)
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list, nil
}

// roots are where the files and the programs of the agent may be: the session's directory first.
func (v *conversation) roots() []string { return append([]string{v.row.Cwd}, v.row.Directories...) }

// Roots are the directories of a session, the first of them first. One whose files are elsewhere has none here.
func (c *Client) Roots(ctx context.Context, id string) ([]string, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	s := v.look()
	if s.Place != LocalPlace {
		return nil, &RefusedError{Code: "paths.elsewhere"}
	}
	return append([]string{s.Cwd}, s.Directories...), nil
}
