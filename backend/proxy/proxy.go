// Package proxy hides that an agent is an operating system process: others see an [Instance], a numbered log of the messages that the
// agent wrote and a way to write to the agent.
//
// Delivery. Every line of an agent becomes a message of the instance's log, with its bytes unchanged and a sequence number that rises by
// one. The log is bounded in bytes; replaying the log and reading new messages are the same call, [Instance.After]. A reader that reads
// is never skipped: while the log is full and a reader needs the oldest message, the agent's stdout is not read. A reader that takes
// nothing for a minute of that is dropped with [ErrLagging], and may come back for the messages still kept. So is a slow reader while the
// instance is removed, because a removal waits for no reader, except by [Instance.End]. A line that is not JSON becomes an
// "_adapter/invalid_stdout" notification, and the last message of a process is "_adapter/agent_exited". The response to a request is on
// the log before [Call.Done] is closed.
//
// Failure. The end of the process is noticed when it happens, even while a descendant holds its stdout open: descendants are killed, the
// rest of the pipes is read, waiting calls fail with an [ExitError], and only then is the instance exited. No process that an agent
// started outlives the agent, nor Deskhand: see [Watchdog] for the death of Deskhand by SIGKILL, and Config.Ledger for the death of both.
//
// An instance is addressed by its server_id within a [Set]. A server_id has a single process at a time: while the last process is being
// removed, callers that start or remove the server_id wait. Numbers go on over restarts of a server_id, and start at 1 again after its
// removal. Sets never share instances.
//
// [Survey] measures the use of the machine by the instances of some Sets, on Linux; elsewhere Survey lists the agents' own processes
// without numbers. [Set.Overview] lists everything that was started under one watchdog, so that no process of Deskhand is missing, and
// [Set.Running] reports changes.
package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// The errors of this package. Errors of starting a process come from the operating system and are wrapped by ErrSpawn.
var (
	ErrConflict    = errors.New("the server_id is in use") // Start of a running server_id, or of another agent's
	ErrUnknown     = errors.New("no such server_id")       // and no agent to start
	ErrSpawn       = errors.New("the agent could not be started")
	ErrExited      = errors.New("the agent's process has ended") // an *ExitError has the details
	ErrRemoved     = errors.New("the instance was removed")      // by Close or DELETE, while the call waited
	ErrDuplicateID = errors.New("a request with this id is in flight")
	ErrBacklog     = errors.New("the agent does not read its input")    // too many bytes wait to be written
	ErrInput       = errors.New("the agent's input is closed")          // the agent closed its stdin but lives
	ErrLagging     = errors.New("the reader took nothing for too long") // and was dropped; or the reader was slow when the instance was removed
	ErrMessage     = errors.New("not a JSON message")
	ErrStuck       = errors.New("processes are left that could not be killed")
	ErrClosed      = errors.New("the set is closed")
	ErrNoSignal    = errors.New("the agent cannot be sent a signal")          // on a system without signals; the agent can be ended
	ErrTerminal    = errors.New("terminals are not available on this system") // Windows has no terminals that this package can open
)

// Command says which program to run. Nothing is searched or added: Path is the program's file, Env the whole environment (to which only
// the variable is added by which the process's descendants are found).
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string

	// Keeps is a directory that nobody may remove or rename while the program or its descendants run; "" is none. Only Windows enforces
	// this.
	Keeps string

	// Terminal, unless nil, is the program's side of a pseudo-terminal, which the caller closes. The program leads a session with the
	// terminal as its controlling terminal, on all three streams: its instance has nothing on its log but its end, and takes no messages.
	// On Windows the start fails with ErrTerminal.
	Terminal *os.File

	Purpose string // why the program is started, for lists of running programs; "" = the Set's purpose
	For     string // on whose behalf, for a program of Run: any word

	// Merged puts the program's stderr into its stdout, in the order of the writes. For programs of Run only.
	Merged bool
	Grace  time.Duration // how long a program of Run has between SIGTERM and SIGKILL; 0 = no SIGTERM
}

// Config configures a Set. The zero value works, without protection against SIGKILL of Deskhand.
type Config struct {
	LogBytes int64    // bound of each instance's log; 0 means 32 MiB
	Watchdog []string // argv of a process that calls Watchdog(os.Stdin); nil means no watchdog
	Ledger   string   // file that names live agents for the next Open; "" means no ledger. Each Set needs its own file, unless Beside is set
	Beside   *Set     // share the watchdog and ledger of this Set, instead of the two fields above
	Logger   *slog.Logger
	Purpose  string // the purpose of the Set, for lists of running programs: any word

	// Spawn starts a process; nil means a process of the operating system. Tests start a process in memory, to run on a fake clock.
	Spawn func(Command) (Process, error)
}

// Phase is the phase of an instance's life.
type Phase string

// The phases. Starting ends when the process runs, and may include an installation.
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
	ExitCode   *int      // nil while the process runs, and when a signal ended the process
	Signal     string    // such as "SIGKILL"; empty when the process ended by itself
	StderrTail string    // the last lines of stderr, at most 8 KiB, valid UTF-8
	Mute       bool      // the process was ended because it lived on after the end of its output
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

// Is reports that every ExitError is an ErrExited.
func (e *ExitError) Is(target error) bool { return target == ErrExited }
