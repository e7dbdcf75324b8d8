//go:build desktop && (!linux || bindings)

package app

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
)

// showFile marks a file in the file browser of the desktop. It was never seen to work: these systems are not tested.
func showFile(path string) error {
	ctx := context.Background()
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", "-R", path).Run()
	case "windows":
		_ = exec.CommandContext(ctx, "explorer", "/select,", path).Run() // it answers 1 whatever it did
		return nil
	}
	return errors.New("nothing here shows files")
}
