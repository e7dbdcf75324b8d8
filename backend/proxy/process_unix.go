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

// diesWithUs says whether the system ends agents when we die. Unix does not.
const diesWithUs = false

// agentAttributes puts an agent into a session of its own, and so into a process group: it has no terminal to stop on, Ctrl-C
// reaches us alone, and descendants that change their group are still of its session.
func agentAttributes() *syscall.SysProcAttr { return ownSession() }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals lets the watchdog live through what ends us: it has to be the last.
func ignoreSignals() { signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM) }

// keep holds nothing: who removes agents looks for their mark in the environment of what runs.
func keep(string) *os.File { return nil }

// isBusy tells that a program cannot be run because somebody has it open for writing.
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

// readNow reads what a pipe holds, and takes an empty one for ended.
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
