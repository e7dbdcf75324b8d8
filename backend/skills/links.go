package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/config"
	"deskhand/backend/store"
)

// links manages the links that exist, and those that a crash has left.
type links struct {
	symlink func(dir *os.Root, target, name string) error // os.Root.Symlink; tests replace the function to simulate a file system without links

	mu   sync.Mutex // protects the fields below
	book book
}

// book is the record of links, which is written before a link is made.
type book struct {
	Links   []*made  `json:"links"`
	Folders []folded `json:"folders"`
}

// made is a link that was made, or was about to be made.
type made struct {
	Directory string    `json:"directory"`
	Path      string    `json:"path"` // relative to the directory, slashed
	Target    string    `json:"target"`
	Digest    string    `json:"digest"`          // of the linked skill
	Copy      bool      `json:"copy,omitempty"`  // a copy of the files instead of a link
	Modes     []string  `json:"modes,omitempty"` // executable files of the skill: a file system without links may have no modes either
	Exclude   string    `json:"exclude,omitempty"`
	Pattern   string    `json:"pattern,omitempty"` // line in the Exclude file
	At        time.Time `json:"at"`

	users map[string]bool // sessions that need the link
	fresh bool            // not made yet
}

// folded is a folder that was made for links.
type folded struct {
	Directory string `json:"directory"`
	Path      string `json:"path"`
}

// keepLost is how long a link in a missing directory is remembered: the directory may be on an unplugged disk.
const keepLost = 60 * 24 * time.Hour

func (l *Library) bookFile() string { return l.path("links.json") }

// openLinks removes the links that a crash has left.
func (l *Library) openLinks(ctx context.Context) error {
	k := &l.links
	k.mu.Lock()
	defer k.mu.Unlock()
	k.symlink = (*os.Root).Symlink
	data, err := os.ReadFile(l.bookFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the record of links cannot be read: %w", err)
	}
	if err := json.Unmarshal(data, &k.book); err != nil {
		// Without the record nothing is removed, because a link may be somebody else's; the links still lead into the cache.
		l.cfg.Logger.Error("the record of links is broken; links of earlier sessions stay", "file", l.bookFile(), "error", err)
		return os.Rename(l.bookFile(), l.bookFile()+".broken")
	}
	for _, m := range k.book.Links {
		m.users = map[string]bool{}
	}
	l.sweepLocked(ctx)
	return nil
}

func (l *Library) saveBookLocked() error {
	data, err := json.MarshalIndent(l.links.book, "", " ")
	if err != nil {
		return err
	}
	return store.WriteFile(l.bookFile(), data, 0o600)
}

// linked returns the digests of linked skills.
func (l *Library) linked() map[string]bool {
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	digests := map[string]bool{}
	for _, m := range l.links.book.Links {
		digests[m.Digest] = true
	}
	return digests
}

// Link links skills into folders of a directory (such as .claude/skills) for a user, which is a session, and returns, for people, which
// skills could not be linked and why. Skills with a problem are left out. Until the user's Unlink the content of the links does not change.
func (l *Library) Link(ctx context.Context, user, directory string, folders []string, skills []Skill) []string {
	skills = slices.DeleteFunc(slices.Clone(skills), func(s Skill) bool { return s.Problem != "" })
	if len(skills) == 0 || len(folders) == 0 {
		return nil
	}
	if real, err := filepath.EvalSymlinks(directory); err == nil {
		directory = real // two sessions may name a directory differently
	}
	ex := l.excluder(ctx, directory)
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	root, err := config.OpenDirectory(directory)
	if err != nil {
		return []string{fmt.Sprintf("skills cannot be linked: %s", cause(err))}
	}
	defer root.Close()
	var notes []string
	var fresh []*made
	for _, folder := range folders {
		for _, s := range skills {
			m, note := l.claimLocked(ctx, root, user, directory, folder, s)
			if note != "" {
				notes = append(notes, note)
			}
			if m != nil {
				m.exclude(ex)
				fresh = append(fresh, m)
			}
		}
	}
	return append(notes, l.makeLocked(root, fresh)...)
}

