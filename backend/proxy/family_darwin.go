package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func widen(*os.File) {}

// bornInOrder is false: start times are those of the wall clock, which may be set back.
const bornInOrder = false

// bootID returns a text that changes with each start of the machine.
func bootID() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// processes returns all processes but zombies.
func processes() (map[int]procInfo, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	all := make(map[int]procInfo, len(list))
	for n := range list {
		if p := infoOf(&list[n]); !p.zombie {
			all[p.PID] = p
		}
	}
	return all, nil
}

func inspect(pid int) (procInfo, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return procInfo{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return infoOf(p), nil
}

func infoOf(k *unix.KinfoProc) procInfo {
	pid := int(k.Proc.P_pid)
	started := k.Proc.P_starttime
	session, _ := unix.Getsid(pid)
	return procInfo{
		ident:  ident{PID: pid, Start: uint64(started.Sec)*1_000_000 + uint64(started.Usec)},
		parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid), session: session,
		zombie: k.Proc.P_stat == zombieState,
	}
}

// environOf returns the arguments and environment with which a process was started. The system shows those of processes of the same user,
// except for its own protected programs.
func environOf(pid int) []byte {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil
	}
	return args
}

// startTimes returns the function that converts the start of a process to a time.
func startTimes() (func(uint64) time.Time, error) {
	return func(start uint64) time.Time { return time.UnixMicro(int64(start)) }, nil //nolint:gosec // not within 290,000 years
}

// argsOf returns the command line of a process, or nil where the system does not tell. The system returns the number of arguments, the path
// of the program, NULs, the arguments, and then the environment.
func argsOf(pid int) []string {
	raw := environOf(pid)
	if len(raw) < 4 {
		return nil
	}
	count := int(binary.NativeEndian.Uint32(raw))
	_, rest, _ := bytes.Cut(raw[4:], []byte{0})
	parts := bytes.Split(bytes.TrimLeft(rest, "\x00"), []byte{0})
	var args []string
	for _, part := range parts[:min(max(count, 0), len(parts))] {
		args = append(args, string(part))
	}
	return args
}
