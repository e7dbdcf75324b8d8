package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/host"
)

// birth is the numbers of a directory that a move within its file system does not change.
type birth struct{ device, inode, born int64 }

// known reports whether the file system tells enough to recognize the directory.
func (b birth) known() bool { return b.inode != 0 && b.born != 0 }

func birthOf(path string, info fs.FileInfo) birth {
	device, inode, born := identity(path, info)
	return birth{device, inode, born}
}

// identified is Directory with the birth of the directory.
func identified(path string) (string, birth, error) {
	path, info, err := directory(path)
	if err != nil {
		return "", birth{}, err
	}
	return path, birthOf(path, info), nil
}

// left reports whether the directory is no longer at path: another directory is, or none, where a worktree is about to be made. Whoever works
// at path is told of any other fault.
func (b birth) left(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return errors.Is(err, fs.ErrNotExist)
	}
	now := birthOf(path, info)
	return now.known() && now != b
}

// movedTo finds a missing directory that was renamed in its place, or with a directory above it. movedTo returns "" for a directory that is
// not found there.
func movedTo(path string, b birth) string {
	rest := ""
	for above := filepath.Dir(path); ; above = filepath.Dir(above) {
		if host.Gone(above) && above != filepath.Dir(above) {
			rest = filepath.Join(filepath.Base(above), rest)
			continue
		}
		_, below, _ := strings.Cut(filepath.Join(rest, filepath.Base(path)), string(filepath.Separator))
		return beside(above, below, b)
	}
}

// maxBeside is how many directories beside a missing directory are looked at.
const maxBeside = 5000

// beside looks at the path below in each directory of above.
func beside(above, below string, b birth) string {
	dir, err := os.Open(above)
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxBeside)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		candidate := filepath.Join(above, e.Name(), below)
		if info, err := os.Lstat(candidate); err == nil && info.IsDir() && birthOf(candidate, info) == b {
			return candidate
		}
	}
	return ""
}
