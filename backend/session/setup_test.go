package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/setup"
)

// withProject opens a desk with a repository whose project is text.
func withProject(t testing.TB, text string) *desk {
	t.Helper()
	d := open(t, t.TempDir())
	d.asProject(text)
	return d
}

func (d *desk) asProject(text string) {
	d.t.Helper()
	d.asRepository()
	d.leave(".deskhand/project.json", text, ".gitignore", "*.log\n.env\ndone\nnode_modules/\n")
	d.git(d.work, "add", "--all")
	d.git(d.work, "commit", "--quiet", "-m", "the project")
}

// setUp waits until the set-up of a session is in a state, and returns what is reported.
func (d *desk) setUp(id, state string) setup.ProjectReport {
	d.t.Helper()
	d.until("set-up that is "+state, func() bool { s := d.get(id).Setup; return s != nil && s.State == state })
	r, err := d.setups.Report(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) obey(id, do string) {
	d.t.Helper()
	if err := d.setups.Obey(d.t.Context(), id, setup.Order{Do: do}); err != nil {
		d.t.Fatalf("Obey(%s): got error %v, want none", do, err)
	}
}

// inTree returns the content of a file in a session's worktree.
func (d *desk) inTree(id, name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.get(id).Cwd, name))
	if err != nil {
		return "(gone)"
	}
	return string(data)
}

func TestAgentStartsInAWorktreeThatIsReady(t *testing.T) {
	t.Parallel()
	d := withProject(t, `{"setup": ["echo \"port $DESKHAND_PORT of $DESKHAND_WORKTREE\" > done", "echo made; test -e .env"], "copy": ".env", "ports": {"from": 23100, "to": 23110}}`)
	d.leave(".env", "KEY=1\n")
	s := d.createTree(session.New{Message: "markdown"})
	r := d.request(s.ID)
	if r.Kind != requests.KindTrust || len(r.Executables) != 1 || r.Executables[0].Kind != "project" || !strings.Contains(r.Executables[0].Detail, "echo made; test -e .env") {
		t.Fatalf("the request before the set-up: got %+v, want one about the commands of the project", r)
	}
	if d.inTree(s.ID, "done") != "(gone)" || d.inTree(s.ID, ".env") != "(gone)" {
		t.Errorf("files before the approval: got done %q and .env %q, want none", d.inTree(s.ID, "done"), d.inTree(s.ID, ".env"))
	}
	d.answer(r, requests.Answer{OptionID: "approve"})
	tr := d.idle(s.ID)
	s = d.get(s.ID)
	if s.Setup == nil || s.Setup.State != setup.Done || s.Setup.Copied != 1 || s.Setup.Port != 23101 {
		t.Fatalf("the set-up after the first turn: got %+v, want it done, with a copy and the port after the repository's", s.Setup)
	}
	if got, want := d.inTree(s.ID, "done"), "port 23101 of "+s.Worktree.Path+"\n"; got != want || d.inTree(s.ID, ".env") != "KEY=1\n" {
		t.Errorf("the worktree: got done %q and .env %q, want %q and the repository's", got, d.inTree(s.ID, ".env"), want)
	}
	if textOf(tr, "agent") == "" {
		t.Error("the first prompt was not answered after the set-up")
	}
	if report := d.setUp(s.ID, setup.Done); !strings.Contains(report.Head, "$ echo made; test -e .env\nmade\n") {
		t.Errorf("what the set-up has written: got %q, want the commands with their outputs", report.Head)
	}

	// The next worktree asks nobody again, and has other ports.
	other := d.createTree(session.New{Message: "markdown"})
	d.idle(other.ID)
	if got := d.get(other.ID).Setup; got == nil || got.State != setup.Done || got.Port != 23102 {
		t.Errorf("the set-up of the next worktree: got %+v, want it done with the next port", got)
	}
}

