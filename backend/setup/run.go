package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"deskhand/backend/launch"
	"deskhand/backend/project"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/worktrees"
)

// Purpose is the purpose of the commands of set-ups, in the list of all processes.
const Purpose = "set-up"

// grace is how long a command has to end by itself when it is stopped.
const grace = 5 * time.Second

// begin begins the set-up of a worktree, which runs when begin has returned. What runs is what p says, and the caller has made sure that it is
// approved.
//
//nolint:contextcheck // a set-up outlives the call that begins it
func (l *Library) begin(ctx context.Context, at worktrees.Place, p launch.Project) error {
	l.mu.Lock()
	w := l.ofLocked(at.ID)
	if w.cancel != nil || l.closed {
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return refusal.ErrClosed
		}
		return &refusal.Error{Code: refusedRunning}
	}
	life, cancel := context.WithCancel(l.life)
	port, ports := w.setup.Port, w.setup.Ports
	w.setup = Setup{State: Running, Commands: p.Setup, Port: port, Ports: ports, Started: &record.Time{Time: time.Now()}}
	w.output, w.early, w.cancel, w.ended = &output{}, false, cancel, make(chan struct{})
	noPorts := l.reserveLocked(w, p.Ports)
	w.tellLocked()
	l.wg.Add(1)
	l.mu.Unlock()
	err := l.save(ctx, at.ID)
	go func() {
		defer l.wg.Done()
		defer cancel()
		fault := errors.Join(err, noPorts)
		if fault == nil {
			l.show(at)
			fault = l.run(life, at, w, p)
		}
		l.over(life, at, w, fault)
	}()
	return err
}

// failedError reports a command that has not ended well.
type failedError struct{ exit proxy.Exit }

func (e *failedError) Error() string { return "a command has failed" }

// exitOf returns how the command has ended that an error reports.
func exitOf(err error) (proxy.Exit, bool) {
	failed, is := errors.AsType[*failedError](err)
	if !is {
		return proxy.Exit{}, false
	}
	return failed.exit, true
}

// run brings the files and runs the commands.
func (l *Library) run(life context.Context, at worktrees.Place, w *work, p launch.Project) error {
	env := l.deps.Environ(life)
	got, err := project.Bring(life, project.Git{Processes: l.deps.Processes, Environ: env}, at.Repository, at.Path, p.Project)
	l.mu.Lock()
	w.setup.Copied, w.setup.Linked, w.setup.Notes = got.Copied, got.Linked, got.Notes
	port, ports := w.setup.Port, w.setup.Ports
	l.mu.Unlock()
	if err != nil {
		return err
	}
	env = slices.Concat(env, environ(at.Path, at.Repository, port, ports), []string{"NO_COLOR=1", "TERM=dumb"})
	for i, line := range p.Setup {
		l.mu.Lock()
		w.setup.At = i + 1
		l.mu.Unlock()
		l.logged(life, at.ID)
		l.show(at)
		if err := l.command(life, at, w.output, env, line); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command to its end. What it has left running in the background ends with it.
func (l *Library) command(ctx context.Context, at worktrees.Place, out *output, env []string, line string) error {
	fmt.Fprintf(out, "$ %s\n", line)
	cmd := shell(line)
	cmd.Env, cmd.Dir, cmd.Keeps, cmd.Merged, cmd.Grace, cmd.Purpose, cmd.For = env, at.Path, at.Path, true, grace, Purpose, at.ID
	ran, err := l.deps.Processes.Run(ctx, cmd, nil, func(r io.Reader) error {
		_, err := io.Copy(out, r)
		return err
	})
	if err != nil {
		return err
	}
	if ran.Signal != "" || ran.Code != 0 {
		return &failedError{ran.Exit}
	}
	return nil
}

// shell returns a shell command as a command of the system's shell.
func shell(line string) proxy.Command {
	if runtime.GOOS == "windows" {
		return proxy.Command{Path: "cmd.exe", Args: []string{"/d", "/s", "/c", line}}
	}
	return proxy.Command{Path: "/bin/sh", Args: []string{"-c", line}}
}

// over stores how a set-up has ended.
func (l *Library) over(life context.Context, at worktrees.Place, w *work, fault error) {
	l.mu.Lock()
	s := &w.setup
	s.Ended = &record.Time{Time: time.Now()}
	exit, exited := exitOf(fault)
	switch {
	case fault == nil:
		s.State = Done
	case life.Err() != nil:
		s.State = Stopped
	case exited:
		s.State, s.Signal = Failed, exit.Signal
		if s.Signal == "" {
			s.ExitCode = &exit.Code
		}
	default:
		s.State, s.Problem = Failed, l.sessions.Clean(problem(fault))
	}
	w.cancel, w.early = nil, false
	w.tellLocked()
	l.mu.Unlock()
	if l.life.Err() == nil { // otherwise the row says that it ran, and the next Load that it was cut off
		l.logged(life, at.ID)
	}
	close(w.ended)
	l.show(at)
}

// problem returns the text of an error for people.
func problem(err error) string {
	refused, is := errors.AsType[*refusal.Error](err)
	if is && refused.Code == refusedPorts {
		return fmt.Sprintf("no port from %s to %s is free", refused.Params["from"], refused.Params["to"])
	}
	return strings.TrimSpace(err.Error())
}
