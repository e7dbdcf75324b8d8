package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// wide is how much our end of an agent's stdout holds. The default of 64 KiB costs a fast agent and us a switch of context for
// every few hundred messages.
const wide = 256 << 10

func widen(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, wide) // refused beyond the user's share: then it stays narrow
		})
	}
}

// bootID changes with each start of the machine.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(id))
}

// processes are all processes but zombies.
func processes() (map[int]procInfo, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(map[int]procInfo, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := inspect(pid); err == nil && !p.zombie {
			all[pid] = p
		}
	}
	return all, nil
}

// inspect reads /proc/PID/stat; see proc_pid_stat(5). The name in the second field may hold anything, so fields count from its
// last parenthesis: state, ppid, pgrp, session, ..., and starttime as the 20th.
func inspect(pid int) (procInfo, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procInfo{}, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return procInfo{}, fmt.Errorf("stat of process %d: %d fields", pid, len(fields))
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	session, err3 := strconv.Atoi(fields[3])
	start, err4 := strconv.ParseUint(fields[19], 10, 64)
	p := procInfo{
		ident: ident{PID: pid, Start: start}, parent: parent, group: group, session: session,
		zombie: fields[0] == "Z" || fields[0] == "X",
	}
	return p, errors.Join(err1, err2, err3, err4)
}

// hasMark looks into the environment that a process was started with. That of another user's process cannot be read, and is none
// of ours.
func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(env, []byte(mark))
}
