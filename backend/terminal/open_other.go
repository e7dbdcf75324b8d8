//go:build !linux

package terminal

import (
	"os"

	"github.com/creack/pty"
)

// openPair opens a terminal. Closing the master hangs the program up only once a waiting read returns; the signals that follow end the
// program all the same. (Not tested on macOS yet: whether kqueue supports the master of a terminal is not known.)
func openPair() (master, slave *os.File, err error) { return pty.Open() }

func resize(master *os.File, size *pty.Winsize) error { return pty.Setsize(master, size) }
