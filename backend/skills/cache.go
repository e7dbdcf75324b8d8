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
	"runtime"
	"strings"
	"unicode/utf8"

	"deskhand/backend/config"
	"deskhand/backend/store"
)

// pin records a source's content at its fetch.
type pin struct {
	Commit string  `json:"commit"`
	Skills []Skill `json:"skills"`
	Rules  int     `json:"rules,omitempty"` // version of the rules that marked files as executable
}

// rules is the version of the rules by which take marks files as executable. Raise rules when take marks more files.
const rules = 1

func (l *Library) pinFile(key string) string { return l.path("pins", key+".json") }

// pin reads the pin of a source. An unreadable pin counts as none: the source is then fetched again, and people see that.
func (l *Library) pin(key string) (pin, bool) {
	data, err := os.ReadFile(l.pinFile(key))
	if err != nil {
		return pin{}, false
	}
	var p pin
	if err := json.Unmarshal(data, &p); err != nil || p.Commit == "" {
		l.cfg.Logger.Warn("a pin is broken", "file", key, "error", err)
		return pin{}, false
	}
	if p.Rules < rules {
		l.lookThrough(p.Skills)
	}
	return p, true
}

// lookThrough marks executable files of skills that an earlier version has pinned. An unreadable file counts as executable.
func (l *Library) lookThrough(skills []Skill) {
	for _, s := range skills {
		dir, err := os.OpenRoot(l.cache().content(s))
		for i, f := range s.Files {
			if f.Executable || !config.IsProse(f.Path) && !config.IsManifest(f.Path) {
				continue
			}
			var text []byte
			if err == nil {
				text, err = dir.ReadFile(f.Path)
			}
			s.Files[i].Executable = err != nil || commands(f.Path, text)
		}
		if dir != nil {
			_ = dir.Close() // only read from
		}
	}
}

func (l *Library) setPin(key string, p pin) error {
	p.Rules = rules
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	l.fail(key, nil)
	return store.WriteFile(l.pinFile(key), data, 0o600)
}

