//go:build desktop && (!linux || bindings)

package app

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
)

// showFile marks a file in the desktop's file browser. showFile was never seen to work: these systems are not tested.
func showFile(path string) error {
	ctx := context.Background()
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", "-R", path).Run()
	case "windows":
		_ = exec.CommandContext(ctx, "explorer", "/select,", path).Run() // explorer exits with 1 in every case
		return nil
	}
	return errors.New("nothing here shows files")
}