// claimLocked adds a link to the book, or returns nil when the link exists already, or the reason why there can be none. The caller holds
// links.mu.
func (l *Library) claimLocked(ctx context.Context, root *os.Root, user, directory, folder string, s Skill) (*made, string) {
	name := path.Join(filepath.ToSlash(folder), s.Name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Sprintf("%s is no folder of the directory", folder)
	}
	b := &l.links.book
	at := slices.IndexFunc(b.Links, func(m *made) bool { return m.Directory == directory && m.Path == name })
	if at >= 0 {
		m := b.Links[at]
		switch {
		case m.fresh: // a skill of the same name from another source, in the same call
			return nil, fmt.Sprintf("%s was not linked: another skill has this name", name)
		case !m.stands(ctx, root): // somebody has removed the link, or replaced it
			b.Links = slices.Delete(b.Links, at, at+1)
			l.writeExcludesLocked(excludesOf([]*made{m}), []*made{m})
		case m.Digest == s.Digest:
			m.users[user] = true
			return nil, ""
		default:
			m.users[user] = true
			return nil, fmt.Sprintf("%s stays what it was when the other session of this directory began", name)
		}
	}
	switch _, err := root.Lstat(filepath.FromSlash(name)); {
	case err == nil:
		return nil, fmt.Sprintf("%s was not linked: there is something of this name already", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Sprintf("%s was not linked: %s", name, cause(err))
	}
	m := &made{
		Directory: directory, Path: name, Target: l.cache().content(s), Digest: s.Digest, At: time.Now(), users: map[string]bool{user: true}, fresh: true,
	}
	for _, f := range s.Files {
		if f.Mode {
			m.Modes = append(m.Modes, f.Path)
		}
	}
	b.Links = append(b.Links, m)
	return m, ""
}

// makeLocked writes the book, and then makes the links that are fresh in the book. The caller holds links.mu.
func (l *Library) makeLocked(root *os.Root, fresh []*made) (notes []string) {
	if len(fresh) == 0 {
		return nil
	}
	for _, m := range fresh {
		l.noteFoldersLocked(root, m)
	}
	drop := func(m *made, err error) {
		notes = append(notes, fmt.Sprintf("%s was not linked: %s", m.Path, cause(err)))
		l.links.book.Links = slices.DeleteFunc(l.links.book.Links, func(o *made) bool { return o == m })
	}
	if err := l.saveBookLocked(); err != nil {
		for _, m := range fresh {
			drop(m, err)
		}
		return notes
	}
	l.writeExcludesLocked(excludesOf(fresh), nil)
	var failed []*made
	for _, m := range fresh {
		m.fresh = false
		if err := l.makeOneLocked(root, m); err != nil {
			drop(m, err)
			failed = append(failed, m)
		}
	}
	if len(failed) > 0 {
		l.clearLocked(root, failed)
		l.writeExcludesLocked(excludesOf(failed), failed)
	}
	if err := l.saveBookLocked(); err != nil { // now the record tells copies from links, and lacks failed links
		l.cfg.Logger.Error("the record of links cannot be written", "error", err)
	}
	return notes
}

// noteFoldersLocked records the folders that must be made for a link. The caller holds links.mu.
func (l *Library) noteFoldersLocked(root *os.Root, m *made) {
	for dir := path.Dir(m.Path); dir != "."; dir = path.Dir(dir) {
		_, err := root.Lstat(filepath.FromSlash(dir))
		f := folded{m.Directory, dir}
		if errors.Is(err, fs.ErrNotExist) && !slices.Contains(l.links.book.Folders, f) {
			l.links.book.Folders = append(l.links.book.Folders, f)
		}
	}
}

// makeOneLocked makes a link, or a copy where the system has no links. The caller holds links.mu.
func (l *Library) makeOneLocked(root *os.Root, m *made) error {
	name := filepath.FromSlash(m.Path)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	err := l.links.symlink(root, m.Target, name)
	if err == nil || errors.Is(err, fs.ErrExist) || !linkless(err) {
		return err
	}
	m.Copy = true
	if err := l.saveBookLocked(); err != nil { // recorded as a link, the copy would not be removed after a crash
		return err
	}
	if err := root.Mkdir(name, 0o755); err != nil {
		return err // another program was faster, and keeps its folder
	}
	if err := copyTree(root, m.Target, name); err != nil {
		return errors.Join(err, root.RemoveAll(name))
	}
	return nil
}

// copyTree copies a skill of the cache into an empty folder.
func copyTree(root *os.Root, from, name string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return fs.WalkDir(source.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		to := filepath.Join(name, filepath.FromSlash(p))
		switch {
		case err != nil || p == ".":
			return err
		case d.IsDir():
			return root.Mkdir(to, 0o755)
		}
		return copyFile(source, root, filepath.FromSlash(p), to)
	})
}

