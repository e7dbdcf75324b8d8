package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

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

// bornInOrder: a process is never older than the one that started it. The times that Linux tells count from its own start.
const bornInOrder = true

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

// statBytes is more than /proc/PID/stat ever is: 52 numbers, and a name of 64 bytes at most.
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

// parseStat takes the text apart. The name may hold anything, parentheses too, so fields count from the last one.
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

// readProc reads the start of a file of /proc, all of it when it fits. os.ReadFile takes six system calls for what is done in
// three, and this is done for every process of the machine whenever an instance ends.
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

// again makes a system call until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// environOf is the environment that a process was started with. That of another user's process cannot be read, and is none of ours.
func environOf(pid int) []byte {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return env
}
