//go:build unix

package terminal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/proxy"
	"deskhand/backend/terminal"
	"deskhand/backend/testkit"
)

// roleVariable makes the test binary a process with a terminal, or its watchdog.
const roleVariable = "TERMINAL_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "owner":
		err = own(os.Args[1])
	case "watchdog":
		err = proxy.Watchdog(os.Stdin)
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// own has a program on a terminal until it is killed.
func own(script string) error {
	if err := os.Setenv(roleVariable, "watchdog"); err != nil { // of the next that it starts
		return err
	}
	set, err := proxy.Open(proxy.Config{Watchdog: []string{os.Args[0]}})
	if err != nil {
		return err
	}
	if _, err := run(context.Background(), set, script); err != nil {
		return err
	}
	fmt.Println("running")
	time.Sleep(time.Hour)
	return nil
}

func run(ctx context.Context, set *proxy.Set, script string) (*terminal.Terminal, error) {
	return terminal.Open(ctx, terminal.Size{Cols: 101, Rows: 33}, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
		return set.Start(ctx, "login", "fake", proxy.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Terminal: tty})
	})
}

func open(t *testing.T, script string) *terminal.Terminal {
	t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tty, err := run(t.Context(), set, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tty.Close(), set.Close()); err != nil {
			t.Error(err)
		}
	})
	return tty
}

// screen reads a terminal as a window does.
type screen struct {
	t    *testing.T
	tty  *terminal.Terminal
	next int64
	text string
}

func (s *screen) read() terminal.Output {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Limit)
	defer cancel()
	out := s.tty.After(ctx, s.next)
	s.next = out.Next
	s.text += string(out.Data)
	return out
}

func (s *screen) until(text string) {
	s.t.Helper()
	for !strings.Contains(s.text, text) {
		if out := s.read(); out.Exited || len(out.Data) == 0 {
			s.t.Fatalf("screen: got %q, then %+v, want %q", s.text, out, text)
		}
	}
}

func (s *screen) end() terminal.Output {
	s.t.Helper()
	for {
		switch out := s.read(); {
		case out.Exited:
			return out
		case len(out.Data) == 0:
			s.t.Fatalf("screen: got %q and no end, want the end of the program", s.text)
		}
	}
}

