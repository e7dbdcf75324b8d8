package httpapi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// roots are the directories that callers may name paths in.
type roots struct {
	home string
	dirs []root
}

// root is one of them, as it was given and with its symbolic links followed.
type root struct{ path, real string }

func openRoots(paths []string) (roots, error) {
	home, err := os.UserHomeDir()
	if len(paths) == 0 {
		if err != nil {
			return roots{}, fmt.Errorf("httpapi: no root is given: %w", err)
		}
		paths = []string{home}
	}
	rs := roots{home: home}
	if err != nil {
		rs.home = paths[0]
	}
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return roots{}, fmt.Errorf("httpapi: root: %w", err)
		}
		followed, err := filepath.EvalSymlinks(path)
		if err != nil {
			return roots{}, fmt.Errorf("httpapi: root: %w", err)
		}
		rs.dirs = append(rs.dirs, root{path, followed})
	}
	return rs, nil
}

// directory is where an agent is started that a caller asks for in dir: a directory inside of a root, by name and by where its
// links lead. Relative ones start at the first root; none is the user's home.
func (rs *roots) directory(dir string) (string, error) {
	if dir == "" {
		return rs.home, nil
	}
	if strings.ContainsRune(dir, 0) || slices.Contains(strings.FieldsFunc(dir, isSeparator), "..") {
		return "", &refusal{"invalid_request", "cwd holds .. or NUL"}
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(rs.dirs[0].path, dir)
	}
	dir = filepath.Clean(dir)
	if !rs.hold(dir, func(r root) string { return r.path }) && !rs.hold(dir, func(r root) string { return r.real }) {
		return "", &refusal{"permission_denied", "cwd is outside of the roots"}
	}
	followed, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &refusal{"not_found", "cwd " + dir}
	case err != nil:
		return "", &refusal{"permission_denied", "cwd cannot be used"}
	case !rs.hold(followed, func(r root) string { return r.real }):
		return "", &refusal{"permission_denied", "cwd leads outside of the roots"}
	}
	if info, err := os.Stat(followed); err != nil || !info.IsDir() {
		return "", &refusal{"invalid_request", "cwd is not a directory"}
	}
	return dir, nil
}

func isSeparator(r rune) bool { return r == '/' || r == filepath.Separator }

// hold reports whether a path is in one of the roots, each seen as the function says.
func (rs *roots) hold(path string, of func(root) string) bool {
	return slices.ContainsFunc(rs.dirs, func(r root) bool {
		rel, err := filepath.Rel(of(r), path)
		return err == nil && filepath.IsLocal(rel)
	})
}
