package skills

import (
	"context"
	"path/filepath"
)

// Linked tells whether what stands at a path of a directory, slashed, is a link or a copy that was made here for a session, and is
// still what was made: then a person has approved it already.
func (l *Library) Linked(ctx context.Context, directory, path string) bool {
	if real, err := filepath.EvalSymlinks(directory); err == nil {
		directory = real
	}
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	for _, m := range l.links.book.Links {
		if m.Directory != directory || m.Path != path || m.fresh {
			continue
		}
		root, err := openDirectory(directory)
		if err != nil {
			return false
		}
		defer root.Close()
		return m.stands(ctx, root)
	}
	return false
}
