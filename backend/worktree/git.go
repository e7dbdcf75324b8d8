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

// settings are those beside what package git has in every run: git is not to do less than is meant, such as to leave out what it cannot read.
func settings() []string {
	return []string{
		"core.ignoreStat=false", "core.safecrlf=false", "core.fsync=objects,reference", "add.ignoreErrors=false", "status.relativePaths=false",
		"advice.detachedHead=false", "worktree.guessRemote=false",
	}
}

// run is one run of git.
type run struct {
	dir      string   // where
	gitDir   string   // of what is there, where git would not find it
	index    string   // its file; "" = the one that is there
	config   []string // further settings
	unasked  bool     // nobody has approved what is there: no filter runs, and nothing is got from elsewhere
	outlives bool     // it goes on when its caller has gone: what it makes is of use half done to nobody
	in       []byte
	read     func(io.Reader) error // its stdout; nil = it is not read
}

// command is the run as package git takes it.
func (l *Library) command(ctx context.Context, r run, args ...string) git.Command {
	c := git.Command{
		Whose: git.Theirs, Environ: l.cfg.Environ(ctx), Dir: r.dir, GitDir: r.gitDir, Index: r.index, Config: slices.Concat(settings(), r.config),
		Fetch: git.Safe, Args: args, In: r.in, Read: r.read,
	}
	if r.gitDir != "" {
		c.WorkTree = r.dir
	}
	if r.unasked {
		c.Whose = git.Unapproved
	}
	return c
}

// ended tells of a git that said no, rather than one that could not be run.
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

// told says what a failure of git means, where a person can do something about it.
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
	defer context.AfterFunc(l.life, cancel)() //nolint:contextcheck // it ends with the library, too
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

// withoutFilter names the filter whose program is not installed, where git failed for that: git itself says that the other end hung up.
func (l *Library) withoutFilter(ctx context.Context, c git.Command, err error) error {
	missing, program, other := git.Missing(ctx, l.processes, c)
	if other != nil || program == "" || !failedWith(err, program) {
		return err
	}
	return errors.Join(&MissingFilterError{Setting: missing.Key, Program: program}, err)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// all is what git says, to its last byte.
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

// say is git for an answer of one line.
func (l *Library) say(ctx context.Context, r run, args ...string) (string, error) {
	out, err := l.all(ctx, r, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// lines is git for an answer of several.
func (l *Library) lines(ctx context.Context, r run, args ...string) ([]string, error) {
	out, err := l.say(ctx, r, args...)
	if out == "" {
		return nil, err
	}
	return strings.Split(strings.ReplaceAll(out, "\r\n", "\n"), "\n"), err
}

// records is git for an answer with NULs.
func (l *Library) records(ctx context.Context, r run, args ...string) ([]string, error) {
	out, err := l.all(ctx, r, args...)
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil, err
	}
	return strings.Split(text, "\x00"), err
}
