package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/terminal"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// The terminals of a person, beside a conversation: their own shell, in one of its directories. They belong to the program and not to a
// page: a page that is closed or loaded anew finds them as they were. They end with the program, with their session, and when somebody
// ends them. Nothing that goes over them is stored.

// ForPerson is what the shells of a person are started for, in the list of all that run.
const ForPerson = "person"

// Codes of what cannot be done about terminals.
const (
	refusedTerminal       = "terminal.unavailable"
	refusedEnded          = "terminal.ended"
	refusedBusy           = "terminal.busy"
	refusedShell          = "terminal.shell"
	refusedShellElsewhere = "terminal.elsewhere"
	refusedShellDirectory = "terminal.directory"
	refusedShells         = "terminal.too_many"
)

// Bounds of the terminals of one session.
const (
	mostShells = 12 // that run
	keptShells = 8  // that have ended by themselves, so that their last words can be read
)

// Shell is one terminal of a person.
type Shell struct {
	ID        string `json:"id" doc:"Of its terminal; terminals/{id} is about it"`
	Session   string `json:"session"`
	Name      string `json:"name" doc:"What the shell's program is called"`
	Number    int    `json:"number" doc:"Among those of the session, from 1 on"`
	Directory string `json:"directory" doc:"Where it was started"`
	Running   bool   `json:"running"`
	ExitCode  *int   `json:"exitCode,omitempty" doc:"Absent when a signal ended it"`
	Signal    string `json:"signal,omitempty"`
	StartedAt Time   `json:"startedAt"`
	EndedAt   *Time  `json:"endedAt,omitempty"`
}

// ShellList is the terminals of a session.
type ShellList struct {
	Items []Shell `json:"items" doc:"By their numbers"`
	Off   string  `json:"off,omitempty" doc:"Why none can be opened: terminal.elsewhere, terminal.unavailable"`
}

// NewShell is what a terminal is opened with.
type NewShell struct {
	Directory string `json:"directory,omitempty" maxLength:"4096" doc:"Absolute, in one of the session's directories; the first of these when it is left out"`
	Cols      int    `json:"cols,omitempty" minimum:"0" maximum:"1000"`
	Rows      int    `json:"rows,omitempty" minimum:"0" maximum:"1000"`
}

// shells are those of this run of the program.
type shells struct {
	mu  sync.Mutex // protects what is below, and the records
	all []*shell
}

type shell struct {
	record Shell
	tty    *terminal.Terminal // nil while it is being started
	end    context.CancelFunc // of one that is being started, too
	ended  chan struct{}      // closed when nothing of it runs any more
}

// add takes a place and a number for a terminal that is about to be started. It is refused where there are too many, and where the directory is
// closed. That is asked here: who closes one ends those that are here already.
func (s *shells) add(sh *shell, closed func(dir string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed(sh.record.Directory) {
		return worktrees.ErrWorking()
	}
	taken, running := map[int]bool{}, 0
	for _, other := range s.all {
		if other.record.Session == sh.record.Session {
			taken[other.record.Number] = true
			if other.record.Running {
				running++
			}
		}
	}
	if running >= mostShells {
		return &RefusedError{Code: refusedShells, Params: map[string]string{"most": fmt.Sprint(mostShells)}}
	}
	for sh.record.Number = 1; taken[sh.record.Number]; {
		sh.record.Number++
	}
	s.all = append(s.all, sh)
	return nil
}

func (s *shells) remove(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *shell) bool { return other == sh })
}

// of gives those of a session.
func (s *shells) of(session string) []Shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Shell{}
	for _, sh := range s.all {
		if sh.record.Session == session && sh.tty != nil {
			list = append(list, sh.record)
		}
	}
	slices.SortFunc(list, func(a, b Shell) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// get is one that runs or has run; nil where there is none of that id.
func (s *shells) get(id string) *shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.all {
		if sh.record.ID == id && sh.tty != nil {
			return sh
		}
	}
	return nil
}

