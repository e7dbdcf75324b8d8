//go:build unix

package proxy

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// diesWithUs says whether the system ends agents when Deskhand dies. Unix does not.
const diesWithUs = false

// agentAttributes puts an agent into a session of its own, and so into a process group: no terminal can stop the agent, Ctrl-C reaches
// Deskhand alone, and descendants that change their group stay in the session.
func agentAttributes() *syscall.SysProcAttr { return ownSession() }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals keeps the watchdog alive through the signals that end Deskhand, because the watchdog has to end last.
func ignoreSignals() { signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM) }

// keep holds nothing: the removal of an agent searches the environment of all processes for the agent's mark instead.
func keep(string) *os.File { return nil }

// isBusy reports whether a program cannot be run because it is open for writing.
func isBusy(err error) bool { return errors.Is(err, unix.ETXTBSY) }

func signalName(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return ""
}

// adopt makes the started process the head of a family.
func adopt(p *os.Process, mark string) (ident, *family, error) {
	info, err := inspect(p.Pid)
	if err != nil {
		return ident{}, nil, err
	}
	f := newFamily(mark, true, info.ident)
	if bornInOrder {
		f.since = info.Start
	}
	return info.ident, f, nil
}

// readNow reads the content of a pipe, and treats an empty pipe as ended.
func readNow(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, failed = unix.Read(int(fd), p)
		return !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil:
		return 0, err
	case errors.Is(failed, unix.EAGAIN), failed == nil && n == 0:
		return 0, io.EOF
	case failed != nil:
		return 0, failed
	default:
		return n, nil
	}
}
