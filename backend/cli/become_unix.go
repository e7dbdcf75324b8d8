//go:build !windows

package cli

import (
	"fmt"
	"os"
	"syscall"
)

const windowProgram = "deskhand-desktop"

// become replaces this process by the program, so that no process of ours waits for its end.
func become(program string, args []string) error {
	//nolint:gosec // the program beside ours, with the arguments we were given
	if err := syscall.Exec(program, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("%s cannot be started: %w", program, err)
	}
	return nil
}
