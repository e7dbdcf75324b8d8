package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wide is the capacity of the pipe from an agent's stdout. With the default of 64 KiB, a fast agent and its reader switch context every
// few hundred messages.
const wide = 256 << 10

func widen(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, wide) // refused beyond the user's share, and then the pipe stays narrow
		})
	}
}

// bootID returns a text that changes with each start of the machine.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(id))
}

// bornInOrder is true: no process is older than the process that started it, because the times of Linux count from the machine's start.
const bornInOrder = true

// processes returns all processes but zombies.
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
	var buf [statBytes]byte
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := inspectInto(buf[:], pid); err == nil && !p.zombie {
			all[pid] = p
		}
	}
	return all, nil
}

// statBytes is longer than /proc/PID/stat ever is: 52 numbers, and a name of at most 64 bytes.
const statBytes = 2 << 10

func inspect(pid int) (procInfo, error) {
	var buf [statBytes]byte
	return inspectInto(buf[:], pid)
}

// inspectInto reads /proc/PID/stat.
func inspectInto(buf []byte, pid int) (procInfo, error) {
	text, err := readProc(buf, "/proc/"+strconv.Itoa(pid)+"/stat")
	if err != nil {
		return procInfo{}, err
	}
	s, err := parseStat(text)
	if err != nil {
		return procInfo{}, fmt.Errorf("stat of process %d: %w", pid, err)
	}
	return s.info(pid)
}

// stat is the text of /proc/PID/stat in parts; see proc_pid_stat(5).
type stat struct {
	name   []byte
	fields [22][]byte // from the third on: state, ppid, pgrp, session, ..., utime as the 12th, starttime as the 20th, rss as the last
}

var errStat = errors.New("too few fields")

// parseStat splits the text. The name may contain anything, also parentheses, so fields count from the last parenthesis.
func parseStat(text []byte) (s stat, err error) {
	first, last := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if first < 0 || last < first {
		return s, errStat
	}
	s.name = text[first+1 : last]
	n := 0
	for field := range bytes.FieldsSeq(text[last+1:]) {
		if n == len(s.fields) {
			break
		}
		s.fields[n] = field
		n++
	}
	if n < len(s.fields) {
		return s, errStat
	}
	return s, nil
}

func (s *stat) info(pid int) (procInfo, error) {
	parent, err1 := strconv.Atoi(string(s.fields[1]))
	group, err2 := strconv.Atoi(string(s.fields[2]))
	session, err3 := strconv.Atoi(string(s.fields[3]))
	start, err4 := strconv.ParseUint(string(s.fields[19]), 10, 64)
	p := procInfo{
		ident: ident{PID: pid, Start: start}, parent: parent, group: group, session: session,
		zombie: s.fields[0][0] == 'Z' || s.fields[0][0] == 'X',
	}
	return p, errors.Join(err1, err2, err3, err4)
}

// readProc reads the start of a file of /proc, or all of a file that fits. os.ReadFile needs six system calls instead of three, and
// readProc runs for every process of the machine whenever an instance ends.
func readProc(buf []byte, name string) ([]byte, error) {
	fd, err := again(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	n, err := again(func() (int, error) { return unix.Read(fd, buf) })
	_ = unix.Close(fd)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return buf[:n], nil
}

// again repeats a system call until no signal interrupts the call.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// environOf returns the environment with which a process was started. The environment of another user's process cannot be read, and such
// a process is no agent's.
func environOf(pid int) []byte {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return env
}

// startTimes returns the function that converts the start of a process to a time.
func startTimes() (func(uint64) time.Time, error) {
	boot, err := bootTime()
	return func(start uint64) time.Time { return boot.Add(time.Duration(start) * tick) }, err //nolint:gosec // a machine is not up for as long
}

// argsOf returns the command line of a process, or nil where the system does not tell.
func argsOf(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil
	}
	return splitArgs(text)
}

// splitArgs splits arguments that each end with NUL. A process that renames itself has put a single text in their place.
func splitArgs(text []byte) []string {
	text = bytes.TrimRight(text, "\x00")
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}
