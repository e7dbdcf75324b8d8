package environ

import (
	"errors"
	"os/exec"
)

// Windows has no login shell to ask: variables that a person sets there are in the environment of every program.

func detach(*exec.Cmd) {}

func endSession(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func sessionIsEmpty(*exec.Cmd) bool { return true }

func shellOfUser() (string, error) { return "", errors.ErrUnsupported }
