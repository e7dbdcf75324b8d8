package agents

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

	"deskhand/backend/proxy"
)

// An app that is started from a desktop gets the desktop's environment, which knows nothing of what the person's shell sets up: no
// nvm, no ~/.local/bin, no API keys. So the shell is asked, as a login shell and an interactive one: Debian's .bashrc, where nvm puts
// its line, returns at once in any other.

const (
	shellPatience = 10 * time.Second       // slow rc files are common; what takes longer waits for something
	shellLimit    = 1 << 20                // of its environment; the system takes less than that of a program
	shellGrace    = time.Second            // for what it still does when it has answered
	pipeGrace     = 200 * time.Millisecond // for what is still in its pipe when it has ended and another process holds that
)

// askingVariable tells rc files that no person is there, so that they can leave out what is only for one.
const askingVariable = "DESKHAND_READS_ENVIRONMENT"

// shell is a login shell and what it is asked with.
type shell struct {
	file     string
	environ  []string // that it starts with
	print    string   // the command by which it tells the environment that it gives to programs, as env -0 does
	patience time.Duration
	life     <-chan struct{}   // closed when nothing may be left of it any more
	work     func(func()) bool // runs what outlives the answer
	show     func(file string, pid int) (hide func())
}

var (
	errForeignShell = errors.New("it is no shell that Deskhand knows")
	errShellEnded   = errors.New("it ended before it could be asked")
	errNoVariable   = errors.New("it gave no variable")
)

// environmentPrinter is the command that a shell runs to tell its environment. The env of macOS knows -0 since its 13th version at the
// earliest, and without it a value of several lines cannot be told from several variables: there our own program does it.
func environmentPrinter(system, self string) string {
	if system == "darwin" && self != "" {
		return quote(self) + " environment"
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

// quote writes a text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// ask gives the environment that the shell gives to programs, within its patience. The shell reads nothing and has no terminal to
// take. Of what it has started, all that did not make itself independent is ended.
func (s shell) ask(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	interactive, options, err := shellOptions(s.file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be asked: %w", s.file, err)
	}
	found, err := s.once(ctx, append(interactive, options...))
	if errors.Is(err, errShellEnded) && ctx.Err() == nil && len(interactive) > 0 {
		// An rc file for people has ended it, or put another program in its place. What the others set is better than nothing.
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

// shellOptions are the options with which a shell runs one command as a login shell, and those that make it an interactive one too.
func shellOptions(file string) (interactive, options []string, err error) {
	switch filepath.Base(file) {
	case "bash", "zsh", "fish", "ksh", "ksh93", "mksh":
		return []string{"-i"}, []string{"-l", "-c"}, nil
	case "sh", "dash", "ash": // which have no file for interactive shells alone
		return nil, []string{"-l", "-c"}, nil
	default:
		return nil, nil, errForeignShell
	}
}

// once starts the shell once. Its stdout is a pipe that we read up to the answer: a process in the background may hold it for ever.
func (s shell) once(ctx context.Context, options []string) ([]string, error) {
	token := rand.Text() // rc files write what they like; the answer stands between two marks
	// The marks do not stand in the command, which rc files can have the shell print. No alias gets in the way of these.
	command := fmt.Sprintf("command printf %%s-%%s %[1]s begin; %[2]s; command printf %%s-%%s %[1]s end", token, s.print)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command(s.file, append(options, command)...) //nolint:gosec,noctx // the person's shell; ended by ctx below, with its session
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
		_ = cmd.Wait() // its exit code says nothing: rc files do not keep it
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
		return nil, errNoVariable // what should have told them did not work
	}
	return env, nil
}

// patient reads what is in the pipe of a shell that has ended even where we get to it late: a read with a deadline that has passed does not look
// into the pipe at all.
type patient struct {
	pipe *os.File
	life context.Context
	late bool // it was read once after that
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

// home is where the shell starts: what rc files find in the directory is no part of the answer.
func (s shell) home() string {
	if dir := lookup(s.environ, "HOME"); filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// finish lets a shell that has answered do what it still does: rc files compile and store things in the background.
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

// between gives what stands between two marks as soon as it is there. What is outside is not kept.
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

// clean makes variables of what was printed, without those that are about the shell itself.
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

// ofShell are the variables that a shell has for itself.
func ofShell(name string) bool {
	switch name {
	case "", "_", "SHLVL", "PWD", "OLDPWD", "A__z", "COLUMNS", "LINES", askingVariable:
		return true
	}
	return strings.HasPrefix(name, "BASH_FUNC_") || name == "PS1" || name == "PROMPT_COMMAND"
}

// loginShell is the shell of the person: what SHELL says, else the user database.
func loginShell(environ []string) (string, error) {
	file := lookup(environ, "SHELL")
	if file == "" {
		var err error
		if file, err = shellOfUser(); err != nil {
			return "", fmt.Errorf("there is no SHELL in the environment: %w", err)
		}
	}
	if !filepath.IsAbs(file) {
		return "", fmt.Errorf("the shell %q has no absolute path", file)
	}
	return file, executable(file)
}

// PersonShell is the shell of the person as a terminal shows it: in the environment that agents get, so without anything of ours, and
// without the values that are kept for agents. What the person's own files export is theirs.
func (c *Catalogue) PersonShell(ctx context.Context) (proxy.Command, error) {
	file, err := loginShell(c.cfg.Environ)
	if err != nil {
		return proxy.Command{}, err
	}
	cmd := proxy.Command{Path: file, Env: onTerminal(c.Environ(ctx), runtime.GOOS)}
	if lookup(cmd.Env, "SHELL") == "" {
		cmd.Env = append(cmd.Env, "SHELL="+file)
	}
	// As terminals have it there. Elsewhere what the files of login shells set is in the environment already, and aliases stand in the
	// others, which some shells read only when they are not one.
	if _, _, foreign := shellOptions(file); foreign == nil && runtime.GOOS == "darwin" {
		cmd.Args = []string{"-l"}
	}
	return cmd, nil
}

// onTerminal is an environment for a program on a terminal of ours, without what tells of the one that we were started from. Finder gives no
// language; in that of C a shell of macOS takes a letter of several bytes for several letters. So it gets what the system's own terminal gives.
func onTerminal(environ []string, system string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		return slices.Contains([]string{"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LINES", "COLUMNS", "PWD", "OLDPWD", "SHLVL"}, nameOf(kv))
	})
	if system == "darwin" && lookup(env, "LC_ALL")+lookup(env, "LC_CTYPE")+lookup(env, "LANG") == "" {
		env = append(env, "LC_CTYPE=UTF-8")
	}
	return append(env, "TERM=xterm-256color", "COLORTERM=truecolor")
}
