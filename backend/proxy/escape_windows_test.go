package proxy

import (
	"os/exec"
	"time"
)

// escape does nothing: a job object cannot be escaped.
func escape(*exec.Cmd, string) {}

// ownCPU is not known here, and nobody asks for it.
func ownCPU() time.Duration { return time.Hour }