func typing(t *testing.T, tty *terminal.Terminal, text string) {
	t.Helper()
	if err := tty.Type([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestProgramHasTerminal(t *testing.T) {
	tty := open(t, `test -t 0 && test -t 1 && test -t 2 && echo three; stty size; read x </dev/tty; stty size; printf 'got %s' "$x"; exit 3`)
	s := &screen{t: t, tty: tty}
	s.until("three\r\n33 101\r\n")
	if err := tty.Resize(terminal.Size{Cols: 40, Rows: 12}); err != nil {
		t.Fatal(err)
	}
	typing(t, tty, "héllo\r")
	out := s.end()
	if !strings.Contains(s.text, "12 40\r\n") || !strings.HasSuffix(s.text, "got héllo") {
		t.Errorf("output: got %q, want the size and the typed text", s.text)
	}
	if out.ExitCode == nil || *out.ExitCode != 3 || out.Signal != "" {
		t.Errorf("end: got %+v, want exit code 3", out)
	}
	if err := tty.Type([]byte("x")); !errors.Is(err, terminal.ErrEnded) {
		t.Errorf("Type after the end: got error %v, want ErrEnded", err)
	}
	if err := tty.Resize(terminal.Size{}); !errors.Is(err, terminal.ErrEnded) {
		t.Errorf("Resize after the end: got error %v, want ErrEnded", err)
	}
}

func TestCtrlCReachesTheProgram(t *testing.T) {
	tty := open(t, `trap 'echo stopped; exit 4' INT; echo ready; while :; do sleep 0.05; done`)
	s := &screen{t: t, tty: tty}
	s.until("ready")
	typing(t, tty, "\x03")
	if out := s.end(); out.ExitCode == nil || *out.ExitCode != 4 || !strings.Contains(s.text, "stopped") {
		t.Errorf("end after Ctrl-C: got %+v, output %q, want exit code 4 and stopped", out, s.text)
	}
}

func TestOnlyTheNewestOutputIsKept(t *testing.T) {
	const wrote = 3 << 20
	tty := open(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; printf end`, wrote))
	select {
	case <-tty.Ended(): // nobody has read anything
	case <-time.After(testkit.Limit):
		t.Fatal("the program waits for a reader")
	}
	s := &screen{t: t, tty: tty}
	first := s.read()
	if first.From != wrote+3-terminal.Scrollback || first.Next != first.From+int64(len(first.Data)) || len(first.Data) != 64<<10 {
		t.Errorf("first output: got %d to %d, %d bytes, want 64 KiB of the newest", first.From, first.Next, len(first.Data))
	}
	s.end()
	if len(s.text) != terminal.Scrollback || !strings.HasSuffix(s.text, "xend") || s.next != wrote+3 {
		t.Errorf("all output: got %d bytes up to %d, want %d up to %d", len(s.text), s.next, terminal.Scrollback, wrote+3)
	}
	// A reader that comes back finds its place, and one from somewhere else the end.
	if out := tty.After(t.Context(), wrote); string(out.Data) != "end" || out.From != wrote || !out.Exited {
		t.Errorf("After(%d): got %+v, want the end", wrote, out)
	}
	if out := tty.After(t.Context(), 1<<40); len(out.Data) != 0 || out.Next != wrote+3 || !out.Exited {
		t.Errorf("After of a number beyond the end: got %+v, want no bytes, exited", out)
	}
}

func TestAfterWaitsForOutput(t *testing.T) {
	tty := open(t, `stty -echo; echo ready; read x; echo "$x"; read x`)
	s := &screen{t: t, tty: tty}
	s.until("ready\r\n")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out := tty.After(ctx, s.next); len(out.Data) != 0 || out.Next != s.next || out.Exited {
		t.Errorf("After without output: got %+v, want no bytes, not exited", out)
	}
	got := make(chan terminal.Output, 1)
	go func() { got <- tty.After(t.Context(), s.next) }()
	typing(t, tty, "later\n")
	select {
	case out := <-got: // the system may hand out the end of the line by itself
		s.text, s.next = string(out.Data), out.Next
		s.until("later\r\n")
		if s.text != "later\r\n" {
			t.Errorf("output: got %q, want later", s.text)
		}
	case <-time.After(testkit.Limit):
		t.Fatal("the reader sleeps on")
	}
}

// stubborn is a script with a descendant that ignores all but SIGKILL, in a session of its own, and so does it. Their numbers are in the
// directory.
func stubborn(dir string) string {
	return fmt.Sprintf(`trap '' HUP TERM INT
python3 -c 'import os; os.setsid(); os.execvp("sh", ["sh", "-c", "trap \"\" HUP TERM INT; echo $$ >%[1]s/child; while :; do sleep 1; done"])' &
echo $$ >%[1]s/self; echo ready; while :; do sleep 1; done`, dir)
}

// pidIn waits for a number in a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	for deadline := time.Now().Add(testkit.Limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			return pid
		}
	}
	t.Fatal("no process number in ", file)
	return 0
}

func mustBeGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		gone := false
		for deadline := time.Now().Add(testkit.Limit); !gone && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			gone = errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
				gone = true // nobody has waited for it yet
			}
		}
		if !gone {
			t.Errorf("process %d: got it alive, want it ended", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is needed: ", err)
	}
}

func TestCloseEndsTheWholeTree(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	tty := open(t, stubborn(dir))
	self, child := pidIn(t, filepath.Join(dir, "self")), pidIn(t, filepath.Join(dir, "child"))
	if err := tty.Close(); err != nil {
		t.Errorf("Close: got error %v, want none", err)
	}
	mustBeGone(t, self, child)
	if out := tty.After(t.Context(), 0); !out.Exited || out.Signal != "SIGKILL" || !strings.Contains(string(out.Data), "ready") {
		t.Errorf("After the Close: got %+v, want ready and SIGKILL", out)
	}
}

// The shell waits with wait, which a signal interrupts at once: it starts nothing that a busy machine could take a while for.
func TestCloseHangsUpFirst(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("nohup has SIGHUP ignored, which a shell cannot change")
	}
	file := filepath.Join(t.TempDir(), "hung-up")
	// Half a second later it is told to end; on a busy machine a shell may not have come to it by then.
	for range 5 {
		tty := open(t, fmt.Sprintf(`trap 'echo >%s; exit 0' HUP; echo ready; sleep 60 & while :; do wait; done`, file))
		(&screen{t: t, tty: tty}).until("ready")
		if err := tty.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	t.Error("the program was not told")
}

// What the program has started ends with it, even if it holds the terminal open.
func TestChildrenEndWithProgram(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	tty := open(t, stubborn(dir)[:strings.Index(stubborn(dir), "echo $$ >"+dir+"/self")]+fmt.Sprintf(`while ! [ -s %s/child ]; do sleep 0.01; done; echo bye`, dir))
	child := pidIn(t, filepath.Join(dir, "child"))
	s := &screen{t: t, tty: tty}
	if out := s.end(); out.ExitCode == nil || *out.ExitCode != 0 || !strings.Contains(s.text, "bye") {
		t.Errorf("end: got %+v, output %q, want exit code 0 and bye", out, s.text)
	}
	mustBeGone(t, child)
}

func TestChildrenEndWhenDeskhandIsKilled(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	owner := exec.Command(os.Args[0], stubborn(dir))
	owner.Env = append(os.Environ(), roleVariable+"=owner")
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(line, err)
	}
	self, child := pidIn(t, filepath.Join(dir, "self")), pidIn(t, filepath.Join(dir, "child"))
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	mustBeGone(t, self, child)
}

func TestOpenReportsProgramThatCannotStart(t *testing.T) {
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	_, err = terminal.Open(t.Context(), terminal.Size{}, func(ctx context.Context, tty *os.File) (*proxy.Instance, error) {
		return set.Start(ctx, "login", "fake", proxy.Command{Path: "/none/such", Terminal: tty})
	})
	if !errors.Is(err, proxy.ErrSpawn) {
		t.Error(err)
	}
}

// What a screen has shown is known to the next one: it must not answer what the first has answered.
func TestAfterTellsHowMuchReadersHaveSeen(t *testing.T) {
	tty := open(t, `stty -echo; printf 'one\n'; read x; printf 'two\n'; read x`)
	s := &screen{t: t, tty: tty}
	for !bytes.HasSuffix(tty.After(t.Context(), 0).Data, []byte("one\r\n")) {
		runtime.Gosched()
	}
	if out := tty.After(t.Context(), 0); out.Seen != 0 {
		t.Errorf("After before any reader: got %+v, want Seen 0", out)
	}
	s.until("one\r\n")
	typing(t, tty, "on\n")
	for !strings.Contains(s.text, "two\r\n") {
		s.read()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tty.After(ctx, s.next)
	if out := tty.After(t.Context(), 0); out.Seen != s.next || out.From != 0 {
		t.Errorf("%d, want %d", out.Seen, s.next)
	}
	cancel()
	tty.After(ctx, 1<<40) // what nobody can have
	if out := tty.After(t.Context(), 0); out.Seen != s.next {
		t.Errorf("%d, want %d", out.Seen, s.next)
	}
}
