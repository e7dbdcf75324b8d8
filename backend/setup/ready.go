package setup

import (
	"context"
	"errors"
	"fmt"

	"deskhand/backend/launch"
	"deskhand/backend/project"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
	"deskhand/backend/worktrees"
)

// Start is a start of an agent.
type Start struct {
	Directory string // of the session

	// Ask has a person decide about executables, and Tell shows notices, as in launch.Start.
	Ask  func(list []launch.Executable, otherwise string) (answer string, ok bool)
	Tell func(notices []transcript.Notice) (ok bool)
}

// Ready returns once an agent may start in a directory: at once, unless the directory is in a worktree that is to be made ready. The error is
// that of ctx, with which a start is called off. The set-up goes on then.
func (l *Library) Ready(ctx context.Context, s Start) error {
	at, is := l.sessions.Worktrees.At(s.Directory)
	if !is {
		return nil
	}
	told := false
	for {
		l.mu.Lock()
		w := l.ofLocked(at.ID)
		state, early, asking, changed := w.setup.State, w.early, w.asking, w.changed
		begins := state == "" && !asking
		if begins {
			w.asking = true
		}
		l.mu.Unlock()
		switch {
		case early, state == Done, state == Without, state == None:
			return nil
		case begins:
			if err := l.first(ctx, at, s); err != nil {
				return err
			}
			continue
		case state == Failed && !told:
			told = true
			s.Tell([]transcript.Notice{l.failure(at.ID)})
		case state == Running:
			told = false
		}
		if err := l.wait(ctx, at, w, changed); err != nil {
			return err
		}
	}
}

// wait waits for a change of a set-up.
func (l *Library) wait(ctx context.Context, at worktrees.Place, w *work, changed <-chan struct{}) error {
	l.count(w, 1)
	l.show(at)
	defer l.count(w, -1)
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Library) count(w *work, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.waiting += n
}

// failure returns the notice about a set-up that has failed.
func (l *Library) failure(id string) transcript.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.ofLocked(id).setup
	n := transcript.Notice{Severity: "error", Title: "The set-up of the worktree has failed", Description: s.Problem}
	if s.Problem == "" && s.At > 0 && s.At <= len(s.Commands) {
		how := "was ended by " + s.Signal
		if s.ExitCode != nil {
			how = fmt.Sprintf("ended with %d", *s.ExitCode)
		}
		n.Description = fmt.Sprintf("%s %s", s.Commands[s.At-1], how)
	}
	return n
}

// in returns where the project of a worktree is read.
func in(at worktrees.Place) launch.ProjectIn {
	return launch.ProjectIn{Top: at.Path, Repository: at.Repository, Main: at.Main}
}

// first looks at the project of a worktree that nobody has looked at, has a person asked, and begins the set-up.
func (l *Library) first(ctx context.Context, at worktrees.Place, s Start) error {
	err := l.decide(ctx, at, s)
	l.mu.Lock()
	w := l.ofLocked(at.ID)
	w.asking = false
	w.tellLocked()
	l.mu.Unlock()
	return err
}

func (l *Library) decide(ctx context.Context, at worktrees.Place, s Start) error {
	once := ""
	for {
		p, err := l.sessions.Gate.Project(ctx, in(at))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return l.end(ctx, at, func(w *work) { w.setup = Setup{State: Failed, Problem: err.Error()} })
		case !p.Needs() && !project.Includes(at.Repository):
			return l.end(ctx, at, func(w *work) {
				w.setup = Setup{State: None}
				if p.Source != "" { // its commands are run by people, whom a port that is missing is told then
					_ = l.reserveLocked(w, p.Ports)
				}
			})
		}
		e, is := p.Executable(launch.SetUp)
		if !is || e.Approved || e.Hash == once {
			return l.begin(ctx, at, p)
		}
		switch answer, ok := s.Ask([]launch.Executable{e}, launch.Without); {
		case !ok:
			return errors.Join(context.Canceled, ctx.Err())
		case answer == launch.Without:
			return l.end(ctx, at, func(w *work) {
				w.setup = Setup{State: Without, Commands: p.Setup}
				_ = l.reserveLocked(w, p.Ports) // as above
			})
		}
		once = e.Hash // what has changed while a person read is asked about again
	}
}

