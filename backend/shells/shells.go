// Package shells runs the terminals of a person: their own shell, in one of the directories of a session. The package also gives surfaces the
// terminals of logins, under the same calls.
//
// The terminals belong to the program and not to a page: a page that is closed or loaded anew finds them as they were. They end with the
// program, with their session, and when somebody ends them. Nothing of them is stored.
package shells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/terminal"
	"deskhand/backend/workspace"
)

// ForPerson is the purpose of a person's shell, in the list of all processes.
const ForPerson = "person"

// Unavailable is the code of the refusal on a system without terminals.
const Unavailable = "terminal.unavailable"

// The codes of further refusals about terminals.
const (
	refusedEnded     = "terminal.ended"
	refusedBusy      = "terminal.busy"
	refusedShell     = "terminal.shell"
	refusedElsewhere = "terminal.elsewhere"
	refusedDirectory = "terminal.directory"
	refusedTooMany   = "terminal.too_many"
)

// Limits of the terminals of one session.
const (
	mostRunning = 12
	keptEnded   = 8 // so that their last output can be read
)

// longestRead limits how long Read waits.
const longestRead = 25 * time.Second

// Shell is a terminal of a person.
type Shell struct {
	ID        string       `json:"id" doc:"Id of the terminal, for terminals/{id}"`
	Session   string       `json:"session"`
	Name      string       `json:"name" doc:"Name of the shell's program, or of the command that it was opened for"`
	Number    int          `json:"number" doc:"Number among the terminals of the session, from 1 on"`
	Directory string       `json:"directory" doc:"Directory in which the shell was started"`
	Running   bool         `json:"running"`
	ExitCode  *int         `json:"exitCode,omitempty" doc:"Absent when a signal ended the shell"`
	Signal    string       `json:"signal,omitempty"`
	StartedAt record.Time  `json:"startedAt"`
	EndedAt   *record.Time `json:"endedAt,omitempty"`
}

// ShellList is the terminals of a session.
type ShellList struct {
	Items []Shell `json:"items" doc:"By their numbers"`
	Off   string  `json:"off,omitempty" doc:"Why no terminal can be opened: terminal.elsewhere, terminal.unavailable"`
}

// NewShell is what a terminal is opened with.
type NewShell struct {
	Directory string `json:"directory,omitempty" maxLength:"4096" doc:"Absolute path in one of the session's directories; by default the first of these"`
	Cols      int    `json:"cols,omitempty" minimum:"0" maximum:"1000"`
	Rows      int    `json:"rows,omitempty" minimum:"0" maximum:"1000"`
}

// TerminalOutput is a part of the output of the program on a terminal.
type TerminalOutput struct {
	From     int64  `json:"from" doc:"Number of the first byte; later than asked for when the bytes before are no longer kept"`
	Data     []byte `json:"data" doc:"In base64: a character may be cut in two"`
	Next     int64  `json:"next" doc:"Value of after for the next call"`
	Seen     int64  `json:"seen" doc:"Up to this byte the output was read before: a question to the screen there has its answer, and a screen that shows the output anew gives no second answer"`
	Exited   bool   `json:"exited,omitempty" doc:"Nothing will follow"`
	ExitCode *int   `json:"exitCode,omitempty" doc:"Absent when a signal ended the program"`
	Signal   string `json:"signal,omitempty"`
}

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Proxy       *proxy.Set
	Logger      *slog.Logger
	Files       *host.Files                                           // of this machine; nil = shells start only where their session does
	PersonShell func(ctx context.Context) (proxy.Command, error)      // the person's own shell
	Find        func(ctx context.Context, id string) (Session, error) // finds a session that is not deleted
	Environ     func(dir string) []string                             // further variables of a shell in a directory
	Refuse      func(dir string) error                                // refuses a directory that is being removed
	Login       func(id string) (Login, error)                        // finds the terminal of a login
}

// Session is the part of a session that its terminals depend on.
type Session struct {
	Cwd         string
	Directories []string
	Local       bool // runs on this machine
}

// Login is the terminal of a login.
type Login struct {
	Terminal *terminal.Terminal
	End      func(ctx context.Context) error // ends the login, and waits until nothing of it runs
}

// Library is the terminals of this run of the program. A Library may be used by any goroutine.
type Library struct {
	deps Deps
	life context.Context //nolint:containedctx // the life of the terminals, which outlive every call
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex // protects the fields below, and the records
	all    []*shell
	closed bool
}

type shell struct {
	record Shell
	tty    *terminal.Terminal // nil while the shell starts
	end    context.CancelFunc // works while the shell starts, too
	ended  chan struct{}      // closed when nothing of the terminal runs any more
}

// New returns a Library without terminals.
func New(ctx context.Context, deps Deps) *Library {
	l := &Library{deps: deps}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Close ends all terminals, and waits for them.
func (l *Library) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.wg.Wait()
}