// endIn ends the terminals that were started in a directory, and those that are about to start there. Each channel is closed when nothing of
// its terminal is left.
func (s *shells) endIn(path string) (ends []<-chan struct{}) {
	at := host.Resolve(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.all {
		if host.Within(at, host.Resolve(sh.record.Directory)) && sh.record.Running {
			sh.end()
			ends = append(ends, sh.ended)
		}
	}
	return ends
}

// opened notes that it runs.
func (s *shells) opened(sh *shell, tty *terminal.Terminal) Shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.tty = tty
	return sh.record
}

// over notes how it ended. Of those that have ended the oldest are forgotten.
func (s *shells) over(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := sh.tty.Status()
	sh.record.Running, sh.record.ExitCode, sh.record.Signal, sh.record.EndedAt = false, status.ExitCode, status.Signal, &Time{Time: time.Now()}
	var past []*shell
	for _, other := range s.all {
		if other.record.Session == sh.record.Session && !other.record.Running {
			past = append(past, other)
		}
	}
	if over := len(past) - keptShells; over > 0 {
		s.all = slices.DeleteFunc(s.all, func(one *shell) bool { return slices.Contains(past[:over], one) })
	}
}

// Shells lists the terminals of a session.
func (c *Client) Shells(ctx context.Context, session string) (ShellList, error) {
	v, err := c.conversation(ctx, session)
	if err != nil {
		return ShellList{}, err
	}
	list := ShellList{Items: c.shells.of(session)}
	switch {
	case v.host().Directories == nil:
		list.Off = refusedShellElsewhere
	case !terminal.Works:
		list.Off = refusedTerminal
	}
	return list, nil
}

// OpenShell starts the shell of the person on a terminal.
func (c *Client) OpenShell(ctx context.Context, session string, n NewShell) (Shell, error) {
	v, err := c.conversation(ctx, session)
	if err != nil {
		return Shell{}, err
	}
	at := v.host()
	if at.Directories == nil {
		return Shell{}, &RefusedError{Code: refusedShellElsewhere}
	}
	dir, err := shellDirectory(at.Files, v.look(), n.Directory)
	if err != nil {
		return Shell{}, err
	}
	cmd, err := c.cfg.Agents.PersonShell(ctx)
	if err != nil {
		return Shell{}, &RefusedError{Code: refusedShell, Params: map[string]string{"detail": err.Error()}}
	}
	cmd.Dir, cmd.Purpose = dir, ForPerson
	return c.startShell(ctx, session, cmd, terminal.Size{Cols: n.Cols, Rows: n.Rows})
}

// shellDirectory is where a shell of a session starts.
func shellDirectory(files *host.Files, s Session, wanted string) (string, error) {
	if wanted == "" || wanted == s.Cwd {
		return workspace.Directory(s.Cwd)
	}
	if files == nil || !filepath.IsAbs(wanted) {
		return "", bad(refusedShellDirectory, "path", wanted)
	}
	dir, err := files.Directory(append([]string{s.Cwd}, s.Directories...), wanted)
	if err != nil {
		return "", bad(refusedShellDirectory, "path", wanted, "detail", err.Error())
	}
	return dir, nil
}

func (c *Client) startShell(ctx context.Context, session string, cmd proxy.Command, size terminal.Size) (Shell, error) {
	id := uuid.Must(uuid.NewV7()).String()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the call
	sh := &shell{end: end, ended: make(chan struct{}), record: Shell{
		ID: id, Session: session, Name: filepath.Base(cmd.Path), Directory: cmd.Dir, Running: true, StartedAt: Time{Time: time.Now()},
	}}
	if err := c.shells.add(sh, c.worktrees.Closed); err != nil {
		end()
		return Shell{}, err
	}
	// Nobody would know of one whose start was given up in the middle.
	tty, err := terminal.Open(context.WithoutCancel(ctx), size, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
		cmd.Terminal = tty
		return c.cfg.Proxy.Start(ctx, session+"."+id, sh.record.Name, cmd)
	})
	if err != nil {
		end()
		c.shells.remove(sh)
		close(sh.ended)
		return Shell{}, refusedStart(err)
	}
	forget := context.AfterFunc(c.ctx, end) //nolint:contextcheck // and not us
	opened := c.shells.opened(sh, tty)
	attended := c.background(func() {
		defer close(sh.ended)
		defer end()
		defer forget()
		c.attend(life, sh)
	})
	if !attended {
		forget()
		end()
		c.shells.remove(sh)
		defer close(sh.ended)
		return Shell{}, errors.Join(ErrClosed, tty.Close())
	}
	if _, err := c.conversation(ctx, session); errors.Is(err, ErrNotFound) { // it was deleted meanwhile, by who did not see this one
		end()
		c.shells.remove(sh)
		return Shell{}, err
	}
	return opened, nil
}

