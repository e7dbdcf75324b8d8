//go:build unix

package proxy

import (
	"os/exec"
	"syscall"
	"time"
)

// escape makes a descendant hard to find.
func escape(cmd *exec.Cmd, how string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	switch how {
	case "group", "busy":
		cmd.SysProcAttr.Setpgid = true
	case "session", "daemon":
		cmd.SysProcAttr.Setsid = true
	case "unmarked":
		cmd.SysProcAttr.Setpgid = true
		cmd.Env = []string{roleVariable + "=sleeper:"}
	}
}

// ownCPU returns the processor time of this process so far, as the process itself sees it.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
