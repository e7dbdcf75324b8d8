//go:build linux

package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// spawned starts a descendant that escapes in the given way, and returns its process number.
func spawned(t *testing.T, i *Instance, r *trace, how string) int {
	t.Helper()
	send(t, i, "spawn:"+how)
	var p struct{ PID int }
	if err := json.Unmarshal(follow(t, r, "spawned"), &p); err != nil {
		t.Fatal(err)
	}
	return p.PID
}

func hasMark(pid int, mark string) bool { return bytes.Contains(environOf(pid), []byte(mark)) }

// left returns the processes whose environment contains the text.
func left(t *testing.T, text string) []procInfo {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var found []procInfo
	for pid, p := range all {
		if pid != os.Getpid() && hasMark(pid, text) {
			found = append(found, p)
		}
	}
	return found
}

// marked returns an agent's command with a variable that all descendants inherit.
func marked(t *testing.T) (Command, string) {
	t.Helper()
	cmd := agentCommand()
	mark := "PROXY_TEST_OF=" + t.TempDir()
	cmd.Env = append(cmd.Env, mark)
	return cmd, mark
}

// gone waits for a process to end.
func gone(pid int) bool {
	return comesTrue(func() bool {
		p, err := inspect(pid)
		return err != nil || p.zombie
	})
}

// comesTrue waits until holds returns true.
func comesTrue(holds func() bool) bool {
	for range 500 {
		if holds() {
			return true
		}
		await(nil, 10*time.Millisecond)
	}
	return false
}

var escapes = []string{"", "group", "session", "daemon", "unmarked"} //nolint:gochecknoglobals // a constant in all but name

func TestCloseEndsStubbornTree(t *testing.T) {
	cmd, mark := marked(t)
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	var pids []int
	for _, how := range escapes {
		pids = append(pids, spawned(t, i, r, how))
	}
	waiting := call(t, i, `{"id":1,"method":"mute"}`)
	send(t, i, "stubborn")
	follow(t, r, "ready")
	start := time.Now()
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < eofGrace+termGrace {
		t.Errorf("Close: got %v, want %v or more", took, eofGrace+termGrace)
	}
	if _, err := outcome(t, waiting); !errors.Is(err, ErrRemoved) {
		t.Errorf("waiting call: got error %v, want ErrRemoved", err)
	}
	if l := left(t, mark); len(l) > 0 {
		t.Errorf("processes after Close: got %+v, want none", l)
	}
	for n, pid := range pids {
		if p, err := inspect(pid); err == nil && !p.zombie {
			t.Errorf("process by %q: got it alive, want it ended", escapes[n])
		}
	}
}