// add adds a terminal that is about to start, with a free number. A directory that is being removed is refused here, because EndIn ends the
// terminals that were added before.
func (l *Library) add(sh *shell) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.deps.Refuse(sh.record.Directory); err != nil {
		return err
	}
	taken, running := map[int]bool{}, 0
	for _, other := range l.all {
		if other.record.Session == sh.record.Session {
			taken[other.record.Number] = true
			if other.record.Running {
				running++
			}
		}
	}
	if running >= mostRunning {
		return &refusal.Error{Code: refusedTooMany, Params: map[string]string{"most": fmt.Sprint(mostRunning)}}
	}
	for sh.record.Number = 1; taken[sh.record.Number]; {
		sh.record.Number++
	}
	l.all = append(l.all, sh)
	return nil
}

func (l *Library) remove(sh *shell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(other *shell) bool { return other == sh })
}

// get returns a terminal that runs or has run; nil when no terminal has the id.
func (l *Library) get(id string) *shell {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range l.all {
		if sh.record.ID == id && sh.tty != nil {
			return sh
		}
	}
	return nil
}

// List returns the terminals of a session.
func (l *Library) List(ctx context.Context, session string) (ShellList, error) {
	s, err := l.deps.Find(ctx, session)
	if err != nil {
		return ShellList{}, err
	}
	list := ShellList{Items: l.of(session)}
	switch {
	case !s.Local:
		list.Off = refusedElsewhere
	case !terminal.Works:
		list.Off = Unavailable
	}
	return list, nil
}

func (l *Library) of(session string) []Shell {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []Shell{}
	for _, sh := range l.all {
		if sh.record.Session == session && sh.tty != nil {
			list = append(list, sh.record)
		}
	}
	slices.SortFunc(list, func(a, b Shell) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Open starts the shell of the person on a terminal.
func (l *Library) Open(ctx context.Context, session string, n NewShell) (Shell, error) {
	s, err := l.deps.Find(ctx, session)
	if err != nil {
		return Shell{}, err
	}
	if !s.Local {
		return Shell{}, &refusal.Error{Code: refusedElsewhere}
	}
	dir, err := l.directory(s, n.Directory)
	if err != nil {
		return Shell{}, err
	}
	cmd, err := l.deps.PersonShell(ctx)
	if err != nil {
		return Shell{}, &refusal.Error{Code: refusedShell, Params: map[string]string{"detail": err.Error()}}
	}
	cmd.Dir, cmd.Purpose = dir, ForPerson
	cmd.Env = append(cmd.Env, l.deps.Environ(dir)...)
	return l.start(ctx, session, filepath.Base(cmd.Path), cmd, terminal.Size{Cols: n.Cols, Rows: n.Rows})
}

// Command is a shell command that runs on a terminal of its own.
type Command struct {
	Name      string // of the terminal
	Line      string
	Directory string
	Environ   []string // further variables
}

// Run runs a command with the shell of the person on a terminal. The caller has made sure that a person wants it to run.
func (l *Library) Run(ctx context.Context, session string, c Command) (Shell, error) {
	s, err := l.deps.Find(ctx, session)
	if err != nil {
		return Shell{}, err
	}
	if !s.Local {
		return Shell{}, &refusal.Error{Code: refusedElsewhere}
	}
	dir, err := workspace.Directory(c.Directory)
	if err != nil {
		return Shell{}, err
	}
	cmd, err := l.deps.PersonShell(ctx)
	if err != nil {
		return Shell{}, &refusal.Error{Code: refusedShell, Params: map[string]string{"detail": err.Error()}}
	}
	cmd.Args, cmd.Dir, cmd.Purpose = append(cmd.Args, "-c", c.Line), dir, ForPerson
	cmd.Env = append(cmd.Env, c.Environ...)
	return l.start(ctx, session, c.Name, cmd, terminal.Size{})
}

// directory returns the directory in which a shell of a session starts.
func (l *Library) directory(s Session, wanted string) (string, error) {
	if wanted == "" || wanted == s.Cwd {
		return workspace.Directory(s.Cwd)
	}
	if l.deps.Files == nil || !filepath.IsAbs(wanted) {
		return "", refusal.Bad(refusedDirectory, "path", wanted)
	}
	dir, err := l.deps.Files.Directory(append([]string{s.Cwd}, s.Directories...), wanted)
	if err != nil {
		return "", refusal.Bad(refusedDirectory, "path", wanted, "detail", err.Error())
	}
	return dir, nil
}

func (l *Library) start(ctx context.Context, session, name string, cmd proxy.Command, size terminal.Size) (Shell, error) {
	id := uuid.Must(uuid.NewV7()).String()
	life, end := context.WithCancel(l.life)
	sh := &shell{end: end, ended: make(chan struct{}), record: Shell{
		ID: id, Session: session, Name: name, Directory: cmd.Dir, Running: true, StartedAt: record.Time{Time: time.Now()},
	}}
	if err := l.add(sh); err != nil {
		end()
		return Shell{}, err
	}
	// A start that its caller gave up halfway would leave a terminal that nobody knows of.
	tty, err := terminal.Open(context.WithoutCancel(ctx), size, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
		cmd.Terminal = tty
		return l.deps.Proxy.Start(ctx, session+"."+id, sh.record.Name, cmd)
	})
	if err != nil {
		end()
		l.remove(sh)
		close(sh.ended)
		return Shell{}, refusedStart(err)
	}
	opened, attended := l.attend(life, sh, tty) //nolint:contextcheck // a terminal outlives the call
	if !attended {
		end()
		l.remove(sh)
		defer close(sh.ended)
		return Shell{}, errors.Join(refusal.ErrClosed, tty.Close())
	}
	if _, err := l.deps.Find(ctx, session); errors.Is(err, refusal.ErrNotFound) { // the session was deleted before the terminal was there to end
		end()
		l.remove(sh)
		return Shell{}, err
	}
	return opened, nil
}

func refusedStart(err error) error {
	switch {
	case errors.Is(err, proxy.ErrTerminal):
		return &refusal.Error{Code: Unavailable}
	case errors.Is(err, proxy.ErrClosed):
		return fmt.Errorf("%w: %w", refusal.ErrClosed, err)
	}
	return &refusal.Error{Code: refusedShell, Params: map[string]string{"detail": err.Error()}}
}

// attend starts the goroutine that waits for the end of a shell, or ends the shell when life ends. A closed Library starts none.
func (l *Library) attend(life context.Context, sh *shell, tty *terminal.Terminal) (Shell, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Shell{}, false
	}
	sh.tty = tty
	l.wg.Go(func() {
		defer close(sh.ended)
		defer sh.end()
		select {
		case <-tty.Ended():
		case <-life.Done():
		}
		if err := tty.Close(); err != nil {
			l.deps.Logger.Warn("something of a terminal may be left", "session", sh.record.Session, "error", err)
		}
		l.over(sh)
	})
	return sh.record, true
}