func copyFile(source, root *os.Root, from, to string) error {
	r, err := source.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	w, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// stands reports whether the link or copy still exists unchanged.
func (m *made) stands(ctx context.Context, root *os.Root) bool {
	name := filepath.FromSlash(m.Path)
	if !m.Copy {
		target, err := root.Readlink(name)
		return err == nil && target == m.Target
	}
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	below, err := root.OpenRoot(name)
	if err != nil {
		return false
	}
	o := &folder{below}
	defer o.close()
	return o.digest(ctx, path.Base(m.Path), m.Modes) == m.Digest
}

// digest returns the digest of a folder as a skill of this name with these executable files, whatever their modes say; "" for no skill.
func (f *folder) digest(ctx context.Context, name string, modes []string) string {
	nodes, err := f.list(ctx)
	if err != nil {
		return ""
	}
	for n := range nodes {
		nodes[n].executable = slices.Contains(modes, nodes[n].path)
	}
	d := draft{Skill: Skill{Name: name}, dir: ".", nodes: nodes}
	if d.load(ctx, f, nil) != nil {
		return ""
	}
	return d.Digest
}

// Unlink removes the links that only this user needed, even if ctx ends.
func (l *Library) Unlink(ctx context.Context, user string) {
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	had := false
	for _, m := range l.links.book.Links {
		had = had || m.users[user]
		delete(m.users, user)
	}
	if had {
		l.sweepLocked(context.WithoutCancel(ctx))
	}
}

// sweepLocked removes the unchanged links that no user needs. The caller holds links.mu.
func (l *Library) sweepLocked(ctx context.Context) {
	idle := map[string][]*made{} // by directory
	for _, m := range l.links.book.Links {
		if len(m.users) == 0 {
			idle[m.Directory] = append(idle[m.Directory], m)
		}
	}
	var gone []*made
	for directory, list := range idle {
		gone = append(gone, l.removeLocked(ctx, directory, list)...)
	}
	l.links.book.Links = slices.DeleteFunc(l.links.book.Links, func(m *made) bool { return slices.Contains(gone, m) })
	l.writeExcludesLocked(excludesOf(gone), gone)
	if err := l.saveBookLocked(); err != nil {
		l.cfg.Logger.Error("the record of links cannot be written", "error", err)
	}
}

// removeLocked removes links of a directory and returns those to forget. Links that cannot be removed now are tried again at the next
// start. The caller holds links.mu.
func (l *Library) removeLocked(ctx context.Context, directory string, list []*made) (gone []*made) {
	root, err := config.OpenDirectory(directory)
	if err != nil {
		for _, m := range list {
			if time.Since(m.At) > keepLost {
				gone = append(gone, m)
			}
		}
		return gone
	}
	defer root.Close()
	for _, m := range list {
		if !m.stands(ctx, root) {
			gone = append(gone, m) // removed or replaced by somebody
			continue
		}
		remove := root.Remove
		if m.Copy {
			remove = root.RemoveAll
		}
		if err := remove(filepath.FromSlash(m.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.cfg.Logger.Warn("a link to a skill cannot be removed", "directory", directory, "path", m.Path, "error", err)
			continue
		}
		gone = append(gone, m)
	}
	l.clearLocked(root, list)
	return gone
}

// clearLocked removes the empty folders that were made for links of a directory. The caller holds links.mu.
func (l *Library) clearLocked(root *os.Root, list []*made) {
	b := &l.links.book
	slices.SortFunc(b.Folders, func(x, y folded) int { return strings.Compare(y.Path, x.Path) }) // inner folders first
	b.Folders = slices.DeleteFunc(b.Folders, func(f folded) bool {
		if f.Directory != list[0].Directory {
			return false
		}
		name := filepath.FromSlash(f.Path)
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() {
			return errors.Is(err, fs.ErrNotExist) || err == nil
		}
		err = root.Remove(name) // fails for a folder that is not empty
		return err == nil || !slices.ContainsFunc(b.Links, func(m *made) bool {
			return m.Directory == f.Directory && strings.HasPrefix(m.Path, f.Path+"/") && !slices.Contains(list, m)
		})
	})
}
