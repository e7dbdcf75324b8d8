// Package worktree hides git's linked worktrees: a second directory of a repository, on a branch of its own, which is made, is removed
// without losing uncommitted changes, and is restored as it was.
//
// The package works with a person's own repository, by the person's own git and configuration. No program runs that only the repository
// names, hooks included, because nobody has approved such a program. No branch is ever moved, and no branch is deleted that has a commit
// beyond its first. Uncommitted changes become a commit with the shape of a stash, on a ref that the caller names: `git stash apply REF`
// restores the changes without Deskhand.
//
// A directory is renamed before its removal, and its content is checked once more then. So there is no moment at which a part of the
// worktree is gone and the rest still looks like a worktree: a crash leaves the worktree whole, or renamed and kept.
package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// The errors of this package.
var (
	ErrNoGit        = git.ErrAbsent
	ErrGit          = git.ErrFailed
	ErrNoRepository = errors.New("the directory is in no git repository")
	ErrBare         = errors.New("the repository has no files of its own here: it is bare")
	ErrNoCommit     = errors.New("the repository has no commit yet")
	ErrSubmodule    = errors.New("the directory belongs to a submodule")
	ErrBase         = errors.New("there is no such branch or commit")
	ErrName         = errors.New("git takes no branch of this name")
	ErrTaken        = errors.New("there is a branch of this name")
	ErrExists       = errors.New("something is there already")
	ErrUnwritable   = errors.New("nothing can be written there")
	ErrFull         = errors.New("the disk is full")
	ErrMissing      = errors.New("the worktree is not there")
	ErrLocked       = errors.New("another git is at work in it, or somebody has locked it")
	ErrUnfinished   = errors.New("a merge, rebase or the like is not finished in it")
	ErrBusy         = errors.New("its files change all the time")
	ErrInUse        = errors.New("its branch is checked out elsewhere")
	ErrMoved        = errors.New("its branch has other commits by now")
	ErrClosed       = errors.New("the worktrees are closed")
)

// NestedError reports a repository within a worktree, which a commit cannot hold.
type NestedError struct {
	Path      string // relative to the worktree
	Submodule bool
}

func (e *NestedError) Error() string { return e.Path + " is a repository of its own" }

// FilterError reports a file for which git would store another content than the file has.
type FilterError struct{ Path string }

func (e *FilterError) Error() string { return "git changes " + e.Path + " when it keeps it" }

// AsideError reports a worktree that was being removed and of which nobody knows whether all is kept. The worktree stays at Path.
type AsideError struct{ Path string }

func (e *AsideError) Error() string { return e.Path + " has what was to be removed" }

// LeftError reports a removal that is over except for the remains at Path, which cannot be deleted: everything that had to be kept is
// kept.
type LeftError struct {
	Path string
	Err  error
}

func (e *LeftError) Error() string {
	return "what rests at " + e.Path + " cannot be deleted: " + e.Err.Error()
}

func (e *LeftError) Unwrap() error { return e.Err }

// UnreadableError reports a folder that cannot be read, so that its content could not be kept.
type UnreadableError struct{ Path string } // relative to the worktree

func (e *UnreadableError) Error() string { return e.Path + " cannot be read" }

// Config configures a library. Beside and Environ are required.
type Config struct {
	Beside  *proxy.Set                     // shares its watchdog and ledger with git's processes
	Environ func(context.Context) []string // the environment of git, in which git is searched for, too
	Logger  *slog.Logger
}

// Library runs git.
type Library struct {
	cfg       Config
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of every process
	stop      context.CancelFunc
}

// Open makes a library. No process runs before the first call.
func Open(ctx context.Context, cfg Config) (*Library, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	processes, err := proxy.Open(proxy.Config{Beside: cfg.Beside, Logger: cfg.Logger, Purpose: "worktrees"})
	if err != nil {
		return nil, err
	}
	l := &Library{cfg: cfg, processes: processes}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	return l, nil
}