// over notes how a shell ended. The oldest ended terminals over the limit are forgotten.
func (l *Library) over(sh *shell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := sh.tty.Status()
	sh.record.Running, sh.record.ExitCode, sh.record.Signal, sh.record.EndedAt = false, status.ExitCode, status.Signal, &record.Time{Time: time.Now()}
	var past []*shell
	for _, other := range l.all {
		if other.record.Session == sh.record.Session && !other.record.Running {
			past = append(past, other)
		}
	}
	if over := len(past) - keptEnded; over > 0 {
		l.all = slices.DeleteFunc(l.all, func(other *shell) bool { return slices.Contains(past[:over], other) })
	}
}

// EndOf ends and forgets the terminals of a deleted session, without waiting for their ends.
func (l *Library) EndOf(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(sh *shell) bool {
		mine := sh.record.Session == session && sh.tty != nil
		if mine {
			sh.end()
		}
		return mine
	})
}

// EndIn ends the terminals that were started in a directory, and those that are about to start there. Each channel is closed when nothing of
// its terminal is left.
func (l *Library) EndIn(path string) (ends []<-chan struct{}) {
	at := host.Resolve(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range l.all {
		if host.Within(at, host.Resolve(sh.record.Directory)) && sh.record.Running {
			sh.end()
			ends = append(ends, sh.ended)
		}
	}
	return ends
}

// find finds a terminal of a person or of a login. sh is nil for a login's.
func (l *Library) find(id string) (t Login, sh *shell, err error) {
	if sh = l.get(id); sh != nil {
		return Login{Terminal: sh.tty}, sh, nil
	}
	t, err = l.deps.Login(id)
	return t, nil, err
}

// Read returns the output after a number of bytes, as soon as there is some, or when the wait is over.
func (l *Library) Read(ctx context.Context, id string, after int64, wait time.Duration) (TerminalOutput, error) {
	t, _, err := l.find(id)
	if err != nil {
		return TerminalOutput{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(wait, 0), longestRead))
	defer cancel()
	out := t.Terminal.After(ctx, after)
	if out.Data == nil {
		out.Data = []byte{}
	}
	return TerminalOutput(out), nil
}

// Type writes the input of a person to a terminal.
func (l *Library) Type(id string, data []byte) error {
	t, _, err := l.find(id)
	if err != nil {
		return err
	}
	return refusedInput(t.Terminal.Type(data))
}

// Resize sets the size of a terminal's window.
func (l *Library) Resize(id string, size terminal.Size) error {
	t, _, err := l.find(id)
	if err != nil {
		return err
	}
	return refusedInput(t.Terminal.Resize(size))
}

// End ends the program on a terminal, with the login that uses the terminal, and returns when nothing of the program runs. A terminal of a
// person is forgotten.
func (l *Library) End(ctx context.Context, id string) error {
	t, sh, err := l.find(id)
	if err != nil {
		return err
	}
	if sh == nil {
		return t.End(ctx)
	}
	l.remove(sh)
	sh.end()
	select {
	case <-sh.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func refusedInput(err error) error {
	switch {
	case errors.Is(err, terminal.ErrEnded):
		return &refusal.Error{Code: refusedEnded}
	case errors.Is(err, terminal.ErrBusy):
		return &refusal.Error{Code: refusedBusy}
	}
	return err
}