func refusedStart(err error) error {
	switch {
	case errors.Is(err, proxy.ErrTerminal):
		return &RefusedError{Code: refusedTerminal}
	case errors.Is(err, proxy.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return &RefusedError{Code: refusedShell, Params: map[string]string{"detail": err.Error()}}
}

// attend waits for the end of a shell, or ends it when life does.
func (c *Client) attend(life context.Context, sh *shell) {
	select {
	case <-sh.tty.Ended():
	case <-life.Done():
	}
	if err := sh.tty.Close(); err != nil {
		c.cfg.Logger.Warn("something of a terminal may be left", "session", sh.record.Session, "error", err)
	}
	c.shells.over(sh)
}

// endShells ends those of a session that is no more. It does not wait for that.
func (c *Client) endShells(session string) {
	c.shells.mu.Lock()
	defer c.shells.mu.Unlock()
	c.shells.all = slices.DeleteFunc(c.shells.all, func(sh *shell) bool {
		mine := sh.record.Session == session && sh.tty != nil
		if mine {
			sh.end()
		}
		return mine
	})
}

// terminal finds a terminal: of a person's shell, or of a login.
func (c *Client) terminal(id string) (*terminal.Terminal, error) {
	if sh := c.shells.get(id); sh != nil {
		return sh.tty, nil
	}
	a, err := c.logins.terminal(id)
	if err != nil {
		return nil, err
	}
	return a.tty, nil
}

// TerminalOutput is a part of what the program on a terminal wrote.
type TerminalOutput struct {
	From     int64  `json:"from" doc:"The number of the first byte; later than asked for when those before are no longer kept"`
	Data     []byte `json:"data" doc:"In base64: a character may be cut in two"`
	Next     int64  `json:"next" doc:"What to pass as after next time"`
	Seen     int64  `json:"seen" doc:"Up to this byte somebody has had it before: what asks the screen something there has its answer, and a screen that shows it anew gives no other"`
	Exited   bool   `json:"exited,omitempty" doc:"Nothing will follow"`
	ExitCode *int   `json:"exitCode,omitempty" doc:"Absent when a signal ended it"`
	Signal   string `json:"signal,omitempty"`
}

// ReadTerminal gives what was written after a number of bytes, as soon as there is something, or the wait is over.
func (c *Client) ReadTerminal(ctx context.Context, id string, after int64, wait time.Duration) (TerminalOutput, error) {
	tty, err := c.terminal(id)
	if err != nil {
		return TerminalOutput{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(wait, 0), longestWait))
	defer cancel()
	out := tty.After(ctx, after)
	if out.Data == nil {
		out.Data = []byte{}
	}
	return TerminalOutput(out), nil
}

// TypeInTerminal writes what a person types.
func (c *Client) TypeInTerminal(id string, data []byte) error {
	tty, err := c.terminal(id)
	if err != nil {
		return err
	}
	return refusedInput(tty.Type(data))
}

// ResizeTerminal tells the program the size of the window.
func (c *Client) ResizeTerminal(id string, size terminal.Size) error {
	tty, err := c.terminal(id)
	if err != nil {
		return err
	}
	return refusedInput(tty.Resize(size))
}

// EndTerminal ends the program on a terminal, with the login that it is for, and returns when nothing of it runs. A person's shell is
// forgotten with it.
func (c *Client) EndTerminal(ctx context.Context, id string) error {
	sh := c.shells.get(id)
	if sh == nil {
		a, err := c.logins.terminal(id)
		if err != nil {
			return err
		}
		return c.cancelLogin(ctx, a)
	}
	c.shells.remove(sh)
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
		return &RefusedError{Code: refusedEnded}
	case errors.Is(err, terminal.ErrBusy):
		return &RefusedError{Code: refusedBusy}
	}
	return err
}
