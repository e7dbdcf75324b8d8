package skills

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/config"
)

// folder is an origin in a folder of this machine. Its links are never followed out of the folder.
type folder struct{ root *os.Root }

// openFolder opens a folder, or a subfolder without following links out.
func openFolder(name, subpath string) (*folder, error) {
	root, err := config.OpenDirectory(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, cause(err))
	}
	if subpath == "" || subpath == "." {
		return &folder{root}, nil
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(subpath)) // OpenRoot would wait for a FIFO
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	var below *os.Root
	if err == nil {
		below, err = root.OpenRoot(filepath.FromSlash(subpath))
	}
	if err != nil {
		return nil, fmt.Errorf("%s in %s cannot be read: %w", subpath, name, cause(err))
	}
	return &folder{below}, nil
}

// cause returns an error without its path.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func (f *folder) close() { _ = f.root.Close() }

func (f *folder) list(ctx context.Context) ([]node, error) {
	var nodes []node
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil: // an unreadable item is no part of a skill
			return fs.SkipDir
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir(), !strings.Contains(name, "/") && d.Name() == ".git":
			return nil
		case len(nodes) == maxWalked:
			return fmt.Errorf("%w: there are more than %d files; a subpath makes them fewer", ErrLimit, maxWalked)
		}
		n := node{path: name, kind: special}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			return err
		case d.Type() == fs.ModeSymlink:
			n.kind = symlink
		case d.Type().IsRegular():
			n.kind, n.size, n.executable = regular, info.Size(), info.Mode()&0o111 != 0
		}
		nodes = append(nodes, n)
		return nil
	})
	return nodes, err
}

func (f *folder) read(ctx context.Context, nodes []node, each func(node, io.Reader) error) error {
	for _, n := range nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.readOne(n, each); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) readOne(n node, each func(node, io.Reader) error) error {
	name := filepath.FromSlash(n.path)
	if n.kind == symlink {
		target, err := f.root.Readlink(name)
		if err != nil {
			return err
		}
		return each(n, strings.NewReader(filepath.ToSlash(target)))
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", n.path)
	}
	if err != nil {
		return err
	}
	return each(n, file)
}

// folder reads the skills of a source that is a folder.
func (l *Library) folder(ctx context.Context, at place, s Source, keep bool) ([]Skill, error) {
	o, err := openFolder(at.folder, s.Subpath)
	if err != nil {
		return nil, err
	}
	defer o.close()
	var c *cache
	if keep {
		c = l.cache()
	}
	return collect(ctx, o, s, at.fallback, c)
}
