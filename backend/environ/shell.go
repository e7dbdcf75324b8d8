package environ

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// An app that is started from a desktop gets the desktop's environment, which lacks everything that the person's shell sets up: nvm,
// ~/.local/bin, API keys. So Deskhand asks the shell, as a login shell and an interactive shell: Debian's .bashrc, where nvm puts its line,
// returns at once in any other.

const (
	shellPatience = 10 * time.Second       // slow rc files are common; longer than that, a file waits for something
	shellLimit    = 1 << 20                // of its environment; the system allows a program less
	shellGrace    = time.Second            // for work of the shell after its answer
	pipeGrace     = 200 * time.Millisecond // to read the rest of the pipe when the shell has ended and another process holds the pipe
)

// askingVariable tells rc files that no person is present, so that they can skip interactive parts.
const askingVariable = "DESKHAND_READS_ENVIRONMENT"

// shell describes a login shell and the question to it.
type shell struct {
	file     string
	environ  []string // its initial environment
	print    string   // the command by which the shell prints the environment of its programs, as env -0 does
	patience time.Duration
	life     <-chan struct{}   // closed when every process of the shell must end
	work     func(func()) bool // runs work that outlives the answer
	show     func(file string, pid int) (hide func())
}

var (
	errForeignShell = errors.New("it is no shell that Deskhand knows")
	errShellEnded   = errors.New("it ended before it could be asked")
	errNoVariable   = errors.New("it gave no variable")
)

// environmentPrinter returns the command that prints the environment in a shell. The env of macOS knows -0 since macOS 13 at the earliest,
// and without -0 a value of several lines looks like several variables: on macOS Deskhand's own program prints.
func environmentPrinter(system, self string) string {
	if system == "darwin" && self != "" {
		return Quote(self) + " environment"
	}
	return "/usr/bin/env -0"
}

// PrintEnvironment writes the environment as env -0 does.
func PrintEnvironment(out io.Writer) error {
	for _, kv := range os.Environ() {
		if _, err := io.WriteString(out, kv+"\x00"); err != nil {
			return err
		}
	}
	return nil
}

// Quote returns a text as a single word of a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// ask returns the environment that the shell gives to programs, within the shell's patience. The shell gets no input and no terminal. Every
// process of the shell that did not detach is ended.
func (s shell) ask(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	interactive, options, err := shellOptions(s.file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be asked: %w", s.file, err)
	}
	found, err := s.once(ctx, append(interactive, options...))
	if errors.Is(err, errShellEnded) && ctx.Err() == nil && len(interactive) > 0 {
		// An rc file for people has ended the shell, or replaced it with another program. The variables of the other rc files are better
		// than nothing.
		if less, again := s.once(ctx, options); again == nil {
			return less, nil
		}
	}
	switch {
	case err == nil:
		return found, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s was not ready after %s", s.file, s.patience)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, fmt.Errorf("%s: %w", s.file, err)
	}
}

// shellOptions returns the options for running a command in a login shell, and those that make the shell interactive too.
func shellOptions(file string) (interactive, options []string, err error) {
	switch filepath.Base(file) {
	case "bash", "zsh", "fish", "ksh", "ksh93", "mksh":
		return []string{"-i"}, []string{"-l", "-c"}, nil
	case "sh", "dash", "ash": // these have no rc file for interactive shells alone
		return nil, []string{"-l", "-c"}, nil
	default:
		return nil, nil, errForeignShell
	}
}

// once starts the shell once. Its stdout is a pipe that is read up to the answer: a background process may hold the pipe for ever.
func (s shell) once(ctx context.Context, options []string) ([]string, error) {
	token := rand.Text() // rc files may print anything; the answer stands between two marks
	// The marks are not in the command, which rc files can have the shell print. "command" bypasses aliases.
	command := fmt.Sprintf("command printf %%s-%%s %[1]s begin; %[2]s; command printf %%s-%%s %[1]s end", token, s.print)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command(s.file, append(options, command)...) //nolint:gosec,noctx // the person's shell; ctx ends it below, with its session
	cmd.Env = append(slices.Clone(s.environ), askingVariable+"=1")
	cmd.Dir = s.home()
	cmd.Stdout = w
	detach(cmd)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	hide := s.show(s.file, cmd.Process.Pid)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		defer hide()
		_ = cmd.Wait() // its exit code means nothing: rc files overwrite it
		_ = r.SetReadDeadline(time.Now().Add(pipeGrace))
	}()
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	found, err := between(&patient{pipe: r, life: ctx}, token+"-begin", token+"-end")
	if err != nil || !s.work(func() { s.finish(cmd, exited) }) {
		endSession(cmd)
		<-exited
	}
	if err != nil {
		return nil, err
	}
	env := clean(found)
	if len(env) == 0 {
		return nil, errNoVariable // the printing command did not work
	}
	return env, nil
}

