package skills

import (
	"context"
	"path/filepath"

	"deskhand/backend/config"
)

// Linked returns the digest of the skill at a path of a directory, slashed, when the path is an unchanged link or copy that this library
// made for a session: a person has approved that skill. Otherwise Linked returns "".
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
		root, err := config.OpenDirectory(directory)
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
