package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"deskhand/backend/refusal"
)

// MaxDirectories is how many directories a person can choose for a session beside its own.
const MaxDirectories = 20

// Directory cleans an absolute path, and refuses a path that is no directory of this machine.
func Directory(path string) (string, error) {
	path, _, err := directory(path)
	return path, err
}

func directory(path string) (string, fs.FileInfo, error) {
	if !filepath.IsAbs(path) {
		return "", nil, refusal.Bad("directory.relative", "path", path)
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, refusal.Bad("directory.missing", "path", path)
	case err != nil:
		return "", nil, refusal.Bad("directory.unreadable", "path", path, "detail", err.Error())
	case !info.IsDir():
		return "", nil, refusal.Bad("directory.not_one", "path", path)
	}
	return path, info, nil
}

// Directories is Directory for the further directories of a session; the result has each directory once, in the given order.
func Directories(paths []string) ([]string, error) {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		path, err := Directory(path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list, nil
}

// Choosable returns the paths that Directories would accept, up to MaxDirectories. The list of an agent names directories that may be gone.
func Choosable(paths []string) []string {
	list := []string{}
	for _, path := range paths {
		if path, err := Directory(path); err == nil && !slices.Contains(list, path) && len(list) < MaxDirectories {
			list = append(list, path)
		}
	}
	return list
}

// Rebase returns a path within from as the path within to, and any other path unchanged.
func Rebase(path, from, to string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(to, rel)
}