// patient reads the rest of an ended shell's pipe even after the deadline: a read whose deadline has passed does not look into the pipe at
// all.
type patient struct {
	pipe *os.File
	life context.Context
	late bool // the read after the deadline is done
}

func (p *patient) Read(into []byte) (int, error) {
	n, err := p.pipe.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) && p.life.Err() == nil && !p.late {
		p.late = true
		_ = p.pipe.SetReadDeadline(time.Now().Add(pipeGrace))
		n, err = p.pipe.Read(into)
	}
	return n, err
}

// home returns the directory in which the shell starts, so that rc files do not react to a project directory.
func (s shell) home() string {
	if dir := Lookup(s.environ, "HOME"); filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// finish gives a shell that has answered some time for its remaining work: rc files compile and store things in the background.
func (s shell) finish(cmd *exec.Cmd, exited <-chan struct{}) {
	grace := time.NewTimer(shellGrace)
	defer grace.Stop()
	select {
	case <-exited:
		if sessionIsEmpty(cmd) {
			return
		}
		select {
		case <-grace.C:
		case <-s.life:
		}
	case <-grace.C:
	case <-s.life:
	}
	endSession(cmd)
	<-exited
}

// between returns the bytes between two marks as soon as both were read. Other bytes are dropped.
func between(r io.Reader, begin, end string) ([]byte, error) {
	var kept []byte
	inside := false
	chunk := make([]byte, 32<<10)
	for {
		n, err := r.Read(chunk)
		kept = append(kept, chunk[:n]...)
		if !inside {
			if _, rest, found := bytes.Cut(kept, []byte(begin)); found {
				kept, inside = rest, true
			} else {
				kept = kept[max(0, len(kept)-len(begin)):]
			}
		}
		if inside {
			if found, _, ended := bytes.Cut(kept, []byte(end)); ended {
				return found, nil
			}
		}
		switch {
		case len(kept) > shellLimit:
			return nil, fmt.Errorf("its environment is longer than %d bytes", shellLimit)
		case err != nil:
			return nil, errShellEnded
		}
	}
}

// clean returns the printed variables without those about the shell itself.
func clean(out []byte) []string {
	var env []string
	for kv := range strings.SplitSeq(string(out), "\x00") {
		name, _, ok := strings.Cut(kv, "=")
		if ok && !ofShell(name) {
			env = append(env, kv)
		}
	}
	return env
}

// ofShell reports whether a variable is the shell's own.
func ofShell(name string) bool {
	switch name {
	case "", "_", "SHLVL", "PWD", "OLDPWD", "A__z", "COLUMNS", "LINES", askingVariable:
		return true
	}
	return strings.HasPrefix(name, "BASH_FUNC_") || name == "PS1" || name == "PROMPT_COMMAND"
}

// loginShell returns the person's shell: SHELL, else the user database's.
func loginShell(environ []string) (string, error) {
	file := Lookup(environ, "SHELL")
	if file == "" {
		var err error
		if file, err = shellOfUser(); err != nil {
			return "", fmt.Errorf("there is no SHELL in the environment: %w", err)
		}
	}
	if !filepath.IsAbs(file) {
		return "", fmt.Errorf("the shell %q has no absolute path", file)
	}
	return file, Executable(file)
}

// OnTerminal returns an environment for a program on one of Deskhand's terminals, without the variables that describe the terminal Deskhand
// was started from. Finder sets no language, and in the C locale a shell of macOS takes a letter of several bytes for several letters. So
// the environment gets the variable that the system's own terminal sets.
func OnTerminal(environ []string) []string { return onTerminal(environ, runtime.GOOS) }

func onTerminal(environ []string, system string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		return slices.Contains([]string{"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LINES", "COLUMNS", "PWD", "OLDPWD", "SHLVL"}, nameOf(kv))
	})
	if system == "darwin" && Lookup(env, "LC_ALL")+Lookup(env, "LC_CTYPE")+Lookup(env, "LANG") == "" {
		env = append(env, "LC_CTYPE=UTF-8")
	}
	return append(env, "TERM=xterm-256color", "COLORTERM=truecolor")
}
