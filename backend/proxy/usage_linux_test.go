package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// surveyed returns the usage of the only instance of a set.
func surveyed(t *testing.T, pss bool, s *Set) Usage {
	t.Helper()
	_, usage, err := Survey(pss, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(usage) != 1 || len(usage[0]) != 1 {
		t.Fatalf("Survey: got %+v, want one instance", usage)
	}
	return usage[0][0]
}

func (u Usage) find(pid int) (Member, bool) {
	n := slices.IndexFunc(u.Tree, func(m Member) bool { return m.PID == pid })
	if n < 0 {
		return Member{}, false
	}
	return u.Tree[n], true
}

// sizes returns the system's exact numbers of a process's memory, which need a walk over every page.
func sizes(t *testing.T, pid int) map[string]int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			found[strings.TrimSuffix(fields[0], ":")] = n << 10
		}
	}
	return found
}

func near(t *testing.T, what string, got, want, off int64) {
	t.Helper()
	if got < want-off || got > want+off {
		t.Errorf("%s: %d, want %d ± %d", what, got, want, off)
	}
}

func TestSurveyMeasuresWholeTree(t *testing.T) {
	before := time.Now()
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	want := []int{i.Status().PID}
	for _, how := range escapes {
		if how == "daemon" { // the daemon is another process than the spawned process
			continue
		}
		want = append(want, spawned(t, i, r, how))
	}
	busy := spawned(t, i, r, "busy")
	var said struct {
		PID int
		CPU float64
	}
	if err := json.Unmarshal(follow(t, r, "busy"), &said); err != nil || said.PID != busy {
		t.Fatalf("busy process: got error %v, %+v, want the PID %d", err, said, busy)
	}
	u := surveyed(t, true, s)
	if u.ServerID != "a" || u.Agent != "fake" || u.PID != want[0] || u.Tree[0].PID != want[0] {
		t.Errorf("usage: got %+v, want the agent %d first", u, want[0])
	}
	for _, pid := range append(want, busy) {
		m, ok := u.find(pid)
		if !ok {
			t.Errorf("tree: got %+v, want the process %d in it", u.Tree, pid)
			continue
		}
		if m.RSS <= 0 || m.PSS <= 0 || m.PSS >= m.RSS || m.StartedAt.Before(before.Add(-time.Second)) || m.StartedAt.After(time.Now().Add(time.Second)) {
			t.Errorf("member: got %+v, want memory and a start after %v", m, before)
		}
	}
	if len(u.Tree) != len(want)+1 {
		t.Errorf("tree: got %d processes, %+v, want %d", len(u.Tree), u.Tree, len(want)+1)
	}
	m, _ := u.find(busy)
	exact := sizes(t, busy)
	if exact["Rss"] < 64<<20 {
		t.Fatalf("RSS by the system: got %d bytes, want 64 MiB or more", exact["Rss"])
	}
	near(t, "RSS", m.RSS, exact["Rss"], 8<<20)
	near(t, "PSS", m.PSS, exact["Pss"], 8<<20)
	near(t, "CPU in ms", m.CPU.Milliseconds(), int64(said.CPU*1000), 2*tick.Milliseconds()+50)
	near(t, "tree's CPU", u.CPU().Milliseconds(), int64(said.CPU*1000), 50*int64(1+len(u.Tree))*slack)
	if u.RSS() < m.RSS+u.Tree[0].RSS || u.PSS() < m.PSS {
		t.Errorf("memory of the tree: got RSS %d, PSS %d, want more than its members", u.RSS(), u.PSS())
	}
	if again := surveyed(t, false, s); again.PSS() != 0 {
		t.Error("PSS was read unasked")
	}
}

