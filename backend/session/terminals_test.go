//go:build unix

package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/processes"
	"deskhand/backend/session"
)

func shell(script string, more ...any) step {
	params := map[string]any{"command": "sh", "args": []string{"-c", script}}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	return step{Ask: "terminal/create", Params: params}
}

type exitStatus struct {
	ExitCode *int
	Signal   *string
}

func (e *exitStatus) String() string {
	switch {
	case e == nil:
		return "running"
	case e.ExitCode != nil:
		return fmt.Sprint(*e.ExitCode)
	case e.Signal != nil:
		return *e.Signal
	}
	return "unknown"
}

type output struct {
	Output     string
	Truncated  bool
	ExitStatus *exitStatus
}

func result[T any](t *testing.T, a answer) T {
	t.Helper()
	var r T
	if a.Error != nil || json.Unmarshal(a.Result, &r) != nil {
		t.Fatalf("answer: got %.300s, %+v; want a result", a.Result, a.Error)
	}
	return r
}

func TestTerminalOfAgentFromCreateToRelease(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	d.write("sub/file", "")
	d.write("tool.sh", "#!/bin/sh\necho tool in $PWD")
	if err := os.Chmod(filepath.Join(d.work, "tool.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	id := d.asking()
	got := d.steps(id,
		shell(`printf 'out '; printf 'err ' >&2; echo "$A b" grün; cat; exit 3`, "env", []map[string]string{{"name": "A", "value": "a;b"}}),
		of("wait_for_exit"), of("output"), of("kill"), of("release"), of("output"),
		step{Ask: "terminal/create", Params: map[string]any{"command": "./tool.sh", "cwd": filepath.Join(d.work)}},
		of("wait_for_exit"), of("output"),
		step{Ask: "terminal/create", Params: map[string]any{"command": "echo", "args": []string{"$HOME; *", "a b"}, "cwd": filepath.Join(d.work, "sub")}},
		of("wait_for_exit"), of("output"),
		shell("kill -9 $$"), of("wait_for_exit"),
	)
	if e := result[*exitStatus](t, got[1]); e.String() != "3" {
		t.Errorf("exit %v", e)
	}
	if o := result[output](t, got[2]); o.Output != "out err a;b b grün\n" || o.Truncated || o.ExitStatus.String() != "3" {
		t.Errorf("output: got %+v, want all of it, whole, with exit 3", o)
	}
	for i := 3; i <= 4; i++ {
		if got[i].Error != nil || string(got[i].Result) != "{}" {
			t.Errorf("kill and release of one that has ended: %s %+v", got[i].Result, got[i].Error)
		}
	}
	if got[5].Error == nil || got[5].Error.Code != -32002 {
		t.Errorf("its id is alive after release: %s", got[5].Result)
	}
	if o := result[output](t, got[8]); o.Output != "tool in "+d.work+"\n" {
		t.Errorf("output: got %+v, want tool in %s", o, d.work)
	}
	if o := result[output](t, got[11]); o.Output != "$HOME; * a b\n" {
		t.Errorf("a shell has read it: %+v", o)
	}
	if e := result[*exitStatus](t, got[13]); e.String() != "SIGKILL" {
		t.Errorf("exit %v", e)
	}
	told := kinds(d.transcript(id), "terminal")
	if len(told) != 4 {
		t.Fatalf("%d terminals are shown, want 4", len(told))
	}
	first := told[0]
	if first.Text != "out err a;b b grün\n" || first.Terminal.Command != "sh" || len(first.Terminal.Args) != 2 || first.Terminal.Cwd != d.work ||
		first.Terminal.Running || first.Terminal.ExitCode == nil || *first.Terminal.ExitCode != 3 || first.Terminal.EndedAt == nil || first.Turn == "" {
		t.Errorf("terminal: got %q, %+v; want sh with its output in %s, ended with 3 in a turn", first.Text, first.Terminal, d.work)
	}
	if last := told[3].Terminal; last.Signal != "SIGKILL" || last.ExitCode != nil {
		t.Errorf("killed terminal: got %+v, want SIGKILL and no code", last)
	}
	d.sameAsRebuilt(id)
	d.close()
	again := askingDesk(t, d.dir)
	if kept := kinds(again.transcript(id), "terminal"); len(kept) != 4 || kept[0].Text != first.Text {
		t.Errorf("after a restart there are %d terminals", len(kept))
	}
}

// TestTerminalTakesNumbersForTexts: libraries that tell texts from numbers by their look write an argument or a variable as a number.
func TestTerminalTakesNumbersForTexts(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	made := d.steps(id, step{Ask: "terminal/create", Params: map[string]any{
		"command": "sh", "args": []any{"-c", `echo "$1 $N"`, "sh", 80}, "env": []map[string]any{{"name": "N", "value": 7}},
	}})
	terminal := result[struct{ TerminalID string }](t, made[0]).TerminalID
	at := map[string]any{"terminalId": terminal}
	answers := d.steps(id, step{Ask: "terminal/wait_for_exit", Params: at}, step{Ask: "terminal/output", Params: at})
	if got := result[output](t, answers[1]); got.Output != "80 7\n" {
		t.Errorf("terminal/create with the numbers 80 and 7: got the output %q, want %q", got.Output, "80 7\n")
	}
}

func TestTerminalOfAgentIsRefused(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	const invalid, absent, internal = -32602, -32002, -32603
	create := func(params map[string]any) step { return step{Ask: "terminal/create", Params: params} }
	d.write("plain", "no program")
	tests := []struct {
		name string
		step step
		code int
	}{
		{"nothing", create(nil), invalid},
		{"no such program", create(map[string]any{"command": "no-such-program-here"}), invalid},
		{"a line with arguments", create(map[string]any{"command": "echo hello", "args": []string{"x"}}), invalid},
		{"no program", create(map[string]any{"command": filepath.Join(d.work, "plain")}), invalid},
		{"outside", create(map[string]any{"command": "true", "cwd": d.dir}), invalid},
		{"in /", create(map[string]any{"command": "true", "cwd": "/"}), invalid},
		{"relative", create(map[string]any{"command": "true", "cwd": "sub"}), invalid},
		{"nowhere", create(map[string]any{"command": "true", "cwd": filepath.Join(d.work, "nowhere")}), invalid},
		{"in a file", create(map[string]any{"command": "true", "cwd": filepath.Join(d.work, "plain")}), invalid},
		{"NUL", create(map[string]any{"command": "true", "args": []string{"a\x00b"}}), invalid},
		{"a variable with =", create(map[string]any{"command": "true", "env": []map[string]string{{"name": "A=B", "value": "c"}}}), invalid},
		{"args of another type", create(map[string]any{"command": "true", "args": "x"}), invalid},
		{"an arg of another type", create(map[string]any{"command": "true", "args": []any{map[string]any{}}}), invalid},
		{"output of nothing", step{Ask: "terminal/output", Params: map[string]any{"terminalId": "terminal-1-99"}}, absent},
		{"release of nothing", step{Ask: "terminal/release"}, absent},
	}
	var steps []step
	for _, tc := range tests {
		steps = append(steps, tc.step)
	}
	id := d.asking()
	for i, a := range d.steps(id, steps...) {
		if a.Error == nil || a.Error.Code != tests[i].code || a.Error.Message == "" {
			t.Errorf("%s: %s %+v, want error %d", tests[i].name, a.Result, a.Error, tests[i].code)
		}
	}
	steps = nil
	for range 100 {
		steps = append(steps, create(map[string]any{"command": "sleep", "args": []string{"1000"}}))
	}
	made := 0
	for _, a := range d.steps(id, steps...) {
		if a.Error == nil {
			made++
		} else if a.Error.Code != internal || !strings.Contains(a.Error.Message, "release") {
			t.Errorf("terminal over the limit: got %+v, want error %d that says release", a.Error, internal)
		}
	}
	if made != 32 {
		t.Errorf("%d terminals are open", made)
	}
}

// running returns how many processes have this word in their command line.
func running(t *testing.T, word string) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-fc", word).Output()
	if err != nil && len(out) == 0 {
		t.Skip("there is no pgrep: ", err)
	}
	n := 0
	fmt.Sscan(string(out), &n)
	return n
}

func TestTerminalEndsWithItsProcessTree(t *testing.T) {
	t.Parallel()
	for name, end := range map[string][]step{
		"kill":    {of("kill"), of("wait_for_exit"), of("output")},
		"release": {of("release")},
		"restart": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := askingDesk(t, t.TempDir())
			id := d.asking()
			// Some of the processes leave the group and the session, and all ignore SIGTERM.
			word := "7." + fmt.Sprint(time.Now().UnixNano())
			script := `trap "" TERM; i=0; while [ $i -lt 20 ]; do sleep ` + word + ` & setsid sleep ` + word + ` & i=$((i+1)); done; echo ready; wait`
			steps := []step{shell(script)}
			d.steps(id, steps...)
			d.until("output", func() bool {
				list := kinds(d.transcript(id), "terminal")
				return len(list) == 1 && strings.Contains(list[0].Text, "ready")
			})
			if n := running(t, "sleep "+word); n < 40 {
				t.Fatalf("%d processes run", n)
			}
			if end == nil {
				if err := d.Restart(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
			} else {
				got := d.steps(id, end...)
				if got[0].Error != nil {
					t.Fatalf("answer: got %+v, want no error", got[0].Error)
				}
				if name == "kill" {
					if e := result[*exitStatus](t, got[1]); e.String() != "SIGKILL" && e.String() != "SIGTERM" {
						t.Errorf("exit %v", e)
					}
					if o := result[output](t, got[2]); !strings.Contains(o.Output, "ready") {
						t.Errorf("what it wrote has gone: %+v", o)
					}
				}
			}
			if n := running(t, "sleep "+word); n != 0 {
				t.Errorf("%d processes are left", n)
			}
			if e := kinds(d.transcript(id), "terminal")[0].Terminal; e.Running || e.EndedAt == nil {
				t.Errorf("it is shown as running: %+v", e)
			}
			d.sameAsRebuilt(id)
		})
	}
}

func TestTerminalOutputIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	got := d.steps(id,
		shell(`printf 'äöüäöü'`, "outputByteLimit", 5), of("wait_for_exit"), of("output"),
		shell(`printf 'abc'`, "outputByteLimit", 3), of("wait_for_exit"), of("output"),
		shell(`printf 'abc'`, "outputByteLimit", 0), of("wait_for_exit"), of("output"),
		shell(`printf 'a\377\376b'`), of("wait_for_exit"), of("output"),
		// An incomplete character is held back, and shown as broken once nothing can follow.
		shell(`printf 'x\303'; read line || true; sleep 0.5; printf '\266y\303'`), of("wait_for_exit"), of("output"),
	)
	for i, want := range []output{{Output: "öü", Truncated: true}, {Output: "abc"}, {Truncated: true}, {Output: "a\uFFFDb"}, {Output: "xöy\uFFFD"}} {
		o := result[output](t, got[3*i+2])
		if o.Output != want.Output || o.Truncated != want.Truncated {
			t.Errorf("%d: %+v, want %+v", i, o, want)
		}
	}
	told := kinds(d.transcript(id), "terminal")
	for i, want := range []string{"äöüäöü", "abc", "abc", "a\uFFFDb", "xöy\uFFFD"} {
		if told[i].Text != want {
			t.Errorf("%d is shown as %q, want %q", i, told[i].Text, want)
		}
	}
	d.sameAsRebuilt(id)
}

