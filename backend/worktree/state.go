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

// State is the content of a worktree that is in no commit.
type State struct {
	Branch  string // "" when no branch is checked out
	Head    string
	Commits int // since the commit on which the worktree began
	Strays  int // commits that were checked out here and are on no branch; Remove keeps these
	Changes []Change
	Ignored []Ignored // the files that Remove would delete, the largest first
}

// Change is a file that differs from the commit.
type Change struct {
	Path string
	Kind string // modified, added, deleted or untracked
}

// Ignored is a file or folder that the repository's rules ignore.
type Ignored struct {
	Path  string // a folder ends in a slash
	Files int
	Bytes int64
}

// open finds the git directory of a worktree. open fails for a directory that is no worktree, for which git would search the parents.
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
	// core.ignorecase is determined once, as git does. A repository that was copied from a disk that ignores case still has the setting,
	// and git would take a new file for a tracked file of another case, and miss the new file.
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

// free returns why a worktree cannot be kept as it is now, or nil.
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

// unfinished reports whether git is in the middle of an operation that continues from a file in the git directory. Between two of several
// commits that are picked or reverted, only the list of the commits shows the operation.
func unfinished(at run) bool {
	return slices.ContainsFunc([]string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer", "rebase-merge", "rebase-apply", "BISECT_LOG"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(at.gitDir, name))
		return err == nil
	})
}

// filled fails when the folder of a submodule is not empty: the submodule is checked out, or somebody has put files there, which git does
// not look at. filled also fails when the index has a conflict: such an index is no tree, and the staged changes in other files would be
// lost. A stash that does not apply leaves a conflict without any other trace.
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

// left fails when a folder that cannot be read is not ignored by the rules: git only warns, and nothing in the folder would be kept.
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

// nested fails when there is a repository below top. git reports only repositories beside its own files, not a repository in a folder
// with tracked files, and none in ignored folders. closed are the folders that cannot be read or entered, each with a slash at its end.
func nested(ctx context.Context, top string) (closed []string, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission):
			below, err := filepath.Rel(top, path)
			closed = append(closed, filepath.ToSlash(below)+"/")
			return err
		case err != nil: // the entry has gone, or cannot be removed either
			return nil //nolint:nilerr // which the removal reports
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

// shut reports whether a folder may be listed but not entered: git would not see the changes of the files there, and would take each file
// for unchanged.
func shut(path string) bool {
	_, err := os.Lstat(path + string(filepath.Separator) + ".")
	return errors.Is(err, fs.ErrPermission)
}

// Inspect returns the content of a worktree that is in no commit, or the reason why the content cannot be kept.
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
		s.Commits, _ = strconv.Atoi(n) // the number comes from git
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

// changes lists the files that differ from the commit.
func (l *Library) changes(ctx context.Context, at run) ([]Change, error) {
	said, err := l.records(ctx, at, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
	list := make([]Change, 0, len(said))
	const tagged = 3 // two letters and a blank before each name
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

// ignored lists the files and folders that the rules ignore, with their sizes.
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

// weighed counts the files and bytes below a name.
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
			return nil //nolint:nilerr // an unreadable entry counts, with an unknown size
		}
		if info, err := d.Info(); err == nil {
			i.Bytes += info.Size()
		}
		return nil
	})
	return i
}

// Try returns why a removal would be refused, as far as reading every file can tell. A caller that has to end a program before the
// removal calls Try first. [Library.Inspect] checks only what takes no time.
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

// locked reports whether a record of git is locked. With ours, a lock of git's own does not count, because the worktree that git was
// making is ours and that git has ended. A lock that cannot be read counts.
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
