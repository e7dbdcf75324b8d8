//go:build !windows

package agents

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

// detach gives a command a session of its own, so that an interactive shell finds no terminal to take.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// endSession ends the command's group, and the other groups of its session where the system tells of them: an interactive shell may
// give each command one. Who has left the session is somebody's agent for keys, and stays.
func endSession(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when there is none any more
	for _, pid := range sessionOf(cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func sessionIsEmpty(cmd *exec.Cmd) bool {
	return errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) && len(sessionOf(cmd.Process.Pid)) == 0
}

// sessionOf gives the processes of a session, on Linux.
func sessionOf(sid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // fails for a bad pattern alone
	var found []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // after the name, which may hold anything
		if len(fields) < 4 || fields[3] != strconv.Itoa(sid) || fields[0] == "Z" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// shellOfUser is what the user database says. macOS keeps people in another one, and gives them zsh.
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

// shellIn finds a user's shell in the text of /etc/passwd.
func shellIn(passwd string, uid int) string {
	for line := range strings.Lines(passwd) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == strconv.Itoa(uid) {
			return f[6]
		}
	}
	return ""
}