func TestSetUpThatFailsHoldsTheStart(t *testing.T) {
	t.Parallel()
	d := withProject(t, `{"setup": ["test -e done || { echo not yet >&2; exit 3; }", "echo never"]}`)
	s := d.createTree(session.New{Message: "markdown"})
	d.answer(d.request(s.ID), requests.Answer{OptionID: "once"})
	r := d.setUp(s.ID, setup.Failed)
	if r.Setup.ExitCode == nil || *r.Setup.ExitCode != 3 || r.Setup.At != 1 || !strings.Contains(r.Head, "not yet") || strings.Contains(r.Head, "never") {
		t.Errorf("the report of a set-up that failed: got %+v with %q, want the first command with 3, and its words", r.Setup, r.Head)
	}
	d.until("notice about the failure", func() bool { return strings.Contains(notices(d.transcript(s.ID)), "ended with 3") })
	if now := d.get(s.ID); now.Phase != lifecycle.Starting || now.Turn == nil || !now.Setup.Waiting {
		t.Errorf("the session after its set-up failed: got phase %s, turn %v and %+v; want its prompt to wait", now.Phase, now.Turn, now.Setup)
	}
	refused(t, d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again}), "setup.unapproved") // it was approved once
	if err := os.WriteFile(filepath.Join(s.Cwd, "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The command names the file, so its content counts from now on.
	refused(t, d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again, Hash: r.Executables[0].Hash}), "trust.changed")
	r = d.setUp(s.ID, setup.Failed)
	if err := d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again, Hash: r.Executables[0].Hash}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	if got := d.get(s.ID); got.Setup.State != setup.Done || textOf(d.transcript(s.ID), "agent") == "" {
		t.Errorf("after the set-up was run again: got %+v, want it done and the prompt answered", got.Setup)
	}
}

func TestStartGoesOnWithoutASetUp(t *testing.T) {
	t.Parallel()
	long := `{"setup": ["echo $$ > done; while :; do sleep 0.1; done"]}`
	for _, how := range []string{"without", "release", "stop"} {
		d := withProject(t, long)
		s := d.createTree(session.New{Message: "markdown"})
		r := d.request(s.ID)
		if how == "without" {
			d.answer(r, requests.Answer{OptionID: "without"})
			d.idle(s.ID)
			if got := d.get(s.ID).Setup; got.State != setup.Without || d.inTree(s.ID, "done") != "(gone)" {
				t.Errorf("after the answer without: got %+v, done %q; want nothing run", got, d.inTree(s.ID, "done"))
			}
			continue
		}
		d.answer(r, requests.Answer{OptionID: "approve"})
		d.setUp(s.ID, setup.Running)
		d.until("file of the command", func() bool { return strings.TrimSpace(d.inTree(s.ID, "done")) > "0" })
		if how == "stop" {
			d.obey(s.ID, setup.Stop)
			if got := d.get(s.ID).Setup; got.State != setup.Stopped || !got.Waiting {
				t.Errorf("after Stop: got %+v, want it stopped, and the start still waiting", got)
			}
			if pid := strings.TrimSpace(d.inTree(s.ID, "done")); alive(pid) {
				t.Errorf("the command %s still runs after Stop", pid)
			}
		}
		d.obey(s.ID, setup.Release)
		d.idle(s.ID)
		want := map[string]string{"release": setup.Running, "stop": setup.Without}[how]
		if got := d.get(s.ID).Setup; got.State != want || got.Waiting || textOf(d.transcript(s.ID), "agent") == "" {
			t.Errorf("after %s and Release: got %+v, want %s and the prompt answered", how, got, want)
		}
	}
}

// alive reports whether there is a process.
func alive(pid string) bool {
	_, err := os.Stat("/proc/" + pid)
	return err == nil
}

func TestSetUpEndsWithItsWorktreeAndBeginsAnewWithIt(t *testing.T) {
	t.Parallel()
	d := withProject(t, `{"setup": ["echo x >> .env"], "ports": {"from": 23200, "to": 23201}}`)
	s := d.createTree(session.New{})
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.ready(s.ID)
	full := d.createTree(session.New{})
	if r := d.setUp(full.ID, setup.Failed); !strings.Contains(r.Setup.Problem, "23200 to 23201") {
		t.Errorf("the set-up when all ports are taken: got %+v, want it to say so", r.Setup)
	}
	if _, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := d.get(s.ID).Setup; got != nil {
		t.Errorf("the set-up of a removed worktree: got %+v, want none", got)
	}
	d.obey(full.ID, setup.Again)
	d.ready(full.ID)
	if got := d.get(full.ID).Setup; got.Port != 23201 {
		t.Errorf("the port after another worktree was removed: got %d, want 23201", got.Port)
	}
	if _, err := d.Worktrees().Remove(t.Context(), full.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.restoreTree(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
	if got := d.get(s.ID).Setup; got == nil || got.State != setup.Done || d.inTree(s.ID, ".env") != "x\n" {
		t.Errorf("the set-up of a restored worktree: got %+v and .env %q, want it run once more", got, d.inTree(s.ID, ".env"))
	}
}

func TestSetUpThatWasCutOffSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.asProject(`{"setup": ["echo begun; test -e done || { touch done; sleep 1000; }"]}`)
	s := d.createTree(session.New{})
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.until("file of the command", func() bool { return d.inTree(s.ID, "done") == "" })
	d.close()
	d = open(t, dir)
	d.work = filepath.Join(dir, "work")
	d.prompt(s.ID, "markdown")
	r := d.setUp(s.ID, setup.Stopped)
	if r.Setup.Problem == "" || r.Setup.At != 1 {
		t.Errorf("the set-up after Deskhand ended: got %+v, want it stopped at the first command", r.Setup)
	}
	// The file that the command has made is named by the command, so its content counts now.
	if err := d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again, Hash: r.Executables[0].Hash}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	if got := d.get(s.ID).Setup; got.State != setup.Done {
		t.Errorf("the set-up after it was run again: got %+v, want it done", got)
	}
}

