package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// State is what a work tree has that is in no commit.
type State struct {
	Branch  string // "" where none is checked out
	Head    string
	Commits int // beyond the one it began with
	Strays  int // commits that were checked out here, and are on no branch: they are kept
	Changes []Change
	Ignored []Ignored // what would go, the largest first
}

// Change is a file that is not as the commit has it.
type Change struct {
	Path string
	Kind string // modified, added, deleted, untracked
}

// Ignored is a file or folder that the repository's rules leave out.
type Ignored struct {
	Path  string // a folder has a slash at its end
	Files int
	Bytes int64
}

// open finds what git has of a work tree. A directory that is none would be looked for above, and something else taken for it.
func (l *Library) open(ctx context.Context, path string) (run, error) {
	if info, err := os.Lstat(filepath.Join(path, ".git")); err != nil || !info.Mode().IsRegular() {
		return run{}, ErrMissing
	}
	const asked = 3
	said, err := l.lines(ctx, run{dir: path}, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
	switch {
	case failedWith(err, "not a git repository"):
		return run{}, ErrMissing
	case err != nil:
		return run{}, err
	case len(said) != asked || said[1] == said[2] || !same(said[0], path):
		return run{}, ErrMissing
	}
	at := run{dir: path, gitDir: filepath.FromSlash(said[1])}
	// As git itself finds it out, once. A repository that was copied from a disk on which names that differ in case alone are the same still says
	// so, and git takes a new file for one that it has, and does not see it.
	if _, err := os.Lstat(filepath.Join(path, ".GIT")); errors.Is(err, fs.ErrNotExist) {
		at.config = append(at.config, "core.ignorecase=false")
	}
	return at, nil
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	two, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(one, two)
}

// free tells why a work tree cannot be kept as it is now.
func (l *Library) free(ctx context.Context, at run) error {
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(at.gitDir, name)); return err == nil }
	switch {
	case has("index.lock"), has("locked"):
		return ErrLocked
	case unfinished(at):
		return ErrUnfinished
	}
	others, err := l.records(ctx, at, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for _, name := range others {
		if folder, is := strings.CutSuffix(name, "/"); is {
			return &NestedError{Path: folder}
		}
	}
	if err := l.filled(ctx, at); err != nil {
		return err
	}
	closed, err := nested(ctx, at.dir)
	if err == nil && len(closed) > 0 {
		err = l.left(ctx, at, closed)
	}
	if err != nil {
		return err
	}
	return l.filtersNothing(ctx, at)
}

// unfinished tells whether git is between two steps of something, of which it has written down there how it goes on. Between two of several
// commits that are picked or reverted, the list of them alone says so.
func unfinished(at run) bool {
	return slices.ContainsFunc([]string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer", "rebase-merge", "rebase-apply", "BISECT_LOG"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(at.gitDir, name))
		return err == nil
	})
}

// filled is an error where there is something in the folder of a submodule. It is checked out, or somebody has put files there, into which git
// does not look. So it is where the index has a conflict: it is no tree then, and what is staged in other files would go with it. A stash that
// does not fit leaves that without a word of it elsewhere.
func (l *Library) filled(ctx context.Context, at run) error {
	known, err := l.records(ctx, at, "ls-files", "-z", "--stage")
	if err != nil {
		return err
	}
	for _, entry := range known {
		how, name, _ := strings.Cut(entry, "\t")
		if !strings.HasSuffix(how, " 0") {
			return ErrUnfinished
		}
		if !strings.HasPrefix(how, "160000 ") {
			continue
		}
		if entries, err := os.ReadDir(filepath.Join(at.dir, filepath.FromSlash(name))); err == nil && len(entries) > 0 {
			return &NestedError{Path: name, Submodule: true}
		}
	}
	return nil
}