// Close ends all running processes, and waits for their end.
func (l *Library) Close() error {
	l.stop()
	return l.processes.Close()
}

// Place describes the repository of a directory.
type Place struct {
	Top    string // the worktree that contains the directory
	Prefix string // the directory relative to Top, "" for Top itself
	Main   string // the first worktree of the repository, or a bare repository itself
	Head   string // the commit that is checked out, or that a caller has chosen as the base of a new worktree
	Branch string // "" when no branch is checked out
}

// plan returns a run in a directory that nobody has approved.
func plan(dir string) run { return run{dir: dir, unasked: true} }

// Look finds the repository that contains a directory.
func (l *Library) Look(ctx context.Context, dir string) (Place, error) {
	at := plan(dir)
	const places, asked = 6, 8
	said, err := l.lines(ctx, at, "rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--is-bare-repository", "--git-common-dir", "--git-dir",
		"--show-prefix", "--show-toplevel", "HEAD^{commit}", "--symbolic-full-name", "HEAD") // git ends at the first question without an answer
	switch {
	case failedWith(err, "not a git repository"):
		return Place{}, ErrNoRepository
	case len(said) > 1 && said[0] == "false" && said[1] == "true":
		return Place{}, ErrBare
	case len(said) > 1 && said[0] == "false":
		return Place{}, ErrNoRepository // within .git
	case err != nil && (!ended(err) || len(said) != places+1):
		return Place{}, err
	case len(said) != places+1 && (len(said) != asked || !hex.MatchString(said[places])):
		return Place{}, fmt.Errorf("%w: it is too old, or a directory has a strange name", ErrGit)
	}
	p, err := l.placed(ctx, at, said)
	if err != nil {
		return Place{}, err
	}
	if len(said) != asked { // there is no commit, or a branch is called HEAD
		return p, l.head(ctx, at, &p)
	}
	branch, is := strings.CutPrefix(said[places+1], "refs/heads/")
	if p.Head = said[places]; is {
		p.Branch = branch
	}
	return p, nil
}

// placed returns the directories of a place, from what git has said of them.
func (l *Library) placed(ctx context.Context, at run, said []string) (p Place, err error) {
	common, gitDir, prefix := said[2], said[3], said[4]
	if p.Top = filepath.FromSlash(said[5]); prefix != "" {
		p.Prefix = filepath.Clean(filepath.FromSlash(prefix))
	}
	p.Main = p.Top
	if common != gitDir { // a linked worktree
		if p.Main, err = l.main(ctx, at); err != nil {
			return Place{}, err
		}
	}
	if strings.Contains(common, "/.git/modules/") {
		return Place{}, ErrSubmodule
	}
	if !inAnother(p.Top) {
		return p, nil
	}
	above, err := l.say(ctx, at, "rev-parse", "--show-superproject-working-tree")
	if err == nil && above != "" {
		err = ErrSubmodule
	}
	return p, err
}

// inAnother reports whether a worktree lies in a directory of another repository, which may have the worktree as a submodule.
func inAnother(top string) bool {
	for at := filepath.Dir(top); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if filepath.Dir(at) == at {
			return false
		}
	}
}

// main returns the first worktree of the repository.
func (l *Library) main(ctx context.Context, at run) (string, error) {
	list, err := l.list(ctx, at)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: it lists no worktree", ErrGit)
	}
	if err != nil {
		return "", err
	}
	return list[0], nil
}

func (l *Library) head(ctx context.Context, at run, p *Place) (err error) {
	if p.Head, err = l.say(ctx, at, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if ended(err) {
			return ErrNoCommit
		}
		return err
	}
	p.Branch, err = l.say(ctx, at, "symbolic-ref", "--quiet", "--short", "HEAD")
	if ended(err) {
		return nil // detached
	}
	return err
}

