package snapshot

import (
	"bytes"
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
	"deskhand/backend/store"
)

// emptyTree is git's name for a tree without anything.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// attributes are those that go before all others: what is kept is what is in the file, whatever a repository says of it.
const attributes = "* -text !eol -filter -ident -working-tree-encoding !diff !merge\n"

// program finds the system's git in the directories of the environment.
func (l *Library) program(environ []string) (string, error) {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return file, nil
		}
	}
	return "", ErrNoGit
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

// settings come before the command. The store's own configuration could say the same, but what stands here needs nobody to keep it.
func settings() []string {
	list := []string{
		"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.untrackedCache=false", "core.attributesFile=" + os.DevNull,
		"core.excludesFile=" + os.DevNull, "core.autocrlf=false", "core.safecrlf=false", "core.bare=false", "core.splitIndex=false",
		"core.quotePath=false", "core.fsync=loose-object,pack,pack-metadata,index", "core.fsyncMethod=batch", "core.longpaths=true",
		fmt.Sprintf("core.bigFileThreshold=%d", maxShown), "gc.auto=0", "gc.autoDetach=false", "gc.packRefs=false", "maintenance.auto=false",
		"submodule.recurse=false", "diff.submodule=short", "diff.orderFile=" + os.DevNull, "diff.suppressBlankEmpty=false",
	}
	switch runtime.GOOS {
	case "windows":
		list = append(list, "core.fileMode=false", "core.symlinks=false", "core.ignoreCase=true")
	case "darwin":
		list = append(list, "core.ignoreCase=true", "core.precomposeUnicode=true", "core.protectNTFS=false")
	default: // a name such as GIT~1 is one like others
		list = append(list, "core.protectNTFS=false")
	}
	var args []string
	for _, s := range list {
		args = append(args, "-c", s)
	}
	return args
}

// environ is what git is started in: nothing of git's that the person has set, since it is for other repositories.
func (s *Store) environ(environ []string, r run) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(strings.ToUpper(name), "GIT_") || name == "LC_ALL" || name == "LANGUAGE"
	})
	if !r.magic {
		env = append(env, "GIT_LITERAL_PATHSPECS=1")
	}
	return append(
		env, "LC_ALL=C", "HOME="+s.path, "XDG_CONFIG_HOME="+s.path, "GIT_DIR="+s.path, "GIT_WORK_TREE="+r.top, "GIT_INDEX_FILE="+r.index,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_ALLOW_PROTOCOL=none",
	)
}

// run is one run of git.
type run struct {
	top   string // the work tree; the store itself where there is none
	index string // its file
	magic bool   // paths are not literal: of a command that knows no others, and takes what stands there for a name all the same
	in    []byte
	read  func(io.Reader) error // its stdout; nil = it is not read
}

// statusError is a git that ended with a status of its own.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("git ended with %d: %s", e.code, e.text) }
func (e *statusError) Unwrap() error { return ErrGit }

func (s *Store) git(ctx context.Context, r run, args ...string) error {
	environ := s.l.cfg.Environ(ctx)
	file, err := s.l.program(environ)
	if err != nil {
		return err
	}
	if r.top == "" {
		r.top = s.path
	}
	if r.index == "" {
		r.index = filepath.Join(s.path, "none")
	}
	if r.read == nil {
		r.read = func(out io.Reader) error { _, err := io.Copy(io.Discard, out); return err }
	}
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	cmd := proxy.Command{Path: file, Args: append(settings(), args...), Env: s.environ(environ, r), Dir: r.top}
	ran, err := s.l.processes.Run(ctx, cmd, r.in, r.read)
	switch {
	case errors.Is(err, proxy.ErrClosed):
		return ErrClosed
	case err != nil:
		return err
	case ran.Signal != "":
		return fmt.Errorf("%w: it was ended by %s", ErrGit, ran.Signal)
	case ran.Code != 0:
		return &statusError{ran.Code, lastLine(ran.StderrTail)}
	}
	return nil
}

// lastLine is the last thing that git says, without the names of files that it may be full of.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// say is git for an answer that is short.
func (s *Store) say(ctx context.Context, r run, args ...string) (string, error) {
	const most = 1 << 20
	var out []byte
	r.read = func(from io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(from, most))
		return err
	}
	err := s.git(ctx, r, args...)
	return strings.TrimSpace(string(out)), err
}

// make sees that the folder is there. It is written here and not by git init: that would look into the person's templates.
func (s *Store) make() error {
	if s.made {
		return nil
	}
	for _, dir := range []string{"info", "objects", filepath.Join("refs", "trees")} {
		if err := os.MkdirAll(filepath.Join(s.path, dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"config": "[core]\n\trepositoryformatversion = 0\n", filepath.Join("info", "attributes"): attributes, "HEAD": "ref: refs/heads/none\n",
	} {
		if err := store.WriteFile(filepath.Join(s.path, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	s.made = true
	return nil
}

// keep makes a tree one that is kept.
func (s *Store) keep(id string) error {
	name := s.ref(id)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return store.WriteFile(name, []byte(id+"\n"), 0o600)
}

func (s *Store) ref(id string) string { return filepath.Join(s.path, "refs", "trees", id) }

// isID tells whether it is a name of git's: what stands in a database goes into an argument.
func isID(id string) bool {
	const length = 40
	return len(id) == length && strings.Trim(id, "0123456789abcdef") == ""
}

// eachRecord calls f with what stands between NULs.
func eachRecord(r io.Reader, f func([]byte) error) error {
	buf := make([]byte, 0, 64<<10)
	part := make([]byte, 64<<10)
	for {
		n, err := r.Read(part)
		buf = append(buf, part[:n]...)
		for {
			i := bytes.IndexByte(buf, 0)
			if i < 0 {
				break
			}
			if err := f(buf[:i]); err != nil {
				return err
			}
			buf = buf[i+1:]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