// The processor time of a command is kept after its end.
func TestSurveyKeepsCPUOfEndedChildren(t *testing.T) {
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	send(t, i, "run:burn")
	var ran struct{ CPU float64 }
	if err := json.Unmarshal(follow(t, r, "ran"), &ran); err != nil {
		t.Fatal(err)
	}
	u := surveyed(t, false, s)
	if len(u.Tree) != 1 || ran.CPU < 0.3 {
		t.Fatalf("usage: got %v s, %+v, want one process and 0.3 s", ran.CPU, u)
	}
	near(t, "past CPU in ms", u.Tree[0].Past.Milliseconds(), int64(ran.CPU*1000), 2*tick.Milliseconds())
	if u.CPU() != u.Tree[0].CPU+u.Tree[0].Past || u.Tree[0].CPU > u.Tree[0].Past {
		t.Errorf("usage: got %+v, want the time of the ended child", u)
	}
}

func TestSurveyMeasuresItself(t *testing.T) {
	before := ownCPU()
	self, usage, err := Survey(true)
	after := ownCPU()
	if err != nil || len(usage) != 0 || self.PID != os.Getpid() {
		t.Fatalf("Survey: got %+v, %+v, error %v, want this process alone", self, usage, err)
	}
	if self.CPU < before-2*tick || self.CPU > after+2*tick {
		t.Errorf("CPU: got %v, want %v to %v", self.CPU, before, after)
	}
	rss := sizes(t, self.PID)["Rss"]
	for range 20 { // other tests allocate meanwhile
		if self.RSS >= rss-16<<20 && self.RSS <= rss+16<<20 {
			break
		}
		if self, _, err = Survey(true); err != nil {
			t.Fatal(err)
		}
		rss = sizes(t, self.PID)["Rss"]
	}
	near(t, "RSS", self.RSS, rss, 16<<20)
	if self.PSS == 0 {
		t.Error("no PSS")
	}
}

// The engine of a window runs in processes beside this one, and counts as part of this program, with the program that started those
// processes.
func TestSurveyCountsEngine(t *testing.T) {
	begin := func(name string) (pid int) {
		t.Helper()
		cmd := agentCommand()
		link := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(cmd.Path, link); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(link)
		child.Env = append(os.Environ(), roleVariable+"=sleeper:busy")
		said, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = child.Process.Kill()
			_ = child.Wait()
		})
		if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return child.Process.Pid
	}
	survey := func() Member {
		t.Helper()
		self, _, err := Survey(true)
		if err != nil {
			t.Fatal(err)
		}
		return self
	}
	// counted compares the memory counted for other processes with the system's exact numbers for the processes that should count. Other
	// tests allocate meanwhile, also between two measurements.
	counted := func(what string, pids ...int) {
		t.Helper()
		const off = 16 << 20
		var rss, pss, wantRSS, wantPSS int64
		for range 20 {
			all, own := survey(), sizes(t, os.Getpid())
			rss, pss, wantRSS, wantPSS = all.RSS-own["Rss"], all.PSS-own["Pss"], 0, 0
			for _, pid := range pids {
				now := sizes(t, pid)
				wantRSS += now["Private_Clean"] + now["Private_Dirty"] // shared pages are counted already
				wantPSS += now["Pss"]
			}
			if max(rss-wantRSS, wantRSS-rss, pss-wantPSS, wantPSS-pss) <= off {
				break
			}
		}
		near(t, what+": RSS", rss, wantRSS, off)
		near(t, what+": PSS", pss, wantPSS, off)
	}
	if other := begin("another"); sizes(t, other)["Private_Dirty"] < 64<<20 {
		t.Fatal("the process takes too little to tell")
	}
	counted("another")
	before := survey().CPU
	counted("the engine", begin("WebKitWebProcess"))
	if used := survey().CPU - before; used < 250*time.Millisecond {
		t.Errorf("CPU of the engine: got %v, want 250ms or more", used)
	}
}