// Forget removes the pins of an entry's sources.
func (l *Library) Forget(directory string, e Entry) {
	for _, s := range e.Sources {
		key := e.key(directory, s)
		l.fail(key, nil)
		if err := os.Remove(l.pinFile(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.cfg.Logger.Warn("a pin cannot be removed", "file", key, "error", err)
		}
	}
}

func (l *Library) fail(key string, err error) {
	l.failMu.Lock()
	defer l.failMu.Unlock()
	if err == nil {
		delete(l.failures, key)
		return
	}
	l.failures[key] = err.Error()
}

func (l *Library) failure(key string) string {
	l.failMu.Lock()
	defer l.failMu.Unlock()
	return l.failures[key]
}

// cache stores the files of skills, each version once: content/<digest>/<name>.
type cache struct{ dir string }

func (l *Library) cache() *cache { return &cache{l.cfg.Dir} }

// content returns the folder of a skill's files. The folder has the skill's name, as agents demand.
func (c *cache) content(s Skill) string { return filepath.Join(c.dir, "content", s.Digest, s.Name) }

// sink receives the files of a skill.
type sink struct {
	cache *cache
	name  string
	temp  string
	dir   *os.Root
}

func (c *cache) begin(name string) (*sink, error) {
	temp, err := os.MkdirTemp(filepath.Join(c.dir, "tmp"), "skill-")
	if err != nil {
		return nil, err
	}
	inner := filepath.Join(temp, name)
	err = os.Mkdir(inner, 0o700)
	var dir *os.Root
	if err == nil {
		dir, err = os.OpenRoot(inner)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	return &sink{c, name, temp, dir}, nil
}

// create makes a read-only file: the approved content must not change.
func (s *sink) create(n node) (io.WriteCloser, error) {
	if parent := path.Dir(n.path); parent != "." {
		if err := s.dir.MkdirAll(parent, 0o700); err != nil {
			return nil, err
		}
	}
	mode := fs.FileMode(0o400)
	if n.executable {
		mode = 0o500
	}
	return s.dir.OpenFile(n.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

// finish moves the skill into its place, if a cache keeps the skill. An unchanged skill that is there already stays, since a session may be
// reading its files.
func (s *sink) finish(ctx context.Context, skill Skill) error {
	if s == nil || s.cache.intact(ctx, skill) {
		return nil
	}
	_ = s.dir.Close() // Windows cannot rename an open directory
	place := filepath.Join(s.cache.dir, "content", skill.Digest)
	if err := store.Rename(place, s.temp+"-old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(store.Rename(s.temp, place), os.RemoveAll(s.temp+"-old"))
}

// drop removes an unfinished skill.
func (s *sink) drop() {
	if s == nil {
		return
	}
	_ = s.dir.Close()
	_ = os.RemoveAll(s.temp) // gone already after finish; otherwise the next start removes the rest
}

// complete reports whether the cache holds all of these skills unchanged.
func (l *Library) complete(ctx context.Context, skills []Skill) bool {
	for _, s := range skills {
		if s.Problem == "" && !l.cache().intact(ctx, s) && !l.cache().mend(ctx, s) {
			return false
		}
	}
	return true
}

// intact reports whether a skill in the cache still has its digest.
func (c *cache) intact(ctx context.Context, s Skill) bool { return c.compare(ctx, s, nil) }

// mend moves the unchanged files of a skill to a new place, without any additional files: programs leave files beside them, as Python does,
// and the next session must not get those. mend fails when a file of the skill has changed or is gone.
func (c *cache) mend(ctx context.Context, s Skill) bool { return c.compare(ctx, s, c) }

// compare reads a skill of the cache, and reports whether the skill is unchanged. With a non-nil keep, additional files and modes do not
// count, and keep stores the skill.
func (c *cache) compare(ctx context.Context, s Skill, keep *cache) bool {
	o, err := openFolder(c.content(s), "")
	if err != nil {
		return false
	}
	defer o.close()
	nodes, err := o.list(ctx)
	if err != nil {
		return false
	}
	modes := map[string]bool{}
	for _, f := range s.Files {
		modes[f.Path] = f.Mode
	}
	d := draft{Skill: Skill{Name: s.Name}, dir: "."}
	for _, n := range nodes {
		mode, ours := modes[n.path]
		if !ours || n.kind != regular {
			if keep == nil {
				return false
			}
			continue
		}
		if keep != nil || runtime.GOOS == "windows" { // Windows has no such mode
			n.executable = mode
		}
		d.nodes = append(d.nodes, n)
	}
	to, err := d.copy(ctx, o, keep)
	o.close() // Windows cannot rename a directory that contains an open directory, and finish replaces this directory
	defer to.drop()
	return err == nil && d.Problem == "" && d.Digest == s.Digest && to.finish(ctx, d.Skill) == nil
}

// prune removes content that no pin names and no link needs: content of moved pins, and of folders.
func (l *Library) prune() {
	needed := l.linked()
	pins, err := os.ReadDir(l.path("pins"))
	if err != nil {
		return // without the pins any content may be needed
	}
	for _, e := range pins {
		p, ok := l.pin(strings.TrimSuffix(e.Name(), ".json"))
		if !ok {
			continue
		}
		for _, s := range p.Skills {
			needed[s.Digest] = true
		}
	}
	content, err := os.ReadDir(l.path("content"))
	if err != nil {
		return
	}
	for _, e := range content {
		if !needed[e.Name()] {
			if err := os.RemoveAll(l.path("content", e.Name())); err != nil {
				l.cfg.Logger.Warn("a skill that nobody needs cannot be removed", "error", err)
			}
		}
	}
}

// MaxText is the longest file that Text returns.
const MaxText = 256 << 10

// Text returns a file of an entry's skill, for a person to read.
func (l *Library) Text(ctx context.Context, directory string, e Entry, skill, file string) (string, error) {
	for _, src := range l.Look(ctx, directory, e).sources {
		for _, s := range src.Skills {
			if s.Name != skill || s.Problem != "" {
				continue
			}
			for _, f := range s.Files {
				if f.Path == file {
					return l.text(ctx, directory, src.Source, s, f)
				}
			}
			return "", fmt.Errorf("%w: the skill %s has no file %s", ErrNotFound, skill, file)
		}
	}
	return "", fmt.Errorf("%w: there is no skill %s", ErrNotFound, skill)
}

func (l *Library) text(ctx context.Context, directory string, src Source, s Skill, f File) (string, error) {
	if f.Size > MaxText {
		return "", fmt.Errorf("%w: %s has %d bytes, and %d are the most", ErrText, f.Path, f.Size, MaxText)
	}
	at, err := src.place(directory, l.cfg.GitHub)
	if err != nil {
		return "", err
	}
	data, err := l.bytes(ctx, at, src, s, f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s is not in the cache; fetch it again", ErrNotFound, f.Path)
	case err != nil:
		return "", err
	case len(data) > MaxText || !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return "", fmt.Errorf("%w: %s", ErrText, f.Path)
	}
	return string(data), nil
}

// bytes reads a file of a skill from the cache, or from the source's folder.
func (l *Library) bytes(ctx context.Context, at place, src Source, s Skill, f File) ([]byte, error) {
	if at.folder == "" {
		dir, err := os.OpenRoot(l.cache().content(s))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		r, err := dir.Open(f.Path)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, MaxText+1))
	}
	o, err := openFolder(at.folder, src.Subpath)
	if err != nil {
		return nil, err
	}
	defer o.close()
	nodes, err := o.list(ctx)
	if err != nil {
		return nil, err
	}
	drafts := group(nodes)
	if err := describe(ctx, o, drafts, at.fallback); err != nil {
		return nil, err
	}
	for _, d := range drafts {
		if d.Name == s.Name {
			return d.one(ctx, o, f.Path)
		}
	}
	return nil, fs.ErrNotExist
}

// one reads a file of a draft.
func (d *draft) one(ctx context.Context, o origin, file string) ([]byte, error) {
	links, problem, err := d.follow(ctx, o)
	if err != nil || problem != "" {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	for _, n := range d.sources(d.nodes, links) {
		if n.path != path.Join(d.dir, file) && (links[file].path == "" || n.path != path.Join(d.dir, links[file].path)) {
			continue
		}
		var data []byte
		err := o.read(ctx, []node{n}, func(_ node, r io.Reader) (err error) {
			data, err = io.ReadAll(io.LimitReader(r, MaxText+1))
			return err
		})
		return data, err
	}
	return nil, fs.ErrNotExist
}
