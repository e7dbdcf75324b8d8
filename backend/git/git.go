// Package git runs the system's git: where it is found, what of git's in the environment is for other repositories, and what its end
// means. What is asked of git, and how much of the person's configuration counts, is its callers': a store of our own, a work tree of
// theirs, a source that is fetched.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"deskhand/backend/proxy"
)

// Errors of this package; their text is fit for people.
var (
	ErrAbsent = errors.New("git was not found")
	ErrFailed = errors.New("git failed")
)

// StatusError is a git that ended with a status of its own. It is an [ErrFailed].
type StatusError struct {
	Code   int
	Stderr string // its end
}

// Error is the last thing that git says: before it may stand the names of any number of files.
func (e *StatusError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// Unwrap makes it an ErrFailed.
func (e *StatusError) Unwrap() error { return ErrFailed }

// Find finds git in the directories of PATH. One that is not absolute is none: it would mean the directory where git is run, in which
// anybody may put a "git".
func Find(environ []string) (string, error) {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	var searched []string
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		searched = append(searched, dir)
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: install it (git-scm.com); it was looked for in %s", ErrAbsent, strings.Join(searched, ", "))
}

// variable is the value of a variable in an environment; the last one counts.
func variable(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		n, v, _ := strings.Cut(kv, "=")
		if n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			return v
		}
	}
	return ""
}

// Environ is an environment without git's own variables, but for those to keep: the others are for other repositories (GIT_DIR,
// GIT_INDEX_FILE). In it git asks nobody, takes no lock that it can do without, and speaks the language in which its messages are read here.
func Environ(environ []string, keep ...string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		return strings.HasPrefix(upper, "GIT_") && !slices.Contains(keep, upper) || name == "LC_ALL" || name == "LANGUAGE"
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
}

// Settings are the arguments that set git's configuration for one run. A name with a "=" in it needs the environment instead.
func Settings(list ...string) (args []string) {
	for _, s := range list {
		args = append(args, "-c", s)
	}
	return args
}

// Run runs git to its end, in a Set that watches over it. read takes its stdout; nil = nobody does. A status other than 0 is a
// [StatusError].
func Run(ctx context.Context, processes *proxy.Set, cmd proxy.Command, in []byte, read func(io.Reader) error) error {
	if read == nil {
		read = func(out io.Reader) error { _, err := io.Copy(io.Discard, out); return err }
	}
	ran, err := processes.Run(ctx, cmd, in, read)
	switch {
	case err != nil:
		return err
	case ran.Signal != "":
		return fmt.Errorf("%w: it was ended by %s", ErrFailed, ran.Signal)
	case ran.Code != 0:
		return &StatusError{ran.Code, ran.StderrTail}
	}
	return nil
}
