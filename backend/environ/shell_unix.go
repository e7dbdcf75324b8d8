//go:build !windows

package environ

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// detach gives a command its own session, so that an interactive shell finds no terminal to take.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// endSession kills the command's group, and the other groups of its session where the system lists them: an interactive shell may give each
// command a group. A process that has left the session is, for example, a key agent, and stays.
func endSession(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when the group is gone
	for _, pid := range sessionOf(cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func sessionIsEmpty(cmd *exec.Cmd) bool {
	return errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) && len(sessionOf(cmd.Process.Pid)) == 0
}

// sessionOf returns the processes of a session, on Linux.
func sessionOf(sid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a bad pattern
	var found []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // after the name, which may contain any character
		if len(fields) < 4 || fields[3] != strconv.Itoa(sid) || fields[0] == "Z" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// shellOfUser returns the shell of the user database. macOS has another database, and defaults to zsh.
func shellOfUser() (string, error) {
	if runtime.GOOS == "darwin" {
		return "/bin/zsh", nil
	}
	data, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return "", err
	}
	if file := shellIn(string(data), os.Getuid()); file != "" {
		return file, nil
	}
	return "", fmt.Errorf("/etc/passwd has no shell for the user %d", os.Getuid())
}

// shellIn returns a user's shell from the text of /etc/passwd.
func shellIn(passwd string, uid int) string {
	for line := range strings.Lines(passwd) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == strconv.Itoa(uid) {
			return f[6]
		}
	}
	return ""
}