// A program that writes a gigabyte takes the memory of its shown output, not of all output.
func TestTerminalOutputIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes a hundred megabytes, which takes seconds")
	}
	size := 100_000_000
	if long() {
		size *= 10
	}
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	got := d.steps(id, shell(fmt.Sprintf(`yes 'a line that is written again and again' | head -c %d; echo; echo the end`, size), "outputByteLimit", 100_000), of("wait_for_exit"), of("output"))
	o := result[output](t, got[2])
	if len(o.Output) > 100_000 || len(o.Output) < 99_000 || !o.Truncated || !strings.HasSuffix(o.Output, "\nthe end\n") || !utf8.ValidString(o.Output) {
		t.Errorf("%d bytes, truncated %v", len(o.Output), o.Truncated)
	}
	e := kinds(d.transcript(id), "terminal")[0]
	if len(e.Text) > 256<<10 || !strings.HasSuffix(e.Text, "\nthe end\n") || e.Terminal.Skipped+int64(len(e.Text)) != int64(size)+9 {
		t.Errorf("%d bytes are shown, %d left out", len(e.Text), e.Terminal.Skipped)
	}
	var frames, bytes int
	if err := d.db.Read().QueryRow(`SELECT count(*), sum(length(payload)) FROM frame WHERE session = ?`, id).Scan(&frames, &bytes); err != nil {
		t.Fatal(err)
	}
	if frames > 400 || bytes > 4<<20 {
		t.Errorf("%d frames of %d bytes", frames, bytes)
	}
	d.sameAsRebuilt(id)
}

func TestTerminalWaitIsWithdrawn(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	wait := of("wait_for_exit")
	wait.As = "w"
	again := wait
	again.As = "v"
	// One process, since a shell whose child has ended first may exit with 143.
	got := d.steps(id, shell("echo begun; exec sleep 1000"), wait, again, step{Cancel: "w"}, step{Await: "w"}, of("output"), of("kill"), step{Await: "v"}, step{Cancel: "v"}, of("release"))
	if got[1].Error == nil || got[1].Error.Code != -32800 {
		t.Errorf("wait_for_exit that was withdrawn: got %s, %+v; want error -32800", got[1].Result, got[1].Error)
	}
	if o := result[output](t, got[2]); o.ExitStatus != nil {
		t.Errorf("it has ended with the wait: %+v", o)
	}
	if e := result[*exitStatus](t, got[4]); e.String() != "SIGTERM" {
		t.Errorf("exit %v", e)
	}
}

