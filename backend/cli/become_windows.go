package cli

import (
	"fmt"
	"os"
	"os/exec"
)

const windowProgram = "deskhand-desktop.exe"

// become runs the program and exits with its code, since Windows cannot replace a process.
func become(program string, args []string) error {
	cmd := exec.Command(program, args...) //nolint:noctx // the program lives as long as this process
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