func TestBrokenProjectIsAFailure(t *testing.T) {
	t.Parallel()
	d := withProject(t, "{\n\"setup\": 1\n}")
	s := d.createTree(session.New{})
	r := d.setUp(s.ID, setup.Failed)
	if !strings.Contains(r.Setup.Problem, "line 2") || !strings.Contains(r.Problem, "line 2") {
		t.Errorf("the report of a broken project: got %+v, want its line", r)
	}
	refused(t, d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again}), "setup.broken")
	d.obey(s.ID, setup.Release)
	d.ready(s.ID)
}

func TestNothingIsSetUpWithoutAProject(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	d.ready(s.ID)
	r, err := d.setups.Report(t.Context(), s.ID)
	if err != nil || r.Setup != nil || r.Source != "" || len(r.Executables) != 0 || !r.Worktree {
		t.Errorf("Report: got %+v, %v; want nothing", r, err)
	}
	refused(t, d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Again}), "setup.nothing")
	refused(t, d.setups.Obey(t.Context(), s.ID, setup.Order{Do: setup.Stop}), "setup.not_running")
	plain := d.in("mock", d.work)
	refused(t, d.setups.Obey(t.Context(), plain.ID, setup.Order{Do: setup.Again}), "setup.none")
}

func TestCommandsOfAProjectRunInTerminals(t *testing.T) {
	t.Parallel()
	d := withProject(t, `{"test": "echo tests of $DESKHAND_PORT; exit 4", "open": "http://localhost:${DESKHAND_PORT}/x", "ports": {"from": 23300, "to": 23399}}`)
	tree, plain := d.createTree(session.New{}), d.in("mock", d.work)
	d.ready(tree.ID)
	for id, port := range map[string]int{tree.ID: 23301, plain.ID: 23300} {
		r, err := d.setups.Report(t.Context(), id)
		if want := fmt.Sprintf("http://localhost:%d/x", port); err != nil || r.Open != want || len(r.Executables) != 1 {
			t.Fatalf("Report: got %+v, %v; want the tests and the address %s", r, err, want)
		}
		_, err = d.setups.Run(t.Context(), id, setup.NewRun{Name: "run"})
		refused(t, err, "setup.command")
		if !r.Executables[0].Approved {
			_, err = d.setups.Run(t.Context(), id, setup.NewRun{Name: "test"})
			refused(t, err, "setup.unapproved")
			_, err = d.setups.Run(t.Context(), id, setup.NewRun{Name: "test", Hash: "0"})
			refused(t, err, "trust.changed")
		}
		sh, err := d.setups.Run(t.Context(), id, setup.NewRun{Name: "test", Hash: r.Executables[0].Hash})
		if err != nil || sh.Name != "test" {
			t.Fatalf("Run: got %+v, %v; want a terminal called test", sh, err)
		}
		var said strings.Builder
		for after, exited := int64(0), false; !exited; {
			out, err := d.Shells().Read(t.Context(), sh.ID, after, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			said.Write(out.Data)
			after, exited = out.Next, out.Exited
			if exited && (out.ExitCode == nil || *out.ExitCode != 4) {
				t.Errorf("the end of the tests: got %v, want 4", out.ExitCode)
			}
		}
		if want := fmt.Sprintf("tests of %d", port); !strings.Contains(said.String(), want) {
			t.Errorf("the terminal: got %q, want %q", said.String(), want)
		}
	}
}
