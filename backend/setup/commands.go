package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"deskhand/backend/launch"
	"deskhand/backend/project"
	"deskhand/backend/refusal"
	"deskhand/backend/shells"
)

// ProjectReport is what a project says of a session's directory, and how its set-up goes.
type ProjectReport struct {
	Setup       *Setup              `json:"setup,omitempty" doc:"Absent where nothing was set up"`
	Worktree    bool                `json:"worktree" doc:"The session works in a worktree, which can be set up"`
	Source      string              `json:"source,omitempty" doc:"File of the project; absent where there is none"`
	Problem     string              `json:"problem,omitempty" doc:"Why the file cannot be read, with its line"`
	Unknown     []string            `json:"unknown,omitempty" doc:"Members of the file that are not known"`
	Executables []launch.Executable `json:"executables" doc:"Commands of the project: set-up, run and test, as far as there are any"`
	Open        string              `json:"open,omitempty" doc:"Address of the app, with the session's port"`
	Head        string              `json:"head,omitempty" doc:"What the set-up has written, or the beginning of it"`
	Tail        string              `json:"tail,omitempty" doc:"The end of what it has written, where something is cut out"`
	Cut         int64               `json:"cut,omitempty" doc:"Number of bytes between head and tail"`
}

// where is where the project of a session is, with its ports.
type where struct {
	launch.ProjectIn

	worktree    bool
	port, ports int
}

// Report describes the project of a session's directory.
func (l *Library) Report(ctx context.Context, session string) (ProjectReport, error) {
	s, err := l.sessions.Find(ctx, session)
	r := ProjectReport{Executables: []launch.Executable{}}
	if err != nil || !s.Local {
		return r, err
	}
	at, p, err := l.project(ctx, s)
	broken, is := errors.AsType[*project.BrokenError](err)
	switch {
	case is:
		r.Problem = broken.Error()
	case err != nil:
		return r, err
	}
	r.Worktree, r.Source, r.Unknown = at.worktree, p.Source, p.Unknown
	r.Executables = append(r.Executables, p.Executables...)
	r.Open = at.expand(p.Open)
	if tree, is := l.sessions.Worktrees.At(s.Cwd); is {
		r.Setup = l.Show(s.Cwd)
		l.mu.Lock()
		out := l.ofLocked(tree.ID).output
		l.mu.Unlock()
		k := out.keep(l.sessions.Clean)
		r.Head, r.Tail, r.Cut = k.Head, k.Tail, k.Cut
	}
	return r, nil
}

// project reads the project of a session's directory.
func (l *Library) project(ctx context.Context, s Session) (where, launch.Project, error) {
	at := where{}
	tree, is := l.sessions.Worktrees.At(s.Cwd)
	if is {
		at.ProjectIn, at.worktree = in(tree), true
		l.mu.Lock()
		w := l.ofLocked(tree.ID)
		at.port, at.ports = w.setup.Port, w.setup.Ports
		l.mu.Unlock()
	} else {
		top := topOf(s.Cwd)
		at.ProjectIn = launch.ProjectIn{Top: top, Repository: top, Main: top}
	}
	p, err := l.sessions.Gate.Project(ctx, at.ProjectIn)
	if !is && p.Source != "" {
		at.port, at.ports = p.Ports.From, p.Ports.Each // no worktree gets these
	}
	return at, p, err
}

// refusedFor returns the refusal for a project that cannot be read, and any other error unchanged.
func refusedFor(err error) error {
	if broken, is := errors.AsType[*project.BrokenError](err); is {
		return &refusal.Error{Code: refusedBroken, Params: map[string]string{"detail": broken.Error()}}
	}
	return err
}

// topOf returns the worktree that a directory lies in, as its files tell, or the directory.
func topOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

// expand puts the variables of a directory into the address of its app.
func (w where) expand(address string) string {
	list := map[string]string{}
	for _, v := range environ(w.Top, w.Repository, w.port, w.ports) {
		for i := range v {
			if v[i] == '=' {
				list[v[:i]] = v[i+1:]
				break
			}
		}
	}
	return os.Expand(address, func(name string) string { return list[name] })
}

// NewRun is a command of a project that a person wants to run.
type NewRun struct {
	Name string `json:"name" enum:"run,test" doc:"run: the app. test: its tests"`
	Hash string `json:"hash,omitempty" maxLength:"64" doc:"Of the command that was shown, which is approved by this"`
}

// Run runs a command of a project in a terminal of a session.
func (l *Library) Run(ctx context.Context, session string, r NewRun) (shells.Shell, error) {
	if err := l.sessions.Writable(); err != nil {
		return shells.Shell{}, err
	}
	s, err := l.sessions.Find(ctx, session)
	if err != nil {
		return shells.Shell{}, err
	}
	at, p, err := l.project(ctx, s)
	if err != nil {
		return shells.Shell{}, refusedFor(err)
	}
	line := map[string]string{launch.Run: p.Run, launch.Test: p.Test}[r.Name]
	if line == "" {
		return shells.Shell{}, &refusal.Error{Code: refusedCommand, Params: map[string]string{"name": r.Name}}
	}
	if err := l.approved(ctx, at.ProjectIn, p, r.Name, r.Hash); err != nil {
		return shells.Shell{}, err
	}
	return l.sessions.Shells.Run(ctx, session, shells.Command{
		Name: r.Name, Line: line, Directory: at.Top, Environ: environ(at.Top, at.Repository, at.port, at.ports),
	})
}
