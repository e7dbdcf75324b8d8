package agents

import (
	"errors"
	"os/exec"
)

// On Windows there is no login shell to ask: what a person sets there is in the environment of every program.

func detach(*exec.Cmd) {}

func endSession(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func sessionIsEmpty(*exec.Cmd) bool { return true }

func shellOfUser() (string, error) { return "", errors.ErrUnsupported }