// list returns the paths of all worktrees of a repository, the first worktree first.
func (l *Library) list(ctx context.Context, at run) (all []string, err error) {
	said, err := l.lines(ctx, at, "worktree", "list", "--porcelain")
	for _, line := range said {
		if path, is := strings.CutPrefix(line, "worktree "); is {
			all = append(all, filepath.FromSlash(path))
		}
	}
	return all, err
}

// Beside returns the folder for the worktrees of a repository: next to the repository, so that a program that searches the parent
// directories finds the same files as from there.
func (p Place) Beside() string {
	dir, name := filepath.Split(p.Main)
	name = strings.TrimPrefix(strings.TrimSuffix(name, ".git"), ".")
	if name == "" { // a bare repository called .git
		dir, name = filepath.Split(filepath.Clean(dir))
	}
	return filepath.Join(dir, name+".worktrees")
}

// Has reports whether there is a branch of the name, or a branch that makes the name impossible.
func (l *Library) Has(ctx context.Context, p Place, branch string) (bool, error) {
	args := []string{"for-each-ref", "--format=%(refname)"}
	for name := branch; name != ""; name = name[:max(0, strings.LastIndexByte(name, '/'))] {
		args = append(args, "refs/heads/"+name) // and all that begins with it and a slash
	}
	if foldsNames {
		args = slices.Insert(args, 1, "--ignore-case")
	}
	said, err := l.lines(ctx, plan(p.Top), args...)
	return slices.ContainsFunc(said, func(ref string) bool { return excludes(strings.TrimPrefix(ref, "refs/heads/"), branch) }), err
}

// foldsNames says that the file systems of the system take large and small letters of a name for the same, and so does git for branches, as
// long as they are files.
const foldsNames = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

// excludes reports whether no branch can have the name because of another branch: of the two, none may be a folder of the other.
func excludes(other, name string) bool {
	if foldsNames {
		other, name = strings.ToLower(other), strings.ToLower(name)
	}
	return other == name || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
}

