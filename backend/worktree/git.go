package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// settings returns the settings of every run beside those of package git. With these, git fails rather than doing less than asked, such
// as leaving out a file that git cannot read.
func settings() []string {
	return []string{
		"core.ignoreStat=false", "core.safecrlf=false", "core.fsync=objects,reference", "add.ignoreErrors=false", "status.relativePaths=false",
		"advice.detachedHead=false", "worktree.guessRemote=false",
	}
}

// run describes a run of git.
type run struct {
	dir      string                            // the working directory
	gitDir   string                            // of dir, when git would not find the directory
	index    string                            // the index file; "" = the index of gitDir
	config   []string                          // further settings
	unasked  bool                              // nobody has approved dir: no filter runs, and nothing is fetched
	outlives bool                              // the run goes on when its caller has gone, because half of its result is of no use
	judge    func(foreign []git.Setting) error // may refuse the run because of the programs that only the repository names; nil = nothing does
	in       []byte
	read     func(io.Reader) error // reads stdout; nil = stdout is discarded
}

// command returns the run as a command of package git.
func (l *Library) command(ctx context.Context, r run, args ...string) git.Command {
	c := git.Command{
		Whose: git.Theirs, Environ: l.cfg.Environ(ctx), Dir: r.dir, GitDir: r.gitDir, Index: r.index, Config: slices.Concat(settings(), r.config),
		Fetch: git.Safe, Judge: r.judge, Args: args, In: r.in, Read: r.read,
	}
	if r.gitDir != "" {
		c.WorkTree = r.dir
	}
	if r.unasked {
		c.Whose = git.Unapproved
	}
	return c
}

// ended reports whether git ran and failed, rather than not being run at all.
func ended(err error) bool {
	_, is := errors.AsType[*git.StatusError](err)
	return is
}

func failedWith(err error, words string) bool {
	status, is := errors.AsType[*git.StatusError](err)
	return is && strings.Contains(status.Stderr, words)
}

func isFull(text string) bool {
	return strings.Contains(text, "No space left on device") || strings.Contains(text, "Disk quota exceeded") ||
		strings.Contains(text, "There is not enough space")
}

// told adds the meaning to a failure of git about which a person can do something.
func told(err error) error {
	status, is := errors.AsType[*git.StatusError](err)
	if !is {
		return err
	}
	for _, row := range []struct {
		words string
		err   error
	}{
		{"is already checked out at", ErrInUse},
		{"is already used by worktree", ErrInUse},
		{"a branch named", ErrTaken},
		{"is not a valid branch name", ErrName},
		{"cannot lock ref", ErrTaken},
		{".lock': File exists", ErrLocked},
		{"Permission denied", ErrUnwritable},
		{"Read-only file system", ErrUnwritable},
	} {
		if strings.Contains(status.Stderr, row.words) {
			return fmt.Errorf("%w: %w", row.err, err)
		}
	}
	if isFull(status.Stderr) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

func (l *Library) git(ctx context.Context, r run, args ...string) error {
	if r.outlives {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)() //nolint:contextcheck // every run ends with the library, too
	c := l.command(ctx, r, args...)
	err := git.Run(ctx, l.processes, c)
	switch {
	case errors.Is(err, proxy.ErrClosed), err != nil && l.life.Err() != nil:
		return ErrClosed
	case errors.Is(err, proxy.ErrSpawn) && !isFolder(r.dir):
		return fmt.Errorf("%w: %w", ErrMissing, err)
	case failedWith(err, "filter"), failedWith(err, "hung up"):
		return l.withoutFilter(ctx, c, err)
	}
	return err
}

// withoutFilter returns a [MissingFilterError] when git failed because the program of a filter is not installed: git itself only says
// that the other end hung up.
func (l *Library) withoutFilter(ctx context.Context, c git.Command, err error) error {
	missing, other := git.Missing(ctx, l.processes, c)
	i := slices.IndexFunc(missing, func(a git.Absent) bool { return failedWith(err, a.Told) })
	if other != nil || i < 0 {
		return err
	}
	return errors.Join(&MissingFilterError{Setting: missing[i].Setting.Key, Program: missing[i].Program}, err)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// all returns the whole output of git.
func (l *Library) all(ctx context.Context, r run, args ...string) ([]byte, error) {
	const most = 256 << 20
	var out []byte
	r.read = func(from io.Reader) (err error) {
		if out, err = io.ReadAll(io.LimitReader(from, most+1)); err == nil && len(out) > most {
			err = fmt.Errorf("%w: it says too much", ErrGit)
		}
		return err
	}
	err := l.git(ctx, r, args...)
	return out, err
}

// say returns a single line of git's output.
func (l *Library) say(ctx context.Context, r run, args ...string) (string, error) {
	out, err := l.all(ctx, r, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// lines returns the lines of git's output.
func (l *Library) lines(ctx context.Context, r run, args ...string) ([]string, error) {
	out, err := l.say(ctx, r, args...)
	if out == "" {
		return nil, err
	}
	return strings.Split(strings.ReplaceAll(out, "\r\n", "\n"), "\n"), err
}

// records returns git's output, split at NULs.
func (l *Library) records(ctx context.Context, r run, args ...string) ([]string, error) {
	out, err := l.all(ctx, r, args...)
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil, err
	}
	return strings.Split(text, "\x00"), err
}
