package cli

import (
	"fmt"
	"os"
	"os/exec"
)

const windowProgram = "deskhand-desktop.exe"

// become runs the other program; Windows cannot replace a process.
func become(program string, args []string) error {
	cmd := exec.Command(program, args...) //nolint:noctx // it lives as long as we do
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