// Changed returns how many files of a worktree have uncommitted changes. The directory need not be approved, so no filter runs: a file
// that a filter changes may count as changed.
func (l *Library) Changed(ctx context.Context, p Place) (n int, err error) {
	list, err := l.records(ctx, plan(p.Top), "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	return len(list), err
}

// Holds reports whether the commit that is checked out has the folder.
func (l *Library) Holds(ctx context.Context, p Place) (bool, error) {
	if p.Prefix == "" {
		return true, nil
	}
	kind, err := l.say(ctx, plan(p.Top), "cat-file", "-t", p.Head+":"+filepath.ToSlash(p.Prefix))
	if ended(err) {
		return false, nil
	}
	return kind == "tree", err
}

// Takes returns why no new worktree can be made at path on a new branch, as far as a check can tell, or nil.
func (l *Library) Takes(ctx context.Context, p Place, path, branch string) error {
	if _, err := l.say(ctx, plan(p.Top), "check-ref-format", "--branch", branch); err != nil {
		if ended(err) {
			return ErrName
		}
		return err
	}
	taken, err := l.Has(ctx, p, branch)
	switch _, missing := os.Lstat(path); {
	case err != nil:
		return err
	case taken:
		return ErrTaken
	case missing == nil:
		return ErrExists
	}
	return nil
}

// Make makes a worktree at path, which must be free, on a new branch that begins at p.Head. A failure leaves nothing behind. Git itself refuses
// a branch that is there; a caller that stores its intention asks [Library.Takes] or [Library.Has] before.
func (l *Library) Make(ctx context.Context, p Place, path, branch string) error {
	if strings.HasPrefix(branch, "-") { // git would take it for an option
		return ErrName
	}
	named, refused := "", false
	at := run{dir: p.Top, outlives: true, judge: func(foreign []git.Setting) (err error) {
		named, err = checksOut(foreign)
		refused = err != nil
		return err
	}}
	if err := makeFolder(p.Main, filepath.Dir(path)); err != nil {
		return err
	}
	if err := mkdir(p.Main, path); err != nil {
		return err
	}
	err := l.git(ctx, at, "worktree", "add", "--quiet", "--no-track", "-b", branch, "--", path, p.Head)
	if err == nil {
		return nil
	}
	err = told(err)
	switch {
	case refused, errors.Is(err, ErrName), errors.Is(err, ErrTaken):
		branch = "" // git has made no branch: a branch of the name is somebody's
	case named != "" && failedWith(err, "Could not reset index file"): // an object is missing
		err = errors.Join(&ProgramError{Setting: named}, err)
	}
	return errors.Join(err, l.undo(ctx, p.Main, path, branch, p.Head))
}

// mkdir makes the directory of a worktree, which git accepts when empty, with the mode of the repository. Only the caller that made the
// directory may remove it: of two callers that want the same path at once, the second fails here, and does not undo the work of the
// first.
func mkdir(main, path string) error {
	mode := fs.FileMode(0o700)
	if info, err := os.Stat(main); err == nil {
		mode = info.Mode().Perm() | mode
	}
	switch err := os.Mkdir(path, mode); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	case isFull(err.Error()):
		return fmt.Errorf("%w: %w", ErrFull, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
}

// makeFolder makes the folder of worktrees unless the folder exists.
func makeFolder(main, folder string) error {
	if err := mkdir(main, folder); !errors.Is(err, ErrExists) {
		return err
	}
	return nil
}

// undo removes the directory and the branch of a worktree in which nobody has worked. A directory that cannot be deleted is reported by a
// [LeftError]; otherwise every start would try again.
func (l *Library) undo(ctx context.Context, main, path, branch, base string) error {
	if err := doom(path, path); err != nil {
		return err
	}
	return l.unmake(ctx, main, path, branch, base)
}

// unmake is undo for a worktree whose directory is doomed or gone: a directory at its path by now is somebody's.
func (l *Library) unmake(ctx context.Context, main, path, branch, base string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestRun)
	defer cancel()
	// Twice, because git has locked a worktree that git was making.
	err := l.end(ctx, main, path, "--force", "--force")
	if branch == "" || err != nil && !errors.As(err, new(*LeftError)) {
		return err
	}
	return cmp.Or(l.drop(ctx, main, branch, base), err)
}

// drop deletes a branch that is still at its first commit, and that is checked out nowhere.
func (l *Library) drop(ctx context.Context, main, branch, base string) error {
	used, err := l.checkedOut(ctx, main, branch)
	if err != nil || used {
		return err
	}
	err = l.git(ctx, run{dir: main}, "update-ref", "--no-deref", "-d", "refs/heads/"+branch, base)
	if ended(err) {
		return nil // the branch is missing, or has other commits
	}
	return err
}

// DropUnused deletes a branch on which nothing ever happened.
func (l *Library) DropUnused(ctx context.Context, main, branch, base string) (dropped bool, err error) {
	said, err := l.lines(ctx, run{dir: main}, "reflog", "show", "--format=%H", "refs/heads/"+branch, "--")
	if err != nil || len(said) != 1 || said[0] != base { // without a reflog nobody knows
		if ended(err) {
			err = nil
		}
		return false, err
	}
	if list, err := l.list(ctx, run{dir: main}); err != nil || len(list) == 0 {
		return false, err
	}
	if err := l.drop(ctx, main, branch, base); err != nil {
		return false, err
	}
	_, err = l.say(ctx, run{dir: main}, "show-ref", "--verify", "--quiet", "refs/heads/"+branch)
	return ended(err), nil
}

func (l *Library) checkedOut(ctx context.Context, main, branch string) (bool, error) {
	said, err := l.lines(ctx, run{dir: main}, "worktree", "list", "--porcelain")
	return slices.Contains(said, "branch refs/heads/"+branch), err
}

// longestRun ends a git process that waits for ever.
const longestRun = 10 * time.Minute

// removeAll is os.RemoveAll, but also deletes read-only folders, such as the caches of some build tools.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // a folder that is being deleted
		}
		return nil
	})
	return os.RemoveAll(path)
}
