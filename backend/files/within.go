package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Within is what somebody may do to files who says with each call in which directories: an agent, in those of its session. Its errors
// are those of a Tree; what asks for what is never given, such as a path outside of the roots, is fs.ErrInvalid as well, and what is not there fs.ErrNotExist.
type Within struct {
	Private []string // as of Config
}

// Tree opens the roots that are there: one that has gone must not close the others.
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

// Open opens a regular file.
func (w Within) Open(roots []string, path string) (*os.File, error) {
	t, err := w.Tree(roots)
	if err != nil {
		return nil, err
	}
	f, _, err := t.Open(path)
	return f, asWrong(err)
}

// Write is Tree.Write.
func (w Within) Write(roots []string, path string, content io.Reader) error {
	t, err := w.Tree(roots)
	if err != nil {
		return err
	}
	_, _, err = t.Write(path, content)
	return asWrong(err)
}

// Directory is Tree.Directory.
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