// A descendant that replaces itself every millisecond is gone before any list of processes is read. The group's signal reaches the
// descendant.
func TestCloseEndsDescendantThatHops(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "hop")
	if err := os.WriteFile(script, []byte("trap '' TERM\n[ -d \"$1\" ] || exit\n: >\"$1/$$\"\nsh \"$0\" \"$1\" &\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hops := filepath.Join(dir, "hops") // a file per process; without the directory the processes end
	count := func() int {
		files, _ := os.ReadDir(hops)
		return len(files)
	}
	s := openSet(t, Config{})
	for n := range 10 { // a single try may succeed by luck
		if err := os.Mkdir(hops, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd, _ := marked(t)
		cmd.Path, cmd.Args = "/bin/sh", []string{"-c", `sh "$0" "$1" & exec cat`, script, hops}
		i, err := s.Start(t.Context(), fmt.Sprint(n), "fake", cmd)
		if err != nil {
			t.Fatal(err)
		}
		for count() < 5 {
			await(nil, time.Millisecond)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		before := count()
		await(nil, 20*time.Millisecond)
		if after := count(); after != before {
			t.Errorf("processes after the end: got %d more, want none", after-before)
		}
		if err := os.RemoveAll(hops); err != nil {
			t.Fatal(err)
		}
	}
}

// Close of the Set waits for an instance that another caller is removing.
func TestSetCloseWaitsForRemovals(t *testing.T) {
	cmd, mark := marked(t)
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", cmd)
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
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if l := left(t, mark); len(l) > 0 {
		t.Errorf("processes after Close: got %+v, want none", l)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

func TestCloseIsQuickWhenTheAgentEndsOnEOF(t *testing.T) {
	// Half a second later the agent gets SIGTERM, and on a busy machine may not have ended by then.
	var took time.Duration
	var s Status
	for range 5 {
		i := startAgent(t, Config{})
		if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		took, s = time.Since(start), i.Status()
		if took <= 50*time.Millisecond*slack && s.ExitCode != nil && *s.ExitCode == 0 {
			return
		}
	}
	t.Errorf("Close: got %v, %+v, want 50ms and code 0", took, s)
}

func TestExitEndsDescendants(t *testing.T) {
	cmd, mark := marked(t)
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	for _, how := range escapes {
		spawned(t, i, r, how)
	}
	send(t, i, "exit:0")
	exited(t, i)
	if l := left(t, mark); len(l) > 0 {
		t.Errorf("processes after the exit: got %+v, want none", l)
	}
}

// server is another process of this program with a Set, which a test may kill.
type server struct {
	cmd   *exec.Cmd
	in    *bufio.Writer
	out   *bufio.Reader
	agent int
}

func startServer(t *testing.T, ledger string, env ...string) *server {
	t.Helper()
	cmd := exec.Command(agentCommand().Path)
	cmd.Env = append(append(os.Environ(), roleVariable+"=server:"+ledger), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &server{cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewReader(out)}
	s.agent = s.pid(t, "agent")
	return s
}

// pid reads the server's output until a message with the method, and returns the pid in it.
func (s *server) pid(t *testing.T, method string) int {
	t.Helper()
	for {
		text, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("waiting for %s: got error %v, want the line", method, err)
		}
		var m struct {
			Method string
			Params struct{ PID int }
		}
		if json.Unmarshal(text, &m) == nil && m.Method == method {
			return m.Params.PID
		}
	}
}

func (s *server) send(t *testing.T, method string) {
	t.Helper()
	msg, _ := json.Marshal(map[string]string{"method": method})
	if _, err := s.in.Write(append(msg, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := s.in.Flush(); err != nil {
		t.Fatal(err)
	}
}

// stubbornTree gives the server's agent descendants of every kind, which ignore everything.
func (s *server) stubbornTree(t *testing.T) []int {
	t.Helper()
	pids := []int{s.agent}
	for _, how := range escapes {
		s.send(t, "spawn:"+how)
		pids = append(pids, s.pid(t, "spawned"))
	}
	s.send(t, "stubborn")
	s.pid(t, "ready")
	return pids
}

func TestWatchdogEndsAgentsWhenDeskhandIsKilled(t *testing.T) {
	mark := "PROXY_TEST_OF=" + t.TempDir()
	s := startServer(t, "", mark)
	pids := s.stubbornTree(t)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for n, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d of the tree: got it alive, want it ended", n)
		}
	}
	// The watchdog itself carries the mark too, and ends last.
	if !comesTrue(func() bool { return len(left(t, mark)) == 0 }) {
		t.Errorf("processes with the mark: got %+v, want none", left(t, mark))
	}
}

func TestLedgerEndsLeftoversOfEarlierRun(t *testing.T) {
	mark := "PROXY_TEST_OF=" + t.TempDir()
	ledger := filepath.Join(t.TempDir(), "ledger")
	s := startServer(t, ledger, mark, "PROXY_TEST_NO_WATCHDOG=1")
	pids := s.stubbornTree(t)
	t.Cleanup(func() { // if the test fails, nobody else ends the processes
		if !t.Failed() {
			return
		}
		for _, p := range left(t, mark) {
			pids = append(pids, p.PID)
		}
		for _, pid := range pids {
			_ = killHard(pid)
		}
	})
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	for n := 0; len(left(t, mark)) < len(escapes); n++ { // all but the unmarked process, and the agent
		if n == 500 {
			t.Fatal("nothing is left to reap")
		}
		await(nil, 10*time.Millisecond)
	}
	openSet(t, Config{Ledger: ledger})
	if l := left(t, mark); len(l) > 0 {
		t.Errorf("processes of the earlier run: got %+v, want none", l)
	}
	if _, err := os.Stat(ledger); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the ledger: got error %v, want fs.ErrNotExist", err)
	}
}

func TestLedgerOfStrangersKillsNobody(t *testing.T) {
	self, err := inspect(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleeper.Wait()
	defer sleeper.Process.Kill()
	other, err := inspect(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{
		"another boot": record{Boot: "other", Run: newRun(), Agents: []ident{other.ident}},
		"used again":   record{Boot: bootID(), Run: newRun(), Agents: []ident{{PID: other.PID, Start: other.Start - 1}}},
		"ourselves":    record{Boot: bootID(), Run: newRun(), Agents: []ident{self.ident}},
		"no run":       record{Boot: bootID(), Agents: []ident{other.ident}},
		"half a run":   record{Boot: bootID(), Run: "x.", Agents: []ident{other.ident}},
		"broken":       "not a record",
	} {
		ledger := filepath.Join(t.TempDir(), "ledger")
		data, _ := json.Marshal(content)
		if err := os.WriteFile(ledger, data, 0o600); err != nil {
			t.Fatal(err)
		}
		openSet(t, Config{Ledger: ledger})
		if !alive(other.ident) {
			t.Fatalf("%s: got a stranger killed, want it alive", name)
		}
	}
}

func TestLedgerNamesLiveAgents(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	s := openSet(t, Config{Ledger: ledger})
	beside := openSet(t, Config{Beside: s})
	a, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	b, err := beside.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	read := func() record {
		var r record
		data, err := os.ReadFile(ledger)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); len(r.Agents) != 2 || r.Run != s.guard.run || r.Boot != bootID() {
		t.Errorf("ledger: got %+v, want 2 agents of this run", r)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if r := read(); len(r.Agents) != 1 || r.Agents[0].PID != b.Status().PID {
		t.Errorf("ledger after a Close: got %+v, want the other agent", r)
	}
}

func TestDeadWatchdogIsReplaced(t *testing.T) {
	t.Setenv(roleVariable, "watchdog")
	s := openSet(t, Config{Watchdog: []string{agentCommand().Path}})
	if _, err := s.Start(t.Context(), "a", "fake", agentCommand()); err != nil {
		t.Fatal(err)
	}
	first := s.guard.dog
	if err := first.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.done
	if _, err := s.Start(t.Context(), "b", "fake", agentCommand()); err != nil {
		t.Fatal(err)
	}
	if s.guard.dog == first || !s.guard.dog.alive() {
		t.Error("no new watchdog")
	}
}

func TestStartSucceedsWithoutWatchdog(t *testing.T) {
	var text bytes.Buffer
	s := openSet(t, Config{Watchdog: []string{"/nonexistent"}, Logger: textLogger(&text)})
	if _, err := s.Start(t.Context(), "a", "fake", agentCommand()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "watchdog did not start") {
		t.Errorf("log: got %s, want that the watchdog did not start", &text)
	}
}

// A Deskhand below another's agent passes the outer marks on, and both Deskhands find the process.
func TestMarksOfNestedDeskhandsAreKept(t *testing.T) {
	t.Setenv(treeVariable, "outer.1;")
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); err != nil { // a program that has just begun has no environment yet
		t.Fatal(err)
	}
	pid := i.Status().PID
	if !hasMark(pid, "outer.1;") || !hasMark(pid, s.guard.run+"1;") {
		t.Error("a mark is missing")
	}
}

// pidIn waits for a file that contains a process number.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	if !comesTrue(func() bool {
		data, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid != 0
	}) {
		t.Fatal("it does not start")
	}
	return pid
}

// A browser that an agent has opened is not the agent's, even if a search found the browser while its parent still ran. An agent that
// descends from such a browser is like any other.
func TestApartProcessOutlivesAgent(t *testing.T) {
	dir := t.TempDir()
	pidFile, told := filepath.Join(dir, "pid"), filepath.Join(dir, "told")
	if err := syscall.Mkfifo(told, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openSet(t, Config{})
	i, err := s.Start(t.Context(), "a", "fake", Command{
		Path: "/bin/sh", Dir: dir, Env: append(os.Environ(), ApartVariable+"=1"),
		Args: []string{"-c", `setsid sh -c 'echo $$ >new; mv new pid; read -r line <told; exec env -u ` + treeVariable + ` ` + ApartVariable + `=1 sleep 100' & read -r line`},
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, pidFile)
	if hasMark(pid, ApartVariable) {
		t.Error("an agent has got the variable that we had")
	}
	isOf := func() bool {
		all, err := s.Overview(false)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all.Usage {
			if slices.ContainsFunc(u.Tree, func(m Member) bool { return m.PID == pid }) {
				return true
			}
		}
		return false
	}
	for range 3 {
		if !isOf() {
			t.Error("it is not the agent's, and has not said that it is apart")
		}
	}
	if err := os.WriteFile(told, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !comesTrue(func() bool { return hasMark(pid, ApartVariable) }) {
		t.Fatal("it does not say that it is apart")
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	for range 3 {
		if isOf() {
			t.Error("what is apart is the agent's")
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if p, err := inspect(pid); err != nil || p.zombie {
		t.Errorf("process that is apart: got error %v or a zombie, want it alive", err)
	}
}

// A process with the agent's mark belongs to the agent, whatever else its environment says.
func TestMarkedProcessIsNotApart(t *testing.T) {
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", Command{
		Path: "/bin/sh", Dir: dir, Env: os.Environ(),
		Args: []string{"-c", `setsid env ` + ApartVariable + `=1 sh -c 'echo $$ >new; mv new pid; exec sleep 100' & read -r line`},
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, pidFile)
	if !comesTrue(func() bool { return hasMark(pid, ApartVariable) }) {
		t.Fatal("it does not say that it is apart")
	}
	f := i.usage().family
	for range 3 {
		if members, err := f.members(); err != nil || !slices.ContainsFunc(members, func(m ident) bool { return m.PID == pid }) {
			t.Errorf("members: got %v, error %v, want the marked process %d among them", members, err, pid)
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if !gone(pid) {
		t.Error("it outlives the agent")
	}
}
