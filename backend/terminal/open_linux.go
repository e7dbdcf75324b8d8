package terminal

import (
	"errors"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openPair opens a terminal whose master ends a waiting read at once when closed. The master that pty.Open returns is blocking: a waiting
// read keeps the file open, and closing the file then hangs nobody up.
func openPair() (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, slave.Close())
	}
	return os.NewFile(uintptr(fd), blocking.Name()), slave, nil
}

// resize sets the size without File.Fd, which would make the file blocking.
func resize(master *os.File, size *pty.Winsize) error {
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	return errors.Join(err, failed)
}
