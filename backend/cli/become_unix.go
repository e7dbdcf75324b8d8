//go:build !windows

package cli

import (
	"fmt"
	"os"
	"syscall"
)

const windowProgram = "deskhand-desktop"

// become is the other program from here on: no process of ours stays around to wait for it.
func become(program string, args []string) error {
	//nolint:gosec // the program beside ours, with the arguments we were given
	if err := syscall.Exec(program, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("%s cannot be started: %w", program, err)
	}
	return nil
}