func TestTerminalsAreListedAsProcesses(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.steps(id, shell("echo begun; sleep 1000"))
	list, err := d.Processes().List(false)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range list.Items {
		found = found || p.Owner == processes.ForTerminal && p.Agent == "sh"
	}
	if !found {
		t.Errorf("Processes: got %+v, want sh of an agent's terminal", list.Items)
	}
	if s := d.get(id); s.Phase != lifecycle.Ready {
		t.Errorf("phase: got %s, want ready", s.Phase)
	}
}

func TestTerminalEndsWithAgent(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	word := "8." + fmt.Sprint(time.Now().UnixNano())
	code := 7
	d.begin(id, shell("sleep "+word), step{Exit: &code})
	d.until("exit", func() bool { return d.get(id).Phase == lifecycle.Closed })
	d.until("end of the program", func() bool { return running(t, "sleep "+word) == 0 })
	if e := kinds(d.transcript(id), "terminal")[0].Terminal; e.Running {
		t.Errorf("terminal after its agent's end: got %+v, want it ended", e)
	}
	d.sameAsRebuilt(id)
}

// A program outlives the turn that began it. Its output in another turn may be deferred too, and the rebuilt transcript is the same.
func TestTerminalWritesDuringAnotherTurn(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.steps(id, shell(`until [ -e stop ]; do echo tick; sleep 0.02; done`))
	d.begin(id, of("wait_for_exit"))
	ticks := func() int {
		return strings.Count(kinds(d.transcript(id), "terminal")[0].Text, "tick")
	}
	for range 10 {
		seen := ticks()
		d.until("more of it", func() bool { return ticks() > seen })
		if found := d.verified(maintenance.Verify{}); len(found) > 0 {
			t.Errorf("Verify while a terminal writes: got findings %+v, want none", found)
			break
		}
	}
	d.write("stop", "")
	d.idle(id)
	d.sameAsRebuilt(id)
}

// A program on a disk that does not answer blocks the next start no longer than a file there does, in the session's further directory or on
// a disk in it. A directory where no program may run is refused without a read of it.
func TestTerminalOnDeadDiskHoldsUpNoStart(t *testing.T) {
	t.Parallel()
	for name, further := range map[string]bool{"a further directory": true, "a disk in the directory": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var far, outside string // before there is an agent
			var dead atomic.Bool
			var looks atomic.Int64
			until := make(chan struct{})
			look := func(path string) {
				if dead.Load() && path == far {
					<-until
				}
			}
			within := files.Within{}
			d := askingDeskOn(t, session.Config{
				Gone: func(path string) bool {
					if path == outside {
						looks.Add(1)
					}
					look(path)
					return false
				},
				Files: &host.Files{Open: within.Open, Write: within.Write, Directory: func(roots []string, path string) (string, error) {
					for _, root := range roots {
						look(root)
					}
					look(path)
					return within.Directory(roots, path)
				}},
			})
			t.Cleanup(func() { close(until) }) // runs before the desk is closed
			outside = t.TempDir()
			var id string
			program := shell("echo here")
			if further {
				far = t.TempDir()
				id = d.asking(far)
			} else {
				far = filepath.Dir(d.write("far/file", ""))
				id = d.asking()
				program = shell("echo here", "cwd", far)
			}
			if got := d.steps(id, shell("echo here", "cwd", outside))[0]; got.Error == nil || got.Error.Code != -32602 || looks.Load() != 0 {
				t.Errorf("%s %+v after %d looks", got.Result, got.Error, looks.Load())
			}
			dead.Store(true)
			d.begin(id, program)
			d.asks(id, "terminal/create", 2)
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.until("the next start", func() bool { return d.get(id).Phase == lifecycle.Ready })
		})
	}
}

// File work that hangs does not keep the next agents from running programs.
func TestTerminalRunsWhileFilesHang(t *testing.T) {
	t.Parallel()
	disk := &deadDisk{asked: make(chan string, 9), answers: make(chan struct{})}
	d := disk.desk(t)
	id := d.asking()
	hung := make([]step, 256)
	for i := range hung {
		hung[i] = read(d.write("dead", ""))
		hung[i].As = "hung"
	}
	d.begin(id, append(hung, step{Await: "hung"})...)
	disk.is(t, "dead")
	d.asks(id, "fs/read_text_file", len(hung))
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := d.steps(id, read(d.write("live", "")), shell("echo here"), of("wait_for_exit"), of("output"))
	if got[0].Error == nil {
		t.Error("another file is read while so many hang")
	}
	if o := result[output](t, got[3]); o.Output != "here\n" {
		t.Errorf("output: got %+v, want here", o)
	}
}