// A name may look like the fields that follow.
func TestSurveyReadsStrangeNames(t *testing.T) {
	for _, name := range []string{"a b", "x) R 1 1 1 (y", "((", ") Z 0", "new\nline", "\xff\xfe(", "\x1b[31m"} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			cmd := agentCommand()
			link := filepath.Join(t.TempDir(), name)
			if err := os.Symlink(cmd.Path, link); err != nil {
				t.Fatal(err)
			}
			cmd.Path = link
			s := openSet(t, Config{})
			i, err := s.Start(t.Context(), "a", "fake", cmd)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); err != nil {
				t.Fatal(err)
			}
			u := surveyed(t, false, s)
			want := strings.ToValidUTF8(name, "?")
			if len(u.Tree) != 1 || u.Tree[0].Name != want || u.Tree[0].PID != i.Status().PID || u.Tree[0].RSS < 1<<20 || u.Tree[0].CPU > time.Minute {
				t.Errorf("usage of a process called %q: got %+v, want the name %q", name, u, want)
			}
		})
	}
}

func TestSurveyTellsSetsApart(t *testing.T) {
	a := openSet(t, Config{})
	b := openSet(t, Config{Beside: a})
	pids := map[string]int{}
	for n, s := range []*Set{a, b, b} {
		id := fmt.Sprint(n)
		i, err := s.Start(t.Context(), id, "fake", agentCommand())
		if err != nil {
			t.Fatal(err)
		}
		spawned(t, i, traceOf(t, i), "session")
		pids[id] = i.Status().PID
	}
	_, usage, err := Survey(false, b, nil, a)
	if err != nil || len(usage) != 3 || len(usage[0]) != 2 || len(usage[1]) != 0 || len(usage[2]) != 1 {
		t.Fatalf("Survey: got error %v, %+v, want 2, 0 and 1 instances", err, usage)
	}
	seen := map[int]bool{}
	for _, u := range slices.Concat(usage...) {
		if u.PID != pids[u.ServerID] || len(u.Tree) != 2 {
			t.Errorf("usage: got %+v, want the PID of its server_id and 2 processes", u)
		}
		for _, m := range u.Tree {
			if seen[m.PID] {
				t.Errorf("process %d: got it in two trees, want one", m.PID)
			}
			seen[m.PID] = true
		}
	}
	if usage[0][0].ServerID != "1" || usage[0][1].ServerID != "2" {
		t.Error("not in the order of their starts")
	}
}

// Between the listing of all processes and the measurement of one, the process may have ended, and its number may be another's.
func TestMemberReportsGoneProcess(t *testing.T) {
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	ends := spawned(t, i, traceOf(t, i), "group")
	p, err := look()
	if err != nil {
		t.Fatal(err)
	}
	members := i.usage().family.among(p)
	if err := killHard(ends); err != nil {
		t.Fatal(err)
	}
	if !gone(ends) {
		t.Fatal("it does not end")
	}
	boot, err := bootTime()
	if err != nil {
		t.Fatal(err)
	}
	g := gauge{boot: boot, page: 1}
	for _, id := range members {
		if m, ok := g.member(id); ok == (id.PID == ends) {
			t.Errorf("member %d: got %+v, found %v, want only the ended one missing", id.PID, m, ok)
		}
	}
	if m, ok := g.member(ident{PID: os.Getpid(), Start: 1}); ok || m.Name != "" {
		t.Errorf("member with another start: got %+v, want none", m)
	}
}

func TestSurveyOfChangingTree(t *testing.T) {
	cmd, _ := marked(t)
	cmd.Path, cmd.Args = "/bin/sh", []string{"-c", `(while :; do /bin/sh -c "/bin/true & /bin/true"; done) & cat`}
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", cmd)
	if err != nil {
		t.Fatal(err)
	}
	pid, changes := i.Status().PID, map[int]bool{}
	for end := time.Now().Add(testkit.Limit); len(changes) < 200; { // a second, on a busy machine half a minute
		u := surveyed(t, false, s)
		if u.Tree[0].PID != pid {
			t.Fatalf("tree: got %+v, want the agent %d first", u.Tree, pid)
		}
		seen := map[int]bool{}
		for _, m := range u.Tree {
			if seen[m.PID] || !slices.Contains([]string{"sh", "true", "cat"}, m.Name) {
				t.Fatalf("tree: got %+v in %+v, want each process once", m, u.Tree)
			}
			seen[m.PID], changes[m.PID] = true, true
		}
		if time.Now().After(end) {
			t.Fatalf("processes seen: got %d, want 200", len(changes))
		}
	}
	f := i.usage().family
	f.mu.Lock()
	known := len(f.known)
	f.mu.Unlock()
	if known > len(changes)/2 { // how many have just ended depends on the machine
		t.Errorf("processes remembered: got %d of %d, want half at most", known, len(changes))
	}
}