// end changes the state of a set-up that does not run, and stores it.
func (l *Library) end(ctx context.Context, at worktrees.Place, change func(*work)) error {
	l.mu.Lock()
	w := l.ofLocked(at.ID)
	change(w)
	w.tellLocked()
	l.mu.Unlock()
	err := l.save(ctx, at.ID)
	l.show(at)
	return err
}

// The words of a person about a set-up.
const (
	Again   = "again"   // run it, for the first time or once more
	Stop    = "stop"    // end its commands
	Release = "release" // have the agents start, without it or while it runs
)

// Order is what a person wants of a set-up.
type Order struct {
	Do   string `json:"do" enum:"again,stop,release" doc:"again: run it, for the first time or once more. stop: end its commands. release: agents start without it, or while it runs"`
	Hash string `json:"hash,omitempty" maxLength:"64" doc:"Of the set-up that was shown, which is approved by this"`
}

// Obey does what a person wants of the set-up of a session's worktree.
func (l *Library) Obey(ctx context.Context, session string, o Order) error {
	if err := l.sessions.Writable(); err != nil {
		return err
	}
	at, err := l.find(ctx, session)
	if err != nil {
		return err
	}
	switch o.Do {
	case Again:
		return l.again(ctx, at, o.Hash)
	case Stop:
		return l.halt(at)
	default:
		return l.release(ctx, at)
	}
}

// find returns the worktree of a session.
func (l *Library) find(ctx context.Context, session string) (worktrees.Place, error) {
	s, err := l.sessions.Find(ctx, session)
	if err != nil {
		return worktrees.Place{}, err
	}
	at, is := l.sessions.Worktrees.At(s.Cwd)
	if !is || !s.Local {
		return worktrees.Place{}, &refusal.Error{Code: refusedNone}
	}
	return at, nil
}

func (l *Library) again(ctx context.Context, at worktrees.Place, hash string) error {
	p, err := l.sessions.Gate.Project(ctx, in(at))
	if broken, is := errors.AsType[*project.BrokenError](err); is {
		return &refusal.Error{Code: refusedBroken, Params: map[string]string{"detail": broken.Error()}}
	}
	if err != nil {
		return err
	}
	if !p.Needs() && !project.Includes(at.Repository) {
		return &refusal.Error{Code: refusedNothing}
	}
	if err := l.approved(ctx, in(at), p, launch.SetUp, hash); err != nil {
		return err
	}
	return l.begin(ctx, at, p)
}

// approved refuses an executable that nobody has approved; hash, unless "", is that of the content that a person approves now.
func (l *Library) approved(ctx context.Context, where launch.ProjectIn, p launch.Project, name, hash string) error {
	e, is := p.Executable(name)
	switch {
	case !is, e.Approved:
		return nil
	case hash != "":
		return l.sessions.Gate.ApproveProject(ctx, where, name, hash)
	}
	return &refusal.Error{Code: refusedUnapproved, Params: map[string]string{"name": name}}
}

// halt ends the commands of a set-up, and waits for their end.
func (l *Library) halt(at worktrees.Place) error {
	l.mu.Lock()
	w := l.ofLocked(at.ID)
	cancel, ended := w.cancel, w.ended
	l.mu.Unlock()
	if cancel == nil {
		return &refusal.Error{Code: refusedNotRunning}
	}
	cancel()
	<-ended
	return nil
}

// release has the agents of a worktree start.
func (l *Library) release(ctx context.Context, at worktrees.Place) error {
	l.mu.Lock()
	state := l.ofLocked(at.ID).setup.State
	l.mu.Unlock()
	if state == Stopped { // perhaps by a kill, in the middle of a file
		if err := project.Tidy(at.Path); err != nil {
			l.deps.Logger.Warn("what a cut off copy has left stays", "path", at.Path, "error", err)
		}
	}
	return l.end(ctx, at, func(w *work) {
		if state == Running && w.setup.State == Running {
			w.early = true
		} else if w.setup.State == Failed || w.setup.State == Stopped {
			w.setup.State = Without
		}
	})
}
