// Package proxy hides that an agent is an operating system process: what others see is an [Instance], a numbered log of the
// messages that the agent wrote and a way to write to it.
//
// Delivery. Every line that an agent writes becomes one message of the instance's log, with its bytes unchanged and a sequence
// number that rises by one. The log is bounded in bytes; replaying it and reading on live are the same call, [Instance.After]. A
// reader that reads is never skipped: while the log is full and a reader needs the oldest message, the agent's stdout is left
// waiting. A reader that takes nothing for a minute of that is dropped with [ErrLagging], and may come back for what is still held. So is
// one that lags while the instance is removed, since nobody waits for readers then, unless it is by [Instance.End].
// What is not JSON is on the log as an "_adapter/invalid_stdout" notification, and the last message of a process is
// "_adapter/agent_exited". The response to a request is on the log before [Call.Done] is closed.
//
// Failure. The end of the process is noticed when it happens, even while a descendant holds its stdout open: descendants are killed,
// what the pipes still hold is read, waiting calls fail with an [ExitError], and only then is the instance exited. No process that
// an agent started outlives it, nor us: see [Watchdog] for our own death by SIGKILL, and Config.Ledger for the death of both.
//
// An instance is addressed by its server_id within a [Set]. A server_id has one process at a time: while the last one is being
// removed, who starts or removes it waits for that. Numbers go on over restarts of a server_id, and start at 1 again once it was
// removed. Sets never share instances.
//
// [Survey] tells what the instances of some Sets take of the machine, on Linux; elsewhere it knows the agents' own processes and no
// numbers. [Set.Overview] tells of everything that was started under one watchdog, so that nothing that we cause is missing from it, and
// [Set.Running] when that changes.
package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Errors of this package. Those of starting a process come from the operating system and are wrapped by ErrSpawn.
var (
	ErrConflict    = errors.New("the server_id is in use")                     // Start of a live one, or another agent's
	ErrUnknown     = errors.New("no such server_id")                           // and no agent to start it with
	ErrSpawn       = errors.New("the agent could not be started")              //
	ErrExited      = errors.New("the agent's process has ended")               // an *ExitError has the details
	ErrRemoved     = errors.New("the instance was removed")                    // by Close or DELETE, while the call waited
	ErrDuplicateID = errors.New("a request with this id is in flight")         //
	ErrBacklog     = errors.New("the agent does not read its input")           // too many bytes wait to be written
	ErrInput       = errors.New("the agent's input is closed")                 // it closed its stdin but lives
	ErrLagging     = errors.New("the reader took nothing for too long")        // and was dropped; or it lagged when the instance was removed
	ErrMessage     = errors.New("not a JSON message")                          //
	ErrStuck       = errors.New("processes are left that could not be killed") //
	ErrClosed      = errors.New("the set is closed")                           //
	ErrNoSignal    = errors.New("the agent cannot be sent a signal")           // where there is no way to; it can be ended
	ErrTerminal    = errors.New("terminals are not available on this system")  // Windows has none that we can open
)

// Command is what to run. Nothing is looked up or added: Path is the program's file, Env the whole environment (to which one
// variable is added, by which the process's descendants are found).
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string

	// Keeps is a directory that nobody may remove or rename while the program runs, or what it has started; "" is none. Windows alone sees to it.
	Keeps string

	// Terminal, when there is one, is the program's side of a pseudo-terminal, which stays the caller's to close. The program leads a
	// session with it as its controlling terminal, on all three streams: its instance has nothing on its log but its end, and takes no
	// messages. There are none on Windows: the start fails with ErrTerminal.
	Terminal *os.File

	Purpose string // what it is started for, for who lists what runs; that of the Set when empty
	For     string // and for whom, of a program that is run to its end: any word

	// Merged puts what the program writes on stderr into its stdout, in the order in which it was written. Of a program that is run to
	// its end only.
	Merged bool
	Grace  time.Duration // how long a program that is run has between SIGTERM and SIGKILL when its run is to end; 0 = it gets no SIGTERM
}

// Config is the setting of a Set. Its zero value works, without protection against our own SIGKILL.
type Config struct {
	LogBytes int64    // bound of each instance's log; 0 means 32 MiB
	Watchdog []string // argv of a process that calls Watchdog(os.Stdin); nil means none
	Ledger   string   // file that names live agents for the next Open; "" means none. One file per Set, unless Beside is set
	Beside   *Set     // share the watchdog and ledger of this Set, instead of the two fields above
	Logger   *slog.Logger
	Purpose  string // what the Set is for, for who lists what runs: any word

	// Spawn starts a process; nil means one of the operating system. Tests put one in memory in its place, to run on a fake clock.
	Spawn func(Command) (Process, error)
}

// Phase is where an instance is in its life.
type Phase string

// The phases. Starting ends when the process runs; until then there may be an installation.
const (
	Starting Phase = "starting"
	Running  Phase = "running"
	Exited   Phase = "exited"
)

// Status is a snapshot of an instance.
type Status struct {
	ServerID   string
	Agent      string
	Phase      Phase
	PID        int
	ExitCode   *int      // nil while it runs, and when a signal ended it
	Signal     string    // "SIGKILL"; empty when it ended by itself
	StderrTail string    // the last lines of stderr, at most 8 KiB, valid UTF-8
	Mute       bool      // it was ended since it lived on after its output had ended
	CreatedAt  time.Time // when this process was started
	ExitedAt   time.Time
}

// ExitError is the failure of calls on an instance whose process has ended.
type ExitError struct{ Status Status }

func (e *ExitError) Error() string {
	how := "by itself"
	switch {
	case e.Status.Signal != "":
		how = "by " + e.Status.Signal
	case e.Status.ExitCode != nil:
		how = fmt.Sprintf("with code %d", *e.Status.ExitCode)
	}
	if e.Status.Mute {
		how += ", ended since it lived on after its output had ended"
	}
	return fmt.Sprintf("the agent's process ended %s", how)
}

// Is makes every ExitError an ErrExited.
func (e *ExitError) Is(target error) bool { return target == ErrExited }
