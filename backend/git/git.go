// Package git runs the system's git for the whole program: no other package starts git. No git of this package runs a program that a
// repository brings along, but for hooks that a person has approved: see [Command.Hooks]. File watchers, pagers and editors are off in
// every run, and so are all other hooks, and aliases, since only the product's commands can be run. Programs in a repository's own configuration (filters, fetchers of missing objects, password helpers) are replaced
// by the programs that the person has configured for all repositories, or by nothing, before each run in somebody's repository that could start one: see
// [Command.Whose].
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

// Errors of this package, with texts for people.
var (
	ErrAbsent = errors.New("git was not found")
	ErrFailed = errors.New("git failed")
)

// StatusError is the failure of a git that ended with a status. errors.Is finds [ErrFailed].
type StatusError struct {
	Code   int
	Stderr string // its end
}

// Error returns the last line of git's stderr: earlier lines may name any number of files.
func (e *StatusError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// Unwrap returns ErrFailed.
func (e *StatusError) Unwrap() error { return ErrFailed }

// Whose says whose repository git runs in, and so whose configuration counts.
type Whose int

const (
	// Ours is a repository that this program has made, at Command.GitDir: nobody's configuration counts, and nothing is fetched.
	Ours Whose = iota
	// Fetching is a repository of this program into which git fetches: the person's configuration counts, because of the credentials.
	Fetching
	// Unapproved is a repository in which nobody has approved anything: no filter runs, whoever has configured the filter, and nothing is
	// fetched.
	Unapproved
	// Theirs is a person's repository: the person's own configuration counts, with its filters; of the repository's own, only settings that
	// name no program.
	Theirs
)

// Command is a run of git.
type Command struct {
	Whose   Whose
	Environ []string // git is looked up in its PATH; of git's variables only those count that say how a person reaches other machines
	Dir     string   // working directory

	GitDir, WorkTree, Index string // in place of those that git would find; "" = as git finds them
	Objects                 string // of Ours: another repository's objects, which git may read too; "" = none

	Config   []string // further settings, NAME=VALUE, which override all others; no name contains a "="
	Fetch    string   // protocols for Fetching and Theirs, in the form of GIT_ALLOW_PROTOCOL; "" = none
	Patterns bool     // paths in Args are patterns instead of names
	Person   bool     // of Theirs: commits have the name and the address that git is configured with, instead of ours
	Hooks    bool     // of Theirs: the repository's hooks run. The caller has made sure that a person has approved them as they are now

	// Judge, of Theirs and Unapproved, is given the settings that Run turns off (see [Foreign]) before git runs. An error of Judge ends the run:
	// git is not started, and Run returns the error.
	Judge func(foreign []Setting) error

	Args []string // a git command and its arguments
	In   []byte
	Read func(io.Reader) error // reads stdout; nil = nobody does
}

// Safe lists the protocols that start no program named by an address.
const Safe = "file:http:https:ssh"

// commands returns the product's git commands. Before adding another, make sure that the command starts no program of a repository beyond those
// that [Run] turns off: porcelain such as diff and log has programs of its own (textconv, external diffs, signatures), and an unknown word
// may be an alias.
func commands() []string {
	return []string{
		"add", "cat-file", "check-attr", "check-ignore", "check-ref-format", "commit", "commit-tree", "config", "diff-index", "diff-tree", "fast-import", "fetch",
		"for-each-ref", "gc", "hash-object", "init", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "merge-tree", "mktree", "push", "read-tree", "rebase", "reflog", "rev-list", "rev-parse",
		"show-ref", "stash", "status", "symbolic-ref", "update-index", "update-ref", "var", "version", "worktree", "write-tree",
	}
}

// Run runs git to its end, in a Set that supervises the process. A status other than 0 is a [StatusError].
func Run(ctx context.Context, processes *proxy.Set, c Command) error {
	if len(c.Args) == 0 || !slices.Contains(commands(), c.Args[0]) {
		return fmt.Errorf("%w: %q is no command that is run here", ErrFailed, c.Args)
	}
	program, err := find(c.Environ)
	if err != nil {
		return err
	}
	var instead [][2]string
	if c.Whose == Theirs || c.Whose == Unapproved && (c.Judge != nil || !c.asksRefs()) {
		list, err := c.settings(ctx, processes, program)
		if err != nil {
			return err
		}
		if instead, err = c.judged(list); err != nil {
			return err
		}
	}
	return c.run(ctx, processes, program, instead)
}

// judged returns the settings that replace those of a configuration, or the error of Judge. Where nothing can replace a program that takes part
// in a fetch, nothing is fetched.
func (c *Command) judged(list []Setting) (instead [][2]string, err error) {
	theirs := foreign(list)
	if c.Judge != nil {
		if err := c.Judge(theirs); err != nil {
			return nil, err
		}
	}
	instead = c.instead(list)
	if c.Hooks {
		instead = slices.DeleteFunc(instead, func(set [2]string) bool { return strings.EqualFold(set[0], hooksPath) })
	}
	if slices.ContainsFunc(theirs, func(s Setting) bool { return s.reaches(c.Args[0] == "push") }) {
		c.Fetch = ""
	}
	return instead, nil
}

// asksRefs reports whether a run reads refs, the commits that they name, and where the repository is, and nothing else. Of all settings that name
// programs, only those that get a missing commit could count in such a run, and [Unapproved] allows no protocol to get anything by: so the
// configuration need not be read before. A commit's signature is the one thing for which git would start a program.
func (c Command) asksRefs() bool {
	return slices.Contains([]string{"check-ref-format", "for-each-ref", "rev-parse", "show-ref", "symbolic-ref"}, c.Args[0]) &&
		!slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "signature") })
}

