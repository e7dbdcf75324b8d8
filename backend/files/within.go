package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Within gives access to files for a caller that names the allowed directories with each call: an agent, in the directories of its
// session. Its errors are those of a Tree. In addition, a request that is never granted, such as a path outside of the roots, is
// fs.ErrInvalid, and a missing file is fs.ErrNotExist.
type Within struct {
	Private []string // as of Config
}

// Tree opens the roots that exist: a root that has vanished must not close the others.
func (w Within) Tree(roots []string) (*Tree, error) {
	var there []string
	for _, root := range roots {
		if info, err := os.Stat(root); err == nil && info.IsDir() {
			there = append(there, root)
		}
	}
	if len(there) == 0 {
		return nil, &refusal{kind: fs.ErrInvalid, text: "the directories of the session are not there"}
	}
	t, err := Open(Config{Roots: there, Private: w.Private})
	if err != nil {
		return nil, &refusal{kind: fs.ErrInvalid, text: "the session works in a directory whose files are not given out", cause: err}
	}
	return t, nil
}

// Open opens a regular file, as Tree.Open does.
func (w Within) Open(roots []string, path string) (*os.File, error) {
	t, err := w.Tree(roots)
	if err != nil {
		return nil, err
	}
	f, _, err := t.Open(path)
	return f, asWrong(err)
}

// Write writes a file, as Tree.Write does.
func (w Within) Write(roots []string, path string, content io.Reader) error {
	t, err := w.Tree(roots)
	if err != nil {
		return err
	}
	_, _, err = t.Write(path, content)
	return asWrong(err)
}

// Directory returns the name of a directory, as Tree.Directory does.
func (w Within) Directory(roots []string, path string) (string, error) {
	t, err := w.Tree(roots)
	if err != nil {
		return "", err
	}
	dir, err := t.Directory(path)
	return dir, asWrong(err)
}

func asWrong(err error) error {
	if errors.Is(err, ErrNotFound) {
		return &refusal{kind: fs.ErrNotExist, text: err.Error(), cause: err}
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrOutside) {
		return &refusal{kind: fs.ErrInvalid, text: err.Error(), cause: err}
	}
	return err
}
