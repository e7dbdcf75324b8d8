//go:build unix

package proxy

import (
	"os/exec"
	"syscall"
)

// escape makes a descendant hard to find.
func escape(cmd *exec.Cmd, how string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	switch how {
	case "group":
		cmd.SysProcAttr.Setpgid = true
	case "session", "daemon":
		cmd.SysProcAttr.Setsid = true
	case "unmarked":
		cmd.SysProcAttr.Setpgid = true
		cmd.Env = []string{roleVariable + "=sleeper:"}
	}
}
