package proxy

import "os/exec"

// escape does nothing: a job object cannot be escaped.
func escape(*exec.Cmd, string) {}
