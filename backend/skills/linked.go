package skills

import (
	"context"
	"path/filepath"
)

// Linked gives the digest of the skill that stands at a path of a directory, slashed, where that is a link or a copy that was made here for
// a session, and is still what was made: a person has approved it for that one. Else it is "".
func (l *Library) Linked(ctx context.Context, directory, path string) string {
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
			return ""
		}
		defer root.Close()
		if !m.stands(ctx, root) {
			return ""
		}
		return m.Digest
	}
	return ""
}
