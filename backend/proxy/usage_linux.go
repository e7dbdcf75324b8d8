package proxy

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of times in /proc: 1/100 s on every architecture that Go knows.
const tick = 10 * time.Millisecond

// measure measures this process and the members of the families; trees has the order of families.
func measure(families []*family, pss bool) (self Member, trees [][]Member, err error) {
	p, err := look()
	if err != nil {
		return justUs(), nil, err
	}
	boot, err := bootTime()
	if err != nil {
		return justUs(), nil, err
	}
	g := gauge{boot: boot, page: int64(os.Getpagesize()), pss: pss}
	self = justUs()
	if us, ok := p.all[self.PID]; ok {
		self, _ = g.member(us.ident)
		g.addEngine(&self, p.children[self.PID])
	}
	trees = make([][]Member, len(families))
	for n, f := range families {
		if f == nil {
			continue
		}
		for _, id := range f.among(p) {
			if m, ok := g.member(id); ok {
				trees[n] = append(trees[n], m)
			}
		}
		f.forgetGone(p)
	}
	return self, trees, nil
}

// Measures says whether the system tells the use of processes.
const Measures = true

// measureOne measures a process outside of all families: a child that has not been waited for, so that its number cannot be reused.
func measureOne(pid int, pss bool) (m Member, err error) {
	boot, err := bootTime()
	if err != nil {
		return Member{PID: pid}, err
	}
	p, err := inspect(pid)
	if err != nil {
		return Member{PID: pid}, err
	}
	g := gauge{boot: boot, page: int64(os.Getpagesize()), pss: pss}
	m, _ = g.member(p.ident)
	return m, nil
}

// bootTime returns the time from which the starts of processes count, on today's clock.
func bootTime() (time.Time, error) {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(since.Nano())), nil
}

// gauge reads the use of processes.
type gauge struct {
	boot time.Time
	page int64
	pss  bool
	buf  [statBytes]byte
}

// member measures a process; ok is false when exactly that process is gone. Reading the few members a second time costs less than keeping
// the names and numbers of all processes of the machine.
func (g *gauge) member(id ident) (m Member, ok bool) {
	dir := "/proc/" + strconv.Itoa(id.PID)
	text, err := readProc(g.buf[:], dir+"/stat")
	if err != nil {
		return Member{PID: id.PID}, false
	}
	s, err := parseStat(text)
	if err != nil {
		return Member{PID: id.PID}, false
	}
	p, err := s.info(id.PID)
	if err != nil || p.ident != id || p.zombie {
		return Member{PID: id.PID}, false
	}
	m = Member{
		PID: id.PID, Name: strings.ToValidUTF8(string(s.name), "?"), StartedAt: g.boot.Add(time.Duration(id.Start) * tick),
		CPU: s.ticks(11, 12), Past: s.ticks(13, 14), RSS: s.number(21) * g.page,
	}
	if g.pss {
		m.PSS = g.share(dir)
	}
	return m, true
}

// addEngine adds the use of the window's engine, which runs in processes of ours beside this process. A new agent is a child, too, so the
// engine's processes are recognised by their names. Shared libraries are not counted again: PSS would be exact, but the system walks
// through all pages of a process for PSS, and the process can map no page meanwhile.
func (g *gauge) addEngine(self *Member, children []ident) {
	for _, id := range children {
		m, ok := g.member(id)
		if !ok || !strings.HasPrefix(m.Name, engineName) {
			continue
		}
		self.CPU += m.CPU
		self.PSS += m.PSS
		self.RSS += m.RSS - g.fromFiles(id.PID)
	}
}

const engineName = "WebKit"

// fromFiles returns the part of a process's memory that belongs to files, or is shared; see statm in proc_pid_statm(5).
func (g *gauge) fromFiles(pid int) int64 {
	text, err := readProc(g.buf[:], "/proc/"+strconv.Itoa(pid)+"/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return n * g.page
}

// share returns the PSS; see smaps_rollup in proc_pid_smaps(5). The system does not tell the PSS of other users' processes.
func (g *gauge) share(dir string) int64 {
	text, err := readProc(g.buf[:], dir+"/smaps_rollup")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nPss:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// number returns a field as a number, or 0 for an invalid field.
func (s *stat) number(field int) int64 {
	n, err := strconv.ParseInt(string(s.fields[field]), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// ticks adds two times.
func (s *stat) ticks(a, b int) time.Duration { return time.Duration(s.number(a)+s.number(b)) * tick }

// forgetGone forgets members that are gone for good. A process that could not be read, for lack of file descriptors, is not.
func (f *family) forgetGone(p *picture) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.known {
		now, taken := p.all[id.PID]
		if taken && now.ident == id {
			continue
		}
		if taken || errors.Is(unix.Kill(id.PID, 0), unix.ESRCH) {
			delete(f.known, id)
		}
	}
}
