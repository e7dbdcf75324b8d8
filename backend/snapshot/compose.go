package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/store"
)

// Step is a pair of trees.
type Step struct{ Before, After string }

// Steps lists the changed files of every step, without their lines. Steps detects no renames.
func (s *Store) Steps(ctx context.Context, steps []Step) ([][]Change, error) {
	var in strings.Builder
	for _, step := range steps {
		if !isID(step.Before) || !isID(step.After) {
			return nil, fmt.Errorf("%w: it is no tree", ErrGit)
		}
		in.WriteString(step.Before + " " + step.After + "\n")
	}
	if len(steps) == 0 {
		return nil, nil
	}
	var lists [][]Change
	err := s.git(ctx, run{in: []byte(in.String()), read: func(out io.Reader) error {
		d := &diffReader{r: bufio.NewReaderSize(out, 64<<10)}
		for range steps {
			if _, err := d.r.ReadString('\n'); err != nil { // git repeats the two names
				return errors.Join(errDiff, err)
			}
			d.list = nil
			if err := d.names(); err != nil {
				return err
			}
			lists = append(lists, d.list)
		}
		return nil
	}}, "diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff")
	return lists, err
}

// Part is a file of a composed tree.
type Part struct {
	Path string
	Side Side
	From string // the tree that holds the file's permissions
}

// Compose makes a tree of files that the store holds already.
func (s *Store) Compose(ctx context.Context, parts []Part) (string, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := s.make(); err != nil {
		return "", err
	}
	index := filepath.Join(s.path, "composed")
	if err := errors.Join(removeIfThere(index), removeIfThere(index+".lock")); err != nil {
		return "", err
	}
	known := &putting{s: s}
	perms := map[string]fs.FileMode{}
	var in bytes.Buffer
	for _, part := range parts {
		if !isID(part.Side.ID) {
			return "", fmt.Errorf("%w: it is no file", ErrGit)
		}
		fmt.Fprintf(&in, "%s %s\t%s\x00", part.Side.Mode, part.Side.ID, part.Path)
		if m := known.recorded(part.From); m != nil && part.Side.Regular() {
			perms[part.Path] = m.of(part.Path, part.Side.Mode == modeProgram)
		}
	}
	r := run{index: index, in: in.Bytes()}
	if err := s.git(ctx, r, "update-index", "--add", "--replace", "-z", "--index-info"); err != nil {
		return "", err
	}
	id, err := s.say(ctx, run{index: index}, "write-tree")
	if err != nil {
		return "", err
	}
	if !isID(id) {
		return "", fmt.Errorf("%w: it wrote no tree", ErrGit)
	}
	return id, errors.Join(s.keepModes(id, modesOf(perms)), s.keep(id), removeIfThere(index))
}

// Adopt copies everything that another store holds, and leaves the other store unchanged. The two stores cannot contradict each other, since
// every object is named by its content.
func (s *Store) Adopt(ctx context.Context, from *Store) error {
	if s == from {
		return nil
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, leaveOther, err := from.enter(ctx)
	if err != nil {
		return err
	}
	defer leaveOther()
	if _, err := os.Stat(filepath.Join(from.path, "HEAD")); err != nil {
		return nil // the other store is empty
	}
	if err := s.make(); err != nil {
		return err
	}
	for _, part := range []string{"objects", "modes", filepath.Join("refs", "trees")} { // refs last: a named tree has to be complete
		if err := s.adopt(ctx, from, part); err != nil {
			return err
		}
	}
	return nil
}

// adopt copies the files of a folder.
func (s *Store) adopt(ctx context.Context, from *Store, part string) error {
	root := filepath.Join(from.path, part)
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		way, err := filepath.Rel(from.path, name)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && way == filepath.Join("objects", "info"):
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(s.path, way), 0o700)
		case !e.Type().IsRegular() || unfinished(e.Name()) || strings.HasPrefix(e.Name(), "multi-pack-index"):
			return nil
		case part != "objects" && part != "modes":
			return s.keep(e.Name())
		}
		return linkOrCopy(name, filepath.Join(s.path, way))
	})
}

// linkOrCopy hard-links an immutable file, or copies the file where the file system has no hard links.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "tmp_*")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = store.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}