// An instance that is being removed is listed until all of its processes are gone, and no longer.
func TestSurveyDuringEnd(t *testing.T) {
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	send(t, i, "stubborn")
	follow(t, r, "ready")
	removed := make(chan error, 1)
	go func() { removed <- s.Remove("a") }()
	for len(s.List()) > 0 {
		await(nil, time.Millisecond)
	}
	if u := surveyed(t, false, s); len(u.Tree) != 1 {
		t.Errorf("usage during the end: got %+v, want one process", u)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if _, usage, err := Survey(false, s); err != nil || len(usage[0]) != 0 {
		t.Errorf("Survey after the end: got %+v, error %v, want none", usage, err)
	}
}

func TestLeftoversNamesWithoutEnding(t *testing.T) {
	mark := "PROXY_TEST_OF=" + t.TempDir()
	ledger := filepath.Join(t.TempDir(), "ledger")
	if left, err := Leftovers(ledger); err != nil || len(left) > 0 {
		t.Errorf("Leftovers without a ledger: got %+v, error %v, want none", left, err)
	}
	srv := startServer(t, ledger, mark, "PROXY_TEST_NO_WATCHDOG=1")
	srv.send(t, "spawn:session")
	want := []int{srv.agent, srv.pid(t, "spawned")}
	srv.send(t, "stubborn")
	srv.pid(t, "ready")
	t.Cleanup(func() { // if the test fails, nobody else ends the processes
		if t.Failed() {
			for _, pid := range want {
				_ = killHard(pid)
			}
		}
	})
	if err := srv.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = srv.cmd.Wait()
	found, err := Leftovers(ledger)
	if err != nil || len(found) != 2 || found[0].PID != want[0] || found[1].PID != want[1] || found[0].Name == "" {
		t.Errorf("%+v, %v; want %v", found, err, want)
	}
	openSet(t, Config{Ledger: ledger})
	if err := os.WriteFile(ledger, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := Leftovers(ledger); err != nil || len(left) > 0 {
		t.Errorf("Leftovers of a broken ledger: got %+v, error %v, want none", left, err)
	}
}

// A status bar asks every few seconds. Ten agents with five descendants each, and 300 younger processes of others.
func BenchmarkSurvey(b *testing.B) {
	s, err := Open(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for n := range 10 {
		i, err := s.Start(b.Context(), fmt.Sprint(n), "fake", Command{
			Path: "/bin/sh", Args: []string{"-c", "for n in 1 2 3 4 5; do sleep 600 & done; echo '{}'; exec cat"}, Env: os.Environ(),
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := i.After(0).Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for range 300 {
		other := exec.Command("sleep", "600")
		if err := other.Start(); err != nil {
			b.Fatal(err)
		}
		defer other.Wait()
		defer other.Process.Kill()
	}
	for _, pss := range []bool{false, true} {
		b.Run(fmt.Sprintf("pss=%v", pss), func(b *testing.B) {
			for b.Loop() {
				_, usage, err := Survey(pss, s)
				if err != nil || len(usage[0]) != 10 || len(usage[0][9].Tree) != 6 {
					b.Fatalf("Survey: got %+v, %v, want 10 trees of 6", usage, err)
				}
			}
		})
	}
}
