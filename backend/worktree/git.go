package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// settings come before the command. The person's own stay, but for what would run programs that nobody asked for, or have git do less than
// is meant: a hook, a watcher of files, and leaving out what it cannot read.
func settings() []string {
	return git.Settings(
		"core.hooksPath="+os.DevNull, "core.fsmonitor=false", "core.untrackedCache=false", "core.ignoreStat=false", "core.quotePath=false",
		"core.safecrlf=false", "core.longpaths=true", "core.fsync=objects,reference", "core.fsyncMethod=batch", "add.ignoreErrors=false",
		"gc.auto=0", "gc.autoDetach=false", "maintenance.auto=false", "submodule.recurse=false", "status.relativePaths=false",
		"advice.detachedHead=false", "worktree.guessRemote=false",
	)
}

// environ is what git is started in. Which repository is meant is said by us; where the person's configuration is, and how others are
// reached, is theirs: a clone that gets files when they are wanted has to.
func (r run) environ(environ []string) []string {
	theirs := []string{
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_SSH", "GIT_SSH_COMMAND",
		"GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	}
	env := git.Environ(environ, theirs...)
	const ours = "Deskhand"
	env = append(
		env, "GIT_EDITOR=:", "GIT_LITERAL_PATHSPECS=1",
		// Of commits that nobody has made by hand, in a repository that may know no name for them.
		"GIT_AUTHOR_NAME="+ours, "GIT_AUTHOR_EMAIL=deskhand@localhost", "GIT_COMMITTER_NAME="+ours, "GIT_COMMITTER_EMAIL=deskhand@localhost",
	)
	if r.gitDir != "" {
		env = append(env, "GIT_DIR="+r.gitDir, "GIT_WORK_TREE="+r.dir)
	}
	if r.index != "" {
		env = append(env, "GIT_INDEX_FILE="+r.index)
	}
	switch {
	case r.offline: // an older git knows the first alone, and comes as far as to ask whether it may
		env = append(env, "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1")
	default: // those that run no program which an address names
		env = append(env, "GIT_ALLOW_PROTOCOL=file:http:https:ssh")
	}
	// Not by -c, which takes a "=" within a name for its end.
	for i, s := range r.set {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	if len(r.set) > 0 {
		env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(r.set)))
	}
	return env
}

// run is one run of git.
type run struct {
	dir     string      // where
	gitDir  string      // of what is there, where git would not find it
	index   string      // its file; "" = the one that is there
	set     [][2]string // of the configuration, over all that is there
	offline bool        // objects that are missing are not got from elsewhere
	dead    bool        // it goes on when its caller has gone: what it makes is of use half done to nobody
	in      []byte
	read    func(io.Reader) error // its stdout; nil = it is not read
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
	environ := l.cfg.Environ(ctx)
	file, err := git.Find(environ)
	if err != nil {
		return err
	}
	if r.dead {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)() //nolint:contextcheck // it ends with the library, too
	err = git.Run(ctx, l.processes, proxy.Command{Path: file, Args: append(settings(), args...), Env: r.environ(environ), Dir: r.dir}, r.in, r.read)
	switch {
	case errors.Is(err, proxy.ErrClosed), err != nil && l.life.Err() != nil:
		return ErrClosed
	case errors.Is(err, proxy.ErrSpawn) && !isFolder(r.dir):
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
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