// left is an error where one of the folders that cannot be read is not left out by the rules: git only warns, and nothing in it is kept.
func (l *Library) left(ctx context.Context, at run, closed []string) error {
	out, err := l.records(ctx, at, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	for _, name := range closed {
		if !slices.ContainsFunc(out, func(top string) bool { return strings.HasSuffix(top, "/") && strings.HasPrefix(name, top) }) {
			return &UnreadableError{Path: strings.TrimSuffix(name, "/")}
		}
	}
	return nil
}

// nested looks for repositories below. git names those alone that lie beside its own files: not one that was begun in a folder with files of
// ours, and none in what it ignores. closed are the folders that cannot be read or entered, each with a slash at its end.
func nested(ctx context.Context, top string) (closed []string, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission):
			below, err := filepath.Rel(top, path)
			closed = append(closed, filepath.ToSlash(below)+"/")
			return err
		case err != nil: // it has gone meanwhile, or cannot be removed either
			return nil //nolint:nilerr // and that is told then
		case d.Name() == ".git" && filepath.Dir(path) != top:
			below, err := filepath.Rel(top, filepath.Dir(path))
			return errors.Join(err, &NestedError{Path: filepath.ToSlash(below)})
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.IsDir() && shut(path):
			below, err := filepath.Rel(top, path)
			closed = append(closed, filepath.ToSlash(below)+"/")
			return err
		}
		return nil
	})
	return closed, err
}

// shut tells of a folder that it may not be entered, though it may be listed: git does not see then what has become of a file there, and takes
// it for what it was.
func shut(path string) bool {
	_, err := os.Lstat(path + string(filepath.Separator) + ".")
	return errors.Is(err, fs.ErrPermission)
}

// Inspect tells what a work tree has that is in no commit, or why that cannot be kept.
func (l *Library) Inspect(ctx context.Context, path, base string) (s State, err error) {
	at, err := l.open(ctx, path)
	if err != nil {
		return State{}, err
	}
	if err := l.free(ctx, at); err != nil {
		return State{}, err
	}
	p := Place{}
	if err := l.head(ctx, at, &p); err != nil {
		return State{}, err
	}
	s.Branch, s.Head = p.Branch, p.Head
	if n, err := l.say(ctx, at, "rev-list", "--count", base+"..HEAD"); err == nil {
		s.Commits, _ = strconv.Atoi(n) // git wrote it
	}
	if s.Strays, _, err = l.strays(ctx, at, s.Branch); err != nil {
		return State{}, err
	}
	if s.Changes, err = l.changes(ctx, at); err != nil {
		return State{}, err
	}
	s.Ignored, err = l.ignored(ctx, at)
	return s, err
}

// changes lists what is not as the commit has it.
func (l *Library) changes(ctx context.Context, at run) ([]Change, error) {
	said, err := l.records(ctx, at, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
	list := make([]Change, 0, len(said))
	const tagged = 3 // two letters and a blank stand before each name
	for _, entry := range said {
		if len(entry) <= tagged {
			continue
		}
		kind := "modified"
		switch how := entry[:tagged-1]; {
		case how == "??":
			kind = "untracked"
		case strings.Contains(how, "D"):
			kind = "deleted"
		case strings.Contains(how, "A"):
			kind = "added"
		}
		list = append(list, Change{entry[tagged:], kind})
	}
	return list, err
}

// ignored lists what the rules leave out, with what it takes.
func (l *Library) ignored(ctx context.Context, at run) ([]Ignored, error) {
	said, err := l.records(ctx, at, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	list := make([]Ignored, 0, len(said))
	for _, name := range said {
		if i := weighed(ctx, at.dir, name); i.Files > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b Ignored) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
	return list, errors.Join(err, ctx.Err())
}

// weighed is how much there is below a name.
func weighed(ctx context.Context, top, name string) Ignored {
	i := Ignored{Path: name}
	_ = filepath.WalkDir(filepath.Join(top, filepath.FromSlash(name)), func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && d.IsDir() {
			return nil
		}
		i.Files++
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is there, with a size that nobody knows
		}
		if info, err := d.Info(); err == nil {
			i.Bytes += info.Size()
		}
		return nil
	})
	return i
}

// Try tells why a removal would be refused, as far as a look at every file can tell, for who has to end something before it. [Library.Inspect]
// looks at what takes no time.
func (l *Library) Try(ctx context.Context, path string) error {
	at, err := l.open(ctx, path)
	if err == nil {
		err = l.free(ctx, at)
	}
	if err == nil {
		_, _, err = l.content(ctx, at, "HEAD^{tree}")
	}
	return told(err)
}

// locked tells whether a record of git's is. Where what git was making is ours, and that git has ended, its own lock is none. What cannot be
// looked at is locked.
func locked(gitDir string, ours bool) bool {
	why, err := os.ReadFile(filepath.Join(gitDir, "locked"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		return true
	}
	return !ours || strings.TrimSpace(string(why)) != making
}