func (c Command) run(ctx context.Context, processes *proxy.Set, program string, instead [][2]string) error {
	read := c.Read
	if read == nil {
		read = func(out io.Reader) error { _, err := io.Copy(io.Discard, out); return err }
	}
	var args []string
	for _, s := range slices.Concat(always(), c.Config) {
		if !c.Hooks || !strings.HasPrefix(s, hooksPath+"=") {
			args = append(args, "-c", s)
		}
	}
	cmd := proxy.Command{Path: program, Args: append(args, c.Args...), Env: c.environ(instead), Dir: c.Dir}
	ran, err := processes.Run(ctx, cmd, c.In, read)
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

// hooksPath is the setting that says where hooks are.
const hooksPath = "core.hooksPath"

// always returns the settings of every run: git starts no unrequested program, and does no extra work. The environment of git passes the
// settings on to every git below.
func always() []string {
	return []string{
		hooksPath + "=" + os.DevNull, "core.fsmonitor=false", "core.untrackedCache=false", "core.pager=cat", "core.editor=:", "sequence.editor=:",
		"core.alternateRefsCommand=:", "core.quotePath=false", "core.longpaths=true", "core.fsyncMethod=batch", "gc.auto=0", "gc.autoDetach=false",
		"maintenance.auto=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false", "transfer.bundleURI=false", "submodule.recurse=false",
		// To inspect a submodule, git starts another git with the submodule's configuration.
		"diff.ignoreSubmodules=dirty", "status.submoduleSummary=false",
	}
}

// theirs returns git's variables that do not select another repository, but say where a person's configuration is, and how other machines
// are reached.
func theirs() []string {
	return []string{
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_SSH", "GIT_SSH_COMMAND",
		"GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_PROXY_SSL_CAINFO",
	}
}

// environ returns the environment of git, in which git asks nobody, takes no optional locks, and prints messages in the language that this
// program parses.
func (c Command) environ(instead [][2]string) []string {
	env := slices.DeleteFunc(absolute(c.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		return strings.HasPrefix(upper, "GIT_") && (c.Whose == Ours || !slices.Contains(theirs(), upper)) || name == "LC_ALL" || name == "LANGUAGE"
	})
	const we = "Deskhand" // author of automatic commits, for a repository without a name
	env = append(env, c.locale()...)
	env = append(
		env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
	)
	if !c.Person {
		env = append(
			env, "GIT_AUTHOR_NAME="+we, "GIT_AUTHOR_EMAIL=deskhand@localhost", "GIT_COMMITTER_NAME="+we, "GIT_COMMITTER_EMAIL=deskhand@localhost",
		)
	}
	switch c.Whose {
	case Ours:
		env = append(
			env, "HOME="+c.GitDir, "XDG_CONFIG_HOME="+c.GitDir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1",
		)
	case Fetching:
		env = append(env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_LFS_SKIP_SMUDGE=1")
	case Unapproved, Theirs:
	}
	protocols := c.Fetch
	if protocols == "" || c.Whose == Ours || c.Whose == Unapproved { // an older git knows only the protocols, and gets as far as asking whether they are allowed
		protocols = "none"
	}
	if protocols == "none" || c.Whose == Fetching {
		env = append(env, "GIT_NO_LAZY_FETCH=1")
	}
	env = append(env, "GIT_ALLOW_PROTOCOL="+protocols)
	if !c.Patterns {
		env = append(env, "GIT_LITERAL_PATHSPECS=1")
	}
	for _, v := range [][2]string{{"GIT_DIR", c.GitDir}, {"GIT_WORK_TREE", c.WorkTree}, {"GIT_INDEX_FILE", c.Index}, {"GIT_OBJECT_DIRECTORY", c.Objects}} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	// Not with -c, which ends a name at its first "=".
	for i, s := range instead {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	if len(instead) > 0 {
		env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(instead)))
	}
	return env
}

// locale returns the variables that have git print its messages as this program parses them. Hooks keep the person's letters.
func (c Command) locale() []string {
	if !c.Hooks {
		return []string{"LC_ALL=C"}
	}
	if locale := variable(c.Environ, "LC_ALL"); locale != "" {
		return []string{"LC_MESSAGES=C", "LANG=" + locale}
	}
	return []string{"LC_MESSAGES=C"}
}

// absolute returns an environment whose PATH has no directory that depends on git's working directory, where anybody may put a "git-lfs".
func absolute(environ []string) (env []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			dirs := slices.DeleteFunc(filepath.SplitList(value), func(dir string) bool { return !filepath.IsAbs(dir) })
			kv = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
		env = append(env, kv)
	}
	return env
}

// find returns the path of git in PATH. A relative directory of PATH does not count: git runs in other directories, where anybody may put a
// "git".
func find(environ []string) (string, error) {
	file, searched := lookUp("git", environ)
	if file == "" {
		return "", fmt.Errorf("%w: install it (git-scm.com); it was looked for in %s", ErrAbsent, strings.Join(searched, ", "))
	}
	return file, nil
}

// Installed returns why no git can be run, or nil.
func Installed(environ []string) error {
	_, err := find(environ)
	return err
}

// lookUp returns the path of a program in the absolute directories of PATH.
func lookUp(name string, environ []string) (file string, searched []string) {
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		searched = append(searched, dir)
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return file, searched
		}
	}
	return "", searched
}

// variable returns the value of a variable in an environment; the last definition counts.
func variable(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		n, v, _ := strings.Cut(kv, "=")
		if n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			return v
		}
	}
	return ""
}
